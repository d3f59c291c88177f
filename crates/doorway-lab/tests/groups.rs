//! Group mutual exclusion: what paper 002 says of its algorithms beside their claims.

use doorway_core::{
    Algorithm, Claims, Exclusion, Layout, Memory, Property, RegisterKind, Session, Setting, Size,
    Unfit, algorithms::group::GroupBlackWhiteBakery,
};
use doorway_lab::{
    Entrant, Options, Progress, Report, Subject, build, check,
    rmr::{Class, Passages, Sweep, Watch, measure},
    schedule::{SECTION_4, SECTION_6, SECTION_6_SCRIPT, ScheduleError},
    simulate::{Outcome, Simulation, scheduler, simulate},
    trace::Trace,
};

const BLACK_WHITE: &str = "group-black-white-bakery";

fn subject(name: &str, size: Size, mutant: Option<&'static str>) -> Box<dyn Subject> {
    Entrant::named(name)
        .expect("it is in the registry")
        .build(size, mutant, false)
        .expect("it fits")
}

fn options(setting: Setting, properties: &[Property]) -> Options {
    Options {
        passages: setting.passages,
        registers: setting.registers,
        properties: properties.to_vec(),
        max_states: 12_000_000,
        workers: 2,
        ..Options::default()
    }
}

fn decide(
    name: &str,
    mutant: Option<&'static str>,
    setting: Setting,
    properties: &[Property],
) -> Report {
    let subject = subject(name, setting.size, mutant);
    check(&*subject, &options(setting, properties), &Progress::default()).expect("it runs")
}

fn run(subject: &dyn Subject, name: &str, how: &Simulation) -> Outcome {
    let mut scheduler =
        scheduler::<ScheduleError>(name, subject, how.seed, |_| unreachable!()).expect("it exists");
    simulate(subject, how, &mut *scheduler).expect("it runs")
}

/// Theorem 8's bound is not only kept but reached.
#[test]
fn numbers_go_up_to_one_more_than_there_are_processes() {
    for n in 2..=3 {
        let setting = Setting::group(n, 2);
        let report = decide(BLACK_WHITE, None, setting, &[Property::BoundedRegisters]);
        assert_eq!((report.complete, report.max_register), (true, Some(n as u64 + 1)), "n = {n}");
        assert_eq!(report.verdicts[0].holds, Some(true));
    }
    // With one session nobody conflicts, and everybody has the number 1.
    let report = decide(BLACK_WHITE, None, Setting::group(3, 1), &[Property::BoundedRegisters]);
    assert_eq!(report.max_register, Some(1));
}

/// Each register by itself: a colour, and for each process a flag and a token of S + 1 sessions,
/// three colours and up to N + 2 numbers. What is reached takes no more.
#[test]
fn the_space_is_what_the_page_says() {
    for (n, sessions) in [(2, 2), (3, 2), (2, 5)] {
        let report =
            decide(BLACK_WHITE, None, Setting::group(n, sessions), &[Property::BoundedRegisters]);
        let token = 1 + sessions + sessions * 2 * (n + 1);
        let bits = 1 + n as u32 * (1 + token.next_power_of_two().ilog2());
        assert!(
            report.bits.is_some_and(|reached| reached <= u64::from(bits)),
            "n = {n}: {:?} of {bits}",
            report.bits
        );
    }
}

/// Section 6: the naive generalisation lets two sessions in, by the paper's schedule; the algorithm
/// does not.
#[test]
fn the_naive_generalisation_fails_by_the_papers_schedule() {
    let size = Size::group(4, 2);
    let how = Simulation { passages: 1, seed: 0, crashes: 0, max_steps: 100_000 };
    let naive = run(&*subject(BLACK_WHITE, size, Some("naive")), SECTION_6, &how);
    assert!(naive.violated.contains("session-exclusion"), "{:?}", naive.violated);
    let whole = run(&*subject(BLACK_WHITE, size, None), SECTION_6, &how);
    assert_eq!((whole.violations, whole.meter.cc.passages), (0, 4));

    // As a trace, up to the step at which P_l goes in.
    let (until, _) = SECTION_6_SCRIPT.rsplit_once("1 until remainder").expect("P_j leaves at last");
    let shown = |mutant| {
        let subject = subject(BLACK_WHITE, size, mutant);
        let trace =
            Trace::scripted(&*subject, RegisterKind::Atomic, Property::SessionExclusion, until);
        trace.expect("it can be followed").replay().is_ok()
    };
    assert!(shown(Some("naive")));
    for mutant in [None, Some("without-line-25"), Some("without-line-26")] {
        assert!(
            !shown(mutant),
            "{mutant:?}: alone, neither line 25 nor line 26 is missed in this schedule"
        );
    }
}

