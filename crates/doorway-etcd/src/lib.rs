//! Doorway's locks across machines, on etcd.

#![deny(unsafe_code)]

mod admission;
mod cfg;
mod client;
mod config;
mod error;
mod hall;
pub mod keys;
mod lease;
mod lock;
mod manage;
mod passage;
mod place;
pub mod proto;
mod status;
mod store;
pub mod txn;

use std::fmt;

pub use self::{
    client::{Client, Watch},
    config::Config,
    error::Error,
    lock::{GroupLock, Lock, Mutex, Semaphore},
    place::{NotYet, Permit, Place},
    status::{Holder, Status, Waiter},
    store::Store,
};

/// What kind of lock it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A [`Semaphore`].
    Semaphore,
    /// A [`Mutex`].
    Mutex,
    /// A [`GroupLock`].
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
