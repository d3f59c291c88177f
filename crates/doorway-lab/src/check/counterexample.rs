//! From a violation in the graph to a schedule that anybody can replay. Nothing is shown that has not been run again with
//! true values and without forgetting.

use std::collections::VecDeque;

use doorway_core::{Property, Ticket};
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
    item::Whole,
    machine::{Event, Machine},
    subject::Subject,
    trace::{Run, Trace, TraceStep, Turn},
};

/// The run that a violating step ends.
pub(crate) fn ending_in<const W: usize>(searched: &Searched<'_, '_, W>, found: &Found<W>) -> Vec<(Key<W>, Step<W>)> {
    // The last level is the empty one to come; before it is what was found from the level of the violating step.
    let depth = searched.store.levels.len() - 3;
    let mut trail = searched.trail(found.from, depth);
    let mut expander = Expander::new(searched.space, searched.plan, searched.rules);
    // Of several steps to that state the one with the violation is wanted.
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

/// A run to a fair part of the graph, and once round in it.
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

/// A walk on the graph: who steps, from where to where.
pub(crate) type Walk = Vec<(u32, usize, u32)>;

/// A shortest run to `start`, and the walk from there.
pub(crate) fn following<const W: usize>(
    searched: &Searched<'_, '_, W>,
    numbers: &Numbers,
    start: u32,
    walk: &[(u32, usize, u32)],
) -> Vec<(Key<W>, Step<W>)> {
    let key = |state: u32| searched.store.key(numbers, state);
    let mut trail = searched.trail(key(start), numbers.depth(start));
    let edges: Vec<Edge> = walk.iter().map(|&(from, p, to)| Edge { from, p, to, remote: false }).collect();
    trail.extend(along(searched, numbers, &edges));
    trail
}

/// The steps of a walk on the graph.
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

/// A walk among the members of a lasso, from `start` back to it, with a step of every mover.
pub(crate) fn round(graph: &Graph, lasso: &Lasso, start: u32) -> Walk {
    let members: rustc_hash::FxHashSet<u32> = lasso.members.iter().copied().collect();
    let mut walk = Walk::new();
    let mut at = start;
    let mut missing = lasso.movers;
    while missing != 0 || at != start {
        let wanted = |from: u32, p: usize, to: u32| {
            if missing != 0 { missing >> p & 1 == 1 } else { to == start && from != start }
        };
        // The shortest way to a step that is wanted.
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

/// How far above the others a ticket is that an overlapping read returns from nowhere, in one try after the other. A wide gap
/// may have to be wider than the narrowest wide one, and large numbers are hard to read.
const SPREADS: [u64; 4] = [0, 8, 64, 1024];

/// Runs a trail with true values, uncut; the trace if it shows what it should.
pub(crate) fn concretise<const W: usize>(
    searched: &Searched<'_, '_, W>,
    subject: &dyn Subject,
    trail: &[(Key<W>, Step<W>)],
    property: Property,
    lasso: Option<(&Lasso, usize)>,
) -> Option<Trace> {
    SPREADS.into_iter().find_map(|spread| concretise_with(searched, subject, trail, property, lasso, spread))
}

fn concretise_with<const W: usize>(
    searched: &Searched<'_, '_, W>,
    subject: &dyn Subject,
    trail: &[(Key<W>, Step<W>)],
    property: Property,
    lasso: Option<(&Lasso, usize)>,
    spread: u64,
) -> Option<Trace> {
    let kind = searched.rules.kind;
    let mut trace = Trace::of(subject, kind);
    // The one that forgets tells when a state comes back; the other is the one that is believed.
    let mut cut = Run::new(subject, kind, true).ok()?;
    let mut uncut = Run::new(subject, kind, false).ok()?;
    let mut last_violated = Vec::new();
    let mut turns = Vec::new();
    for (key, step) in trail {
        // The uncut run remembers tickets that the labels know nothing of.
        let turn = turn(searched, &cut.machine, key, step, spread)?;
        turns.push(turn);
        cut.take(turn).ok()?;
        let (event, violated) = uncut.take(turn).ok()?;
        trace.steps.push(TraceStep::new(&event, turn));
        last_violated = violated;
    }
    trace.property = Some(property.name().into());
    match lasso {
        None => {
            let last = trail.last()?.1;
            let shown = match property {
                // Enabledness is a statement about all continuations: the graph is its only witness.
                Property::Fife => last.overtaken != 0,
                Property::FifoEnabling => true,
                _ => last_violated.contains(&property),
            };
            trace.shows = safety_words(subject, property, last.p, last.overtaken);
            shown.then_some(trace)
        }
        Some((lasso, stem)) => {
            trace.loop_from = Some(stem);
            trace.crashed = (0..subject.size().n).filter(|p| lasso.crashed >> p & 1 == 1).collect();
            trace.shows = progress_words(property, lasso.victim, &trace.crashed);
            let spoils = |event: &Event| lasso.steps.forbid(event);
            let repeats = repeats_for_ever(&mut cut, &turns[stem..], searched.rules.gap, spoils)?;
            repeats.then_some(trace)
        }
    }
}

/// How many rounds of a loop are run at least before it is given up.
const ROUNDS: u64 = 1_000;

/// Whether the loop can be run again and again: its state comes back, with every gap between tickets the same or so wide that
/// the rounds since cannot use it up. It is run until that is so, or until something spoils it. Where local states are merged,
/// a round of the graph may lead to another state than it began in, and the state comes back only after several rounds.
pub(crate) fn repeats_for_ever(
    run: &mut Run<'_>,
    turns: &[Turn],
    gap: u32,
    mut spoils: impl FnMut(&Event) -> bool,
) -> Option<bool> {
    // A step brings in one ticket at most, less than `gap` above another. What an overlapping read returned is a true value
    // in the trace and does not move with the tickets: unless it is 0 or ∞, they have to be the same.
    let used = |rounds: u64| u64::from(gap) + rounds * turns.len() as u64 * u64::from(gap - 1);
    let moves = |turn: &Turn| turn.garbage.is_some_and(|word| word != 0 && word != u64::MAX);
    let exact = turns.iter().any(moves);
    let enough = |rounds: u64| if exact { u64::MAX } else { used(rounds) };
    let mut before = vec![Snapshot::of(&run.machine)];
    for _ in 0..=used(1).max(ROUNDS) {
        for turn in turns {
            let (event, _) = run.take(*turn).ok()?;
            if spoils(&event) {
                return Some(false);
            }
        }
        let after = Snapshot::of(&run.machine);
        if before.iter().rev().zip(1..).any(|(before, rounds)| after.continues(before, enough(rounds))) {
            return Some(true);
        }
        // With tickets nothing is merged, so each round of the graph is one of the run.
        let last = before.last().expect("there is a first one");
        if !after.gaps.is_empty() && !after.continues(last, u64::from(gap)) {
            return Some(false);
        }
        before.push(after);
    }
    Some(false)
}

/// A state with its tickets replaced by their ranks, and the gaps between them.
struct Snapshot {
    values: Vec<Whole>,
    locals: Vec<crate::subject::LocalState>,
    gaps: Vec<u64>,
}

impl Snapshot {
    fn of(machine: &Machine<'_>) -> Self {
        let tickets = tickets(machine);
        let rank = |ticket: Ticket| match tickets.binary_search(&ticket) {
            Ok(rank) => Ticket::from_label(rank as u64 + 1),
            Err(_) => ticket, // zero and ∞
        };
        let cells = machine.registers();
        Self {
            values: (0..cells).map(|r| Whole(machine.value(r).relabelled(&mut { rank }))).collect(),
            locals: (0..machine.processes()).map(|p| machine.local(p).relabel(&mut { rank })).collect(),
            gaps: [Ticket::ZERO].iter().chain(&tickets).zip(&tickets).map(|(a, b)| b.label() - a.label()).collect(),
        }
    }

    /// Whether this is the other state up to tickets, with gaps below `wide` the same and the others as wide or wider.
    fn continues(&self, other: &Self, wide: u64) -> bool {
        let gaps = self.gaps.iter().zip(&other.gaps).all(|(now, then)| now == then || (*then >= wide && now >= then));
        self.values == other.values && self.locals == other.locals && self.gaps.len() == other.gaps.len() && gaps
    }
}

/// The tickets that stand anywhere in a run, in order.
fn tickets(machine: &Machine<'_>) -> Vec<Ticket> {
    let mut all = Vec::new();
    let mut note = |ticket: Ticket| {
        if ticket != Ticket::ZERO && ticket != Ticket::INFINITY {
            all.push(ticket);
        }
        ticket
    };
    for r in 0..machine.registers() {
        let _ = machine.value(r).relabelled(&mut note);
    }
    (0..machine.processes()).for_each(|p| machine.local(p).tickets(&mut note));
    all.sort_unstable();
    all.dedup();
    all
}

/// What the step is in the run: the same choice, and true values for what an overlapping read returned.
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
        Some(Garbage::Value(value)) => Some(space.registers[known.register? as usize].value(value).word() as u64),
        Some(Garbage::Position(position)) => {
            let numbers = searched.plan.unpack(key);
            let registers = searched.plan.registers.len();
            let labels = space.labels(&numbers[..registers], &numbers[registers..]);
            Some(true_ticket(&labels, &tickets(machine), position, searched.rules.gap, spread)?.label())
        }
    };
    Some(Turn { process: step.p, choice: known.choice, garbage })
}

/// The ticket that stands to `tickets` as the position does to `labels`.
fn true_ticket(labels: &[u32], tickets: &[Ticket], position: Position, gap: u32, spread: u64) -> Option<Ticket> {
    if labels.len() != tickets.len() {
        return None;
    }
    let shifted =
        |label: u32| if label >= position.split && position.split > 0 { label + position.extra } else { label };
    let at = labels.partition_point(|&label| shifted(label) < position.label);
    let (low, low_true) = if at == 0 { (0, 0) } else { (shifted(labels[at - 1]), tickets[at - 1].label()) };
    let up = u64::from(position.label - low);
    match labels.get(at) {
        _ if position.label == 0 => Some(Ticket::ZERO),
        Some(&high) if shifted(high) == position.label => Some(tickets[at]),
        Some(&high) => {
            let down = u64::from(shifted(high) - position.label);
            let high_true = tickets[at].label();
            let ticket = if down < u64::from(gap) {
                high_true.checked_sub(down)?
            } else if up < u64::from(gap) {
                low_true + up
            } else {
                // Far from both.
                low_true + up.max((high_true - low_true) / 2)
            };
            (low_true < ticket && ticket < high_true).then(|| Ticket::from_label(ticket))
        }
        None if up < u64::from(gap) => Some(Ticket::from_label(low_true + up)),
        None => Some(Ticket::from_label(low_true + up + spread)),
    }
}

fn safety_words(subject: &dyn Subject, property: Property, p: usize, overtaken: u32) -> String {
    let k = subject.size().k;
    let others: Vec<String> = (0..32).filter(|q| overtaken >> q & 1 == 1).map(|q| q.to_string()).collect();
    let others = others.join(", ");
    match property {
        Property::MutualExclusion => "two processes are in the critical section".into(),
        Property::SessionExclusion => "two processes of different sessions are in the critical section".into(),
        Property::KExclusion => format!("{} processes are in the critical section, k is {k}", k + 1),
        Property::BoundedRegisters => "a register holds more than the bound".into(),
        Property::Fcfs | Property::KFcfs => {
            format!("process {p} enters before process {others}, who was through the doorway when {p} began")
        }
        Property::Fife => format!(
            "process {p} has entered before process {others}, who was through the doorway when {p} began \
             and is not enabled"
        ),
        Property::Invariant(name) => {
            let declared = subject.claims().invariants.iter().find(|invariant| invariant.name == name);
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
        Property::BoundedExit => format!("process {victim} never finishes its exit section"),
        Property::ConcurrentEntry | Property::ConcurrentOccupancy => {
            format!("process {victim} keeps waiting, although nobody with another session is active")
        }
        Property::StrongConcurrentEntry => format!(
            "process {victim} keeps waiting, although it was through its doorway before everybody active with another \
             session began"
        ),
        _ => String::new(),
    }
}
