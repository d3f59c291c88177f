//! Strongly connected components (Tarjan 1972, with the one number per state of Pearce 2016,
//! without recursion).

use super::graph::MAX_STATES;

/// The state has not been visited yet.
const UNSEEN: u32 = 0;
/// The state is not in the part of the graph that is searched.
const LEFT_OUT: u32 = u32::MAX;
/// The mark of the first component; the marks of further components count down from here.
const FIRST: u32 = LEFT_OUT - 1;

/// The components found so far.
pub(crate) struct Found {
    /// For every state [`UNSEEN`], [`LEFT_OUT`] or the mark of its component. While its component
    /// is not complete, the least index that is known to be in it. Indices stay below
    /// [`MAX_STATES`], marks above.
    marks: Vec<u32>,
}

impl Found {
    /// Returns the component that a state is in, if it has been found. Components are numbered in
    /// the order in which they are found.
    #[inline(always)]
    pub(crate) fn of(&self, state: u32) -> Option<u32> {
        let mark = self.marks[state as usize];
        (mark != LEFT_OUT && mark > MAX_STATES as u32).then(|| FIRST - mark)
    }
}

/// The next edge of a state.
pub(crate) enum Next {
    /// The edge leads to this state.
    To(u32),
    /// The edge does not count.
    Skip,
    /// There are no more edges.
    End,
}

/// Finds the strongly connected components among the states below `total` that are `included`,
/// every component after all that can be reached from it. `edge` returns the edges of a state one
/// by one, and `visit` gets the members of each component, its number, and what has been found so
/// far, itself included.
///
/// Takes four bytes for every state, and at most twelve more for every state on the way to the
/// present one.
pub(crate) fn components(
    total: usize,
    included: impl Fn(u32) -> bool,
    edge: impl Fn(u32, u32) -> Next,
    mut visit: impl FnMut(&[u32], u32, &Found),
) {
    let marks =
        (0..total as u32).map(|state| if included(state) { UNSEEN } else { LEFT_OUT }).collect();
    let mut found = Found { marks };
    // Visited states whose component is not complete, except those in `calls`.
    let mut stack: Vec<u32> = Vec::new();
    // A state and its next edge.
    let mut calls: Vec<(u32, u32)> = Vec::new();
    // The index of each state in `calls`, to see whether a lower one has been found.
    let mut indices: Vec<u32> = Vec::new();
    let mut index = 0;
    let mut number = 0;
    for root in 0..total as u32 {
        if found.marks[root as usize] != UNSEEN {
            continue;
        }
        index += 1;
        found.marks[root as usize] = index;
        calls.push((root, 0));
        indices.push(index);
        while let Some((state, next)) = calls.last_mut() {
            let state = *state;
            match edge(state, *next) {
                Next::To(to) => {
                    *next += 1;
                    let mark = found.marks[to as usize];
                    if mark == UNSEEN {
                        index += 1;
                        found.marks[to as usize] = index;
                        calls.push((to, 0));
                        indices.push(index);
                    } else if mark < found.marks[state as usize] {
                        // Complete components and left-out states have higher marks.
                        found.marks[state as usize] = mark;
                    }
                }
                Next::Skip => *next += 1,
                Next::End => {
                    calls.pop();
                    let own = indices.pop().expect("every call has an index");
                    let least = found.marks[state as usize];
                    if let Some(&(caller, _)) = calls.last() {
                        let caller = &mut found.marks[caller as usize];
                        *caller = (*caller).min(least);
                    }
                    if least != own {
                        stack.push(state);
                        continue;
                    }
                    let above =
                        stack.iter().rev().take_while(|&&s| found.marks[s as usize] >= own).count();
                    let at = stack.len() - above;
                    stack.push(state);
                    for &member in &stack[at..] {
                        found.marks[member as usize] = FIRST - number;
                    }
                    visit(&stack[at..], number, &found);
                    stack.truncate(at);
                    number += 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with reachability, on random graphs of few states: the same components, each after
    /// what it reaches.
    #[test]
    fn components_are_mutually_reachable_and_come_after_what_they_reach() {
        let mut seed = 1u64;
        let mut random = |below: u64| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for _ in 0..2000 {
            let total = 1 + random(9) as usize;
            let edges: Vec<Vec<u32>> = (0..total)
                .map(|_| (0..random(4)).map(|_| random(total as u64) as u32).collect())
                .collect();
            let left_out = random(1 << total);
            let included = |state: u32| left_out >> state & 1 == 0;
            let mut reaches = vec![vec![false; total]; total];
            (0..total).for_each(|a| reaches[a][a] = true);
            for _ in 0..total {
                for a in (0..total).filter(|&a| included(a as u32)) {
                    for &b in edges[a].iter().filter(|&&b| included(b)) {
                        let further = reaches[b as usize].clone();
                        reaches[a].iter_mut().zip(further).for_each(|(here, there)| *here |= there);
                    }
                }
            }
            let mut number_of = vec![None; total];
            let mut numbers = 0;
            let edge = |state: u32, i: u32| {
                edges[state as usize].get(i as usize).map_or(Next::End, |&to| Next::To(to))
            };
            components(total, included, edge, |members, number, found| {
                assert_eq!(number, numbers, "{edges:?}");
                numbers += 1;
                for &member in members {
                    assert_eq!(
                        (number_of[member as usize], found.of(member)),
                        (None, Some(number)),
                        "{edges:?}"
                    );
                    number_of[member as usize] = Some(number);
                }
            });
            for a in 0..total {
                assert_eq!(
                    number_of[a].is_some(),
                    included(a as u32),
                    "{edges:?} without {left_out:b}"
                );
                for b in (0..total).filter(|&b| included(a as u32) && included(b as u32)) {
                    let together = reaches[a][b] && reaches[b][a];
                    assert_eq!(
                        number_of[a] == number_of[b],
                        together,
                        "{edges:?} without {left_out:b}"
                    );
                    assert!(
                        !reaches[a][b] || number_of[b] <= number_of[a],
                        "{edges:?} without {left_out:b}"
                    );
                }
            }
        }
    }
}
