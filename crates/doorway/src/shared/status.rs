//! Who holds and who waits.

use std::{path::PathBuf, sync::atomic::Ordering::Acquire, time::Duration};

use doorway_core::{
    Register, Session, Value, raw,
    recoverable::{Gate, Owner, State},
};

use super::{
    Kind, Lock,
    file::ROW,
    liveness,
    lock::now,
    memory::row::{ENTERED, SINCE, STAMPED},
};

/// A lock at some moment. It may have changed by the time that you read it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Status {
    /// Its name.
    pub name: String,
    /// Its file.
    pub path: PathBuf,
    /// What it is.
    pub kind: Kind,
    /// How many slots there are.
    pub slots: usize,
    /// How many may hold and wait together.
    pub capacity: usize,
    /// Nobody is let in.
    pub drained: bool,
    /// Who holds, in the order of slots.
    pub holders: Vec<Holder>,
    /// Who waits, in the order in which they will go in.
    pub waiting: Vec<Waiter>,
}

/// Who holds a slot.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Holder {
    /// Which.
    pub slot: usize,
    /// The process.
    pub pid: i32,
    /// Its ticket.
    pub ticket: u64,
    /// What it has asked for, in a group lock.
    pub session: Option<String>,
    /// How long it has had the slot; `None` if it has neither waited for it nor [noted](super::Permit::note) it.
    pub held: Option<Duration>,
    /// Its command line; empty if that cannot be told.
    pub command: String,
}

/// Who waits.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Waiter {
    /// The process.
    pub pid: i32,
    /// Its ticket.
    pub ticket: u64,
    /// What it asks for, in a group lock.
    pub session: Option<String>,
    /// How long it has waited.
    pub waited: Duration,
    /// Its command line; empty if that cannot be told.
    pub command: String,
}

/// What a row says.
struct Row {
    state: State,
    owner: Owner,
    session: Session,
    slot: u32,
    entered: u64,
    since: Option<u64>,
}

impl Lock {
    /// Who holds and who waits now. The dead are left out, whether somebody has found them yet or not.
    pub fn status(&self) -> Status {
        let tally = self.tally();
        let mut holders: Vec<Holder> = rows(self).filter_map(|row| self.holder(&row)).collect();
        holders.sort_by_key(|holder| holder.slot);
        let mut waiting = waiting(self);
        for waiter in &mut waiting {
            waiter.command = command(waiter.pid);
        }
        Status {
            name: self.name(),
            path: self.path().into(),
            kind: self.kind(),
            slots: tally.slots().into(),
            capacity: self.capacity(),
            drained: tally.closed(),
            holders,
            waiting,
        }
    }

    fn holder(&self, row: &Row) -> Option<Holder> {
        let State::Holding { ticket, .. } = row.state else { return None };
        let pid = living(row.owner)?;
        Some(Holder {
            slot: row.slot as usize,
            pid,
            ticket: raw::number(ticket),
            session: self.asked(row.session),
            held: row.since.map(since),
            command: command(pid),
        })
    }

    fn asked(&self, session: Session) -> Option<String> {
        if self.kind() == Kind::GroupLock { self.session_name(session.0 as usize) } else { None }
    }
}

/// Who waits, in order, without command lines.
pub(super) fn waiting(lock: &Lock) -> Vec<Waiter> {
    let waiter = |row: Row| {
        let State::Waiting(ticket) = row.state else { return None };
        let (session, waited) = (lock.asked(row.session), since(row.entered));
        Some(Waiter { pid: living(row.owner)?, ticket: raw::number(ticket), session, waited, command: String::new() })
    };
    let mut waiting: Vec<_> = rows(lock).filter_map(waiter).collect();
    waiting.sort_by_key(|waiter| waiter.ticket);
    waiting
}

fn living(owner: Owner) -> Option<i32> {
    if liveness::is_dead(owner) { None } else { liveness::pid(owner).map(|pid| pid.as_raw_nonzero().get()) }
}

fn since(time: u64) -> Duration {
    Duration::from_nanos(now().saturating_sub(time))
}

/// The rows that are not idle. Each is read until its state has stayed the same meanwhile, or else left out.
fn rows(lock: &Lock) -> impl Iterator<Item = Row> + '_ {
    let table = lock.file.table();
    (0..table.rows()).filter_map(move |row| (0..3).find_map(|_| read(lock, row)).flatten())
}

/// `None` if it has changed meanwhile.
fn read(lock: &Lock, row: usize) -> Option<Option<Row>> {
    fn value<T: Value>(lock: &Lock, register: Register<T>) -> Option<T> {
        let word = lock.file.words().get(register.index())?.load(Acquire);
        Some(T::from_word(u128::from(word), register.format()))
    }
    let table = lock.file.table();
    let (gate, state) = (value(lock, table.gate())?, value(lock, table.state(row))?);
    let (seen, slot, session) = match gate {
        Gate::Held { row: held, ticket } | Gate::Closing { row: held, ticket } if held as usize == row => {
            (State::Holding { ticket, recovered: false }, value(lock, table.first())?, table.number_at_gate(row))
        }
        _ => (state, value(lock, table.held(row))?, value(lock, table.asks(row))?),
    };
    let stamp = match seen {
        State::Waiting(ticket) | State::Holding { ticket, .. } => raw::number(ticket),
        State::Idle => return Some(None),
    };
    let time = |which: usize| Some(lock.file.words().get(row * ROW + which)?.load(Acquire));
    let found = Row {
        state: seen,
        owner: value(lock, table.owner(row))??,
        session,
        slot,
        entered: time(ENTERED)?,
        since: (time(STAMPED)? == stamp).then_some(time(SINCE)?),
    };
    let unchanged = value(lock, table.state(row))? == state && value(lock, table.gate())? == gate;
    unchanged.then_some(Some(found))
}

/// Returns the command line of a process, or an empty text if `/proc` does not tell. While a program that has just begun has none, its name in
/// brackets, as ps(1) does.
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
        let mut child = Command::new("cat").args(["-", "-"]).stdin(Stdio::piped()).spawn().expect("it starts");
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
        // It ends, and nobody hears of it yet.
        drop(child.stdin.take());
        becomes("[cat]");
        child.wait().expect("it has ended");
        assert_eq!(command(pid), "");
    }
}
