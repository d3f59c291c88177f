//! Turns a violation in the graph into a schedule that can be replayed. A trace is made only of a
//! run that has been made again with true values and without forgetting. That run must violate the
//! property by the property's own definition.

use std::collections::VecDeque;

use doorway_core::{Property, Ticket, raw};
use rustc_hash::FxHashMap;

use super::{
    expand::{Expander, Garbage, Step, event},
    explore::Found,
    graph::{Edge, Graph},
    pack::Key,
    progress::Lasso,
    relabel::Position,
    search::Searched,
    store::Numbers,
};
use crate::{
    judge::{Judge, tickets},
    machine::Machine,
    subject::Subject,
    trace::{Trace, TraceStep, Turn},
};

/// Returns the run that a violating step ends.
pub(crate) fn ending_in<const W: usize>(
    searched: &Searched<'_, '_, W>,
    found: &Found<W>,
) -> Vec<(Key<W>, Step<W>)> {
    // The last level is the empty level to come. The level before it was found from the level of
    // the violating step.
    let depth = searched.store.levels.len() - 3;
    let mut trail = searched.trail(found.from, depth);
    let mut expander = Expander::new(searched.space, searched.plan, searched.rules);
    // Of several steps to that state, the step with the violation is wanted.
    let mut last = None;
    let expanded = expander.expand(&found.from, |step: Step<W>| {
        if last.is_none() && step.key == found.to && step.events == found.events {
            last = Some(step);
        }
    });
    expanded.expect("everything has been learned");
    trail.push((found.from, last.expect("the violating step is there")));
    trail
}

/// Returns a run to a fair part of the graph, and one round in it.
pub(crate) fn going_round<const W: usize>(
    searched: &Searched<'_, '_, W>,
    graph: &Graph,
    numbers: &Numbers,
    lasso: &Lasso,
) -> (Vec<(Key<W>, Step<W>)>, usize) {
    // States are numbered by how many steps they are away from the start.
    let start = lasso.members.iter().copied().min().expect("a component has a member");
    (following(searched, numbers, start, &round(graph, lasso, start)), numbers.depth(start))
}

/// A walk on the graph: for each step the first state, the process, and the second state.
pub(crate) type Walk = Vec<(u32, usize, u32)>;

/// Returns a shortest run to `start`, followed by the walk from there.
pub(crate) fn following<const W: usize>(
    searched: &Searched<'_, '_, W>,
    numbers: &Numbers,
    start: u32,
    walk: &[(u32, usize, u32)],
) -> Vec<(Key<W>, Step<W>)> {
    let key = |state: u32| searched.store.key(numbers, state);
    let mut trail = searched.trail(key(start), numbers.depth(start));
    let edges: Vec<Edge> =
        walk.iter().map(|&(from, p, to)| Edge { from, p, to, remote: false }).collect();
    trail.extend(along(searched, numbers, &edges));
    trail
}

/// Returns the steps of a walk on the graph.
pub(crate) fn along<const W: usize>(
    searched: &Searched<'_, '_, W>,
    numbers: &Numbers,
    walk: &[Edge],
) -> Vec<(Key<W>, Step<W>)> {
    let key = |state: u32| searched.store.key(numbers, state);
    let mut expander = Expander::new(searched.space, searched.plan, searched.rules);
    let step = |edge: &Edge| {
        let (from, to) = (key(edge.from), key(edge.to));
        let mut found = None;
        let expanded = expander.expand(&from, |step: Step<W>| {
            let remote = step.events & event::REMOTE != 0;
            if found.is_none() && step.p == edge.p && step.key == to && remote == edge.remote {
                found = Some(step);
            }
        });
        expanded.expect("everything has been learned");
        (from, found.expect("the graph has this step"))
    };
    walk.iter().map(step).collect()
}

