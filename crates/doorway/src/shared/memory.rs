//! The engine's memory: a mapped table.
//!
//! # Ordering
//!
//! Loads acquire and stores release; compare-and-swaps do both. That is enough, because all but four registers are touched with the
//! guard alone, and who takes the guard sees all that was done with it before. The gate is opened and shut with it, too: who comes in through it
//! has seen what was done before it was opened, and who shuts it what was done by those who left through it. A name that is compared before that may be
//! written meanwhile, with the guard: then the gate was shut before. Without it, a process reads its own state, which a granter
//! writes last: it sees the slot that was written before. What it reads of others, looking for the dead, are hints that count for
//! nothing until it has the guard. Whether somebody is to be woken is the one question with a store before a load on both
//! sides; there is a fence between them in each.

use std::{
    hint::spin_loop,
    sync::atomic::{
        AtomicU64,
        Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst},
        fence,
    },
    thread,
    time::{Duration, Instant},
};

use doorway_core::{
    CompareAndSwap, Memory, Mortal, Register, Registers, Value,
    recoverable::{Owner, State},
};
use rustix::{thread::futex, time::Timespec};

use super::{
    Error,
    file::{File, ROW},
    liveness,
    map::low_half,
};

/// How long a waiter sleeps before it looks for the dead.
const LOOK: Duration = Duration::from_millis(20);

/// After so many times all look: whoever is ahead may be stopped.
const ALL_LOOK: u32 = 10;

/// Rounds of waiting for the guard that spin, and those that let others run before it is slept. Who has it needs it for less
/// than a microsecond, unless it is not running.
const SPINS: u32 = 100;
const YIELDS: u32 = 300;

/// How often one who waits lets others run before it sleeps. Who sleeps is woken in the time of many short passages, and everybody behind it waits for
/// that as well: with these it is mostly awake when its turn comes, if passages are short and few wait.
const TURNS: u32 = 64;

/// Words of a row that are not the engine's.
pub(super) mod row {
    /// When its owner entered and when it got its slot, in nanoseconds of the monotonic clock; and with which ticket, or it is of
    /// another time.
    pub(in super::super) const ENTERED: usize = 12;
    pub(in super::super) const SINCE: usize = 13;
    pub(in super::super) const STAMPED: usize = 14;
    /// Its owner sleeps.
    pub(super) const ASLEEP: usize = 15;
}

/// Why a process stops in the middle of the engine.
#[derive(Debug)]
pub(super) enum Stop {
    /// Its time is over.
    Late,
    /// An index that is out of bounds, or a row that is not its own any more.
    Damaged,
    /// It went wrong otherwise. In a box, since it is carried through everything that goes well.
    Failed(Box<Error>),
}

impl From<Error> for Stop {
    #[cold]
    fn from(error: Error) -> Self {
        Self::Failed(Box::new(error))
    }
}

/// One process's view of the table.
pub(super) struct Mapped<'a> {
    file: &'a File,
    words: &'a [AtomicU64],
    until: Option<Instant>,
    /// How often the guard has been waited for in a row.
    round: u32,
    /// How often it has slept without a change.
    slept: u32,
    /// Whose state has changed, to be woken once the guard is given back: that takes longer than anything done with it.
    heir: Option<&'a AtomicU64>,
    /// It has the guard, and gives it back whatever happens: who stops at something damaged must not keep others waiting.
    guard: bool,
}

impl<'a> Mapped<'a> {
    #[inline(always)]
    pub(super) fn new(file: &'a File, until: Option<Instant>) -> Self {
        Self { file, words: file.words(), until, round: 0, slept: 0, heir: None, guard: false }
    }

    fn is_guard<T: Value>(&self, register: Register<T>) -> bool {
        register.index() == self.file.table().guard().index()
    }

