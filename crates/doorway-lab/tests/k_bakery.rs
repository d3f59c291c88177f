//! Danek's k-Bakeries: the runs that the paper tells of, step by step.

use doorway_core::{Property, RegisterKind, Size};
use doorway_lab::{Choice, Entrant, Region, Subject, machine::Machine, trace::Trace};

fn subject(name: &str, n: usize, k: usize, mutant: Option<&'static str>) -> Box<dyn Subject> {
    let entrant = Entrant::named(name).expect("it is in the registry");
    entrant.build(Size::slots(n, k), mutant, false).expect("it fits")
}

/// A run that is told which process goes how far.
struct Tale<'s>(Machine<'s>);

impl<'s> Tale<'s> {
    fn of(subject: &'s dyn Subject) -> Self {
        Self(Machine::new(subject, RegisterKind::Atomic, true).expect("it runs"))
    }

    fn step(&mut self, p: usize) -> Region {
        let choice = self.0.moves(p)[0].choice;
        self.0.step(p, choice, None).expect("it can move").to
    }

    /// `p` moves until it is there; how many steps that took, or `None` if it is not there after
    /// `most`.
    fn until(&mut self, p: usize, region: Region, most: usize) -> Option<usize> {
        (1..=most).find(|_| self.step(p) == region)
    }
}

/// Section 5: p1 is through its doorway, p2 comes later and is inside, p3 and p4 stop after their
/// doorways.
fn section_5(name: &str) -> Option<usize> {
    let subject = subject(name, 4, 2, None);
    let mut tale = Tale::of(&*subject);
    for (p, region) in
        [(0, Region::Waiting), (1, Region::Critical), (2, Region::Waiting), (3, Region::Waiting)]
    {
        assert!(tale.until(p, region, 100).is_some(), "{name}: process {p} gets there");
    }
    tale.until(0, Region::Critical, 10_000)
}

/// The plain k-Bakery leaves p1 waiting however many steps it takes, that with FIFE lets it in
/// after at most: line 16, one round of lines 21 and 22 up to the one who captured it, line 23.
#[test]
fn section_5_violates_fife_without_the_shaded_lines_only() {
    assert_eq!(section_5("k-bakery"), None);
    let steps = section_5("k-bakery-fife").expect("p2 has captured p1");
    assert_eq!(steps, 3 + 3 + 1 + 3);
}

/// The same as a trace: p1 goes round alone, which is enough to show that it is not enabled.
#[test]
fn section_5_is_a_trace() {
    let script = "0 until waiting\n1 until critical\n2 until waiting\n3 until waiting";
    let replayed = |name| {
        let subject = subject(name, 4, 2, None);
        let trace = Trace::scripted(&*subject, RegisterKind::Atomic, Property::Fife, script)
            .expect("it can be followed");
        trace.replay().expect("p2 overtakes p1").alone
    };
    assert_eq!(replayed("k-bakery"), Some(0));
    assert_eq!(replayed("k-bakery-fife"), None);
}

/// A script that shows no overtaking is no counterexample.
#[test]
fn a_script_must_show_what_it_is_about() {
    let subject = subject("k-bakery", 4, 2, None);
    let trace = Trace::scripted(
        &*subject,
        RegisterKind::Atomic,
        Property::Fife,
        "0 until critical\n1 until critical",
    )
    .expect("it can be followed");
    assert!(trace.replay().is_err());
}

/// The race that line 14 prevents, as the paper tells it: q takes the smaller ticket and is slow to
/// announce it.
#[test]
fn line_14_prevents_a_race() {
    for mutant in [None, Some("without-line-14")] {
        let subject = subject("k-bakery", 2, 1, mutant);
        let mut tale = Tale::of(&*subject);
        // q = 0 has read p's ticket and is about to write its own, which is the same and goes
        // before p's by its id.
        while tale.0.moves(0)[0].access.line != 15 {
            tale.step(0);
        }
        tale.step(0);
        let early = tale.until(1, Region::Critical, 1_000).is_some();
        assert_eq!(early, mutant.is_some(), "{mutant:?}: p removes q too early");
        let both = tale.until(0, Region::Critical, 1_000).is_some() && early;
        assert_eq!(both, mutant.is_some(), "{mutant:?}: both are inside");
    }
}

/// Line 44, on the run of the mutant `without-line-44`, as far as it can be followed: the first
/// time round process 0 meets every write half done; the second time process 1 does not capture it
/// again, so it can look at the old capture in peace. (That the mutant goes on for ever is in the
/// battery.)
const VICTIM: &str = "\
0 until waiting
0*8
1*3
0 reads 0
2*3
0 reads 0
1*26             # one step more than without line 44: the test
0 reads 0
1 until remainder
2*26
0 reads 0
2 until remainder
1*3              # the second time
0 reads 0
2*3
0 reads 0
1 until critical
0 until critical # captured by 1, with the ticket of its first passage
";

#[test]
fn line_44_lets_the_victim_in() {
    let subject = subject("k-bakery-safe", 3, 2, None);
    let trace = Trace::scripted(&*subject, RegisterKind::Safe, Property::StarvationFreedom, VICTIM);
    let trace = trace.expect("process 0 gets in");
    let captured: Vec<_> =
        trace.steps.iter().filter(|step| step.process == 0 && step.line == 41).collect();
    let answers: Vec<&str> = captured.iter().map(|step| step.access.as_str()).collect();
    assert_eq!(
        answers,
        [
            "Capture2[1][0] = 0 (overlaps a write)",
            "Capture2[2][0] = 0 (overlaps a write)",
            "Capture2[1][0] = 2",
            "Capture1[1][0] = 2",
        ]
    );
}

/// Choices are not needed by any of them.
#[test]
fn nothing_is_left_to_chance() {
    for name in ["k-bakery", "k-bakery-fife", "k-bakery-safe"] {
        let subject = subject(name, 3, 2, None);
        let machine = Machine::new(&*subject, RegisterKind::Atomic, true).expect("it runs");
        assert!((0..3).all(
            |p| machine.moves(p).len() == 1 && machine.moves(p)[0].choice == Choice::Request(0)
        ));
    }
}
