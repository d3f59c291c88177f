//! The tournament of Yang and Anderson 1995, for [`YangAnderson`](super::YangAnderson) and for the
//! lock L of Giakkoupis and Woelfel 2014, where a player's leaf is not its process id.
//!
//! A tournament is made for a maximum number of leaves. A *player* is a process at one of them, and
//! waits on flags that live with that process. Two players must not be at the same leaf.

use crate::{Array, Grid, Homes, Layout, Memory, Registers, Value, one_word, plain_local};

/// What the rival has told a waiting process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Spin {
    Wait,
    Look,
    Go,
}

plain_local!(Spin);

impl Value for Spin {
    one_word!(|spin| spin as u64, |word| match word {
        0 => Self::Wait,
        1 => Self::Look,
        _ => Self::Go,
    });

    fn magnitude(&self) -> u64 {
        0
    }
}

/// The names of a tournament's registers.
pub(super) struct Names {
    pub(super) player: &'static str,
    pub(super) last: &'static str,
    pub(super) spin: &'static str,
}

/// A player: the process `p`, at this leaf.
#[derive(Clone, Copy, Debug)]
pub(super) struct Player {
    pub(super) leaf: usize,
    pub(super) p: usize,
}

/// A tournament, `ALONE` or as a part of another algorithm.
///
/// With `ALONE`, every process has a leaf of its own, the lines are those of `yang_anderson.rs`,
/// and mutants may change them. Otherwise the other algorithm has its own lines and mutants.
#[derive(Debug)]
pub(super) struct Tournament<const ALONE: bool> {
    levels: usize,
    /// C: the process that plays at each side of each node
    player: Grid<Option<u32>>,
    /// T: the process that came last to each node
    last: Array<Option<u32>>,
    /// P: the flags on which each process waits, one for each level if the process is always at the
    /// same leaf, otherwise one for each node
    spin: Grid<Spin>,
}

impl<const ALONE: bool> Tournament<ALONE> {
    /// Creates a tournament of so many leaves for `n` processes.
    pub(super) fn new(layout: &mut Layout, names: &Names, leaves: usize, n: usize) -> Self {
        let leaves = leaves.next_power_of_two();
        let levels = leaves.trailing_zeros() as usize;
        let flags = if ALONE { levels } else { leaves - 1 };
        Self {
            levels,
            player: layout.grid(names.player, leaves, 2, Homes::Nobody, None),
            last: layout.array(names.last, leaves, Homes::Nobody, None),
            spin: layout.grid(names.spin, flags, n, Homes::Column, Spin::Wait),
        }
    }

    /// Plays every node from the leaf up to the root.
    #[inline(always)]
    pub(super) fn enter<M: Registers>(&self, m: &mut M, who: Player) -> Result<(), M::Halt> {
        m.each(0..self.levels, |m, level| self.play(m, who, level))
    }

    /// Leaves every node from the root down to the leaf.
    #[inline(always)]
    pub(super) fn leave<M: Registers>(&self, m: &mut M, who: Player) -> Result<(), M::Halt> {
        if ALONE && m.mutant("leaves-from-the-leaf") {
            return m.each(0..self.levels, |m, level| self.give_up(m, who, level));
        }
        m.each((0..self.levels).rev(), |m, level| self.give_up(m, who, level))
    }

    /// Returns the node that a player plays on a level, and its side there. The root is node 1.
    #[inline(always)]
    fn seat(&self, who: Player, level: usize) -> (usize, usize) {
        let place = (1 << self.levels) + who.leaf;
        (place >> (level + 1), place >> level & 1)
    }

    /// Returns which flag of a process belongs to this node on this level.
    #[inline(always)]
    fn flag(level: usize, v: usize) -> usize {
        if ALONE { level } else { v - 1 }
    }

    #[inline(always)]
    fn line<M: Memory>(m: &mut M, line: u32) {
        if ALONE {
            m.line(line);
        }
    }

    #[inline(always)]
    fn drops<M: Memory>(m: &M, line: u32) -> bool {
        ALONE && m.drops(line)
    }

    #[inline(always)]
    fn play<M: Registers>(&self, m: &mut M, who: Player, level: usize) -> Result<(), M::Halt> {
        let (v, side) = self.seat(who, level);
        let me = Some(who.p as u32);
        let spin = |q| self.spin.at(Self::flag(level, v), q);
        if !Self::drops(m, 1) {
            Self::line(m, 1);
            m.write(self.player.at(v, side), me)?;
        }
        Self::line(m, 2);
        m.write(self.last.at(v), me)?;
        if !Self::drops(m, 3) {
            Self::line(m, 3);
            m.write(spin(who.p), Spin::Wait)?;
        }
        Self::line(m, 4);
        let Some(rival) = m.read(self.player.at(v, 1 - side))? else { return Ok(()) };
        let rival = rival as usize;
        Self::line(m, 5);
        if !m.test(self.last.at(v), |last| last == me)? {
            return Ok(());
        }
        if !Self::drops(m, 6) {
            Self::line(m, 6);
            if m.test(spin(rival), |told| told == Spin::Wait)? {
                m.write(spin(rival), Spin::Look)?;
            }
        }
        Self::line(m, 7);
        m.wait(spin(who.p), |told| told >= Spin::Look)?;
        if Self::drops(m, 8) {
            return Ok(());
        }
        Self::line(m, 8);
        if m.test(self.last.at(v), |last| last == me)? {
            m.wait(spin(who.p), |told| told == Spin::Go)?;
        }
        Ok(())
    }

    #[inline(always)]
    fn give_up<M: Registers>(&self, m: &mut M, who: Player, level: usize) -> Result<(), M::Halt> {
        let (v, side) = self.seat(who, level);
        if !Self::drops(m, 10) {
            Self::line(m, 10);
            m.write(self.player.at(v, side), None)?;
        }
        Self::line(m, 11);
        match m.read(self.last.at(v))? {
            Some(rival) if rival as usize != who.p && !Self::drops(m, 12) => {
                Self::line(m, 12);
                m.write(self.spin.at(Self::flag(level, v), rival as usize), Spin::Go)
            }
            _ => Ok(()),
        }
    }
}
