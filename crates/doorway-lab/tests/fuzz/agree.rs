//! What the checker says of a subject, compared with what the reference says: all of it has to be
//! the same.

use doorway_core::Property;
use doorway_lab::{Fault, Options, Progress, Report, Subject, check};

use crate::{decide::Decided, drive::quietly, reference::Graph};

/// Properties that the search itself decides. It stops at the first violation, so each has a search
/// of its own.
pub(crate) const SAFETY: [Property; 4] = [
    Property::MutualExclusion,
    Property::KExclusion,
    Property::SessionExclusion,
    Property::BoundedRegisters,
];
/// Properties that are decided together.
pub(crate) const OTHERS: [Property; 9] = [
    Property::DeadlockFreedom,
    Property::StarvationFreedom,
    Property::BoundedExit,
    Property::BoundedDoorway,
    Property::Fcfs,
    Property::KFcfs,
    Property::Fife,
    Property::FifoEnabling,
    Property::KDeadlockAvoidance,
];
/// Properties of group locks that are decided with those.
pub(crate) const GROUP: [Property; 3] =
    [Property::ConcurrentEntry, Property::ConcurrentOccupancy, Property::StrongConcurrentEntry];

/// Why a subject is no case, or what both have said.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Outcome {
    /// Both agree.
    Same,
    /// Both refuse it.
    Refused,
    /// It has too many states.
    TooMany,
    /// It is of a kind that is left out.
    LeftOut,
}

/// A disagreement. Cases fail in the same way if `class` is the same.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) class: String,
    pub(crate) details: String,
    /// Of several disagreements on a case the one with the smallest number is shown: a false
    /// "holds" first.
    weight: u8,
}

pub(crate) fn failure(class: impl Into<String>, details: impl Into<String>) -> Failure {
    Failure { class: class.into(), details: details.into(), weight: 0 }
}

/// How often each verdict was given, by property: holds, violated, not decided.
pub(crate) type Verdicts = std::collections::BTreeMap<(&'static str, &'static str), [u64; 3]>;

/// Why the lab does not decide a subject.
#[derive(Clone, Debug)]
pub(crate) enum Refusal {
    /// It says that the algorithm cannot be run.
    Fault(Fault),
    /// It panics, or the algorithm does.
    Panic(String),
}

impl Refusal {
    pub(crate) fn into_failure(self) -> Failure {
        match self {
            Self::Fault(fault) => failure(format!("refused: {fault}"), "the reference runs it"),
            Self::Panic(words) => failure("panic", words),
        }
    }
}

/// Checks a subject.
pub(crate) fn run(subject: &dyn Subject, options: &Options) -> Result<Report, Refusal> {
    let checked = quietly(|| check(subject, options, &Progress::default()));
    checked.map_err(Refusal::Panic)?.map_err(Refusal::Fault)
}

/// A subject with the verdicts of the reference.
pub(crate) struct Comparison<'a> {
    pub(crate) subject: &'a dyn Subject,
    /// How to check it: without relabelling, without merged local states, and without a rehearsal
    /// but for the first time.
    pub(crate) options: Options,
    pub(crate) graph: &'a Graph,
    pub(crate) decided: Vec<(Property, Decided)>,
    pub(crate) verdicts: &'a mut Verdicts,
    pub(crate) failures: Vec<Failure>,
}

