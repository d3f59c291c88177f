//! The doorway: a place in line, or a slot at once.

use std::time::{Duration, Instant};

use doorway_core::recoverable::Owner;

use super::{
    Error, Kind, Lock, Place,
    lock::{Standing, now},
    memory::{Mapped, Quick, Stop},
    sessions::{Called, LONGEST},
};

/// For how long one who must not wait waits for the guard, which is needed for less than a microsecond by whoever runs.
const PATIENCE: Duration = Duration::from_secs(1);

impl Lock {
    /// The doorway: takes a place in line. A group lock has to be asked for a session, the others not.
    ///
    /// # Errors
    /// When the table is full, or the file is lost or damaged.
    pub fn enter(&self, session: Option<&str>) -> Result<Place<'_>, Error> {
        let standing = match session {
            None => self.suits(None).and_then(|()| self.stand()),
            Some(session) => self.stand_for(session),
        };
        Ok(Place::new(self, standing?))
    }

    /// The same where there are no sessions. If the gate is open this is all.
    #[inline(always)]
    pub(super) fn stand(&self) -> Result<Standing, Error> {
        match self.file.table().come(&mut Quick::new(self.file.words()), |_| Ok(self.gate_row())) {
            Ok(Some((row, spot))) => Ok(Standing::new(row, spot)),
            _ => self.stand_long(&Called::new(&self.file, "")),
        }
    }

    /// The same where there are sessions.
    #[inline(always)]
    pub(super) fn stand_for(&self, session: &str) -> Result<Standing, Error> {
        self.suits(Some(session))?;
        let (table, called) = (self.file.table(), Called::new(&self.file, session));
        let row = |m: &mut Quick<'_>| {
            let Some(row) = self.gate_row() else { return Ok(None) };
            Ok(table.stands_for(m, row, &called)?.then_some(row))
        };
        match table.come(&mut Quick::new(self.file.words()), row) {
            Ok(Some((row, spot))) => Ok(Standing::new(row, spot)),
            _ => self.stand_long(&called),
        }
    }

    /// The doorway, the long way.
    #[cold]
    #[inline(never)]
    fn stand_long(&self, called: &Called<'_>) -> Result<Standing, Error> {
        self.stand_until(called, None).map_err(|stop| self.error(stop))
    }

    fn stand_until(&self, called: &Called<'_>, until: Option<Instant>) -> Result<Standing, Stop> {
        let (me, mut m) = (self.me()?, Mapped::new(&self.file, until));
        let standing = self.guarded(&mut m, me, |m| self.line_up(m, me, called))?;
        self.stood(standing)
    }

    /// As [`enter`](Self::enter); `None` if it takes longer than that, which it does only where somebody has been stopped in the middle of coming or going.
    ///
    /// # Errors
    /// When the table is full, or the file is lost or damaged.
    pub fn enter_timeout(&self, session: Option<&str>, limit: Duration) -> Result<Option<Place<'_>>, Error> {
        self.suits(session)?;
        let called = Called::new(&self.file, session.unwrap_or_default());
        self.in_time(self.stand_until(&called, Instant::now().checked_add(limit)).map(Some))
    }

    /// What came of it, or nothing if time was over.
    fn in_time(&self, standing: Result<Option<Standing>, Stop>) -> Result<Option<Place<'_>>, Error> {
        match standing {
            Ok(standing) => Ok(standing.map(|standing| Place::new(self, standing))),
            Err(Stop::Late) => Ok(None),
            Err(stop) => Err(self.error(stop)),
        }
    }

    /// Notes when it has entered, if it has to wait. Who goes in at once is mostly out again sooner than it takes to look at a clock.
    fn stood(&self, standing: Standing) -> Result<Standing, Stop> {
        if !standing.holds() {
            if self.file.is_removed() {
                self.abandon(&standing, None)?;
                return Err(self.lost());
            }
            self.stamp(&standing, now());
        }
        Ok(standing)
    }

    /// A place with a slot, if one is free, and nobody waits for it. Who is dead is not in the way. If somebody has been stopped in the middle of coming or
    /// going, there is none after a second.
    ///
    /// # Errors
    /// When the table is full, or the file is lost or damaged.
    pub fn try_enter(&self, session: Option<&str>) -> Result<Option<Place<'_>>, Error> {
        self.suits(session)?;
        let (me, called) = (self.me()?, Called::new(&self.file, session.unwrap_or_default()));
        let mut m = Mapped::new(&self.file, Instant::now().checked_add(PATIENCE));
        let attempt = |m: &mut Mapped<'_>| {
            self.guarded(m, me, |m| {
                if !self.file.table().admits(m, &called)? {
                    return if self.file.is_removed() { Err(self.lost()) } else { Ok(None) };
                }
                self.line_up(m, me, &called).map(Some)
            })
        };
        let first = attempt(&mut m);
        let last = match first {
            Ok(None) => self.file.table().look(&mut m, me, usize::MAX).and_then(|()| attempt(&mut m)),
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

    /// Takes a row and a place, with the guard.
    #[inline(always)]
    fn line_up(&self, m: &mut Mapped<'_>, me: Owner, called: &Called<'_>) -> Result<Standing, Stop> {
        let (table, row) = (self.file.table(), self.own_row(m)?);
        let row = match row {
            Some(row) => row,
            None => self.settle(m, me)?,
        };
        let number = table.number(m, row, called)?;
        Ok(Standing::new(row, table.join(m, row, number)?))
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
}
