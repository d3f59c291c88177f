//! The successors of a state: for every process, every move that it may make.
//!
//! Each worker keeps a flat copy of what has been learned and asks the shared [`Space`] only for what it has not met
//! before, so the hot path is a few table lookups per move.

use std::sync::{Arc, Mutex, PoisonError};

use doorway_core::{RegisterKind, Ticket};
use rustc_hash::FxHashMap;

use super::{
    pack::{Field, Key, Plan},
    relabel::{Labels, Map, Position, positions, slack},
    space::{Effect, Space},
};
use crate::{replay::Fault, subject::Region};

/// What the search is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) k: usize,
    /// Whether passages are counted.
    pub(crate) bounded: bool,
    pub(crate) kind: RegisterKind,
    pub(crate) relabel: bool,
    /// Whether it is remembered who was before whom.
    pub(crate) order: bool,
    /// The largest number that a register may hold.
    pub(crate) bound: Option<u64>,
}

/// Things to notice about a step.
pub(crate) mod event {
    /// The process leaves its remainder.
    pub(crate) const BEGINS: u8 = 1;
    /// The process enters the critical section.
    pub(crate) const ENTERS: u8 = 2;
    /// The process gives up its place.
    pub(crate) const ABANDONS: u8 = 4;
    /// A register holds more than it may.
    pub(crate) const EXCEEDS: u8 = 8;
    /// More than k processes are in the critical section.
    pub(crate) const CROWDED: u8 = 16;
    /// The process overtakes k others that were before it.
    pub(crate) const OVERTAKES: u8 = 32;
}

/// One step from a state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step<const W: usize> {
    pub(crate) p: usize,
    /// Which of the process's moves.
    pub(crate) index: u32,
    /// What an overlapping read returned, if this was one.
    pub(crate) garbage: Option<Garbage>,
    pub(crate) events: u8,
    /// Those that the process overtakes, as a set of bits.
    pub(crate) overtaken: u32,
    pub(crate) key: Key<W>,
}

/// What takes the steps from a state.
pub(crate) trait Sink<const W: usize> {
    /// A step.
    fn step(&mut self, step: Step<W>);

    /// A step at which there is nothing to notice: nearly all of them.
    #[inline(always)]
    fn plain(&mut self, p: usize, index: u32, key: Key<W>) {
        self.step(Step { p, index, garbage: None, events: 0, overtaken: 0, key });
    }
}

impl<const W: usize, F: FnMut(Step<W>)> Sink<W> for F {
    fn step(&mut self, step: Step<W>) {
        self(step);
    }
}

/// What an overlapping read returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Garbage {
    /// This value of the register.
    Value(u32),
    /// This position among the tickets of the state.
    Position(Position),
}

/// Why successors could not be computed.
#[derive(Debug)]
pub(crate) enum Interrupt {
    /// A number does not fit its field: the states have to be packed anew.
    Narrow,
    /// The algorithm cannot be explored.
    Fault(Fault),
}

impl From<Fault> for Interrupt {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

#[derive(Clone, Copy)]
struct HotMove {
    register: u16,
    effect: Effect,
    abandons: bool,
    field: Field,
    row: u32,
    width: u32,
}

#[derive(Clone, Copy)]
struct HotLocal {
    first: u32,
    count: u8,
    region: Region,
    /// The register that it is in the middle of writing, or [`NO_REGISTER`].
    writing: u16,
}

/// An outcome with its events, packed: next local state, new value, events.
#[derive(Clone, Copy)]
struct HotCell(u64);

impl HotCell {
    const MISSING: Self = Self(u64::MAX);

