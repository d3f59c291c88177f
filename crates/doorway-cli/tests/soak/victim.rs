//! A process that uses a lock in all ways, in random order, until it is killed.
//!
//! The kernel is the referee. A holder locks the byte of its slot in a file, which no other process
//! may have locked; the kernel unlocks it when the process dies, before the process counts as dead.
//! A holder in a group lock also shares the byte of its session, and no byte of another session may
//! be locked.
//!
//! Three more properties are checked by what processes write into the shared page:
//!
//! - A holder that finds its slot marked by a process that died in it is told so
//!   (`Permit::recovered`).
//! - A mutex is granted in order: while a process holds it, no live process waits that had its
//!   place before the holder began to enter.
//! - A process that is not killed never ends, and no operation fails.

use std::{
    fs::File, hint::spin_loop, sync::atomic::Ordering::SeqCst, thread::sleep, time::Duration,
};

use doorway::shared::{Error, Lock, NotYet, Permit, Place};
use rustix::process::{Signal, kill_process};

use super::{
    kind::{Kind, SESSIONS, Spec},
    page::{Count, Page, Random, Record, Watched, now, state},
    system::{byte_is_free, exit_now, fork, lock_byte, reap, share_byte, unlock_byte},
};

/// The byte of the first session: slots come before.
const SESSION: usize = 64;

/// A process and the lock that it uses.
pub(crate) struct Victim<'a> {
    pub(crate) page: &'a Page,
    pub(crate) spec: &'a Spec,
    pub(crate) watched: &'a Watched,
    /// The records of all processes of this lock, and the number of its own.
    pub(crate) records: &'a [Record],
    pub(crate) own: usize,
    pub(crate) referee: &'a File,
    pub(crate) random: Random,
}

