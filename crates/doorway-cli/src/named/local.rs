//! Locks of this machine, in a directory.

use std::{env, io, iter, mem, process::Command, time::Duration};

use doorway::shared::{
    Directory, GroupLock, Holder, Kind, Lock, NotYet, Permit, Place, Semaphore, Status,
};
use rustix::process::{Pid, Signal, kill_process};

use super::{
    Change, Locks,
    run::{Asked, Held},
    sigpipe,
    supervise::{Watch, heed_ends},
    view::{View, Who, seconds},
};
use crate::{
    args::named::{Place as Where, Run},
    error::Failure,
};

pub(crate) fn directory(place: &Where) -> Result<Directory, Failure> {
    Ok(match (&place.dir, place.group) {
        (Some(path), None) => Directory::at(path)?,
        (None, None) => Directory::of_user()?,
        (Some(path), Some(gid)) => Directory::for_group(path, gid)?,
        (None, Some(gid)) => Directory::of_group(gid)?,
    })
}

impl Locks for Directory {
    fn place(&self) -> String {
        self.path().display().to_string()
    }

    fn names(&self) -> Result<Vec<String>, Failure> {
        Ok(self.names()?)
    }

    fn view(&self, name: &str) -> Result<View, Failure> {
        Ok(view(&self.lock(name)?.status()))
    }

    fn change(&self, name: &str, change: Change) -> Result<(), Failure> {
        let lock = self.lock(name)?;
        Ok(match change {
            Change::Slots(slots) => lock.set_slots(slots),
            Change::Drain => lock.drain(),
            Change::Resume => lock.resume(),
            Change::Remove => lock.remove(),
        }?)
    }
}

fn holder(holder: &Holder) -> Who {
    Who {
        slot: Some(holder.slot),
        host: None,
        pid: holder.pid,
        foreign: holder.is_foreign,
        ticket: holder.ticket,
        session: holder.session.clone(),
        seconds: holder.held.map(seconds),
        command: holder.command.clone(),
    }
}

fn view(status: &Status) -> View {
    let kind = match status.kind {
        Kind::Semaphore => "semaphore",
        Kind::Mutex => "mutex",
        Kind::GroupLock => "group",
    };
    let waiting = status.waiting.iter().map(|waiter| Who {
        slot: None,
        host: None,
        pid: waiter.pid,
        foreign: waiter.is_foreign,
        ticket: waiter.ticket,
        session: waiter.session.clone(),
        seconds: Some(seconds(waiter.waited)),
        command: waiter.command.clone(),
    });
    View {
        name: status.name.clone(),
        kind,
        // As many slots as there are entries means no bound.
        slots: Some(status.slots).filter(|&slots| slots < status.capacity),
        drained: status.drained,
        holders: status.holders.iter().map(holder).collect(),
        waiting: waiting.collect(),
    }
}

/// A lock of the kind that the user asked for.
pub(crate) enum Local {
    Slots(Semaphore),
    Sessions(GroupLock, String),
}

impl Local {
    pub(crate) fn open(args: &Run) -> Result<Self, Failure> {
        let locks = directory(&args.place)?;
        Ok(match &args.session {
            None => Self::Slots(locks.semaphore(&args.name, args.slots.unwrap_or(1))?),
            Some(session) => {
                Self::Sessions(locks.group_lock(&args.name, args.slots)?, session.clone())
            }
        })
    }

    fn lock(&self) -> &Lock {
        match self {
            Self::Slots(lock) => lock,
            Self::Sessions(lock, _) => lock,
        }
    }

    fn session(&self) -> Option<&str> {
        match self {
            Self::Slots(_) => None,
            Self::Sessions(_, session) => Some(session),
        }
    }
}

/// How long a process that gives up waits for the table lock, which a stopped process may hold.
const PATIENCE: Duration = Duration::from_millis(100);

/// A lock that was removed before it was entered can be opened again.
fn removed_meanwhile(error: doorway::shared::Error) -> Failure {
    match error {
        doorway::shared::Error::Lost(path) => Failure::RemovedMeanwhile(path),
        error => error.into(),
    }
}

impl Asked for Local {
    type Place<'a> = Place<'a>;
    type Permit<'a> = Permit<'a>;

    fn id(&self) -> String {
        self.lock().path().display().to_string()
    }

    fn view(&self) -> Result<View, Failure> {
        Ok(view(&self.lock().status()))
    }

    fn holders(&self) -> Result<Vec<Who>, Failure> {
        Ok(self.lock().holders().iter().map(holder).collect())
    }

    fn try_enter(&self) -> Result<Option<Permit<'_>>, Failure> {
        let place = self.lock().try_enter(self.session()).map_err(removed_meanwhile)?;
        Ok(place.map(Place::wait).transpose()?)
    }

    fn enter(&self, limit: Option<Duration>) -> Result<Option<Place<'_>>, Failure> {
        Ok(match limit {
            None => Some(self.lock().enter(self.session()).map_err(removed_meanwhile)?),
            Some(limit) => {
                self.lock().enter_timeout(self.session(), limit).map_err(removed_meanwhile)?
            }
        })
    }

    fn leave(place: Place<'_>) {
        if let Err(place) = place.leave(PATIENCE) {
            mem::forget(place);
        }
    }

    fn ahead(place: &Place<'_>) -> usize {
        place.ahead()
    }

    fn wait<'a>(
        &'a self,
        place: Place<'a>,
        limit: Duration,
    ) -> Result<Result<Permit<'a>, Place<'a>>, Failure> {
        match place.wait_timeout(limit) {
            Ok(permit) => Ok(Ok(permit)),
            Err(NotYet::Late(place)) => Ok(Err(place)),
            Err(NotYet::Failed(error)) => Err(error.into()),
        }
    }
}

/// The slot belongs to the command from before it begins. When the command has ended the slot is
/// taken back, so that the end does not count as a death.
impl Held for Permit<'_> {
    fn slot(&self) -> usize {
        self.slot()
    }

    fn ticket(&self) -> u64 {
        self.ticket()
    }

    fn spawn(&mut self, command: &mut Command) -> Result<io::Result<(Pid, Watch)>, Failure> {
        let cannot = |error| Failure::Supervise { error };
        self.note(); // so that `status` shows since when
        heed_ends().map_err(cannot)?;
        if sigpipe::was_ignored() {
            doorway::shared::let_programs_ignore_sigpipe();
        }
        let changes: Vec<_> = command.get_envs().collect();
        let kept =
            env::vars_os().filter(|(name, _)| !changes.iter().any(|(changed, _)| changed == name));
        let set =
            changes.iter().filter_map(|(name, value)| Some((name.into(), value.as_ref()?.into())));
        let words = iter::once(command.get_program()).chain(command.get_args());
        // The watch is made while the command begins. The command ignores what this process was
        // told to ignore, since nothing is caught before.
        let (pid, watch) = match self.start(words, kept.chain(set), |pid| (pid, Watch::new())) {
            Ok(started) => started,
            Err(error) => return Ok(Err(error)),
        };
        let pid = Pid::from_raw(pid.cast_signed()).expect("a process has a number");
        // A command that cannot be watched must not run.
        let watch = watch.inspect_err(|_| _ = kill_process(pid, Signal::KILL));
        Ok(Ok((pid, watch.map_err(cannot)?)))
    }

    fn give_back(self) -> Result<(), Failure> {
        let had_it = self.take_back()?;
        match self.check() {
            // The command had ended, its slot was reclaimed before it was taken back, and then the
            // lock was removed.
            Err(_) if !had_it && self.lock().is_removed() => Ok(()),
            checked => Ok(checked?),
        }
    }
}
