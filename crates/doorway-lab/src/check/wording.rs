//! Puts verdicts into words: what was found, and how far that reaches.

use doorway_core::Property;

use super::{
    Verdict, attempts,
    decide::{Conclude, safety_event},
    graph::Graph,
    kills,
    search::Searched,
};
use crate::trace::Trace;

impl Conclude<'_, '_> {
    /// Returns how far a verdict reaches, in words.
    fn reach(&self) -> String {
        let size = self.subject.size();
        let mut words = size.to_string();
        words.push_str(&format!(", {}", self.options.passages_in_words()));
        words.push_str(&attempts(self.subject, self.search.rules.retries));
        words.push_str(&format!(", {} registers", self.options.registers));
        words.push_str(&kills(self.subject));
        if self.search.rules.relabel {
            words.push_str(", tickets relabelled");
        }
        words
    }

    /// Returns in words all that distinguishes this search from other searches. `more` and `last`
    /// are the parts that are not known here.
    pub(super) fn asked(&self, more: &str, last: &str) -> String {
        let subject = self.subject;
        let variant = subject.variant().map_or(String::new(), |variant| format!(" ({variant})"));
        let mutant = subject.mutant().map_or(String::new(), |mutant| format!(", mutant {mutant}"));
        let mut words = format!("{}{variant}{mutant}, {}{more}", subject.name(), self.reach());
        // The search stops at a violation of these properties.
        let safe = |property: &&Property| safety_event(**property) != 0;
        let mut watched: Vec<&str> =
            self.options.properties.iter().filter(safe).map(|property| property.name()).collect();
        watched.sort_unstable();
        watched.dedup();
        if !watched.is_empty() {
            words.push_str(&format!(", {}", watched.join(", ")));
        }
        words.push_str(last);
        words
    }

    fn scope(&self, property: Property) -> String {
        let mut words = format!("every reachable state: {}", self.reach());
        if matches!(property, Property::StarvationFreedom | Property::DeadlockFreedom) {
            words.push_str(&match self.options.crashes {
                0 => ", no crashes".into(),
                crashes => format!(", up to {crashes} crashed"),
            });
            match (self.options.passages, self.options.endless) {
                (None, _) => {}
                (Some(_), None) => {
                    words.push_str("; with passages bounded, this only says that nobody gets stuck")
                }
                (Some(_), Some(p)) => {
                    words.push_str(&format!("; nobody gets stuck, whatever process {p} does"))
                }
            }
            if self.search.rules.retries.is_some() {
                words.push_str(
                    ", and of runs in which somebody would try more often it says nothing",
                );
            }
        }
        words.push_str(self.caveat(property));
        words
    }

    /// Returns what has to be said of a verdict whether or not the property holds.
    fn caveat(&self, property: Property) -> &'static str {
        match property {
            Property::FifoEnabling | Property::KDeadlockAvoidance
                if self.options.passages.is_some() =>
            {
                "; with passages bounded, who has made its own stays in its remainder for ever and is not enabled, \
                 which says nothing of runs with more passages"
            }
            _ => "",
        }
    }

    pub(super) fn holds(&self, property: Property) -> Verdict {
        Verdict { property, holds: Some(true), scope: self.scope(property), trace: None }
    }

    pub(super) fn undecided(&self, property: Property, why: &str) -> Verdict {
        Verdict {
            property,
            holds: None,
            scope: format!("not decided, {why}: {}", self.reach()),
            trace: None,
        }
    }

    /// Returns an undecided verdict that more memory, or a search of more states, may decide.
    pub(super) fn unfinished(&self, property: Property, why: &str) -> Verdict {
        self.unfinished.set(true);
        self.undecided(property, why)
    }

    /// Returns the verdict on a property if there is no graph of a finished search to decide it.
    pub(super) fn without_graph<const W: usize>(
        &self,
        searched: &Searched<'_, '_, W>,
        property: Property,
    ) -> Verdict {
        match Graph::can_hold(searched) {
            true => self.unfinished(
                property,
                "too many states for a graph of them in memory: raise --max-memory, or try a smaller size",
            ),
            false => self.undecided(property, "too many states for a graph of them"),
        }
    }

    /// Returns a violation, if its run could be made with true values.
    pub(super) fn violated(&self, property: Property, trace: Option<Trace>) -> Verdict {
        match trace {
            Some(trace) => Verdict {
                property,
                holds: Some(false),
                scope: format!(
                    "a run of {} steps, replayed: {}{}",
                    trace.steps.len(),
                    self.reach(),
                    self.caveat(property)
                ),
                trace: Some(trace),
            },
            None => self.undecided(property, "the relabelled counterexample has no true run"),
        }
    }
}
