//! What happened, and what has to be true of it: P1 and P2, and the four statements of the paper's
//! section III, word by word.

/// A Label operation. Number 0 of each process is its initial label and is not listed.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Label {
    pub(crate) process: usize,
    pub(crate) begin: u64,
    /// `u64::MAX` if it was not finished.
    pub(crate) end: u64,
    /// Which of its process, from 1.
    pub(crate) number: u32,
}

/// A Scan that was finished.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Scan {
    pub(crate) process: usize,
    pub(crate) begin: u64,
    pub(crate) end: u64,
    /// How many are before each process.
    pub(crate) ranks: Vec<usize>,
    /// The numbers of the labels that this stems from; empty where nobody kept track.
    pub(crate) labels: Vec<u32>,
}

impl Scan {
    fn before(&self, p: usize, q: usize) -> bool {
        self.ranks[p] < self.ranks[q]
    }
}

/// All operations of a run, in no order. Times are those of first and last accesses; no two are the
/// same.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub(crate) struct History {
    pub(crate) n: usize,
    pub(crate) labels: Vec<Label>,
    pub(crate) scans: Vec<Scan>,
}

type Verdict = Result<(), String>;

impl History {
    /// All there is to check.
    pub(crate) fn check(&self) -> Verdict {
        self.check_p1()?;
        self.check_p2()?;
        self.check_section_3()
    }

    /// The four statements of section III.
    pub(crate) fn check_section_3(&self) -> Verdict {
        self.check_permutations()?;
        self.check_consistency()?;
        self.check_lasting_consistency()?;
        self.check_property_1()?;
        self.check_property_2()
    }

    /// Every Scan returns a permutation.
    fn check_permutations(&self) -> Verdict {
        for scan in &self.scans {
            let mut ranks = scan.ranks.clone();
            ranks.sort_unstable();
            ensure(ranks.into_iter().eq(0..self.n), || format!("no permutation: {scan:?}"))?;
        }
        Ok(())
    }

    /// P1: there is a total order on the Labels that extends the order in real time and agrees with
    /// every Scan. So it is if and only if the graph of what has to be before what has no circle.
    /// Time is a chain of moments in it: the end of one Label is before the beginning of another by
    /// way of the chain.
    pub(crate) fn check_p1(&self) -> Verdict {
        let mut moments: Vec<(u64, usize, bool)> = Vec::new();
        for (i, label) in self.labels.iter().enumerate() {
            moments.push((label.begin, i, false));
            if label.end != u64::MAX {
                moments.push((label.end, i, true));
            }
        }
        moments.sort_unstable();
        let (labels, initial) = (self.labels.len(), self.labels.len() + moments.len());
        let mut graph = vec![Vec::new(); initial + self.n];
        for (at, &(_, label, ends)) in moments.iter().enumerate() {
            let at = labels + at;
            if ends {
                graph[label].push(at);
            } else {
                graph[at].push(label);
            }
            if at + 1 < initial {
                graph[at].push(at + 1);
            }
        }
        if initial > labels {
            (0..self.n).for_each(|p| graph[initial + p].push(labels));
        }
        let mut node = vec![Vec::new(); self.n];
        (0..self.n).for_each(|p| node[p].push(initial + p));
        let mut by_number: Vec<usize> = (0..labels).collect();
        by_number.sort_by_key(|&i| self.labels[i].number);
        by_number.into_iter().for_each(|i| node[self.labels[i].process].push(i));
        for scan in &self.scans {
            let mut line: Vec<usize> = (0..self.n).collect();
            line.sort_by_key(|&p| scan.ranks[p]);
            let line: Vec<usize> =
                line.into_iter().map(|p| node[p][scan.labels[p] as usize]).collect();
            line.windows(2).for_each(|pair| graph[pair[0]].push(pair[1]));
        }
        ensure(is_acyclic(&graph), || "P1: the Scans do not agree on an order of the Labels".into())
    }

    /// P2: a Scan returns no label that is older than the last one of its process that was finished
    /// before it began.
    pub(crate) fn check_p2(&self) -> Verdict {
        for scan in &self.scans {
            for p in 0..self.n {
                let finished = self
                    .labels_of(p)
                    .filter(|label| label.end < scan.begin)
                    .map(|label| label.number)
                    .max();
                ensure(scan.labels[p] >= finished.unwrap_or(0), || {
                    format!("P2: an old label of {p} in {scan:?}")
                })?;
            }
        }
        Ok(())
    }

    /// Pieces of it with so many Scans each, overlapping by half; with every Label that overlaps
    /// them, and the last one of each process before. What holds of the whole holds of them.
    pub(crate) fn windows(&self, scans: usize) -> impl Iterator<Item = Self> {
        let mut ordered = self.scans.clone();
        ordered.sort_by_key(|scan| scan.begin);
        (0..ordered.len().max(1)).step_by(scans / 2).map(move |first| {
            let scans = ordered[first..ordered.len().min(first + scans)].to_vec();
            let begin = scans.iter().map(|scan| scan.begin).min().unwrap_or(0);
            let end = scans.iter().map(|scan| scan.end).max().unwrap_or(0);
            let earlier = |p| {
                self.labels_of(p).filter(|label| label.end < begin).max_by_key(|label| label.end)
            };
            let inside =
                self.labels.iter().filter(|label| label.begin <= end && label.end >= begin);
            let labels = inside.chain((0..self.n).filter_map(earlier)).cloned().collect();
            Self { n: self.n, labels, scans }
        })
    }

