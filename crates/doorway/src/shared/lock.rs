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
    Registers, Session, Ticket, Value,
    recoverable::{Owner, Place as Spot, State, Tally},
};
use rustix::time::{ClockId, clock_gettime};

use super::{
    Error, Kind, Place,
    file::{File, NAME, ROW},
    identity,
    map::Map,
    memory::{Mapped, OutOfBounds, Quick, Stop, row},
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
const ME: usize = 270;
const COUNT: usize = 271;
const FIRST: usize = 272;
/// As many words are a page.
const OWN: usize = 512;

/// A row with a place in line or a slot. Few words: it is handed from function to function.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    pub(super) ticket: Ticket,
    /// The row; above it which slot, and one bit whether its last holder died in it, or [`NO_SLOT`] while it waits. In one word: what
    /// is written in halves and read whole makes processors wait.
    row_and_slot: u64,
}

const NO_SLOT: u32 = u32::MAX;

impl Standing {
    #[inline(always)]
    fn new(row: usize, spot: Spot) -> Self {
        let slot = spot.slot.map_or(NO_SLOT, |slot| slot << 1 | u32::from(spot.recovered));
        Self { ticket: spot.ticket, row_and_slot: u64::from(slot) << 32 | row as u64 }
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
        self.row_and_slot as u32 as usize
    }
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
        self.tally().slots().into()
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
            Stop::Failed(error) => *error,
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
    pub fn enter(&self, session: Option<&str>) -> Result<Place<'_>, Error> {
        self.suits(session)?;
        match self.line_up_long(self.me(), session, false) {
            Ok(standing) => Ok(Place::new(self, standing)),
            Err(stop) => Err(self.error(stop)),
        }
    }

    /// The same where there are no sessions. If the guard, a row of one's own and a slot are there for the taking, this is all.
    #[inline(always)]
    pub(super) fn stand(&self) -> Result<Standing, Error> {
        let (table, mut m) = (self.file.table(), Quick::new(self.file.words()));
        let Some(me) = self.known() else { return self.stand_long(self.me(), false) };
        if !matches!(table.try_take(&mut m, me), Ok(true)) {
            return self.stand_long(me, false);
        }
        let Some(row) = self.own_row() else { return self.stand_long(me, true) };
        let spot = table.join(&mut m, row, Session(1));
        match (spot, table.give(&mut m)) {
            (Ok(spot), Ok(())) if spot.slot.is_some() => Ok(Standing::new(row, spot)),
            (Ok(spot), Ok(())) => self.stood(Standing::new(row, spot)).map_err(|stop| self.error(stop)),
            _ => Err(self.error(Stop::Damaged)),
        }
    }

    #[cold]
    #[inline(never)]
    fn stand_long(&self, me: Owner, guarded: bool) -> Result<Standing, Error> {
        self.line_up_long(me, None, guarded).map_err(|stop| self.error(stop))
    }

    /// The doorway, the long way; with the guard already or without.
    fn line_up_long(&self, me: Owner, session: Option<&str>, guarded: bool) -> Result<Standing, Stop> {
        let table = self.file.table();
        let mut m = if guarded { Mapped::with_guard(&self.file) } else { Mapped::new(&self.file, None) };
        if !guarded {
            table.take(&mut m, me)?;
        }
        let standing = self.line_up(&mut m, me, session);
        table.give(&mut m)?;
        self.stood(standing?)
    }

    /// Notes when it has entered, if it has to wait. Who goes in at once is mostly out again sooner than it takes to look at a clock.
    #[cold]
    #[inline(never)]
    fn stood(&self, standing: Standing) -> Result<Standing, Stop> {
        if !standing.holds() {
            if self.file.is_removed() {
                self.abandon(&standing)?;
                return Err(self.lost());
            }
            self.stamp(&standing, now());
        }
        Ok(standing)
    }

    /// A place with a slot, if one is free, and nobody waits for it. Who is dead is not in the way.
    ///
    /// # Errors
    /// When the table is full, or the file is lost or damaged.
    pub fn try_enter(&self, session: Option<&str>) -> Result<Option<Place<'_>>, Error> {
        self.suits(session)?;
        let me = self.me();
        let mut m = Mapped::new(&self.file, None);
        let attempt = |m: &mut Mapped<'_>| {
            self.guarded(m, me, |m| {
                let number = self.session(m, session)?;
                let tally = m.read(self.file.table().tally())?;
                if tally.waiting() > 0 || !tally.admits(number) {
                    return if self.file.is_removed() { Err(self.lost()) } else { Ok(None) };
                }
                self.line_up(m, me, session).map(Some)
            })
        };
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

    /// Takes a row and a place, with the guard.
    #[inline(always)]
    fn line_up(&self, m: &mut Mapped<'_>, me: Owner, session: Option<&str>) -> Result<Standing, Stop> {
        let session = self.session(m, session)?;
        let row = match self.own_row() {
            Some(row) => row,
            None => self.settle(m, me)?,
        };
        let spot = self.file.table().join(m, row, session)?;
        Ok(Standing::new(row, spot))
    }

    #[cold]
    #[inline(never)]
    fn settle(&self, m: &mut Mapped<'_>, me: Owner) -> Result<usize, Stop> {
        let table = self.file.table();
        match table.settle(m, me, 0..table.rows())? {
            Some(row) => Ok(row),
            None => Err(Error::Full { path: self.path().into(), rows: table.rows() }.into()),
        }
    }

    #[cold]
    fn lost(&self) -> Stop {
        Error::Lost(self.path().into()).into()
    }

    /// Notes when it entered, for those who look.
    fn stamp(&self, standing: &Standing, entered: u64) {
        let first = standing.row() * ROW;
        if let Some(words) = self.file.words().get(first..first + ROW) {
            words[row::ENTERED].store(entered, Relaxed);
            words[row::SINCE].store(entered, Relaxed);
            words[row::STAMPED].store(standing.ticket.label(), Release);
        }
    }

    /// Notes for those who look that it holds from now on, or so. Who has waited has noted it already.
    pub(super) fn stamp_holder(&self, standing: &Standing) {
        self.stamp(standing, now());
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
    fn keep_row<M: Registers>(&self, m: &mut M, row: usize) -> Result<(), M::Halt> {
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

    /// The number of a session, with the guard.
    #[inline(always)]
    fn session(&self, m: &mut Mapped<'_>, name: Option<&str>) -> Result<Session, Stop> {
        match name {
            None => Ok(Session(1)),
            Some(name) => self.number(m, name),
        }
    }

    /// The number of those who have asked for the session, or one that nobody has.
    fn number(&self, m: &mut Mapped<'_>, name: &str) -> Result<Session, Stop> {
        let table = self.file.table();
        let tally = m.read(table.tally())?;
        let mut asked = Vec::new();
        if tally.waiting() > 0 || tally.inside() > 0 {
            for row in 0..table.rows() {
                if m.read(table.state(row))? != State::Idle {
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
        if standing.holds() { Ok(()) } else { self.wait_long(standing, until) }
    }

    #[cold]
    #[inline(never)]
    fn wait_long(&self, standing: &mut Standing, until: Option<Instant>) -> Result<(), Stop> {
        let mut m = Mapped::new(&self.file, until);
        let (table, row, ticket) = (self.file.table(), standing.row(), standing.ticket);
        let me = match self.known() {
            Some(me) if m.read(table.owner(row))? == Some(me) => me,
            _ => return Err(Error::Forked(self.path().into()).into()),
        };
        let spot = table.wait(&mut m, me, row, Spot { ticket, slot: None, recovered: false })?;
        *standing = Standing::new(row, spot);
        if let Some(word) = self.file.words().get(row * ROW + row::SINCE) {
            word.store(now(), Relaxed);
        }
        Ok(())
    }

    /// Leaves the slot.
    #[inline(always)]
    pub(super) fn leave(&self, standing: &Standing) -> Result<(), Stop> {
        let (table, row) = (self.file.table(), standing.row());
        let mut m = Quick::new(self.file.words());
        let (Some(me), slot) = (self.is_mine(&mut m, standing), standing.slot()) else {
            return self.leave_for_another(standing);
        };
        if !matches!(table.try_take(&mut m, me), Ok(true)) {
            return self.leave_long(me, standing);
        }
        let kept = self.keep_row(&mut m, row);
        match (table.release(&mut m, row, Some(slot)), kept) {
            (Ok(false), Ok(())) => table.give(&mut m).map_err(|OutOfBounds| Stop::Damaged),
            (Ok(true), Ok(())) => self.hand_on(),
            _ => table.give(&mut m).and(Err(OutOfBounds)).map_err(|OutOfBounds| Stop::Damaged),
        }
    }

    /// Grants what has been left, with the guard, and gives that back.
    #[cold]
    #[inline(never)]
    fn hand_on(&self) -> Result<(), Stop> {
        let (table, mut m) = (self.file.table(), Mapped::with_guard(&self.file));
        let granted = table.grant(&mut m);
        table.give(&mut m)?;
        granted
    }

    /// Leaves, if the guard has to be waited for.
    #[cold]
    #[inline(never)]
    fn leave_long(&self, me: Owner, standing: &Standing) -> Result<(), Stop> {
        let mut m = Mapped::new(&self.file, None);
        self.guarded(&mut m, me, |m| {
            self.file.table().vacate(m, standing.row(), Some(standing.slot()))?;
            self.keep_row(m, standing.row())
        })
    }

    /// This process, if it has the row still, and for that ticket. A process does not leave for the one that forked it.
    #[inline(always)]
    fn is_mine(&self, m: &mut Quick<'_>, standing: &Standing) -> Option<Owner> {
        let (table, row) = (self.file.table(), standing.row());
        let ticket = match m.read(table.state(row)).ok()? {
            State::Waiting(ticket) | State::Holding { ticket, .. } => ticket,
            State::Idle => return None,
        };
        let owner = m.read(table.owner(row)).ok()?;
        if ticket == standing.ticket && owner == self.known() { owner } else { None }
    }

    /// The row has been given to a child. If that is dead it is buried; else it stays.
    #[cold]
    #[inline(never)]
    fn leave_for_another(&self, standing: &Standing) -> Result<(), Stop> {
        let (table, row, m) = (self.file.table(), standing.row(), &mut Mapped::new(&self.file, None));
        let (Some(me), Some(other)) = (self.known(), m.read(table.owner(row))?) else { return Ok(()) };
        let holds = matches!(m.read(table.state(row))?, State::Holding { ticket, .. } if ticket == standing.ticket);
        if holds && other != me && identity::is_dead(other) { table.bury(m, me, row, other) } else { Ok(()) }
    }

    /// Leaves the line, or a slot that has come meanwhile.
    pub(super) fn abandon(&self, standing: &Standing) -> Result<(), Stop> {
        let Some(me) = self.is_mine(&mut Quick::new(self.file.words()), standing) else { return Ok(()) };
        let mut m = Mapped::new(&self.file, None);
        self.file.table().abandon(&mut m, me, standing.row())?;
        self.guarded(&mut m, me, |m| self.keep_row(m, standing.row()))
    }

    /// Takes a row back from a child to which it was given, and which is dead. Says whether it was there still.
    pub(super) fn take_back(&self, standing: &Standing) -> Result<bool, Stop> {
        let me = self.me();
        let mut m = Mapped::new(&self.file, None);
        let owner = self.file.table().owner(standing.row());
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
        super::status::waiting(self).iter().filter(|waiter| waiter.ticket < standing.ticket.label()).count()
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
        self.change(|tally| tally.with_slots(slots as u16))
    }

    /// Lets nobody in any more; who is inside stays, and who waits waits.
    ///
    /// # Errors
    /// When the file is lost or damaged.
    pub fn drain(&self) -> Result<(), Error> {
        self.change(|tally| tally.with_closed(true))
    }

    /// Lets them in again.
    ///
    /// # Errors
    /// When the file is lost or damaged.
    pub fn resume(&self) -> Result<(), Error> {
        self.change(|tally| tally.with_closed(false))
    }

    /// Whether nobody is let in.
    pub fn is_drained(&self) -> bool {
        self.tally().closed()
    }

    /// Changes what is not counted, and counts anew: who dies in between leaves the guard, and whoever takes it counts.
    fn change(&self, change: impl Fn(Tally) -> Tally) -> Result<(), Error> {
        let (me, table) = (self.me(), self.file.table());
        let mut m = Mapped::new(&self.file, None);
        let changed = self.guarded(&mut m, me, |m| {
            if self.file.is_removed() {
                return Err(self.lost());
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
                let tally = m.read(table.tally())?;
                let (holders, waiting) = (tally.inside().into(), tally.waiting().into());
                if holders > 0 || waiting > 0 {
                    return Err(Error::Busy { path: self.path().into(), holders, waiting }.into());
                }
                self.file.mark_removed();
                // Whoever has it open finds no slot, waits, and learns why.
                m.write(table.tally(), tally.with_closed(true))
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
        self.file.words()
    }
}
