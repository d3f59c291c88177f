//! The queue of waiting entries: a list, in the order of their tickets. All operations need the
//! table lock.

use core::ops::ControlFlow::{Break, Continue};

use super::{
    Mortal, Table,
    values::{Ends, Link},
};
use crate::Registers;

impl Table {
    /// Appends an entry at the back.
    pub(super) fn append<M: Registers>(&self, m: &mut M, entry: usize) -> Result<(), M::Halt> {
        m.line(44);
        let ends = m.read(self.ends)?;
        let mut front = ends.front;
        match ends.back.entry() {
            Some(back) => m.write(self.next.at(back), Link::to(entry))?,
            None => front = Link::to(entry),
        }
        m.line(45);
        m.write(self.ends, Ends { front, back: Link::to(entry) })
    }

    /// Removes an entry. Returns the entry that was behind it.
    #[inline(always)]
    pub(super) fn unlink<M: Registers + Mortal>(
        &self,
        m: &mut M,
        entry: usize,
    ) -> Result<Option<usize>, M::Halt> {
        m.line(83);
        let ends = m.read(self.ends)?;
        let next = m.read(self.next.at(entry))?;
        m.line(84);
        if ends.front == Link::to(entry) {
            m.write(
                self.ends,
                if next == Link::NONE { Ends::default() } else { Ends { front: next, ..ends } },
            )?;
        } else {
            self.unlink_behind(m, ends, entry, next)?;
        }
        if next != Link::NONE {
            m.write(self.next.at(entry), Link::NONE)?;
        }
        Ok(next.entry())
    }

    #[cold]
    #[inline(never)]
    fn unlink_behind<M: Registers + Mortal>(
        &self,
        m: &mut M,
        ends: Ends,
        entry: usize,
        next: Link,
    ) -> Result<(), M::Halt> {
        let (at, found) = m.fold_until(0..self.entries, (ends.front, false), |m, (at, _), _| {
            let Some(before) = at.entry() else { return Ok(Break((at, false))) };
            m.line(86);
            let link = m.read(self.next.at(before))?;
            Ok(if link == Link::to(entry) { Break((at, true)) } else { Continue((link, false)) })
        })?;
        // Only in a damaged table is the entry not in the queue.
        let Some(before) = at.entry().filter(|_| found) else { return Ok(()) };
        m.line(87);
        m.write(self.next.at(before), next)?;
        if ends.back == Link::to(entry) {
            m.line(88);
            m.write(self.ends, Ends { back: at, ..ends })?;
        }
        Ok(())
    }
}
