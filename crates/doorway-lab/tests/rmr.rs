//! Remote references: how they grow, what waiting costs, and the most that a passage can make.

mod common;

use std::sync::atomic::Ordering::Relaxed;

use common::{Toy, toy};
use doorway_core::{Problem, Size};
use doorway_lab::{
    Entrant, Limits, Maxima, Most, Progress, Subject, most,
    rmr::{Class, Curve, Passages, Sweep, WAITS, Watch, measure, spin_cost},
    schedule::{SECTION_4, ScheduleError},
    simulate::{SimulateError, Simulation, scheduler, schedulers, simulate},
};

fn subject(name: &str, n: usize) -> Box<dyn Subject> {
    Entrant::named(name)
        .expect("it is in the registry")
        .build(Size::mutex(n), None, false)
        .expect("it fits")
}

fn limits(max_states: u64) -> Limits {
    Limits { passages: None, max_states, workers: 2 }
}

fn maxima(subject: &dyn Subject, limits: &Limits) -> Maxima {
    most(subject, limits, &Progress::default())
        .unwrap_or_else(|fault| panic!("{}: {fault}", subject.name()))
}

/// The sizes of an algorithm that are explored here, if there are not too many states.
fn small_sizes(entrant: &Entrant) -> Vec<Size> {
    match entrant.claims.problem {
        Problem::KExclusion => vec![Size::slots(2, 1), Size::slots(3, 2)],
        Problem::Mutex => vec![Size::mutex(2), Size::mutex(3)],
        Problem::Group => vec![Size::group(2, 1), Size::group(2, 2)],
    }
}

/// By hand, for two processes, p being the one that pays and q the other.
///
/// Bakery, CC: four writes, one read of `Ticket[q]` in the doorway; then at line 7 p sees q in a
/// doorway that q began before p had a ticket (1), in another one after a passage that q makes
/// first (1) and out of it (1), and at line 8 q's ticket, which is larger (1). 4 + 1 + 3 + 1 = 9.
///
/// Yang-Anderson, DSM: all but the accesses to `P[p]`: lines 1, 2, 4, 5, twice 6, 8, 10, 11, 12.
/// CC: lines 1, 2, 3, 4 and twice 6 (line 5 reads what p wrote itself), `P[p]` twice as it is told
/// to look and to go, 10, 11 and 12.
///
/// Burns-Lamport, CC: process 0 writes twice and sees the other's bit set, set again after a
/// passage, and taken back. Process 1 starts again whenever process 0 comes first, and that may be
/// for ever.
///
/// MCS, DSM: lines 2, 5, 9 and 11. CC: those, the writes of lines 1 and 4, and a read in each of
/// lines 6 and 10 after the other has written (line 8 and the first looks read what p wrote
/// itself).
///
/// The Black-White Bakery's 13 is what was found, not derived; simulated runs reach it, and none
/// exceeds it (below).
#[test]
fn maxima_of_two_are_what_they_are_by_hand() {
    use Most::{Exactly, Unbounded};
    for (name, by_process) in [
        ("bakery", [(Exactly(9), Unbounded), (Exactly(9), Unbounded)]),
        ("yang-anderson", [(Exactly(11), Exactly(10)), (Exactly(11), Exactly(10))]),
        ("mcs", [(Exactly(8), Exactly(4)), (Exactly(8), Exactly(4))]),
        ("burns-lamport", [(Exactly(5), Unbounded), (Unbounded, Unbounded)]),
        ("black-white-bakery", [(Exactly(13), Unbounded), (Exactly(13), Unbounded)]),
    ] {
        let found = maxima(&*subject(name, 2), &limits(100_000));
        assert_eq!(found.by_process, by_process, "{name}");
        let mut worst = by_process.to_vec();
        worst.sort_by_key(|(cc, _)| *cc == Unbounded);
        assert_eq!((found.cc, found.dsm), worst.pop().expect("there are two"), "{name}");
    }
}

#[test]
fn maxima_of_three() {
    let bakery = maxima(&*subject("bakery", 3), &limits(100_000));
    assert_eq!((bakery.cc, bakery.dsm), (Most::Exactly(13), Most::Unbounded));
    assert!(
        bakery.scope.contains("n = 3, k = 1, any number of passages, tickets relabelled"),
        "{}",
        bakery.scope
    );
}

/// True tickets and bounded passages say the same as relabelled ones and runs without end.
#[test]
fn maxima_with_true_tickets_agree() {
    for (n, passages) in [(2, 3), (3, 2)] {
        let bounded = Limits { passages: Some(passages), ..limits(2_000_000) };
        let plain = maxima(&*subject("bakery", n), &bounded);
        let relabelled = maxima(&*subject("bakery", n), &limits(100_000));
        assert_eq!(plain.by_process, relabelled.by_process, "n = {n}");
        assert!(!plain.scope.contains("relabelled"));
    }
}

