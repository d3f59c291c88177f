//! Compares the results of the passes over the graph with the definitions taken literally, on
//! random graphs.

use std::collections::{HashMap, HashSet, VecDeque};

use doorway_core::Property;

use crate::{
    check::{
        graph::{Beginning, Graph},
        kept::{self, Wanted},
        order::Order,
        timings::Timings,
    },
    subject::Region::{self, Critical, Doorway, Exit, Remainder, Waiting},
};

const N: usize = 3;

/// A graph of few states, numbered by how many steps they are away from the first state, as a
/// search would find them.
struct Sample {
    regions: Vec<Vec<Region>>,
    steps: Vec<Vec<(usize, u32)>>,
    depths: Vec<usize>,
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

impl Sample {
    /// Makes a random graph. A state is where each process is, and one of a few variants of that.
    /// Each process either stays where it is or goes on, to a random variant.
    fn new(random: &mut Random) -> Self {
        let mut sample =
            Self { regions: vec![vec![Remainder; N]], steps: Vec::new(), depths: vec![0] };
        let variants = 1 + random.below(3);
        let mut ids = HashMap::from([((vec![Remainder; N], 0), 0u32)]);
        let stays = 1 + random.below(6);
        for state in 0.. {
            if state == sample.regions.len() {
                return sample;
            }
            let mut steps = Vec::new();
            for p in 0..N {
                for _ in 0..random.below(3) {
                    let mut regions = sample.regions[state].clone();
                    if random.below(8) >= stays {
                        regions[p] = match regions[p] {
                            Remainder => {
                                [Doorway, Doorway, Waiting, Critical][random.below(4) as usize]
                            }
                            Doorway => [Waiting, Waiting, Waiting, Exit][random.below(4) as usize],
                            Waiting => {
                                [Critical, Critical, Critical, Exit][random.below(4) as usize]
                            }
                            Critical => Exit,
                            Exit => Remainder,
                        };
                    }
                    let next = sample.regions.len() as u32;
                    let key = (regions.clone(), random.below(variants));
                    if next >= 70 && !ids.contains_key(&key) {
                        continue;
                    }
                    let to = *ids.entry(key).or_insert(next);
                    if to == next {
                        sample.regions.push(regions);
                        sample.depths.push(sample.depths[state] + 1);
                    }
                    steps.push((p, to));
                }
            }
            sample.steps.push(steps);
        }
        unreachable!()
    }

    fn region(&self, state: u32, p: usize) -> Region {
        self.regions[state as usize][p]
    }

    /// Returns the processes that wait in a state.
    fn waiting(&self, state: u32) -> u16 {
        (0..N).filter(|&p| self.region(state, p) == Waiting).fold(0, |set, p| set | 1 << p)
    }

    fn begins(&self, from: u32, p: usize, to: u32) -> bool {
        self.region(from, p) == Remainder && self.region(to, p) != Remainder
    }

    fn graph(&self) -> Graph {
        let mut beginnings = Vec::new();
        for (from, steps) in (0..).zip(&self.steps) {
            for &(p, to) in steps.iter().filter(|&&(p, to)| self.begins(from, p, to)) {
                let set = self.waiting(to) & !(1 << p);
                if set != 0 {
                    beginnings.push(Beginning {
                        from,
                        to,
                        p: p as u8,
                        conflicting: set,
                        alike: set,
                    });
                }
            }
        }
        Graph::of_steps(&self.steps, &self.regions, beginnings)
    }

    /// Returns the states that can be reached from a state along allowed steps, including itself.
    fn reached(&self, start: u32, allowed: &dyn Fn(u32, usize, u32) -> bool) -> HashSet<u32> {
        let (mut seen, mut queue) = (HashSet::from([start]), VecDeque::from([start]));
        while let Some(from) = queue.pop_front() {
            for &(p, to) in &self.steps[from as usize] {
                if allowed(from, p, to) && seen.insert(to) {
                    queue.push_back(to);
                }
            }
        }
        seen
    }

