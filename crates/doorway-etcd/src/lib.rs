//! Doorway's locks across machines, on etcd.

#![deny(unsafe_code)]

mod client;
mod config;
mod error;
pub mod keys;
pub mod proto;
pub mod txn;

use std::fmt;

pub use self::{
    client::{Client, Watch},
    config::Config,
    error::Error,
};

/// What kind of lock it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A semaphore.
    Semaphore,
    /// A mutex.
    Mutex,
    /// A group lock.
    GroupLock,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Semaphore => "semaphore",
            Self::Mutex => "mutex",
            Self::GroupLock => "group lock",
        })
    }
}
