//! The engine's memory: a mapped table.
//!
//! # Ordering
//!
//! Loads acquire, stores release, and compare-and-swaps do both. That is enough:
//!
//! - All but four registers are accessed only with the table lock, and a process that takes it sees
//!   all that was done with it before.
//! - The fast path is opened and closed with the table lock. A process that acquires a slot on the
//!   fast path has seen what was done before it was opened. A process that closes it has seen what
//!   was done by the processes that released a slot there. The name of a session that is compared
//!   before that may be written at the same time, with the table lock: then the fast path was
//!   closed before.
//! - Without the table lock a process reads its own state, which a granter writes last: it sees the
//!   slot that was written before.
//! - What a process reads of other entries while it watches for deaths is a hint. It has no effect
//!   until the process has the table lock.
//! - Only the question whether a process has to be woken needs a store before a load on both sides.
//!   There is a fence between them on each side.

use std::{
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{
            AtomicU64,
            Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst},
            fence,
        },
    },
    time::Instant,
};

use doorway_core::{
    CompareAndSwap, Local, Memory, Register, Registers, Value,
    engines::named_lock::{Mortal, Owner, State},
};
use rustix::{thread::futex, time::Timespec};

use super::{
    Error,
    file::{File, entry, global},
    map::low_half,
    waiting::{Patience, Wait, wake},
};

/// Why a process stops in the middle of the engine.
#[derive(Debug)]
pub(super) enum Stop {
    /// Its time is over.
    Late,
    /// An index is out of bounds, or an entry is not its own any more.
    Damaged,
    /// Another error. Boxed, because this type is in the result of every successful step too.
    Failed(Box<Error>),
}

impl From<Error> for Stop {
    #[cold]
    fn from(error: Error) -> Self {
        Self::Failed(Box::new(error))
    }
}

/// One process's view of the table, for everything but the fast path.
pub(super) struct Mapped<'a> {
    pub(super) file: &'a Arc<File>,
    pub(super) words: &'a [AtomicU64],
    pub(super) until: Option<Instant>,
    /// How long this process has waited for the table lock.
    patience: Patience,
    /// Its wait for a slot, once it has begun.
    wait: Option<Wait>,
    /// The word of a sleeping waiter whose state has changed, to be woken once the table lock is
    /// released: waking takes longer than anything done with the table lock.
    heir: Option<&'a AtomicU64>,
    /// A process has left the queue, so another process may be at its front.
    has_new_front: bool,
    /// How often it has slept until the table lock was released.
    sleeps_for_table_lock: u32,
    /// It has the table lock, and releases it whatever happens: a process that finds damage and
    /// stops must not block other processes.
    has_table_lock: bool,
}

impl<'a> Mapped<'a> {
    #[inline(always)]
    pub(super) fn new(file: &'a Arc<File>, until: Option<Instant>) -> Self {
        Self {
            file,
            words: file.words(),
            until,
            patience: Patience::default(),
            wait: None,
            heir: None,
            has_new_front: false,
            sleeps_for_table_lock: 0,
            has_table_lock: false,
        }
    }

    fn is_table_lock<T: Value>(&self, register: Register<T>) -> bool {
        register.index() == self.file.table().table_lock().index()
    }

    #[inline(always)]
    fn word<T: Value>(&self, register: Register<T>) -> Result<&'a AtomicU64, Stop> {
        self.words.get(register.index()).ok_or(Stop::Damaged)
    }

    /// Wakes the process that has been granted a slot, and the process that is at the front of the
    /// queue now.
    #[inline(always)]
    pub(super) fn wake_heir(&mut self) {
        if let Some(asleep) = self.heir.take() {
            wake(asleep);
        }
        if self.has_new_front {
            self.has_new_front = false;
            self.file.wake_front_that_watches();
        }
    }

    /// Returns whether no process has told this one of its slot. The process that granted it may
    /// have been killed before it did.
    pub(super) fn is_untold(&self) -> bool {
        !self.wait.as_ref().is_some_and(Wait::is_told)
    }

    pub(super) fn is_late(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }

    #[inline(always)]
    fn stored<T: Value>(&mut self, register: Register<T>) {
        if self.has_table_lock && self.is_table_lock(register) {
            self.has_table_lock = false;
            self.file.wake_for_table_lock();
        }
    }

    #[inline(always)]
    fn swapped<T: Value>(&mut self, register: Register<T>) {
        if self.is_table_lock(register) {
            self.has_table_lock = true;
            if self.sleeps_for_table_lock > 0 {
                // The process that woke this one woke no other process, and more may sleep.
                self.sleeps_for_table_lock = 0;
                self.file.table_lock_waiters().store(1, Relaxed);
            }
        }
    }
}

