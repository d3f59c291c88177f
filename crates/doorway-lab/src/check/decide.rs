//! From searches to verdicts. First it is found out what the requested properties need. Then that
//! is done once for all of them, and every property gets its verdict.

use std::{
    cell::Cell,
    time::{Duration, Instant},
};

use doorway_core::Property;

use super::{
    Options, Report, Verdict,
    counterexample::{concretise, ending_in, following, going_round},
    enabling::Enabling,
    expand::{Ghost, event},
    explore::End,
    graph::{self, Extras, Graph},
    kept::{self, Kept, Wanted},
    order::{Order, Overtaking},
    pack::bits_for,
    remembering::ghost,
    search::{Search, Searched, Then},
    store::Numbers,
    timings::Timings,
};
use crate::{
    fault::Fault,
    subject::{Region, Subject},
    trace::Trace,
};

/// The way in which a property is decided.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// By the search itself: this event violates the property.
    Safety(u16),
    /// By the automata; if these do not settle it, on the graph: whether the process leaves the
    /// section.
    Section,
    /// On the graph, by where processes can be kept from the critical section.
    Progress,
    /// On the graph, by which process overtakes which other process.
    Order,
    /// On the graph, by which processes are enabled.
    Enabling,
    /// By a second search with remembered facts, in which the event violates the property.
    Remembering(Ghost, u16),
}

impl Way {
    fn of(property: Property, subject: &dyn Subject) -> Self {
        match property {
            _ if safety_event(property) != 0 => Self::Safety(safety_event(property)),
            Property::BoundedDoorway | Property::BoundedExit => Self::Section,
            Property::Fcfs | Property::KFcfs | Property::Fife | Property::OrderedEntry => {
                Self::Order
            }
            Property::FifoEnabling | Property::KDeadlockAvoidance => Self::Enabling,
            _ => match ghost(property, subject) {
                Some((ghost, watch)) => Self::Remembering(ghost, watch),
                None => Self::Progress,
            },
        }
    }
}

/// Returns the property that a section is bounded, if it is part of this property: a doorway that
/// waits fixes no order.
fn bounded_section(property: Property) -> Option<(Property, Region)> {
    match property {
        Property::BoundedExit => Some((Property::BoundedExit, Region::Exit)),
        Property::BoundedDoorway
        | Property::Fcfs
        | Property::KFcfs
        | Property::Fife
        | Property::StrongConcurrentEntry => Some((Property::BoundedDoorway, Region::Doorway)),
        _ => None,
    }
}

/// Returns the event that violates a safety property; 0 for other properties.
pub(super) fn safety_event(property: Property) -> u16 {
    match property {
        Property::MutualExclusion => event::MEETS,
        Property::KExclusion => event::CROWDED,
        Property::SessionExclusion => event::MIXED,
        Property::BoundedRegisters => event::EXCEEDS,
        _ => 0,
    }
}

/// The graph of a search, with the numbers of its states.
pub(super) struct Numbered {
    pub(super) graph: Graph,
    pub(super) numbers: Numbers,
}

/// Draws the conclusions from the first search, and makes a second one for properties that need
/// remembered facts.
pub(super) struct Conclude<'a, 's> {
    pub(super) subject: &'a dyn Subject,
    pub(super) options: &'a Options,
    pub(super) search: Search<'a, 's>,
    started: Instant,
    /// The time that the search had taken before it was interrupted.
    pub(super) before: Duration,
    pub(super) timings: &'a Timings,
    /// Whether more memory, or a search of more states, may decide more.
    pub(super) unfinished: Cell<bool>,
}

impl<'a, 's> Conclude<'a, 's> {
    pub(super) fn new(
        subject: &'a dyn Subject,
        options: &'a Options,
        search: Search<'a, 's>,
        started: Instant,
        timings: &'a Timings,
    ) -> Self {
        let (before, unfinished) = (Duration::ZERO, Cell::new(false));
        Self { subject, options, search, started, before, timings, unfinished }
    }
}

/// The facts found on the graph for all properties together.
struct Facts {
    numbered: Numbered,
    kept: Kept,
    overtakings: Vec<(Property, Overtaking)>,
    enabling: Option<Enabling>,
}

