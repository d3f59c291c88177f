//! The status of a lock: its holders, and its waiters in order.

use std::{path::PathBuf, sync::atomic::Ordering::Acquire, time::Duration};

use doorway_core::{
    Register, Session, Value,
    engines::named_lock::{FastPath, Owner, State},
    raw,
};

use super::{Kind, Lock, entries::now, file::entry, liveness};

/// A lock at some moment. It may have changed by the time the caller reads it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Status {
    /// Its name.
    pub name: String,
    /// Its file.
    pub path: PathBuf,
    /// Its kind.
    pub kind: Kind,
    /// How many slots there are.
    pub slots: usize,
    /// How many processes may hold and wait together.
    pub capacity: usize,
    /// Whether the lock is drained: it grants no slots.
    pub drained: bool,
    /// The holders, in the order of slots.
    pub holders: Vec<Holder>,
    /// The waiters, in the order in which they will be granted slots.
    pub waiting: Vec<Waiter>,
}

/// A process that holds a slot.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Holder {
    /// The slot that it holds.
    pub slot: usize,
    /// The process, in its PID namespace.
    pub pid: i32,
    /// Whether the process is in another PID namespace than this one, as in a container. Then `pid`
    /// means another process here.
    pub is_foreign: bool,
    /// Its ticket.
    pub ticket: u64,
    /// The session it has asked for, in a group lock.
    pub session: Option<String>,
    /// How long it has had the slot; `None` if it has neither waited for the slot nor
    /// [noted](super::Permit::note) it.
    pub held: Option<Duration>,
    /// Its command line; empty if `/proc` does not show it.
    pub command: String,
}

/// A process that waits.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Waiter {
    /// The process, in its PID namespace.
    pub pid: i32,
    /// Whether the process is in another PID namespace than this one, as in a container. Then `pid`
    /// means another process here.
    pub is_foreign: bool,
    /// Its ticket.
    pub ticket: u64,
    /// The session it asks for, in a group lock.
    pub session: Option<String>,
    /// How long it has waited.
    pub waited: Duration,
    /// Its command line; empty if `/proc` does not show it.
    pub command: String,
}

/// Stands for the command line of a process of another PID namespace.
const ELSEWHERE: &str = "[in another PID namespace]";

/// What an entry of the table shows.
struct Entry {
    state: State,
    owner: Owner,
    session: Session,
    slot: u32,
    entered: u64,
    since: Option<u64>,
}

impl Lock {
    /// Returns the holders and waiters at this moment. Dead processes are left out, whether their
    /// entries have been reclaimed yet or not.
    pub fn status(&self) -> Status {
        let tally = self.tally();
        let waiting = waiting(self, true);
        Status {
            name: self.name(),
            path: self.path().into(),
            kind: self.kind(),
            slots: tally.slots().into(),
            capacity: self.capacity(),
            drained: tally.drained(),
            holders: self.holders(),
            waiting,
        }
    }

    /// Returns the holders at this moment, in the order of slots, as [`status`](Self::status) does.
    /// It does not look at the waiters, of which there may be many.
    pub fn holders(&self) -> Vec<Holder> {
        let mut holders: Vec<Holder> =
            entries(self).filter_map(|entry| self.holder(&entry)).collect();
        holders.sort_by_key(|holder| holder.slot);
        holders
    }

    fn holder(&self, entry: &Entry) -> Option<Holder> {
        let State::Holding { ticket, .. } = entry.state else { return None };
        let pid = living(self, entry.owner)?;
        Some(Holder {
            slot: entry.slot as usize,
            pid,
            is_foreign: self.file.is_foreign(entry.owner),
            ticket: raw::number(ticket),
            session: self.asked(entry.session),
            held: entry.since.map(since),
            command: self.command(entry.owner, pid),
        })
    }

    /// Returns the command line of a living process, or an empty text if `/proc` does not tell.
    fn command(&self, owner: Owner, pid: i32) -> String {
        if self.file.is_foreign(owner) { ELSEWHERE.into() } else { command(pid) }
    }

    fn asked(&self, session: Session) -> Option<String> {
        if self.kind() == Kind::GroupLock { self.session_name(session.0 as usize) } else { None }
    }
}

