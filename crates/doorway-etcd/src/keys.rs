//! Where a lock is in the store. Everything about the lock `gpu` is under `/doorway/gpu/`:
//!
//! | key | value |
//! |---|---|
//! | `cfg` | kind, slots, whether it is drained |
//! | `q/<lease>-<seat>` | a place in the queue: the session, empty where there are none. Its `create_revision` is the ticket |
//! | `s/<slot>` | the place that holds this slot, and since when (ms since 1970) |
//! | `a/<lease>-<seat>` | the process behind the place: host, pid, command, since when |
//! | `c/<lease>-<seat>` | its version counts the passages and guarded writes of this seat |
//! | `t` | the last place that entered, unless it has left. Its `mod_revision` is the ticket of that place |
//!
//! All keys but `cfg` are on the lease of the client that wrote them. A client has one lease, and a
//! seat for each place that it has at a time. Seats are reused. A holder of a slot has its place in
//! the queue as well: both are deleted in one transaction, or with the lease, at one revision.
//!
//! The names are such that `cfg`, `q/` and `s/`, and no other keys, are one range, for one watch.
//!
//! If `t` is there, the place that it names is in the queue: both are on one lease, and the place
//! deletes `t` when it leaves.

use crate::Error;

/// The prefix of all locks.
pub const ROOT: &str = "/doorway/";

/// The most slots that a lock can have.
pub(crate) const MOST: usize = 1 << 20;

/// The keys of one lock.
#[derive(Clone, Debug)]
pub struct Keys(String);

impl Keys {
    /// Returns the keys of the lock with this name.
    ///
    /// # Errors
    /// When that is not a valid name.
    pub fn new(name: &str) -> Result<Self, Error> {
        let fits = (1..=200).contains(&name.len())
            && !name.starts_with('.')
            && !name.contains(['/', '\0']);
        if fits { Ok(Self(format!("{ROOT}{name}/"))) } else { Err(Error::Name(name.into())) }
    }

    /// Returns the prefix of all keys of the lock.
    pub fn all(&self) -> &str {
        &self.0
    }

    /// Returns the lock's name.
    pub fn name(&self) -> &str {
        &self.0[ROOT.len()..self.0.len() - 1]
    }

    /// Returns the key of the lock spec: kind, slots, whether it is drained.
    pub fn cfg(&self) -> String {
        format!("{}cfg", self.0)
    }

    /// Returns the prefix of the queue.
    pub fn line(&self) -> String {
        format!("{}q/", self.0)
    }

    /// Returns the key of a place in the queue.
    pub fn place(&self, place: &str) -> String {
        format!("{}q/{place}", self.0)
    }

    /// Returns the prefix of the slots.
    pub fn slots(&self) -> String {
        format!("{}s/", self.0)
    }

    /// Returns the key of a slot.
    pub fn slot(&self, slot: usize) -> String {
        format!("{}s/{slot}", self.0)
    }

    /// Returns the key of the counter of a seat.
    pub fn count(&self, place: &str) -> String {
        format!("{}c/{place}", self.0)
    }

    /// Returns the prefix of the notes about processes.
    pub fn notes(&self) -> String {
        format!("{}a/", self.0)
    }

    /// Returns the key of the note about the process behind a place.
    pub fn note(&self, place: &str) -> String {
        format!("{}a/{place}", self.0)
    }

    /// Returns the key that names the last place that entered.
    pub fn last(&self) -> String {
        format!("{}t", self.0)
    }

    /// Returns the end of the range of `cfg`, the queue and the slots, which begins with `cfg`.
    pub fn end(&self) -> String {
        format!("{}s0", self.0)
    }
}
