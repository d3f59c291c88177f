//! Lists of keys, in memory or in files.

use std::{io, ops::Deref, sync::Arc};

use super::{
    pack::Key,
    room::{Lease, Room},
    words::Filed,
};

/// A shorter list is not worth a file.
const SMALL: usize = 1 << 13;

/// Words that are only appended, in memory until memory does not suffice.
#[derive(Default)]
pub(crate) struct List {
    place: Place,
    len: usize,
}

enum Place {
    Memory(Vec<u64>, Option<Lease>),
    Disk(Filed),
}

impl Default for Place {
    fn default() -> Self {
        Self::Memory(Vec::new(), None)
    }
}

impl List {
    /// Reserves space for this many more words.
    pub(crate) fn reserve(&mut self, more: usize, room: &Arc<Room>) -> io::Result<()> {
        let needed = self.len + more;
        match &mut self.place {
            Place::Memory(words, _) if needed <= words.capacity() => return Ok(()),
            Place::Memory(words, lease) => {
                let wanted = needed.max(words.capacity() + words.capacity() / 2).max(64);
                let bytes = (wanted * size_of::<u64>()) as u64;
                // While the words are moved they may exist twice, so the old lease ends after the
                // new one has begun.
                let new = if wanted <= SMALL { Some(None) } else { room.take(bytes).map(Some) };
                if let Some(new) = new
                    && words.try_reserve_exact(wanted - self.len).is_ok()
                {
                    *lease = new;
                    return Ok(());
                }
            }
            Place::Disk(words) if needed <= words.len() => return Ok(()),
            Place::Disk(words) => return words.grow(rounded(needed + needed / 2)),
        }
        self.move_to_disk(needed + needed / 2, room)
    }

    fn move_to_disk(&mut self, words: usize, room: &Arc<Room>) -> io::Result<()> {
        let mut filed = Filed::new(rounded(words), room)?;
        filed[..self.len].copy_from_slice(self.words());
        self.place = Place::Disk(filed);
        Ok(())
    }

    /// Gives memory back, if the list is long enough.
    fn spill(&mut self, room: &Arc<Room>) -> io::Result<()> {
        if matches!(self.place, Place::Memory(..)) && self.len > SMALL {
            self.move_to_disk(self.len, room)?;
        }
        self.seal();
        Ok(())
    }

    /// Gives back what is only needed for appending: no more words will be appended.
    pub(crate) fn seal(&mut self) {
        if let Place::Disk(words) = &mut self.place {
            words.seal();
        }
    }

    /// Appends words for which there is [room](Self::reserve).
    #[inline(always)]
    pub(crate) fn append(&mut self, more: &[u64]) {
        match &mut self.place {
            Place::Memory(words, _) => words.extend_from_slice(more),
            Place::Disk(words) => words[self.len..][..more.len()].copy_from_slice(more),
        }
        self.len += more.len();
    }

    /// Returns all words.
    #[inline(always)]
    pub(crate) fn words(&self) -> &[u64] {
        match &self.place {
            Place::Memory(words, _) => words,
            Place::Disk(words) => &words[..self.len],
        }
    }
}

/// Rounds up to whole pieces: files grow by pieces of this many words.
fn rounded(words: usize) -> usize {
    words.next_multiple_of(1 << 14)
}

/// The keys of one level that one worker has found.
#[derive(Default)]
pub(crate) struct Part<const W: usize>(List);

impl<const W: usize> Part<W> {
    /// Makes a part of keys that have been packed before.
    pub(crate) fn new(list: List) -> Self {
        Self(list)
    }

    /// Makes a part with these keys.
    #[cfg(test)]
    pub(crate) fn of(keys: &[Key<W>], room: &Arc<Room>) -> Self {
        let mut part = Self::default();
        part.reserve(keys.len(), room).expect("there is memory");
        keys.iter().for_each(|key| part.push(key));
        part
    }

    /// Reserves space for this many more keys.
    pub(crate) fn reserve(&mut self, more: usize, room: &Arc<Room>) -> io::Result<()> {
        self.0.reserve(more * W, room)
    }

    /// Appends a key for which there is [room](Self::reserve).
    #[inline(always)]
    pub(crate) fn push(&mut self, key: &Key<W>) {
        self.0.append(key);
    }

    /// Moves the keys to a file, if that gives any memory back.
    pub(crate) fn spill(&mut self, room: &Arc<Room>) -> io::Result<()> {
        self.0.spill(room)
    }

    /// Gives back what is only needed for pushing: no more keys will be pushed.
    pub(crate) fn seal(&mut self) {
        self.0.seal();
    }

    /// Returns the words of all keys.
    pub(crate) fn into_list(self) -> List {
        self.0
    }
}

impl<const W: usize> Deref for Part<W> {
    type Target = [Key<W>];

    #[inline(always)]
    fn deref(&self) -> &[Key<W>] {
        self.0.words().as_chunks().0
    }
}

impl<'a, const W: usize> IntoIterator for &'a Part<W> {
    type Item = &'a Key<W>;
    type IntoIter = std::slice::Iter<'a, Key<W>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list has the same content in memory, in a file, and after a move in the middle.
    #[test]
    fn keys_are_the_same_wherever_they_are() {
        let keys: Vec<Key<3>> = (0..100_000).map(|i| [i, i * i, 7]).collect();
        for limit in [None, Some(1 << 20), Some(0)] {
            let room = Room::new(limit, None);
            let mut part = Part::<3>::default();
            for (i, key) in keys.iter().enumerate() {
                if i % 1000 == 0 {
                    part.reserve(1000, &room).expect("there is a disk");
                }
                part.push(key);
            }
            assert_eq!(room.on_disk() > 0, limit.is_some());
            assert!(room.used() <= room.limit());
            assert!(part[..] == keys[..]);
            part.spill(&room).expect("there is a disk");
            assert!(part[..] == keys[..]);
            assert_eq!(room.used(), 0, "it is on disk");
            drop(part);
            assert_eq!(room.on_disk(), 0);
        }
    }
}
