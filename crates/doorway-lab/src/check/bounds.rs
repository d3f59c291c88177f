//! Decides `bounded-registers` on true values.
//!
//! The search compares each written value with the bound, and finds a violation there. Two things
//! remain. What a register holds before the first step is never written. And where tickets are
//! relabelled, a register holds labels. A label is never larger than the ticket that it stands for.
//! So a label above the bound is a violation (and is replayed with true tickets), but labels below
//! the bound say nothing about the tickets.

use doorway_core::{Property, RegisterKind};

use super::{Conclude, Verdict, relabel::Labels, search::Searched};
use crate::{monitor::Oversized, trace::Trace};

impl Conclude<'_, '_> {
    /// Returns the violation by what a register holds at the start, if there is one: a run of no
    /// steps.
    pub(super) fn oversized(&self) -> Option<Verdict> {
        let oversized = Oversized::at_start(self.subject)?;
        let mut trace = Trace::of(self.subject, self.options.registers);
        trace.property = Some(Property::BoundedRegisters.name().into());
        trace.shows = oversized.to_string();
        Some(self.violated(Property::BoundedRegisters, Some(trace)))
    }

    /// Decides after a search that is complete and has found no number above the bound.
    pub(super) fn bounded<const W: usize>(&self, searched: &Searched<'_, '_, W>) -> Verdict {
        let property = Property::BoundedRegisters;
        if !self.search.rules.relabel {
            return self.holds(property);
        }
        let space = searched.space.lock().expect("no worker panics");
        // Zero and ∞ are true values whatever is relabelled.
        let labelled = space
            .registers
            .iter()
            .find(|values| values.labels.iter().any(|&all| all != Labels::default()));
        match labelled {
            None => self.holds(property),
            Some(values) => {
                let mut bound = String::from("bound the passages (--passages P)");
                if self.options.endless.is_some() {
                    bound.push_str(", those of every process");
                }
                if self.subject.attempts().is_some() && self.search.rules.retries.is_none() {
                    bound.push_str(", bound the attempts (--retries R)");
                }
                if self.options.registers == RegisterKind::Safe {
                    bound.push_str(", and take atomic or regular registers");
                }
                let name = &values.name;
                let why = format!(
                    "{name} holds tickets, and relabelled tickets say nothing of a bound; {bound}"
                );
                self.undecided(property, &why)
            }
        }
    }
}
