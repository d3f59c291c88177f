//! Numbers for sessions. The engine compares numbers, not the names of sessions. A number stands
//! for a session for as long as a process holds or waits with it.
//!
//! Every entry has a number of its own. Its owner uses the fast path with this number if the number
//! stands for the session that the owner asks for. The number stands for that session while the
//! fast path is open. While no process holds or waits, only the owner of an entry gives its number
//! another meaning, and then takes a ticket. If a process holds or waits, a ticket has been taken
//! since the fast path was open. A process that saw the fast path open before that finds another
//! ticket in its word.

use core::ops::ControlFlow::{Break, Continue};

use super::{Table, values::State};
use crate::{Memory, Registers, Session, Set};

/// The session that a process asks for. The meaning of numbers is kept outside of the engine.
pub trait Name<M: Memory>: Sync {
    /// Returns whether this number stands for the session.
    ///
    /// # Errors
    /// When the memory halts the process.
    fn is(&self, m: &mut M, number: Session) -> Result<bool, M::Halt>;

    /// Makes this number stand for the session, with the table lock.
    ///
    /// # Errors
    /// When the memory halts the process.
    fn set(&self, m: &mut M, number: Session) -> Result<(), M::Halt>;
}

/// Returns the number of an entry: no other entry has it while no process holds or waits.
#[inline(always)]
pub(super) const fn own_number(entry: usize) -> Session {
    Session(entry as u32 + 1)
}

impl Table {
    /// Returns the number of the session of a process that holds this entry on the fast path.
    #[inline(always)]
    pub fn number_on_fast_path(&self, entry: usize) -> Session {
        if self.has_sessions { own_number(entry) } else { Session(1) }
    }

    /// Returns whether the entry's number stands for this session, so that its owner may use the
    /// fast path. For [`enter_fast`](Self::enter_fast).
    ///
    /// # Errors
    /// When the memory halts the process.
    #[inline(always)]
    pub fn stands_for<M: Memory>(
        &self,
        m: &mut M,
        entry: usize,
        name: &impl Name<M>,
    ) -> Result<bool, M::Halt> {
        m.line(34);
        Ok(name.is(m, own_number(entry))? || m.mutant("enters-for-any-session"))
    }

    /// Returns whether a request for this session would be granted at once, with the table lock.
    ///
    /// # Errors
    /// When the memory halts the process.
    pub fn admits<M: Registers>(&self, m: &mut M, name: &impl Name<M>) -> Result<bool, M::Halt> {
        let tally = m.read(self.tally)?;
        let welcome = tally.waiting() == 0 && tally.has_room();
        Ok(welcome && (tally.inside() == 0 || !self.has_sessions || name.is(m, tally.session())?))
    }

    /// Returns the number of the requested session, with the table lock: the number of the holders
    /// and waiters that have asked for the same session, or else a number that no holder or waiter
    /// has. The caller calls [`enter`](Self::enter) before it releases the table lock.
    ///
    /// # Errors
    /// When the memory halts the process.
    #[inline(always)]
    pub fn number<M: Registers>(
        &self,
        m: &mut M,
        entry: usize,
        name: &impl Name<M>,
    ) -> Result<Session, M::Halt> {
        if !self.has_sessions {
            return Ok(Session(1));
        }
        m.line(46);
        let tally = m.read(self.tally)?;
        // Usually the holders have the same session, or there are no holders.
        if tally.inside() > 0 && name.is(m, tally.session())? {
            return Ok(tally.session());
        }
        let present = tally.inside() + tally.waiting();
        let asked = if present == 0 { Set::none(self.entries) } else { self.asked(m, present)? };
        let same = m.find(asked.iter(), |m, i| {
            m.line(49);
            name.is(m, own_number(i))
        })?;
        if let Some(i) = same {
            return Ok(own_number(i));
        }
        // There are as many numbers as entries, and this entry has asked for none. Only a damaged
        // table differs.
        let own = !asked.contains(entry) || m.mutant("takes-its-own-number");
        let other = (0..self.entries).find(|&i| !asked.contains(i));
        let number = own_number(if own { entry } else { other.unwrap_or(entry) });
        m.line(49);
        name.set(m, number)?;
        Ok(number)
    }

    /// Returns the numbers that the holders and waiters have asked for: number `i + 1` as `i`.
    /// `present` entries hold or wait.
    #[cold]
    #[inline(never)]
    fn asked<M: Registers>(&self, m: &mut M, present: u16) -> Result<Set, M::Halt> {
        let used = self.read_used(m)?;
        let none = (Set::none(self.entries), present);
        let (asked, _) = m.fold_until(0..used, none, |m, (asked, left), i| {
            m.line(47);
            if m.test(self.state.at(i), |state| state == State::Idle)? {
                return Ok(Continue((asked, left)));
            }
            m.line(48);
            let number = m.read(self.session.at(i))?.0 as usize;
            let asked =
                if (1..=self.entries).contains(&number) { asked.with(number - 1) } else { asked };
            Ok(if left <= 1 { Break((asked, 0)) } else { Continue((asked, left - 1)) })
        })?;
        Ok(asked)
    }
}