impl Drop for Mapped<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.has_table_lock
            && let Ok(word) = self.word(self.file.table().table_lock())
        {
            word.store(0, Release);
            self.file.wake_for_table_lock();
        }
        self.wake_heir();
    }
}

impl Memory for Mapped<'_> {
    type Halt = Stop;

    /// Waits between two attempts to take the table lock.
    fn relax(&mut self, _: u32) -> Result<(), Stop> {
        if self.patience.spin() {
            return Ok(());
        }
        // The process with the table lock does not run, is stopped or dead, or the machine is busy.
        if self.is_late() {
            return Err(Stop::Late);
        }
        self.file.check()?;
        self.file.sleep_for_table_lock(self.sleeps_for_table_lock);
        self.sleeps_for_table_lock += 1;
        Ok(())
    }

    /// The engine waits for two things: for the table lock, with a pause after each attempt, and
    /// for a state, which it sleeps on.
    fn repeat<S, R, F>(&mut self, init: S, body: F) -> Result<R, Stop>
    where
        S: Local,
        R: Local,
        F: Fn(&mut Self, S) -> Result<ControlFlow<R, S>, Stop> + Sync,
    {
        let mut state = init;
        self.patience = Patience::default();
        loop {
            let slept = self.wait.as_ref().map_or(0, Wait::sleeps);
            match body(self, state)? {
                ControlFlow::Break(result) => return Ok(result),
                ControlFlow::Continue(next) => state = next,
            }
            if self.wait.as_ref().map_or(0, Wait::sleeps) == slept {
                self.relax(0)?;
            }
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

/// The view of a process on the fast path, which has nothing to wait for: two words, which the
/// compiler keeps in registers.
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

    #[inline(always)]
    fn stored<T: Value>(&self, _: Register<T>) {}

    #[inline(always)]
    fn swapped<T: Value>(&self, _: Register<T>) {}
}

/// The engine does not wait here.
impl Memory for Quick<'_> {
    type Halt = OutOfBounds;

    fn relax(&mut self, _: u32) -> Result<(), OutOfBounds> {
        Err(OutOfBounds)
    }
}

impl Mortal for Mapped<'_> {
    fn is_dead(&mut self, owner: Owner, _: Register<u64>) -> Result<bool, Stop> {
        Ok(self.file.is_dead(owner))
    }

    /// Asks only after it has waited for a while: the process with the table lock is nearly always
    /// alive.
    fn seems_dead(&mut self, owner: Owner, _: Register<u64>) -> Result<bool, Stop> {
        Ok(self.patience.is_over() && self.file.is_dead(owner))
    }

    fn sleep(&mut self, state: Register<State>, seen: State) -> Result<bool, Stop> {
        self.wake_heir();
        if seen == State::Idle {
            // The entry was reclaimed although its owner lives, or written by a stranger.
            return Err(Stop::Damaged);
        }
        let mut wait = self.wait.take().unwrap_or_default();
        let woken = wait.sleep(self, state, seen);
        self.wait = Some(wait);
        woken
    }

    /// Records which process to wake once the table lock is released: the process whose state has
    /// changed, if it sleeps. A process that was recorded before is woken now.
    fn wake(&mut self, state: Register<State>) {
        self.has_new_front = true;
        fence(SeqCst);
        let first = state.index() / entry::WORDS * entry::WORDS;
        let Some(asleep) = self.words.get(first + entry::ASLEEP) else { return };
        if asleep.load(Relaxed) != 0 {
            self.wake_heir();
            self.heir = Some(asleep);
        }
    }
}

impl File {
    /// The word that says that processes sleep until the table lock is released.
    fn table_lock_waiters(&self) -> &AtomicU64 {
        &self.words()[self.global(global::TABLE_LOCK_WAITERS)]
    }

    /// Sleeps until the table lock is released, or for a while, which is longer each time: its
    /// holder may be dead.
    fn sleep_for_table_lock(&self, times: u32) {
        let word = &self.words()[self.table().table_lock().index()];
        let seen = word.load(Acquire);
        if seen == 0 {
            return;
        }
        self.table_lock_waiters().store(1, Relaxed);
        fence(SeqCst);
        let limit = Timespec { tv_sec: 0, tv_nsec: 2_000_000 << times.min(4) };
        let _ = futex::wait(low_half(word), futex::Flags::empty(), seen as u32, Some(&limit));
    }

    /// Wakes a process that sleeps until the table lock is released.
    #[inline(always)]
    fn wake_for_table_lock(&self) {
        fence(SeqCst);
        let waiters = self.table_lock_waiters();
        if waiters.load(Relaxed) != 0 {
            waiters.store(0, Relaxed);
            let word = &self.words()[self.table().table_lock().index()];
            let _ = futex::wake(low_half(word), futex::Flags::empty(), 1);
        }
    }
}
