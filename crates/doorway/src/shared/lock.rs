//! A named lock of any kind: what semaphore, mutex and group lock have in common.

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
    time::{Duration, Instant},
};

use doorway_core::{
    CompareAndSwap, Ticket, Value, raw,
    recoverable::{Owner, Place as Spot, State, Tally},
};
use rustix::time::{ClockId, clock_gettime};

use super::{
    Error, Kind,
    file::{File, ROW},
    liveness,
    map::Map,
    memory::{Mapped, Stop, row},
};

/// A named lock of any kind.
///
/// Entering one from a process that has been forked since it was opened is entering it as that process.
pub struct Lock {
    pub(super) file: Arc<File>,
    /// Who this process is, and its rows that are not in use; forgotten by a process that is forked.
    own: Map,
}

/// Where things stand among the words of one's own: who one is, how many rows, which. In the middle of the page, as the rows that are
/// used most are at the beginning of theirs: processors take a store and a load for the same if their places in a page are.
const ME: usize = 269;
/// The row with which it comes in through the gate, counted from 1.
const GATE: usize = 270;
const COUNT: usize = 271;
const FIRST: usize = 272;
/// As many words are a page.
const OWN: usize = 512;

/// A row with a place in line or a slot. Few words: it is handed from function to function.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    pub(super) ticket: Ticket,
    /// The row, and one bit whether it came in through the gate; above it which slot, and one bit whether its last holder died in it, or [`NO_SLOT`] while it waits. In one word: what
    /// is written in halves and read whole makes processors wait.
    row_and_slot: u64,
}

const NO_SLOT: u32 = u32::MAX;
const BY_GATE: u32 = 1 << 31;

impl Standing {
    #[inline(always)]
    pub(super) fn new(row: usize, spot: Spot) -> Self {
        let slot = spot.slot.map_or(NO_SLOT, |slot| slot << 1 | u32::from(spot.recovered));
        let row = row as u32 | if spot.by_gate { BY_GATE } else { 0 };
        Self { ticket: spot.ticket, row_and_slot: u64::from(slot) << 32 | u64::from(row) }
    }

    #[inline(always)]
    pub(super) fn by_gate(&self) -> bool {
        self.row_and_slot as u32 & BY_GATE != 0
    }

    #[inline(always)]
    pub(super) fn holds(&self) -> bool {
        (self.row_and_slot >> 32) as u32 != NO_SLOT
    }

    #[inline(always)]
    pub(super) fn slot(&self) -> u32 {
        (self.row_and_slot >> 33) as u32
    }

    pub(super) fn recovered(&self) -> bool {
        self.row_and_slot >> 32 & 1 != 0
    }

    #[inline(always)]
    pub(super) fn row(&self) -> usize {
        (self.row_and_slot as u32 & !BY_GATE) as usize
    }
}

