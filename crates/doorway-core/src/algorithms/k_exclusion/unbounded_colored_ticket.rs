//! The Unbounded Colored Ticket Algorithm of Fischer, Lynch, Burns and Borodin: *Distributed FIFO
//! allocation of identical resources using small shared space* (YALEU/DCS/TR 421, 1985), Figures 2,
//! 4 and 5.
//!
//! Promises what the Queue Algorithm promises: k-exclusion, FIFO enabling and no k-deadlock, with
//! up to k-1 crashes, by transactions on one shared variable. Tickets come in blocks of M = 1 +
//! max(k, N - k). A ticket is its position in the block and the colour of the block. Colours grow
//! for ever, but the algorithm only asks whether two colours are the same. Figures 2 and 4 and the
//! numbers of the lines are in `tickets.rs`.

use alloc::format;

use super::{
    NumberedTicket, TicketAlgorithm, TicketSystem,
    tickets::{Blocks, Colored, Pointers},
};
use crate::{
    Algorithm, Claims, Fate, Home, Layout, Memory, Mutant, Property, Size, Ticket, Unfit, Value,
    raw,
};

/// Bits of a value; a colour has the other 48 of 64.
const VALUE_BITS: u32 = 16;

/// The last colour natively.
const LAST_COLOR: Ticket = raw::ticket((1 << (u64::BITS - VALUE_BITS)) - 1);

#[inline(always)]
fn pack(ticket: Colored<Ticket>) -> u128 {
    u128::from(raw::number(ticket.color) << VALUE_BITS | u64::from(ticket.value))
}

#[inline(always)]
fn unpack(word: u128) -> Colored<Ticket> {
    let word = word as u64;
    Colored { value: u32::from(word as u16), color: raw::ticket(word >> VALUE_BITS) }
}

/// Two tickets of 64 bits, a double word natively.
impl Value for Pointers<Ticket> {
    type Format = ();

    #[inline(always)]
    fn bits((): ()) -> u32 {
        u128::BITS
    }
    #[inline(always)]
    fn word(&self) -> u128 {
        pack(self.valid) << 64 | pack(self.issue)
    }
    #[inline(always)]
    fn from_word(word: u128, (): ()) -> Self {
        Self { issue: unpack(word), valid: unpack(word >> 64) }
    }
    fn magnitude(&self) -> u64 {
        raw::number(self.issue.color.max(self.valid.color))
    }
}

/// Figure 5, and what mutants change in it.
#[derive(Clone, Copy, Debug)]
pub struct Figure5 {
    blocks: Blocks,
    returns_old: bool,
    one_color: bool,
    never_validates: bool,
}

impl Figure5 {
    /// Returns the colour after `color`.
    ///
    /// Natively the colours come round again, since 48 bits are few enough to run out. To mistake
    /// one block for another, a process would have to sleep through exactly 2⁴⁸ blocks.
    #[inline(always)]
    fn after(self, color: Ticket) -> Ticket {
        if self.one_color {
            color
        } else if color == LAST_COLOR {
            Ticket::ZERO
        } else {
            color.succ()
        }
    }
}

impl TicketSystem for Figure5 {
    type Shared = Pointers<Ticket>;
    type Ticket = Colored<Ticket>;

    #[inline(always)]
    fn changed<M: Memory>(self, m: &M) -> Self {
        Self {
            blocks: self.blocks.changed(m),
            returns_old: m.mutant("returns-before-increment"),
            one_color: m.mutant("one-color"),
            never_validates: m.mutant("never-validates"),
        }
    }

    #[inline(always)]
    fn take_next_ticket(self, shared: &mut Self::Shared) -> Self::Ticket {
        let old = shared.issue;
        self.blocks.advance(&mut shared.issue, || self.after(old.color));
        if self.returns_old { old } else { shared.issue }
    }

    #[inline(always)]
    fn is_valid(self, shared: &Self::Shared, ticket: Self::Ticket) -> bool {
        self.blocks.is_valid(*shared, ticket)
    }

    #[inline(always)]
    fn validate_next_ticket(self, shared: &mut Self::Shared, _: Self::Ticket) {
        if !self.never_validates {
            let color = shared.valid.color;
            self.blocks.advance(&mut shared.valid, || self.after(color));
        }
    }
}

/// The Unbounded Colored Ticket Algorithm.
pub type UnboundedColoredTicket = TicketAlgorithm<Figure5>;

impl Algorithm for UnboundedColoredTicket {
    const NAME: &'static str = "unbounded-colored-ticket";

    const CLAIMS: Claims = Claims {
        figure: "Figs. 2, 4, 5",
        // It only matters whether two colours are the same and which colour is next.
        gap: |_| 2,
        mutants: MUTANTS,
        ..NumberedTicket::CLAIMS
    };

    fn new(layout: &mut Layout, size: Size) -> Result<Self, Unfit> {
        super::fits::<Self>(size)?;
        let blocks = Blocks::new(layout, size);
        if blocks.last() >> VALUE_BITS != 0 {
            return Err(Unfit(format!(
                "{} with n = {}, k = {}: values of tickets would go up to {} and have {VALUE_BITS} bits",
                Self::NAME,
                size.n,
                size.k,
                blocks.last()
            )));
        }
        let system =
            Figure5 { blocks, returns_old: false, one_color: false, never_validates: false };
        let (value, before) = blocks.place(size.k);
        let color = (0..before).fold(Ticket::ZERO, |color, _| color.succ());
        let init = Pointers {
            issue: Colored { value: 0, color: Ticket::ZERO },
            valid: Colored { value, color },
        };
        Ok(Self { system, shared: layout.register("V", Home::Nobody, init) })
    }
}

const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "strictly-less",
        change: "IS_VALID asks for T.VALUE < VALID.VALUE where the colours are the same",
        fate: Fate::breaks(Property::DeadlockFreedom, 2),
    },
    Mutant {
        name: "wrong-leader",
        change: "IS_VALID asks whether ISSUE leads VALID",
        fate: Fate::breaks(Property::KExclusion, 2),
    },
    Mutant {
        name: "leads-by-more",
        change: "LEADS asks for > where the colours are the same",
        fate: Fate::Harmless,
    },
    Mutant {
        name: "leads-or-equal",
        change: "LEADS asks for ≤ where the colours differ",
        fate: Fate::Harmless,
    },
    Mutant {
        name: "blocks-of-max",
        change: "M is max(k, N - k), and VALID starts in the place of ticket k",
        fate: Fate::Harmless,
    },
    Mutant {
        name: "blocks-too-small",
        change: "M is max(k, N - k) - 1",
        fate: Fate::breaks_at(Property::KExclusion, 3, 1),
    },
    Mutant {
        name: "one-color",
        change: "a new block has the colour of the last",
        fate: Fate::breaks(Property::KExclusion, 2),
    },
    Mutant {
        name: "returns-before-increment",
        change: "TAKE_NEXT_TICKET returns ISSUE as it was",
        fate: Fate::breaks(Property::KExclusion, 2),
    },
    Mutant {
        name: "never-validates",
        change: "VALIDATE_NEXT_TICKET leaves VALID as it is",
        fate: Fate::breaks(Property::DeadlockFreedom, 2),
    },
    Mutant {
        name: "enters-in-two-transactions",
        change: "the first look is a transaction of its own",
        fate: Fate::Harmless,
    },
];
