//! Starvation freedom: leaders also serve, one after the other, the processes that keep finding
//! backpacks closed.
//!
//! A process that has failed once announces that it *needs* help. `Next` names the process whose
//! turn it is, and only the holder of L changes it. A process that finds its own name there
//! *stays*: it announces on which side, and does not leave that side before it has been inside. A
//! leader of that side waits until the process is in the backpack. When a leader has resigned, it
//! tells the process that stays. So that process need not try again and again while a backpack is
//! closed.
//!
//! A leader goes on to the next process only if the process whose turn it is needs no help. The
//! leader announces that first (`ending`) and looks once more, so that no process can stay in a
//! turn that has just ended.

use super::values::{Help, Turn};
use crate::{Array, Home, Homes, Layout, Register, Registers};

#[derive(Debug)]
pub(super) struct Turns {
    n: usize,
    /// What each process asks for; lives with it.
    help: Array<Help>,
    /// The process whose turn it is.
    next: Register<Turn>,
    /// Whether a leader has resigned since the process took its flag back; lives with that process.
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

    /// Announces that `p` needs help.
    pub(super) fn ask<M: Registers>(&self, m: &mut M, p: usize) -> Result<(), M::Halt> {
        m.write(self.help.at(p), Help::Needs)
    }

    /// Returns whether it is the turn of `p`, which needs help. If so, `p` now stays on this side.
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

    /// Takes back the flag of `p`, which stays, before its attempt: later resignations count.
    pub(super) fn listen<M: Registers>(&self, m: &mut M, p: usize) -> Result<(), M::Halt> {
        m.write(self.told.at(p), false)
    }

    /// Waits until a leader has resigned, after a failed attempt of `p`, which stays. The leader
    /// that `p` met has not resigned yet, or will have told `p`.
    pub(super) fn rest<M: Registers>(&self, m: &mut M, p: usize) -> Result<(), M::Halt> {
        if m.mutant("does-not-rest") {
            return Ok(());
        }
        m.wait(self.told.at(p), |told| told)
    }

    /// Takes back the request of `p`, which leads or has been promoted. `stayed`: did `p` stay?
    pub(super) fn thanks<M: Registers>(
        &self,
        m: &mut M,
        p: usize,
        stayed: bool,
    ) -> Result<(), M::Halt> {
        m.write(self.help.at(p), Help::No)?;
        if stayed {
            m.write(self.told.at(p), false)?; // for fewer states: `listen` comes before any read
        }
        Ok(())
    }

    /// Returns the process for which a leader of this side, which holds L, has to wait, if any.
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

    /// Goes on to the next process, if the process whose turn it is needs no help. The caller is a
    /// leader that holds L and has promoted the processes that were waiting.
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

    /// Tells the process that stays on this side that a leader has resigned. The caller is that
    /// leader and still holds L.
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
