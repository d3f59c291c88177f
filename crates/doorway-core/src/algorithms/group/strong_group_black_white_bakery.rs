//! A bounded group bakery with FIFE and strong concurrent entry.
//!
//! It answers what section 8 of He, Gopalakrishnan and Gafni: *Group mutual exclusion in linear
//! time and space* (TCS 2018) leaves open. It is not a published algorithm: `docs/open-problems.md`
//! says how it comes about. Lines are those of
//! `docs/algorithms/strong-group-black-white-bakery.md`.
//!
//! Promises what BWBGME promises, including numbers of at most n + 1. In addition, no process waits
//! for a choice that began after its own doorway. Four rules achieve this:
//!
//! - At the end of its doorway a process p notes which choices are in progress (line 6). A process
//!   that begins its choice later sees p's token.
//! - A choice is marked with a bit that alternates from one choice *for the same session* to the
//!   next (line 1). A waiting process keeps the next choice that conflicts with it from entering.
//!   So two marks distinguish all choices that the waiting process can meet.
//! - A number is not smaller than the numbers of the same session (line 4). So a later process does
//!   not get ahead of an earlier process.
//! - Of equal numbers, the number of the smaller session comes first (line 9). So all processes of
//!   a session wait for the same processes.

use alloc::{vec, vec::Vec};
use core::ops::ControlFlow::{Break, Continue};

use super::{GroupBlackWhiteBakery, ONE_FLIP, Token, opposite_color};
use crate::{
    Algorithm, Array, Claims, Exclusion, Fate, Home, Homes, Invariant, Layout, Mutant, Property,
    Register, Registers, Session, Setting, Size, Unfit, algorithms::mutex::Color, others,
};

/// A bounded group bakery with FIFE and strong concurrent entry.
#[derive(Debug)]
pub struct StrongGroupBlackWhiteBakery {
    n: usize,
    global_color: Register<Color>,
    /// A token with a session but no colour is a choice in progress. Its number is the mark.
    token: Array<Token>,
}

impl Algorithm for StrongGroupBlackWhiteBakery {
    const NAME: &'static str = "strong-group-black-white-bakery";

    const CLAIMS: Claims = Claims {
        paper: "after 002 He, Gopalakrishnan, Gafni 2018, section 8",
        figure: "docs/open-problems.md",
        properties: &[
            Property::SessionExclusion,
            Property::Fcfs,
            Property::Fife,
            Property::ConcurrentEntry,
            Property::StrongConcurrentEntry,
            Property::StarvationFreedom,
            Property::DeadlockFreedom,
            Property::BoundedExit,
            Property::BoundedRegisters,
            Property::Invariant(ONE_FLIP),
        ],
        refuted: &[],
        invariants: &[Invariant {
            name: ONE_FLIP,
            says: "GlobalColor is not flipped twice from line 3 to the end of a passage",
            register: "GlobalColor",
            line: 3,
            most: 1,
        }],
        mutants: MUTANTS,
        ..GroupBlackWhiteBakery::CLAIMS
    };

    fn new(layout: &mut Layout, size: Size) -> Result<Self, Unfit> {
        super::fits::<Self>(size)?;
        Ok(Self {
            n: size.n,
            global_color: layout.register("GlobalColor", Home::Nobody, Color::Black),
            token: layout.array("Token", size.n, Homes::Column, Token::NONE),
        })
    }
}

/// A requested session, and the mark of the choice for it.
type Marked = (Session, bool);

/// The session requested last, and the last different session before it. No waiting process can
/// have met an earlier choice.
type Marks = (Marked, Marked);

/// Line 1: requests a session, with the mark that the last choice for it did not have.
#[inline(always)]
fn mark(session: Session, (last, before): Marks) -> Marks {
    if session == last.0 {
        ((session, !last.1), before)
    } else {
        ((session, session == before.0 && !before.1), last)
    }
}

/// Returns whether `token` is a choice in progress for a session that conflicts with `mine`.
#[inline(always)]
fn is_choice(token: Token, mine: Session) -> bool {
    token.color.is_none() && !mine.admits(token.session)
}

