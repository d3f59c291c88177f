//! Steps that have been made before, and how they are learned.

use doorway_core::{RegisterKind, Session};

use super::{
    Event, Machine,
    learned::{Learned, NONE, NOT_IN_VAIN, State},
};
use crate::{
    fault::Fault,
    replay::Kind,
    subject::{LocalState, Move, Stepped},
};

impl Machine<'_> {
    /// Returns whether steps are remembered.
    #[inline]
    pub(super) fn remembers(&self) -> bool {
        self.remember && self.cut && self.kind == RegisterKind::Atomic
    }

    /// Makes the move of process `p` with this index. After that, [`last`](Self::last) returns the
    /// step.
    ///
    /// # Errors
    /// When the algorithm cannot be run in the lab.
    #[inline]
    pub(crate) fn advance(&mut self, p: usize, index: usize) -> Result<(), Fault> {
        if self.remembers() {
            return self.recall(p, index);
        }
        self.last = self.step(p, self.moves(p)[index].choice, None)?;
        Ok(())
    }

    /// The last step that was made by [`advance`](Self::advance).
    #[inline]
    pub(crate) fn last(&self) -> &Event {
        &self.last
    }

    /// Makes a step that has been made before without a replay. Copies as little as possible: most
    /// steps of long runs are made here.
    #[inline]
    pub(super) fn recall(&mut self, p: usize, index: usize) -> Result<(), Fault> {
        let process = &mut self.processes[p];
        let State { mut slot, mut kind, mut line, mut waits, session, .. } = process.now;
        let last = &mut self.last;
        last.process = p;
        last.from = process.now.region;
        last.abandons = false;
        if index > 0 {
            let Move { choice, access } = process.moves()[index];
            slot = self.memory.slot(access.register).map_or(NONE, |slot| slot as u32);
            (kind, line, waits) = (access.kind, access.line, access.waits);
            last.abandons = choice.gives_up();
        }
        (last.line, last.kind) = (line, kind);
        let found = State::finds(kind, slot, &self.memory);
        let (effect, moves) = match process.outcome(index, found) {
            Some(outcome) => (outcome.effect, process.go(outcome.next)),
            None => self.learn(p, index, slot)?,
        };
        let (process, last) = (&mut self.processes[p], &mut self.last);
        process.looked = NOT_IN_VAIN;
        last.to = process.now.region;
        // With the last step of its passage, a process stops asking for anything.
        last.session =
            if process.now.session == Session::NONE { session } else { process.now.session };
        last.idle = waits && effect == NONE && !moves;
        last.changed = false;
        (last.register, last.slot, last.remote) = (None, 0, false);
        if slot != NONE {
            let touched = self.memory.at(slot as usize);
            last.register = Some(touched.number as usize);
            last.slot = slot as usize;
            last.remote = touched.home != p as u32;
            if kind != Kind::Read {
                self.last.changed = self.write(slot as usize, (effect != NONE).then_some(effect));
            } else if last.idle && !process.now.several {
                process.looked = touched.writes;
            }
        }
        Ok(())
    }

    /// Writes a register, or updates it to what it held before; returns whether it now holds
    /// another value.
    #[inline]
    pub(super) fn write(&mut self, slot: usize, value: Option<u32>) -> bool {
        let changed = self.memory.write(slot, value);
        if self.memory.full {
            self.memory.count_again();
            self.processes.iter_mut().for_each(|process| process.looked = NOT_IN_VAIN);
        }
        changed
    }

    /// Lets process `p` look again, if its only move is to look at a register at which it has
    /// looked in vain, and which has only been read since. Then this look is the [last](Self::last)
    /// step, and costs nothing in CC.
    #[inline]
    pub(crate) fn looks_again(&mut self, p: usize) -> bool {
        let process = &self.processes[p];
        if process.looked == NOT_IN_VAIN || !self.remembers() {
            return false;
        }
        let State { slot, line, region, session, .. } = process.now;
        let touched = self.memory.at(slot as usize);
        if process.looked != touched.writes {
            return false;
        }
        let last = &mut self.last;
        (last.process, last.line, last.kind) = (p, line, Kind::Read);
        (last.from, last.to, last.session) = (region, region, session);
        (last.register, last.slot) = (Some(touched.number as usize), slot as usize);
        last.remote = touched.home != p as u32;
        (last.idle, last.changed, last.abandons) = (true, false, false);
        true
    }

    /// Returns whether no register has held a larger number than this.
    #[inline]
    pub(crate) fn none_exceeds(&self, bound: u64) -> bool {
        self.memory.none_exceeds(bound)
    }

    /// Replays a step and notes its outcome: the value that it leaves in the register, and whether
    /// the process is in another state now.
    #[cold]
    #[inline(never)]
    fn learn(&mut self, p: usize, index: usize, slot: u32) -> Result<(u32, bool), Fault> {
        if self.memory.is_full() {
            self.memory.forget();
            self.processes.iter_mut().for_each(Learned::forget);
        }
        let (process, subject) = (&mut self.processes[p], self.subject);
        process.make_room(self.most);
        let step = process.moves()[index];
        let found = State::finds(step.access.kind, slot, &self.memory);
        let held = (slot != NONE).then(|| self.memory.held(slot as usize));
        let mut stepped = subject.step(p, process.local(), step.choice, held, true)?;
        let effect = match stepped.effect.take() {
            Some(effect) if slot != NONE => self.memory.number(effect),
            _ => NONE,
        };
        let Stepped { local, pending, .. } = stepped;
        let moves = |local: &LocalState| subject.moves_at(p, local, pending, true);
        let moves = process.arrive((index, found, effect), local, moves, &mut self.memory)?;
        Ok((effect, moves))
    }
}
