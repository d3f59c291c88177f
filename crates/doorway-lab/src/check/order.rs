//! FCFS, k-FCFS and FIFE, on the graph of all reachable states.
//!
//! A process *overtakes* the processes that were through their doorway when it began, and have
//! neither entered nor given up by the time it enters. It violates `fcfs` if it overtakes a process
//! that keeps it out, and `k-fcfs` if it overtakes k of them. It violates `fife` if it overtakes a
//! process that has asked for the same and is not enabled after that.
//!
//! One overtaker and one set of overtaken processes are enough to show a violation, so the search
//! looks for pairs of them. A [`Claim`] goes from state to state along every step, until a process
//! of its set enters or gives up. Many claims on one overtaker travel together, each a bit. Claims
//! on different overtakers are independent. The search leaves states in the order of the number of
//! steps to them with the claim, so that it finds shortest runs.

use doorway_core::Property;
use rustc_hash::FxHashMap;

use super::{
    counterexample::Walk,
    enabling::Tree,
    graph::{Graph, MOST_AT_ONCE},
    parallel,
    timings::Timings,
};
use crate::subject::Region;

/// The processes of a set have been through their doorway since before the overtaker began, and
/// have not entered.
#[derive(Clone, Copy, Debug)]
struct Claim {
    property: Property,
    overtaken: u16,
}

/// The number of claims that travel together: one bit for each.
const TOGETHER: usize = 32;

/// A shortest run in which a process overtakes other processes.
#[derive(Debug)]
pub(super) struct Overtaking {
    /// The state in which the overtaker begins.
    pub(super) start: u32,
    /// The walk from there to the state in which the overtaker has entered.
    pub(super) walk: Walk,
    /// All processes that it overtakes, as bits.
    pub(super) overtaken: u32,
}

/// The parameters of the search.
pub(super) struct Order<'a> {
    pub(super) graph: &'a Graph,
    /// The number of the first state that is more than this many steps away from the start.
    pub(super) end_of_level: &'a (dyn Fn(usize) -> usize + Sync),
    pub(super) k: usize,
    /// How many processes have to be overtaken to violate `ordered-entry`.
    pub(super) ordered: usize,
    /// For every state, the processes that are not enabled to enter; only needed for `fife`.
    pub(super) kept_out: &'a [u16],
}

/// The state in which a claim ends in a violation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Violation {
    steps: usize,
    overtaker: usize,
    from: u32,
    to: u32,
    overtaken: u16,
}

