//! `doorway lab replay`.

use std::{fs, io::Write, process::ExitCode};

use doorway_lab::trace::Trace;

use super::steps::steps;
use crate::{args::Replay, error::Failure, table::columns};

/// Longer files are not traces of ours.
const MAX_BYTES: u64 = 256 << 20;

/// Runs the command.
pub(crate) fn run(args: &Replay) -> Result<ExitCode, Failure> {
    let path = &args.file;
    let failed = |error| Failure::File { verb: "read", path: path.clone(), error };
    let meta = fs::metadata(path).map_err(failed)?;
    if meta.len() > MAX_BYTES {
        return Err(Failure::Usage(format!("{}: {} bytes are too many for a trace", path.display(), meta.len())));
    }
    let text = fs::read_to_string(path).map_err(failed)?;
    let foreign = |error| Failure::Trace { path: path.clone(), error };
    let trace = Trace::parse(&text).map_err(foreign)?;
    let replayed = trace.replay().map_err(foreign)?;
    let mutant = trace.mutant.as_ref().map_or(String::new(), |name| format!(", mutant {name}"));
    let mut out = format!(
        "{}{mutant}: n = {}, k = {}, {} registers, {} steps\n",
        trace.algorithm,
        trace.n,
        trace.k,
        trace.registers,
        trace.steps.len()
    );
    out.push_str(&steps(&trace));
    let registers: Vec<Vec<String>> = replayed.registers.into_iter().map(|(name, value)| vec![name, value]).collect();
    out.push_str("\nRegisters at the end\n");
    out.push_str(&columns(&registers));
    for (step, property) in &replayed.violations {
        out.push_str(&format!("\nStep {} violates {property}.\n", step + 1));
    }
    if let Some(property) = &trace.property {
        out.push_str(&format!("\nIt shows that {property} is violated: {}.\n", trace.shows));
    }
    std::io::stdout().write_all(out.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