    fn new(next: u32, value: u32, events: u8) -> Self {
        debug_assert!(value < 1 << 24);
        Self(u64::from(next) | u64::from(value) << 32 | u64::from(events) << 56)
    }
    #[inline(always)]
    fn next(self) -> u32 {
        self.0 as u32
    }
    #[inline(always)]
    fn value(self) -> u32 {
        (self.0 >> 32) as u32 & 0xff_ffff
    }
    #[inline(always)]
    fn events(self) -> u8 {
        (self.0 >> 56) as u8
    }
}

#[derive(Default)]
struct HotProcess {
    locals: Vec<HotLocal>,
    labels: Vec<Labels>,
    moves: Vec<HotMove>,
    cells: Vec<HotCell>,
}

const NO_REGISTER: u16 = u16::MAX;

/// A worker's successor function.
pub(crate) struct Expander<'a, 's, const W: usize> {
    space: &'a Mutex<Space<'s>>,
    pub(crate) plan: &'a Plan,
    rules: Rules,
    hot: Vec<HotProcess>,
    values: Vec<Vec<Labels>>,
    maps: FxHashMap<(Labels, u32, u32), (u32, Arc<Map>)>,
    renamed_values: FxHashMap<(u16, u32, u32), u32>,
    renamed_locals: FxHashMap<(u16, u32, u32), u32>,
}

impl<'a, 's, const W: usize> Expander<'a, 's, W> {
    pub(crate) fn new(space: &'a Mutex<Space<'s>>, plan: &'a Plan, rules: Rules) -> Self {
        let hot = plan.locals.iter().map(|_| HotProcess::default()).collect();
        let values = plan.registers.iter().map(|_| Vec::new()).collect();
        Self {
            space,
            plan,
            rules,
            hot,
            values,
            maps: FxHashMap::default(),
            renamed_values: FxHashMap::default(),
            renamed_locals: FxHashMap::default(),
        }
    }

    /// The state in which everything starts; `passages` is how many each process may make.
    pub(crate) fn initial(&self, passages: u32) -> Key<W> {
        let mut key = Plan::empty();
        for field in &self.plan.passages {
            if self.rules.bounded {
                field.set(&mut key, passages);
            }
        }
        key
    }

    /// Where process `p` is.
    #[inline(always)]
    pub(crate) fn region(&mut self, key: &Key<W>, p: usize) -> Region {
        let local = self.plan.locals[p].get(key);
        self.local(p, local).region
    }

    #[inline(always)]
    fn local(&mut self, p: usize, local: u32) -> HotLocal {
        match self.hot[p].locals.get(local as usize) {
            Some(hot) => *hot,
            None => self.fetch(p, local),
        }
    }

    /// Copies what the space knows of `p`.
    #[cold]
    fn fetch(&mut self, p: usize, local: u32) -> HotLocal {
        let space = self.space.lock().unwrap_or_else(PoisonError::into_inner);
        let hot = &mut self.hot[p];
        for id in hot.locals.len()..space.count(p) {
            let known = space.known(p, id as u32);
            let first = hot.moves.len() as u32;
            for step in known.moves.iter() {
                let register = step.register.unwrap_or(NO_REGISTER);
                hot.moves.push(HotMove {
                    register,
                    effect: step.effect,
                    abandons: step.choice == crate::subject::Choice::Abandon,
                    field: step.register.map_or(Field::default(), |r| self.plan.registers[r as usize]),
                    row: 0,
                    width: 0,
                });
            }
            let count = u8::try_from(known.moves.len()).expect("a process has few choices at a time");
            let writing = known.writing.unwrap_or(NO_REGISTER);
            hot.locals.push(HotLocal { first, count, region: known.region, writing });
            hot.labels.push(known.labels);
        }
        hot.locals[local as usize]
    }

