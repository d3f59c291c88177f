//! What can go wrong with a named lock, and what to do about it.

use std::{io, path::PathBuf};

use super::{Kind, liveness::MOST_NAMESPACES};

/// What went wrong, with which file, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The name cannot be that of a file.
    #[error(
        "{0:?} is no name for a lock: take 1 to 200 bytes without `/`, not beginning with a dot"
    )]
    Name(String),
    /// The session's name is too long, or empty.
    #[error("{0:?} is no name for a session: take 1 to 63 bytes")]
    Session(String),
    /// There is no such lock.
    #[error("{0}: there is no such lock; `doorway run` makes it")]
    Missing(PathBuf),
    /// Another user could put files into the directory.
    #[error(
        "{path}: {why}; take a directory of your own, mode 0700, or one of the group's, mode 0770"
    )]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The file is not one that may be trusted.
    #[error("{path}: {why}; remove it if nobody needs it, or take another name")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The file is shorter or longer than it says.
    #[error("{path} has {found} bytes and should have {expected}: remove it when nobody uses it")]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Its size.
        found: u64,
        /// What its size should be.
        expected: u64,
    },
    /// The file has another version.
    #[error(
        "{path} is of version {found}, and this is version {known}: take the program that made it, or remove it"
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The version of this program.
        known: u32,
    },
    /// The content of the file is impossible: another program has written into it.
    #[error("{0} is damaged, somebody has written into it: stop its users, remove it")]
    Damaged(PathBuf),
    /// The lock is of another kind.
    #[error("{path} is a {found} and not a {asked}: take another name, or `doorway rm` it first")]
    Kind {
        /// The file.
        path: PathBuf,
        /// What it is.
        found: Kind,
        /// What was asked for.
        asked: Kind,
    },
    /// The lock has another number of slots.
    #[error(
        "{path} has {found} slots and not {asked}: ask for {found}, or `doorway set --slots {asked}` it first"
    )]
    Slots {
        /// The file.
        path: PathBuf,
        /// How many it has.
        found: usize,
        /// How many were asked for.
        asked: usize,
    },
    /// The lock cannot have that many slots.
    #[error(
        "{path} cannot have {asked} slots: take 1 to {most}, or remove it and make it with a larger capacity"
    )]
    TooMany {
        /// The file.
        path: PathBuf,
        /// How many were asked for.
        asked: usize,
        /// The most slots it can have.
        most: usize,
    },
    /// A lock cannot have room for that many processes.
    #[error("DOORWAY_CAPACITY is {asked:?}: take a number from 1 to {most}")]
    Capacity {
        /// What was asked for.
        asked: String,
        /// The most that there can be.
        most: usize,
    },
    /// All entries of the process table are taken.
    #[error("{path} is full: {entries} processes hold or wait already; try again later")]
    Full {
        /// The file.
        path: PathBuf,
        /// How many entries it has.
        entries: usize,
    },
    /// The file has been removed under its users.
    #[error("{0} has been removed under its users: the lock is lost; open it again")]
    Lost(PathBuf),
    /// The place or permit belongs to the process that forked this one.
    #[error("{0}: a place or a permit is not inherited by fork: enter again")]
    Forked(PathBuf),
    /// `/proc` shows the processes of another PID namespace: it does not tell which processes of
    /// this one are dead.
    #[error(
        "{0}: /proc shows the processes of another PID namespace; mount that of this one (mount -t proc proc /proc, \
         unshare --mount-proc)"
    )]
    Namespace(PathBuf),
    /// Processes of too many namespaces use the lock at the same time.
    #[error("{0}: {max} containers use this lock already: start fewer at the same time, or split them among several locks", max = MOST_NAMESPACES)]
    Namespaces(PathBuf),
    /// This process cannot be identified: other processes would take it for dead.
    #[error(
        "{path}: this process cannot be identified ({source}); mount /proc, raise the limit of open files (ulimit -n), or \
         take a directory on a local file system"
    )]
    Identity {
        /// The lock's file.
        path: PathBuf,
        /// Why `/proc` does not identify it.
        source: io::Error,
    },
    /// A stopped process holds the table lock, which all operations need for an instant.
    #[error(
        "{path}: process {pid} holds the table lock and does not go on; continue it (kill -CONT {pid}) or kill it"
    )]
    Stuck {
        /// The file.
        path: PathBuf,
        /// The process.
        pid: i32,
    },
    /// Processes hold slots or wait.
    #[error(
        "{path} is in use: {holders} hold and {waiting} wait; `doorway drain` it, and try again when they have gone"
    )]
    Busy {
        /// The file.
        path: PathBuf,
        /// How many processes hold slots.
        holders: usize,
        /// How many processes wait.
        waiting: usize,
    },
    /// The system denies permission.
    #[error(
        "{0}: permission denied; ask its owner, or take another directory with --dir or DOORWAY_DIR"
    )]
    Permission(PathBuf),
    /// The system reports an error.
    #[error("{path}: {source}")]
    System {
        /// The file.
        path: PathBuf,
        /// The error that the system reports.
        source: io::Error,
    },
}

impl Error {
    /// Creates the error for what the system reports about a file.
    pub(super) fn system(path: impl Into<PathBuf>, errno: rustix::io::Errno) -> Self {
        let path = path.into();
        match errno {
            rustix::io::Errno::ACCESS | rustix::io::Errno::PERM => Self::Permission(path),
            errno => Self::System { path, source: errno.into() },
        }
    }

    /// Creates the error for a process that cannot be identified.
    pub(super) fn identity(path: impl Into<PathBuf>, errno: rustix::io::Errno) -> Self {
        Self::Identity { path: path.into(), source: errno.into() }
    }
}