impl Order<'_> {
    /// Returns a shortest violation of each violated property.
    pub(super) fn violations(
        &self,
        properties: &[Property],
        workers: usize,
        timings: &Timings,
    ) -> Vec<(Property, Overtaking)> {
        let mut passes: Vec<(usize, Vec<Claim>)> = Vec::new();
        for overtaker in 0..self.graph.n {
            let claims: Vec<Claim> =
                properties.iter().flat_map(|&property| self.claims(property, overtaker)).collect();
            passes.extend(claims.chunks(TOGETHER).map(|claims| (overtaker, claims.to_vec())));
        }
        let found = parallel::each(passes.len(), workers.min(MOST_AT_ONCE), |i| {
            let (overtaker, claims) = &passes[i];
            timings.stage(format!("process {overtaker} overtakes"), || {
                self.pass(*overtaker, claims, None)
            })
        });
        let shortest = |property: Property| {
            let all = found.iter().flatten().filter(|(of, _)| *of == property);
            all.map(|(_, violation)| *violation).min()
        };
        let violated =
            properties.iter().filter_map(|&property| Some((property, shortest(property)?)));
        violated
            .map(|(property, violation)| (property, self.retrace(property, violation)))
            .collect()
    }

    /// Returns the claims of a property. If one of them holds when the overtaker enters, the
    /// property is violated.
    fn claims(&self, property: Property, overtaker: usize) -> Vec<Claim> {
        let size = match property {
            Property::KFcfs => self.k,
            Property::OrderedEntry => self.ordered,
            _ => 1,
        };
        (0..1u32 << self.graph.n)
            .filter(|set| set.count_ones() as usize == size && set >> overtaker & 1 == 0)
            .map(|set| Claim { property, overtaken: set as u16 })
            .collect()
    }

    /// Follows the claims on one overtaker to all states. Returns one shortest violation for each
    /// property that they violate. `tree` gets the way to each state, and where a way begins; it is
    /// used with a single claim.
    fn pass(
        &self,
        overtaker: usize,
        claims: &[Claim],
        mut tree: Option<(&mut Tree, &mut FxHashMap<u32, u32>)>,
    ) -> Vec<(Property, Violation)> {
        let graph = self.graph;
        let bits = |wanted: &dyn Fn(&Claim) -> bool| {
            (0..)
                .zip(claims)
                .filter(|(_, claim)| wanted(claim))
                .fold(0u32, |set, (i, _)| set | 1 << i)
        };
        // The claims that remain when a process enters or gives up.
        let without: Vec<u32> =
            (0..graph.n).map(|p| bits(&|claim| claim.overtaken >> p & 1 == 0)).collect();
        let mut found: Vec<(Property, Violation)> = Vec::new();
        let mut held = vec![0u32; graph.states()];
        let mut now: Vec<(u32, u32)> = Vec::new();
        let mut next: Vec<(u32, u32)> = Vec::new();
        let mut beginnings =
            graph.beginnings.iter().filter(|begins| usize::from(begins.p) == overtaker).peekable();
        // Claims whose property has its shortest violation already are dropped.
        let mut open = bits(&|_| true);
        let mut steps = 0;
        while open != 0 && (!now.is_empty() || beginnings.peek().is_some()) {
            steps += 1;
            let mut shortest: Vec<(Property, Violation)> = Vec::new();
            let mut enter = |from: u32, to: u32, claimed: u32| {
                for (_, claim) in (0..).zip(claims).filter(|(i, _)| claimed >> i & 1 == 1) {
                    if self.is_violation(claim, to) {
                        let new =
                            Violation { steps, overtaker, from, to, overtaken: claim.overtaken };
                        match shortest.iter_mut().find(|(property, _)| *property == claim.property)
                        {
                            Some((_, old)) => *old = new.min(*old),
                            None => shortest.push((claim.property, new)),
                        }
                    }
                }
            };
            let end = (self.end_of_level)(steps - 1);
            while let Some(begins) = beginnings.next_if(|begins| (begins.from as usize) < end) {
                let new = open & bits_in(claims, begins.conflicting, begins.alike);
                if graph.region(begins.to, overtaker) == Region::Critical {
                    enter(begins.from, begins.to, new);
                    continue;
                }
                let new = new & !held[begins.to as usize];
                if new != 0 {
                    held[begins.to as usize] |= new;
                    next.push((begins.to, new));
                    if let Some((tree, roots)) = &mut tree {
                        tree.plant(begins.to);
                        roots.insert(begins.to, begins.from);
                    }
                }
            }
            for &(from, claimed) in &now {
                for (p, to) in graph.steps(from) {
                    let mut new = claimed & open;
                    if graph.region(from, p).is_entry() {
                        let region = graph.region(to, p);
                        if !region.is_entry() {
                            if p == overtaker {
                                if region == Region::Critical {
                                    enter(from, to, new);
                                }
                                continue;
                            }
                            new &= without[p];
                        }
                    }
                    let new = new & !held[to as usize];
                    if new != 0 {
                        held[to as usize] |= new;
                        next.push((to, new));
                        if let Some((tree, _)) = &mut tree {
                            tree.grow(from, p, to);
                        }
                    }
                }
            }
            for (property, _) in &shortest {
                open &= !bits(&|claim| claim.property == *property);
            }
            found.extend(shortest);
            now.clear();
            std::mem::swap(&mut now, &mut next);
        }
        found
    }

    /// Returns whether the claim on a process that has just entered is a violation.
    fn is_violation(&self, claim: &Claim, state: u32) -> bool {
        claim.property != Property::Fife || self.kept_out[state as usize] & claim.overtaken != 0
    }

    /// Returns the run to a violation, found again by following its claim alone.
    fn retrace(&self, property: Property, violation: Violation) -> Overtaking {
        let mut tree = Tree::new(self.graph);
        let mut roots = FxHashMap::default();
        let Violation { overtaker, overtaken, from, to, .. } = violation;
        self.pass(overtaker, &[Claim { property, overtaken }], Some((&mut tree, &mut roots)));
        // Without a way, the overtaker enters with the step with which it begins its passage.
        let mut walk = Walk::new();
        if tree.holds(from) {
            walk = tree.walk(from);
            let root = walk.first().map_or(from, |&(root, _, _)| root);
            walk.insert(0, (roots[&root], overtaker, root));
        }
        walk.push((from, overtaker, to));
        let start = walk[0].0;
        Overtaking { start, overtaken: self.overtaken(property, &walk), walk }
    }

    /// Returns all processes that are overtaken on a way from where a process begins to where it
    /// enters.
    fn overtaken(&self, property: Property, walk: &Walk) -> u32 {
        let (start, overtaker, next) = walk[0];
        let is_first = |begins: &&super::graph::Beginning| {
            begins.from == start && begins.to == next && usize::from(begins.p) == overtaker
        };
        let begins =
            self.graph.beginnings.iter().find(is_first).expect("the way begins with one of them");
        let mut set = if property == Property::Fife { begins.alike } else { begins.conflicting };
        for &(from, p, to) in walk {
            if self.graph.region(from, p).is_entry() && !self.graph.region(to, p).is_entry() {
                set &= !(1 << p);
            }
        }
        u32::from(set)
    }
}

/// Returns the claims that begin with a passage.
fn bits_in(claims: &[Claim], conflicting: u16, alike: u16) -> u32 {
    let holds = |claim: &Claim| {
        let before = if claim.property == Property::Fife { alike } else { conflicting };
        claim.overtaken & !before == 0
    };
    (0..).zip(claims).filter(|(_, claim)| holds(claim)).fold(0, |set, (i, _)| set | 1 << i)
}