    #[inline(always)]
    fn cell(&mut self, p: usize, local: u32, index: u32, value: u32) -> Result<HotCell, Interrupt> {
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

    /// Asks the space what comes of a move, and notes it.
    #[cold]
    fn learn(&mut self, p: usize, local: u32, index: u32, value: u32) -> Result<HotCell, Interrupt> {
        let from = self.local(p, local);
        let step = self.hot[p].moves[index as usize];
        let (outcome, exceeds, width) = {
            let mut space = self.space.lock().unwrap_or_else(PoisonError::into_inner);
            let outcome = space.outcome(p, local, index - from.first, value)?;
            let values = (step.register != NO_REGISTER).then(|| &space.registers[step.register as usize].list);
            let exceeds = match (values, self.rules.bound) {
                (Some(values), Some(bound)) => {
                    step.effect != Effect::Read && values[outcome.value as usize].magnitude() > bound
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
        let cell = HotCell::new(outcome.next, outcome.value, events);
        let hot = &mut self.hot[p];
        let step = &mut hot.moves[index as usize];
        if value >= step.width {
            let row = hot.cells.len() as u32;
            let width = width.max(value + 1);
            for v in 0..width {
                let old = if v < step.width { hot.cells[(step.row + v) as usize] } else { HotCell::MISSING };
                hot.cells.push(old);
            }
            (step.row, step.width) = (row, width);
        }
        hot.cells[(step.row + value) as usize] = cell;
        Ok(cell)
    }

    /// Gives `sink` every step from `key`.
    #[inline(always)]
    pub(crate) fn expand(&mut self, key: &Key<W>, mut sink: impl Sink<W>) -> Result<(), Interrupt> {
        let labels = if self.rules.relabel { self.labels(key) } else { Labels::default() };
        for p in 0..self.plan.locals.len() {
            let local = self.plan.locals[p].get(key);
            let from = self.local(p, local);
            if self.rules.bounded && from.region == Region::Remainder && self.plan.passages[p].get(key) == 0 {
                continue;
            }
            for index in from.first..from.first + u32::from(from.count) {
                let step = self.hot[p].moves[index as usize];
                if self.rules.kind != RegisterKind::Atomic && self.overlaps(key, p, step)? {
                    self.read_overlapping(key, p, local, index, &mut sink)?;
                    continue;
                }
                let value = step.field.get(key);
                let cell = self.cell(p, local, index, value)?;
                let mut next = *key;
                self.plan.locals[p].set(&mut next, cell.next());
                step.field.set(&mut next, cell.value());
                if cell.events() == 0 && !self.rules.relabel {
                    sink.plain(p, index - from.first, next);
                    continue;
                }
                let index = index - from.first;
                let made = Step { p, index, garbage: None, events: cell.events(), overtaken: 0, key: next };
                if self.rules.relabel {
                    self.relabel_step(labels, made, &mut sink)?;
                } else {
                    self.finish(made, &mut sink);
                }
            }
        }
        Ok(())
    }

    /// Counts passages, remembers who was before whom, notices violations.
    fn finish(&mut self, mut step: Step<W>, sink: &mut impl Sink<W>) {
        let notable = event::BEGINS | event::ENTERS | event::ABANDONS;
        if step.events & notable != 0 {
            self.note(&mut step);
        }
        sink.step(step);
    }

    fn note(&mut self, step: &mut Step<W>) {
        let (p, n) = (step.p, self.plan.locals.len());
        if step.events & event::BEGINS != 0 {
            if self.rules.bounded {
                let left = self.plan.passages[p].get(&step.key);
                self.plan.passages[p].set(&mut step.key, left - 1);
            }
            if self.rules.order {
                let before = (0..n)
                    .filter(|&q| q != p && self.region(&step.key, q) == Region::Waiting)
                    .fold(0, |set, q| set | 1 << q);
                self.plan.order[p].set(&mut step.key, before);
            }
        }
        if step.events & event::ENTERS != 0 {
            let inside = (0..n).filter(|&q| self.region(&step.key, q) == Region::Critical).count();
            if inside > self.rules.k {
                step.events |= event::CROWDED;
            }
            if self.rules.order {
                step.overtaken = self.plan.order[p].get(&step.key);
                if step.overtaken.count_ones() as usize >= self.rules.k {
                    step.events |= event::OVERTAKES;
                }
            }
        }
        if self.rules.order && step.events & (event::ENTERS | event::ABANDONS) != 0 {
            self.plan.order[p].set(&mut step.key, 0);
            for q in 0..n {
                let before = self.plan.order[q].get(&step.key);
                self.plan.order[q].set(&mut step.key, before & !(1 << p));
            }
        }
    }

    /// Whether this move is a read of a register that somebody else is writing.
    fn overlaps(&mut self, key: &Key<W>, p: usize, step: HotMove) -> Result<bool, Interrupt> {
        if !matches!(step.effect, Effect::Read | Effect::Begin) {
            return Ok(false);
        }
        for q in 0..self.plan.locals.len() {
            let local = self.plan.locals[q].get(key);
            if q != p && self.local(q, local).writing == step.register {
                if step.effect == Effect::Begin {
                    let space = self.space.lock().unwrap_or_else(PoisonError::into_inner);
                    let name = space.registers[step.register as usize].name.clone();
                    return Err(Interrupt::Fault(Fault::TwoWriters(name)));
                }
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// A read that overlaps a write: every value that it may return.
    fn read_overlapping(
        &mut self,
        key: &Key<W>,
        p: usize,
        local: u32,
        index: u32,
        sink: &mut impl Sink<W>,
    ) -> Result<(), Interrupt> {
        let step = self.hot[p].moves[index as usize];
        if self.rules.kind == RegisterKind::Regular {
            let old = step.field.get(key);
            let new = self.being_written(key, step)?;
            self.answer(key, p, local, index, old, Some(Garbage::Value(old)), sink)?;
            if new != old {
                self.answer(key, p, local, index, new, Some(Garbage::Value(new)), sink)?;
            }
            return Ok(());
        }
        if !self.rules.relabel {
            let values = self.lock().domain(step.register, &[])?;
            for value in values {
                self.answer(key, p, local, index, value, Some(Garbage::Value(value)), sink)?;
            }
            return Ok(());
        }
        let was = self.local(p, local).first;
        let labels = self.labels(key);
        for position in positions(labels) {
            let ticket = Ticket::from_label(u64::from(position.label));
            let values = self.lock().domain(step.register, &[ticket])?;
            // A domain without tickets is the same at every position: once is enough.
            let plain = values.len() > 1;
            let widened = if position.extra > 0 {
                let (id, map) = self.map(labels, position.split, position.extra, false);
                self.rename(key, id, &map)?
            } else {
                *key
            };
            let local = self.plan.locals[p].get(&widened);
            let own = index - was + self.local(p, local).first;
            for value in values {
                let garbage = if plain { Garbage::Value(value) } else { Garbage::Position(position) };
                self.answer(&widened, p, local, own, value, Some(garbage), sink)?;
            }
            if plain {
                break;
            }
        }
        Ok(())
    }

    /// The value that is being written to the register that this move reads.
    fn being_written(&mut self, key: &Key<W>, step: HotMove) -> Result<u32, Interrupt> {
        for q in 0..self.plan.locals.len() {
            let local = self.plan.locals[q].get(key);
            let writer = self.local(q, local);
            if writer.writing == step.register {
                let cell = self.cell(q, local, writer.first, step.field.get(key))?;
                return Ok(cell.value());
            }
        }
        Ok(step.field.get(key))
    }

    /// The step in which a read is answered with `value`, whatever the register holds.
    #[expect(clippy::too_many_arguments, reason = "one place calls it, and a struct would only rename the arguments")]
    fn answer(
        &mut self,
        key: &Key<W>,
        p: usize,
        local: u32,
        index: u32,
        value: u32,
        garbage: Option<Garbage>,
        sink: &mut impl Sink<W>,
    ) -> Result<(), Interrupt> {
        let cell = self.cell(p, local, index, value)?;
        let mut next = *key;
        self.plan.locals[p].set(&mut next, cell.next());
        let first = self.local(p, local).first;
        let made = Step { p, index: index - first, garbage, events: cell.events(), overtaken: 0, key: next };
        if self.rules.relabel {
            // The position has said already how wide the gaps around a new ticket are.
            let labels = self.labels(&made.key);
            self.narrow(made, labels, 0, 0, sink)
        } else {
            self.finish(made, sink);
            Ok(())
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'a, Space<'s>> {
        self.space.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tickets that stand anywhere in a state.
    fn labels(&mut self, key: &Key<W>) -> Labels {
        let mut all = Labels::default();
        for r in 0..self.plan.registers.len() {
            let value = self.plan.registers[r].get(key);
            all = all.or(self.value_labels(r, value));
        }
        for p in 0..self.plan.locals.len() {
            let local = self.plan.locals[p].get(key);
            all = all.or(self.local_labels(p, local));
        }
        all
    }

    #[inline(always)]
    fn local_labels(&mut self, p: usize, local: u32) -> Labels {
        if local as usize >= self.hot[p].labels.len() {
            self.fetch(p, local);
        }
        self.hot[p].labels[local as usize]
    }

    #[inline(always)]
    fn value_labels(&mut self, register: usize, value: u32) -> Labels {
        if let Some(labels) = self.values[register].get(value as usize) {
            return *labels;
        }
        self.values[register] = self.lock().registers[register].labels.clone();
        self.values[register][value as usize]
    }

    /// The renaming for these labels, with a number of its own.
    fn map(&mut self, labels: Labels, split: u32, extra: u32, narrow: bool) -> (u32, Arc<Map>) {
        let number = self.maps.len() as u32;
        // Widening and narrowing never meet under one key: a widening has labels with a wide gap below `split`, and
        // says so in the top bit.
        let tag = if narrow { 0 } else { 1 << 31 };
        self.maps
            .entry((labels, split | tag, extra))
            .or_insert_with(|| {
                let map =
                    if narrow { Map::narrowing(labels, split, extra) } else { Map::widening(labels, split, extra) };
                (number, Arc::new(map))
            })
            .clone()
    }

    /// Brings a step's state into its one form, for every width that a wide gap may be left with. The state before it
    /// was in that form, with the labels `was`.
    fn relabel_step(&mut self, was: Labels, step: Step<W>, sink: &mut impl Sink<W>) -> Result<(), Interrupt> {
        let is = self.labels(&step.key);
        if was == is {
            self.finish(step, sink);
            return Ok(());
        }
        let (split, most) = slack(was, is);
        (0..=most).try_for_each(|extra| self.narrow(step, is, split, extra, sink))
    }

    fn narrow(
        &mut self,
        step: Step<W>,
        labels: Labels,
        split: u32,
        extra: u32,
        sink: &mut impl Sink<W>,
    ) -> Result<(), Interrupt> {
        if labels.0 == u128::MAX {
            return Err(Interrupt::Fault(Fault::TicketRange));
        }
        let (id, map) = self.map(labels, split, extra, true);
        let key = self.rename(&step.key, id, &map)?;
        self.finish(Step { key, ..step }, sink);
        Ok(())
    }

    /// A state with its tickets renamed.
    fn rename(&mut self, key: &Key<W>, id: u32, map: &Map) -> Result<Key<W>, Interrupt> {
        let mut renamed = *key;
        if map.changes == Labels::default() {
            return Ok(renamed);
        }
        for r in 0..self.plan.registers.len() {
            let field = self.plan.registers[r];
            let value = field.get(key);
            if !self.value_labels(r, value).meets(map.changes) {
                continue;
            }
            let new = match self.renamed_values.get(&(r as u16, value, id)) {
                Some(&new) => new,
                None => {
                    let new = self.lock().relabel_value(r as u16, value, map)?;
                    self.renamed_values.insert((r as u16, value, id), new);
                    new
                }
            };
            if !field.fits(new) {
                return Err(Interrupt::Narrow);
            }
            field.set(&mut renamed, new);
        }
        for p in 0..self.plan.locals.len() {
            let field = self.plan.locals[p];
            let local = field.get(key);
            if !self.local_labels(p, local).meets(map.changes) {
                continue;
            }
            let new = match self.renamed_locals.get(&(p as u16, local, id)) {
                Some(&new) => new,
                None => {
                    let new = self.lock().relabel_local(p, local, map)?;
                    self.renamed_locals.insert((p as u16, local, id), new);
                    new
                }
            };
            if !field.fits(new) {
                return Err(Interrupt::Narrow);
            }
            field.set(&mut renamed, new);
        }
        Ok(renamed)
    }
}
