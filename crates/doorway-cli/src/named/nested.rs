//! Whether this process runs inside a command that holds the lock already: it would wait for itself.
//!
//! Two signs, each of which has to point at somebody who holds the lock now: a ticket that the environment names, and a holder
//! among the processes that started this one, for those who clear the environment.

use std::{env, fs, process};

use doorway::shared::Lock;

/// Where the tickets of the commands around a command are kept: a line for each, ticket and file.
pub(crate) const HELD: &str = "DOORWAY_HELD";

/// What the command's own environment says.
pub(crate) fn held(lock: &Lock, ticket: u64) -> String {
    let mine = format!("{ticket} {}", lock.path().display());
    match env::var(HELD) {
        Ok(around) if !around.is_empty() => format!("{around}\n{mine}"),
        _ => mine,
    }
}

/// Somebody who holds the lock and in whose command this runs.
pub(crate) fn holder_around(lock: &Lock) -> Option<i32> {
    let around = env::var(HELD).unwrap_or_default();
    let path = lock.path().display().to_string();
    let tickets: Vec<u64> = around
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter(|(_, file)| *file == path)
        .filter_map(|(ticket, _)| ticket.parse().ok())
        .collect();
    let ancestors = ancestors();
    let is_around = |pid: i32, ticket: u64| tickets.contains(&ticket) || ancestors.contains(&pid);
    lock.status().holders.iter().find(|holder| is_around(holder.pid, holder.ticket)).map(|holder| holder.pid)
}

/// This process, which may have been a command itself and called exec, and those that started it.
fn ancestors() -> Vec<i32> {
    let parent = |pid: &i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // After the name, which may contain anything, stand the state and the parent.
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok().filter(|&parent| parent > 0)
    };
    std::iter::successors(i32::try_from(process::id()).ok(), parent).take(1000).collect()
}
