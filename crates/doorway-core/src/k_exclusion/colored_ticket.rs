//! The Colored Ticket Algorithm of Fischer, Lynch, Burns and Borodin: *Distributed FIFO allocation of identical resources
//! using small shared space* (YALEU/DCS/TR 421, 1985), Figures 2, 4, 6 and 7, with `QUANT[0]` = k at the start where Figure 7
//! prints 0 (`docs/errata.md`).
//!
//! Promises what the Queue Algorithm promises: k-exclusion, FIFO enabling and no k-deadlock, with up to k-1 crashes, by
//! transactions on one shared variable of O(N²) values for a fixed k. Tickets come in blocks of M = 1 + max(k, N - k), and
//! k + 1 colours are enough for the blocks: `QUANT` counts the valid tickets of each, and a new block takes a colour that has
//! none. Figures 2 and 4 and the numbers of the lines are in `tickets.rs`.

use alloc::format;
use core::fmt;

use super::{
    TicketAlgorithm, TicketSystem,
    tickets::{Blocks, Colored, Pointers},
};
use crate::{
    Algorithm, Claims, Fate, Home, Layout, Memory, Mutant, Primitive, Problem, Property, RegisterKind, Rmr, Size,
    Unfit, Value, plain_local,
};

/// Where in the word everything is, from the lowest bit on: `ISSUE.VALUE`, `ISSUE.COLOR`, `VALID.VALUE`, `VALID.COLOR`, and
/// 2k bits of `QUANT`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Format {
    /// Bits of a value.
    value: u8,
    /// Bits of a colour.
    color: u8,
    k: u8,
}

impl Format {
    /// Values up to `last`, `k` + 1 colours.
    fn new(last: u32, k: u8) -> Self {
        Self { value: (u32::BITS - last.leading_zeros()) as u8, color: (u8::BITS - k.leading_zeros()) as u8, k }
    }

    #[inline(always)]
    fn ticket(self) -> u32 {
        u32::from(self.value) + u32::from(self.color)
    }

    #[inline(always)]
    fn pack(self, ticket: Colored<u8>) -> u128 {
        u128::from(ticket.color) << self.value | u128::from(ticket.value)
    }

    #[inline(always)]
    fn unpack(self, word: u128) -> Colored<u8> {
        let low = |word: u128, bits: u8| word as u64 & ((1 << bits) - 1);
        Colored { value: low(word, self.value) as u32, color: low(word >> self.value, self.color) as u8 }
    }
}

/// `QUANT` in unary: for each colour as many ones as it has valid tickets, then a zero. There are k + 1 colours and k valid
/// tickets, and what follows the last one are zeros anyway: 2k bits, of which k are ones, hence the paper's C(2k, k) values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Quant(u128);

impl Quant {
    /// The largest k whose `QUANT` fits with one ticket to spare.
    const MOST: usize = 63;

    /// Where the ones of a colour begin.
    #[inline(always)]
    fn begin(self, color: u8) -> u32 {
        (0..color).fold(0, |at, _| at + (self.0 >> at).trailing_ones() + 1)
    }

    /// `QUANT(c)`
    #[inline(always)]
    fn get(self, color: u8) -> u32 {
        (self.0 >> self.begin(color)).trailing_ones()
    }

    /// `QUANT(c) := QUANT(c) + 1`. Not beyond k in all: only mutants would, and the word has no place for it.
    #[inline(always)]
    fn increment(&mut self, color: u8, k: u8) {
        if self.0.count_ones() < u32::from(k) {
            let at = self.begin(color);
            let below = (1 << at) - 1;
            self.0 = (self.0 & !below) << 1 | 1 << at | self.0 & below;
        }
    }

    /// `QUANT(c) := QUANT(c) - 1`. Not below 0: only mutants would.
    #[inline(always)]
    fn decrement(&mut self, color: u8) {
        let at = self.begin(color);
        let below = (1 << at) - 1;
        if self.0 >> at & 1 == 1 {
            self.0 = self.0 >> 1 & !below | self.0 & below;
        }
    }

    /// `NEW_COLOR`, Figure 6: the first colour that has no valid ticket.
    #[inline(always)]
    fn new_color(self) -> u8 {
        let (mut color, mut rest) = (0, self.0);
        while rest & 1 == 1 {
            rest >>= rest.trailing_ones() + 1;
            color += 1;
        }
        color
    }
}

/// What the shared variable holds: the pointers, and how many tickets of each colour are valid.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Counted {
    format: Format,
    pointers: Pointers<u8>,
    quant: Quant,
}

plain_local!(Counted);

/// As the paper writes it: `ISSUE (2, 0), VALID (1, 1), QUANT [1, 1, 0]`.
impl fmt::Debug for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, QUANT ", self.pointers)?;
        f.debug_list().entries((0..=self.format.k).map(|color| self.quant.get(color))).finish()
    }
}

