//! L, the lock that keeps the leaders of the two sides apart, with the hand-over from each leader
//! to the next on its side.
//!
//! A leader resigns before it is through with L, so the next one might play L from the same leaf
//! beside it. Therefore it waits for the one before. That one says under its parity (Bit, line 8)
//! that it holds L, and the one after it registers as its heir and looks again: either the holder
//! is through, or it finds its heir and tells it. The flag by which it is told is taken back
//! beforehand, in the heir's own memory. That cannot erase anything: who is told late was told of a
//! time that is over before the holder can hold L again.

use alloc::format;

use super::super::tournament::{Names, Player, Tournament};
use crate::{Array, Grid, Home, Homes, Layout, Register, Registers};

#[derive(Debug)]
pub(super) struct Last {
    lock: Tournament<false>,
    /// A leader is through with L, `[v][p]` for the one that comes after v, with whom it lives
    gone: Grid<bool>,
    sides: [Side; 2],
}

#[derive(Debug)]
struct Side {
    /// Bit
    bit: Register<bool>,
    /// For each parity, the leader that is not yet through with L
    holder: Array<Option<u32>>,
    /// For each parity, who comes after that leader
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

    /// Line 31: the next leader of this side has the other parity.
    #[inline(always)]
    pub(super) fn flip<M: Registers>(&self, m: &mut M, side: u8, bit: bool) -> Result<(), M::Halt> {
        if m.drops(31) {
            return Ok(());
        }
        m.line(31);
        m.write(self.sides[usize::from(side)].bit, !bit)
    }

    /// Line 33: releases L, and tells the leader that comes after on this side, if there is one
    /// yet.
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
