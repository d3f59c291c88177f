//! The simulator: reproducible, fair where it says so, and counting as the papers count.

#[allow(dead_code, reason = "not every test needs every toy")]
mod common;

use common::{Toy, toy};
use doorway_core::Size;
use doorway_lab::{
    Entrant, Subject,
    schedule::{SECTION_4, ScheduleError, Script},
    simulate::{Outcome, SimulateError, Simulation, scheduler, simulate},
};

fn subject(name: &str, n: usize) -> Box<dyn Subject> {
    Entrant::named(name)
        .expect("it is in the registry")
        .build(Size::mutex(n), None, false)
        .expect("it fits")
}

fn run(subject: &dyn Subject, name: &str, how: &Simulation) -> Outcome {
    let mut scheduler =
        scheduler::<ScheduleError>(name, subject, how.seed, |_| unreachable!()).expect("it exists");
    simulate(subject, how, &mut *scheduler).expect("it runs")
}

fn passages(passages: u64, seed: u64) -> Simulation {
    Simulation { passages, seed, crashes: 0, max_steps: 10_000_000 }
}

/// Paper 002, section 4: P_N is blocked exactly N(N-1)/2 times in one passage, and its references
/// grow with the square.
#[test]
fn section_4_blocks_the_last_process_as_often_as_the_paper_says() {
    let mut last = 0.0;
    for n in 2..=16 {
        let subject = subject("burns-lamport", n);
        let outcome = run(&*subject, SECTION_4, &passages(1, 0));
        let blocked = outcome.lines.of(n - 1, 4);
        assert_eq!(blocked, (n * (n - 1) / 2) as u64, "n = {n}");
        let (cc, dsm) = outcome.meter.by_process[n - 1];
        assert_eq!(
            (cc.passages, outcome.meter.cc.passages),
            (1, n as u64),
            "everybody goes through once"
        );
        assert!(cc.max >= blocked, "n = {n}: at least one reference for each time");
        println!("n = {n}: blocked {blocked} times, {} RMRs in CC, {} in DSM", cc.max, dsm.max);
        let per_square = cc.max as f64 / (n * n) as f64;
        assert!(n == 2 || (per_square / last - 1.0_f64).abs() < 0.15, "n = {n}: {per_square} n²");
        last = per_square;
        assert_eq!(outcome.violations, 0);
    }
}

#[test]
fn a_run_follows_from_its_seed() {
    for name in ["random", "pct"] {
        let subject = subject("bakery", 5);
        let of = |seed| {
            let outcome = run(&*subject, name, &passages(20, seed));
            (outcome.steps, outcome.meter.cc, outcome.meter.dsm, outcome.lines)
        };
        assert_eq!(of(7), of(7), "{name}");
        assert_ne!(of(7), of(8), "{name}");
    }
}

#[test]
fn every_algorithm_finishes_under_every_scheduler_without_violations() {
    for entrant in Entrant::all() {
        for name in ["round-robin", "random", "pct"] {
            for (n, k) in [(2, 1), (7, 3), (16, 5)] {
                let subject = entrant
                    .build(entrant.claims.problem.size(n, k, 2), None, false)
                    .expect("it fits");
                let outcome = run(&*subject, name, &passages(30, 3));
                assert_eq!(outcome.violations, 0, "{} {name} {n}", entrant.name);
                assert_eq!(outcome.meter.cc.passages, 30 * n as u64, "{} {name} {n}", entrant.name);
                assert!(!outcome.stuck && !outcome.cut_off);
            }
        }
    }
}

/// Yang-Anderson waits at home: what it costs in the DSM model has a bound that grows with log n.
/// The Bakery does not: it pays for every look while it waits.
#[test]
fn local_spinning_shows_in_the_dsm_model() {
    let dearest = |name: &str, n| run(&*subject(name, n), "random", &passages(40, 1)).meter.dsm.max;
    for n in [4, 16, 64] {
        let levels = u64::from(usize::ilog2(n));
        let most = dearest("yang-anderson", n);
        assert!(
            most <= 11 * levels,
            "n = {n}: {most} references on {levels} levels: at most 11 accesses each are remote"
        );
        assert!(dearest("bakery", n) > 4 * n as u64, "n = {n}");
    }
}

/// Zehavi's algorithm waits at home, too: what is remote in the DSM model is counted out line by
/// line. With abstract timestamps a Label and a Scan are one reference each, with bounded ones at
/// most 5 and 2 for each other process.
#[test]
fn zehavi_pays_for_each_other_process_so_much_and_no_more() {
    for (variant, label, scan, fixed) in [("abstract", 0, 0, 2), ("bounded", 5, 2, 0)] {
        let entrant =
            Entrant::variants("timestamp-bakery").find(|entrant| entrant.variant == Some(variant));
        // Lines 1, 2, 4, 7, 8, 12 and 15 for each other process.
        let each = 1 + 1 + 13 + 1 + 1 + 1 + 1 + label + scan;
        for (n, k) in [(4, 1), (8, 3), (16, 1), (32, 16)] {
            let subject = entrant
                .expect("it is in the registry")
                .build(Size::slots(n, k), None, false)
                .expect("it fits");
            for scheduler in ["random", "pct", "round-robin"] {
                let meter = run(&*subject, scheduler, &passages(8, 5)).meter;
                let others = n as u64 - 1;
                assert!(
                    meter.dsm.max <= each * others + fixed,
                    "{variant} n = {n}: {} in DSM",
                    meter.dsm.max
                );
                assert!(meter.cc.max <= 40 * n as u64, "{variant} n = {n}: {} in CC", meter.cc.max);
            }
        }
    }
}

