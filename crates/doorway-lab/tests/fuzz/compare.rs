//! One program, checked by the lab and explored by the reference.

use std::sync::Arc;

use doorway_core::Property;
use doorway_lab::{Fault, Options};

use crate::{
    agree::{Comparison, Failure, OTHERS, Outcome, Refusal, SAFETY, Verdicts, failure, run},
    decide::{Decided, Terms, decide},
    generate::{Without, enough},
    interpret::subject,
    process::Refused,
    program::{Program, Stmt},
    reference::{Graph, explore},
};

/// What the lab may refuse to run, by the words it says so in.
fn may_refuse(fault: &Fault, program: &Program, graph: &Graph) -> bool {
    let words = fault.to_string();
    let mut many = false;
    program
        .clone()
        .blocks_mut(|block| many |= block.iter().any(|stmt| matches!(stmt, Stmt::Choose(300))));
    matches!(fault, Fault::IdleIteration(_)) && graph.idle
        || words.contains("begins with a choice:") && graph.ends_with_choice
        || words.contains("300 outcomes") && many
}

/// Whether the lab is right to refuse the program. The lab looks beyond the bounds on passages and
/// kills, so the reference explores more of both, too: few passages first, because many may have
/// too many states.
fn may_refuse_beyond(refusal: &Refusal, program: &Program, graph: &Graph) -> bool {
    let Refusal::Fault(fault) = refusal else { return false };
    let more = Program { kills: 6, ..program.clone() };
    let most = |passages| if passages == 2 { 500_000 } else { 20_000 };
    let beyond = |passages| match explore(&more, Some(passages), most(passages)) {
        Ok(graph) => may_refuse(fault, &more, &graph),
        Err(_) => matches!(fault, Fault::IdleSection(_) | Fault::IdleIteration(_)),
    };
    let is_bounded = more.passages.is_some() || more.killed.is_some();
    may_refuse(fault, program, graph) || is_bounded && (2..=6).any(beyond)
}

pub(crate) fn compare(
    program: &Program,
    without: Without,
    verdicts: &mut Verdicts,
) -> Result<Outcome, Failure> {
    let subject = subject(&Arc::new(program.clone()));
    let graph = match explore(program, program.passages, program.states) {
        Err(Refused::TooMany) => return Ok(Outcome::TooMany),
        Err(Refused::Idle) => {
            return match run(
                &*subject,
                &Options { properties: OTHERS.to_vec(), rehearse: true, ..options(program) },
            ) {
                Err(Refusal::Panic(words)) => Err(failure("panic", words)),
                Err(Refusal::Fault(Fault::IdleSection(_) | Fault::IdleIteration(_))) => {
                    Ok(Outcome::Refused)
                }
                // It may have another fault, too, and be refused for that.
                Err(Refusal::Fault(Fault::Impure)) if !without.h7 => {
                    Err(failure("refused as impure", "the reference finds an idle section"))
                }
                Err(_) => Ok(Outcome::Refused),
                Ok(report) => Err(failure(
                    "not refused",
                    format!("an idle section: {} states", report.states),
                )),
            };
        }
        Ok(graph) => graph,
    };
    if without.h7 && (graph.begins_with_choice || graph.ends_with_choice) {
        return Ok(Outcome::LeftOut);
    }
    let bound = program.bound.unwrap_or(u64::MAX);
    let terms = Terms { n: program.n, k: program.k, bound, crashes: program.crashes };
    let all =
        SAFETY.into_iter().chain(OTHERS).filter(|&property| property != Property::SessionExclusion);
    let decided = all.map(|property| (property, decide(&graph, property, terms))).collect();
    let (graph, options) = (&graph, options(program));
    let mut comparison =
        Comparison { subject: &*subject, options, graph, decided, verdicts, failures: Vec::new() };
    if without.h4
        && comparison.decided(Property::Fcfs) == (Decided { holds: false, shortest: None })
    {
        return Ok(Outcome::LeftOut);
    }
    let outcome = comparison.exactly(|refusal| may_refuse_beyond(refusal, program, graph))?;
    if program.tickets && outcome == Outcome::Same {
        // On labels a program with too small a gap may do what it never does on true tickets.
        let must_run = |refusal: &Refusal| match refusal {
            Refusal::Panic(_) => true,
            Refusal::Fault(fault) => *fault == Fault::Impure && program.gap >= enough(program),
        };
        comparison.relabelled(
            |property| without.h3 && property == Property::BoundedRegisters,
            must_run,
        )?;
    }
    Ok(outcome)
}

pub(crate) fn options(program: &Program) -> Options {
    Options {
        passages: program.passages,
        crashes: program.crashes,
        max_states: 100_000,
        workers: program.workers,
        relabel: Some(false),
        minimise: false,
        rehearse: false,
        ..Options::default()
    }
}