    /// Returns how early a run begins that violates a property of progress, and its crashed set:
    /// the least.
    fn violation(&self, property: Property, crashes: u32) -> Option<(usize, u32)> {
        let mut best = None;
        for crashed in (0..1u32 << N).filter(|set| set.count_ones() <= crashes) {
            for victim in (0..N).filter(|p| crashed >> p & 1 == 0) {
                let lingers = property == Property::BoundedExit;
                let inside = |state: u32| match self.region(state, victim) {
                    Exit => lingers,
                    region => region.is_entry() && !lingers,
                };
                let allowed = |from: u32, p: usize, to: u32| {
                    let enters = self.region(from, p) != Critical && self.region(to, p) == Critical;
                    inside(from)
                        && inside(to)
                        && crashed >> p & 1 == 0
                        && !(enters && property == Property::DeadlockFreedom)
                };
                let reached: Vec<_> = (0..self.steps.len() as u32)
                    .map(|state| self.reached(state, &allowed))
                    .collect();
                for state in (0..self.steps.len() as u32).filter(|&state| inside(state)) {
                    let together = |other: &u32| reached[*other as usize].contains(&state);
                    let part: HashSet<u32> =
                        reached[state as usize].iter().copied().filter(together).collect();
                    let moves = |p: usize| {
                        let stays = |from: u32, q: usize, to: u32| {
                            q == p && part.contains(&to) && allowed(from, q, to)
                        };
                        part.iter().any(|&from| {
                            self.steps[from as usize].iter().any(|&(q, to)| stays(from, q, to))
                        })
                    };
                    let rests =
                        |p: usize| part.iter().any(|&state| self.region(state, p) == Remainder);
                    let fair = |p: usize| crashed >> p & 1 == 1 || moves(p) || rests(p);
                    if if lingers { moves(victim) } else { (0..N).all(fair) } {
                        let begins = part
                            .iter()
                            .map(|&state| self.depths[state as usize])
                            .min()
                            .unwrap_or(0);
                        best = best.into_iter().chain([(begins, crashed)]).min();
                    }
                }
            }
            if property == Property::BoundedExit {
                break;
            }
        }
        best
    }

    /// Returns for every state the processes that are not enabled to enter.
    fn kept_out(&self) -> Vec<u16> {
        let mut kept = vec![0; self.steps.len()];
        for p in 0..N {
            let gives_up = |from, to| {
                self.region(from, p).is_entry() && !matches!(self.region(to, p), Doorway | Waiting)
            };
            let allowed = |from: u32, q: usize, to: u32| {
                let outside = self.region(from, p) != Critical && self.region(to, p) != Critical;
                outside && !(q == p && gives_up(from, to))
            };
            let reached: Vec<_> =
                (0..self.steps.len() as u32).map(|state| self.reached(state, &allowed)).collect();
            let ends = |state: &u32| {
                let mut own =
                    self.steps[*state as usize].iter().filter(|(q, _)| *q == p).peekable();
                let returns =
                    |to: u32| allowed(*state, p, to) && reached[to as usize].contains(state);
                own.peek().is_none() || own.any(|&(_, to)| returns(to))
            };
            for state in (0..self.steps.len()).filter(|&state| self.regions[state][p] != Critical) {
                kept[state] |= u16::from(reached[state].iter().any(ends)) << p;
            }
        }
        kept
    }

