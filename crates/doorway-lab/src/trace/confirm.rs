//! Whether a replayed trace shows what it says. A trace is a file and may have been edited: that its steps replay does not
//! mean that they violate anything.

use doorway_core::Property;
use rustc_hash::FxHashSet;

use super::{Replayed, Run, Trace, TraceError, Turn};
use crate::{
    check::repeats_for_ever,
    machine::Event,
    monitor::{Oversized, Standing},
    subject::{Choice, Region},
};

/// What becomes of a process that is in its entry section if only it moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alone {
    /// It enters, after so many steps.
    Enters(usize),
    /// It comes back to where it was without entering.
    GoesRound,
}

/// Who has neither entered nor come back after as many steps may write something new in each round, and never will.
pub(crate) const PATIENCE: usize = 10_000;

/// Lets only `p` move, in a run that forgets; `None` if it does neither for a long time, or cannot be run like that.
pub(crate) fn alone(run: &mut Run<'_>, p: usize) -> Option<Alone> {
    let mut seen = FxHashSet::default();
    let turn = Turn { process: p, choice: Choice::Go, garbage: None };
    let mut steps = 0;
    while run.machine.region(p).is_entry() {
        if steps == PATIENCE {
            return None;
        }
        if !seen.insert(run.machine.local(p).clone()) {
            return Some(Alone::GoesRound);
        }
        let (event, _) = run.take(turn).ok()?;
        steps += 1;
        if event.changed {
            // Nobody else moves, so it has come back if it has and no register has changed.
            seen.clear();
        }
    }
    Some(Alone::Enters(steps))
}

impl Trace {
    /// Checks what the trace claims against its own replay. `run` stands at the end of `turns`.
    pub(super) fn confirm(&self, run: &mut Run<'_>, turns: &[Turn], replayed: &mut Replayed) -> Result<(), TraceError> {
        let Some(name) = &self.property else { return Ok(()) };
        let claims = run.subject.claims();
        let property =
            claims.property(name).ok_or_else(|| TraceError::Unknown(format!("the property {name:?}"), "lab list"))?;
        let shown = match (property, self.loop_from) {
            _ if self.crashed.iter().any(|&p| p >= self.n) => false,
            (Property::DeadlockFreedom | Property::StarvationFreedom | Property::BoundedExit, Some(from)) => {
                self.goes_round(turns, &replayed.events, from, property)
            }
            (Property::ConcurrentEntry, Some(from)) => {
                self.keeps_waiting(turns, &replayed.events, from, Standing::is_unopposed)
            }
            (Property::ConcurrentOccupancy, Some(from)) => {
                let inside = |region| matches!(region, Region::Remainder | Region::Critical);
                self.is_fair(&replayed.events, from, inside)
                    && self.keeps_waiting(turns, &replayed.events, from, Standing::is_unopposed)
            }
            (Property::StrongConcurrentEntry, Some(from)) => {
                self.keeps_waiting(turns, &replayed.events, from, Standing::leads)
            }
            // That somebody is not enabled is a statement about every way to go on. One run can show it if that one goes
            // round alone; else it can only show the overtaking.
            (Property::Fife, None) => {
                replayed.alone = run.overtaken().into_iter().find(|&p| self.goes_round_alone(turns, p));
                !run.overtaken().is_empty()
            }
            (Property::FifoEnabling, None) => self.may_overtake(&replayed.events),
            (Property::KDeadlockAvoidance, Some(from)) => {
                let regions: Vec<Region> = (0..self.n).map(|p| run.machine.region(p)).collect();
                self.stands_still(&regions, turns, &replayed.events, from)
            }
            // What a register holds before the first step takes no step to show.
            (Property::BoundedRegisters, None) if turns.is_empty() => Oversized::at_start(run.subject).is_some(),
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
        matches!(alone(&mut run, p), Some(Alone::GoesRound))
    }

    /// Whether somebody is in its remainder while another is in its entry section, which this one never leaves again; or in
    /// its critical section while another is in its exit section. The rest of FIFO enabling is about who is enabled.
    fn may_overtake(&self, events: &[Event]) -> bool {
        let mut at = vec!['R'; self.n];
        // For each process, whether another has been where it could overtake it from, since it went where it is.
        let mut behind = vec![false; self.n];
        for event in events {
            if event.from.letter() != event.to.letter() {
                at[event.process] = event.to.letter();
                behind[event.process] = false;
            }
            for (i, behind) in behind.iter_mut().enumerate() {
                let begins = match at[i] {
                    'T' => 'R',
                    'E' => 'C',
                    _ => continue,
                };
                *behind |= at.contains(&begins);
            }
        }
        behind.contains(&true)
    }

    /// Whether the steps from `from` on can be taken again and change nobody's region, with somebody under way.
    fn stands_still(&self, regions: &[Region], turns: &[Turn], events: &[Event], from: usize) -> bool {
        let Some(round) = events.get(from..) else { return false };
        let still = |event: &Event| event.from.letter() == event.to.letter();
        let is_under_way = |region: &Region| matches!(region.letter(), 'T' | 'E');
        !round.is_empty()
            && round.iter().all(still)
            && regions.iter().any(is_under_way)
            && self.repeats(turns, from, |event| !still(event))
    }

    /// Whether the steps from `from` on can be taken again, somebody moves in them and does not enter, and all the while it
    /// is `free` to.
    fn keeps_waiting(&self, turns: &[Turn], events: &[Event], from: usize, free: fn(&Standing, usize) -> bool) -> bool {
        let Some((stem, round)) = events.split_at_checked(from) else { return false };
        (0..self.n).any(|p| {
            let mut standing = Standing::new(self.n);
            for event in stem {
                standing.observe(event);
            }
            let is_free = free(&standing, p)
                && round.iter().all(|event| {
                    standing.observe(event);
                    free(&standing, p)
                });
            is_free
                && round.iter().any(|event| event.process == p)
                && self.repeats(turns, from, |event| event.process == p && !event.to.is_entry())
        })
    }

    /// Whether the turns from `from` on can be taken again and again, and nothing spoils it.
    fn repeats(&self, turns: &[Turn], from: usize, spoils: impl FnMut(&Event) -> bool) -> bool {
        let (Ok(subject), Ok(registers)) = (self.subject(), self.registers.parse()) else { return false };
        // One that forgets, because it has to come back to where it was.
        let Ok(mut run) = Run::new(&*subject, registers, true) else { return false };
        let (stem, round) = turns.split_at(from);
        let gap = (subject.claims().gap)(subject.size());
        turns.iter().take(stem.len()).all(|turn| run.take(*turn).is_ok())
            && repeats_for_ever(&mut run, round, gap, spoils) == Some(true)
    }

    /// Where everybody is after these events.
    fn regions(&self, events: &[Event]) -> Vec<Region> {
        let mut at = vec![Region::Remainder; self.n];
        events.iter().for_each(|event| at[event.process] = event.to);
        at
    }

    /// Whether all who have not crashed move from `from` on, except where they may rest.
    fn is_fair(&self, events: &[Event], from: usize, may_rest: impl Fn(Region) -> bool) -> bool {
        let Some((stem, round)) = events.split_at_checked(from) else { return false };
        let moves = |p: usize| round.iter().any(|event| event.process == p);
        self.regions(stem).into_iter().enumerate().all(|(p, at)| match self.crashed.contains(&p) {
            true => !moves(p),
            false => moves(p) || may_rest(at),
        })
    }

    /// Whether the steps from `from` on can be taken again, are fair, and keep somebody from where it wants to go.
    fn goes_round(&self, turns: &[Turn], events: &[Event], from: usize, property: Property) -> bool {
        let Some(round) = events.get(from..).filter(|round| !round.is_empty()) else { return false };
        let at = self.regions(&events[..from]);
        let moves = |p: usize| round.iter().any(|event| event.process == p);
        let fair = self.is_fair(events, from, |region| region == Region::Remainder);
        let stays = |p: usize, there: fn(Region) -> bool| {
            moves(p) && there(at[p]) && round.iter().all(|event| event.process != p || there(event.to))
        };
        let there: fn(Region) -> bool = match property {
            Property::BoundedExit => |region| region == Region::Exit,
            _ => Region::is_entry,
        };
        let Some(victim) = (0..self.n).find(|&p| stays(p, there)) else { return false };
        if !fair && property != Property::BoundedExit {
            return false;
        }
        let enters = |event: &Event| event.to == Region::Critical && event.from != Region::Critical;
        let spoils = |event: &Event| {
            (event.process == victim && !there(event.to)) || (property == Property::DeadlockFreedom && enters(event))
        };
        !round.iter().any(spoils) && self.repeats(turns, from, spoils)
    }
}

#[cfg(test)]
mod tests {
    use doorway_core::{
        Algorithm, Claims, Exclusion, Home, Layout, Property, Register, RegisterKind, Registers, Size, Unfit,
        mutex::BurnsLamport,
    };