impl Comparison<'_> {
    /// The properties in groups that one search can decide: a search stops at a violation of
    /// safety, so properties of safety that do not hold have one of their own.
    pub(crate) fn groups(&self) -> Vec<Vec<Property>> {
        let (alone, together): (Vec<_>, Vec<_>) = self
            .decided
            .iter()
            .partition(|(property, decided)| SAFETY.contains(property) && !decided.holds);
        let together = together.into_iter().map(|(property, _)| property).collect();
        [together]
            .into_iter()
            .chain(alone.into_iter().map(|(property, _)| vec![property]))
            .collect()
    }

    pub(crate) fn decided(&self, property: Property) -> Decided {
        self.decided.iter().find(|(known, _)| *known == property).expect("all are decided").1
    }

    fn run(
        &self,
        properties: &[Property],
        change: impl FnOnce(&mut Options),
    ) -> Result<Report, Refusal> {
        let mut options = Options { properties: properties.to_vec(), ..self.options.clone() };
        change(&mut options);
        run(self.subject, &options)
    }

    /// Compares everything, without relabelling. `may_refuse` says whether the lab is right to
    /// refuse the subject.
    pub(crate) fn exactly(
        &mut self,
        may_refuse: impl Fn(&Refusal) -> bool,
    ) -> Result<Outcome, Failure> {
        let states = self.graph.edges.len() as u64;
        let transitions = self.graph.edges.iter().map(|edges| edges.len() as u64).sum::<u64>();
        for (number, properties) in self.groups().iter().enumerate() {
            let report = match self.run(properties, |options| options.rehearse = number == 0) {
                Ok(report) => report,
                Err(refusal) if may_refuse(&refusal) => return Ok(Outcome::Refused),
                Err(refusal) => return Err(refusal.into_failure()),
            };
            self.verdicts(&report);
            if number == 0
                && (!report.complete
                    || (report.states, report.transitions) != (states, transitions))
            {
                let counts =
                    |states, transitions| format!("{states} states and {transitions} transitions");
                let (ours, theirs) =
                    (counts(report.states, report.transitions), counts(states, transitions));
                let failure = failure("states", format!("checker: {ours}; reference: {theirs}"));
                self.failures.push(Failure { weight: 3, ..failure });
            }
            if number == 0 {
                self.merged(&report, properties)?;
            }
        }
        let worst = self.failures.drain(..).min_by_key(|failure| failure.weight);
        worst.map_or(Ok(Outcome::Same), Err)
    }

    /// Compares a run in which bisimilar local states are merged: the same verdicts and lengths,
    /// and no more states.
    fn merged(&mut self, plain: &Report, properties: &[Property]) -> Result<(), Failure> {
        let report = match self.run(properties, |options| options.minimise = true) {
            Ok(report) => report,
            Err(refusal) => return Err(failure("merged: refused", refusal.into_failure().class)),
        };
        self.verdicts(&report);
        if report.states > plain.states {
            let counts = format!("{} states, {} without merging", report.states, plain.states);
            self.failures.push(Failure { weight: 3, ..failure("merged: states", counts) });
        }
        Ok(())
    }

    /// Compares the verdicts of a report that has to agree with the reference in everything.
    fn verdicts(&mut self, report: &Report) {
        for verdict in &report.verdicts {
            let property = verdict.property;
            self.count(property, "exact", verdict.holds);
            let Decided { holds, shortest } = self.decided(property);
            let reference = format!("reference: {}", words(Some(holds)));
            if verdict.holds != Some(holds) {
                let class = format!("{}: {}", property.name(), words(verdict.holds));
                let weight = [Some(true), Some(false), None]
                    .iter()
                    .position(|holds| *holds == verdict.holds);
                let failure =
                    failure(class, format!("{} ({}); {reference}", property.name(), verdict.scope));
                self.failures.push(Failure { weight: weight.unwrap_or(0) as u8, ..failure });
                continue;
            }
            let length = verdict.trace.as_ref().map(|trace| trace.steps.len());
            if shortest.is_some() && shortest != length {
                let lengths = format!("checker {length:?}, reference {shortest:?}");
                let failure = failure(format!("{}: length", property.name()), lengths);
                self.failures.push(Failure { weight: 4, ..failure });
            }
        }
    }

    /// With any number of passages and tickets relabelled, nothing must be said to hold that the
    /// reference has refuted. `leave_out` says which properties are not asked for, and `must_run`
    /// whether the lab is wrong to refuse the subject.
    pub(crate) fn relabelled(
        &mut self,
        leave_out: impl Fn(Property) -> bool,
        must_run: impl Fn(&Refusal) -> bool,
    ) -> Result<(), Failure> {
        for mut properties in self.groups() {
            // A process without passages left is not enabled to enter, which says nothing of runs
            // without a bound.
            let bounded = |property| {
                matches!(property, Property::FifoEnabling | Property::KDeadlockAvoidance)
            };
            properties.retain(|&property| {
                !self.decided(property).holds && !leave_out(property) && !bounded(property)
            });
            if properties.is_empty() {
                continue;
            }
            let unbounded = |options: &mut Options| {
                (options.passages, options.relabel, options.max_states) = (None, None, 10_000);
            };
            let report = match self.run(&properties, unbounded) {
                Ok(report) => report,
                Err(refusal) if must_run(&refusal) => {
                    return Err(failure("relabelled: refused", refusal.into_failure().class));
                }
                Err(_) => return Ok(()),
            };
            for verdict in &report.verdicts {
                let property = verdict.property;
                self.count(property, "relabelled", verdict.holds);
                let shortest = self.decided(property).shortest;
                if verdict.holds == Some(true) {
                    let class = format!("{}: relabelled", property.name());
                    let details = format!("holds ({}); the reference violates it", verdict.scope);
                    return Err(failure(class, details));
                }
                // With more passages a doorway may wait that does not with few: that is shown by a
                // loop, of any length. And the bound that a relabelled ticket exceeds is not seen,
                // only that of another number, which may come later.
                let is_shortest = property != Property::BoundedRegisters;
                let run =
                    verdict.trace.as_ref().filter(|trace| trace.loop_from.is_none() && is_shortest);
                let length = run.map(|trace| trace.steps.len());
                if let (Some(length), Some(shortest)) = (length, shortest)
                    && length > shortest
                {
                    let lengths = format!("checker {length}, reference {shortest}");
                    return Err(failure(
                        format!("{}: relabelled length", property.name()),
                        lengths,
                    ));
                }
            }
        }
        Ok(())
    }

    fn count(&mut self, property: Property, scope: &'static str, holds: Option<bool>) {
        let at = match holds {
            Some(true) => 0,
            Some(false) => 1,
            None => 2,
        };
        self.verdicts.entry((property.name(), scope)).or_default()[at] += 1;
    }
}

fn words(holds: Option<bool>) -> &'static str {
    match holds {
        Some(true) => "holds",
        Some(false) => "violated",
        None => "not decided",
    }
}
