//! `doorway run`: waits its turn, runs a command, and exits as the command does.

use std::{
    ffi::OsStr,
    io,
    os::unix::ffi::OsStrExt,
    process::{Command, ExitCode},
    time::{Duration, Instant},
};

use doorway::shared::{GroupLock, Lock, NotYet, Permit, Place, Semaphore};
use rustix::{io::Errno, process::Pid};

use super::{
    directory, nested,
    supervise::{Ended, Watch},
    waiting::Sign,
};
use crate::{args::named::Run, error::Failure, output};

/// A lock of the kind that was asked for.
enum Asked {
    Slots(Semaphore),
    Sessions(GroupLock, String),
}

impl Asked {
    fn open(args: &Run) -> Result<Self, Failure> {
        let locks = directory(&args.place)?;
        Ok(match &args.session {
            None => Self::Slots(locks.semaphore(&args.name, args.slots.unwrap_or(1))?),
            Some(session) => Self::Sessions(locks.group_lock(&args.name, args.slots)?, session.clone()),
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

pub(crate) fn run(args: &Run) -> Result<ExitCode, Failure> {
    let asked = Asked::open(args)?;
    let lock = asked.lock();
    if let Some(pid) = nested::holder_around(lock) {
        return Err(Failure::Nested { name: args.name.clone(), pid });
    }
    let Some(permit) = wait(lock, asked.session(), args)? else {
        return Ok(ExitCode::from(args.conflict_exit_code));
    };
    let Some((program, rest)) = args.command.split_first() else { unreachable!("a command is required") };
    let mut command = Command::new(program);
    command.args(rest);
    command.env("DOORWAY_NAME", &args.name).env("DOORWAY_SLOT", permit.slot().to_string());
    command.env("DOORWAY_TICKET", permit.ticket().to_string());
    match asked.session() {
        Some(session) => command.env("DOORWAY_SESSION", session),
        None => command.env_remove("DOORWAY_SESSION"),
    };
    command.env(nested::HELD, nested::held(lock, permit.ticket()));
    follow(permit, &mut command, program)
}

/// Waits its turn. `None` if it is not to wait any longer.
fn wait<'a>(lock: &'a Lock, session: Option<&str>, args: &Run) -> Result<Option<Permit<'a>>, Failure> {
    if args.no_wait {
        return Ok(lock.try_enter(session)?.map(Place::wait).transpose()?);
    }
    let until = args.timeout.and_then(|limit| Instant::now().checked_add(limit));
    let mut place = lock.enter(session)?;
    let mut sign = Sign::new(args.quiet);
    loop {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let slice = sign.every().min(left.unwrap_or(Duration::MAX));
        place = match place.wait_timeout(slice) {
            Ok(permit) => return Ok(Some(permit)),
            Err(NotYet::Failed(error)) => return Err(error.into()),
            Err(NotYet::Late(place)) => place,
        };
        if until.is_some_and(|until| until <= Instant::now()) {
            return Ok(None);
        }
        sign.show(lock, &place);
    }
}

/// Runs the command and stays with it. The slot is the command's from before it begins; when it has ended it is taken back,
/// so that nobody takes the end for an accident.
fn follow(permit: Permit<'_>, command: &mut Command, program: &OsStr) -> Result<ExitCode, Failure> {
    permit.note(); // so that others see since when
    let cannot = |error| Failure::Supervise { error };
    let mut watch = Watch::new().map_err(cannot)?;
    let ended = match permit.spawn(command) {
        Ok(child) => watch.stay_with(Pid::from_child(&child)).map_err(cannot)?,
        Err(error) if error.raw_os_error() == Some(Errno::STALE.raw_os_error()) => return Err(Failure::LostSlot),
        Err(error) => cannot_run(program, &error),
    };
    permit.take_back()?;
    permit.check()?;
    Ok(ended.into())
}

/// As a shell says it.
fn cannot_run(program: &OsStr, error: &io::Error) -> Ended {
    let program = String::from_utf8_lossy(program.as_bytes());
    match error.kind() {
        io::ErrorKind::NotFound => {
            output::say(format_args!("{program}: there is no such command"));
            Ended::Exited(127)
        }
        _ => {
            output::say(format_args!("{program}: {error}"));
            Ended::Exited(126)
        }
    }
}