/// The monotonic clock, to a few milliseconds, in nanoseconds.
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
        lock.introduce()?;
        Ok(lock)
    }

    /// What kind of lock it is.
    pub fn kind(&self) -> Kind {
        self.file.kind()
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Its name.
    pub fn name(&self) -> String {
        self.path().file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// How many may hold and wait together.
    pub fn capacity(&self) -> usize {
        self.file.table().rows()
    }

    /// How many slots there are.
    pub fn slots(&self) -> usize {
        self.tally().slots().into()
    }

    /// Whether the lock has been [removed](Self::remove), which is done only while no process holds a slot or waits.
    pub fn is_removed(&self) -> bool {
        self.file.is_removed()
    }

    /// Whether the file is still there, whole: [`Error::Lost`] if it has been removed.
    ///
    /// Who waits asks so by itself. Who holds a slot may want to.
    ///
    /// # Errors
    /// When it is not.
    pub fn check(&self) -> Result<(), Error> {
        self.file.check()
    }

    pub(super) fn tally(&self) -> Tally {
        let word = self.file.words()[self.file.table().tally().index()].load(Acquire);
        Tally::from_word(u128::from(word), ())
    }

    /// This process, as others know it.
    #[inline(always)]
    pub(super) fn me(&self) -> Result<Owner, Error> {
        match self.known() {
            Some(me) => Ok(me),
            None => self.introduce(),
        }
    }

    /// Who this process is, if it has said so.
    #[inline(always)]
    pub(super) fn known(&self) -> Option<Owner> {
        Option::<Owner>::from_word(u128::from(self.own.words()[ME].load(Relaxed)), ())
    }

    /// Establishes who this process is. A process that was forked since the lock was opened may be in another namespace.
    #[cold]
    fn introduce(&self) -> Result<Owner, Error> {
        let identity = |errno| Error::identity(self.path(), errno);
        if liveness::namespaces().map_err(identity)? != self.file.namespaces() {
            return Err(Error::Namespace(self.path().into()));
        }
        let me = liveness::myself().map_err(identity)?;
        self.own.words()[ME].store(Some(me).word() as u64, Relaxed);
        Ok(me)
    }

    pub(super) fn error(&self, stop: Stop) -> Error {
        match stop {
            Stop::Failed(error) => *error,
            Stop::Damaged => self.file.check().err().unwrap_or_else(|| Error::Damaged(self.path().into())),
            Stop::Late => self.file.check().err().unwrap_or_else(|| self.stuck()),
        }
    }

    /// Says which process holds the table lock.
    fn stuck(&self) -> Error {
        let word = self.file.words()[self.file.table().guard().index()].load(Acquire);
        let holder = Option::<Owner>::from_word(u128::from(word), ()).and_then(liveness::pid);
        Error::Stuck { path: self.path().into(), pid: holder.map_or(0, |pid| pid.as_raw_nonzero().get()) }
    }

    /// Does something with the guard, and gives it back whatever comes of it.
    #[inline(always)]
    pub(super) fn guarded<T>(
        &self,
        m: &mut Mapped<'_>,
        me: Owner,
        run: impl FnOnce(&mut Mapped<'_>) -> Result<T, Stop>,
    ) -> Result<T, Stop> {
        let table = self.file.table();
        table.take(m, me)?;
        let done = run(m);
        table.give(m)?;
        m.wake_heir();
        done
    }

    #[cold]
    pub(super) fn lost(&self) -> Stop {
        Error::Lost(self.path().into()).into()
    }

    /// Notes when it entered, for those who look.
    pub(super) fn stamp(&self, standing: &Standing, entered: u64) {
        let first = standing.row() * ROW;
        if let Some(words) = self.file.words().get(first..first + ROW) {
            words[row::ENTERED].store(entered, Relaxed);
            words[row::SINCE].store(entered, Relaxed);
            words[row::STAMPED].store(raw::number(standing.ticket), Release);
        }
    }

    /// Notes for those who look that it holds from now on, or so. Who has waited has noted it already.
    pub(super) fn stamp_holder(&self, standing: &Standing) {
        self.stamp(standing, now());
    }

    /// The row of this process that comes in through the gate. It is in use only while that is not open, so it may be many threads'.
    #[inline(always)]
    pub(super) fn gate_row(&self) -> Option<usize> {
        (self.own.words()[GATE].load(Relaxed) as usize).checked_sub(1)
    }

    /// A row of this process that is not in use. With the guard, which also keeps other threads away.
    pub(super) fn own_row<M: CompareAndSwap>(&self, m: &mut M) -> Result<Option<usize>, M::Halt> {
        if let Some(row) = self.gate_row()
            && m.read(self.file.table().state(row))? == State::Idle
        {
            return Ok(Some(row));
        }
        let own = self.own.words();
        let count = own[COUNT].load(Relaxed) as usize;
        let Some(row) = count.checked_sub(1).and_then(|last| own.get(FIRST + last)) else { return Ok(None) };
        own[COUNT].store(count as u64 - 1, Relaxed);
        Ok(Some(row.load(Relaxed) as usize))
    }

    /// Keeps a row for later; gives it back if there are too many. With the guard.
    pub(super) fn keep_row<M: CompareAndSwap>(&self, m: &mut M, row: usize) -> Result<(), M::Halt> {
        let own = self.own.words();
        match self.gate_row() {
            None => own[GATE].store(row as u64 + 1, Relaxed),
            Some(gate) if gate == row => {}
            Some(_) => {
                let count = own[COUNT].load(Relaxed) as usize;
                let Some(word) = own.get(FIRST + count) else {
                    return self.file.table().give_up_row(m, row);
                };
                word.store(row as u64, Relaxed);
                own[COUNT].store(count as u64 + 1, Relaxed);
            }
        }
        Ok(())
    }

    /// Makes a row ready to be another process's: it is not held through the gate, and not kept for later.
    pub(super) fn part_with(&self, row: usize) -> Result<(), Stop> {
        let mut m = Mapped::new(&self.file, None);
        self.guarded(&mut m, self.me()?, |_| {
            if self.gate_row() == Some(row) {
                self.own.words()[GATE].store(0, Relaxed);
            }
            Ok(())
        })
    }
}

/// What the rows of this process would cost others: a look whether it is dead. So they are given back.
impl Drop for Lock {
    fn drop(&mut self) {
        let Some(me) = self.known() else { return };
        // Nobody waits for ever for somebody who has stopped with the guard, only to tidy up.
        let mut m = Mapped::new(&self.file, Some(Instant::now() + Duration::from_secs(1)));
        let _ = self.guarded(&mut m, me, |m| {
            while let Some(row) = self.own_row(m)? {
                self.file.table().give_up_row(m, row)?;
                if self.gate_row() == Some(row) {
                    self.own.words()[GATE].store(0, Relaxed);
                }
            }
            Ok(())
        });
    }
}

impl fmt::Debug for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lock").field("path", &self.path()).field("kind", &self.kind()).finish_non_exhaustive()
    }
}

/// For tests that write into the file.
#[doc(hidden)]
impl Lock {
    /// Its words.
    pub fn words(&self) -> &[AtomicU64] {
        self.file.words()
    }
}
