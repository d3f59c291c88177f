//! What has happened, as far as P1 and P2 can still depend on it.
//!
//! A Label matters as long as it is going on, its label is in some register, some operation has
//! taken it, or some Scan must return nothing older. The others are forgotten, and nothing is lost:
//! what a forgotten Label x was before, those that were before x are before as well, and what
//! begins from now on comes after all of them, because whatever has to be before anything is
//! finished. So runs of any length have finitely many such pasts.

use super::{
    clock::{Meaning, Op},
    past::Past,
};

/// A Label, by its place in the list of those that matter.
type Node = u8;

/// What a process is doing.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Doing {
    op: Op,
    /// The labels taken so far.
    taken: Vec<Option<Node>>,
    /// The labels that were current when it began.
    floor: Vec<Node>,
    /// The Label that it is.
    node: Option<Node>,
}

/// The past.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Ghost {
    current: Vec<Node>,
    /// `saved[p][q]` for the label in S[p][q], in one row after the other.
    saved: Vec<Node>,
    doing: Vec<Option<Doing>>,
    /// For each Label that matters, those that it has to be before, as bits. Always transitive.
    before: Vec<u64>,
}

impl Past for Ghost {
    fn new(n: usize) -> Self {
        let current: Vec<Node> = (0..n as Node).collect();
        let saved = (0..n * n).map(|at| (at / n) as Node).collect();
        Self { current, saved, doing: vec![None; n], before: vec![0; n] }
    }

    fn op(&self, p: usize) -> Op {
        self.doing[p].as_ref().expect("an operation is going on").op
    }

    fn took(&self, p: usize, q: usize) -> bool {
        self.doing[p].as_ref().is_some_and(|doing| doing.taken[q].is_some())
    }

    fn begin(&mut self, p: usize, op: Op) {
        let n = self.current.len();
        let node = (op == Op::Label).then_some(self.before.len() as Node);
        if let Some(node) = node {
            // After all that are finished.
            let going_on: Vec<Node> =
                self.doing.iter().flatten().filter_map(|doing| doing.node).collect();
            for (other, before) in self.before.iter_mut().enumerate() {
                if !going_on.contains(&(other as Node)) {
                    *before |= 1 << node;
                }
            }
            self.before.push(0);
            assert!(self.before.len() <= 64, "too many Labels matter at once");
        }
        let floor = if op == Op::Scan { self.current.clone() } else { Vec::new() };
        self.doing[p] = Some(Doing { op, taken: vec![None; n], floor, node });
    }

    fn observe(&mut self, p: usize, what: Meaning) {
        let n = self.current.len();
        let doing = self.doing[p].as_mut().expect("an operation is going on");
        match what {
            Meaning::Nothing => {}
            Meaning::TakesCurrent(q) => doing.taken[q] = Some(self.current[q]),
            Meaning::TakesSaved(q) => doing.taken[q] = Some(self.saved[q * n + p]),
            Meaning::Saves(q) => self.saved[p * n + q] = self.current[p],
            Meaning::Labels => {
                self.current[p] = doing.node.take().expect("only a Label writes a label")
            }
            Meaning::TakesAll => doing.taken = self.current.iter().copied().map(Some).collect(),
        }
    }

    fn end(&mut self, p: usize, ranks: &[usize]) -> Result<(), String> {
        let doing = self.doing[p].take().expect("an operation is going on");
        if doing.op == Op::Label {
            return Ok(());
        }
        let mut taken: Vec<Node> = Vec::new();
        for (q, node) in doing.taken.iter().enumerate() {
            let node = if q == p { self.current[p] } else { node.expect("all are looked at") };
            // The Labels of one process are in order.
            if self.is_before(node, doing.floor[q]) {
                return Err(format!("P2: Scan of {p} returns an old label of {q}"));
            }
            taken.push(node);
        }
        let mut line: Vec<usize> = (0..taken.len()).collect();
        line.sort_by_key(|&q| ranks[q]);
        for pair in line.windows(2) {
            self.add(taken[pair[0]], taken[pair[1]]).ok_or_else(|| {
                format!("P1: Scan of {p} returns {line:?} against the order so far")
            })?;
        }
        Ok(())
    }

    /// Forgets the Labels that do not matter any more, and lists the others in the order in which
    /// they are met: the same past then looks the same.
    fn tidy(&mut self) {
        // Labels keep nothing of what they took: P1 is about Scans.
        self.doing.iter_mut().flatten().filter(|doing| doing.op == Op::Label).for_each(|doing| {
            doing.taken.iter_mut().flatten().for_each(|node| *node = 0);
        });
        let mut number = [Node::MAX; 64];
        let mut kept: Vec<Node> = Vec::with_capacity(self.before.len());
        let mut meet = |node: &mut Node| {
            if number[*node as usize] == Node::MAX {
                number[*node as usize] = kept.len() as Node;
                kept.push(*node);
            }
            *node = number[*node as usize];
        };
        self.current.iter_mut().for_each(&mut meet);
        self.saved.iter_mut().for_each(&mut meet);
        for doing in self.doing.iter_mut().flatten() {
            if doing.op == Op::Scan {
                doing.taken.iter_mut().flatten().for_each(&mut meet);
                doing.floor.iter_mut().for_each(&mut meet);
            }
            doing.node.iter_mut().for_each(&mut meet);
        }
        let before = &self.before;
        self.before = kept
            .iter()
            .map(|&node| {
                let after = kept
                    .iter()
                    .enumerate()
                    .filter(|&(_, &other)| before[node as usize] >> other & 1 == 1);
                after.fold(0, |bits, (i, _)| bits | 1 << i)
            })
            .collect();
    }
}

impl Ghost {
    fn is_before(&self, a: Node, b: Node) -> bool {
        self.before[a as usize] >> b & 1 == 1
    }

    /// From now on a has to be before b; `None` if it cannot.
    fn add(&mut self, a: Node, b: Node) -> Option<()> {
        if a == b || self.is_before(b, a) {
            return None;
        }
        let after = self.before[b as usize] | 1 << b;
        for node in 0..self.before.len() as Node {
            if node == a || self.is_before(node, a) {
                self.before[node as usize] |= after;
            }
        }
        Some(())
    }
}
