//! A lock as users see it: which process holds which slot, which wait in which order, since when.

use std::{fmt::Write, time::Duration};

use serde::Serialize;

use crate::{output::one_line, table::columns};

/// A lock.
#[derive(Debug, Serialize)]
pub(crate) struct View {
    pub(crate) name: String,
    /// `semaphore`, `mutex` or `group`.
    pub(crate) kind: &'static str,
    /// How many processes may hold; `None` for no bound.
    pub(crate) slots: Option<usize>,
    /// Whether the lock is drained: it grants no slots until it is resumed.
    pub(crate) drained: bool,
    pub(crate) holders: Vec<Who>,
    pub(crate) waiting: Vec<Who>,
}

/// A holder or a waiter.
#[derive(Debug, Serialize)]
pub(crate) struct Who {
    /// Its slot, if it holds one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) slot: Option<usize>,
    /// Its machine, where the lock is not local to this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) host: Option<String>,
    pub(crate) pid: i32,
    /// Whether it is in another PID namespace, where `pid` is its number.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) foreign: bool,
    pub(crate) ticket: u64,
    pub(crate) session: Option<String>,
    /// How long it has held or waited, if that is known.
    pub(crate) seconds: Option<f64>,
    pub(crate) command: String,
}

impl View {
    /// Formats the view in a few lines.
    pub(crate) fn text(&self) -> String {
        let text = format!("{}: {}\n", one_line(&self.name), self.summary());
        let mut rows = Vec::new();
        if !(self.holders.is_empty() && self.waiting.is_empty()) {
            rows.push(["", "host", "pid", "for", "session", "command"].map(String::from).to_vec());
        }
        let row = |first: String, who: &Who| {
            let [host, session] =
                [&who.host, &who.session].map(|text| one_line(text.as_deref().unwrap_or_default()));
            vec![
                first,
                host,
                who.pid.to_string(),
                age(who.seconds),
                session,
                one_line(&who.command),
            ]
        };
        rows.extend(
            self.holders.iter().map(|who| row(format!("slot {}", who.slot.unwrap_or(0)), who)),
        );
        rows.extend(self.waiting.iter().enumerate().map(|(i, who)| row(format!("{i} ahead"), who)));
        if self.holders.iter().chain(&self.waiting).all(|who| who.host.is_none()) {
            rows.iter_mut().for_each(|row| _ = row.remove(1));
        }
        text + &columns(&rows)
    }

    /// Formats the kind, the slots, and how many processes hold and wait.
    pub(crate) fn summary(&self) -> String {
        let mut text = self.kind.to_string();
        match self.slots {
            Some(1) => text.push_str(", 1 slot"),
            Some(slots) => _ = write!(text, ", {slots} slots"),
            None => {}
        }
        _ = write!(text, ", {} inside, {} waiting", self.holders.len(), self.waiting.len());
        if self.drained {
            text.push_str(", drained");
        }
        text
    }
}

impl Who {
    /// Returns its machine with a space behind; empty if it is this one.
    pub(crate) fn on(&self) -> String {
        self.host.as_deref().map(|host| one_line(host) + " ").unwrap_or_default()
    }
}

/// Returns the seconds, to the millisecond: more is not known.
pub(crate) fn seconds(time: Duration) -> f64 {
    time.as_millis() as f64 / 1000.0
}

/// Formats a duration in a few letters: `12 min`.
pub(crate) fn age(seconds: Option<f64>) -> String {
    let Some(seconds) = seconds else { return "?".into() };
    match seconds as u64 {
        s @ 0..120 => format!("{s} s"),
        s @ 120..7200 => format!("{} min", s / 60),
        s @ 7200..172_800 => format!("{} h", s / 3600),
        s => format!("{} d", s / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_short() {
        let ages = [0.4, 119.0, 720.0, 9000.0, 900_000.0].map(|seconds| age(Some(seconds)));
        assert_eq!(ages, ["0 s", "119 s", "12 min", "2 h", "10 d"]);
    }
}