impl Then for Conclude<'_, '_> {
    type Out = Result<Report, Fault>;

    fn then<const W: usize>(&mut self, searched: &Searched<'_, '_, W>) -> Self::Out {
        if let End::Fault(fault) = &searched.end {
            return Err(fault.clone());
        }
        let search = self.before + self.started.elapsed();
        self.timings.note("explore", search);
        let verdicts = self.verdicts(searched)?;
        let resumable = match &searched.end {
            End::Exhausted => self.unfinished.get(),
            end => !matches!(end, End::Violation(_)),
        };
        let shared_values = match &searched.end {
            // Counting takes a while, and an interrupted search is to end.
            End::Cancelled => 0,
            _ => {
                self.timings.stage("shared values", || searched.shared_values(self.search.workers))
            }
        };
        let space = searched.space.lock().expect("no worker panics");
        let numbers =
            space.registers.iter().flat_map(|values| values.iter()).map(|value| value.magnitude());
        Ok(Report {
            complete: matches!(searched.end, End::Exhausted),
            states: searched.store.states() as u64,
            transitions: searched.transitions,
            depth: searched.store.levels.len() as u64 - 3,
            elapsed: search,
            search,
            timings: Vec::new(),
            bytes_per_state: searched.bytes_per_state(),
            relabelled: searched.rules.relabel,
            shared_values,
            max_register: if searched.rules.relabel { None } else { numbers.max() },
            bits: (!searched.rules.relabel).then(|| {
                space.registers.iter().map(|values| u64::from(bits_for(values.len()))).sum()
            }),
            retries: searched.rules.retries,
            locals: None,
            verdicts,
            resumable,
            no_room: if let End::NoRoom(why) = &searched.end { Some(why.clone()) } else { None },
        })
    }
}

impl Conclude<'_, '_> {
    fn verdicts<const W: usize>(
        &self,
        searched: &Searched<'_, '_, W>,
    ) -> Result<Vec<Verdict>, Fault> {
        let asked: Vec<(Property, Way)> = self
            .options
            .properties
            .iter()
            .map(|&property| (property, Way::of(property, self.subject)))
            .collect();
        // Properties that need the graph are decided first, so that the graph is gone before a
        // second search needs its memory.
        let exhausted = matches!(searched.end, End::Exhausted);
        let open = if exhausted { self.open_sections(searched, &asked) } else { Vec::new() };
        let facts = exhausted.then(|| self.facts(searched, &asked, &open)).flatten();
        let first = |&(property, way): &(Property, Way)| {
            let bounded = bounded_section(property)
                .map(|(bounded, _)| bounded)
                .filter(|bounded| open.contains(bounded));
            let unbounded = bounded
                .and_then(|bounded| self.unbounded(searched, facts.as_ref(), property, bounded));
            unbounded.or_else(|| self.first_verdict(searched, facts.as_ref(), property, way))
        };
        let first: Vec<Option<Verdict>> = asked.iter().map(first).collect();
        drop(facts);
        let rest =
            |(verdict, &(property, way)): (Option<Verdict>, &(Property, Way))| match (verdict, way)
            {
                (Some(verdict), _) => Ok(verdict),
                (None, Way::Remembering(ghost, watch)) => {
                    self.remembering(searched, property, ghost, watch)
                }
                (None, _) => Ok(self.without_graph(searched, property)),
            };
        first.into_iter().zip(&asked).map(rest).collect()
    }

    /// Returns the bounded-section properties that the automata do not settle, of those that are
    /// part of the requested properties. Most doorways and exit sections end whatever the memory
    /// answers.
    fn open_sections<const W: usize>(
        &self,
        searched: &Searched<'_, '_, W>,
        asked: &[(Property, Way)],
    ) -> Vec<Property> {
        let space = searched.space.lock().expect("no worker panics");
        let mut sections: Vec<_> =
            asked.iter().filter_map(|&(property, _)| bounded_section(property)).collect();
        sections.sort_by_key(|&(bounded, _)| bounded == Property::BoundedExit);
        sections.dedup();
        let leaves = |region| (0..self.subject.size().n).all(|p| space.leaves(p, region));
        sections
            .into_iter()
            .filter(|&(_, region)| !leaves(region))
            .map(|(bounded, _)| bounded)
            .collect()
    }

