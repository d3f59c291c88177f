//! Danek's k-Bakery with FIFE: *The k-Bakery: Local-spin k-Exclusion Using Non-atomic Reads and
//! Writes* (PODC 2010), Figure 2 with its shaded lines 17, 22, 23 and the test of `captured` in
//! line 19.
//!
//! Promises what `k-bakery` promises, and FIFE: the process that enters first captures all
//! processes that came before it, and a captured process goes in. This holds on atomic registers
//! only. On safe registers k-exclusion fails; `k-bakery-safe` repairs that.

use core::ops::ControlFlow::{Break, Continue};

use super::KBakery;
use crate::{
    Algorithm, Claims, Exclusion, Fate, Grid, Homes, Layout, Mutant, Property, Registers, Set,
    Setting, Size, Ticket, Unfit, others,
};

/// Danek's k-Bakery with FIFE.
#[derive(Debug)]
pub struct KBakeryFife {
    /// The unshaded lines.
    bakery: KBakery,
    /// `Capture[p][i]` is the ticket with which p captures i. It lives with i, which looks at it.
    capture: Grid<Ticket>,
}

impl Algorithm for KBakeryFife {
    const NAME: &'static str = "k-bakery-fife";

    const CLAIMS: Claims = Claims {
        figure: "Fig. 2",
        properties: &[
            Property::KExclusion,
            Property::KFcfs,
            Property::Fife,
            Property::StarvationFreedom,
            Property::DeadlockFreedom,
            Property::BoundedExit,
        ],
        refuted: &[],
        mutants: MUTANTS,
        ..KBakery::CLAIMS
    };

    fn new(layout: &mut Layout, size: Size) -> Result<Self, Unfit> {
        super::fits::<Self>(size)?;
        Ok(Self {
            bakery: KBakery::new(layout, size)?,
            capture: layout.grid("Capture", size.n, size.n, Homes::Column, Ticket::ZERO),
        })
    }
}

impl KBakeryFife {
    /// Line 22: returns whether a process with a larger ticket has captured `p`.
    ///
    /// The paper looks at the rest, too, when it has found such a process. That changes only the
    /// cost.
    #[inline(always)]
    fn captured<M: Registers>(&self, m: &mut M, p: usize, mine: Ticket) -> Result<bool, M::Halt> {
        if m.drops(22) {
            return Ok(false);
        }
        m.line(22);
        let equals = m.mutant("captured-by-equals");
        let ever = m.mutant("captured-by-anybody");
        let found = m.find(others(p, self.bakery.n), |m, i| {
            m.test(self.capture.at(i, p), |by| {
                if equals {
                    mine <= by
                } else if ever {
                    by != Ticket::ZERO
                } else {
                    mine < by
                }
            })
        })?;
        Ok(found.is_some())
    }

    /// Line 23: captures every process with a smaller ticket.
    #[inline(always)]
    fn capture<M: Registers>(&self, m: &mut M, p: usize, mine: Ticket) -> Result<(), M::Halt> {
        m.line(23);
        let by = if m.mutant("captures-with-more") { mine.succ() } else { mine };
        m.each(others(p, self.bakery.n), |m, i| m.write(self.capture.at(p, i), by))
    }
}

impl<M: Registers> Exclusion<M> for KBakeryFife {
    type Request = ();
    /// `Ticket[p]`
    type Pass = Ticket;
    /// `Ticket[p]`
    type Keep = Ticket;

    fn keep(&self, _: usize) -> Ticket {
        Ticket::ZERO
    }

    #[inline]
    fn doorway(&self, m: &mut M, p: usize, (): (), last: Ticket) -> Result<Ticket, M::Halt> {
        let mine = self.bakery.choose(m, p, last)?;
        if m.mutant("captures-in-the-doorway") {
            self.capture(m, p, mine)?;
        }
        Ok(mine)
    }

    #[inline]
    fn waiting(&self, m: &mut M, p: usize, mine: Ticket) -> Result<Ticket, M::Halt> {
        self.bakery.announce(m, p, mine)?;
        m.repeat(Set::others(p, self.bakery.n), |m, before| {
            if !self.bakery.too_many(m, &before) {
                return Ok(Break(())); // line 19
            }
            let before = self.bakery.thin_out(m, p, mine, before)?;
            if m.mutant("captured-only-if-nobody-left") && !before.is_empty() {
                return Ok(Continue(before));
            }
            Ok(if self.captured(m, p, mine)? { Break(()) } else { Continue(before) })
        })?;
        if !m.drops(23) && !m.mutant("captures-on-leaving") {
            self.capture(m, p, mine)?;
        }
        Ok(mine)
    }

    #[inline]
    fn exit(&self, m: &mut M, p: usize, mine: Ticket) -> Result<Ticket, M::Halt> {
        if m.mutant("captures-on-leaving") {
            self.capture(m, p, mine)?;
        }
        self.bakery.withdraw(m, p)?;
        Ok(mine)
    }

    /// As in the plain k-Bakery: a process that gives up has captured no process.
    fn abandon(&self, m: &mut M, p: usize, mine: Ticket) -> Option<Result<Ticket, M::Halt>> {
        Some(self.bakery.withdraw(m, p).map(|()| mine))
    }
}

/// Section 5 of the paper: process 0 (the paper's p1) never learns that it may go in.
const SECTION_5: Fate = Fate::Scripted {
    property: Property::Fife,
    setting: Setting::slots(4, 2),
    script: "\
0 until waiting
1 until critical # has come later and is in
2 until waiting  # announces 0, then chooses
3 until waiting  # likewise; neither moves again
",
};

const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "without-line-14",
        change: "the doorway is not announced by the old ticket",
        fate: Fate::breaks(Property::KExclusion, 2),
    },
    Mutant {
        name: "one-more",
        change: "line 19 asks for > k instead of ≥ k",
        fate: Fate::breaks(Property::KExclusion, 2),
    },
    Mutant {
        name: "captured-by-equals",
        change: "line 22 asks for ≤ instead of <",
        fate: Fate::breaks(Property::KExclusion, 2),
    },
    Mutant {
        name: "captured-by-anybody",
        change: "line 22 takes every capture there ever was",
        fate: Fate::breaks(Property::KExclusion, 2),
    },
    Mutant {
        name: "captures-with-more",
        change: "line 23 captures with a larger ticket than one's own",
        fate: Fate::breaks(Property::KExclusion, 2),
    },
    Mutant {
        name: "captures-in-the-doorway",
        change: "line 23 comes right after line 15",
        fate: Fate::breaks_at(Property::KExclusion, 3, 1),
    },
    Mutant {
        name: "without-line-22",
        change: "nobody looks whether it is captured",
        fate: SECTION_5,
    },
    Mutant { name: "without-line-23", change: "nobody is captured", fate: SECTION_5 },
    Mutant {
        name: "captures-on-leaving",
        change: "line 23 comes after the critical section",
        fate: SECTION_5,
    },
    Mutant {
        name: "captured-only-if-nobody-left",
        change: "line 22 is skipped while anybody is in the predecessor set",
        fate: SECTION_5,
    },
];