impl Value for Counted {
    type Format = Format;

    #[inline(always)]
    fn bits(format: Format) -> u32 {
        2 * format.ticket() + 2 * u32::from(format.k)
    }
    #[inline(always)]
    fn word(&self) -> u128 {
        let (format, Pointers { issue, valid }) = (self.format, self.pointers);
        (self.quant.0 << format.ticket() | format.pack(valid)) << format.ticket() | format.pack(issue)
    }
    #[inline(always)]
    fn from_word(word: u128, format: Format) -> Self {
        let rest = word >> format.ticket();
        let pointers = Pointers { issue: format.unpack(word), valid: format.unpack(rest) };
        Self { format, pointers, quant: Quant(rest >> format.ticket()) }
    }
    /// Of all the numbers inside.
    fn magnitude(&self) -> u64 {
        let tickets = [self.pointers.issue, self.pointers.valid];
        let numbers = tickets.into_iter().flat_map(|ticket| [ticket.value, u32::from(ticket.color)]);
        numbers.chain((0..=self.format.k).map(|color| self.quant.get(color))).max().map_or(0, u64::from)
    }
}

/// Figures 6 and 7, and what mutants change in them.
#[derive(Clone, Copy, Debug)]
pub struct Figure7 {
    blocks: Blocks,
    k: u8,
    k_colors: bool,
    from_above: bool,
    issue_swapped: bool,
    valid_swapped: bool,
    returns_old: bool,
    never_validates: bool,
    never_counts: bool,
    counts_old_color: bool,
    discards_first: bool,
}

impl Figure7 {
    #[inline(always)]
    fn new_color(self, quant: Quant) -> u8 {
        if self.from_above {
            return (0..=self.k).rev().find(|&color| quant.get(color) == 0).unwrap_or(self.k);
        }
        // With k + 1 colours there is one; where there are fewer, the last has to do.
        quant.new_color().min(if self.k_colors { self.k - 1 } else { self.k })
    }
}

impl TicketSystem for Figure7 {
    type Shared = Counted;
    type Ticket = Colored<u8>;

    #[inline(always)]
    fn changed<M: Memory>(self, m: &M) -> Self {
        Self {
            blocks: self.blocks.changed(m),
            k: self.k,
            k_colors: m.mutant("k-colors"),
            from_above: m.mutant("new-color-from-above"),
            issue_swapped: m.mutant("swaps-branches-of-issue"),
            valid_swapped: m.mutant("swaps-branches-of-valid"),
            returns_old: m.mutant("returns-before-increment"),
            never_validates: m.mutant("never-validates"),
            never_counts: m.mutant("never-counts"),
            counts_old_color: m.mutant("counts-the-old-color"),
            discards_first: m.mutant("discards-first"),
        }
    }

    #[inline(always)]
    fn take_next_ticket(self, shared: &mut Counted) -> Colored<u8> {
        let (before, quant) = (shared.pointers, shared.quant);
        self.blocks.advance(&mut shared.pointers.issue, || {
            if self.blocks.issue_leads(before) != self.issue_swapped {
                self.new_color(quant)
            } else {
                before.valid.color
            }
        });
        if self.returns_old { before.issue } else { shared.pointers.issue }
    }

    #[inline(always)]
    fn is_valid(self, shared: &Counted, ticket: Colored<u8>) -> bool {
        self.blocks.is_valid(shared.pointers, ticket)
    }

    #[inline(always)]
    fn validate_next_ticket(self, shared: &mut Counted, ticket: Colored<u8>) {
        let before = shared.pointers;
        if self.discards_first {
            shared.quant.decrement(ticket.color);
        }
        let quant = shared.quant;
        if !self.never_validates {
            self.blocks.advance(&mut shared.pointers.valid, || {
                if self.blocks.valid_leads(before) != self.valid_swapped {
                    self.new_color(quant)
                } else {
                    before.issue.color
                }
            });
        }
        // The figure increments first. Both are in one transaction, and no colour is looked for in between.
        if !self.never_counts {
            if !self.discards_first {
                shared.quant.decrement(ticket.color);
            }
            let pointers = if self.counts_old_color { before } else { shared.pointers };
            shared.quant.increment(pointers.valid.color, self.k);
        }
    }
}

/// The Colored Ticket Algorithm.
pub type ColoredTicket = TicketAlgorithm<Figure7>;

impl Algorithm for ColoredTicket {
    const NAME: &'static str = "colored-ticket";

