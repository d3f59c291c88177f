//! Namespaces of the processes of a lock, as numbers in its file.

use std::{
    os::fd::BorrowedFd,
    sync::atomic::{AtomicU64, Ordering::SeqCst},
};

use doorway_core::engines::named_lock::Owner;
use rustix::io::Errno;

use super::{NAMESPACE, witness};

/// A PID namespace together with a time namespace, as the number of its word in the file of a lock.
/// The word has the inodes of both. The kernel gives an inode to another namespace only when no
/// process is left in the first one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) struct Namespace(pub(in super::super) usize);

/// How many namespaces a file has room for at the same time: the rest of its first page.
pub(in super::super) const MOST: usize = 496;
const _: () = assert!(MOST <= 1 << NAMESPACE);

/// The inode of the PID namespace that the system begins with: `PROC_PID_INIT_INO` of the kernel.
const INITIAL: u64 = 0xefff_fffc;

impl Namespace {
    /// Returns the namespace of an owner.
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

    /// Returns the number of a namespace, which no process gives to another one while the
    /// description of `fd` is open. `None` if other processes keep all numbers.
    ///
    /// `is_known` tells whether a process of a number may live that does not keep it; see
    /// [`witness`]. The description must not keep any number for another process: it could not tell
    /// that number from a free one.
    ///
    /// # Errors
    /// When the file system has no byte-range locks.
    pub(super) fn register(
        words: &[AtomicU64],
        fd: BorrowedFd<'_>,
        packed: u64,
        is_known: impl Fn(Self) -> bool,
    ) -> Result<Option<Self>, Errno> {
        for (number, word) in words.iter().enumerate() {
            let found = match word.load(SeqCst) {
                0 => word
                    .compare_exchange(0, packed, SeqCst, SeqCst)
                    .map_or_else(|found| found, |_| packed),
                found => found,
            };
            if found == packed && Self(number).keep(fd, word, packed)? {
                return Ok(Some(Self(number)));
            }
        }
        for (number, word) in words.iter().enumerate() {
            if Self(number).take_over(fd, word, packed, &is_known)? {
                return Ok(Some(Self(number)));
            }
        }
        Ok(None)
    }

    /// Keeps a number that the namespace has. Fails if another process takes the number over.
    fn keep(self, fd: BorrowedFd<'_>, word: &AtomicU64, packed: u64) -> Result<bool, Errno> {
        if !witness::keep_number(fd, self)? {
            return Ok(false);
        }
        // Asked again: until here the number could be taken over.
        let is_kept = word.load(SeqCst) == packed;
        if !is_kept {
            witness::release_number(fd, self);
        }
        Ok(is_kept)
    }

    /// Takes the number of a namespace that has no process left. A killed process leaves the old
    /// word or the new one.
    fn take_over(
        self,
        fd: BorrowedFd<'_>,
        word: &AtomicU64,
        packed: u64,
        is_known: &impl Fn(Self) -> bool,
    ) -> Result<bool, Errno> {
        if !witness::claim_number(fd, self)? {
            return Ok(false);
        }
        // No process keeps the number now, and so none adds a process that does not keep it.
        let is_taken = !is_known(self) && {
            word.store(packed, SeqCst);
            witness::keep_number(fd, self)?
        };
        if !is_taken {
            witness::release_number(fd, self);
        }
        Ok(is_taken)
    }

    pub(super) fn is_registered(self, words: &[AtomicU64]) -> bool {
        words.get(self.0).is_some_and(|word| word.load(SeqCst) != 0)
    }

    /// Returns whether processes of several namespaces use the lock, or may well do so: a lock
    /// that is used in a container is meant to be used in other containers, too.
    pub(super) fn are_several(words: &[AtomicU64]) -> bool {
        let is_used_elsewhere = |word: &AtomicU64| !matches!(word.load(SeqCst) >> 32, 0 | INITIAL);
        words.iter().any(is_used_elsewhere)
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsFd, OwnedFd};

    use super::*;

    /// Opens a file anew, as another process would.
    fn open(file: &tempfile::NamedTempFile) -> OwnedFd {
        file.reopen().expect("it is there").into()
    }

    fn packed(pids: usize) -> u64 {
        Namespace::pack([pids as u64 + 1, 7]).expect("it fits")
    }

    #[test]
    fn a_namespace_keeps_its_number_while_a_process_keeps_it() {
        let file = tempfile::NamedTempFile::new().expect("it is made");
        let words: Vec<AtomicU64> = (0..4).map(|_| AtomicU64::new(0)).collect();
        let register = |fd: &OwnedFd, pids, known: &[usize]| {
            let is_known = |number: Namespace| known.contains(&number.0);
            Namespace::register(&words, fd.as_fd(), packed(pids), is_known)
                .expect("it has locks")
                .map(|it| it.0)
        };
        let mut fds: Vec<_> = (0..4).map(|_| open(&file)).collect();
        for (pids, fd) in fds.iter().enumerate() {
            assert_eq!(register(fd, pids, &[]), Some(pids));
            assert_eq!(register(fd, pids, &[]), Some(pids), "the same process again");
            assert_eq!(
                register(&open(&file), pids, &[]),
                Some(pids),
                "another process, which ends at once"
            );
        }
        assert_eq!(register(&open(&file), 4, &[]), None, "all are kept");
        // The processes of two namespaces end, but for one that does not keep its number.
        fds.drain(1..3);
        assert_eq!(register(&open(&file), 4, &[1, 2]), None);
        let fifth = open(&file);
        assert_eq!(register(&fifth, 4, &[1]), Some(2));
        assert_eq!(register(&open(&file), 5, &[1]), None, "the fifth keeps it");
        assert_eq!(register(&open(&file), 2, &[]), Some(1), "it has to have a new number");
        assert_eq!(Namespace::pack([1 << 32, 0]), Err(Errno::OVERFLOW));
    }

    /// Between reading the word and locking the byte, another process takes the number over.
    #[test]
    fn a_number_that_was_taken_over_meanwhile_is_not_kept() {
        let file = tempfile::NamedTempFile::new().expect("it is made");
        let (word, late, other) = (AtomicU64::new(packed(0)), open(&file), open(&file));
        let number = Namespace(0);
        assert_eq!(number.take_over(other.as_fd(), &word, packed(1), &|_| false), Ok(true));
        assert_eq!(number.keep(late.as_fd(), &word, packed(0)), Ok(false));
        drop(other);
        assert_eq!(
            number.take_over(open(&file).as_fd(), &word, packed(2), &|_| false),
            Ok(true),
            "it let go"
        );
    }

    #[test]
    fn the_first_namespace_of_the_system_is_no_container() {
        let words = [AtomicU64::new(INITIAL << 32 | 1), AtomicU64::new(0)];
        assert!(!Namespace::are_several(&words));
        words[1].store((INITIAL + 99) << 32 | 1, SeqCst);
        assert!(Namespace::are_several(&words));
    }
}
