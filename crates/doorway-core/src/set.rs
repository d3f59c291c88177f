//! Sets of processes, as a process carries them through a loop.

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
    /// No process, of `n`.
    #[inline]
    pub fn none(n: usize) -> Self {
        Self(Digits::new(Format::up_to(1, n), 0))
    }

    /// All processes but `p`.
    #[inline]
    pub fn others(p: usize, n: usize) -> Self {
        Self(Digits::new(Format::up_to(1, n), 1)).without(p)
    }

    /// The set without `p`.
    #[inline]
    #[must_use]
    pub fn without(mut self, p: usize) -> Self {
        self.0.set(p, 0);
        self
    }

    /// The set with `p`.
    #[inline]
    #[must_use]
    pub fn with(mut self, p: usize) -> Self {
        self.0.set(p, 1);
        self
    }

    /// Whether `p` is in it.
    #[inline]
    pub fn contains(&self, p: usize) -> bool {
        self.0.get(p) == 1
    }

    /// How many are in it.
    #[inline]
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Whether nobody is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Who is in it, in order.
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
