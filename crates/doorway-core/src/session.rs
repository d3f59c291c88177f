//! Sessions: what a process asks for in a group lock.

use alloc::vec::Vec;
use core::fmt;

use crate::{Request, Size, Value, one_word, plain_local};

/// What a process asks for in a group lock. Processes that ask for the same session may share the
/// critical section; processes that ask for different sessions exclude one another.
///
/// ```
/// use doorway_core::Session;
/// let (mine, other) = (Session(1), Session(2));
/// assert!(mine.admits(Session::NONE) && mine.admits(mine) && !mine.admits(other));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Session(pub u32);

impl Session {
    /// No request.
    pub const NONE: Self = Self(0);

    /// Returns whether `other` does not conflict with this session: the papers' test
    /// `other ∈ {0, mysession}`.
    #[inline(always)]
    #[must_use]
    pub const fn admits(self, other: Self) -> bool {
        other.0 == 0 || other.0 == self.0
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

plain_local!(Session);

impl Value for Session {
    one_word!(|session| u64::from(session.0), |word| Self(word as u32));

    fn magnitude(&self) -> u64 {
        0 // the set of possible sessions is not the algorithm's concern
    }
}

impl Request for Session {
    fn all(size: Size) -> Vec<Self> {
        (1..=size.sessions as u32).map(Self).collect()
    }

    fn session(&self) -> Session {
        *self
    }
}