    #[inline(always)]
    fn word<T: Value>(&self, register: Register<T>) -> Result<&'a AtomicU64, Stop> {
        self.words.get(register.index()).ok_or(Stop::Damaged)
    }

    /// Whether nobody alive waits right before this row, who would look for the dead in its stead. Those further ahead are the business of that one.
    fn is_to_look(&self, seen: State) -> bool {
        let (State::Waiting(mine), table) = (seen, self.file.table()) else { return true };
        let value = |register: Register<State>| self.words.get(register.index()).map(|word| word.load(Relaxed));
        let ahead = |row: usize| match State::from_word(value(table.state(row))?.into(), ()) {
            State::Waiting(other) if other < mine => Some((other, row)),
            _ => None,
        };
        let Some((_, row)) = (0..table.rows()).filter_map(ahead).max() else { return true };
        let owner = self.words.get(table.owner(row).index()).map(|word| word.load(Relaxed));
        // It may have gone meanwhile, and then the next look finds another there.
        match Option::<Owner>::from_word(owner.unwrap_or(0).into(), ()) {
            Some(owner) => liveness::is_dead(owner),
            None => true,
        }
    }

    /// Wakes who has been granted a slot.
    #[inline(always)]
    pub(super) fn wake_heir(&mut self) {
        if let Some(state) = self.heir.take() {
            wake(state);
        }
    }

    fn is_late(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }

    #[cold]
    #[inline(never)]
    fn wait_for_guard(&mut self, round: u32) -> Result<(), Stop> {
        self.round = round;
        if round < SPINS {
            spin_loop();
        } else if round < YIELDS {
            thread::yield_now();
        } else {
            // Somebody who has the guard is stopped or dead, or the processor is far too busy.
            if self.is_late() {
                return Err(Stop::Late);
            }
            self.file.check()?;
            thread::sleep(Duration::from_micros(200));
        }
        Ok(())
    }
}

/// Whom to wake once the guard is given back: whose state has changed, if it sleeps. One who has been granted a slot before does not
/// have to wait for that.
fn to_wake<'a>(words: &'a [AtomicU64], state: Register<State>, before: Option<&'a AtomicU64>) -> Option<&'a AtomicU64> {
    fence(SeqCst);
    let asleep = words.get(state.index() / ROW * ROW + row::ASLEEP)?;
    if asleep.load(Relaxed) == 0 {
        return before;
    }
    before.map(wake);
    words.get(state.index())
}

#[cold]
fn wake(state: &AtomicU64) {
    let _ = futex::wake(low_half(state), futex::Flags::empty(), 1);
}

/// However it ends.
impl Drop for Mapped<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.guard
            && let Ok(guard) = self.word(self.file.table().guard())
        {
            guard.store(0, Release);
        }
        self.wake_heir();
    }
}

impl Memory for Mapped<'_> {
    type Halt = Stop;

    fn choose(&mut self, _: u32) -> Result<u32, Stop> {
        Ok(0) // the engine makes no choices
    }

    fn toss(&mut self, _: u32) -> Result<u32, Stop> {
        Ok(0)
    }

    fn relax(&mut self, round: u32) -> Result<(), Stop> {
        self.wait_for_guard(round)
    }

    /// The engine waits for two things: for the guard, with a pause after each round, and for a state, which it sleeps on.
    fn repeat<S, R, F>(&mut self, init: S, body: F) -> Result<R, Stop>
    where
        S: doorway_core::Local,
        R: doorway_core::Local,
        F: Fn(&mut Self, S) -> Result<std::ops::ControlFlow<R, S>, Stop> + Sync,
    {
        let mut state = init;
        let mut round = 0;
        loop {
            self.round = round;
            let slept = self.slept;
            match body(self, state)? {
                std::ops::ControlFlow::Break(result) => return Ok(result),
                std::ops::ControlFlow::Continue(next) => state = next,
            }
            if self.slept == slept {
                self.relax(round)?;
            }
            round = round.saturating_add(1);
        }
    }
}

/// Both views access words alike.
macro_rules! accesses {
    ($($view:ident),*) => {$(
        impl Registers for $view<'_> {
            #[inline(always)]
            fn read<T: Value>(&mut self, register: Register<T>) -> Result<T, Self::Halt> {
                Ok(T::from_word(u128::from(self.word(register)?.load(Acquire)), register.format()))
            }

            #[inline(always)]
            fn write<T: Value>(&mut self, register: Register<T>, value: T) -> Result<(), Self::Halt> {
                self.word(register)?.store(value.word() as u64, Release);
                self.stored(register);
                Ok(())
            }
        }

        impl CompareAndSwap for $view<'_> {
            #[inline(always)]
            fn compare_and_swap<T: Value>(&mut self, register: Register<T>, old: T, new: T) -> Result<T, Self::Halt> {
                let (old, new) = (old.word() as u64, new.word() as u64);
                let held = match self.word(register)?.compare_exchange(old, new, AcqRel, Acquire) {
                    Ok(held) => {
                        self.swapped(register);
                        held
                    }
                    Err(held) => held,
                };
                Ok(T::from_word(u128::from(held), register.format()))
            }
        }
    )*};
}