/// One who is gone in the doorway or the line stops everybody: no claim of these algorithms says
/// otherwise.
#[test]
fn a_crash_stops_the_bakery() {
    let outcome =
        run(&*subject("bakery", 4), "random", &Simulation { crashes: 1, ..passages(50, 2) });
    assert_eq!(outcome.crashed.len(), 1);
    assert!(outcome.stuck, "the others wait for ever");
    assert!(outcome.meter.cc.passages < 200);
}

/// Where a wait looks at several registers, not one of the looks is a failed wait by itself: the
/// Black-White Bakery's line 14, and a scan of everybody's flags that counts its first rounds.
#[test]
fn a_wait_on_several_registers_is_seen_to_be_for_ever() {
    for subject in [subject("black-white-bakery", 3), subject("bakery", 3), toy(Toy::Scan, 3)] {
        for scheduler in ["round-robin", "random", "pct"] {
            let stuck = |seed| {
                let how = Simulation { crashes: 1, max_steps: 20_000, ..passages(30, seed) };
                let outcome = run(&*subject, scheduler, &how);
                let what = format!("{} {scheduler} {seed}", subject.name());
                assert_eq!(outcome.crashed.len(), 1, "{what}");
                assert!(!outcome.cut_off, "{what}: the others wait, and nobody notices");
                // Who is not stuck goes on to the end.
                assert_eq!(outcome.stuck, outcome.meter.cc.passages < 60, "{what}");
                outcome.stuck
            };
            assert!(
                (0..20).filter(|seed| stuck(*seed)).count() > 0,
                "{} {scheduler}",
                subject.name()
            );
        }
    }
}

/// Who can give up its wait does so in the end, so nobody waits for ever.
#[test]
fn who_gives_up_is_not_stuck() {
    let bakery = Entrant::named("bakery").expect("there is a bakery");
    let subject = bakery.build(Size::mutex(3), None, true).expect("it fits");
    for seed in 0..20 {
        let outcome = run(&*subject, "random", &Simulation { crashes: 1, ..passages(20, seed) });
        assert!(!outcome.stuck && !outcome.cut_off, "{seed}");
    }
}

#[test]
fn mutants_are_seen_to_misbehave() {
    let entrant = Entrant::named("bakery").expect("there is a bakery");
    let subject = entrant.build(Size::mutex(4), Some("without-line-7"), false).expect("it fits");
    let outcome = run(&*subject, "random", &passages(200, 0));
    assert!(outcome.violations > 0 && outcome.violated.contains("mutual-exclusion"));
}

#[test]
fn scripts_say_where_they_go_wrong() {
    let syntax = |line, text: &str| ScheduleError::Syntax { line, text: text.into() };
    assert_eq!(Script::parse("0\nfly", 2).err(), Some(syntax(2, "fly")));
    assert_eq!(Script::parse("0 until lunch", 2).err(), Some(syntax(1, "0 until lunch")));
    assert_eq!(
        Script::parse("# nothing\n\n5", 2).err(),
        Some(ScheduleError::Nobody { line: 3, process: 5, n: 2 })
    );
    let follow = |text: &str| {
        let subject = subject("bakery", 2);
        simulate(&*subject, &passages(1, 0), &mut Script::parse(text, 2).expect("it is a script"))
    };
    assert_eq!(
        follow("0*2\n1 past 5 # a comment\n0 until critical").expect("it can be followed").steps,
        10
    );
    // Process 1 is through its doorway first, so process 0 cannot pass it.
    let never = follow("1 until waiting\n0 until critical").err();
    assert!(
        matches!(
            never,
            Some(SimulateError::Schedule(ScheduleError::Never { line: 2, process: 0, .. }))
        ),
        "{never:?}"
    );
    let gone = follow("0 until critical\n0 until remainder\n0").err();
    assert!(
        matches!(gone, Some(SimulateError::Schedule(ScheduleError::Stuck { line: 3, process: 0 }))),
        "{gone:?}"
    );
}

/// References do not depend on how the simulator makes its steps: these were counted when it
/// replayed every single one.
#[test]
fn counts_stay_what_they_were() {
    for (name, scheduler, steps, cc, dsm) in [
        ("bakery", "random", 19597, (3213, 56), (19277, 317)),
        ("bakery", "pct", 4718, (2897, 53), (4398, 60)),
        ("bakery", "round-robin", 17736, (3622, 64), (17416, 270)),
        ("black-white-bakery", "random", 27801, (3729, 62), (27401, 444)),
        ("black-white-bakery", "pct", 17912, (3305, 57), (17512, 729)),
        ("black-white-bakery", "round-robin", 27072, (3866, 67), (26672, 407)),
        ("burns-lamport", "random", 13542, (2307, 230), (12650, 1436)),
        ("burns-lamport", "pct", 2645, (1046, 83), (2245, 163)),
        ("burns-lamport", "round-robin", 12910, (3235, 302), (11550, 1290)),
        ("yang-anderson", "random", 9027, (2532, 38), (2610, 38)),
        ("yang-anderson", "pct", 2900, (2057, 36), (2151, 37)),
        ("yang-anderson", "round-robin", 7645, (2500, 35), (2579, 36)),
    ] {
        let outcome = run(&*subject(name, 16), scheduler, &passages(5, 7));
        let of = |cost: doorway_lab::cost::Cost| (cost.total, cost.max);
        let counted = (outcome.steps, of(outcome.meter.cc), of(outcome.meter.dsm));
        assert_eq!(counted, (steps, cc, dsm), "{name} {scheduler}");
    }
}
