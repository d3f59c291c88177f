//! The command line of named locks: `run`, `status`, `top`, `set`, `drain`, `resume`, `rm`.

use std::{ffi::OsString, fs, path::PathBuf, time::Duration};

use clap::Args;

pub(crate) const RUN_HELP: &str = "\
Waits its turn, runs the command, and exits as the command does. Whoever comes first goes first. The
slot follows the command: it is free when the command has ended, however that comes about, and not
before; what the command leaves running in the background does not keep it.

With --session, those of one session are inside together, and those of different ones are not; --slots
then bounds how many of one session (default: no bound).

With --etcd, the lock is for commands on all machines that name the same cluster. The command then dies
with this process, which keeps the lock alive. When the lock is lost (etcd has not answered for as long
as --ttl says, or was told to forget it), the command is sent --lost-signal, and is killed --lost-grace
later. What it has started itself is its own affair.

Environment of the command:
  DOORWAY_SLOT     a number from 0 to K-1 that nobody else has at the same time
  DOORWAY_NAME     the lock
  DOORWAY_SESSION  what --session says, if it does
  DOORWAY_TICKET   a number that is larger for each who has come later: on etcd, for fencing

Exit code:
  that of the command, or 128 + the signal that killed it
  2    usage error
  69   the lock was lost: its file was removed while it was waited for or held; its lease on etcd
       ended; or no etcd answers
  73   the lock is already held by a doorway run around this one
  71   the operating system refuses: no space, no file descriptors, no /proc, a read-only directory
  75   the time was up, or there was no slot (--timeout, --no-wait); see --conflict-exit-code
  78   the lock exists with another number of slots, or is of another kind
  126  the command cannot be run
  127  there is no such command

Examples:
  doorway run gpu --slots 2 -- sh -c 'CUDA_VISIBLE_DEVICES=$DOORWAY_SLOT python train.py'
  doorway run backup -- rsync -a src/ dst/                one at a time, as flock, but in order
  doorway run backup --no-wait -- rsync -a src/ dst/      or not at all
  doorway run db --session read -- pg_dump shop           readers together,
  doorway run db --session migrate -- ./migrate           but not with a migration
  doorway run licence --slots 3 --group cad -- ./simulate    one lock for all users of a group
  doorway run nightly --etcd a:2379,b:2379,c:2379 -- ./report    on one machine of many";

#[derive(PartialEq, Debug, Args)]
pub(crate) struct Run {
    /// The lock: one name for all who share it
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// How many may be inside at once; default: 1, with --session no bound
    #[arg(long, value_name = "K")]
    pub(crate) slots: Option<usize>,
    /// What is asked for: those of one session share, others exclude one another
    #[arg(long, value_name = "S", value_parser = session)]
    pub(crate) session: Option<String>,
    /// Give up after this time: 30, 1.5s, 200ms, 5m, 2h, 1h30m
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
    /// Give up at once if it would have to wait
    #[arg(long, conflicts_with = "timeout")]
    pub(crate) no_wait: bool,
    /// The exit code for having given up
    #[arg(long, value_name = "N", default_value_t = GAVE_UP)]
    pub(crate) conflict_exit_code: u8,
    /// Say nothing while waiting, on a terminal either
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// The command and its arguments
    #[arg(value_name = "COMMAND", required = true, last = true)]
    pub(crate) command: Vec<OsString>,
    #[command(flatten)]
    pub(crate) place: Place,
    #[cfg(feature = "etcd")]
    #[command(flatten)]
    pub(crate) lease: super::etcd::Lease,
}

/// Refused here, before a lock is made for it.
pub(super) fn session(name: &str) -> Result<String, &'static str> {
    if (1..64).contains(&name.len()) { Ok(name.into()) } else { Err("take 1 to 63 bytes") }
}

/// As `sysexits.h` has it for what may go better later.
const GAVE_UP: u8 = 75;

/// Where no flag is.
impl Default for Run {
    fn default() -> Self {
        Self {
            name: String::new(),
            slots: None,
            session: None,
            timeout: None,
            no_wait: false,
            conflict_exit_code: GAVE_UP,
            quiet: false,
            command: Vec::new(),
            place: Place::default(),
            #[cfg(feature = "etcd")]
            lease: super::etcd::Lease::default(),
        }
    }
}

/// Where locks are.
#[derive(Default, PartialEq, Debug, Args)]
pub(crate) struct Place {
    /// The directory of the locks; default: $DOORWAY_DIR, else /dev/shm/doorway-UID
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// For all users of this group; default: in /dev/shm/doorway-group-GID
    #[arg(long, value_name = "GROUP", value_parser = group)]
    pub(crate) group: Option<u32>,
    #[cfg(feature = "etcd")]
    #[command(flatten)]
    pub(crate) etcd: super::etcd::Etcd,
}

#[derive(Debug, Args)]
pub(crate) struct Status {
    /// The lock; default: all
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Debug, Args)]
pub(crate) struct Top {
    /// The lock; default: all
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Debug, Args)]
pub(crate) struct Set {
    /// The lock
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// How many may be inside at once from now on; who is inside stays
    #[arg(long, value_name = "K")]
    pub(crate) slots: usize,
    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Debug, Args)]
pub(crate) struct Named {
    /// The lock
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) place: Place,
}

/// A number, or a name that this machine has in its file.
fn group(text: &str) -> Result<u32, String> {
    let groups = fs::read_to_string("/etc/group").unwrap_or_default();
    let number = |line: &str| match &line.split(':').collect::<Vec<_>>()[..] {
        [name, _, number, ..] if *name == text => number.parse().ok(),
        _ => None,
    };
    let found = groups.lines().find_map(number).or_else(|| text.parse().ok());
    found.ok_or_else(|| "there is no such group in /etc/group; try its number".into())
}

/// `30`, `1.5s`, `200ms`, `1h30m`: numbers with units, seconds where there is none.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no time: try 30, 1.5s, 200ms, 5m, 2h or 1h30m");
    let mut rest = text.trim();
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let (number, after) = rest
            .split_at(rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len()));
        let (unit, next) = after
            .split_at(after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len()));
        let factor = match unit.trim() {
            "ms" => 0.001,
            "" if number == text.trim() => 1.0,
            "s" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            _ => return Err(wrong()),
        };
        seconds += number.parse::<f64>().map_err(|_| wrong())? * factor;
        rest = next;
    }
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if !text.trim().is_empty() => Ok(duration),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_read() {
        assert_eq!((group("root"), group("0"), group("4711")), (Ok(0), Ok(0), Ok(4711)));
        assert!(group("").is_err() && group("-1").is_err() && group("no-such-group").is_err());
    }

    #[test]
    fn times_are_read() {
        let read = |text| duration(text).map(|time| time.as_millis());
        for (text, millis) in [
            ("30", 30_000),
            ("1.5s", 1500),
            ("200ms", 200),
            ("1h30m", 5_400_000),
            ("0", 0),
            ("2 min", 120_000),
        ] {
            assert_eq!(read(text), Ok(millis), "{text}");
        }
        for text in
            ["", " ", "s", "1x", "-1", "1..5", "1h30", "1e3", "inf", "99999999999999999999999d"]
        {
            assert!(read(text).is_err(), "{text}: {:?}", read(text));
        }
    }
}