    const CLAIMS: Claims = Claims {
        problem: Problem::KExclusion,
        paper: "003 Fischer, Lynch, Burns, Borodin 1985",
        figure: "Figs. 2, 4, 6, 7",
        primitives: &[Primitive::Transaction],
        properties: &[
            Property::KExclusion,
            Property::KFcfs,
            Property::Fife,
            Property::FifoEnabling,
            Property::KDeadlockAvoidance,
            Property::StarvationFreedom,
            Property::DeadlockFreedom,
            Property::BoundedExit,
            Property::BoundedRegisters,
        ],
        refuted: &[],
        registers: RegisterKind::Atomic,
        crashes: |size| size.k - 1,
        // M - 1: values go so far; colours and counts only up to k.
        bound: Some(|size| size.k.max(size.n - size.k) as u64),
        gap: |_| 2,
        abandons: false,
        rmr: Rmr { cc: "unbounded", dsm: "unbounded" },
        min_n: 1,
        mutants: MUTANTS,
    };

    fn new(layout: &mut Layout, size: Size) -> Result<Self, Unfit> {
        super::fits(Self::NAME, size)?;
        if size.k > Quant::MOST {
            return Err(Unfit(format!(
                "{} with n = {}, k = {}: k is at most {}, as QUANT takes 2k bits of 128; try numbered-ticket",
                Self::NAME,
                size.n,
                size.k,
                Quant::MOST
            )));
        }
        let (blocks, k) = (Blocks::new(layout, size), size.k as u8);
        let system = Figure7 {
            blocks,
            k,
            k_colors: false,
            from_above: false,
            issue_swapped: false,
            valid_swapped: false,
            returns_old: false,
            never_validates: false,
            never_counts: false,
            counts_old_color: false,
            discards_first: false,
        };
        let at = |i| {
            let (value, before) = blocks.place(i);
            Colored { value, color: before as u8 }
        };
        let mut quant = Quant(0);
        // Tickets 1 to k are valid. Figure 7 prints 0 for all.
        if !layout.mutant("as-printed") {
            (1..=size.k).for_each(|i| quant.increment(at(i).color, k));
        }
        let format = Format::new(blocks.last(), k);
        let init = Counted { format, pointers: Pointers { issue: at(0), valid: at(size.k) }, quant };
        Ok(Self { system, shared: layout.formatted("V", Home::Nobody, init, format) })
    }
}

const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "as-printed",
        change: "Figure 7 starts with QUANT = 0 for every colour",
        fate: Fate::breaks(Property::KExclusion, 2),
    },
    Mutant {
        name: "k-colors",
        change: "there are k colours instead of k + 1; the last is taken if none is free",
        fate: Fate::breaks(Property::KExclusion, 2),
    },
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
        fate: Fate::breaks(Property::KExclusion, 2),
    },
    Mutant { name: "leads-or-equal", change: "LEADS asks for ≤ where the colours differ", fate: Fate::Harmless },
    Mutant {
        name: "blocks-of-max",
        change: "M is max(k, N - k), and VALID starts in the place of ticket k",
        fate: Fate::Harmless,
    },
    Mutant {
        name: "footnote-2",
        change: "M is max(k, N - k) unless k = N - k; at a tie VALID leads if k > N - k, else ISSUE",
        fate: Fate::Harmless,
    },
    Mutant {
        name: "ties-to-valid",
        change: "M is max(k, N - k); at a tie, equal values of different colours, VALID leads",
        fate: Fate::breaks(Property::KExclusion, 2),
    },
    Mutant {
        name: "ties-to-issue",
        change: "M is max(k, N - k); at a tie, equal values of different colours, ISSUE leads",
        fate: Fate::breaks(Property::DeadlockFreedom, 2),
    },
    Mutant {
        name: "blocks-too-small",
        change: "M is max(k, N - k) - 1",
        fate: Fate::breaks_at(Property::KExclusion, 3, 1),
    },
    Mutant {
        name: "swaps-branches-of-issue",
        change: "ISSUE takes a new colour when it does not lead, and VALID's when it does",
        fate: Fate::breaks(Property::KExclusion, 2),
    },
    Mutant {
        name: "swaps-branches-of-valid",
        change: "VALID takes a new colour when it does not lead, and ISSUE's when it does",
        fate: Fate::breaks(Property::KExclusion, 2),
    },
    Mutant { name: "never-counts", change: "QUANT stays as it is", fate: Fate::breaks(Property::KExclusion, 2) },
    Mutant {
        name: "counts-the-old-color",
        change: "QUANT is updated before VALID moves on",
        fate: Fate::breaks(Property::KExclusion, 2),
    },
    Mutant {
        name: "discards-first",
        change: "the old ticket is discarded before a colour is looked for",
        fate: Fate::breaks(Property::KExclusion, 2),
    },
    Mutant { name: "new-color-from-above", change: "NEW_COLOR looks from k downwards", fate: Fate::Harmless },
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
