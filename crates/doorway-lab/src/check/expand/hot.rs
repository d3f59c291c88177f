//! A worker's own flat copy of what has been learned. What is not in the copy is requested from the
//! shared space, once.

use doorway_core::{Home, Session};

use super::{Expander, Interrupt, event, ghost::Ghost};
use crate::{
    check::{pack::Field, relabel::Labels, space::Effect},
    subject::{Choice, Region},
};

#[derive(Clone, Copy)]
pub(super) struct HotMove {
    pub(super) register: u16,
    pub(super) effect: Effect,
    pub(super) abandons: bool,
    pub(super) kills: bool,
    pub(super) line: u32,
    /// The register lives with another process or with no process.
    pub(super) remote: bool,
    pub(super) field: Field,
    pub(super) row: u32,
    pub(super) width: u32,
}

#[derive(Clone, Copy)]
pub(super) struct HotLocal {
    pub(super) first: u32,
    pub(super) count: u32,
    pub(super) region: Region,
    pub(super) session: Session,
    /// The register that the process is in the middle of writing, or [`NO_REGISTER`].
    pub(super) writing: u16,
}

/// An outcome with its events, packed: next local state, new value, events.
#[derive(Clone, Copy)]
pub(super) struct HotCell(u64);

impl HotCell {
    const MISSING: Self = Self(u64::MAX);

    /// Packs an outcome. Only the events of the low byte are kept: those that the process and the
    /// register show.
    pub(super) fn new(next: u32, value: u32, events: u16) -> Self {
        debug_assert!(value < 1 << 24 && events < 1 << 8);
        Self(u64::from(next) | u64::from(value) << 32 | u64::from(events) << 56)
    }
    #[inline(always)]
    pub(super) fn next(self) -> u32 {
        self.0 as u32
    }
    #[inline(always)]
    pub(super) fn value(self) -> u32 {
        (self.0 >> 32) as u32 & 0xff_ffff
    }
    #[inline(always)]
    pub(super) fn events(self) -> u16 {
        (self.0 >> 56) as u16
    }
}

#[derive(Default)]
pub(super) struct HotProcess {
    pub(super) locals: Vec<HotLocal>,
    pub(super) labels: Vec<Labels>,
    pub(super) moves: Vec<HotMove>,
    pub(super) cells: Vec<HotCell>,
}

pub(super) const NO_REGISTER: u16 = u16::MAX;

impl<const W: usize> Expander<'_, '_, W> {
    #[inline(always)]
    pub(super) fn local(&mut self, p: usize, local: u32) -> HotLocal {
        match self.hot[p].locals.get(local as usize) {
            Some(hot) => *hot,
            None => self.fetch(p, local),
        }
    }

    /// Copies what the space knows of `p`.
    #[cold]
    pub(super) fn fetch(&mut self, p: usize, local: u32) -> HotLocal {
        let space = self.lock();
        let hot = &mut self.hot[p];
        for id in hot.locals.len()..space.count(p) {
            let known = space.known(p, id as u32);
            let first = hot.moves.len() as u32;
            for step in known.moves.iter() {
                let register = step.register.unwrap_or(NO_REGISTER);
                hot.moves.push(HotMove {
                    register,
                    effect: step.effect,
                    abandons: step.choice.gives_up(),
                    kills: step.choice == Choice::Kill,
                    line: step.line,
                    remote: step.register.is_some_and(|r| space.home(r) != Home::Process(p)),
                    field: step
                        .register
                        .map_or(Field::default(), |r| self.plan.registers[r as usize]),
                    row: 0,
                    width: 0,
                });
            }
            let count = known.moves.len() as u32;
            let writing = known.writing.unwrap_or(NO_REGISTER);
            hot.locals.push(HotLocal {
                first,
                count,
                region: known.region,
                session: known.session,
                writing,
            });
            hot.labels.push(known.labels);
        }
        hot.locals[local as usize]
    }

    #[inline(always)]
    pub(super) fn cell(
        &mut self,
        p: usize,
        local: u32,
        index: u32,
        value: u32,
    ) -> Result<HotCell, Interrupt> {
        let hot = &self.hot[p];
        let step = hot.moves[index as usize];
        if value < step.width {
            let cell = hot.cells[(step.row + value) as usize];
            if cell.0 != HotCell::MISSING.0 {
                return Ok(cell);
            }
        }
        self.learn(p, local, index, value)
    }

    /// Asks the space for the outcome of a move, and notes it.
    #[cold]
    pub(super) fn learn(
        &mut self,
        p: usize,
        local: u32,
        index: u32,
        value: u32,
    ) -> Result<HotCell, Interrupt> {
        let from = self.local(p, local);
        let step = self.hot[p].moves[index as usize];
        let (outcome, exceeds, width) = {
            let mut space = self.lock();
            let outcome = space.outcome(p, local, index - from.first, value)?;
            let values =
                (step.register != NO_REGISTER).then(|| &space.registers[step.register as usize]);
            let exceeds = match (values, self.rules.bound) {
                (Some(values), Some(bound)) => {
                    step.effect != Effect::Read && values.value(outcome.value).magnitude() > bound
                }
                _ => false,
            };
            (outcome, exceeds, values.map_or(1, |values| values.len().next_power_of_two() as u32))
        };
        let fits = step.register == NO_REGISTER || step.field.fits(outcome.value);
        if !self.plan.locals[p].fits(outcome.next) || !fits {
            return Err(Interrupt::Narrow);
        }
        let to = self.local(p, outcome.next);
        let mut events = 0;
        if from.region == Region::Remainder {
            events |= event::BEGINS;
        }
        if to.region == Region::Critical && from.region != Region::Critical {
            events |= event::ENTERS;
        }
        if step.abandons {
            events |= event::ABANDONS;
        }
        if exceeds {
            events |= event::EXCEEDS;
        }
        if self.rules.retries.is_some() && outcome.retries {
            events |= event::RETRIES;
        }
        if self.rules.ghost != Ghost::Nothing && to.region == Region::Remainder {
            events |= event::LEAVES;
        }
        if let Ghost::Changes(watched) = self.rules.ghost
            && watched.register == step.register
        {
            if step.effect == Effect::Read && step.line == watched.line {
                events |= event::LOOKS;
            }
            if outcome.value != value {
                events |= event::CHANGES;
            }
        }
        let cell = HotCell::new(outcome.next, outcome.value, events);
        let hot = &mut self.hot[p];
        let step = &mut hot.moves[index as usize];
        if value >= step.width {
            let row = hot.cells.len() as u32;
            let width = width.max(value + 1);
            for v in 0..width {
                let old = if v < step.width {
                    hot.cells[(step.row + v) as usize]
                } else {
                    HotCell::MISSING
                };
                hot.cells.push(old);
            }
            (step.row, step.width) = (row, width);
        }
        hot.cells[(step.row + value) as usize] = cell;
        Ok(cell)
    }
}