/// Returns the waiters in order, with or without command lines.
pub(super) fn waiting(lock: &Lock, with_commands: bool) -> Vec<Waiter> {
    let waiter = |entry: Entry| {
        let State::Waiting(ticket) = entry.state else { return None };
        let (session, waited) = (lock.asked(entry.session), since(entry.entered));
        let (pid, ticket) = (living(lock, entry.owner)?, raw::number(ticket));
        let command = if with_commands { lock.command(entry.owner, pid) } else { String::new() };
        let is_foreign = lock.file.is_foreign(entry.owner);
        Some(Waiter { pid, is_foreign, ticket, session, waited, command })
    };
    let mut waiting: Vec<_> = entries(lock).filter_map(waiter).collect();
    waiting.sort_by_key(|waiter| waiter.ticket);
    waiting
}

fn living(lock: &Lock, owner: Owner) -> Option<i32> {
    if lock.file.is_dead(owner) {
        None
    } else {
        liveness::pid(owner).map(|pid| pid.as_raw_nonzero().get())
    }
}

fn since(time: u64) -> Duration {
    Duration::from_nanos(now().saturating_sub(time))
}

fn value<T: Value>(lock: &Lock, register: Register<T>) -> Option<T> {
    let word = lock.file.words().get(register.index())?.load(Acquire);
    Some(T::from_word(u128::from(word), register.format()))
}

/// Returns the entries that are not idle. Each is read until its state has stayed the same
/// meanwhile, or else left out.
fn entries(lock: &Lock) -> impl Iterator<Item = Entry> + '_ {
    // A process that was forked may be in another namespace. If it cannot be identified, all other
    // processes count as alive.
    let _ = lock.me();
    let table = lock.file.table();
    let used = value(lock, table.used()).unwrap_or(0) as usize;
    (0..used.min(table.entries())).filter_map(move |i| (0..3).find_map(|_| read(lock, i)).flatten())
}

/// Reads an entry. `None` if it has changed meanwhile.
fn read(lock: &Lock, i: usize) -> Option<Option<Entry>> {
    let table = lock.file.table();
    let (fast, state) = (value(lock, table.fast())?, value(lock, table.state(i))?);
    let (seen, slot, session) = match fast {
        FastPath::Held { entry, ticket } | FastPath::Closing { entry, ticket }
            if entry as usize == i =>
        {
            (
                State::Holding { ticket, recovered: false },
                value(lock, table.fast_slot())?,
                table.number_on_fast_path(i),
            )
        }
        _ => (state, value(lock, table.slot(i))?, value(lock, table.session(i))?),
    };
    let stamp = match seen {
        State::Waiting(ticket) | State::Holding { ticket, .. } => raw::number(ticket),
        State::Idle => return Some(None),
    };
    let time = |which: usize| Some(lock.file.words().get(i * entry::WORDS + which)?.load(Acquire));
    let found = Entry {
        state: seen,
        owner: value(lock, table.owner(i))??,
        session,
        slot,
        entered: time(entry::ENTERED)?,
        since: (time(entry::STAMPED)? == stamp).then_some(time(entry::SINCE)?),
    };
    let unchanged = value(lock, table.state(i))? == state && value(lock, table.fast())? == fast;
    unchanged.then_some(Some(found))
}

/// Returns the command line of a process, or an empty text if `/proc` does not show it. A program
/// that has just begun has none yet: then the program's name in brackets, as ps(1) shows it.
fn command(pid: i32) -> String {
    let read = |what| std::fs::read(format!("/proc/{pid}/{what}")).unwrap_or_default();
    let line = read("cmdline");
    let words = line.split(|&byte| byte == 0).filter(|word| !word.is_empty());
    let line = words.map(String::from_utf8_lossy).collect::<Vec<_>>().join(" ");
    let name = if line.is_empty() { read("comm") } else { Vec::new() };
    match name.trim_ascii_end() {
        [] => line,
        name => format!("[{}]", String::from_utf8_lossy(name)),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        process::{Command, Stdio},
        thread::sleep,
        time::Duration,
    };

    use super::command;

    #[test]
    fn a_process_without_a_command_line_has_a_name() {
        let mut child =
            Command::new("cat").args(["-", "-"]).stdin(Stdio::piped()).spawn().expect("it starts");
        let pid = child.id() as i32;
        let becomes = |line: &str| {
            for _ in 0..1000 {
                if command(pid) == line {
                    return;
                }
                sleep(Duration::from_millis(10));
            }
            panic!("it is {} and not {line}", command(pid));
        };
        becomes("cat - -");
        // It ends, and is not reaped yet.
        drop(child.stdin.take());
        becomes("[cat]");
        child.wait().expect("it has ended");
        assert_eq!(command(pid), "");
    }
}
