//! The Colored Ticket Algorithm of Fischer, Lynch, Burns and Borodin: *Distributed FIFO allocation
//! of identical resources using small shared space* (YALEU/DCS/TR 421, 1985), Figures 2, 4, 6 and
//! 7, with `QUANT[0]` = k at the start where Figure 7 prints 0 (`docs/errata.md`).
//!
//! Promises what the Queue Algorithm promises: k-exclusion, FIFO enabling and no k-deadlock, with
//! up to k-1 crashes, by transactions on one shared variable of O(N²) values for a fixed k. Tickets
//! come in blocks of M = 1 + max(k, N - k), and k + 1 colours are enough for the blocks. `QUANT`
//! counts the valid tickets of each colour, and a new block takes a colour that has none. Figures 2
//! and 4 and the numbers of the lines are in `tickets.rs`.

use alloc::format;

use super::{
    Queue, TicketAlgorithm, TicketSystem,
    quant::{Counted, Format, Quant},
    tickets::{Blocks, Colored, Pointers},
};
use crate::{
    Algorithm, Claims, Fate, Formula, Home, Layout, Memory, Mutant, Property, Size, Unfit,
};

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
        // With k + 1 colours one is free. With fewer colours, the last colour is taken if none is.
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
        // The figure increments first. Both changes are in one transaction, and no colour is looked
        // for in between.
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
        figure: "Figs. 2, 4, 6, 7",
        // M - 1, the largest value. Colours and counts go only up to k.
        bound: Some(|size| size.k.max(size.n - size.k) as u64),
        values: VALUES,
        abandons: false,
        mutants: MUTANTS,
        ..Queue::CLAIMS
    };

    fn new(layout: &mut Layout, size: Size) -> Result<Self, Unfit> {
        super::fits::<Self>(size)?;
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
        let mut quant = Quant::NONE;
        // Tickets 1 to k are valid. Figure 7 prints 0 for all.
        if !layout.mutant("as-printed") {
            (1..=size.k).for_each(|i| quant.increment(at(i).color, k));
        }
        let format = Format::new(blocks.last(), k);
        let init =
            Counted { format, pointers: Pointers { issue: at(0), valid: at(size.k) }, quant };
        Ok(Self { system, shared: layout.formatted("V", Home::Nobody, init, format) })
    }
}

/// The paper's bounds: two upper bounds, neither of which is reached, and a lower bound for every
/// solution.
const VALUES: &[Formula] = &[
    Formula {
        name: "at least C(N-k, 2), section 5",
        of: |size| choose((size.n - size.k) as u64, 2),
    },
    Formula {
        name: "at most (k+1)·C(2k,k)·M², Theorem 4.1",
        of: |size| {
            let (k, m) = (size.k as u64, block(size) as u64);
            choose(2 * k, k)?.checked_mul(k + 1)?.checked_mul(m * m)
        },
    },
    Formula {
        name: "at most C(2k,k)·((k+1)·M)², section 2.4",
        of: |size| {
            let (k, m) = (size.k as u64, block(size) as u64);
            choose(2 * k, k)?.checked_mul(((k + 1) * m).checked_pow(2)?)
        },
    },
];

/// Returns the binomial coefficient n over k.
fn choose(n: u64, k: u64) -> Option<u64> {
    (0..k).try_fold(1u64, |product, i| Some(product.checked_mul(n.saturating_sub(i))? / (i + 1)))
}