impl StrongGroupBlackWhiteBakery {
    /// Lines 8 and 9 for one j: waits until j does not come before p.
    #[inline(always)]
    fn wait_for<M: Registers>(
        &self,
        m: &mut M,
        (p, mine): (usize, Token),
        j: usize,
        found: Token,
    ) -> Result<(), M::Halt> {
        if m.mutant("without-scan") {
            m.line(8);
            m.wait(self.token.at(j), |token| !is_choice(token, mine.session))?;
        } else if found != Token::NONE && !m.drops(8) {
            m.line(8);
            m.wait(self.token.at(j), |token| token != found)?;
        }
        m.line(9);
        let (ids, minds_choices) = (m.mutant("ties-by-id"), m.mutant("line-9-minds-choices"));
        m.repeat((), |m, ()| {
            let token = m.read(self.token.at(j))?;
            let passes =
                if mine.session.admits(token.session) || token.color.is_none() && !minds_choices {
                    true
                } else if token.color == mine.color {
                    let tie = if ids { p < j } else { mine.session < token.session };
                    mine.number < token.number || mine.number == token.number && tie
                } else {
                    m.test(self.global_color, |color| Some(color) != mine.color)?
                };
            Ok(if passes { Break(()) } else { Continue(()) })
        })
    }

    /// Lines 11-13: flips `GlobalColor` if lines 11 and 12 allow it.
    #[inline(always)]
    fn flip<M: Registers>(&self, m: &mut M, p: usize, mine: Token) -> Result<(), M::Halt> {
        if mine.number == 1 && !m.drops(11) {
            return Ok(());
        }
        if !m.drops(12) {
            m.line(12);
            if opposite_color(m, &self.token, (p, self.n), mine)? {
                return Ok(());
            }
        }
        let Some(color) = mine.color else { return Ok(()) };
        m.line(13);
        m.write(self.global_color, color.opposite())
    }
}

impl<M: Registers> Exclusion<M> for StrongGroupBlackWhiteBakery {
    type Request = Session;
    /// `Token[p]`, for each process the choice for which p has to wait, and the marks of p.
    type Pass = (Token, Vec<Token>, Marks);
    type Keep = Marks;

    fn keep(&self, _: usize) -> Marks {
        Marks::default()
    }

    #[inline]
    fn doorway(
        &self,
        m: &mut M,
        p: usize,
        mysession: Session,
        marks: Marks,
    ) -> Result<Self::Pass, M::Halt> {
        let marks = if m.mutant("one-mark") {
            Marks::default()
        } else if m.mutant("marks-of-any-session") {
            mark(Session::NONE, marks)
        } else {
            mark(mysession, marks)
        };
        if !m.drops(2) {
            m.line(2);
            let choice = Token { session: mysession, color: None, number: u32::from(marks.0.1) };
            m.write(self.token.at(p), choice)?;
        }
        m.line(3);
        let mycolor = m.read(self.global_color)?;
        m.line(4);
        let (forgets, counts) = (m.mutant("forgets-own-session"), m.mutant("counts-own-session"));
        let number = m.fold(others(p, self.n), 1, |m, number: u32, j| {
            let other = m.read(self.token.at(j))?;
            let least = match mysession.admits(other.session) {
                true => other.number * u32::from(!forgets) + u32::from(counts),
                false => other.number + 1,
            };
            Ok(if other.color == Some(mycolor) { number.max(least) } else { number })
        })?;
        let mine = Token { session: mysession, color: Some(mycolor), number };
        m.line(5);
        m.write(self.token.at(p), mine)?;
        let none = vec![Token::NONE; self.n];
        if m.mutant("without-scan") {
            return Ok((mine, none, marks));
        }
        m.line(6);
        let found = m.fold(others(p, self.n), none, |m, mut found: Vec<Token>, j| {
            let other = m.read(self.token.at(j))?;
            if is_choice(other, mysession) {
                found[j] = other;
            }
            Ok(found)
        })?;
        Ok((mine, found, marks))
    }

    #[inline]
    fn waiting(
        &self,
        m: &mut M,
        p: usize,
        (mine, found, marks): Self::Pass,
    ) -> Result<Self::Pass, M::Halt> {
        m.each(others(p, self.n), |m, j| self.wait_for(m, (p, mine), j, found[j]))?;
        Ok((mine, Vec::new(), marks))
    }