    /// Returns the verdict on a property that says that a section is bounded, if the section is
    /// not. `bounded` is the property that says only that.
    fn unbounded<const W: usize>(
        &self,
        searched: &Searched<'_, '_, W>,
        facts: Option<&Facts>,
        property: Property,
        bounded: Property,
    ) -> Option<Verdict> {
        let Some(Facts { numbered, kept, .. }) = facts else {
            return Some(self.without_graph(searched, property));
        };
        let verdict = self.progress(searched, numbered, kept, bounded);
        (verdict.holds != Some(true)).then(|| {
            let scope = match property == bounded {
                true => verdict.scope,
                false => {
                    format!("its doorway is not bounded, and so fixes no order: {}", verdict.scope)
                }
            };
            Verdict { property, scope, ..verdict }
        })
    }

    /// Returns the verdict that follows from the first search and from the facts found on its
    /// graph.
    fn first_verdict<const W: usize>(
        &self,
        searched: &Searched<'_, '_, W>,
        facts: Option<&Facts>,
        property: Property,
        way: Way,
    ) -> Option<Verdict> {
        if property == Property::BoundedRegisters
            && let Some(verdict) = self.oversized()
        {
            return Some(verdict);
        }
        Some(match (&searched.end, way) {
            (End::Violation(found), Way::Safety(event)) if found.events & event != 0 => self
                .showing(property, || {
                    concretise(searched, self.subject, &ending_in(searched, found), property, None)
                }),
            (End::Exhausted, Way::Safety(_)) if property == Property::BoundedRegisters => {
                self.bounded(searched)
            }
            (End::Exhausted, Way::Safety(_) | Way::Section) => self.holds(property),
            (End::Exhausted, Way::Remembering(..)) => return None,
            (End::Exhausted, _) => self.on_graph(searched, facts?, property),
            (End::Violation(_), _) => {
                self.undecided(property, "the search stopped at the violation of another")
            }
            (End::Cancelled, _) => self.undecided(property, "the search was interrupted"),
            (End::NoRoom(why), _) => {
                self.undecided(property, &format!("no room for more states: {why}"))
            }
            _ => self.undecided(
                property,
                &format!(
                    "the search stopped at {} states: raise --max-states",
                    searched.store.states()
                ),
            ),
        })
    }

    /// Builds the graph and finds on it what the properties need; `None` if they need nothing, or
    /// there are too many states.
    fn facts<const W: usize>(
        &self,
        searched: &Searched<'_, '_, W>,
        asked: &[(Property, Way)],
        open: &[Property],
    ) -> Option<Facts> {
        let those = |wanted: fn(&Way) -> bool| -> Vec<Property> {
            asked.iter().filter(|(_, way)| wanted(way)).map(|&(property, _)| property).collect()
        };
        let progress = [those(|way| matches!(way, Way::Progress)), open.to_vec()].concat();
        let order = those(|way| matches!(way, Way::Order));
        let enabling = !those(|way| matches!(way, Way::Enabling)).is_empty();
        if progress.is_empty() && order.is_empty() && !enabling {
            return None;
        }
        let unopposed = |property| {
            matches!(property, Property::ConcurrentEntry | Property::ConcurrentOccupancy)
        };
        let extras = Extras {
            unopposed: progress.iter().copied().any(unopposed),
            beginnings: !order.is_empty(),
        };
        let numbered = self.numbered(searched, extras)?;
        let Numbered { graph, numbers } = &numbered;
        let workers = self.search.workers;
        let kept = self.kept(&numbered, progress, enabling || order.contains(&Property::Fife));
        let kept_out = &kept.kept_out;
        let end_of_level = |depth: usize| numbers.end_of_level(depth);
        let (k, ordered) = (self.subject.size().k, self.subject.size().in_order());
        let order_on = Order { graph, end_of_level: &end_of_level, k, ordered, kept_out };
        let overtakings = order_on.violations(&order, workers, self.timings);
        let enabling = enabling.then(|| {
            self.timings.stage("enabling", || Enabling::of(graph, kept_out.clone(), workers))
        });
        Some(Facts { numbered, kept, overtakings, enabling })
    }

