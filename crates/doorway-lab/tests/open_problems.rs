//! What `docs/open-problems.md` says of variants: what was tried on the way from BWBGME (paper 002)
//! to FIFE and strong concurrent entry, and the shortest runs that show why it was not enough.

use std::ops::ControlFlow::{Break, Continue};

use doorway_core::{
    Algorithm, Array, Claims, Exclusion, Home, Homes, Layout, Property, Register, Registers,
    Session, Size, Unfit,
    algorithms::group::{GroupBlackWhiteBakery, Token},
    algorithms::mutex::Color,
    others,
};
use doorway_lab::{Entrant, Limits, Most, Options, Progress, Subject, Verdict, build, check, most};

use Property::{Fife, SessionExclusion, StrongConcurrentEntry};

const NONE: Token = Token { session: Session::NONE, color: None, number: 0 };

/// BWBGME in one register per process, with a scan at the end of the doorway: a process waits for
/// those choices only that it finds there. A choice is marked with the number of the passage modulo
/// `MARKS`. Numbers and ties are the paper's.
struct Scanning<const MARKS: u32> {
    n: usize,
    global_color: Register<Color>,
    token: Array<Token>,
}

impl<const MARKS: u32> Algorithm for Scanning<MARKS> {
    const NAME: &'static str = "scanning";
    const CLAIMS: Claims =
        Claims { invariants: &[], mutants: &[], ..GroupBlackWhiteBakery::CLAIMS };

    fn new(layout: &mut Layout, size: Size) -> Result<Self, Unfit> {
        Ok(Self {
            n: size.n,
            global_color: layout.register("GlobalColor", Home::Nobody, Color::Black),
            token: layout.array("Token", size.n, Homes::Column, NONE),
        })
    }
}

impl<M: Registers, const MARKS: u32> Exclusion<M> for Scanning<MARKS> {
    type Request = Session;
    type Pass = (Token, Vec<Token>, u32);
    type Keep = u32;

    fn keep(&self, _: usize) -> u32 {
        0
    }

    fn doorway(
        &self,
        m: &mut M,
        p: usize,
        mysession: Session,
        mark: u32,
    ) -> Result<Self::Pass, M::Halt> {
        m.write(self.token.at(p), Token { session: mysession, color: None, number: mark })?;
        let color = Some(m.read(self.global_color)?);
        let number = m.fold(others(p, self.n), 1, |m, number: u32, j| {
            let other = m.read(self.token.at(j))?;
            let counts = other.color == color && !mysession.admits(other.session);
            Ok(if counts { number.max(other.number + 1) } else { number })
        })?;
        let mine = Token { session: mysession, color, number };
        m.write(self.token.at(p), mine)?;
        let found =
            m.fold(others(p, self.n), vec![NONE; self.n], |m, mut found: Vec<Token>, j| {
                let other = m.read(self.token.at(j))?;
                if other.color.is_none() && !mysession.admits(other.session) {
                    found[j] = other;
                }
                Ok(found)
            })?;
        Ok((mine, found, mark))
    }

    fn waiting(
        &self,
        m: &mut M,
        p: usize,
        (mine, found, mark): Self::Pass,
    ) -> Result<Self::Pass, M::Halt> {
        m.each(others(p, self.n), |m, j| {
            if found[j] != NONE {
                m.wait(self.token.at(j), |token| token != found[j])?;
            }
            m.repeat((), |m, ()| {
                let token = m.read(self.token.at(j))?;
                let passes = if mine.session.admits(token.session) || token.color.is_none() {
                    true
                } else if token.color == mine.color {
                    (mine.number, p) < (token.number, j)
                } else {
                    m.test(self.global_color, |color| Some(color) != mine.color)?
                };
                Ok(if passes { Break(()) } else { Continue(()) })
            })
        })?;
        Ok((mine, Vec::new(), mark))
    }

    fn exit(&self, m: &mut M, p: usize, (mine, _, mark): Self::Pass) -> Result<u32, M::Halt> {
        let opposite = if mine.color == Some(Color::Black) { Color::White } else { Color::Black };
        if mine.number != 1 {
            let found = m.find(others(p, self.n), |m, j| {
                m.test(self.token.at(j), |t| t.color == Some(opposite))
            })?;
            if found.is_none() {
                m.write(self.global_color, opposite)?;
            }
        }
        m.write(self.token.at(p), NONE)?;
        Ok((mark + 1) % MARKS)
    }
}

fn scanning<const MARKS: u32>(n: usize) -> Box<dyn Subject> {
    build::<Scanning<MARKS>, _, _, _>(Size::group(n, 2), None, false).expect("it fits")
}