/// Returns a walk among the members of a lasso, from `start` back to it, with a step of every
/// mover.
pub(crate) fn round(graph: &Graph, lasso: &Lasso, start: u32) -> Walk {
    let members: rustc_hash::FxHashSet<u32> = lasso.members.iter().copied().collect();
    let mut walk = Walk::new();
    let mut at = start;
    let mut missing = lasso.movers;
    while missing != 0 || at != start {
        let wanted = |from: u32, p: usize, to: u32| {
            if missing != 0 { missing >> p & 1 == 1 } else { to == start && from != start }
        };
        // The shortest way to a wanted step.
        let mut came: FxHashMap<u32, (u32, usize)> = FxHashMap::default();
        let mut queue = VecDeque::from([at]);
        let mut last = None;
        'search: while let Some(from) = queue.pop_front() {
            for (p, to) in graph.steps(from) {
                if !members.contains(&to) || !lasso.steps.allows(graph, from, p, to) {
                    continue;
                }
                if wanted(from, p, to) {
                    last = Some((from, p, to));
                    break 'search;
                }
                if to != at && !came.contains_key(&to) {
                    came.insert(to, (from, p));
                    queue.push_back(to);
                }
            }
        }
        let last = last.expect("a component is strongly connected");
        let mut way = vec![last];
        while way[0].0 != at {
            let to = way[0].0;
            let (from, p) = came[&to];
            way.insert(0, (from, p, to));
        }
        way.iter().for_each(|(_, p, _)| missing &= !(1 << p));
        at = last.2;
        walk.extend(way);
    }
    walk
}

/// The distances above the other tickets of a ticket that an overlapping read returns from nowhere,
/// one per try. A wide gap may have to be wider than the narrowest wide gap, and large numbers are
/// hard to read.
const SPREADS: [u64; 4] = [0, 8, 64, 1024];

/// Runs a trail with true values, uncut; returns the trace if it shows the violation.
pub(crate) fn concretise<const W: usize>(
    searched: &Searched<'_, '_, W>,
    subject: &dyn Subject,
    trail: &[(Key<W>, Step<W>)],
    property: Property,
    lasso: Option<(&Lasso, usize)>,
) -> Option<Trace> {
    SPREADS
        .into_iter()
        .find_map(|spread| concretise_with(searched, subject, trail, property, lasso, spread))
}

fn concretise_with<const W: usize>(
    searched: &Searched<'_, '_, W>,
    subject: &dyn Subject,
    trail: &[(Key<W>, Step<W>)],
    property: Property,
    lasso: Option<(&Lasso, usize)>,
    spread: u64,
) -> Option<Trace> {
    let mut trace = Trace::of(subject, searched.rules.kind);
    let mut judge = Judge::new(subject, searched.rules.kind).ok()?;
    for (key, step) in trail {
        // The uncut run remembers tickets that the labels do not cover.
        let turn = turn(searched, judge.forgetful(), key, step, spread)?;
        let (event, _) = judge.take(turn).ok()?;
        trace.steps.push(TraceStep::new(&event, turn));
    }
    trace.property = Some(property.name().into());
    let shown = match lasso {
        None => {
            let last = trail.last()?.1;
            trace.shows = safety_words(subject, property, last.p, last.overtaken);
            judge.shows(property, None, &[])
        }
        Some((lasso, stem)) => {
            trace.loop_from = Some(stem);
            trace.crashed = (0..subject.size().n).filter(|p| lasso.crashed >> p & 1 == 1).collect();
            trace.shows = progress_words(property, lasso.victim, &trace.crashed);
            match lasso.steps.avoided() {
                Some((p, region)) => judge.avoids(stem, p, region),
                None => judge.shows(property, Some(stem), &trace.crashed),
            }
        }
    };
    shown.then_some(trace)
}

/// Returns the turn of a step in the run: the same choice, and true values for what an overlapping
/// read returned.
pub(crate) fn turn<const W: usize>(
    searched: &Searched<'_, '_, W>,
    machine: &Machine<'_>,
    key: &Key<W>,
    step: &Step<W>,
    spread: u64,
) -> Option<Turn> {
    let space = searched.space.lock().ok()?;
    let local = searched.plan.locals[step.p].get(key);
    let known = space.known(step.p, local).moves[step.index as usize];
    let garbage = match step.garbage {
        None => None,
        Some(Garbage::Value(value)) => {
            Some(space.registers[known.register? as usize].value(value).word() as u64)
        }
        Some(Garbage::Position(position)) => {
            let numbers = searched.plan.unpack(key);
            let registers = searched.plan.registers.len();
            let labels = space.labels(&numbers[..registers], &numbers[registers..]);
            Some(raw::number(true_ticket(
                &labels,
                &tickets(machine),
                position,
                searched.rules.gap,
                spread,
            )?))
        }
    };
    Some(Turn { process: step.p, choice: known.choice, garbage })
}

