//! A lock handle: the identity of this process, and the entries of the process table that it owns.

use std::{
    fmt,
    path::Path,
    sync::{
        Arc,
        atomic::{
            AtomicU64,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
    thread,
    time::{Duration, Instant},
};

use doorway_core::{
    CompareAndSwap, Registers, Ticket, Value,
    engines::named_lock::{Owner, Place as Spot, State, Tally},
    raw,
};
use rustix::time::{ClockId, clock_gettime};

use super::{
    Error, Kind,
    file::{CHUNK, File, entry},
    liveness,
    map::Map,
    memory::{Mapped, Stop},
};

/// A named lock of any kind.
///
/// A process that was forked since the lock was opened enters it as a process of its own.
pub struct Lock {
    pub(super) file: Arc<File>,
    /// The identity of this process and its idle entries; zeros in a process that is forked.
    own: Map,
}

/// Where the words of `own` are: in the middle of the page, as the entries that are used most are
/// at the beginning of theirs. Processors take a store and a load for the same if their places in a
/// page are.
const ME: usize = 269;
/// 1 while a thread establishes the identity.
const IS_IDENTIFYING: usize = 268;
/// The entry for the fast path, counted from 1.
const FAST: usize = 270;
const COUNT: usize = 271;
const FIRST: usize = 272;
/// As many words are a page.
const OWN: usize = 512;

/// An entry with a place in the queue or a slot. Few words: it is handed from function to function.
#[derive(Clone, Copy, Debug)]
pub(super) struct Position {
    pub(super) ticket: Ticket,
    /// The entry, and one bit whether the slot was acquired on the fast path; above them the slot,
    /// and one bit whether its last holder died with it, or [`NO_SLOT`] while it waits. In one
    /// word: what is written in halves and read whole makes processors wait.
    entry_and_slot: u64,
}

const NO_SLOT: u32 = u32::MAX;
const IS_FAST: u32 = 1 << 31;

impl Position {
    #[inline(always)]
    pub(super) fn new(entry: usize, spot: Spot) -> Self {
        let slot = spot.slot.map_or(NO_SLOT, |slot| slot << 1 | u32::from(spot.recovered));
        let entry = entry as u32 | if spot.fast { IS_FAST } else { 0 };
        Self { ticket: spot.ticket, entry_and_slot: u64::from(slot) << 32 | u64::from(entry) }
    }

    #[inline(always)]
    pub(super) fn is_fast(&self) -> bool {
        self.entry_and_slot as u32 & IS_FAST != 0
    }

    #[inline(always)]
    pub(super) fn holds(&self) -> bool {
        (self.entry_and_slot >> 32) as u32 != NO_SLOT
    }

    #[inline(always)]
    pub(super) fn slot(&self) -> u32 {
        (self.entry_and_slot >> 33) as u32
    }

    pub(super) fn recovered(&self) -> bool {
        self.entry_and_slot >> 32 & 1 != 0
    }

    #[inline(always)]
    pub(super) fn entry(&self) -> usize {
        (self.entry_and_slot as u32 & !IS_FAST) as usize
    }
}

/// Returns the monotonic clock, to a few milliseconds, in nanoseconds.
#[inline]
pub(super) fn now() -> u64 {
    let now = clock_gettime(ClockId::MonotonicCoarse);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

impl Lock {
    /// Opens a lock for this process.
    ///
    /// # Errors
    /// When the process cannot be identified.
    pub(super) fn new(file: File) -> Result<Self, Error> {
        // Without a page there is no memory for anything else either.
        let own = Map::wiped_on_fork(OWN).expect("the system gives a page of memory");
        let lock = Self { file: Arc::new(file), own };
        lock.identify()?;
        Ok(lock)
    }

    /// Returns the kind of the lock.
    pub fn kind(&self) -> Kind {
        self.file.kind()
    }

    /// Returns the lock's file.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Returns the lock's name.
    pub fn name(&self) -> String {
        self.path().file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Returns how many processes may hold and wait together.
    pub fn capacity(&self) -> usize {
        self.file.table().entries()
    }

    /// Returns how many slots there are.
    pub fn slots(&self) -> usize {
        self.tally().slots().into()
    }

    /// Returns whether the lock has been [removed](Self::remove), which is possible only while no
    /// process holds a slot or waits.
    pub fn is_removed(&self) -> bool {
        self.file.is_removed()
    }

    /// Checks that the file is still there, whole. A waiter does so by itself; a holder may want to
    /// do so.
    ///
    /// # Errors
    /// [`Error::Lost`] if the file has been removed.
    pub fn check(&self) -> Result<(), Error> {
        self.file.check()
    }

    pub(super) fn tally(&self) -> Tally {
        let word = self.file.words()[self.file.table().tally().index()].load(Acquire);
        Tally::from_word(u128::from(word), ())
    }

    /// Returns the identity of this process.
    #[inline(always)]
    pub(super) fn me(&self) -> Result<Owner, Error> {
        match self.known() {
            Some(me) => Ok(me),
            None => self.identify(),
        }
    }

    /// Returns the identity of this process, if it is established.
    #[inline(always)]
    pub(super) fn known(&self) -> Option<Owner> {
        Option::<Owner>::from_word(u128::from(self.own.words()[ME].load(Relaxed)), ())
    }

    /// Establishes the identity of this process. A process that was forked since the lock was
    /// opened may be in another namespace.
    #[cold]
    fn identify(&self) -> Result<Owner, Error> {
        let is_busy = &self.own.words()[IS_IDENTIFYING];
        while is_busy.swap(1, Acquire) != 0 {
            thread::yield_now();
        }
        let me = self.known().map_or_else(|| self.file.identify(), Ok);
        if let Ok(me) = me {
            self.own.words()[ME].store(Some(me).word() as u64, Relaxed);
        }
        is_busy.store(0, Release);
        me
    }

    pub(super) fn error(&self, stop: Stop) -> Error {
        match stop {
            Stop::Failed(error) => *error,
            Stop::Damaged => {
                self.file.check().err().unwrap_or_else(|| Error::Damaged(self.path().into()))
            }
            Stop::Late => self.file.check().err().unwrap_or_else(|| self.stuck()),
        }
    }

    /// Names the process that holds the table lock.
    fn stuck(&self) -> Error {
        let word = self.file.words()[self.file.table().table_lock().index()].load(Acquire);
        let holder = Option::<Owner>::from_word(u128::from(word), ()).and_then(liveness::pid);
        Error::Stuck {
            path: self.path().into(),
            pid: holder.map_or(0, |pid| pid.as_raw_nonzero().get()),
        }
    }

    #[cold]
    pub(super) fn lost(&self) -> Stop {
        Error::Lost(self.path().into()).into()
    }

    /// Notes for [`status`](Self::status) when the process entered.
    pub(super) fn stamp(&self, position: &Position, entered: u64) {
        let first = position.entry() * entry::WORDS;
        if let Some(words) = self.file.words().get(first..first + entry::WORDS) {
            words[entry::ENTERED].store(entered, Relaxed);
            words[entry::SINCE].store(entered, Relaxed);
            words[entry::STAMPED].store(raw::number(position.ticket), Release);
        }
    }

    /// Notes for [`status`](Self::status) that the process holds from now on. A process that has
    /// waited has noted it already.
    pub(super) fn stamp_holder(&self, position: &Position) {
        self.stamp(position, now());
    }

    /// Returns the entry of this process for the fast path. It is in use only while the fast path
    /// is not open, so many threads may share it.
    #[inline(always)]
    pub(super) fn fast_entry(&self) -> Option<usize> {
        (self.own.words()[FAST].load(Relaxed) as usize).checked_sub(1)
    }

    /// Returns an idle entry of this process, with the table lock, which also keeps other threads
    /// away.
    pub(super) fn own_entry<M: CompareAndSwap>(&self, m: &mut M) -> Result<Option<usize>, M::Halt> {
        if let Some(entry) = self.fast_entry()
            && m.read(self.file.table().state(entry))? == State::Idle
        {
            return Ok(Some(entry));
        }
        let own = self.own.words();
        let count = own[COUNT].load(Relaxed) as usize;
        let Some(entry) = count.checked_sub(1).and_then(|last| own.get(FIRST + last)) else {
            return Ok(None);
        };
        own[COUNT].store(count as u64 - 1, Relaxed);
        Ok(Some(entry.load(Relaxed) as usize))
    }

    /// Claims an entry for this process, with the table lock: a vacant one, else one of a dead
    /// process or a new one. Before the file grows by another chunk of entries, entries of dead
    /// processes are looked for.
    #[cold]
    #[inline(never)]
    pub(super) fn claim_entry(&self, m: &mut Mapped<'_>, me: Owner) -> Result<usize, Stop> {
        let entry = self.claim(m, me)?;
        self.file.set_keeper(entry, None);
        Ok(entry)
    }

    fn claim(&self, m: &mut Mapped<'_>, me: Owner) -> Result<usize, Stop> {
        let table = self.file.table();
        let used = (m.read(table.used())? as usize).min(table.entries());
        if let Some(entry) = table.claim_vacant(m, me, 0..used)? {
            return Ok(entry);
        }
        if used.is_multiple_of(CHUNK) || used == table.entries() {
            if let Some(entry) = table.claim_from_dead(m, me, 0..used)? {
                return Ok(entry);
            }
            if used < table.entries() {
                self.file.reserve(used)?;
            }
        }
        match table.claim_new(m, me)? {
            Some(entry) => Ok(entry),
            None => Err(Error::Full { path: self.path().into(), entries: used }.into()),
        }
    }

    /// Keeps an idle entry for later, with the table lock; gives it back if there are too many.
    pub(super) fn keep_entry<M: CompareAndSwap>(
        &self,
        m: &mut M,
        entry: usize,
    ) -> Result<(), M::Halt> {
        let own = self.own.words();
        match self.fast_entry() {
            None => own[FAST].store(entry as u64 + 1, Relaxed),
            Some(fast) if fast == entry => {}
            Some(_) => {
                let count = own[COUNT].load(Relaxed) as usize;
                let Some(word) = own.get(FIRST + count) else {
                    return self.file.table().give_back(m, entry);
                };
                word.store(entry as u64, Relaxed);
                own[COUNT].store(count as u64 + 1, Relaxed);
            }
        }
        Ok(())
    }

    /// Forgets that an entry is this process's own, before it is handed over.
    pub(super) fn part_with(&self, entry: usize) -> Result<(), Stop> {
        let mut m = Mapped::new(&self.file, None);
        // The table lock closes the fast path, on which the entry may hold.
        self.locked(&mut m, self.me()?, |_| {
            if self.fast_entry() == Some(entry) {
                self.own.words()[FAST].store(0, Relaxed);
            }
            Ok(())
        })
    }
}

/// Gives the entries back: other processes would have to find out whether their owner is dead.
impl Drop for Lock {
    fn drop(&mut self) {
        let Some(me) = self.known() else { return };
        // Not for ever: a stopped process may hold the table lock.
        let mut m = Mapped::new(&self.file, Some(Instant::now() + Duration::from_secs(1)));
        let _ = self.locked(&mut m, me, |m| {
            while let Some(entry) = self.own_entry(m)? {
                self.file.table().give_back(m, entry)?;
                if self.fast_entry() == Some(entry) {
                    self.own.words()[FAST].store(0, Relaxed);
                }
            }
            Ok(())
        });
    }
}

impl fmt::Debug for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lock")
            .field("path", &self.path())
            .field("kind", &self.kind())
            .finish_non_exhaustive()
    }
}

/// For tests that write into the file.
#[doc(hidden)]
impl Lock {
    /// Returns the words of the table.
    pub fn words(&self) -> &[AtomicU64] {
        self.file.words()
    }
}
