//! States of a run, compared up to tickets.

use doorway_core::{Ticket, raw};

use crate::{item::Whole, machine::Machine, subject::LocalState};

/// A state with its tickets replaced by their ranks, and the gaps between them.
pub(super) struct Snapshot {
    values: Vec<Whole>,
    locals: Vec<LocalState>,
    gaps: Vec<u64>,
}

impl Snapshot {
    pub(super) fn of(machine: &Machine<'_>) -> Self {
        let tickets = tickets(machine);
        let rank = |ticket: Ticket| match tickets.binary_search(&ticket) {
            Ok(rank) => raw::ticket(rank as u64 + 1),
            Err(_) => ticket, // zero and ∞
        };
        let cells = machine.registers();
        Self {
            values: (0..cells).map(|r| Whole(machine.value(r).relabelled(&mut { rank }))).collect(),
            locals: (0..machine.processes())
                .map(|p| machine.local(p).relabel(&mut { rank }))
                .collect(),
            gaps: [Ticket::ZERO]
                .iter()
                .chain(&tickets)
                .zip(&tickets)
                .map(|(a, b)| raw::number(*b) - raw::number(*a))
                .collect(),
        }
    }

    /// Returns whether there is any ticket but zero and ∞.
    pub(super) fn has_tickets(&self) -> bool {
        !self.gaps.is_empty()
    }

    /// Returns whether the states are the same up to tickets.
    ///
    /// Gaps below `wide` must be the same; all other gaps must be as wide or wider.
    pub(super) fn continues(&self, other: &Self, wide: u64) -> bool {
        let gaps = self
            .gaps
            .iter()
            .zip(&other.gaps)
            .all(|(now, then)| now == then || (*then >= wide && now >= then));
        self.values == other.values
            && self.locals == other.locals
            && self.gaps.len() == other.gaps.len()
            && gaps
    }
}

/// Returns all tickets of a run, in order.
pub(crate) fn tickets(machine: &Machine<'_>) -> Vec<Ticket> {
    let mut all = Vec::new();
    let mut note = |ticket: Ticket| {
        if ticket != Ticket::ZERO && ticket != Ticket::INFINITY {
            all.push(ticket);
        }
        ticket
    };
    for r in 0..machine.registers() {
        let _ = machine.value(r).relabelled(&mut note);
    }
    (0..machine.processes()).for_each(|p| machine.local(p).tickets(&mut note));
    all.sort_unstable();
    all.dedup();
    all
}
