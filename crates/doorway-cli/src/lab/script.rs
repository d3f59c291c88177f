//! `doorway lab check ALG --script FILE`: does this schedule violate the property?

use std::{path::Path, process::ExitCode};

use doorway_core::Property;
use doorway_lab::{
    Subject,
    simulate::SimulateError,
    trace::{Trace, TraceError},
};
use serde_json::json;

use super::{
    check::{property, registers, write_trace},
    steps::steps,
};
use crate::{
    args::lab::Check,
    error::Failure,
    output::{print, read},
};

/// Runs the command.
pub(crate) fn run(args: &Check, path: &Path) -> Result<ExitCode, Failure> {
    let (entrant, subject) = super::instance(&args.instance)?;
    let registers = registers(args, entrant)?;
    let property = match &args.property[..] {
        [name] => match property(name, &*subject)? {
            // Whether a process is enabled depends on every possible continuation, and a schedule
            // is one.
            property @ (Property::FifoEnabling | Property::KDeadlockAvoidance) => {
                return Err(Failure::Usage(format!(
                    "--script: no schedule can show {property}; leave --script out"
                )));
            }
            property => property,
        },
        _ => {
            return Err(Failure::Usage(
                "--script: say with one --property what the schedule is to violate".into(),
            ));
        }
    };
    let mut trace = Trace::scripted(&*subject, registers, property, &read(path)?).map_err(
        |error| match error {
            SimulateError::Schedule(error) => error.into(),
            SimulateError::Fault(fault) => Failure::Fault(fault),
        },
    )?;
    let judged = judge(&trace, property, args.crashes);
    let (shown, words) = judged.map_err(|error| Failure::Trace { path: path.into(), error })?;
    trace.shows = words;
    trace.property = shown.then(|| property.name().into());
    if let Some(out) = &args.trace {
        write_trace(out, &trace)?;
    }
    print(&if args.json {
        as_json(&*subject, args, property, &trace, shown)
    } else {
        as_text(property, &trace, shown)
    })?;
    Ok(ExitCode::from(if shown { 1 } else { 3 }))
}

/// Returns whether the run violates the property, and what it shows in words.
fn judge(trace: &Trace, property: Property, crashes: usize) -> Result<(bool, String), TraceError> {
    if trace.crashed.len() > crashes {
        let crashed = &trace.crashed;
        return Ok((
            false,
            format!(
                "{crashed:?} do not move where it goes on for ever, and --crashes is {crashes}"
            ),
        ));
    }
    match trace.replay() {
        Ok(replayed) => Ok(match (property, replayed.alone) {
            (Property::Fife, Some(p)) => {
                (true, format!("process {p} has been overtaken, and goes round alone without entering"))
            }
            (Property::Fife, None) => (
                false,
                "somebody has been overtaken, and enters by itself or waits for others; a search can tell".into(),
            ),
            _ if trace.loop_from.is_some() => {
                let crashed = match &trace.crashed[..] {
                    [] => String::new(),
                    crashed => format!(" after {crashed:?} crashed"),
                };
                (true, format!("the loop goes on for ever{crashed} and violates {property}"))
            }
            _ => (true, format!("the last step violates {property}")),
        }),
        Err(TraceError::NotShown(_)) => Ok((false, format!("this schedule does not violate {property}"))),
        Err(error) => Err(error),
    }
}

fn as_text(property: Property, trace: &Trace, shown: bool) -> String {
    let verdict = if shown { "VIOLATED" } else { "not shown" };
    format!(
        "{property}  {verdict}  a run of {} steps, replayed: {}.\n\n{}",
        trace.steps.len(),
        trace.shows,
        steps(trace)
    )
}

fn as_json(
    subject: &dyn Subject,
    args: &Check,
    property: Property,
    trace: &Trace,
    shown: bool,
) -> String {
    let size = subject.size();
    let object = json!({
        "algorithm": subject.name(),
        "mutant": subject.mutant(),
        "n": size.n,
        "k": size.k,
        "sessions": size.sessions,
        "passages": null,
        "registers": trace.registers,
        "crashes": args.crashes,
        "complete": false,
        "states": null,
        "transitions": null,
        "seconds": null,
        "states_per_second": null,
        "properties": [{
            "name": property.name(),
            "holds": if shown { Some(false) } else { None },
            "scope": format!("one schedule of {} steps: {}", trace.steps.len(), trace.shows),
            "shows": trace.shows,
            "steps": trace.steps.len(),
            "loop_from": trace.loop_from,
            "trace": trace.steps,
        }],
        "bounds": { "shared_values": null, "max_register": null },
    });
    format!("{object:#}\n")
}
