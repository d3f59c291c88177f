//! One program, checked by the lab and explored by the reference: everything that both say has to be the same.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use doorway_core::Property;
use doorway_lab::{Fault, Options, Progress, Report, check};

use crate::{
    decide::{Decided, Terms, decide},
    generate::{Without, enough},
    interpret::subject,
    process::Refused,
    program::{Program, Stmt},
    reference::{Graph, explore},
};

/// Properties that the search itself decides. It stops at the first violation, so each has a search of its own.
const SAFETY: [Property; 3] = [Property::MutualExclusion, Property::KExclusion, Property::BoundedRegisters];
/// Properties that are decided together.
const OTHERS: [Property; 6] = [
    Property::DeadlockFreedom,
    Property::StarvationFreedom,
    Property::BoundedExit,
    Property::Fcfs,
    Property::KFcfs,
    Property::Fife,
];

/// Those, and that doorways are bounded, if the checker knows of it.
fn others() -> impl Iterator<Item = Property> {
    OTHERS.into_iter().chain("bounded-doorway".parse().ok())
}

/// What the lab may refuse to run, by the words it says so in.
fn may_refuse(fault: &Fault, program: &Program, graph: &Graph) -> bool {
    let words = fault.to_string();
    let mut many = false;
    program.clone().blocks_mut(|block| many |= block.iter().any(|stmt| matches!(stmt, Stmt::Choose(300))));
    matches!(fault, Fault::IdleIteration(_)) && graph.idle
        || words.contains("begins with a choice:") && graph.ends_with_choice
        || words.contains("300 outcomes") && many
}

/// Why a program is no case, or what both have said.
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

/// A disagreement. Programs fail in the same way if `class` is the same.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) class: String,
    pub(crate) details: String,
    /// Of several disagreements on a program the one with the smallest number is shown: a false "holds" first.
    weight: u8,
}

/// How often each verdict was given, by property: holds, violated, not decided.
pub(crate) type Verdicts = std::collections::BTreeMap<(&'static str, &'static str), [u64; 3]>;

struct Comparison<'a> {
    program: &'a Arc<Program>,
    graph: Graph,
    decided: Vec<(Property, Decided)>,
    verdicts: &'a mut Verdicts,
    failures: Vec<Failure>,
}

pub(crate) fn compare(program: &Program, without: Without, verdicts: &mut Verdicts) -> Result<Outcome, Failure> {
    let explored = explore(program, program.passages, program.states);
    let graph = match explored {
        Err(Refused::TooMany) => return Ok(Outcome::TooMany),
        Err(Refused::Idle) => {
            return match run(&Arc::new(program.clone()), &options(program, &OTHERS))? {
                Err(Fault::IdleSection(_) | Fault::IdleIteration(_)) => Ok(Outcome::Refused),
                // It may have another fault, too, and be refused for that.
                Err(Fault::Impure) if !without.h7 => {
                    Err(failure("refused as impure", "the reference finds an idle section"))
                }
                Err(_) => Ok(Outcome::Refused),
                Ok(report) => Err(failure("not refused", format!("an idle section: {} states", report.states))),
            };
        }
        Ok(graph) => graph,
    };
    if without.h7 && (graph.begins_with_choice || graph.ends_with_choice) {
        return Ok(Outcome::LeftOut);
    }
    let bound = program.bound.unwrap_or(u64::MAX);
    let terms = Terms { n: program.n, k: program.k, bound, crashes: program.crashes };
    let program = &Arc::new(program.clone());
    let all = SAFETY.into_iter().chain(others());
    let decided = all.map(|property| (property, decide(&graph, property, terms))).collect();
    let mut comparison = Comparison { program, graph, decided, verdicts, failures: Vec::new() };
    if without.h4 && comparison.decided(Property::Fcfs) == (Decided { holds: false, shortest: None }) {
        return Ok(Outcome::LeftOut);
    }
    let outcome = comparison.exactly()?;
    if program.tickets && outcome == Outcome::Same {
        comparison.relabelled(without)?;
    }
    Ok(outcome)
}

pub(crate) fn options(program: &Program, properties: &[Property]) -> Options {
    Options {
        passages: program.passages,
        crashes: program.crashes,
        properties: properties.to_vec(),
        max_states: 100_000,
        workers: program.workers,
        relabel: Some(false),
        minimise: false,
        ..Options::default()
    }
}

