//! A check that may take long: the user can interrupt it, and it is saved if the user asks for
//! that.

use std::{
    collections::hash_map::DefaultHasher,
    fs,
    hash::Hasher,
    path::{Path, PathBuf},
    sync::{
        atomic::Ordering::Relaxed,
        mpsc::{RecvTimeoutError, channel},
    },
    thread,
    time::Duration,
};

use doorway_lab::{Checkpoint, Options, Progress, Report, Subject, Unchecked, check_kept};
use signal_hook::{
    consts::signal::{SIGINT, SIGTERM},
    iterator::Signals,
    low_level::emulate_default_handler,
};

use super::watch::watched;
use crate::{args::lab::Check, error::Failure, progress::say_and, table::grouped};

/// How often a search is saved.
const EVERY: Duration = Duration::from_secs(300);

/// Runs the check, and saves the search as the arguments say.
pub(super) fn check(
    args: &Check,
    subject: &dyn Subject,
    options: &Options,
) -> Result<Report, Failure> {
    let progress = Progress::default();
    let path = args.checkpoint.as_deref();
    let checkpoint = path.map(|path| checkpoint(path, args.instance.abandon)).transpose()?;
    let (report, signal) = attended(&progress, path, || {
        watched(&progress, || match &checkpoint {
            None => doorway_lab::check(subject, options, &progress).map_err(Unchecked::from),
            Some(checkpoint) => check_kept(subject, options, &progress, checkpoint),
        })
    });
    let report = report.map_err(|error| match error {
        Unchecked::Fault(fault) => Failure::Fault(fault),
        Unchecked::Checkpoint(error) => Failure::Checkpoint(error),
    })?;
    let decided = report.verdicts.iter().all(|verdict| verdict.holds.is_some());
    if let Some(signal) = signal
        && !decided
    {
        interrupted(&progress, path, signal);
    }
    let kept = progress.kept.load(Relaxed);
    if let Some(why) = &report.no_room {
        let kept = match path {
            Some(path) if kept > 0 => {
                format!(
                    "{} are kept in {}, with which the same command goes on",
                    states(kept),
                    path.display()
                )
            }
            _ => format!("{} are lost", states(report.states)),
        };
        return Err(Failure::NoRoom { why: why.clone(), kept });
    }
    if let Some(path) = path
        && report.resumable
        && kept > 0
    {
        let path = path.display();
        say_and(
            format_args!(
                "{} are kept in {path}, with which the same command goes on",
                states(kept)
            ),
            || (),
        );
    }
    Ok(report)
}

/// Returns where states go that do not fit in memory: beside the checkpoint.
pub(super) fn directory(checkpoint: &Path) -> PathBuf {
    let parent = checkpoint.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new(".")).into()
}

fn checkpoint(path: &Path, abandons: bool) -> Result<Checkpoint, Failure> {
    // A version does not identify a doorway: it may have been built from other sources since.
    let own = std::env::current_exe().and_then(fs::read);
    let own =
        own.map_err(|error| Failure::File { verb: "read", path: "doorway itself".into(), error })?;
    let mut hasher = DefaultHasher::new();
    hasher.write(&own);
    Ok(Checkpoint {
        path: path.into(),
        program: format!("{}, {:016x}", env!("CARGO_PKG_VERSION"), hasher.finish()),
        more: if abandons { ", waits may be abandoned".into() } else { String::new() },
        every: EVERY,
    })
}

/// Does the work. On SIGINT and SIGTERM, reports what becomes of the work and ends the process. If
/// the work ends first, returns the signal.
fn attended<T: Send>(
    progress: &Progress,
    path: Option<&Path>,
    work: impl FnOnce() -> T + Send,
) -> (T, Option<i32>) {
    // Where no signals can be received, they end the process, as they do without this.
    let signals = Signals::new([SIGINT, SIGTERM].iter().filter(|signal| !is_ignored(**signal)));
    let (running, ended) = channel::<()>();
    let result = thread::scope(|scope| {
        let attendant = scope.spawn(move || {
            let mut signals = signals.ok();
            let mut caught = None;
            while ended.recv_timeout(Duration::from_millis(20)) == Err(RecvTimeoutError::Timeout) {
                caught = caught.or(signals.as_mut().and_then(|signals| signals.pending().next()));
                tell(progress);
                if let Some(signal) = caught {
                    progress.cancel.store(true, Relaxed);
                    if path.is_none() || progress.finished.load(Relaxed) {
                        interrupted(progress, path, signal);
                    }
                }
            }
            caught
        });
        let result = work();
        drop(running);
        (result, attendant.join().unwrap_or(None))
    });
    tell(progress);
    result
}

/// Prints the news of the search.
fn tell(progress: &Progress) {
    progress.news().iter().for_each(|line| say_and(line, || ()));
}

/// Reports what becomes of an interrupted search, and ends the process as the signal would have.
fn interrupted(progress: &Progress, path: Option<&Path>, signal: i32) {
    tell(progress);
    let found = progress.states.load(Relaxed);
    let kept = progress.kept.load(Relaxed);
    let line = match path {
        None => format!(
            "interrupted at depth {}, {} are lost: --checkpoint FILE would have kept them",
            progress.depth.load(Relaxed),
            states(found)
        ),
        Some(path) if kept > 0 => {
            format!(
                "interrupted: {} are kept in {}, with which the same command goes on",
                states(kept),
                path.display()
            )
        }
        Some(_) => format!("interrupted: {} are lost", states(found)),
    };
    // Nothing else may be shown after that.
    let _ = say_and(line, || emulate_default_handler(signal));
}

fn states(count: u64) -> String {
    if count == 1 { "1 state".into() } else { format!("{} states", grouped(count)) }
}

/// Returns whether the signal is ignored, as under nohup. Then it must stay ignored.
fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let set = status
        .lines()
        .find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    set.is_some_and(|set| set >> (signal - 1) & 1 == 1)
}