accesses!(Mapped, Quick);

/// The view of a process that has nothing to wait for: two words, which the compiler keeps in registers.
pub(super) struct Quick<'a>(&'a [AtomicU64]);

/// An index is out of bounds.
#[derive(Debug)]
pub(super) struct OutOfBounds;

impl<'a> Quick<'a> {
    #[inline(always)]
    pub(super) fn new(words: &'a [AtomicU64]) -> Self {
        Self(words)
    }

    #[inline(always)]
    fn word<T: Value>(&self, register: Register<T>) -> Result<&'a AtomicU64, OutOfBounds> {
        self.0.get(register.index()).ok_or(OutOfBounds)
    }
}

impl Quick<'_> {
    #[inline(always)]
    fn stored<T: Value>(&self, _: Register<T>) {}

    #[inline(always)]
    fn swapped<T: Value>(&self, _: Register<T>) {}
}

/// The guard is taken by compare-and-swap and given back by a write.
impl Mapped<'_> {
    fn stored<T: Value>(&mut self, register: Register<T>) {
        self.guard &= !self.is_guard(register);
    }

    fn swapped<T: Value>(&mut self, register: Register<T>) {
        self.guard |= self.is_guard(register);
    }
}

/// The engine makes no choices, and does not wait here.
impl Memory for Quick<'_> {
    type Halt = OutOfBounds;

    fn choose(&mut self, _: u32) -> Result<u32, OutOfBounds> {
        Err(OutOfBounds)
    }

    fn toss(&mut self, _: u32) -> Result<u32, OutOfBounds> {
        Err(OutOfBounds)
    }

    fn relax(&mut self, _: u32) -> Result<(), OutOfBounds> {
        Err(OutOfBounds)
    }
}

impl Mortal for Mapped<'_> {
    fn is_dead(&mut self, owner: Owner, _: Register<u64>) -> Result<bool, Stop> {
        Ok(liveness::is_dead(owner))
    }

    fn seems_dead(&mut self, owner: Owner, _: Register<u64>) -> Result<bool, Stop> {
        Ok(self.round >= YIELDS && liveness::is_dead(owner))
    }

    /// Lets others run for a moment, then sleeps until it is woken or it is time to look. The first in line looks each
    /// time, and those behind see that it can: they would all find the same.
    fn sleep(&mut self, state: Register<State>, seen: State) -> Result<bool, Stop> {
        self.wake_heir();
        let word = self.word(state)?;
        if seen == State::Idle {
            // Somebody took us for dead, or wrote where it should not.
            return Err(Stop::Damaged);
        }
        let changed = || word.load(Acquire) != seen.word() as u64;
        self.slept += 1;
        // Only at first: who has slept already has waited for long, and will.
        for _ in 0..if self.slept == 1 { TURNS } else { 0 } {
            if changed() {
                return Ok(false);
            }
            thread::yield_now();
        }
        let now = Instant::now();
        let left = self.until.map_or(LOOK, |until| until.saturating_duration_since(now).min(LOOK));
        let asleep = self.words.get(state.index() / ROW * ROW + row::ASLEEP).ok_or(Stop::Damaged)?;
        asleep.store(1, Relaxed);
        fence(SeqCst);
        let time = Timespec { tv_sec: 0, tv_nsec: left.subsec_nanos().into() };
        // It does not matter why it ends: the state is looked at again.
        let _ = futex::wait(low_half(word), futex::Flags::empty(), seen.word() as u32, Some(&time));
        asleep.store(0, Relaxed);
        if changed() {
            return Ok(false);
        }
        if self.is_late() {
            return Err(Stop::Late);
        }
        self.file.check()?;
        Ok(self.slept.is_multiple_of(ALL_LOOK) || self.is_to_look(seen))
    }

    fn wake(&mut self, state: Register<State>) {
        self.heir = to_wake(self.words, state, self.heir);
    }
}
