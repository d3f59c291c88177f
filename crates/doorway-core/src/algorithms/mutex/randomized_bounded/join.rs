//! How a process gets into the backpack of a leader, and how it leaves the backpack again.

use super::{
    Pass, RandomizedBounded, Side,
    values::{Place, Said, Stat},
};
use crate::{Register, Registers, algorithms::mutex::randomized::Elect};

impl<const FAIR: bool, E: Sync> RandomizedBounded<FAIR, E> {
    /// Lines 22 to 29: tries to get in with a leader.
    #[inline(always)]
    pub(super) fn join<M: Registers>(
        &self,
        m: &mut M,
        p: usize,
        side: u8,
        leader: u32,
    ) -> Result<Option<Pass>, M::Halt>
    where
        E: Elect<M, u32>,
    {
        let s = &self.sides[usize::from(side)];
        let open =
            |m: &mut M, w: u32| m.test(self.said.at(w as usize), |said| said == Said::Wants(side));
        if !m.drops(22) {
            m.line(22);
            m.write(self.said.at(p), Said::Joins { side, w: leader })?;
        }
        let w = m.scope(|m| {
            if m.drops(23) {
                return Ok(Some(leader));
            }
            m.line(23);
            let now = s.leader.leader(m)?;
            if now != Some(leader) {
                let instead = now.map_or(Said::Done, |w| Said::Joins { side, w });
                m.write(self.said.at(p), instead)?;
                if !m.mutant("leaves-without-a-word") {
                    self.flip(m, s, p, leader)?;
                }
            }
            Ok(now)
        })?;
        let Some(w) = w else { return Ok(None) };
        let mine = s.place(w, p);
        m.line(24);
        let place = m.scope(|m| self.next(m, mine))?;
        let seen = m.scope(|m| {
            if !m.mutant("looks-once") && !open(m, w)? {
                return Ok(false);
            }
            m.write(mine, place.with(Stat::Trying))?;
            m.line(25);
            Ok(open(m, w)? && (m.mutant("trusts-the-backpack") || s.leader.leader(m)? == Some(w)))
        })?;
        if seen {
            m.line(26);
            m.write(mine, place.with(Stat::Waiting))?;
            m.line(27);
            m.wait(self.promoted.at(p), |promoted| promoted)?;
            return Ok(Some(Pass::Promoted { side, by: w, place }));
        }
        m.line(29);
        self.give_up(m, p, mine, place)?;
        Ok(None)
    }

    /// Takes back in A that `p` joins a leader, and then writes `place` to its place in the
    /// backpack.
    #[inline(always)]
    pub(super) fn give_up<M: Registers>(
        &self,
        m: &mut M,
        p: usize,
        mine: Register<Place>,
        place: Place,
    ) -> Result<(), M::Halt> {
        if m.mutant("takes-it-back-late") {
            m.write(mine, place)?;
            return m.write(self.said.at(p), Said::Done);
        }
        if !m.mutant("never-takes-it-back") {
            m.write(self.said.at(p), Said::Done)?;
        }
        m.write(mine, place)
    }

    /// Lets `w` see that `p` does not join it after all.
    #[inline(always)]
    fn flip<M: Registers>(&self, m: &mut M, s: &Side<E>, p: usize, w: u32) -> Result<(), M::Halt> {
        m.scope(|m| {
            let place = self.next(m, s.place(w, p))?;
            m.write(s.place(w, p), place)
        })
    }

    /// Returns what a place will hold when its process has nothing to do with the backpack any
    /// more.
    #[inline(always)]
    fn next<M: Registers>(&self, m: &mut M, mine: Register<Place>) -> Result<Place, M::Halt> {
        let place = m.read(mine)?;
        Ok(if m.mutant("keeps-its-bit") { place.with(Stat::Done) } else { place.flipped() })
    }
}