fn of(name: &str, mutant: Option<&'static str>, n: usize) -> Box<dyn Subject> {
    let entrant = Entrant::named(name).expect("it is in the registry");
    entrant.build(Size::group(n, 2), mutant, false).expect("it fits")
}

fn decide(subject: &dyn Subject, property: Property, passages: Option<u32>) -> Verdict {
    let options = Options {
        passages,
        registers: doorway_core::RegisterKind::Atomic,
        properties: vec![property],
        max_states: 4_000_000,
        workers: 2,
        ..Options::default()
    };
    let report = check(subject, &options, &Progress::default()).expect("it runs");
    report.verdicts.into_iter().next().expect("one was asked for")
}

fn holds(subject: &dyn Subject, property: Property, passages: Option<u32>) {
    let verdict = decide(subject, property, passages);
    assert_eq!(verdict.holds, Some(true), "{property}: {}", verdict.scope);
}

/// How many steps the shortest counterexample has.
fn steps(subject: &dyn Subject, property: Property, passages: Option<u32>) -> usize {
    let verdict = decide(subject, property, passages);
    assert_eq!(verdict.holds, Some(false), "{property}: {}", verdict.scope);
    verdict.trace.expect("a violation has a trace").steps.len()
}

/// BWBGME, for comparison: whoever is seen in its doorway is waited for.
#[test]
fn bwbgme_waits_for_whoever_comes_later() {
    let bwbgme = of("group-black-white-bakery", None, 2);
    let found = [StrongConcurrentEntry, Fife].map(|property| steps(&*bwbgme, property, None));
    assert_eq!(found, [10, 15]);
}

/// Variant (a): all choices look alike, and a later one is taken for the one that was found.
#[test]
fn a_scan_alone_takes_a_later_choice_for_an_earlier_one() {
    holds(&*scanning::<1>(2), SessionExclusion, None);
    let found =
        [StrongConcurrentEntry, Fife].map(|property| steps(&*scanning::<1>(2), property, None));
    assert_eq!(found, [14, 18]);
}

/// Variant (b): so many passages later the mark comes round again.
#[test]
fn marks_that_count_passages_come_round() {
    holds(&*scanning::<2>(2), SessionExclusion, None);
    let marks = [scanning::<2>(2), scanning::<3>(2), scanning::<4>(2)];
    assert_eq!(
        marks.each_ref().map(|marked| steps(&**marked, StrongConcurrentEntry, None)),
        [21, 28, 35]
    );
    assert_eq!(marks.each_ref().map(|marked| steps(&**marked, Fife, None)), [18, 18, 18]);
    // It takes one passage more than there are marks.
    holds(&*scanning::<3>(2), StrongConcurrentEntry, Some(3));
}

/// The marks are not all: with the numbers and ties of the paper one who came later goes ahead of
/// an earlier one, even where no mark has come round.
#[test]
fn numbers_and_ties_of_the_paper_break_fife() {
    assert_eq!(steps(&*scanning::<4>(3), Fife, Some(1)), 21);
    let strong = |mutant| of("strong-group-black-white-bakery", Some(mutant), 3);
    assert_eq!(steps(&*strong("ties-by-id"), Fife, Some(1)), 21);
}

/// What one bit does that alternates from choice to choice of the same session.
#[test]
fn marks_of_a_session_do_not_come_round() {
    let strong = |mutant| of("strong-group-black-white-bakery", mutant, 2);
    for property in [StrongConcurrentEntry, Fife] {
        holds(&*strong(None), property, None);
    }
    assert_eq!(steps(&*strong(Some("one-mark")), StrongConcurrentEntry, None), 14);
    assert_eq!(steps(&*strong(Some("marks-of-any-session")), StrongConcurrentEntry, None), 21);
}

/// With unbounded tokens: what the two halves of the strong group bakery are for.
#[test]
fn unbounded_tokens_need_the_bound_and_the_scan() {
    let strong = |mutant, n| of("strong-group-bakery", Some(mutant), n);
    let bound = [StrongConcurrentEntry, Fife]
        .map(|property| steps(&*strong("without-bound", 2), property, None));
    assert_eq!(bound, [19, 23]);
    assert_eq!(steps(&*strong("without-scan", 3), Fife, Some(1)), 23);
    holds(&*strong("without-scan", 2), StrongConcurrentEntry, None);
}

/// The references stay bounded: so many with coherent caches, over all runs of two processes.
#[test]
fn a_passage_makes_a_bounded_number_of_references() {
    let limits = Limits { passages: None, max_states: 4_000_000, workers: 2 };
    let cc = |name| most(&*of(name, None, 2), &limits, &Progress::default()).expect("it runs").cc;
    let found = ["group-black-white-bakery", "strong-group-black-white-bakery"].map(cc);
    assert_eq!(found, [Most::Exactly(16), Most::Exactly(10)]);
}
