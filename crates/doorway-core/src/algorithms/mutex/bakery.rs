//! Lamport's Bakery, as Danek prints it: *The k-Bakery: Local-spin k-Exclusion Using Non-atomic
//! Reads and Writes* (PODC 2010), Figure 1.
//!
//! Promises mutual exclusion, FCFS, starvation freedom and a bounded exit, from reads and writes
//! alone, even on safe registers. Tickets grow without bound. It does not spin locally in the DSM
//! model, and a single crash blocks all processes.

use crate::{
    Algorithm, Array, Claims, Exclusion, Fate, Homes, Layout, Mutant, Primitive, Problem, Property,
    RegisterKind, Registers, Rmr, Size, Ticket, Unfit, others,
};

/// Lamport's Bakery.
#[derive(Debug)]
pub struct Bakery {
    n: usize,
    doorway: Array<bool>,
    ticket: Array<Ticket>,
}

impl Algorithm for Bakery {
    const NAME: &'static str = "bakery";

    const CLAIMS: Claims = Claims {
        problem: Problem::Mutex,
        paper: "001 Danek 2010, after Lamport 1974",
        figure: "Fig. 1",
        primitives: &[Primitive::ReadWrite],
        properties: &[
            Property::MutualExclusion,
            Property::Fcfs,
            Property::StarvationFreedom,
            Property::DeadlockFreedom,
            Property::BoundedExit,
        ],
        refuted: &[],
        invariants: &[],
        registers: RegisterKind::Safe,
        crashes: |_| 0,
        bound: None,
        gap: |_| 2,
        values: &[],
        abandons: true,
        rmr: Rmr { cc: "Θ(n)", dsm: "unbounded" },
        min_n: 1,
        max_n: None,
        mutants: MUTANTS,
    };

    fn new(layout: &mut Layout, size: Size) -> Result<Self, Unfit> {
        super::fits(Self::NAME, size)?;
        Ok(Self {
            n: size.n,
            doorway: layout.array("Doorway", size.n, Homes::Column, false),
            ticket: layout.array("Ticket", size.n, Homes::Column, Ticket::ZERO),
        })
    }
}

impl<M: Registers> Exclusion<M> for Bakery {
    type Request = ();
    /// `Ticket[p]`
    type Pass = Ticket;
    type Keep = ();

    fn keep(&self, _: usize) {}

    #[inline]
    fn doorway(&self, m: &mut M, p: usize, (): (), (): ()) -> Result<Ticket, M::Halt> {
        if !m.drops(3) {
            m.line(3);
            m.write(self.doorway.at(p), true)?;
        }
        m.line(4);
        let max = m.fold(others(p, self.n), Ticket::ZERO, |m, max, i| {
            Ok(max.max(m.read(self.ticket.at(i))?))
        })?;
        let mine =
            if m.mutant("ticket-not-larger") && max != Ticket::ZERO { max } else { max.succ() };
        m.write(self.ticket.at(p), mine)?;
        if !m.drops(5) {
            m.line(5);
            m.write(self.doorway.at(p), false)?;
        }
        Ok(mine)
    }

    #[inline]
    fn waiting(&self, m: &mut M, p: usize, mine: Ticket) -> Result<Ticket, M::Halt> {
        let ids = !m.mutant("compares-without-ids");
        let both = m.mutant("waits-for-equals");
        m.each(others(p, self.n), |m, i| {
            if !m.drops(7) && !m.mutant("swaps-lines-7-and-8") {
                m.line(7);
                m.wait(self.doorway.at(i), |choosing| !choosing)?;
            }
            m.line(8);
            m.wait(self.ticket.at(i), |ticket| {
                if ticket == Ticket::ZERO {
                    return true;
                }
                if both {
                    ticket > mine
                } else if ids {
                    (ticket, i) >= (mine, p)
                } else {
                    ticket >= mine
                }
            })?;
            if m.mutant("swaps-lines-7-and-8") {
                m.line(7);
                m.wait(self.doorway.at(i), |choosing| !choosing)?;
            }
            Ok(())
        })?;
        Ok(mine)
    }

    #[inline]
    fn exit(&self, m: &mut M, p: usize, _: Ticket) -> Result<(), M::Halt> {
        if m.mutant("waits-to-leave") {
            m.each(others(p, self.n), |m, i| m.wait(self.doorway.at(i), |choosing| !choosing))?;
        }
        m.line(10);
        m.write(self.ticket.at(p), Ticket::ZERO)
    }

    fn abandon(&self, m: &mut M, p: usize, pass: Ticket) -> Option<Result<(), M::Halt>> {
        Some(self.exit(m, p, pass))
    }
}

const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "without-line-3",
        change: "the doorway is not announced",
        fate: Fate::breaks(Property::MutualExclusion, 2),
    },
    Mutant {
        name: "without-line-5",
        change: "the doorway stays announced for ever",
        fate: Fate::breaks(Property::DeadlockFreedom, 2),
    },
    Mutant {
        name: "without-line-7",
        change: "nobody waits for a doorway in progress",
        fate: Fate::breaks(Property::MutualExclusion, 2),
    },
    Mutant {
        name: "swaps-lines-7-and-8",
        change: "the ticket is compared before the doorway is waited for",
        fate: Fate::breaks(Property::MutualExclusion, 2),
    },
    Mutant {
        name: "compares-without-ids",
        change: "equal tickets do not wait for one another",
        fate: Fate::breaks(Property::MutualExclusion, 2),
    },
    Mutant {
        name: "waits-for-equals",
        change: "line 8 asks for > instead of ≥ with ids: equal tickets wait for one another",
        fate: Fate::breaks(Property::DeadlockFreedom, 2),
    },
    Mutant {
        name: "waits-to-leave",
        change: "the exit section waits until nobody is in a doorway",
        fate: Fate::breaks(Property::BoundedExit, 2),
    },
    Mutant {
        name: "ticket-not-larger",
        change: "line 4 takes the largest ticket itself, not one more",
        fate: Fate::breaks(Property::Fcfs, 2),
    },
];