/// A lock that tries again and again pays for each try, in both models. With fetch-and-add and two
/// passages each: 1 to take a number, 1 to look (0 if it was seen in the passage before), 1 for
/// each time that the other moves on, 1 to leave.
#[test]
fn maxima_of_other_primitives() {
    let swap = maxima(&*toy(Toy::Swap, 2), &limits(10_000));
    assert_eq!((swap.cc, swap.dsm), (Most::Unbounded, Most::Unbounded));
    let add = maxima(&*toy(Toy::Add, 2), &Limits { passages: Some(2), ..limits(10_000) });
    assert_eq!((add.cc, add.dsm), (Most::Exactly(4), Most::Unbounded));
}

#[test]
fn a_search_that_is_cut_short_says_so() {
    let found = maxima(&*subject("yang-anderson", 3), &limits(1_000));
    assert!(matches!(&found.cc, Most::Unknown(why) if why.contains("states")), "{:?}", found.cc);
    let progress = Progress::default();
    progress.cancel.store(true, Relaxed);
    let found = most(&*subject("bakery", 3), &limits(100_000), &progress).expect("it runs");
    assert_eq!(found.dsm, Most::Unknown("interrupted".into()));
}

/// No passage of any run costs more than the dearest of all runs.
#[test]
fn simulated_maxima_do_not_exceed_exact_ones() {
    for entrant in Entrant::all() {
        for size in small_sizes(entrant) {
            let Ok(subject) = entrant.build(size, None, false) else { continue };
            let exact = maxima(&*subject, &limits(600_000));
            let mut dearest = (0, 0);
            for (name, seed) in schedulers(entrant.name)
                .into_iter()
                .flat_map(|name| (0..40).map(move |s| (name, s)))
            {
                let mut by = scheduler::<ScheduleError>(name, &*subject, seed, |_| unreachable!())
                    .expect("it exists");
                let how = Simulation { passages: 50, seed, crashes: 0, max_steps: 1_000_000 };
                let meter = simulate(&*subject, &how, &mut *by).expect("it runs").meter;
                for (p, (cc, dsm)) in meter.by_process.iter().enumerate() {
                    let (most_cc, most_dsm) = &exact.by_process[p];
                    let what = format!("{} {size:?} {name} {seed}, process {p}", entrant.name);
                    assert!(
                        most_cc.allows(cc.max),
                        "{what}: {} in CC, {most_cc} is the most",
                        cc.max
                    );
                    assert!(
                        most_dsm.allows(dsm.max),
                        "{what}: {} in DSM, {most_dsm} is the most",
                        dsm.max
                    );
                    dearest = (dearest.0.max(cc.max), dearest.1.max(dsm.max));
                }
            }
            println!("{} {size:?}: {dearest:?} of {} and {}", entrant.name, exact.cc, exact.dsm);
        }
    }
}

/// Who spins locally pays nothing for waiting longer; who does not pays for every look.
#[test]
fn waiting_costs_the_longer_the_more_unless_it_is_local() {
    for (name, n) in [("bakery", 2), ("bakery", 5), ("black-white-bakery", 3), ("burns-lamport", 4)]
    {
        let subject = subject(name, n);
        let costs = WAITS
            .map(|steps| spin_cost(&*subject, steps).expect("it runs").expect("somebody waits"));
        for (cost, steps) in costs.iter().zip(WAITS) {
            assert!(cost.dsm <= steps && cost.dsm + 10 >= steps, "{name} {n}: {cost:?}");
        }
        assert_eq!(costs[0].cc, costs[2].cc, "{name} {n}: looking at a copy is free");
    }
    for n in [2, 3, 8] {
        let subject = subject("yang-anderson", n);
        let costs = WAITS
            .map(|steps| spin_cost(&*subject, steps).expect("it runs").expect("somebody waits"));
        assert!(
            costs.iter().all(|c| (c.cc, c.dsm) == (costs[0].cc, costs[0].dsm)),
            "{n}: {costs:?}"
        );
    }
}

/// Every claim of a bound in DSM is a claim to spin locally, and every "unbounded" is shown.
#[test]
fn claims_about_waiting_are_true() {
    for entrant in Entrant::all() {
        let k = if entrant.claims.problem == Problem::KExclusion { 2 } else { 1 };
        let size = entrant.claims.problem.size(k + 1, k, 2);
        let subject = entrant.build(size, None, false).expect("it fits");
        let cost = |steps| spin_cost(&*subject, steps).expect("it runs").expect("somebody waits");
        let (short, long, claimed) = (cost(1_000), cost(10_000), entrant.claims.rmr);
        assert_eq!(
            long.dsm > short.dsm,
            claimed.dsm.contains("unbounded"),
            "{}: {claimed:?}",
            entrant.name
        );
        // With caches there are other ways to pay for ever than to look.
        assert!(
            long.cc == short.cc || claimed.cc.contains("unbounded"),
            "{}: {claimed:?}",
            entrant.name
        );
    }
}

#[test]
fn nobody_waits_where_everybody_may_go_in() {
    let bakery = Entrant::named("bakery").expect("there is a bakery");
    let alone = bakery.build(Size::mutex(1), None, false).expect("it fits");
    assert_eq!(spin_cost(&*alone, 100), Ok(None));
    // This one excludes nobody.
    assert_eq!(spin_cost(&*toy(Toy::Inversion, 2), 100), Ok(None));
}

