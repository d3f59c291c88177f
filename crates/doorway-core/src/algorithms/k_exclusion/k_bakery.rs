//! Danek's k-Bakery: *The k-Bakery: Local-spin k-Exclusion Using Non-atomic Reads and Writes* (PODC
//! 2010), Figure 2 without its shaded lines.
//!
//! Promises k-exclusion, k-FCFS, a bounded exit, and that no process starves while at most k-1
//! other processes have crashed, from reads and writes alone. Every process waits on registers of
//! its own: Θ(n) remote references per passage in both models. Tickets grow for ever and are never
//! reset. It does **not** have FIFE (section 5 of the paper); `k-bakery-fife` does.

use core::ops::ControlFlow::{Break, Continue};

use crate::{
    Algorithm, Array, Claims, Exclusion, Extended, Fate, Grid, Homes, Layout, Mutant, Primitive,
    Problem, Property, RegisterKind, Registers, Rmr, Set, Setting, Size, Ticket, Unfit, others,
};

/// Danek's k-Bakery.
#[derive(Debug)]
pub struct KBakery {
    pub(super) n: usize,
    pub(super) k: usize,
    /// `Want[p][i]` is what p tells i: its ticket, or ∞ in the remainder. It lives with i, which
    /// waits on it.
    want: Grid<Extended>,
    ticket: Array<Ticket>,
}

impl Algorithm for KBakery {
    const NAME: &'static str = "k-bakery";

    const CLAIMS: Claims = Claims {
        problem: Problem::KExclusion,
        paper: "001 Danek 2010",
        figure: "Fig. 2, unshaded",
        primitives: &[Primitive::ReadWrite],
        properties: &[
            Property::KExclusion,
            Property::KFcfs,
            Property::StarvationFreedom,
            Property::DeadlockFreedom,
            Property::BoundedExit,
        ],
        refuted: &[(Property::Fife, Setting::slots(4, 2).passages(1))],
        invariants: &[],
        registers: RegisterKind::Atomic,
        crashes: |size| size.k - 1,
        bound: None,
        gap: |_| 2,
        values: &[],
        abandons: true,
        rmr: Rmr { cc: "Θ(n)", dsm: "Θ(n)" },
        min_n: 2,
        max_n: None,
        mutants: MUTANTS,
    };

    fn new(layout: &mut Layout, size: Size) -> Result<Self, Unfit> {
        super::fits::<Self>(size)?;
        Ok(Self {
            n: size.n,
            k: size.k,
            want: layout.grid("Want", size.n, size.n, Homes::Column, Extended::INFINITY),
            ticket: layout.array("Ticket", size.n, Homes::Column, Ticket::ZERO),
        })
    }
}

impl KBakery {
    /// Lines 14, 16 and 25: tells all other processes the same.
    #[inline(always)]
    fn tell<M: Registers>(&self, m: &mut M, p: usize, what: Extended) -> Result<(), M::Halt> {
        m.each(others(p, self.n), |m, i| m.write(self.want.at(p, i), what))
    }

    /// Lines 14-15: chooses a ticket. `last` is the ticket of the previous passage.
    #[inline(always)]
    pub(super) fn choose<M: Registers>(
        &self,
        m: &mut M,
        p: usize,
        last: Ticket,
    ) -> Result<Ticket, M::Halt> {
        if !m.drops(14) {
            m.line(14);
            let old = if m.mutant("line-14-writes-zero") { Ticket::ZERO } else { last };
            self.tell(m, p, Extended(old))?;
        }
        m.line(15);
        let own = if m.mutant("own-ticket-not-counted") { Ticket::ZERO } else { last };
        let max =
            m.fold(others(p, self.n), own, |m, max, i| Ok(max.max(m.read(self.ticket.at(i))?)))?;
        let mine =
            if m.mutant("ticket-not-larger") && max != Ticket::ZERO { max } else { max.succ() };
        m.write(self.ticket.at(p), mine)?;
        Ok(mine)
    }

    /// Line 16: announces the ticket.
    #[inline(always)]
    pub(super) fn announce<M: Registers>(
        &self,
        m: &mut M,
        p: usize,
        mine: Ticket,
    ) -> Result<(), M::Halt> {
        if m.drops(16) {
            return Ok(());
        }
        m.line(16);
        self.tell(m, p, Extended(mine))
    }

    /// Line 19: returns whether there are too many processes before this one.
    #[inline(always)]
    pub(super) fn too_many<M: Registers>(&self, m: &M, before: &Set) -> bool {
        if m.mutant("one-more") { before.len() > self.k } else { before.len() >= self.k }
    }

