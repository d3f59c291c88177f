//! The Numbered Ticket Algorithm of Fischer, Lynch, Burns and Borodin: *Distributed FIFO allocation
//! of identical resources using small shared space* (YALEU/DCS/TR 421, 1985), Figures 2 and 3.
//!
//! Promises what the Queue Algorithm promises: k-exclusion, FIFO enabling and no k-deadlock, with
//! up to k-1 crashes, by transactions on one shared variable. That variable holds two numbers,
//! which grow for ever: `ISSUE`, the ticket issued last, and `VALID`, the ticket validated last.
//! Figure 2 and the numbers of its lines are in `tickets.rs`.

use core::fmt;

use super::{Queue, TicketAlgorithm, TicketSystem};
use crate::{
    Algorithm, Claims, Fate, Home, Layout, Local, Memory, Mutant, Property, Relabel, Size, Ticket,
    Unfit, Value, raw,
};

/// The shared variable: two numbers of 64 bits each, a double word natively.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Numbers {
    /// `ISSUE`: the ticket issued last.
    pub issue: Ticket,
    /// `VALID`: the ticket validated last.
    pub valid: Ticket,
}

impl fmt::Debug for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ISSUE {:?}, VALID {:?}", self.issue, self.valid)
    }
}

impl Local for Numbers {
    fn relabel(&self, f: Relabel<'_>) -> Self {
        Self { issue: f(self.issue), valid: f(self.valid) }
    }
}

impl Value for Numbers {
    type Format = ();

    #[inline(always)]
    fn bits((): ()) -> u32 {
        u128::BITS
    }
    #[inline(always)]
    fn word(&self) -> u128 {
        u128::from(raw::number(self.valid)) << 64 | u128::from(raw::number(self.issue))
    }
    #[inline(always)]
    fn from_word(word: u128, (): ()) -> Self {
        Self { issue: raw::ticket(word as u64), valid: raw::ticket((word >> 64) as u64) }
    }
    fn magnitude(&self) -> u64 {
        raw::number(self.issue.max(self.valid))
    }
}

/// Figure 3, and what mutants change in it.
#[derive(Clone, Copy, Default, Debug)]
pub struct Figure3 {
    returns_old: bool,
    strictly_less: bool,
    never_validates: bool,
    validates_two: bool,
}

impl TicketSystem for Figure3 {
    type Shared = Numbers;
    type Ticket = Ticket;

    #[inline(always)]
    fn changed<M: Memory>(self, m: &M) -> Self {
        Self {
            returns_old: m.mutant("returns-before-increment"),
            strictly_less: m.mutant("strictly-less"),
            never_validates: m.mutant("never-validates"),
            validates_two: m.mutant("validates-two"),
        }
    }

    #[inline(always)]
    fn take_next_ticket(self, shared: &mut Numbers) -> Ticket {
        let old = shared.issue;
        shared.issue = shared.issue.succ();
        if self.returns_old { old } else { shared.issue }
    }

    #[inline(always)]
    fn is_valid(self, shared: &Numbers, ticket: Ticket) -> bool {
        if self.strictly_less { ticket < shared.valid } else { ticket <= shared.valid }
    }

    #[inline(always)]
    fn validate_next_ticket(self, shared: &mut Numbers, _: Ticket) {
        if self.never_validates {
            return;
        }
        shared.valid = shared.valid.succ();
        if self.validates_two {
            shared.valid = shared.valid.succ();
        }
    }
}

/// The Numbered Ticket Algorithm.
pub type NumberedTicket = TicketAlgorithm<Figure3>;

impl Algorithm for NumberedTicket {
    const NAME: &'static str = "numbered-ticket";

    const CLAIMS: Claims = Claims {
        figure: "Figs. 2, 3",
        properties: &[
            Property::KExclusion,
            Property::KFcfs,
            Property::Fife,
            Property::FifoEnabling,
            Property::KDeadlockAvoidance,
            Property::StarvationFreedom,
            Property::DeadlockFreedom,
            Property::BoundedExit,
        ],
        bound: None,
        // ISSUE and VALID are at most max(k, n - k) apart. Their exact distance is kept, and
        // nothing else matters. A mutant takes two successors at once.
        gap: |size| 1 + size.k.max(size.n - size.k).max(2) as u32,
        abandons: false,
        mutants: MUTANTS,
        ..Queue::CLAIMS
    };

    fn new(layout: &mut Layout, size: Size) -> Result<Self, Unfit> {
        super::fits::<Self>(size)?;
        let valid = (0..size.k).fold(Ticket::ZERO, |ticket, _| ticket.succ());
        let init = Numbers { issue: Ticket::ZERO, valid };
        Ok(Self { system: Figure3::default(), shared: layout.register("V", Home::Nobody, init) })
    }
}

const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "returns-before-increment",
        change: "TAKE_NEXT_TICKET returns ISSUE as it was",
        fate: Fate::breaks(Property::KExclusion, 2),
    },
    Mutant {
        name: "strictly-less",
        change: "IS_VALID asks for T < VALID",
        fate: Fate::breaks(Property::DeadlockFreedom, 2),
    },
    Mutant {
        name: "never-validates",
        change: "VALIDATE_NEXT_TICKET leaves VALID as it is",
        fate: Fate::breaks(Property::DeadlockFreedom, 2),
    },
    Mutant {
        name: "validates-two",
        change: "VALIDATE_NEXT_TICKET makes two tickets valid",
        fate: Fate::breaks(Property::KExclusion, 2),
    },
    Mutant {
        name: "enters-in-two-transactions",
        change: "the first look is a transaction of its own",
        fate: Fate::Harmless,
    },
];
