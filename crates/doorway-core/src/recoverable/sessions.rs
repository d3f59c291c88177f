//! Numbers for sessions. What a session is called is of no matter to the engine, which compares numbers: a number stands for a session for as
//! long as somebody has asked for it.
//!
//! Every row has a number of its own, under which it comes in through the gate, if the number stands for what it asks for.
//! It stands for that while the gate is open, whoever comes and goes: where nobody is, a number is given another meaning by its own process only,
//! which then takes a ticket; and where somebody is, a ticket has been taken since the gate was open. Who has seen the gate open
//! before that finds another ticket in it.

use core::ops::ControlFlow::{Break, Continue};

use super::{State, Table};
use crate::{Memory, Registers, Session, Set};

/// What is asked for, where sessions have names: what numbers stand for is kept elsewhere.
pub trait Name<M: Memory>: Sync {
    /// Whether this number stands for it.
    ///
    /// # Errors
    /// When the memory halts the process.
    fn is(&self, m: &mut M, number: Session) -> Result<bool, M::Halt>;

    /// Makes this number stand for it, with the guard.
    ///
    /// # Errors
    /// When the memory halts the process.
    fn set(&self, m: &mut M, number: Session) -> Result<(), M::Halt>;
}

/// The number of a row: it never is another's while nobody is there.
#[inline(always)]
pub(super) const fn own_number(row: usize) -> Session {
    Session(row as u32 + 1)
}

impl Table {
    /// What who comes in through the gate with this row has asked for.
    #[inline(always)]
    pub fn number_at_gate(&self, row: usize) -> Session {
        if self.has_sessions { own_number(row) } else { Session(1) }
    }

    /// Whether the number of the row stands for this, so that it may come in through the gate. For [`come`](Self::come).
    ///
    /// # Errors
    /// When the memory halts the process.
    #[inline(always)]
    pub fn stands_for<M: Memory>(&self, m: &mut M, row: usize, name: &impl Name<M>) -> Result<bool, M::Halt> {
        m.line(38);
        Ok(name.is(m, own_number(row))? || m.mutant("comes-for-anything"))
    }

    /// Whether somebody who asks for this would go in at once, with the guard.
    ///
    /// # Errors
    /// When the memory halts the process.
    pub fn admits<M: Registers>(&self, m: &mut M, name: &impl Name<M>) -> Result<bool, M::Halt> {
        let tally = m.read(self.tally)?;
        let welcome = tally.waiting() == 0 && tally.has_room();
        Ok(welcome && (tally.inside() == 0 || !self.has_sessions || name.is(m, tally.session())?))
    }

    /// The number of what is asked for, with the guard: that of those who have asked for the same, or else one that nobody has asked for.
    /// To be followed by [`join`](Self::join) before the guard is given back.
    ///
    /// # Errors
    /// When the memory halts the process.
    #[inline(always)]
    pub fn number<M: Registers>(&self, m: &mut M, row: usize, name: &impl Name<M>) -> Result<Session, M::Halt> {
        if !self.has_sessions {
            return Ok(Session(1));
        }
        m.line(44);
        let tally = m.read(self.tally)?;
        // Mostly somebody who may go in is there, or nobody is.
        if tally.inside() > 0 && name.is(m, tally.session())? {
            return Ok(tally.session());
        }
        let there = tally.inside() + tally.waiting();
        let asked = if there == 0 { Set::none(self.rows) } else { self.asked(m, there)? };
        let same = m.find(asked.iter(), |m, i| {
            m.line(47);
            name.is(m, own_number(i))
        })?;
        if let Some(i) = same {
            return Ok(own_number(i));
        }
        // There are as many numbers as rows, and this row has asked for none; unless somebody has scribbled in the table.
        let own = !asked.contains(row) || m.mutant("numbers-anew");
        let other = (0..self.rows).find(|&i| !asked.contains(i));
        let number = own_number(if own { row } else { other.unwrap_or(row) });
        m.line(48);
        name.set(m, number)?;
        Ok(number)
    }

    /// The numbers that those who wait and hold have asked for: number `i + 1` as `i`. So many are there.
    #[cold]
    #[inline(never)]
    fn asked<M: Registers>(&self, m: &mut M, there: u16) -> Result<Set, M::Halt> {
        let none = (Set::none(self.rows), there);
        let (asked, _) = m.fold_until(0..self.rows, none, |m, (asked, left), i| {
            m.line(45);
            if m.test(self.state.at(i), |state| state == State::Idle)? {
                return Ok(Continue((asked, left)));
            }
            m.line(46);
            let number = m.read(self.asks.at(i))?.0 as usize;
            let asked = if (1..=self.rows).contains(&number) { asked.with(number - 1) } else { asked };
            Ok(if left <= 1 { Break((asked, 0)) } else { Continue((asked, left - 1)) })
        })?;
        Ok(asked)
    }
}
