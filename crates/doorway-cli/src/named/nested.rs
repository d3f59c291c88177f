//! Detects that this process runs inside a command that holds the lock already: it would wait for
//! itself.
//!
//! There are two signs, and each has to point at a process that holds the lock now: a ticket in the
//! environment, and a holder among the ancestors of this process, for programs that clear the
//! environment.

use std::{env, fs, process};

use rustix::system::uname;

use super::view::Who;

/// The variable with the tickets of the enclosing commands: a line for each, ticket and lock.
pub(crate) const HELD: &str = "DOORWAY_HELD";

/// Returns the variable's value for the command; `lock` distinguishes the lock from all others.
pub(crate) fn held(lock: &str, ticket: u64) -> String {
    let mine = format!("{ticket} {lock}");
    match env::var(HELD) {
        Ok(around) if !around.is_empty() => format!("{around}\n{mine}"),
        _ => mine,
    }
}

/// Returns the PID of a holder in whose command this process runs. `lock` distinguishes it from all
/// other locks.
pub(crate) fn holder_around(lock: &str, name: &str, holders: &[Who]) -> Option<i32> {
    if holders.is_empty() {
        return None; // without looking for ancestors
    }
    let around = env::var(HELD).unwrap_or_default();
    let tickets: Vec<u64> = around
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter(|(_, held)| *held == lock)
        .filter_map(|(ticket, _)| ticket.parse().ok())
        .collect();
    let ancestors = ancestors();
    let is_ancestor =
        |who: &Who| !who.foreign && ancestors.contains(&who.pid) && is_of_this_machine(who, name);
    let is_around = |who: &&Who| tickets.contains(&who.ticket) || is_ancestor(who);
    holders.iter().find(is_around).map(|who| who.pid)
}

/// PIDs are valid on their own machine only, and names of machines are not unique. So the process
/// with that PID here must also have the right command.
fn is_of_this_machine(who: &Who, name: &str) -> bool {
    let Some(host) = &who.host else { return true };
    let command = fs::read(format!("/proc/{}/cmdline", who.pid)).unwrap_or_default();
    let says =
        |word: &str| command.split(|&byte| byte == 0).any(|argument| argument == word.as_bytes());
    uname().nodename().to_bytes() == host.as_bytes() && says("run") && says(name)
}

/// Returns this process, which may have been a command itself and called exec, and its ancestors.
fn ancestors() -> Vec<i32> {
    let parent = |pid: &i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // After the name, which may contain anything, come the state and the parent.
        stat.rsplit_once(')')?
            .1
            .split_whitespace()
            .nth(1)?
            .parse()
            .ok()
            .filter(|&parent| parent > 0)
    };
    std::iter::successors(i32::try_from(process::id()).ok(), parent).take(1000).collect()
}
