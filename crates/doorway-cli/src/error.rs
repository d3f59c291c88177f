//! Errors of the command, each in one line that says what to do about it.

use std::{env, io, path::PathBuf, process::ExitCode};

use doorway::shared;
use doorway_lab::{CheckpointError, Fault, Incomparable, trace::TraceError};

use crate::output;

/// Why a command did not do what the user asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The user asked for something that does not exist or does not make sense.
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
        /// What the command tried.
        verb: &'static str,
        /// The file.
        path: PathBuf,
        /// The error that the system reports.
        error: io::Error,
    },
    /// Standard output is gone.
    #[error("cannot write the output: {0}")]
    Output(io::Error),
    /// No port on the loopback.
    #[error("cannot serve a page on 127.0.0.1: {0}")]
    Loopback(io::Error),
    /// The algorithm cannot be run in the lab.
    #[error("this cannot be explored: {0}")]
    Fault(Fault),
    /// A saved search cannot be used.
    #[error("{0}")]
    Checkpoint(CheckpointError),
    /// Neither memory nor disk holds more states.
    #[error("no room for more states: {why}; {kept}")]
    NoRoom {
        /// The error that the system reports.
        why: String,
        /// What became of the states that were found.
        kept: String,
    },
    /// Two algorithms cannot be run side by side.
    #[error("these cannot be compared: {0}")]
    Incomparable(Incomparable),
    /// A named lock that cannot be used as asked.
    #[error(transparent)]
    Named(#[from] shared::Error),
    /// The same on etcd.
    #[cfg(feature = "etcd")]
    #[error(transparent)]
    Etcd(#[from] doorway_etcd::Error),
    /// A command inside a command that holds the lock.
    #[error(
        "{name} is already held by pid {pid}, in whose command this is: it would wait for itself; take another name inside"
    )]
    Nested {
        /// The lock.
        name: String,
        /// The holder.
        pid: i32,
    },
    /// The lock was removed after it was opened and before it was entered.
    #[error("{0} was removed while it was entered; try again")]
    RemovedMeanwhile(PathBuf),
    /// The slot was taken away before the command could begin.
    #[error("the slot was lost before the command could begin; try again")]
    LostSlot,
    /// The command cannot be watched.
    #[error("cannot watch the command: {error}")]
    Supervise {
        /// The error that the system reports.
        error: io::Error,
    },
}

impl Failure {
    /// Returns whether there is no such lock.
    pub(crate) fn is_missing(&self) -> bool {
        match self {
            Self::Named(shared::Error::Missing(_)) => true,
            #[cfg(feature = "etcd")]
            Self::Etcd(doorway_etcd::Error::Missing(_)) => true,
            _ => false,
        }
    }

    /// Returns the exit code of the command; see `doorway run --help`.
    pub(crate) fn exit_code(&self) -> ExitCode {
        use shared::Error::{
            Busy, Damaged, Foreign, Full, Identity, Kind, Lost, Namespace, Namespaces, Slots,
            Stuck, System, Truncated, Version,
        };
        ExitCode::from(match self {
            Self::Named(Lost(_) | Damaged(_) | Truncated { .. })
            | Self::LostSlot
            | Self::RemovedMeanwhile(_) => 69,
            Self::Named(Identity { .. } | System { .. } | Full { .. })
            | Self::Supervise { .. }
            | Self::NoRoom { .. }
            | Self::Checkpoint(CheckpointError::Read { .. } | CheckpointError::Write { .. }) => 71,
            Self::Nested { .. } => 73,
            Self::Named(Busy { .. } | Stuck { .. }) => 75,
            Self::Named(
                Kind { .. }
                | Slots { .. }
                | Foreign { .. }
                | Version { .. }
                | Namespace(_)
                | Namespaces(_),
            ) => 78,
            #[cfg(feature = "etcd")]
            Self::Etcd(error) => on_etcd(error),
            _ => 2,
        })
    }
}

#[cfg(feature = "etcd")]
fn on_etcd(error: &doorway_etcd::Error) -> u8 {
    use doorway_etcd::Error::{
        Busy, Damaged, Kind, Lost, Refused, Removed, Slots, Store, Unreachable,
    };
    match error {
        Lost(_) | Removed(_) | Refused { .. } | Damaged(_) | Unreachable { .. } | Store(_) => 69,
        Busy { .. } => 75,
        Kind { .. } | Slots { .. } => 78,
        _ => 2,
    }
}

/// Reports in one line a command line that could not be parsed; or prints the help that the user
/// asked for.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    use clap::error::ErrorKind;
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    ) {
        // Nothing can be done about help that cannot be shown.
        let _ = error.print();
        let asked = error.kind() != ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
        return ExitCode::from(if asked { 0 } else { 2 });
    }
    let text = error.to_string();
    let mut said = String::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with("Usage:") || line.starts_with("For more information") {
            break;
        }
        match line.strip_prefix("tip: ") {
            // How to pass a flag as a value, which no user needs here.
            Some(tip) if tip.starts_with("to pass") => {}
            Some(tip) => said.extend(["; ", tip]),
            None if line.is_empty() => {}
            None if said.is_empty() => said.push_str(line.strip_prefix("error: ").unwrap_or(line)),
            None => said.extend([" ", line]),
        }
    }
    let advice = if lacks_dashes() {
        "the command comes after `--`: doorway run NAME -- COMMAND"
    } else {
        "try --help"
    };
    output::say(format_args!("{said}; {advice}"));
    ExitCode::from(2)
}

/// Returns whether this is a `doorway run` without the `--` before the command, which users of
/// flock(1) may leave out.
fn lacks_dashes() -> bool {
    let mut words = env::args_os().skip(1);
    words.next().is_some_and(|word| word == "run") && words.all(|word| word != "--")
}
