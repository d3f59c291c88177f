//! Sessions by name: what the numbers that the engine gives them stand for.

use std::sync::atomic::Ordering::Relaxed;

use doorway_core::{Memory, Session, recoverable::Name};

use super::{
    Lock,
    file::{File, NAME},
};

/// What is asked for.
pub(super) struct Called<'a> {
    file: &'a File,
    /// Nothing, where there are no sessions.
    name: [u64; NAME],
}

impl<'a> Called<'a> {
    #[inline(always)]
    pub(super) fn new(file: &'a File, name: &str) -> Self {
        let mut bytes = [0; NAME * 8];
        let length = name.len().min(NAME * 8);
        bytes[..length].copy_from_slice(&name.as_bytes()[..length]);
        let words = bytes.as_chunks().0;
        Self { file, name: std::array::from_fn(|i| u64::from_le_bytes(words[i])) }
    }
}

/// Who reads a name without the guard may see half of one that is being written. Then it does not come in through the gate: that has another ticket
/// by then.
impl<M: Memory> Name<M> for Called<'_> {
    #[inline(always)]
    fn is(&self, _: &mut M, number: Session) -> Result<bool, M::Halt> {
        let words = self.file.name(number.0 as usize).unwrap_or_default();
        // All of them: that is faster than to look after each whether that was enough.
        let different =
            words.iter().zip(self.name).fold(0, |different, (word, own)| different | word.load(Relaxed) ^ own);
        Ok(words.len() == NAME && different == 0)
    }

    #[inline(always)]
    fn set(&self, _: &mut M, number: Session) -> Result<(), M::Halt> {
        let words = self.file.name(number.0 as usize).unwrap_or_default();
        words.iter().zip(self.name).for_each(|(word, own)| word.store(own, Relaxed));
        Ok(())
    }
}

impl Lock {
    /// The name of a session, if there can be such a number.
    pub(super) fn session_name(&self, number: usize) -> Option<String> {
        let words = self.file.name(number)?;
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.load(Relaxed).to_le_bytes()).collect();
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }
}
