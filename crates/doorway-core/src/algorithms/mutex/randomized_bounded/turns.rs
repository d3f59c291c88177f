//! Freedom from starvation: leaders also serve, one after the other, those who keep finding
//! backpacks closed.
//!
//! Who has failed once says that it *needs* help. `Next` names the process whose turn it is, and
//! only the holder of L changes it. Who finds its own name there *stays*: it says on which side,
//! and does not leave that side before it has been inside. A leader of that side waits until it is
//! in the backpack. And when a leader has resigned it tells the one who stays, so that this one
//! need not try again and again while a backpack is closed.
//!
//! A leader goes on to the next only if the process whose turn it is needs no help; it says so
//! first (`ending`) and looks once more, so that nobody can stay in a turn that has just ended.

use super::values::{Help, Turn};
use crate::{Array, Home, Homes, Layout, Register, Registers};

#[derive(Debug)]
pub(super) struct Turns {
    n: usize,
    /// What each process asks for; lives with it.
    help: Array<Help>,
    /// Whose turn it is.
    next: Register<Turn>,
    /// A leader has resigned since this was taken back; lives with who is told.
    told: Array<bool>,
}

impl Turns {
    pub(super) fn new(layout: &mut Layout, n: usize) -> Self {
        Self {
            n,
            help: layout.array("Help", n, Homes::Column, Help::No),
            next: layout.register("Next", Home::Nobody, Turn { of: 0, ending: false }),
            told: layout.array("Told", n, Homes::Column, false),
        }
    }

    /// Says that `p` needs help.
    pub(super) fn ask<M: Registers>(&self, m: &mut M, p: usize) -> Result<(), M::Halt> {
        m.write(self.help.at(p), Help::Needs)
    }

    /// Whether it is the turn of `p`, who needs help and now stays on this side.
    pub(super) fn stays<M: Registers>(
        &self,
        m: &mut M,
        p: usize,
        side: u8,
    ) -> Result<bool, M::Halt> {
        let mine = Turn { of: p as u32, ending: false };
        let stays = m.test(self.next, |turn| turn == mine)?;
        if stays {
            m.write(self.help.at(p), Help::Stays(side))?;
        }
        Ok(stays)
    }

    /// Before an attempt of `p`, who stays: from now on it counts who resigns.
    pub(super) fn listen<M: Registers>(&self, m: &mut M, p: usize) -> Result<(), M::Halt> {
        m.write(self.told.at(p), false)
    }

    /// After an attempt in vain of `p`, who stays: the leader that it met has not resigned yet, or
    /// will have told.
    pub(super) fn rest<M: Registers>(&self, m: &mut M, p: usize) -> Result<(), M::Halt> {
        if m.mutant("does-not-rest") {
            return Ok(());
        }
        m.wait(self.told.at(p), |told| told)
    }

    /// `p`, who has asked and perhaps stayed, leads or has been promoted.
    pub(super) fn thanks<M: Registers>(
        &self,
        m: &mut M,
        p: usize,
        stayed: bool,
    ) -> Result<(), M::Halt> {
        m.write(self.help.at(p), Help::No)?;
        if stayed {
            m.write(self.told.at(p), false)?; // nobody looks at it until it is taken back again: for fewer states
        }
        Ok(())
    }

    /// A leader of this side, who has L: the process to wait for, if there is one.
    pub(super) fn guest<M: Registers>(&self, m: &mut M, side: u8) -> Result<Option<u32>, M::Halt> {
        if m.mutant("waits-for-no-guest") {
            return Ok(None);
        }
        m.scope(|m| {
            let turn = m.read(self.next)?;
            let stays = m.test(self.help.at(turn.of as usize), |help| help == Help::Stays(side))?;
            Ok(stays.then_some(turn.of))
        })
    }

    /// A leader, who has L and has promoted who was waiting: goes on to the next, if the last one
    /// needs no help.
    pub(super) fn advance<M: Registers>(&self, m: &mut M) -> Result<(), M::Halt> {
        if m.mutant("turns-never-end") {
            return Ok(());
        }
        m.scope(|m| {
            let turn = m.read(self.next)?;
            let help = self.help.at(turn.of as usize);
            if !m.test(help, |help| help == Help::No)? {
                return Ok(());
            }
            let over = m.mutant("ends-turns-at-once") || {
                m.write(self.next, Turn { ending: true, ..turn })?;
                m.test(help, |help| help == Help::No)?
            };
            let of = if over { (turn.of + 1) % self.n as u32 } else { turn.of };
            m.write(self.next, Turn { of, ending: false })
        })
    }

    /// A leader of this side, who has resigned and still has L.
    pub(super) fn tell<M: Registers>(&self, m: &mut M, side: u8) -> Result<(), M::Halt> {
        if m.mutant("tells-nobody") {
            return Ok(());
        }
        m.scope(|m| {
            let of = m.read(self.next)?.of as usize;
            if m.test(self.help.at(of), |help| help == Help::Stays(side))? {
                m.write(self.told.at(of), true)?;
            }
            Ok(())
        })
    }
}
