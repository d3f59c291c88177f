//! Names of sessions, for the numbers that the engine gives them.
//!
//! A name is eight words: its bytes, zeros, and in the last byte its length. Two names are the same
//! if their last words are the same, and their other words as far as the length says.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use doorway_core::{Memory, Session, engines::named_lock::Name};

use super::{
    Lock,
    file::{File, NAME},
};

/// The most bytes of a name.
pub(super) const LONGEST: usize = NAME * 8 - 1;

/// The session that a process asks for.
pub(super) struct Called<'a> {
    file: &'a File,
    /// Empty in locks without sessions.
    name: &'a [u8],
}

impl<'a> Called<'a> {
    #[inline(always)]
    pub(super) fn new(file: &'a File, name: &'a str) -> Self {
        Self { file, name: &name.as_bytes()[..name.len().min(LONGEST)] }
    }

    /// Returns the words of a number, if it is in range.
    #[inline(always)]
    fn words(&self, number: Session) -> Option<&'a [AtomicU64; NAME]> {
        self.file.name(number.0 as usize)?.try_into().ok()
    }

    #[inline(always)]
    fn word(&self, i: usize) -> u64 {
        let length = if i == NAME - 1 { (self.name.len() as u64) << 56 } else { 0 };
        word(self.name, i) | length
    }
}

/// Returns the bytes from `8 i` on, and zeros. They are read in few pieces and put together in a
/// register: a word that is written byte by byte and read as a whole makes processors wait.
#[inline(always)]
fn word(bytes: &[u8], i: usize) -> u64 {
    let Some(rest @ [first, ..]) = bytes.get(8 * i..) else { return 0 };
    if let Some(whole) = rest.first_chunk() {
        return u64::from_le_bytes(*whole);
    }
    let count = rest.len();
    match (rest.first_chunk(), rest.last_chunk()) {
        // Where they overlap they are the same.
        (Some(low), Some(high)) => {
            u64::from(u32::from_le_bytes(*low))
                | u64::from(u32::from_le_bytes(*high)) << (8 * (count - 4))
        }
        _ => {
            let byte = |at: usize| u64::from(rest[at]) << (8 * at);
            u64::from(*first) | byte(count / 2) | byte(count - 1)
        }
    }
}

/// A process that reads a name without the table lock may see half of one that is being written.
/// Then it does not enter on the fast path: that has another ticket by then.
impl<M: Memory> Name<M> for Called<'_> {
    #[inline(always)]
    fn is(&self, _: &mut M, number: Session) -> Result<bool, M::Halt> {
        let Some(words) = self.words(number) else { return Ok(false) };
        let same = |i: usize| words[i].load(Relaxed) == self.word(i);
        Ok(same(NAME - 1) && (0..self.name.len().div_ceil(8).min(NAME - 1)).all(same))
    }

    #[inline(always)]
    fn set(&self, _: &mut M, number: Session) -> Result<(), M::Halt> {
        if let Some(words) = self.words(number) {
            (0..NAME).for_each(|i| words[i].store(self.word(i), Relaxed));
        }
        Ok(())
    }
}

impl Lock {
    /// Returns the name of a session, if the number is in range.
    pub(super) fn session_name(&self, number: usize) -> Option<String> {
        let words = self.file.name(number)?;
        let mut bytes: Vec<u8> =
            words.iter().flat_map(|word| word.load(Relaxed).to_le_bytes()).collect();
        let length = bytes.pop()?;
        bytes.truncate(length.into());
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_bytes_and_zeros() {
        let bytes: Vec<u8> = (1..=LONGEST as u8).collect();
        for length in 0..=LONGEST {
            let mut padded = [0; NAME * 8];
            padded[..length].copy_from_slice(&bytes[..length]);
            for i in 0..NAME {
                let expected = u64::from_le_bytes(
                    padded[8 * i..8 * i + 8].try_into().expect("these are eight"),
                );
                assert_eq!(word(&bytes[..length], i), expected, "{length} bytes, word {i}");
            }
        }
    }
}
