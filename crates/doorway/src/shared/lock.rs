//! A named lock of any kind: what semaphore, mutex and group lock have in common.

use std::{
    fmt,
    path::Path,
    sync::{
        Arc,
        atomic::{
            AtomicU64,
            Ordering::{Acquire, Relaxed, SeqCst},
        },
    },
    time::{Duration, Instant},
};

use doorway_core::{
    Registers, Session, Value,
    recoverable::{Owner, Place as Spot, Tally},
};
use rustix::time::{ClockId, clock_gettime};

use super::{
    Error, Kind, Place,
    file::{File, NAME, ROW},
    identity,
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

/// Where things stand among the words of one's own: who one is, how many rows, which.
const ME: usize = 0;
const COUNT: usize = 1;
const FIRST: usize = 2;
/// As many words are a page.
const OWN: usize = 512;

/// A row with a place in line or a slot, and whose it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    pub(super) row: usize,
    pub(super) me: Owner,
    pub(super) spot: Spot,
}

/// The monotonic clock, to a few milliseconds, in nanoseconds.
#[inline]
pub(super) fn now() -> u64 {
    let now = clock_gettime(ClockId::MonotonicCoarse);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

impl Lock {
    pub(super) fn new(file: File) -> Self {
        // Without a page there is no memory for anything else either.
        let own = Map::wiped_on_fork(OWN).expect("the system gives a page of memory");
        Self { file: Arc::new(file), own }
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
        self.tally().slots.into()
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
    pub(super) fn me(&self) -> Owner {
        match self.known() {
            Some(me) => me,
            None => self.introduce(),
        }
    }

    /// Who this process is, if it has said so.
    #[inline(always)]
    pub(super) fn known(&self) -> Option<Owner> {
        Option::<Owner>::from_word(u128::from(self.own.words()[ME].load(Relaxed)), ())
    }

    #[cold]
    fn introduce(&self) -> Owner {
        let me = identity::myself();
        self.own.words()[ME].store(Some(me).word() as u64, Relaxed);
        me
    }

    pub(super) fn error(&self, stop: Stop) -> Error {
        match stop {
            Stop::Failed(error) => error,
            Stop::Damaged | Stop::Late => match self.file.check() {
                Err(error) => error,
                Ok(()) => Error::Damaged(self.path().into()),
            },
        }
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

    /// The doorway: takes a place in line. A group lock has to be asked for a session, the others not.
    ///
    /// # Errors
    /// When the table is full, or the file is lost or damaged.
    #[inline]
    pub fn enter(&self, session: Option<&str>) -> Result<Place<'_>, Error> {
        self.suits(session)?;
        let me = self.me();
        let mut m = Mapped::new(&self.file, None);
        let entered = self.guarded(&mut m, me, |m| self.line_up(m, me, session, false));
        match entered {
            Ok(Some(standing)) => Ok(Place::new(self, standing)),
            Ok(None) => Err(self.error(Stop::Damaged)),
            Err(stop) => Err(self.error(stop)),
        }
    }

    /// A place with a slot, if one is free, and nobody waits for it. Who is dead is not in the way.
    ///
    /// # Errors
    /// When the table is full, or the file is lost or damaged.
    pub fn try_enter(&self, session: Option<&str>) -> Result<Option<Place<'_>>, Error> {
        self.suits(session)?;
        let me = self.me();
        let mut m = Mapped::new(&self.file, None);
        let attempt = |m: &mut Mapped<'_>| self.guarded(m, me, |m| self.line_up(m, me, session, true));
        let first = attempt(&mut m);
        let last = match first {
            Ok(None) => self.file.table().look(&mut m, me, usize::MAX).and_then(|()| attempt(&mut m)),
            first => first,
        };
        match last {
            Ok(standing) => Ok(standing.map(|standing| Place::new(self, standing))),
            Err(stop) => Err(self.error(stop)),
        }
    }

    #[inline(always)]
    fn suits(&self, session: Option<&str>) -> Result<(), Error> {
        let fits = match session {
            None => self.kind() != Kind::GroupLock,
            Some(name) => self.kind() == Kind::GroupLock && (1..NAME * 8).contains(&name.len()),
        };
        if fits { Ok(()) } else { Err(Error::Session(session.unwrap_or_default().into())) }
    }

    /// Takes a row and a place, with the guard; `None` if it would have to wait and may not.
    #[inline(always)]
    fn line_up(
        &self,
        m: &mut Mapped<'_>,
        me: Owner,
        session: Option<&str>,
        at_once: bool,
    ) -> Result<Option<Standing>, Stop> {
        let table = self.file.table();
        if self.file.is_removed() {
            return Err(Stop::Failed(Error::Lost(self.path().into())));
        }
        let session = match session {
            None => Session(1),
            Some(name) => self.session(m, name)?,
        };
        if at_once {
            let tally = m.read(table.tally())?;
            if tally.waiting > 0 || !tally.admits(session) {
                return Ok(None);
            }
        }
        let row = match self.own_row() {
            Some(row) => row,
            None => match table.settle(m, me, 0..table.rows())? {
                Some(row) => row,
                None => {
                    let (path, rows) = (self.path().into(), table.rows());
                    return Err(Stop::Failed(Error::Full { path, rows }));
                }
            },
        };
        let spot = table.join(m, row, session)?;
        let time = now();
        self.stamp(row, row::ENTERED, time);
        self.stamp(row, row::SINCE, time);
        Ok(Some(Standing { row, me, spot }))
    }

    #[inline(always)]
    fn stamp(&self, row: usize, which: usize, time: u64) {
        if let Some(word) = self.file.words().get(row * ROW + which) {
            word.store(time, Relaxed);
        }
    }

    /// A row of this process that is not in use. With the guard, which also keeps other threads away.
    #[inline(always)]
    fn own_row(&self) -> Option<usize> {
        let own = self.own.words();
        let count = own[COUNT].load(Relaxed) as usize;
        let row = own.get(FIRST + count.checked_sub(1)?)?.load(Relaxed);
        own[COUNT].store(count as u64 - 1, Relaxed);
        Some(row as usize)
    }

    /// Keeps a row for later; gives it back if there are too many. With the guard.
    #[inline(always)]
    fn keep_row(&self, m: &mut Mapped<'_>, row: usize) -> Result<(), Stop> {
        let own = self.own.words();
        let count = own[COUNT].load(Relaxed) as usize;
        match own.get(FIRST + count) {
            Some(word) => {
                word.store(row as u64, Relaxed);
                own[COUNT].store(count as u64 + 1, Relaxed);
                Ok(())
            }
            None => m.write(self.file.table().owner(row), None),
        }
    }

    /// The number of a session, with the guard: that of those who have asked for it, or one that nobody has.
    fn session(&self, m: &mut Mapped<'_>, name: &str) -> Result<Session, Stop> {
        let table = self.file.table();
        let tally = m.read(table.tally())?;
        let mut asked = Vec::new();
        if tally.waiting > 0 || tally.inside > 0 {
            for row in 0..table.rows() {
                if m.read(table.state(row))? != doorway_core::recoverable::State::Idle {
                    asked.push(m.read(table.asks(row))?.0);
                }
            }
            asked.sort_unstable();
            asked.dedup();
        }
        if let Some(&number) = asked.iter().find(|&&number| self.session_name(number as usize).as_deref() == Some(name))
        {
            return Ok(Session(number));
        }
        // There are as many numbers as rows, and this process's row has none.
        let number = (1..).find(|number| !asked.contains(number)).ok_or(Stop::Damaged)?;
        let words = self.file.name(number as usize).ok_or(Stop::Damaged)?;
        let mut bytes = [0; NAME * 8];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        for (word, eight) in words.iter().zip(bytes.chunks_exact(8)) {
            word.store(u64::from_le_bytes(eight.try_into().expect("these are eight")), Relaxed);
        }
        Ok(Session(number))
    }

    /// The name of a session, if there can be such a number.
    pub(super) fn session_name(&self, number: usize) -> Option<String> {
        let words = self.file.name(number)?;
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.load(Relaxed).to_le_bytes()).collect();
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }

    /// Waits for the slot.
    pub(super) fn wait(&self, standing: &mut Standing, until: Option<Instant>) -> Result<(), Stop> {
        if standing.spot.slot.is_some() {
            return Ok(());
        }
        if self.known() != Some(standing.me) {
            return Err(Stop::Failed(Error::Forked(self.path().into())));
        }
        let mut m = Mapped::new(&self.file, until);
        standing.spot = self.file.table().wait(&mut m, standing.me, standing.row, standing.spot)?;
        self.stamp(standing.row, row::SINCE, now());
        Ok(())
    }

    /// Leaves the slot.
    #[inline(always)]
    pub(super) fn leave(&self, standing: &Standing) -> Result<(), Stop> {
        let Standing { row, me, spot } = *standing;
        // A process does not leave for the one that forked it.
        if self.known() != Some(me) {
            return Ok(());
        }
        let mut m = Mapped::new(&self.file, None);
        if m.read(self.file.table().owner(row))? != Some(me) {
            return self.leave_for_another(&mut m, me, row);
        }
        self.guarded(&mut m, me, |m| {
            self.file.table().vacate(m, row, spot.slot)?;
            self.keep_row(m, row)
        })
    }

    /// The row has been given to a child. If that is dead it is buried; else it stays.
    #[cold]
    fn leave_for_another(&self, m: &mut Mapped<'_>, me: Owner, row: usize) -> Result<(), Stop> {
        match m.read(self.file.table().owner(row))? {
            Some(other) if identity::is_dead(other) => self.file.table().bury(m, me, row, other),
            _ => Ok(()),
        }
    }

    /// Leaves the line, or a slot that has come meanwhile.
    pub(super) fn abandon(&self, standing: &Standing) -> Result<(), Stop> {
        let Standing { row, me, .. } = *standing;
        if self.known() != Some(me) {
            return Ok(());
        }
        let mut m = Mapped::new(&self.file, None);
        self.file.table().abandon(&mut m, me, row)?;
        self.guarded(&mut m, me, |m| self.keep_row(m, row))
    }

    /// Takes a row back from a child to which it was given, and which is dead. Says whether it was there still.
    pub(super) fn take_back(&self, standing: &Standing) -> Result<bool, Stop> {
        let Standing { row, me, .. } = *standing;
        let mut m = Mapped::new(&self.file, None);
        let owner = self.file.table().owner(row);
        match m.read(owner)? {
            Some(other) if other == me => Ok(true),
            Some(other) if identity::is_dead(other) => {
                use doorway_core::CompareAndSwap as _;
                Ok(m.compare_and_swap(owner, Some(other), Some(me))? == Some(other))
            }
            _ => Ok(false),
        }
    }

    /// How many wait before this place.
    pub(super) fn ahead(&self, standing: &Standing) -> usize {
        super::status::waiting(self).iter().filter(|waiter| waiter.ticket < standing.spot.ticket.label()).count()
    }

    /// Takes the rows and slots of the dead away from them. Whoever waits does so by itself.
    ///
    /// # Errors
    /// When the file is lost or damaged.
    pub fn bury_dead(&self) -> Result<(), Error> {
        let mut m = Mapped::new(&self.file, None);
        self.file.table().look(&mut m, self.me(), usize::MAX).map_err(|stop| self.error(stop))
    }

    /// Changes the number of slots. Who holds one that is no more keeps it until it leaves.
    ///
    /// # Errors
    /// When there cannot be so many, or the file is lost or damaged.
    pub fn set_slots(&self, slots: usize) -> Result<(), Error> {
        let most = if self.kind() == Kind::Mutex { 1 } else { self.capacity() };
        if slots == 0 || slots > most {
            return Err(Error::TooMany { path: self.path().into(), asked: slots, most });
        }
        self.change(|tally| Tally { slots: slots as u16, ..tally })
    }

    /// Lets nobody in any more; who is inside stays, and who waits waits.
    ///
    /// # Errors
    /// When the file is lost or damaged.
    pub fn drain(&self) -> Result<(), Error> {
        self.change(|tally| Tally { closed: true, ..tally })
    }

    /// Lets them in again.
    ///
    /// # Errors
    /// When the file is lost or damaged.
    pub fn resume(&self) -> Result<(), Error> {
        self.change(|tally| Tally { closed: false, ..tally })
    }

    /// Whether nobody is let in.
    pub fn is_drained(&self) -> bool {
        self.tally().closed
    }

    /// Changes what is not counted, and counts anew: who dies in between leaves the guard, and whoever takes it counts.
    fn change(&self, change: impl Fn(Tally) -> Tally) -> Result<(), Error> {
        let (me, table) = (self.me(), self.file.table());
        let mut m = Mapped::new(&self.file, None);
        let changed = self.guarded(&mut m, me, |m| {
            if self.file.is_removed() {
                return Err(Stop::Failed(Error::Lost(self.path().into())));
            }
            let tally = m.read(table.tally())?;
            m.write(table.tally(), change(tally))?;
            table.count(m)?;
            table.grant(m)
        });
        changed.map_err(|stop| self.error(stop))
    }

    /// Removes the lock, unless somebody holds or waits.
    ///
    /// # Errors
    /// [`Error::Busy`] if somebody does; or when the file is lost already or cannot be removed.
    pub fn remove(&self) -> Result<(), Error> {
        self.check()?;
        self.bury_dead()?;
        let (me, table) = (self.me(), self.file.table());
        self.file.remove(|| {
            let mut m = Mapped::new(&self.file, None);
            let marked = self.guarded(&mut m, me, |m| {
                let Tally { inside, waiting, .. } = m.read(table.tally())?;
                if inside > 0 || waiting > 0 {
                    let path = self.path().into();
                    return Err(Stop::Failed(Error::Busy { path, holders: inside.into(), waiting: waiting.into() }));
                }
                self.file.mark_removed();
                Ok(())
            });
            marked.map_err(|stop| self.error(stop))
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
            while let Some(row) = self.own_row() {
                m.write(self.file.table().owner(row), None)?;
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
        let _ = SeqCst;
        self.file.words()
    }
}