    fn labels_of(&self, p: usize) -> impl Iterator<Item = &Label> {
        self.labels.iter().filter(move |label| label.process == p)
    }

    /// Whether p is outside any Label during the interval.
    fn is_quiet(&self, p: usize, begin: u64, end: u64) -> bool {
        self.labels_of(p).all(|label| label.end < begin || end < label.begin)
    }

    /// "Let P be a set of processes outside any Label procedure during some time interval. Then,
    /// the permutations returned by all the Scans performed entirely in this interval are
    /// consistent with one another with regards to the order they impose on P." For two Scans and
    /// two processes, in the smallest interval.
    fn check_consistency(&self) -> Verdict {
        for (i, a) in self.scans.iter().enumerate() {
            for b in &self.scans[..i] {
                let (begin, end) = (a.begin.min(b.begin), a.end.max(b.end));
                let quiet: Vec<usize> =
                    (0..self.n).filter(|&p| self.is_quiet(p, begin, end)).collect();
                for (j, &p) in quiet.iter().enumerate() {
                    for &q in &quiet[..j] {
                        ensure(a.before(p, q) == b.before(p, q), || {
                            format!("consistency: {p} and {q} rest, but {a:?} and {b:?}")
                        })?;
                    }
                }
            }
        }
        Ok(())
    }

    /// "Let p be a process outside Label_p during an interval [T1^p, T2^p], let q be a process
    /// performing Scan_q during an interval [T1^q, T2^q], such that T1^p ≤ T1^q, and, for any
    /// process i, let T2^i be a time when any Label_i starting before T2^q is finished. If the
    /// Scan_q that started at T1^q returned a permutation satisfying p < i, then any Scan performed
    /// entirely in [T2^i, T2^p] returns a permutation satisfying p < i." With T2^i as early and
    /// T2^p as late as can be.
    fn check_lasting_consistency(&self) -> Verdict {
        for scan in &self.scans {
            for p in (0..self.n).filter(|&p| self.is_quiet(p, scan.begin, scan.begin)) {
                let until = self
                    .labels_of(p)
                    .map(|label| label.begin)
                    .filter(|&begin| begin > scan.begin)
                    .min();
                for i in (0..self.n).filter(|&i| scan.before(p, i)) {
                    let begun = self.labels_of(i).filter(|label| label.begin < scan.end);
                    let from = begun.map(|label| label.end).max().unwrap_or(0);
                    for other in &self.scans {
                        let inside =
                            other.begin > from && until.is_none_or(|until| other.end < until);
                        ensure(!inside || other.before(p, i), || {
                            format!(
                                "lasting consistency: {p} before {i} in {scan:?} but not in {other:?}"
                            )
                        })?;
                    }
                }
            }
        }
        Ok(())
    }

    /// "If a process p begins Label_p after a process q finishes Label_q, then any Scan performed
    /// entirely after both labeling procedures and before any subsequent labeling procedures by q,
    /// returns a permutation in which q < p."
    fn check_property_1(&self) -> Verdict {
        for first in &self.labels {
            let q = first.process;
            let next =
                self.labels_of(q).map(|label| label.begin).filter(|&begin| begin > first.end).min();
            for second in
                self.labels.iter().filter(|second| second.process != q && second.begin > first.end)
            {
                for scan in &self.scans {
                    let between =
                        scan.begin > second.end && next.is_none_or(|next| scan.end < next);
                    ensure(!between || scan.before(q, second.process), || {
                        format!("Property 1: {first:?}, then {second:?}, but {scan:?}")
                    })?;
                }
            }
        }
        Ok(())
    }

    /// "Let P be a set of processes, such that in some interval each p ∈ P executes Label_p, and
    /// then Scan_p which is not followed by Label_p. Then, there is p ∈ P whose last Scan_p in this
    /// interval returns a permutation that orders all the other processes in P before it, and no
    /// Label_q, for any q ∈ P, starts after the last Label_p in this interval finishes." It depends
    /// on the end of the interval alone; a later beginning only makes P smaller, and every smaller
    /// P is tried anyway.
    fn check_property_2(&self) -> Verdict {
        for end in self.scans.iter().map(|scan| scan.end) {
            let last: Vec<Option<(&Label, &Scan)>> =
                (0..self.n).map(|p| self.last_pair(p, end)).collect();
            let able: Vec<usize> = (0..self.n).filter(|&p| last[p].is_some()).collect();
            for set in 1..1_usize << able.len() {
                let set: Vec<usize> =
                    (0..able.len()).filter(|i| set >> i & 1 == 1).map(|i| able[i]).collect();
                let is_last = |p: usize| {
                    let Some((label, scan)) = last[p] else { return false };
                    let late = |q| {
                        self.labels_of(q).any(|other| label.end < other.begin && other.begin <= end)
                    };
                    set.iter().all(|&q| q == p || scan.before(q, p))
                        && !set.iter().any(|&q| late(q))
                };
                ensure(set.iter().any(|&p| is_last(p)), || {
                    format!("Property 2: nobody is last of {set:?} at {end}")
                })?;
            }
        }
        Ok(())
    }

