//! What went wrong, in one line that says what to do about it.

use std::{io, path::PathBuf, process::ExitCode};

use doorway_lab::{Fault, trace::TraceError};

/// Why a command did not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// Asked for something that does not exist or does not make sense.
    #[error("{0}")]
    Usage(String),
    /// A trace that cannot be replayed.
    #[error("{path}: {error}", path = .path.display())]
    Trace {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        error: TraceError,
    },
    /// A file that cannot be read or written.
    #[error("cannot {verb} {path}: {error}", path = .path.display())]
    File {
        /// What was tried.
        verb: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// Standard output is gone.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
    /// The algorithm cannot be run in the lab.
    #[error("this cannot be explored: {0}")]
    Fault(Fault),
}

impl Failure {
    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        match self {
            // Whoever closed the pipe has seen enough.
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => 0,
            _ => 2,
        }
    }
}

/// Reports a command line that could not be understood, in one line.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    use clap::error::ErrorKind;
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    ) {
        let shown = error.print().is_ok();
        let asked = error.kind() != ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
        return ExitCode::from(if shown && asked { 0 } else { 2 });
    }
    let text = error.to_string();
    let mut parts: Vec<&str> = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with("Usage:") || line.starts_with("For more information") {
            break;
        }
        if !line.is_empty() {
            parts.push(line.strip_prefix("error: ").unwrap_or(line));
        }
    }
    eprintln!("doorway: {}; try --help", parts.join(" "));
    ExitCode::from(2)
}
