//! Sets of processes, which a process carries through a loop.

use core::fmt;

use crate::{
    digits::{Digits, Format},
    plain_local,
};

/// A set of processes.
///
/// ```
/// use doorway_core::Set;
/// let set = Set::others(1, 3).without(2);
/// assert_eq!(set.iter().collect::<Vec<_>>(), [0]);
/// assert_eq!(set.len(), 1);
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Set(Digits);

plain_local!(Set);

impl Set {
    /// Returns the empty set, out of `n` processes.
    #[inline]
    pub fn none(n: usize) -> Self {
        Self(Digits::new(Format::up_to(1, n), 0))
    }

    /// Returns the set of all `n` processes but `p`.
    #[inline]
    pub fn others(p: usize, n: usize) -> Self {
        Self(Digits::new(Format::up_to(1, n), 1)).without(p)
    }

    /// Returns the set without `p`.
    #[inline]
    #[must_use]
    pub fn without(mut self, p: usize) -> Self {
        self.0.set(p, 0);
        self
    }

    /// Returns the set with `p`.
    #[inline]
    #[must_use]
    pub fn with(mut self, p: usize) -> Self {
        self.0.set(p, 1);
        self
    }

    /// Returns whether the set contains `p`.
    #[inline]
    pub fn contains(&self, p: usize) -> bool {
        self.0.get(p) == 1
    }

    /// Returns the number of processes in the set.
    #[inline]
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the processes in the set, in order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = usize> + Clone + use<> {
        let set = self.0.clone();
        (0..set.len()).filter(move |&p| set.get(p) == 1)
    }
}

impl fmt::Debug for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
