//! Namespaces of the processes of a lock, as numbers in its file.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use doorway_core::engines::named_lock::Owner;
use rustix::io::Errno;

use super::NAMESPACE;

/// A PID namespace together with a time namespace, as the number of its word in the file of a lock. The word has the
/// inodes of both. The kernel gives an inode to another namespace only when no process is left in the first one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) struct Namespace(pub(in super::super) usize);

/// How many a file has room for: the rest of its first page.
pub(in super::super) const MOST: usize = 496;
const _: () = assert!(MOST <= 1 << NAMESPACE);

/// The inode of the PID namespace that the system begins with: `PROC_PID_INIT_INO` of the kernel.
const INITIAL: u64 = 0xefff_fffc;

impl Namespace {
    /// Returns that of an owner.
    pub(super) fn of(owner: Owner) -> Self {
        Self((owner.life() & ((1 << NAMESPACE) - 1)) as usize)
    }

    /// Puts the inodes of the PID and the time namespace into one word.
    ///
    /// # Errors
    /// `EOVERFLOW` if they do not fit: then two namespaces might look alike.
    pub(super) fn pack([pids, times]: [u64; 2]) -> Result<u64, Errno> {
        match (u32::try_from(pids), u32::try_from(times)) {
            (Ok(pids @ 1..), Ok(times)) => Ok(u64::from(pids) << 32 | u64::from(times)),
            _ => Err(Errno::OVERFLOW),
        }
    }

    /// Returns the number of a namespace; gives it one if it has none. `None` if all numbers are in use.
    pub(super) fn register(words: &[AtomicU64], packed: u64) -> Option<Self> {
        let is_mine = |word: &AtomicU64| match word.load(SeqCst) {
            0 => word.compare_exchange(0, packed, SeqCst, SeqCst).map_or_else(|found| found == packed, |_| true),
            found => found == packed,
        };
        words.iter().position(is_mine).map(Self)
    }

    pub(super) fn is_registered(self, words: &[AtomicU64]) -> bool {
        words.get(self.0).is_some_and(|word| word.load(SeqCst) != 0)
    }

    /// Whether processes of several namespaces use the lock, or may well do so: one that is used in a container is made to
    /// be used in others, too.
    pub(super) fn are_several(words: &[AtomicU64]) -> bool {
        let is_used_elsewhere = |word: &AtomicU64| !matches!(word.load(SeqCst) >> 32, 0 | INITIAL);
        words.iter().any(is_used_elsewhere)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_keeps_its_number_until_all_are_in_use() {
        let words: Vec<AtomicU64> = (0..MOST).map(|_| AtomicU64::new(0)).collect();
        let packed = |i: u64| Namespace::pack([i + 1, 7]).expect("it fits");
        for round in 0..2 {
            for i in 0..MOST {
                assert_eq!(Namespace::register(&words, packed(i as u64)), Some(Namespace(i)), "round {round}");
            }
        }
        assert_eq!(Namespace::register(&words, packed(MOST as u64)), None);
        assert_eq!(Namespace::pack([1 << 32, 0]), Err(Errno::OVERFLOW));
    }

    #[test]
    fn the_first_namespace_of_the_system_is_no_container() {
        let words = [AtomicU64::new(INITIAL << 32 | 1), AtomicU64::new(0)];
        assert!(!Namespace::are_several(&words));
        words[1].store((INITIAL + 99) << 32 | 1, SeqCst);
        assert!(Namespace::are_several(&words));
    }
}
