//! The steps of a run.

use doorway_core::Session;

use crate::{replay::Kind, subject::Region};

/// One step of a run.
#[derive(Clone, Debug)]
pub struct Event {
    /// The process that moved.
    pub process: usize,
    /// The paper's line.
    pub line: u32,
    /// What was done.
    pub kind: Kind,
    /// The half of a write, on registers that are not atomic.
    pub half: Option<Half>,
    /// The register, as the layout numbers them.
    pub register: Option<usize>,
    /// The register, numbered in the order in which the run first touched them. These numbers are
    /// small, for callers that keep something for each register.
    pub slot: usize,
    /// The register lives with another process or with no process: a reference in DSM.
    pub remote: bool,
    /// What was done, in words.
    pub access: String,
    /// The region of the process before the step.
    pub from: Region,
    /// The region of the process after the step.
    pub to: Region,
    /// The session that the process has asked for in this passage; none except in group locks.
    pub session: Session,
    /// The process gave up its place with this step.
    pub abandons: bool,
    /// A wait that did not succeed: nothing has changed.
    pub idle: bool,
    /// The register holds something else than before.
    pub changed: bool,
}

impl Event {
    /// Returns whether the other event is the same step of another round: an access to the same
    /// register at the same place, whatever the values. Local states that are merged may differ in
    /// whether they write or swap.
    pub(crate) fn is_alike(&self, other: &Self) -> bool {
        let step = |event: &Self| (event.process, event.line, event.half, event.register);
        let place = |event: &Self| (event.from, event.to, event.session, event.abandons);
        step(self) == step(other) && place(self) == place(other)
    }

    /// Returns whether another run made the same step. Only runs that forget know whether a wait
    /// was in vain.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let step = |event: &Self| {
            (event.process, event.line, event.kind, event.half, event.register, event.remote)
        };
        let place =
            |event: &Self| (event.from, event.to, event.session, event.abandons, event.changed);
        step(self) == step(other) && place(self) == place(other) && self.access == other.access
    }

    /// Returns the event before anything has happened.
    pub(super) fn none() -> Self {
        Self {
            process: 0,
            line: 0,
            kind: Kind::Read,
            half: None,
            register: None,
            slot: 0,
            remote: false,
            access: String::new(),
            from: Region::Remainder,
            to: Region::Remainder,
            session: Session::NONE,
            abandons: false,
            idle: false,
            changed: false,
        }
    }
}

/// Half a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Half {
    /// From here on the register holds anything.
    Begin,
    /// From here on it holds what was written.
    End,
}
