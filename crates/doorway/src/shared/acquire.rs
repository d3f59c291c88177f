//! The doorway: takes a place in the queue, or a slot at once.

use std::time::{Duration, Instant};

use doorway_core::engines::named_lock::Owner;

use super::{
    Error, Kind, Lock, Place,
    entries::{Position, now},
    memory::{Mapped, Quick, Stop},
    sessions::{Called, LONGEST},
};

/// How long a process that must not wait waits for the table lock, which running processes hold for
/// less than a microsecond.
const PATIENCE: Duration = Duration::from_secs(1);

impl Lock {
    /// Enters the queue. A group lock needs a session; the other locks have none.
    ///
    /// # Errors
    /// When the table is full, or the file is lost or damaged.
    pub fn enter(&self, session: Option<&str>) -> Result<Place<'_>, Error> {
        let position = match session {
            None => self.suits(None).and_then(|()| self.position()),
            Some(session) => self.position_for(session),
        };
        Ok(Place::new(self, position?))
    }

    /// Enters a lock without sessions. If the fast path is open this is all.
    #[inline(always)]
    pub(super) fn position(&self) -> Result<Position, Error> {
        match self
            .file
            .table()
            .enter_fast(&mut Quick::new(self.file.words()), |_| Ok(self.fast_entry()))
        {
            Ok(Some((entry, spot))) => Ok(Position::new(entry, spot)),
            _ => self.position_slow(&Called::new(&self.file, "")),
        }
    }

    /// Enters a lock with sessions.
    #[inline(always)]
    pub(super) fn position_for(&self, session: &str) -> Result<Position, Error> {
        self.suits(Some(session))?;
        let (table, called) = (self.file.table(), Called::new(&self.file, session));
        let entry = |m: &mut Quick<'_>| {
            let Some(entry) = self.fast_entry() else { return Ok(None) };
            Ok(table.stands_for(m, entry, &called)?.then_some(entry))
        };
        match table.enter_fast(&mut Quick::new(self.file.words()), entry) {
            Ok(Some((entry, spot))) => Ok(Position::new(entry, spot)),
            _ => self.position_slow(&called),
        }
    }

    /// Enters on the slow path.
    #[cold]
    #[inline(never)]
    fn position_slow(&self, called: &Called<'_>) -> Result<Position, Error> {
        self.position_until(called, None).map_err(|stop| self.error(stop))
    }

    fn position_until(
        &self,
        called: &Called<'_>,
        until: Option<Instant>,
    ) -> Result<Position, Stop> {
        let (me, mut m) = (self.me()?, Mapped::new(&self.file, until));
        let position = self.locked(&mut m, me, |m| self.queue_up(m, me, called))?;
        self.queued(position)
    }

    /// Enters the queue, as [`enter`](Self::enter) does; returns `None` if that takes longer than
    /// `limit`, which it does only where a process was stopped in the middle of an operation.
    ///
    /// # Errors
    /// When the table is full, or the file is lost or damaged.
    pub fn enter_timeout(
        &self,
        session: Option<&str>,
        limit: Duration,
    ) -> Result<Option<Place<'_>>, Error> {
        self.suits(session)?;
        let called = Called::new(&self.file, session.unwrap_or_default());
        self.in_time(self.position_until(&called, Instant::now().checked_add(limit)).map(Some))
    }

    /// Returns the result of an attempt; `None` if its time is over.
    fn in_time(
        &self,
        position: Result<Option<Position>, Stop>,
    ) -> Result<Option<Place<'_>>, Error> {
        match position {
            Ok(position) => Ok(position.map(|position| Place::new(self, position))),
            Err(Stop::Late) => Ok(None),
            Err(stop) => Err(self.error(stop)),
        }
    }

    /// Records when a process that has to wait entered. A process that does not wait has mostly
    /// released its slot sooner than it takes to read a clock.
    fn queued(&self, position: Position) -> Result<Position, Stop> {
        if !position.holds() {
            if self.file.is_removed() {
                self.abandon(&position, None)?;
                return Err(self.lost());
            }
            self.stamp(&position, now());
        }
        Ok(position)
    }

    /// Enters if a slot is free and no living process waits; `None` otherwise, and if a stopped
    /// process holds the table lock for a second.
    ///
    /// # Errors
    /// When the table is full, or the file is lost or damaged.
    pub fn try_enter(&self, session: Option<&str>) -> Result<Option<Place<'_>>, Error> {
        self.suits(session)?;
        let (me, called) = (self.me()?, Called::new(&self.file, session.unwrap_or_default()));
        let mut m = Mapped::new(&self.file, Instant::now().checked_add(PATIENCE));
        let attempt = |m: &mut Mapped<'_>| {
            self.locked(m, me, |m| {
                if !self.file.table().admits(m, &called)? {
                    return if self.file.is_removed() { Err(self.lost()) } else { Ok(None) };
                }
                self.queue_up(m, me, &called).map(Some)
            })
        };
        let first = attempt(&mut m);
        let last = match first {
            Ok(None) => self.file.table().reap_all(&mut m, me).and_then(|()| attempt(&mut m)),
            first => first,
        };
        self.in_time(last)
    }

    #[inline(always)]
    fn suits(&self, session: Option<&str>) -> Result<(), Error> {
        let fits = match session {
            None => self.kind() != Kind::GroupLock,
            Some(name) => self.kind() == Kind::GroupLock && (1..=LONGEST).contains(&name.len()),
        };
        if fits { Ok(()) } else { Err(Error::Session(session.unwrap_or_default().into())) }
    }

    /// Enters the queue with an entry of this process, with the table lock.
    #[inline(always)]
    fn queue_up(
        &self,
        m: &mut Mapped<'_>,
        me: Owner,
        called: &Called<'_>,
    ) -> Result<Position, Stop> {
        let (table, entry) = (self.file.table(), self.own_entry(m)?);
        let entry = match entry {
            Some(entry) => entry,
            None => self.claim_entry(m, me)?,
        };
        let number = table.number(m, entry, called)?;
        Ok(Position::new(entry, table.enter(m, entry, number)?))
    }
}
