//! Sessions by name: each has a number for as long as somebody asks for it.

use std::sync::atomic::Ordering::Relaxed;

use doorway_core::{Registers, Session, recoverable::State};

use super::{
    Lock,
    file::NAME,
    memory::{Mapped, Stop},
};

impl Lock {
    /// The number of a session, with the guard.
    #[inline(always)]
    pub(super) fn session(&self, m: &mut Mapped<'_>, name: Option<&str>) -> Result<Session, Stop> {
        match name {
            None => Ok(Session(1)),
            Some(name) => self.number(m, name),
        }
    }

    /// The number of those who have asked for the session, or one that nobody has.
    pub(super) fn number(&self, m: &mut Mapped<'_>, name: &str) -> Result<Session, Stop> {
        let table = self.file.table();
        let tally = m.read(table.tally())?;
        let mut asked = Vec::new();
        if tally.waiting() > 0 || tally.inside() > 0 {
            for row in 0..table.rows() {
                if m.read(table.state(row))? != State::Idle {
                    asked.push(m.read(table.asks(row))?.0);
                }
            }
            asked.sort_unstable();
            asked.dedup();
        }
        if let Some(&number) = asked.iter().find(|&&number| self.session_name(number as usize).as_deref() == Some(name))
        {
            return Ok(Session(number));
        }
        // There are as many numbers as rows, and this process's row has none.
        let number = (1..).find(|number| !asked.contains(number)).ok_or(Stop::Damaged)?;
        let words = self.file.name(number as usize).ok_or(Stop::Damaged)?;
        let mut bytes = [0; NAME * 8];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        for (word, eight) in words.iter().zip(bytes.chunks_exact(8)) {
            word.store(u64::from_le_bytes(eight.try_into().expect("these are eight")), Relaxed);
        }
        Ok(Session(number))
    }

    /// The name of a session, if there can be such a number.
    pub(super) fn session_name(&self, number: usize) -> Option<String> {
        let words = self.file.name(number)?;
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.load(Relaxed).to_le_bytes()).collect();
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }
}
