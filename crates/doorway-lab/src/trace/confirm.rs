//! Whether a replayed trace shows what it says. A trace is a file and may have been edited: that its steps replay does not
//! mean that they violate anything.

use doorway_core::Property;
use rustc_hash::FxHashSet;

use super::{Replayed, Run, Trace, TraceError, Turn};
use crate::{
    machine::Event,
    replay::Kind,
    subject::{Choice, Region},
};

impl Trace {
    /// Checks what the trace claims against its own replay. `run` stands at the end of `turns`.
    pub(super) fn confirm(&self, run: &mut Run<'_>, turns: &[Turn], replayed: &mut Replayed) -> Result<(), TraceError> {
        let Some(name) = &self.property else { return Ok(()) };
        let property: Property =
            name.parse().map_err(|()| TraceError::Unknown(format!("the property {name:?}"), "lab list"))?;
        let shown = match (property, self.loop_from) {
            _ if self.crashed.iter().any(|&p| p >= self.n) => false,
            (Property::DeadlockFreedom | Property::StarvationFreedom | Property::BoundedExit, Some(from)) => {
                self.goes_round(run, turns, &replayed.events, from, property)
            }
            // That somebody is not enabled is a statement about every way to go on. One run can show it if that one goes
            // round alone; else it can only show the overtaking.
            (Property::Fife, None) => {
                replayed.alone = run.overtaken().into_iter().find(|&p| self.goes_round_alone(turns, p));
                !run.overtaken().is_empty()
            }
            (_, None) => {
                self.steps.len().checked_sub(1).is_some_and(|last| replayed.violations.contains(&(last, property)))
            }
            _ => false,
        };
        if shown { Ok(()) } else { Err(TraceError::NotShown(property)) }
    }

    /// Whether `p`, if only it moves after these turns, comes back to where it was without entering.
    fn goes_round_alone(&self, turns: &[Turn], p: usize) -> bool {
        let (Ok(subject), Ok(registers)) = (self.subject(), self.registers.parse()) else { return false };
        let Ok(mut run) = Run::new(&*subject, registers, true) else { return false };
        if turns.iter().any(|turn| run.take(*turn).is_err()) {
            return false;
        }
        let mut seen = FxHashSet::default();
        let turn = Turn { process: p, choice: Choice::Go, garbage: None };
        while run.machine.region(p).is_entry() {
            // Nobody else moves, and a process that has written something has not come back.
            let kept = run.machine.moves(p).iter().all(|step| step.access.kind == Kind::Read);
            if kept && !seen.insert(run.machine.local(p).clone()) {
                return true;
            }
            if run.take(turn).is_err() {
                return false;
            }
        }
        false
    }

    /// Whether the steps from `from` on can be taken again, are fair, and keep somebody from where it wants to go.
    fn goes_round(&self, run: &mut Run<'_>, turns: &[Turn], events: &[Event], from: usize, property: Property) -> bool {
        let (Some(turns), Some(round)) = (turns.get(from..), events.get(from..)) else { return false };
        let mut at = vec![Region::Remainder; self.n];
        events[..from].iter().for_each(|event| at[event.process] = event.to);
        let moves = |p: usize| round.iter().any(|event| event.process == p);
        let fair = (0..self.n).all(|p| match self.crashed.contains(&p) {
            true => !moves(p),
            false => moves(p) || at[p] == Region::Remainder,
        });
        let stays = |p: usize, there: fn(Region) -> bool| {
            moves(p) && there(at[p]) && round.iter().all(|event| event.process != p || there(event.to))
        };
        let held_up = match property {
            Property::BoundedExit => (0..self.n).any(|p| stays(p, |region| region == Region::Exit)),
            _ => fair && (0..self.n).any(|p| stays(p, Region::is_entry)),
        };
        let enters = |event: &Event| event.to == Region::Critical && event.from != Region::Critical;
        if !held_up || (property == Property::DeadlockFreedom && round.iter().any(enters)) {
            return false;
        }
        // Tickets may grow from round to round; where everybody goes may not change.
        let same = |a: &Event, b: &Event| (a.line, a.register, a.from, a.to) == (b.line, b.register, b.from, b.to);
        turns.iter().zip(round).all(|(turn, before)| run.take(*turn).is_ok_and(|(event, _)| same(&event, before)))
    }
}