fn sweep(schedulers: &[&str], up_to: usize) -> Sweep {
    let schedulers = schedulers.iter().map(|name| (*name).into()).collect();
    let (passages, max_steps) = (Passages::Each(3), 100_000_000);
    Sweep { k: 2, sessions: 2, up_to, schedulers, passages, seed: 1, max_steps, workers: 2 }
}

fn curve(name: &str, scheduler: &str, up_to: usize) -> Curve {
    let entrant = Entrant::named(name).expect("it is in the registry");
    let mut measured =
        measure(entrant, &sweep(&[scheduler], up_to), &Watch::default()).expect("it runs");
    assert!(measured.refused.is_empty() && !measured.cancelled);
    measured.curves.remove(0)
}

/// What the papers prove shows in the curves.
#[test]
fn curves_have_the_papers_shapes() {
    let class =
        |curve: &Curve| curve.growth(|p| p.cc.max as f64).expect("there are enough sizes").class;
    for scheduler in ["random", "pct", "round-robin"] {
        for name in ["bakery", "black-white-bakery"] {
            let curve = curve(name, scheduler, 64);
            assert_eq!(
                class(&curve),
                Class::Linear,
                "{name} {scheduler}: {:?}",
                curve.growth(|p| p.cc.max as f64)
            );
        }
        let tournament = curve("yang-anderson", scheduler, 64);
        assert_eq!(class(&tournament), Class::Logarithmic, "{scheduler}");
        let dsm = tournament.growth(|p| p.dsm.max as f64).expect("there are enough sizes");
        assert_eq!(dsm.class, Class::Logarithmic, "{scheduler}: {dsm:?}");
    }
    let blocked = curve("burns-lamport", SECTION_4, 32);
    assert_eq!(class(&blocked), Class::Quadratic);
    assert_eq!(blocked.points.iter().map(|p| p.n).collect::<Vec<_>>(), [2, 4, 8, 16, 32]);
}

#[test]
fn a_curve_follows_from_its_seed() {
    let of = |seed, workers| {
        let entrant = Entrant::named("bakery").expect("there is a bakery");
        let sweep = Sweep { seed, workers, ..sweep(&["random", "pct"], 8) };
        let measured = measure(entrant, &sweep, &Watch::default()).expect("it runs");
        let points = measured
            .curves
            .iter()
            .flat_map(|curve| curve.points.iter().map(|p| (p.steps, p.cc, p.dsm)));
        points.collect::<Vec<_>>()
    };
    assert_eq!(of(1, 1), of(1, 1));
    assert_eq!(of(1, 1), of(1, 3), "whatever runs beside it");
    assert_ne!(of(1, 1), of(2, 1));
}

/// With fewer processes than slots there are fewer slots, and such a point is no part of the curve.
/// One that was cut off is none either.
#[test]
fn what_does_not_belong_to_the_curve_is_not_fitted() {
    for entrant in Entrant::all() {
        let measured =
            measure(entrant, &sweep(&["round-robin"], 8), &Watch::default()).expect("it runs");
        for point in &measured.curves[0].points {
            let slots = match entrant.claims.problem {
                Problem::Mutex => 1,
                Problem::KExclusion => 2.min(point.n - 1),
                Problem::Group => point.n,
            };
            assert_eq!(point.k, slots, "{}", entrant.name);
            assert_eq!(
                point.fitted,
                entrant.claims.problem != Problem::KExclusion || slots == 2,
                "{}",
                entrant.name
            );
        }
    }
    let bakery = Entrant::named("bakery").expect("there is a bakery");
    let cut =
        measure(bakery, &Sweep { max_steps: 50, ..sweep(&["random"], 16) }, &Watch::default())
            .expect("it runs");
    assert!(cut.curves[0].points.iter().skip(1).all(|point| !point.complete && !point.fitted));
    assert_eq!(cut.curves[0].growth(|p| p.cc.max as f64), None);
}

#[test]
fn a_measurement_can_be_stopped() {
    let bakery = Entrant::named("bakery").expect("there is a bakery");
    let watch = Watch::default();
    watch.cancel.store(true, Relaxed);
    let measured = measure(bakery, &sweep(&["random"], 4096), &watch).expect("it runs");
    assert!(measured.cancelled);
    assert!(measured.curves[0].points.iter().all(|point| !point.complete));
    assert!(watch.now().starts_with("bakery n = "));
}

#[test]
fn schedulers_that_are_not_there_are_named() {
    let bakery = Entrant::named("bakery").expect("there is a bakery");
    for name in ["luck", SECTION_4, "script:file"] {
        let refused = measure(bakery, &sweep(&[name], 4), &Watch::default()).err();
        let Some(SimulateError::Schedule(error)) = refused else { panic!("{name}: {refused:?}") };
        assert_eq!(error, ScheduleError::Unknown(name.into()));
    }
}
