//! `doorway lab replay`.

use std::process::ExitCode;

use doorway_core::Size;
use doorway_lab::{trace::Trace, viewer::Film};

use super::{check::write_film, steps::steps};
use crate::{
    args::lab::Replay,
    error::Failure,
    output::{one_line, print, read},
    table::columns,
};

/// Runs the command.
pub(crate) fn run(args: &Replay) -> Result<ExitCode, Failure> {
    let foreign = |error| Failure::Trace { path: args.file.clone(), error };
    let trace = Trace::parse(&read(&args.file)?).map_err(foreign)?;
    let replayed = trace.replay().map_err(foreign)?;
    if let Some(page) = &args.html {
        write_film(page, &trace, Film::page)?;
    }
    if let Some(picture) = &args.svg {
        write_film(picture, &trace, Film::svg)?;
    }
    let mutant = trace.mutant.as_ref().map_or(String::new(), |name| format!(", mutant {name}"));
    let mut out = format!(
        "{}{mutant}: {}, {} registers, {} steps\n",
        trace.algorithm,
        Size { n: trace.n, k: trace.k, sessions: trace.sessions },
        trace.registers,
        trace.steps.len()
    );
    out.push_str(&steps(&trace));
    let registers: Vec<Vec<String>> =
        replayed.registers.into_iter().map(|(name, value)| vec![name, value]).collect();
    out.push_str("\nRegisters at the end\n");
    out.push_str(&columns(&registers));
    if let Some(property) = &trace.property {
        out.push_str(&format!("\n{property} is violated: {}.\n", one_line(&trace.shows)));
    }
    print(&out)?;
    Ok(ExitCode::SUCCESS)
}