fn failure(class: impl Into<String>, details: impl Into<String>) -> Failure {
    Failure { class: class.into(), details: details.into(), weight: 0 }
}

/// The checker must not panic, whatever it is given.
fn run(program: &Arc<Program>, options: &Options) -> Result<Result<Report, Fault>, Failure> {
    let check = || check(&*subject(program), options, &Progress::default());
    catch_unwind(AssertUnwindSafe(check)).map_err(|panic| {
        let words = panic.downcast_ref::<String>().cloned();
        let words = words.or_else(|| panic.downcast_ref::<&str>().map(|words| (*words).into()));
        failure("panic", words.unwrap_or_default())
    })
}

impl Comparison<'_> {
    /// The properties in groups that one search can decide: a search stops at a violation of safety, so properties of safety
    /// that do not hold have one of their own.
    fn groups(&self) -> Vec<Vec<Property>> {
        let (together, alone): (Vec<_>, Vec<_>) =
            SAFETY.into_iter().partition(|&property| self.decided(property).holds);
        let together = others().chain(together).collect();
        [together].into_iter().chain(alone.into_iter().map(|property| vec![property])).collect()
    }

    /// Whether the lab is right to refuse the program. It may look beyond the bounds on passages and kills.
    fn may_refuse(&self, fault: &Fault) -> bool {
        let more = Program { kills: 6, ..Program::clone(self.program) };
        let beyond = || match explore(&more, Some(6), 20_000) {
            Ok(graph) => may_refuse(fault, &more, &graph),
            Err(_) => matches!(fault, Fault::IdleSection(_) | Fault::IdleIteration(_)),
        };
        may_refuse(fault, self.program, &self.graph) || (more.passages.is_some() || more.killed.is_some()) && beyond()
    }

    fn decided(&self, property: Property) -> Decided {
        self.decided.iter().find(|(known, _)| *known == property).expect("all are decided").1
    }

    /// Compares everything, without relabelling.
    fn exactly(&mut self) -> Result<Outcome, Failure> {
        let states = self.graph.edges.len() as u64;
        let transitions = self.graph.edges.iter().map(|edges| edges.len() as u64).sum::<u64>();
        for (number, properties) in self.groups().iter().enumerate() {
            let report = match run(self.program, &options(self.program, properties))? {
                Ok(report) => report,
                Err(fault) if self.may_refuse(&fault) => return Ok(Outcome::Refused),
                Err(fault) => return Err(failure(format!("refused: {fault}"), "the reference runs it")),
            };
            self.verdicts(&report);
            if number == 0 && (!report.complete || (report.states, report.transitions) != (states, transitions)) {
                let counts = |states, transitions| format!("{states} states and {transitions} transitions");
                let (ours, theirs) = (counts(report.states, report.transitions), counts(states, transitions));
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

    /// Compares a run in which bisimilar local states are merged: the same verdicts and lengths, and no more states.
    fn merged(&mut self, plain: &Report, properties: &[Property]) -> Result<(), Failure> {
        let merging = Options { minimise: true, ..options(self.program, properties) };
        let Ok(report) = run(self.program, &merging)? else { return Err(failure("merged: refused", "")) };
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
                let weight = [Some(true), Some(false), None].iter().position(|holds| *holds == verdict.holds);
                let failure = failure(class, format!("{} ({}); {reference}", property.name(), verdict.scope));
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

    /// With any number of passages and tickets relabelled, nothing must be said to hold that the reference has refuted.
    fn relabelled(&mut self, without: Without) -> Result<(), Failure> {
        for mut properties in self.groups() {
            properties.retain(|&property| !self.decided(property).holds);
            if properties.is_empty() || without.h3 && properties[0] == Property::BoundedRegisters {
                continue;
            }
            let unbounded =
                Options { passages: None, relabel: None, max_states: 10_000, ..options(self.program, &properties) };
            let report = match run(self.program, &unbounded)? {
                Ok(report) => report,
                // On labels a program with too small a gap may do what it never does on true tickets.
                Err(Fault::Impure) if self.program.gap >= enough(self.program) => {
                    return Err(failure("relabelled: impure", "the reference runs it"));
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
                let length = verdict.trace.as_ref().map(|trace| trace.steps.len());
                if let (Some(length), Some(shortest)) = (length, shortest)
                    && length > shortest
                {
                    let lengths = format!("checker {length}, reference {shortest}");
                    return Err(failure(format!("{}: relabelled length", property.name()), lengths));
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
