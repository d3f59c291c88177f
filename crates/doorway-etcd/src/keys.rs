//! Where a lock is in the store. Everything about the lock `gpu` is under `/doorway/gpu/`:
//!
//! | key | on a lease | value |
//! |---|---|---|
//! | `cfg` | no | kind, slots, whether it is drained |
//! | `q/<lease>-<seat>` | yes | a place in line: the session, empty where there are none. Its `create_revision` is the ticket |
//! | `s/<slot>` | yes | the place that holds this slot, and since when |
//! | `c/<lease>-<seat>` | yes | counts (by its version) what this seat has done since it was new, except for entering |
//! | `n/<lease>-<seat>` | yes | whose place it is: host, pid, command, since when |
//!
//! A client has one lease, and a seat for each place that it has at a time. Seats are used again. Whoever holds a slot has its place in line as
//! well: both go in one transaction, or with the lease, at one revision.

use crate::Error;

/// Under which all locks are.
pub const ROOT: &str = "/doorway/";

/// The most slots that there can be.
pub(crate) const MOST: usize = 1 << 20;

/// Where one lock is.
#[derive(Clone, Debug)]
pub struct Keys(String);

impl Keys {
    /// Those of the lock of that name.
    ///
    /// # Errors
    /// When that is no name.
    pub fn new(name: &str) -> Result<Self, Error> {
        let fits = (1..=200).contains(&name.len()) && !name.starts_with('.') && !name.contains(['/', '\0']);
        if fits { Ok(Self(format!("{ROOT}{name}/"))) } else { Err(Error::Name(name.into())) }
    }

    /// All of them begin so.
    pub fn all(&self) -> &str {
        &self.0
    }

    /// The lock's name.
    pub fn name(&self) -> &str {
        &self.0[ROOT.len()..self.0.len() - 1]
    }

    /// Kind, slots, whether it is drained.
    pub fn cfg(&self) -> String {
        format!("{}cfg", self.0)
    }

    /// The line.
    pub fn line(&self) -> String {
        format!("{}q/", self.0)
    }

    /// A place in line.
    pub fn place(&self, place: &str) -> String {
        format!("{}q/{place}", self.0)
    }

    /// The slots.
    pub fn slots(&self) -> String {
        format!("{}s/", self.0)
    }

    /// A slot.
    pub fn slot(&self, slot: usize) -> String {
        format!("{}s/{slot}", self.0)
    }

    /// What a seat has done.
    pub fn count(&self, place: &str) -> String {
        format!("{}c/{place}", self.0)
    }

    /// The notes.
    pub fn notes(&self) -> String {
        format!("{}n/", self.0)
    }

    /// Whose place it is.
    pub fn note(&self, place: &str) -> String {
        format!("{}n/{place}", self.0)
    }
}