    /// Returns the number of steps of the shortest run that violates a property of order. Searches
    /// over the states together with the processes that were before each process.
    fn overtaking(&self, property: Property, k: usize, kept_out: &[u16]) -> Option<usize> {
        let start = (0u32, [0u16; N]);
        let (mut seen, mut queue) = (HashSet::from([start]), VecDeque::from([(start, 0)]));
        while let Some(((from, before), steps)) = queue.pop_front() {
            for &(p, to) in &self.steps[from as usize] {
                let mut after = before;
                if self.begins(from, p, to) {
                    after[p] = self.waiting(to) & !(1 << p);
                }
                let enters = self.region(from, p) != Critical && self.region(to, p) == Critical;
                let is_violation = match property {
                    Property::Fcfs => after[p] != 0,
                    Property::KFcfs => after[p].count_ones() as usize >= k,
                    _ => after[p] & kept_out[to as usize] != 0,
                };
                if enters && is_violation {
                    return Some(steps + 1);
                }
                if enters || self.region(from, p).is_entry() && !self.region(to, p).is_entry() {
                    after.iter_mut().for_each(|set| *set &= !(1 << p));
                    after[p] = 0;
                }
                if seen.insert((to, after)) {
                    queue.push_back(((to, after), steps + 1));
                }
            }
        }
        None
    }
}

const PROGRESS: [Property; 3] =
    [Property::StarvationFreedom, Property::DeadlockFreedom, Property::BoundedExit];
const ORDER: [Property; 3] = [Property::Fcfs, Property::KFcfs, Property::Fife];

#[test]
fn passes_find_what_the_definitions_say() {
    let mut random = Random(7);
    let timings = Timings::default();
    // For each property, how often it holds and how often it does not: both cases have to occur.
    let mut seen: HashMap<(Property, bool), usize> = HashMap::new();
    for round in 0..300 {
        let sample = Sample::new(&mut random);
        let graph = sample.graph();
        let depth = |state: u32| sample.depths[state as usize];
        let crashes = round % 3;
        let workers = 1 + round % 2;
        let wanted = Wanted { progress: PROGRESS.to_vec(), kept_out: true, crashes };
        let found = kept::look(&graph, &wanted, &depth, workers, &timings);
        assert_eq!(found.kept_out, sample.kept_out(), "round {round}");
        for property in PROGRESS {
            let lasso = found.lassos.iter().find(|(of, _)| *of == property).map(|(_, lasso)| lasso);
            let begins = lasso.map(|lasso| {
                (lasso.members.iter().map(|&s| depth(s)).min().unwrap_or(0), lasso.crashed)
            });
            assert_eq!(
                begins,
                sample.violation(property, crashes as u32),
                "round {round}: {property}"
            );
            *seen.entry((property, lasso.is_none())).or_default() += 1;
            // The result for the property alone is the same: deadlock freedom is not searched for
            // where no process starves.
            let alone = Wanted { progress: vec![property], kept_out: false, crashes };
            let alone = kept::look(&graph, &alone, &depth, workers, &timings)
                .lassos
                .pop()
                .map(|(_, lasso)| lasso);
            let ranks = [alone.as_ref(), lasso]
                .map(|lasso| lasso.map(|l| (l.crashed, l.victim, l.members.len())));
            assert_eq!(ranks[0], ranks[1], "round {round}: {property}");
        }
        let end_of_level = |level: usize| sample.depths.partition_point(|&depth| depth <= level);
        let order = Order {
            graph: &graph,
            end_of_level: &end_of_level,
            k: 2,
            ordered: 2,
            kept_out: &found.kept_out,
        };
        let overtakings = order.violations(&ORDER, workers, &timings);
        for property in ORDER {
            let found = overtakings.iter().find(|(of, _)| *of == property).map(|(_, found)| found);
            let steps = found.map(|found| depth(found.start) + found.walk.len());
            assert_eq!(
                steps,
                sample.overtaking(property, 2, order.kept_out),
                "round {round}: {property}"
            );
            if let Some(found) = found {
                let least = if property == Property::KFcfs { 2 } else { 1 };
                assert!(found.overtaken.count_ones() >= least, "round {round}: {property}");
                assert!(
                    found.walk.windows(2).all(|pair| pair[0].2 == pair[1].0),
                    "round {round}: {property}"
                );
            }
            *seen.entry((property, found.is_none())).or_default() += 1;
        }
    }
    for property in PROGRESS.into_iter().chain(ORDER) {
        for holds in [true, false] {
            let times = seen.get(&(property, holds)).copied().unwrap_or(0);
            assert!(times >= 15, "{property} holds: {holds}, only {times} times");
        }
    }
}