    #[inline]
    fn exit(&self, m: &mut M, p: usize, (mine, _, marks): Self::Pass) -> Result<Marks, M::Halt> {
        let swaps = m.mutant("resets-before-flip");
        if !swaps && !m.mutant("never-flips") {
            self.flip(m, p, mine)?;
        }
        m.line(14);
        m.write(self.token.at(p), Token::NONE)?;
        if swaps {
            self.flip(m, p, mine)?;
        }
        Ok(marks)
    }
}

const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "one-mark",
        change: "line 1 is left out: a later choice looks like the one that was found",
        fate: Fate::breaks_in(Property::StrongConcurrentEntry, Setting::group(2, 2)),
    },
    Mutant {
        name: "marks-of-any-session",
        change: "the mark alternates from choice to choice, whatever the session",
        fate: Fate::breaks_in(Property::StrongConcurrentEntry, Setting::group(2, 2)),
    },
    Mutant {
        name: "without-line-2",
        change: "the choice is not announced",
        fate: Fate::breaks_in(Property::SessionExclusion, Setting::group(2, 2)),
    },
    Mutant {
        name: "forgets-own-session",
        change: "line 4 minds the numbers of other sessions only, as BWBGME does",
        fate: Fate::Scripted {
            property: Property::Fife,
            setting: Setting::group(3, 2).passages(2),
            script: "\
2 asks 2
2 until waiting
1 asks 1
1 past 3
1*2             # reads (2, Black, 1): will have number 2
2 until remainder
2 asks 2
2 past 3
2*2             # will have number 1
1 until waiting # finds the choice of 2
0 asks 1
0 past 5        # has number 1
0
2               # has number 1
0*3             # enters
",
        },
    },
    Mutant {
        name: "counts-own-session",
        change: "a number is larger than those of one's own session, too",
        fate: Fate::Scripted {
            property: Property::Invariant(ONE_FLIP),
            setting: Setting::group(3, 2).passages(2),
            script: "\
0 asks 1
0 past 3        # reads Black
1 asks 1
1 until waiting
2 asks 1
2 until waiting # has number 2
1 until remainder
2 until remainder
1 asks 1
1 until waiting
2 asks 1
2 until critical
2*3             # flips a second time
",
        },
    },
    Mutant {
        name: "without-scan",
        change: "line 6 is left out: every choice is waited for, whenever it was announced",
        fate: Fate::breaks_in(Property::StrongConcurrentEntry, Setting::group(2, 2)),
    },
    Mutant {
        name: "without-line-8",
        change: "nobody waits for a choice in progress",
        fate: Fate::breaks_in(Property::SessionExclusion, Setting::group(2, 2)),
    },
    Mutant {
        name: "line-9-minds-choices",
        change: "a choice that began later is waited for like a token of the other colour, as in BWBGME",
        fate: Fate::breaks_in(Property::StrongConcurrentEntry, Setting::group(2, 2)),
    },
    Mutant {
        name: "ties-by-id",
        change: "of equal numbers, that of the smaller id comes first",
        fate: Fate::breaks_in(Property::Fife, Setting::group(3, 2).passages(1)),
    },
    Mutant {
        name: "without-line-11",
        change: "who has number 1 flips GlobalColor, too",
        fate: Fate::breaks_in(Property::Invariant(ONE_FLIP), Setting::group(3, 2).passages(1)),
    },
    Mutant {
        name: "without-line-12",
        change: "GlobalColor is flipped whoever else is active",
        fate: Fate::Harmless,
    },
    Mutant {
        name: "resets-before-flip",
        change: "line 14 comes before lines 11 to 13",
        fate: Fate::Scripted {
            property: Property::Invariant(ONE_FLIP),
            setting: Setting::group(3, 2).passages(2),
            script: "\
1 asks 2
1 until waiting
0 asks 1
0 until waiting # has number 2
2 asks 1
2 until waiting # likewise
1 until remainder
0 past 14       # looks gone
2 until remainder
1 asks 2
1 until waiting
2 asks 1
2 until waiting
1 until remainder
2 until critical
2*4             # flips a second time
",
        },
    },
    Mutant {
        name: "never-flips",
        change: "GlobalColor is never changed: a bakery with bounded hopes",
        fate: Fate::breaks_in(Property::BoundedRegisters, Setting::group(2, 2)),
    },
];