    use super::*;

    /// One register that holds 7, with a bound of `BOUND`.
    struct Seven<const BOUND: u64>(Register<u64>);

    impl<const BOUND: u64> Algorithm for Seven<BOUND> {
        const NAME: &'static str = "seven";
        const CLAIMS: Claims = Claims { bound: Some(|_| BOUND), ..BurnsLamport::CLAIMS };

        fn new(layout: &mut Layout, _: Size) -> Result<Self, Unfit> {
            Ok(Self(layout.register("Seven", Home::Nobody, 7)))
        }
    }

    impl<M: Registers, const BOUND: u64> Exclusion<M> for Seven<BOUND> {
        type Request = ();
        type Pass = ();
        type Keep = ();

        fn keep(&self, _: usize) {}
        fn doorway(&self, m: &mut M, _: usize, (): (), (): ()) -> Result<(), M::Halt> {
            m.write(self.0, 0)
        }
        fn waiting(&self, _: &mut M, _: usize, (): ()) -> Result<(), M::Halt> {
            Ok(())
        }
        fn exit(&self, m: &mut M, _: usize, (): ()) -> Result<(), M::Halt> {
            m.write(self.0, 0)
        }
    }

    /// Confirms a trace of no steps that says that this property is violated.
    fn confirm<const BOUND: u64>(property: Property) -> bool {
        let subject = crate::build::<Seven<BOUND>, _, _, _>(Size::mutex(1), None, false).expect("it fits");
        let mut trace = Trace::of(&*subject, RegisterKind::Atomic);
        trace.property = Some(property.name().into());
        let mut run = Run::new(&*subject, RegisterKind::Atomic, false).expect("it runs");
        let (events, violations, registers, regions) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut replayed = Replayed { events, violations, registers, regions, alone: None };
        trace.confirm(&mut run, &[], &mut replayed).is_ok()
    }

    #[test]
    fn a_trace_of_no_steps_shows_what_a_register_holds_at_the_start() {
        assert!(confirm::<6>(Property::BoundedRegisters));
        assert!(!confirm::<7>(Property::BoundedRegisters));
        assert!(!confirm::<6>(Property::MutualExclusion));
    }
}