/// The same by the search, which needs only three processes and finds Invariant 1 broken long
/// before.
#[test]
fn the_naive_generalisation_breaks_the_invariant_first() {
    let one_flip = Property::Invariant("invariant:one-flip");
    let setting = Setting::group(2, 2).passages(2);
    let steps = |mutant, property| {
        let verdict = decide(BLACK_WHITE, mutant, setting, &[property]).verdicts.remove(0);
        verdict.trace.map(|trace| {
            trace.replay().expect("it replays");
            trace.steps.len()
        })
    };
    assert_eq!(steps(Some("naive"), one_flip), Some(22));
    assert_eq!(steps(Some("without-line-25"), one_flip), Some(29));
    assert_eq!(steps(None, one_flip), None);
    // Among two, that does not let both in.
    assert_eq!(steps(Some("naive"), Property::SessionExclusion), None);
}

/// A mutex is what a group lock is when everybody asks for something else, and no lock at all when
/// all ask for the same.
#[test]
fn one_session_is_shared_by_all() {
    for entrant in ["group-bakery", BLACK_WHITE, "strong-group-bakery"] {
        let verdict = decide(entrant, None, Setting::group(2, 1), &[Property::MutualExclusion])
            .verdicts
            .remove(0);
        assert_eq!(verdict.holds, Some(false), "{entrant}: two of one session are in together");
        let all = [
            Property::SessionExclusion,
            Property::ConcurrentEntry,
            Property::StrongConcurrentEntry,
        ];
        for verdict in decide(entrant, None, Setting::group(2, 1), &all).verdicts {
            assert_eq!(verdict.holds, Some(true), "{entrant}: {}", verdict.property);
        }
    }
}

/// Traces of what is said of the own steps of one process replay, and say no more than they show.
#[test]
fn traces_of_concurrent_entry_are_judged_by_what_they_show() {
    let setting = Setting::group(2, 2);
    let property = Property::StrongConcurrentEntry;
    let verdict = decide("group-bakery", None, setting, &[property]).verdicts.remove(0);
    let trace = verdict.trace.expect("it is refuted");
    trace.replay().expect("it replays");
    let altered = |change: fn(&mut Trace)| {
        let mut trace = trace.clone();
        change(&mut trace);
        trace.replay().is_ok()
    };
    // The one in its doorway is active and of another session: that is not against concurrent
    // entry.
    assert!(!altered(|trace| trace.property = Some("concurrent-entry".into())));
    // Without the loop nothing goes on for ever.
    assert!(!altered(|trace| trace.loop_from = None));
    assert!(!altered(|trace| trace.loop_from = Some(0)));
    assert!(!altered(|trace| trace.loop_from = Some(10_000)));
    // Of the same session, it is not waited for.
    assert!(!altered(|trace| trace.sessions = 1));
}

/// BWBGME with a way to give up a place that looks harmless: to leave as one leaves from inside.
#[derive(Debug)]
struct GivesUp(GroupBlackWhiteBakery);

impl Algorithm for GivesUp {
    const NAME: &'static str = "gives-up";
    const CLAIMS: Claims = Claims { abandons: true, ..GroupBlackWhiteBakery::CLAIMS };

    fn new(layout: &mut Layout, size: Size) -> Result<Self, Unfit> {
        GroupBlackWhiteBakery::new(layout, size).map(Self)
    }
}

