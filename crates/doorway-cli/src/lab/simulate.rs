//! `doorway lab simulate`.
use crate::{args::Simulate, error::Failure};
use std::process::ExitCode;
pub(crate) fn run(args: &Simulate) -> Result<ExitCode, Failure> {
    let _ = args;
    Ok(ExitCode::SUCCESS)
}
