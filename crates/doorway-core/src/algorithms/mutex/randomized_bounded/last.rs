//! L, the lock that keeps the leaders of the two sides apart, with the hand-over from each leader
//! to the next leader of its side.
//!
//! A leader resigns before it is through with L, so the next leader of its side might play L from
//! the same leaf at the same time. Therefore the next leader waits for the previous leader. The
//! previous leader announces under its parity (Bit, line 8) that it holds L. The next leader
//! registers as the heir of this holder and looks again. Either the holder is through with L, or it
//! finds its heir and tells it by a flag. The heir takes the flag back beforehand, in its own
//! memory. That cannot erase anything that matters: a late message is about a time that is over
//! before the holder can hold L again.

use alloc::format;

use super::super::tournament::{Names, Player, Tournament};
use crate::{Array, Grid, Home, Homes, Layout, Register, Registers};

#[derive(Debug)]
pub(super) struct Last {
    lock: Tournament<false>,
    /// `[v][p]`: tells p, the leader after v, that v is through with L; lives with p
    gone: Grid<bool>,
    sides: [Side; 2],
}

#[derive(Debug)]
struct Side {
    /// Bit
    bit: Register<bool>,
    /// For each parity, the leader that is not yet through with L
    holder: Array<Option<u32>>,
    /// For each parity, the next leader of this side after that leader
    heir: Array<Option<u32>>,
}

impl Last {
    pub(super) fn new(layout: &mut Layout, n: usize) -> Self {
        let side = |layout: &mut Layout, s: usize| Side {
            bit: layout.register(&format!("Bit{s}"), Home::Nobody, false),
            holder: layout.array(&format!("Holder{s}"), 2, Homes::Nobody, None),
            heir: layout.array(&format!("Heir{s}"), 2, Homes::Nobody, None),
        };
        Self {
            lock: Tournament::new(layout, &Names { player: "L.C", last: "L.T", spin: "L.P" }, 2, n),
            gone: layout.grid("Gone", n, n, Homes::Column, false),
            sides: [side(layout, 0), side(layout, 1)],
        }
    }

    /// Lines 8 and 9: takes L. Returns the parity under which `p` holds it.
    #[inline(always)]
    pub(super) fn take<M: Registers>(
        &self,
        m: &mut M,
        p: usize,
        side: u8,
    ) -> Result<bool, M::Halt> {
        let s = &self.sides[usize::from(side)];
        m.line(8);
        let bit = m.read(s.bit)?;
        let (mine, before) = (usize::from(bit), usize::from(!bit));
        m.line(9);
        m.write(s.holder.at(mine), Some(p as u32))?;
        m.scope(|m| {
            let Some(last) = m.read(s.holder.at(before))? else { return Ok(()) };
            let gone = self.gone.at(last as usize, p);
            m.write(gone, false)?;
            m.write(s.heir.at(before), Some(p as u32))?;
            if m.test(s.holder.at(before), |holder| holder.is_some())? {
                m.wait(gone, |gone| gone)?;
            }
            m.write(s.heir.at(before), None)
        })?;
        self.lock.enter(m, Player { leaf: usize::from(side), p })?;
        Ok(bit)
    }

    /// Line 31: gives the next leader of this side the other parity.
    #[inline(always)]
    pub(super) fn flip<M: Registers>(&self, m: &mut M, side: u8, bit: bool) -> Result<(), M::Halt> {
        if m.drops(31) {
            return Ok(());
        }
        m.line(31);
        m.write(self.sides[usize::from(side)].bit, !bit)
    }

    /// Line 33: releases L, and tells the next leader of this side, if there is one yet.
    #[inline(always)]
    pub(super) fn release<M: Registers>(
        &self,
        m: &mut M,
        p: usize,
        side: u8,
        bit: bool,
    ) -> Result<(), M::Halt> {
        let (s, mine) = (&self.sides[usize::from(side)], usize::from(bit));
        m.line(33);
        self.lock.leave(m, Player { leaf: usize::from(side), p })?;
        m.write(s.holder.at(mine), None)?;
        match m.read(s.heir.at(mine))? {
            Some(heir) => m.write(self.gone.at(p, heir as usize), true),
            None => Ok(()),
        }
    }
}
