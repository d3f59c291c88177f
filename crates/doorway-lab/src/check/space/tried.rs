//! Tries what has been learned on stretched tickets, where tickets are relabelled.

use super::{KnownMove, Space};
use crate::{
    check::{relabel::Labels, stretch::Stretch},
    fault::Fault,
    subject::{LocalState, Move, Stepped},
};

impl Space<'_> {
    /// Returns the stretchings of the tickets that the code sees; none without relabelling.
    fn stretches(&mut self, visible: Labels) -> Vec<Stretch> {
        let Some(gap) = self.gap else { return Vec::new() };
        let stretches = Stretch::all(visible, gap, self.tried);
        self.tried += u64::from(!stretches.is_empty());
        stretches
    }

    fn ticket_use(&self, register: Option<u16>, line: u32) -> Fault {
        let register = register.map(|r| self.registers[r as usize].name.clone());
        Fault::TicketUse { register, line, gap: self.gap.unwrap_or(0) }
    }

    /// Checks that the moves of a process do not depend on the numbers behind its tickets.
    pub(super) fn try_moves(
        &mut self,
        p: usize,
        local: &LocalState,
        visible: Labels,
        next: &[Move],
    ) -> Result<(), Fault> {
        let same = |a: &Move, b: &Move| {
            let what = |m: &Move| {
                (m.choice, m.access.kind, m.access.register, m.access.line, m.access.waits)
            };
            what(a) == what(b)
        };
        for stretch in self.stretches(visible) {
            let moves = stretch.local(local).map(|local| self.subject.moves(p, &local, true));
            let agrees = |moves: Vec<Move>| {
                moves.len() == next.len() && moves.iter().zip(next).all(|(a, b)| same(a, b))
            };
            if !moves.is_some_and(|moves| moves.is_ok_and(agrees)) {
                let line = next.first().map_or(0, |step| step.access.line);
                let register =
                    next.first().and_then(|step| self.dense.get(&step.access.register).copied());
                return Err(self.ticket_use(register, line));
            }
        }
        Ok(())
    }

    /// Checks that the outcome of a step does not depend on the numbers behind the tickets that the
    /// process saw.
    pub(super) fn try_step(
        &mut self,
        p: usize,
        state: &LocalState,
        step: KnownMove,
        value: u32,
        visible: Labels,
        stepped: &Stepped,
    ) -> Result<(), Fault> {
        let Some(gap) = self.gap else { return Ok(()) };
        let mut fits = Stretch::none(visible, gap).holds(stepped);
        for stretch in self.stretches(visible) {
            let local = stretch.local(state);
            let held =
                step.register.map(|r| stretch.value(self.registers[r as usize].value(value)));
            let again = match (local, held) {
                (Some(local), None) => self.subject.step(p, &local, step.choice, None, true).ok(),
                (Some(local), Some(Some(held))) => {
                    self.subject.step(p, &local, step.choice, Some(&*held), true).ok()
                }
                _ => None,
            };
            fits &= again.is_some_and(|again| stretch.agrees(stepped, &again));
        }
        if fits { Ok(()) } else { Err(self.ticket_use(step.register, step.line)) }
    }
}