    /// Lines 20-21: returns `before` without the processes that `p` comes before.
    #[inline(always)]
    pub(super) fn thin_out<M: Registers>(
        &self,
        m: &mut M,
        p: usize,
        mine: Ticket,
        before: Set,
    ) -> Result<Set, M::Halt> {
        m.line(21);
        let ids = !m.mutant("compares-without-ids");
        let equals = m.mutant("waits-for-equals");
        m.fold(before.iter(), before, |m, before, i| {
            let after = m.test(self.want.at(i, p), |Extended(want)| {
                if equals {
                    mine < want
                } else if ids {
                    (mine, p) < (want, i)
                } else {
                    mine <= want
                }
            })?;
            Ok(if after { before.without(i) } else { before })
        })
    }

    /// Line 25: tells all other processes that `p` has left.
    #[inline(always)]
    pub(super) fn withdraw<M: Registers>(&self, m: &mut M, p: usize) -> Result<(), M::Halt> {
        m.line(25);
        let what =
            if m.mutant("leaves-its-zero") { Extended(Ticket::ZERO) } else { Extended::INFINITY };
        self.tell(m, p, what)
    }
}

impl<M: Registers> Exclusion<M> for KBakery {
    type Request = ();
    /// `Ticket[p]`
    type Pass = Ticket;
    /// `Ticket[p]`, which is never reset: line 14 of the next passage announces it.
    type Keep = Ticket;

    fn keep(&self, _: usize) -> Ticket {
        Ticket::ZERO
    }

    #[inline]
    fn doorway(&self, m: &mut M, p: usize, (): (), last: Ticket) -> Result<Ticket, M::Halt> {
        self.choose(m, p, last)
    }

    #[inline]
    fn waiting(&self, m: &mut M, p: usize, mine: Ticket) -> Result<Ticket, M::Halt> {
        self.announce(m, p, mine)?;
        let all = Set::others(p, self.n); // line 18
        m.repeat(all.clone(), |m, before| {
            if !self.too_many(m, &before) {
                return Ok(Break(())); // line 19
            }
            let start = if m.mutant("starts-over") { all.clone() } else { before };
            self.thin_out(m, p, mine, start).map(Continue)
        })?;
        Ok(mine)
    }

    #[inline]
    fn exit(&self, m: &mut M, p: usize, mine: Ticket) -> Result<Ticket, M::Halt> {
        if m.mutant("waits-to-leave") {
            m.each(others(p, self.n), |m, i| {
                m.wait(self.want.at(i, p), |Extended(want)| want > mine)
            })?;
        }
        self.withdraw(m, p)?;
        Ok(mine)
    }

    /// Tells the other processes the same as `exit`: no process waits for `p` any more.
    fn abandon(&self, m: &mut M, p: usize, mine: Ticket) -> Option<Result<Ticket, M::Halt>> {
        Some(self.withdraw(m, p).map(|()| mine))
    }
}

const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "without-line-14",
        change: "the doorway is not announced by the old ticket",
        fate: Fate::breaks(Property::KExclusion, 2),
    },
    Mutant {
        name: "line-14-writes-zero",
        change: "line 14 announces 0 instead of the old ticket",
        fate: Fate::breaks_at(Property::StarvationFreedom, 3, 2),
    },
    Mutant {
        name: "without-line-16",
        change: "the new ticket is not announced: others go on seeing the old one",
        fate: Fate::breaks(Property::DeadlockFreedom, 2),
    },
    Mutant {
        name: "own-ticket-not-counted",
        change: "line 15 takes the largest ticket of the others only",
        fate: Fate::Harmless,
    },
    Mutant {
        name: "ticket-not-larger",
        change: "line 15 takes the largest ticket itself, not one more",
        fate: Fate::breaks(Property::KExclusion, 2),
    },
    Mutant {
        name: "one-more",
        change: "line 19 asks for > k instead of ≥ k",
        fate: Fate::breaks(Property::KExclusion, 2),
    },
    Mutant {
        name: "compares-without-ids",
        change: "line 21 lets equal tickets pass one another",
        fate: Fate::breaks(Property::KExclusion, 2),
    },
    Mutant {
        name: "waits-for-equals",
        change: "line 21 lets equal tickets wait for one another",
        fate: Fate::breaks(Property::DeadlockFreedom, 2),
    },
    Mutant {
        name: "starts-over",
        change: "each round begins with everybody in the predecessor set again",
        fate: Fate::Harmless,
    },
    Mutant {
        name: "leaves-its-zero",
        change: "line 25 writes 0 instead of ∞",
        fate: Fate::breaks(Property::DeadlockFreedom, 2),
    },
    Mutant {
        name: "waits-to-leave",
        change: "the exit section waits until everybody inside came later",
        fate: Fate::breaks(Property::BoundedExit, 2),
    },
];
