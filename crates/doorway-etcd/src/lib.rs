//! Doorway's locks across machines, on etcd: [`Semaphore`], [`Mutex`] and [`GroupLock`] by name,
//! for clients on any machine.
//!
//! ```no_run
//! # async fn example() -> Result<(), doorway_etcd::Error> {
//! use doorway_etcd::{Config, Store, txn::put};
//! let store = Store::connect(Config::new(["10.0.0.1:2379", "10.0.0.2:2379", "10.0.0.3:2379"])).await?;
//! let gpus = store.semaphore("gpu", 4).await?;
//! let place = gpus.enter().await?;                   // the doorway: one transaction, which fixes the place
//! let permit = place.wait().await?;                  // by a watch, never by polling
//! assert!(permit.slot() < 4);                        // no other holder has this number
//! permit.guarded([put("/result", "42")]).await?;     // takes effect only while the permit holds
//! permit.release().await?;                           // or drop it: then in the background
//! store.close().await?;                              // before the process ends: nothing is left behind
//! # Ok(())
//! # }
//! ```
//!
//! # Promises
//!
//! - **In the store, always:** there are never more holders than slots, each with a slot of its
//!   own, and in a group lock all holders are of one session. Grants are first come, first served
//!   by ticket. The store shows the holders at every revision.
//! - **In processes, while clocks and leases behave.** A client that is cut off or stopped for
//!   longer than its lease lasts holds nothing any more and may not know it. [`Permit::lost`] tells
//!   the client as soon as possible, and [`Permit::guarded`] keeps it from doing harm in the store.
//!   Against harm elsewhere there is the [ticket](Permit::ticket).
//! - A client that is killed loses nothing but itself: its slot or its place is free when its lease
//!   ends.
//! - A client that loses its connection, an endpoint or the leader recovers by itself. A request
//!   that is not answered in time is sent again, to the next endpoint, and a request that arrives
//!   twice or late takes effect once.
//!
//! Without a majority of etcd no place is granted, and no holder loses its slot. All functions have
//! to be called within a tokio runtime, which has to live for as long as the store does.
//!
//! How it works, and what was tested: `docs/distributed.md`.

#![deny(unsafe_code)]

mod admission;
mod cfg;
mod client;
mod config;
mod error;
mod far;
mod hall;
pub mod keys;
mod lease;
mod leave;
mod lock;
mod manage;
mod passage;
mod place;
pub mod proto;
mod replica;
mod status;
mod store;
mod stream;
pub mod txn;

use std::fmt;

pub use self::{
    client::Client,
    config::Config,
    error::Error,
    lock::{GroupLock, Lock, Mutex, Semaphore},
    place::{NotYet, Permit, Place},
    status::{Holder, Status, Waiter},
    store::Store,
    stream::Watch,
};

/// The kind of a lock.
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

/// Compiles and runs the example of the page.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/distributed.md")]
struct Distributed;
