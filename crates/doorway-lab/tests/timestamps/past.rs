//! What has happened in a run: all of it, or as much as promises can still depend on.

use std::hash::Hash;

use super::{
    clock::{Meaning, Op},
    history::{History, Label, Scan},
};

/// What a run remembers beside registers and local states. Calls come in the order of the run.
pub(crate) trait Past: Clone + Eq + Hash {
    /// Before the first step of `n` processes.
    fn new(n: usize) -> Self;
    /// The operation that `p` is in.
    fn op(&self, p: usize) -> Op;
    /// Whether the operation of p has taken a label of q.
    fn took(&self, p: usize, q: usize) -> bool;
    /// `p` makes the first access of an operation.
    fn begin(&mut self, p: usize, op: Op);
    /// `p` makes an access.
    fn observe(&mut self, p: usize, what: Meaning);
    /// The operation of `p` is over; a Scan returned these ranks. `Err` if that breaks a promise.
    fn end(&mut self, p: usize, ranks: &[usize]) -> Result<(), String>;
    /// Makes pasts the same that nothing can tell apart any more.
    fn tidy(&mut self) {}
}

/// All of it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Record {
    /// How many operations have begun or ended: that is all the time that matters.
    now: u64,
    /// The number of each process's current label.
    current: Vec<u32>,
    /// The numbers of the labels in S[p][q].
    saved: Vec<Vec<u32>>,
    running: Vec<Option<Running>>,
    history: History,
    /// Whether promises are checked whenever a Scan is over, or by whoever asks for the history.
    at_once: bool,
}

/// An operation that is going on.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Running {
    op: Op,
    begin: u64,
    /// The numbers of the labels taken so far.
    taken: Vec<Option<u32>>,
}

impl Record {
    /// One that is checked by whoever asks for it.
    pub(crate) fn unchecked(n: usize) -> Self {
        Self { at_once: false, ..Self::new(n) }
    }

    /// Whether `p` has an operation going on.
    pub(crate) fn is_running(&self, p: usize) -> bool {
        self.running[p].is_some()
    }

    /// The history so far, with the Labels that are still going on.
    pub(crate) fn history(&self) -> History {
        let mut history = self.history.clone();
        for (p, running) in self.running.iter().enumerate() {
            if let Some(Running { op: Op::Label, begin, .. }) = running {
                let number = self.current[p] + 1;
                history.labels.push(Label { process: p, begin: *begin, end: u64::MAX, number });
            }
        }
        history
    }
}

impl Past for Record {
    fn new(n: usize) -> Self {
        Self {
            now: 0,
            current: vec![0; n],
            saved: vec![vec![0; n]; n],
            running: vec![None; n],
            history: History { n, ..History::default() },
            at_once: true,
        }
    }

    fn op(&self, p: usize) -> Op {
        self.running[p].as_ref().expect("an operation is going on").op
    }

    fn took(&self, p: usize, q: usize) -> bool {
        self.running[p].as_ref().is_some_and(|running| running.taken[q].is_some())
    }

    fn begin(&mut self, p: usize, op: Op) {
        self.now += 1;
        self.running[p] =
            Some(Running { op, begin: self.now, taken: vec![None; self.current.len()] });
    }

    fn observe(&mut self, p: usize, what: Meaning) {
        let taken = &mut self.running[p].as_mut().expect("an operation is going on").taken;
        match what {
            Meaning::Nothing => {}
            Meaning::TakesCurrent(q) => taken[q] = Some(self.current[q]),
            Meaning::TakesSaved(q) => taken[q] = Some(self.saved[q][p]),
            Meaning::Saves(q) => self.saved[p][q] = self.current[p],
            Meaning::Labels => self.current[p] += 1,
            Meaning::TakesAll => *taken = self.current.iter().copied().map(Some).collect(),
        }
    }

    fn end(&mut self, p: usize, ranks: &[usize]) -> Result<(), String> {
        self.now += 1;
        let end = self.now;
        let Running { op, begin, taken } =
            self.running[p].take().expect("an operation is going on");
        if op == Op::Label {
            self.history.labels.push(Label { process: p, begin, end, number: self.current[p] });
            return Ok(());
        }
        let own = |q: usize| (q == p).then_some(self.current[p]);
        let labels = taken
            .iter()
            .enumerate()
            .map(|(q, taken)| own(q).or(*taken).expect("all are looked at"))
            .collect();
        self.history.scans.push(Scan { process: p, begin, end, ranks: ranks.to_vec(), labels });
        if self.at_once { self.history().check() } else { Ok(()) }
    }
}
