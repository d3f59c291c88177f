//! What can go wrong with a lock on etcd, and what to do about it.

use std::{io, path::PathBuf};

use crate::Kind;

/// What went wrong, with which lock or store, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The name cannot be that of a lock.
    #[error(
        "{0:?} is no name for a lock: take 1 to 200 bytes without `/`, not beginning with a dot"
    )]
    Name(String),
    /// The session's name is too long, or empty; or a lock without sessions was asked for one, or a
    /// group lock for none.
    #[error("{0:?} is no session here: a group lock wants one of 1 to 63 bytes, other locks none")]
    Session(String),
    /// There is no such lock.
    #[error("{0}: there is no such lock in this store; `doorway run` makes it")]
    Missing(String),
    /// The lock is of another kind.
    #[error("{name} is a {found} and not a {asked}: take another name, or `doorway rm` it first")]
    Kind {
        /// The lock.
        name: String,
        /// What it is.
        found: Kind,
        /// What was asked for.
        asked: Kind,
    },
    /// The lock has another number of slots.
    #[error(
        "{name} has {} and not {}: ask for {0}, or `doorway set --slots{}` it first",
        count(.found), count(.asked), .asked.map(|slots| format!(" {slots}")).unwrap_or_default()
    )]
    Slots {
        /// The lock.
        name: String,
        /// How many it has; `None`: any number.
        found: Option<usize>,
        /// How many were asked for; `None`: any number.
        asked: Option<usize>,
    },
    /// The lock cannot have that many slots.
    #[error("{name} cannot have {asked} slots: take 1 to {most}")]
    TooMany {
        /// The lock.
        name: String,
        /// How many were asked for.
        asked: usize,
        /// The most slots it can have.
        most: usize,
    },
    /// Processes hold slots or wait.
    #[error(
        "{name} is in use: {holders} hold and {waiting} wait; `doorway drain` it, and try again when they have gone"
    )]
    Busy {
        /// The lock.
        name: String,
        /// How many processes hold slots.
        holders: usize,
        /// How many processes wait.
        waiting: usize,
    },
    /// The lock has been removed since it was opened.
    #[error("{0} has been removed since it was opened: open it again")]
    Removed(String),
    /// The content of the store under the lock's name is not what Doorway writes.
    #[error(
        "{0} is damaged, somebody has written into it: stop its users, delete its keys with etcdctl"
    )]
    Damaged(String),
    /// The lease has ended, or may have ended, and with it the place or the slot.
    #[error(
        "{0} is lost: etcd has not heard from here for as long as the lease lasts, or somebody deleted it; enter again"
    )]
    Lost(String),
    /// A guarded write did not take place, because another client held the slot already, or none
    /// did.
    #[error(
        "{name}: the write was refused and nothing is written: ticket {ticket} holds no more; enter again"
    )]
    Refused {
        /// The lock.
        name: String,
        /// The ticket that no longer holds.
        ticket: u64,
    },
    /// No endpoint answers.
    #[error(
        "no etcd answers at {endpoints} ({why}): start it, or give the right endpoints, and the right CA, certificate and key"
    )]
    Unreachable {
        /// The endpoints that were asked.
        endpoints: String,
        /// The error of the last endpoint.
        why: String,
    },
    /// An endpoint is not valid.
    #[error("{0:?} is no endpoint: write HOST:PORT, http://HOST:PORT or https://HOST:PORT")]
    Endpoint(String),
    /// The password is wrong, or there is no such user.
    #[error(
        "etcd knows no user {0:?} with this password: correct the password file or DOORWAY_ETCD_PASSWORD"
    )]
    Password(String),
    /// A user is given without a password.
    #[error(
        "there is no password for the user {0:?}: give a password file, or set DOORWAY_ETCD_PASSWORD"
    )]
    NoPassword(String),
    /// etcd requires a user.
    #[error(
        "etcd at {0} lets nobody in without a user: give one, and its password by file or DOORWAY_ETCD_PASSWORD"
    )]
    Login(String),
    /// The user lacks permission.
    #[error(
        "etcd denies this user the locks: `etcdctl role grant-permission ROLE readwrite --prefix=true {0}`"
    )]
    Permission(String),
    /// A file with a certificate, a key or a password cannot be read.
    #[error("{path}: {source}; give a file that can be read")]
    File {
        /// The file.
        path: PathBuf,
        /// The error that the system reports.
        source: io::Error,
    },
    /// A certificate or a key is not usable.
    #[error(
        "TLS cannot be set up ({0}): give https endpoints, and the CA, the certificate and the key as PEM files"
    )]
    Tls(String),
    /// etcd reports an error.
    #[error("etcd says {0:?}")]
    Store(String),
}

fn count(slots: &Option<usize>) -> String {
    match slots {
        Some(1) => "1 slot".into(),
        Some(slots) => format!("{slots} slots"),
        None => "any number of slots".into(),
    }
}
