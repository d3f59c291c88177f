//! Where a lock is in the store. Everything about the lock `gpu` is under `/doorway/gpu/`:
//!
//! | key | value |
//! |---|---|
//! | `cfg` | kind, slots, whether it is drained |
//! | `q/<lease>-<seat>` | a place in line: the session, empty where there are none. Its `create_revision` is the ticket |
//! | `s/<slot>` | the place that holds this slot, and since when (ms since 1970) |
//! | `a/<lease>-<seat>` | about whose place it is: host, pid, command, since when |
//! | `c/<lease>-<seat>` | its version counts the passages and guarded writes of this seat |
//! | `t` | the last place that entered, unless it has left. Its `mod_revision` is the ticket of that place |
//!
//! All but `cfg` are on the lease of the client whose they are. A client has one lease, and a seat
//! for each place that it has at a time. Seats are used again. Whoever holds a slot has its place
//! in line as well: both go in one transaction, or with the lease, at one revision.
//!
//! The names are such that `cfg`, `q/` and `s/`, and nothing else, are one range, for one watch.
//!
//! If `t` is there, the place that it names is in line: both are on one lease, and the place
//! deletes `t` when it leaves.

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
        let fits = (1..=200).contains(&name.len())
            && !name.starts_with('.')
            && !name.contains(['/', '\0']);
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

    /// Whose places they are.
    pub fn notes(&self) -> String {
        format!("{}a/", self.0)
    }

    /// Whose place it is.
    pub fn note(&self, place: &str) -> String {
        format!("{}a/{place}", self.0)
    }

    /// The last place that entered.
    pub fn last(&self) -> String {
        format!("{}t", self.0)
    }

    /// Where the range of `cfg`, the line and the slots ends. It begins with `cfg`.
    pub fn end(&self) -> String {
        format!("{}s0", self.0)
    }
}