impl<M: Memory> Exclusion<M> for GivesUp
where
    GroupBlackWhiteBakery: Exclusion<M, Request = Session, Keep = ()>,
{
    type Request = Session;
    type Pass = <GroupBlackWhiteBakery as Exclusion<M>>::Pass;
    type Keep = ();

    fn keep(&self, _: usize) {}

    fn doorway(
        &self,
        m: &mut M,
        p: usize,
        session: Session,
        (): (),
    ) -> Result<Self::Pass, M::Halt> {
        self.0.doorway(m, p, session, ())
    }
    fn waiting(&self, m: &mut M, p: usize, pass: Self::Pass) -> Result<Self::Pass, M::Halt> {
        self.0.waiting(m, p, pass)
    }
    fn exit(&self, m: &mut M, p: usize, pass: Self::Pass) -> Result<(), M::Halt> {
        self.0.exit(m, p, pass)
    }
    fn abandon(&self, m: &mut M, p: usize, pass: Self::Pass) -> Option<Result<(), M::Halt>> {
        Some(self.0.exit(m, p, pass))
    }
}

/// Why BWBGME has no way to give up a place: who has a number of 2 or more relies on the one from
/// whom it has it to have waited for everybody whose colour is not known yet.
#[test]
fn a_place_that_is_given_up_breaks_the_invariant() {
    let subject = build::<GivesUp, _, _, _>(Size::group(3, 2), None, true).expect("it fits");
    let setting = Setting::group(3, 2).passages(2);
    let found =
        check(&*subject, &options(setting, &[Property::SessionExclusion]), &Progress::default());
    assert_eq!(found.expect("it runs").verdicts[0].holds, Some(false));
}

fn worst_in_cc(name: &str, n: usize, scheduler: &str) -> u64 {
    let entrant = Entrant::named(name).expect("it is in the registry");
    let subject =
        entrant.build(entrant.claims.problem.size(n, 1, 2), None, false).expect("it fits");
    let how = Simulation {
        passages: if scheduler == SECTION_4 { 1 } else { 4 },
        seed: 1,
        crashes: 0,
        max_steps: 50_000_000,
    };
    let outcome = run(&*subject, scheduler, &how);
    assert!(!outcome.cut_off && !outcome.stuck && outcome.violations == 0);
    outcome.meter.cc.max
}

/// Section 4's flaw in the literature: what is built on Burns and Lamport's lock pays for the
/// square of N, these do not.
#[test]
fn the_paper_is_linear_where_the_literature_is_quadratic() {
    let (few, many) = (8, 32);
    let quadratic = worst_in_cc("burns-lamport", many, SECTION_4)
        / worst_in_cc("burns-lamport", few, SECTION_4);
    assert!(quadratic >= 14, "{quadratic} times as much for four times as many");
    for name in ["group-bakery", BLACK_WHITE, "strong-group-bakery"] {
        for scheduler in ["random", "pct", "round-robin"] {
            let growth = worst_in_cc(name, many, scheduler) as f64
                / worst_in_cc(name, few, scheduler) as f64;
            assert!(
                (2.5..6.0).contains(&growth),
                "{name} {scheduler}: {growth} times as much for four times as many"
            );
        }
    }
}

#[test]
fn the_references_of_group_locks_grow_with_n() {
    for name in ["group-bakery", BLACK_WHITE, "strong-group-bakery"] {
        let sweep = Sweep {
            k: 1,
            sessions: 2,
            up_to: 32,
            schedulers: vec!["random".into()],
            passages: Passages::Each(4),
            seed: 0,
            max_steps: 50_000_000,
            workers: 2,
        };
        let entrant = Entrant::named(name).expect("it is in the registry");
        let measured = measure(entrant, &sweep, &Watch::default()).expect("it runs");
        let growth = measured.curves[0]
            .growth(|point| point.cc.max as f64)
            .expect("there are enough points");
        assert_eq!(growth.class, Class::Linear, "{name}: {growth:?}");
        // A look at a copy is free, a look at another's memory is not.
        let (cc, dsm) = measured.waiting.expect("somebody can be kept waiting").per_look();
        assert!(cc == 0.0 && dsm > 0.4, "{name}: {cc}, {dsm}");
    }
}
