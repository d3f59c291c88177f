//! `doorway run`: waits for its turn, runs a command, and exits as the command does.

use std::{
    ffi::OsStr,
    io,
    mem::ManuallyDrop,
    os::unix::ffi::OsStrExt,
    process::{Command, ExitCode},
    time::{Duration, Instant},
};

use rustix::{io::Errno, process::Pid};

use super::{
    local::Local,
    nested,
    supervise::{Ended, Watch},
    view::{View, Who},
    waiting::Sign,
};
use crate::{args::named::Run, error::Failure, output};

/// A lock of the kind that the user asked for.
pub(crate) trait Asked {
    type Place<'a>
    where
        Self: 'a;
    type Permit<'a>: Held
    where
        Self: 'a;

    /// Returns what distinguishes the lock from all others.
    fn id(&self) -> String;

    fn view(&self) -> Result<View, Failure>;

    /// Returns the holders alone: there may be many waiters.
    fn holders(&self) -> Result<Vec<Who>, Failure>;

    fn try_enter(&self) -> Result<Option<Self::Permit<'_>>, Failure>;

    /// Enters the queue; `None` if that takes longer than the limit.
    fn enter(&self, limit: Option<Duration>) -> Result<Option<Self::Place<'_>>, Failure>;

    /// Leaves the queue, without waiting for long: this process ends next, and other processes see
    /// that it is gone.
    fn leave(place: Self::Place<'_>);

    /// Returns how many processes wait ahead of it.
    fn ahead(place: &Self::Place<'_>) -> usize;

    /// Waits for a slot; returns the place when the limit is reached.
    fn wait<'a>(
        &'a self,
        place: Self::Place<'a>,
        limit: Duration,
    ) -> Result<Result<Self::Permit<'a>, Self::Place<'a>>, Failure>;
}

/// A slot for a command.
pub(crate) trait Held {
    fn slot(&self) -> usize;

    fn ticket(&self) -> u64;

    /// Starts the command, and a watch that misses no event of it; or returns why there is no
    /// command. `ESTALE` if the slot has been lost.
    fn spawn(&mut self, command: &mut Command) -> Result<io::Result<(Pid, Watch)>, Failure>;

    /// Releases the slot after the command has ended. An error if the slot had been lost before.
    fn give_back(self) -> Result<(), Failure>;
}

pub(crate) fn run(args: &Run) -> Result<ExitCode, Failure> {
    #[cfg(feature = "etcd")]
    if !args.place.etcd.endpoints.is_empty() {
        return run_with(&super::etcd::Remote::open(&args.place.etcd, args)?, args);
    }
    // A lock that is removed before this process enters is opened again, and so created anew.
    for _ in 0..REOPENED {
        // Never dropped: this process ends with it, and the system unmaps its file faster then.
        match run_with(&*ManuallyDrop::new(Local::open(args)?), args) {
            Err(Failure::RemovedMeanwhile(_)) => {}
            done => return done,
        }
    }
    run_with(&*ManuallyDrop::new(Local::open(args)?), args)
}

/// How often a lock is opened again that is removed before this process enters.
const REOPENED: usize = 1000;

fn run_with(lock: &impl Asked, args: &Run) -> Result<ExitCode, Failure> {
    let id = lock.id();
    if let Some(pid) = nested::holder_around(&id, &args.name, &lock.holders()?) {
        return Err(Failure::Nested { name: args.name.clone(), pid });
    }
    let Some(permit) = wait(lock, args)? else {
        return Ok(ExitCode::from(args.conflict_exit_code));
    };
    let Some((program, rest)) = args.command.split_first() else {
        unreachable!("a command is required")
    };
    let mut command = Command::new(program);
    command.args(rest);
    command.env("DOORWAY_NAME", &args.name).env("DOORWAY_SLOT", permit.slot().to_string());
    command.env("DOORWAY_TICKET", permit.ticket().to_string());
    match &args.session {
        Some(session) => command.env("DOORWAY_SESSION", session),
        None => command.env_remove("DOORWAY_SESSION"),
    };
    command.env(nested::HELD, nested::held(&id, permit.ticket()));
    follow(permit, &mut command, program)
}

/// Waits for a slot. `None` if it may not wait any longer.
fn wait<'a, L: Asked>(lock: &'a L, args: &Run) -> Result<Option<L::Permit<'a>>, Failure> {
    if args.no_wait {
        return lock.try_enter();
    }
    let until = args.timeout.and_then(|limit| Instant::now().checked_add(limit));
    let Some(mut place) = lock.enter(args.timeout)? else { return Ok(None) };
    let mut sign = Sign::new(args.quiet);
    loop {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let slice = sign.every().min(left.unwrap_or(Duration::MAX));
        place = match lock.wait(place, slice)? {
            Ok(permit) => return Ok(Some(permit)),
            Err(place) => place,
        };
        if until.is_some_and(|until| until <= Instant::now()) {
            L::leave(place);
            return Ok(None);
        }
        sign.show(L::ahead(&place), || lock.view());
    }
}

/// Runs the command and waits until it ends.
fn follow(
    mut permit: impl Held,
    command: &mut Command,
    program: &OsStr,
) -> Result<ExitCode, Failure> {
    let ended = match permit.spawn(command)? {
        Ok((pid, mut watch)) => {
            watch.stay_with(pid).map_err(|error| Failure::Supervise { error })?
        }
        Err(error) if error.raw_os_error() == Some(Errno::STALE.raw_os_error()) => {
            return Err(Failure::LostSlot);
        }
        Err(error) => cannot_run(program, &error),
    };
    permit.give_back()?;
    Ok(ended.into())
}

/// Reports the error in a shell's words and with its exit code.
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