/// Returns the ticket whose position among `tickets` is that of `position` among `labels`.
fn true_ticket(
    labels: &[u32],
    tickets: &[Ticket],
    position: Position,
    gap: u32,
    spread: u64,
) -> Option<Ticket> {
    if labels.len() != tickets.len() {
        return None;
    }
    let shifted = |label: u32| {
        if label >= position.split && position.split > 0 { label + position.extra } else { label }
    };
    let at = labels.partition_point(|&label| shifted(label) < position.label);
    let (low, low_true) =
        if at == 0 { (0, 0) } else { (shifted(labels[at - 1]), raw::number(tickets[at - 1])) };
    let up = u64::from(position.label - low);
    match labels.get(at) {
        _ if position.label == 0 => Some(Ticket::ZERO),
        Some(&high) if shifted(high) == position.label => Some(tickets[at]),
        Some(&high) => {
            let down = u64::from(shifted(high) - position.label);
            let high_true = raw::number(tickets[at]);
            let ticket = if down < u64::from(gap) {
                high_true.checked_sub(down)?
            } else if up < u64::from(gap) {
                low_true + up
            } else {
                // Far from both tickets.
                low_true + up.max((high_true - low_true) / 2)
            };
            (low_true < ticket && ticket < high_true).then(|| raw::ticket(ticket))
        }
        None if up < u64::from(gap) => Some(raw::ticket(low_true + up)),
        None => Some(raw::ticket(low_true + up + spread)),
    }
}

fn safety_words(subject: &dyn Subject, property: Property, p: usize, overtaken: u32) -> String {
    let k = subject.size().k;
    let others: Vec<String> =
        (0..32).filter(|q| overtaken >> q & 1 == 1).map(|q| q.to_string()).collect();
    let others = others.join(", ");
    match property {
        Property::MutualExclusion => "two processes are in the critical section".into(),
        Property::SessionExclusion => {
            "two processes of different sessions are in the critical section".into()
        }
        Property::KExclusion => {
            format!("{} processes are in the critical section, k is {k}", k + 1)
        }
        Property::BoundedRegisters => "a register holds more than the bound".into(),
        Property::Fcfs | Property::KFcfs | Property::OrderedEntry => {
            format!(
                "process {p} enters before process {others}, who was through the doorway when {p} began"
            )
        }
        Property::Fife => format!(
            "process {p} has entered before process {others}, who was through the doorway when {p} began \
             and is not enabled"
        ),
        Property::Invariant(name) => {
            let declared =
                subject.claims().invariants.iter().find(|invariant| invariant.name == name);
            declared.map_or(String::new(), |invariant| format!("this breaks: {}", invariant.says))
        }
        _ => String::new(),
    }
}

fn progress_words(property: Property, victim: usize, crashed: &[usize]) -> String {
    let crashed = match crashed {
        [] => String::new(),
        crashed => format!(" after {crashed:?} crashed"),
    };
    match property {
        Property::StarvationFreedom => format!("process {victim} waits for ever{crashed}"),
        Property::DeadlockFreedom => format!("nobody enters any more{crashed}"),
        Property::BoundedDoorway => format!("process {victim} never finishes its doorway"),
        Property::BoundedExit => format!("process {victim} never finishes its exit section"),
        Property::ConcurrentEntry | Property::ConcurrentOccupancy => {
            format!(
                "process {victim} keeps waiting, although nobody with another session is active"
            )
        }
        Property::StrongConcurrentEntry => format!(
            "process {victim} keeps waiting, although it was through its doorway before everybody active with another \
             session began"
        ),
        _ => String::new(),
    }
}