/// Returns M = 1 + max(k, N-k).
fn block(size: Size) -> usize {
    1 + size.k.max(size.n - size.k)
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
    Mutant {
        name: "never-counts",
        change: "QUANT stays as it is",
        fate: Fate::breaks(Property::KExclusion, 2),
    },
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
    Mutant {
        name: "new-color-from-above",
        change: "NEW_COLOR looks from k downwards",
        fate: Fate::Harmless,
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

#[cfg(test)]
mod tests {
    use alloc::{collections::BTreeSet, vec::Vec};

    use super::*;
    use crate::{Value, native::Instance};

    fn bits(n: usize, k: usize) -> u32 {
        let built = Layout::build(n, None, |layout| ColoredTicket::new(layout, Size::slots(n, k)));
        built.map_or(u32::MAX, |(_, layout)| layout.cell(0).bits)
    }

    /// The largest k that fits in a word, and in a double word: the table in the algorithm's page.
    #[test]
    fn what_fits_in_a_word() {
        let most = |n, word| (1..n).take_while(|&k| bits(n, k) <= word).last().unwrap_or(0);
        for (n, one, two) in [
            (2, 1, 1),
            (8, 7, 7),
            (16, 15, 15),
            (24, 22, 23),
            (32, 22, 31),
            (48, 22, 47),
            (64, 21, 52),
            (128, 20, 51),
            (1024, 17, 48),
            (4096, 15, 46),
        ] {
            assert_eq!((most(n, 64), most(n, 128)), (one, two), "n = {n}");
        }
    }

    /// One slot more than fits is refused, and the error says for which size.
    #[test]
    fn what_does_not_fit_is_refused() {
        assert_eq!((bits(64, 52), bits(64, 53)), (128, 130));
        assert!(Instance::<ColoredTicket>::new(Size::slots(64, 52)).is_ok());
        let unfit = Instance::<ColoredTicket>::new(Size::slots(64, 53)).err().map(|unfit| unfit.0);
        let expected = "colored-ticket with n = 64, k = 53: V takes 130 bits, \
                        and no machine word has more than 128; the lab can run it";
        assert_eq!(unfit.as_deref(), Some(expected));
        let unfit = Instance::<ColoredTicket>::new(Size::slots(100, 64)).err().map(|unfit| unfit.0);
        let expected = "colored-ticket with n = 100, k = 64: k is at most 63, as QUANT takes 2k bits of 128; \
                        try numbered-ticket";
        assert_eq!(unfit.as_deref(), Some(expected));
    }

    /// Returns how many values the variable takes, by the code above.
    ///
    /// Processes are not told apart: only the tickets that they hold matter. The lab counts the
    /// same with all processes told apart, as far as it gets.
    fn reached(n: usize, k: usize) -> usize {
        let built = Layout::build(n, None, |layout| {
            let algorithm = ColoredTicket::new(layout, Size::slots(n, k))?;
            Ok::<_, Unfit>((algorithm.system, algorithm.shared.format()))
        });
        let ((system, format), layout) = built.expect("it fits");
        let start = Counted::from_word(layout.cell(0).init.word(), format);
        let mut seen = BTreeSet::from([(start.word(), Vec::new())]);
        let mut todo: Vec<_> = seen.iter().cloned().collect();
        while let Some((word, held)) = todo.pop() {
            let shared = Counted::from_word(word, format);
            let enters = (held.len() < n).then(|| {
                let mut shared = shared;
                let ticket = system.take_next_ticket(&mut shared);
                let mut held = held.clone();
                held.push((ticket.color, ticket.value));
                held.sort_unstable();
                (shared.word(), held)
            });
            let leaves = (0..held.len()).filter_map(|i| {
                let (color, value) = held[i];
                let (mut shared, ticket) = (shared, Colored { value, color });
                system.is_valid(&shared, ticket).then(|| {
                    system.validate_next_ticket(&mut shared, ticket);
                    let mut held = held.clone();
                    held.remove(i);
                    (shared.word(), held)
                })
            });
            let new: Vec<_> =
                enters.into_iter().chain(leaves).filter(|next| seen.insert(next.clone())).collect();
            todo.extend(new);
        }
        seen.iter().map(|(word, _)| word).collect::<BTreeSet<_>>().len()
    }

    #[test]
    fn values_of_the_variable() {
        for (n, k, values) in [
            (2, 1, 12),
            (3, 1, 24),
            (3, 2, 93),
            (4, 1, 40),
            (4, 2, 123),
            (4, 3, 540),
            (5, 1, 60),
            (5, 2, 204),
            (5, 3, 760),
            (5, 4, 2_775),
            (6, 1, 84),
            (6, 2, 306),
            (6, 3, 960),
        ] {
            assert_eq!(reached(n, k), values, "n = {n}, k = {k}");
        }
    }
}