    /// The last Label and Scan of p before `end`, if the Scan was after the Label and nothing of
    /// p's follows.
    fn last_pair(&self, p: usize, end: u64) -> Option<(&Label, &Scan)> {
        let label =
            self.labels_of(p).filter(|label| label.begin <= end).max_by_key(|label| label.begin)?;
        let scans = self.scans.iter().filter(|scan| scan.process == p && scan.end <= end);
        let scan = scans.max_by_key(|scan| scan.end)?;
        (label.end < scan.begin).then_some((label, scan))
    }
}

fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(otherwise()) }
}

fn is_acyclic(graph: &[Vec<usize>]) -> bool {
    let mut before = vec![0_usize; graph.len()];
    graph.iter().flatten().for_each(|&to| before[to] += 1);
    let mut free: Vec<usize> = (0..graph.len()).filter(|&node| before[node] == 0).collect();
    let mut done = 0;
    while let Some(node) = free.pop() {
        done += 1;
        for &to in &graph[node] {
            before[to] -= 1;
            if before[to] == 0 {
                free.push(to);
            }
        }
    }
    done == graph.len()
}

/// Every statement can fail: a history for each that breaks it.
#[cfg(test)]
mod tests {
    use super::{History, Label, Scan};

    fn label(process: usize, begin: u64, end: u64, number: u32) -> Label {
        Label { process, begin, end, number }
    }

    fn scan(process: usize, begin: u64, end: u64, ranks: [usize; 2], labels: [u32; 2]) -> Scan {
        Scan { process, begin, end, ranks: ranks.to_vec(), labels: labels.to_vec() }
    }

    fn of(labels: Vec<Label>, scans: Vec<Scan>) -> History {
        History { n: 2, labels, scans }
    }

    fn breaks(history: &History, check: fn(&History) -> Result<(), String>, name: &str) {
        let why = check(history).expect_err(name);
        assert!(why.starts_with(name), "{why}");
        assert!(history.check().is_err(), "{name}");
    }

    #[test]
    fn scans_that_disagree_break_p1_and_consistency() {
        let history =
            of(vec![], vec![scan(0, 1, 2, [0, 1], [0, 0]), scan(1, 3, 4, [1, 0], [0, 0])]);
        breaks(&history, History::check_p1, "P1");
        breaks(&history, History::check_consistency, "consistency");
        breaks(&history, History::check_lasting_consistency, "lasting consistency");
        // Unless there is a Label in between.
        let scans = vec![scan(0, 1, 2, [0, 1], [0, 0]), scan(1, 5, 6, [1, 0], [1, 0])];
        assert_eq!(of(vec![label(0, 3, 4, 1)], scans).check(), Ok(()));
    }

    #[test]
    fn a_scan_against_real_time_breaks_p1_and_property_1() {
        let labels = vec![label(0, 1, 2, 1), label(1, 3, 4, 1)];
        let history = of(labels.clone(), vec![scan(0, 5, 6, [1, 0], [1, 1])]);
        breaks(&history, History::check_p1, "P1");
        breaks(&history, History::check_property_1, "Property 1");
        assert_eq!(of(labels, vec![scan(0, 5, 6, [0, 1], [1, 1])]).check(), Ok(()));
        // Labels that overlap may be in either order.
        assert_eq!(
            of(vec![label(0, 1, 4, 1), label(1, 2, 3, 1)], vec![scan(0, 5, 6, [1, 0], [1, 1])])
                .check(),
            Ok(())
        );
    }

    #[test]
    fn an_old_label_breaks_p2() {
        let history = of(vec![label(1, 1, 2, 1)], vec![scan(0, 3, 4, [0, 1], [0, 0])]);
        breaks(&history, History::check_p2, "P2");
        // While the Label goes on, either will do.
        assert_eq!(
            of(vec![label(1, 1, 4, 1)], vec![scan(0, 3, 5, [0, 1], [0, 0])]).check(),
            Ok(())
        );
        assert_eq!(
            of(vec![label(1, 1, u64::MAX, 1)], vec![scan(0, 3, 5, [0, 1], [0, 0])]).check(),
            Ok(())
        );
    }

    /// Each sees the other as the last.
    #[test]
    fn nobody_last_breaks_property_2() {
        let labels = vec![label(0, 1, 3, 1), label(1, 2, 4, 1)];
        let history =
            of(labels, vec![scan(0, 5, 7, [0, 1], [1, 1]), scan(1, 6, 8, [1, 0], [1, 1])]);
        breaks(&history, History::check_property_2, "Property 2");
    }

    #[test]
    fn what_is_no_permutation_is_noticed() {
        breaks(
            &of(vec![], vec![scan(0, 1, 2, [0, 0], [0, 0])]),
            History::check_permutations,
            "no permutation",
        );
    }
}
