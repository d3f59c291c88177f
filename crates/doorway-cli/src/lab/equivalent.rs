//! `doorway lab check ALG --equivalent-to OTHER`.

use std::process::ExitCode;

use doorway_core::RegisterKind;
use doorway_lab::{Comparison, Difference, Entrant, Progress, Region, Subject, equivalent};
use serde_json::json;

use super::{
    check::{passages, processes},
    watch::watched,
};
use crate::{
    args::lab::{Check, Instance},
    error::Failure,
    output::print,
    table::{columns, grouped},
};

/// How many passages are explored if the user names no number, and any number cannot be explored.
const PASSAGES: u32 = 2;

/// Runs the command.
pub(crate) fn run(args: &Check, other: &str) -> Result<ExitCode, Failure> {
    let (entrant, first) = super::instance(&args.instance)?;
    let Instance { n, k, sessions, .. } = args.instance;
    // The same timestamps on both sides, if both have any.
    let timestamps = args
        .instance
        .timestamps
        .clone()
        .filter(|_| super::named(other).is_ok_and(|e| e.variant.is_some()));
    let against = Instance {
        algorithm: other.into(),
        n,
        k,
        sessions,
        timestamps,
        mutant: None,
        abandon: false,
        kills: None,
    };
    let (_, second) = super::instance(&against)?;
    processes(&*first)?;
    if args.registers != RegisterKind::Atomic.name() {
        return Err(Failure::Usage(format!(
            "--registers {} with --equivalent-to: a schedule does not say what a read returns that overlaps a write; \
             leave --registers out",
            args.registers
        )));
    }
    let progress = Progress::default();
    let compare = |passages| {
        watched(&progress, || equivalent(&*first, &*second, passages, args.max_states, &progress))
            .map_err(Failure::Incomparable)
    };
    let mut passages = passages(args)?;
    let mut comparison = compare(passages)?;
    if comparison.needs_bound && args.passages.is_none() {
        passages = Some(PASSAGES);
        comparison = compare(passages)?;
    }
    let text = match args.json {
        true => as_json(&*first, other, passages, &comparison),
        false => as_text(entrant, &*first, other, &comparison),
    };
    print(&text)?;
    Ok(ExitCode::from(match comparison.holds {
        Some(true) => 0,
        Some(false) => 1,
        None => 3,
    }))
}

fn name(region: Region) -> String {
    format!("{region:?}").to_lowercase()
}

/// Returns the state of each process after the last step.
fn shows(first: &dyn Subject, other: &str, difference: &Difference) -> String {
    let steps = difference.steps.len();
    let Some(last) = difference.steps.last() else { return String::new() };
    let place = |region: Region| match region {
        Region::Remainder => "in its remainder",
        Region::Doorway => "in its doorway",
        Region::Waiting => "waiting",
        Region::Critical => "in the critical section",
        Region::Exit => "in its exit section",
    };
    // An algorithm may be compared with a mutant of itself.
    let first = match first.mutant() {
        Some(mutant) => format!("{} ({mutant})", first.name()),
        None => first.name().into(),
    };
    format!(
        "after step {steps} process {} is {} in {first} and {} in {other}",
        last.first.process,
        place(last.first.to),
        place(last.second.to)
    )
}

fn as_json(
    first: &dyn Subject,
    other: &str,
    passages: Option<u32>,
    comparison: &Comparison,
) -> String {
    let size = first.size();
    let mut verdict = json!({
        "name": format!("equivalent-to:{other}"),
        "holds": comparison.holds,
        "scope": comparison.scope,
    });
    if let Some(difference) = &comparison.difference {
        let trace: Vec<_> = difference
            .steps
            .iter()
            .map(|step| {
                json!({
                    "process": step.first.process,
                    "line": step.first.line,
                    "access": step.first.access,
                    "region": name(step.first.to),
                    "other": {
                        "line": step.second.line,
                        "access": step.second.access,
                        "region": name(step.second.to),
                    },
                })
            })
            .collect();
        let regions = |regions: &[Region]| regions.iter().copied().map(name).collect::<Vec<_>>();
        verdict["shows"] = json!(shows(first, other, difference));
        verdict["steps"] = json!(trace.len());
        verdict["trace"] = json!(trace);
        verdict["regions"] =
            json!({ "first": regions(&difference.first), "other": regions(&difference.second) });
    }
    let seconds = comparison.elapsed.as_secs_f64();
    let mut object = json!({
        "algorithm": first.name(),
        "mutant": first.mutant(),
        "equivalent_to": other,
        "n": size.n,
        "k": size.k,
        "sessions": size.sessions,
        "passages": passages,
        "registers": RegisterKind::Atomic.name(),
        "crashes": 0,
        "complete": comparison.complete,
        "states": comparison.states,
        "transitions": comparison.transitions,
        "depth": comparison.depth,
        "seconds": seconds,
        "states_per_second": comparison.states as f64 / seconds.max(1e-9),
        "total_seconds": seconds,
        "workers": 1,
        "bytes_per_state": comparison.bytes_per_state,
        "relabelled": comparison.relabelled,
        "properties": [verdict],
        "bounds": { "shared_values": comparison.shared_values, "max_register": comparison.max_register },
    });
    if let Some(timestamps) = first.variant() {
        object["timestamps"] = json!(timestamps);
    }
    format!("{object:#}\n")
}

fn as_text(entrant: &Entrant, first: &dyn Subject, other: &str, comparison: &Comparison) -> String {
    let mutant = first.mutant().map_or(String::new(), |name| format!(", mutant {name}"));
    // The scope contains a verdict and the instance that it is about.
    let (scope, instance) = comparison.scope.rsplit_once(": ").unwrap_or((&comparison.scope, ""));
    let timestamps = first.variant().map_or(String::new(), |kind| format!(", {kind} timestamps"));
    let mut text = format!(
        "{}{timestamps}{mutant}: {}, {}; against {other}\n  {instance}\n",
        entrant.name, entrant.claims.paper, entrant.claims.figure
    );
    text.push_str(&format!(
        "  {} states of both together, {} steps, depth {}, in {:.2} s: {}\n\n",
        grouped(comparison.states),
        grouped(comparison.transitions),
        comparison.depth,
        comparison.elapsed.as_secs_f64(),
        if comparison.complete { "complete" } else { "incomplete" },
    ));
    let word = match comparison.holds {
        Some(true) => "holds",
        Some(false) => "VIOLATED",
        None => "unknown",
    };
    text.push_str(&columns(&[vec![format!("equivalent-to:{other}"), word.into(), scope.into()]]));
    if let Some(difference) = &comparison.difference {
        text.push_str(&format!("\nThey differ: {}.\n", shows(first, other, difference)));
        text.push_str(&steps(first.name(), other, difference));
    }
    text
}

/// Formats the steps of both algorithms, side by side.
fn steps(first: &str, other: &str, difference: &Difference) -> String {
    let mut rows = vec![
        ["step", "process", "line", first, "then in", "line", other, "then in"]
            .map(String::from)
            .to_vec(),
    ];
    for (i, step) in difference.steps.iter().enumerate() {
        let mut row = vec![(i + 1).to_string(), step.first.process.to_string()];
        for event in [&step.first, &step.second] {
            row.extend([event.line.to_string(), event.access.clone(), name(event.to)]);
        }
        rows.push(row);
    }
    columns(&rows)
}
