//! The command line of locks on etcd. The endpoints have no default, in the environment either: the
//! same command is to mean the same lock in a shell, in cron and under sudo.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use rustix::process::Signal;
use signal_hook::low_level::signal_name;

use super::named::duration;

/// Where the store is, and how one is known there.
#[derive(Default, PartialEq, Debug, Args)]
#[command(next_help_heading = "Locks across machines")]
pub(crate) struct Etcd {
    /// Locks on etcd, not of this machine: members of one cluster, HOST:PORT or https://…
    #[arg(id = "etcd", long, value_name = "ENDPOINT[,…]", value_delimiter = ',', conflicts_with_all = ["dir", "group"])]
    pub(crate) endpoints: Vec<String>,
    /// TLS: who signs the certificates of the servers (PEM); default: as the system says
    #[arg(long, value_name = "FILE", requires = "etcd")]
    pub(crate) etcd_ca: Option<PathBuf>,
    /// TLS: a certificate of one's own (PEM)
    #[arg(long, value_name = "FILE", requires = "etcd", requires = "etcd_key")]
    pub(crate) etcd_cert: Option<PathBuf>,
    /// TLS: its key (PEM)
    #[arg(long, value_name = "FILE", requires = "etcd", requires = "etcd_cert")]
    pub(crate) etcd_key: Option<PathBuf>,
    /// The user; the password is in --etcd-password-file or $DOORWAY_ETCD_PASSWORD
    #[arg(long, value_name = "NAME", requires = "etcd")]
    pub(crate) etcd_user: Option<String>,
    /// The file with the user's password
    #[arg(long, value_name = "FILE", requires = "etcd", requires = "etcd_user")]
    pub(crate) etcd_password_file: Option<PathBuf>,
}

/// What becomes of a command whose lock is on etcd.
#[derive(PartialEq, Debug, Args)]
#[command(next_help_heading = "Locks across machines")]
pub(crate) struct Lease {
    /// For how long etcd keeps the lock without a word from here; default: 10s
    #[arg(long, value_name = "DUR", value_parser = ttl, requires = "etcd")]
    pub(crate) ttl: Option<Duration>,
    /// What the command is sent when the lock is lost
    #[arg(long, value_name = "SIG", value_parser = signal, requires = "etcd", default_value = "TERM")]
    pub(crate) lost_signal: Signal,
    /// How long after that it is killed
    #[arg(long, value_name = "DUR", value_parser = duration, requires = "etcd", default_value = "5s")]
    pub(crate) lost_grace: Duration,
}

/// Where no flag is.
impl Default for Lease {
    fn default() -> Self {
        Self { ttl: None, lost_signal: Signal::TERM, lost_grace: Duration::from_secs(5) }
    }
}

/// etcd counts in seconds.
fn ttl(text: &str) -> Result<Duration, String> {
    let ttl = duration(text)?;
    let fits = (1..=86_400).contains(&ttl.as_secs()) && ttl.subsec_nanos() == 0;
    if fits { Ok(ttl) } else { Err("take whole seconds, from 1s to 1d".into()) }
}

/// `TERM`, `SIGTERM` or `15`.
fn signal(text: &str) -> Result<Signal, String> {
    let name = text.strip_prefix("SIG").unwrap_or(text);
    let is_meant = |number: &i32| {
        name == number.to_string()
            || signal_name(*number).and_then(|name| name.strip_prefix("SIG")) == Some(name)
    };
    let number = (1..32).find(is_meant).and_then(Signal::from_named_raw);
    number.ok_or_else(|| "take the name or the number of a signal: TERM, INT, 15".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_read() {
        for text in ["TERM", "SIGTERM", "15"] {
            assert_eq!(signal(text), Ok(Signal::TERM), "{text}");
        }
        for text in ["", "SIG", "term", "0", "64", "LUCK", "-9"] {
            assert!(signal(text).is_err(), "{text}");
        }
    }

    #[test]
    fn leases_last_whole_seconds() {
        assert_eq!(ttl("1m"), Ok(Duration::from_secs(60)));
        for text in ["0", "500ms", "1.5s", "2d", "long"] {
            assert!(ttl(text).is_err(), "{text}");
        }
    }
}