    /// Returns the graph of a search; `None` if there are too many states, or the graph does not
    /// fit in memory.
    pub(super) fn numbered<const W: usize>(
        &self,
        searched: &Searched<'_, '_, W>,
        extras: Extras,
    ) -> Option<Numbered> {
        let workers = self.search.workers;
        let room = searched.room;
        if graph::bytes(searched, extras, workers) > room.limit() - room.used() {
            return None;
        }
        let numbers = self.timings.stage("numbers", || searched.store.numbers(workers));
        let graph =
            self.timings.stage("graph", || Graph::build(searched, &numbers, extras, workers))?;
        Some(Numbered { graph, numbers })
    }

    /// Finds where processes can be kept from the critical section, and which of these properties
    /// that violates.
    pub(super) fn kept(
        &self,
        numbered: &Numbered,
        progress: Vec<Property>,
        kept_out: bool,
    ) -> Kept {
        let Numbered { graph, numbers } = numbered;
        let wanted = Wanted { progress, kept_out, crashes: self.options.crashes };
        kept::look(graph, &wanted, &|state| numbers.depth(state), self.search.workers, self.timings)
    }

    /// Returns the verdict that follows from the facts found on the graph.
    fn on_graph<const W: usize>(
        &self,
        searched: &Searched<'_, '_, W>,
        facts: &Facts,
        property: Property,
    ) -> Verdict {
        let Facts { numbered, kept, overtakings, enabling } = facts;
        match (property, enabling) {
            (Property::FifoEnabling, Some(enabling)) => {
                self.fifo_enabling(searched, numbered, enabling)
            }
            (Property::KDeadlockAvoidance, Some(enabling)) => {
                self.k_deadlock_avoidance(searched, numbered, enabling)
            }
            _ => match overtakings.iter().find(|(of, _)| *of == property) {
                Some((_, found)) => {
                    self.overtaken(searched, numbered, &kept.kept_out, property, found)
                }
                None => self.progress(searched, numbered, kept, property),
            },
        }
    }

    /// Returns the verdict on a property of progress; a property that is not violated has nothing
    /// to show.
    pub(super) fn progress<const W: usize>(
        &self,
        searched: &Searched<'_, '_, W>,
        Numbered { graph, numbers }: &Numbered,
        kept: &Kept,
        property: Property,
    ) -> Verdict {
        match kept.lassos.iter().find(|(of, _)| *of == property) {
            None => self.holds(property),
            Some((_, lasso)) => self.showing(property, || {
                let (trail, stem) = going_round(searched, graph, numbers, lasso);
                concretise(searched, self.subject, &trail, property, Some((lasso, stem)))
            }),
        }
    }

    /// Returns the verdict on a property of order that is violated on the graph.
    fn overtaken<const W: usize>(
        &self,
        searched: &Searched<'_, '_, W>,
        numbered: &Numbered,
        kept_out: &[u16],
        property: Property,
        found: &Overtaking,
    ) -> Verdict {
        let (_, _, last) = *found.walk.last().expect("the overtaker has entered");
        if property == Property::Fife {
            let set = u32::from(kept_out[last as usize]) & found.overtaken;
            if !self.anybody_is_kept(searched, numbered, last, set) {
                return self.not_kept(property, numbered);
            }
        }
        self.showing(property, || {
            let mut trail = following(searched, &numbered.numbers, found.start, &found.walk);
            trail.last_mut()?.1.overtaken = found.overtaken;
            concretise(searched, self.subject, &trail, property, None)
        })
    }

    /// Returns a violation, if `run` finds a run of it with true values.
    pub(super) fn showing(
        &self,
        property: Property,
        run: impl FnOnce() -> Option<Trace>,
    ) -> Verdict {
        let trace = self.timings.stage(format!("counterexample to {property}"), run);
        self.violated(property, trace)
    }
}