impl Victim<'_> {
    /// Uses the lock until this process is killed. It may begin with the handle that it inherits.
    pub(crate) fn live(&mut self, inherited: Option<&Lock>) -> i32 {
        if let Some(lock) = inherited {
            let done = self.use_handle(lock);
            if !self.goes_on(done) {
                return 1;
            }
        }
        loop {
            let done = self.spec.open().and_then(|lock| self.use_handle(&lock));
            if !self.goes_on(done) {
                return 1;
            }
        }
    }

    /// Whether an operation succeeded, or failed because the lock was removed.
    fn goes_on(&self, done: Result<(), Error>) -> bool {
        match done {
            Ok(()) => true,
            Err(Error::Lost(_)) if self.spec.removable => true,
            Err(error) => {
                self.page.wrong(&format!("{}: {error}", self.spec.name));
                false
            }
        }
    }

    fn record(&self) -> &Record {
        &self.records[self.own]
    }

    fn becomes(&self, state: u64) {
        self.record().state.store(state, SeqCst);
    }

    fn use_handle(&mut self, lock: &Lock) -> Result<(), Error> {
        loop {
            self.becomes(state::IDLE);
            while self.watched.parked.load(SeqCst) != 0 {
                self.becomes(state::PARKED);
                sleep(Duration::from_micros(300));
            }
            self.becomes(state::IDLE);
            match self.random.below(64) {
                0..=23 => self.passage(lock)?,
                24..=28 => self.impatient(lock)?,
                29..=32 => self.gives_up(lock)?,
                33..=36 => self.tries(lock)?,
                37 => drop(lock.status()),
                38..=40 => return Ok(()),
                41 => self.hands_over(lock)?,
                42 => self.resizes(lock)?,
                43 => self.drains(lock)?,
                44..=45 => self.removes(lock)?,
                _ => sleep(self.random.micros(3000)),
            }
        }
    }

    /// Enters, and notes that it waits. Returns when it began to enter, too.
    fn enters<'l>(&mut self, lock: &'l Lock) -> Result<(Place<'l>, usize, u64), Error> {
        let session = self.random.below(SESSIONS.len());
        let began = now();
        let place = lock.enter(self.spec.kind.session(session))?;
        self.record().since.store(now(), SeqCst);
        self.becomes(state::WAITING);
        Ok((place, session, began))
    }

    fn passage(&mut self, lock: &Lock) -> Result<(), Error> {
        let (place, session, began) = self.enters(lock)?;
        let permit = place.wait()?;
        self.holds(permit, session, Some(began))
    }

    fn impatient(&mut self, lock: &Lock) -> Result<(), Error> {
        let (place, session, began) = self.enters(lock)?;
        match place.wait_timeout(self.random.micros(2000)) {
            Ok(permit) => self.holds(permit, session, Some(began)),
            Err(NotYet::Failed(error)) => Err(error),
            Err(NotYet::Late(place)) if self.spec.patient || self.random.below(2) == 0 => {
                let permit = place.wait()?;
                self.holds(permit, session, Some(began))
            }
            Err(NotYet::Late(place)) => {
                self.leaves(place);
                Ok(())
            }
        }
    }

    fn gives_up(&mut self, lock: &Lock) -> Result<(), Error> {
        if self.spec.patient {
            return Ok(());
        }
        let (place, ..) = self.enters(lock)?;
        self.leaves(place);
        Ok(())
    }

    fn leaves(&mut self, place: Place<'_>) {
        self.becomes(state::IDLE);
        if self.random.below(2) == 0 {
            drop(place);
        } else if let Err(place) = place.leave(Duration::from_secs(5)) {
            self.page.wrong(&format!(
                "{}: a place cannot be given up within 5 s: {place:?}",
                self.spec.name
            ));
        }
        self.page.add(Count::GaveUp);
    }

    fn tries(&mut self, lock: &Lock) -> Result<(), Error> {
        let session = self.random.below(SESSIONS.len());
        match lock.try_enter(self.spec.kind.session(session))? {
            None => Ok(()),
            Some(place) => {
                let permit = place.wait()?;
                self.holds(permit, session, None)
            }
        }
    }

    /// Holds a slot for a moment and releases it.
    fn holds(
        &mut self,
        permit: Permit<'_>,
        session: usize,
        began: Option<u64>,
    ) -> Result<(), Error> {
        let began = began.map(|began| (began, self.record().since.load(SeqCst)));
        self.arrives(&permit, session);
        if let Some((began, since)) = began {
            self.page.waited.fetch_max(now() - since, SeqCst);
            if self.spec.kind == Kind::Mutex {
                self.is_in_order(began);
            }
        }
        match self.random.below(16) {
            0 => sleep(self.random.micros(300)),
            _ => (0..self.random.below(1000)).for_each(|_| spin_loop()),
        }
        self.departs(&permit, session);
        drop(permit);
        self.watched.released.store(now(), SeqCst);
        Ok(())
    }

    /// Locks what a holder locks.
    fn arrives(&self, permit: &Permit<'_>, session: usize) {
        self.becomes(state::HOLDING);
        self.enters_register(permit.slot(), session);
        self.page.add(Count::Passages);
        if permit.recovered() {
            self.page.add(Count::Recovered);
        }
        let before = self.watched.holders[permit.slot()].swap(self.own as u64 + 1, SeqCst);
        // Today a death is forgotten when the process that is granted the slot gives up its place
        // instead of waiting. And a lock that is made anew knows nothing of deaths in the one
        // before.
        if before != 0 && !permit.recovered() && self.spec.patient && !self.spec.removable {
            let (name, slot) = (&self.spec.name, permit.slot());
            self.page.wrong(&format!(
                "{name}: the holder of slot {slot} is not told that the last one died in it"
            ));
        }
    }

    /// Locks the bytes of a slot and a session.
    fn enters_register(&self, slot: usize, session: usize) {
        if !lock_byte(self.referee, slot) {
            self.page.wrong(&format!("{}: slot {slot} has two holders", self.spec.name));
        }
        if matches!(self.spec.kind, Kind::Group(_)) {
            let shared = share_byte(self.referee, SESSION + session);
            let others = (0..SESSIONS.len()).filter(|&other| other != session);
            if !shared
                || !others.into_iter().all(|other| byte_is_free(self.referee, SESSION + other))
            {
                self.page.wrong(&format!("{}: two sessions are inside", self.spec.name));
            }
        }
    }

    fn leaves_register(&self, slot: usize, session: usize) {
        if matches!(self.spec.kind, Kind::Group(_)) {
            unlock_byte(self.referee, SESSION + session);
        }
        unlock_byte(self.referee, slot);
    }

    fn departs(&self, permit: &Permit<'_>, session: usize) {
        self.unmarks(permit.slot());
        self.leaves_register(permit.slot(), session);
    }

    /// Takes its mark from a slot, unless another process has marked the slot since.
    fn unmarks(&self, slot: usize) {
        let _ = self.watched.holders[slot].compare_exchange(self.own as u64 + 1, 0, SeqCst, SeqCst);
    }

    /// Whether no live process waits that had its place before this one began to enter.
    fn is_in_order(&self, began: u64) {
        for (i, other) in self.records.iter().enumerate() {
            let since = other.since.load(SeqCst);
            let waits = other.state.load(SeqCst) == state::WAITING;
            // A process that is not doomed now was alive when its state was read. One that was
            // reaped since has no `since`.
            let lives = other.doomed.load(SeqCst) == 0 && other.since.load(SeqCst) == since;
            if i != self.own && waits && lives && since != 0 && since < began {
                let ahead = Duration::from_nanos(began - since);
                self.page.wrong(&format!(
                    "{}: a process overtook another that was {ahead:?} ahead",
                    self.spec.name
                ));
            }
        }
    }

    /// Hands its slot to a child, which may be killed, and takes it back or not.
    fn hands_over(&mut self, lock: &Lock) -> Result<(), Error> {
        let (place, session, _) = self.enters(lock)?;
        let permit = place.wait()?;
        let slot = permit.slot();
        self.arrives(&permit, session);
        self.leaves_register(slot, session);
        let hand_over = permit.hand_over();
        let time = self.random.micros(500);
        self.record().adopted.store(0, SeqCst);
        let child = fork(false, || {
            // The slot is not the parent's any more if that was killed and found dead meanwhile.
            if hand_over.adopt().is_ok() {
                self.record().adopted.store(1, SeqCst);
                self.enters_register(slot, session);
                sleep(time);
            }
            exit_now(0)
        });
        self.record().child.store(child.as_raw_nonzero().get() as u64, SeqCst);
        self.page.add(Count::HandedOver);
        if self.random.below(2) == 0 {
            sleep(self.random.micros(300));
            // The child has not been reaped, so it is the child.
            if kill_process(child, Signal::KILL).is_ok() {
                self.page.add(Count::Random);
            }
        }
        // A slot must not be released while the child may be adopting it.
        if self.random.below(2) == 0 && self.record().adopted.load(SeqCst) != 0 {
            drop(permit);
            reap(child);
        } else {
            reap(child);
            if permit.take_back()? {
                self.enters_register(slot, session);
                self.departs(&permit, session);
            }
            drop(permit);
        }
        self.record().child.store(0, SeqCst);
        self.watched.released.store(now(), SeqCst);
        Ok(())
    }

    fn resizes(&mut self, lock: &Lock) -> Result<(), Error> {
        if self.spec.kind == Kind::Mutex {
            return Ok(());
        }
        self.becomes(state::MANAGING);
        lock.set_slots(1 + self.random.below(self.spec.kind.slots() + 2))?;
        sleep(self.random.micros(300));
        lock.set_slots(self.spec.kind.slots())?;
        self.page.add(Count::Managed);
        Ok(())
    }

    fn drains(&mut self, lock: &Lock) -> Result<(), Error> {
        self.becomes(state::MANAGING);
        lock.drain()?;
        sleep(self.random.micros(300));
        lock.resume()?;
        self.page.add(Count::Managed);
        Ok(())
    }

    fn removes(&mut self, lock: &Lock) -> Result<(), Error> {
        if !self.spec.removable {
            return Ok(());
        }
        match lock.remove() {
            Ok(()) => {
                self.page.add(Count::Removed);
                Err(Error::Lost(lock.path().into()))
            }
            Err(Error::Busy { .. } | Error::Missing(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
