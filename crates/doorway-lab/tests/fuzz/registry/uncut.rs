//! The reference for algorithms of the registry: a naive search in which processes forget nothing.
//!
//! Every move and every step is computed by running the section again on **all** its answers. Such
//! records grow with every wait in vain, so they cannot tell states apart. The records that loops
//! have cut go along for that alone: a state is what the registers hold, the cut records, and the
//! passages, attempts and kills so far. At every step both kinds of records have to lead to the
//! same, and each record that arrives at a known state is tried there, too.

use std::{
    hash::{Hash, Hasher},
    rc::Rc,
};

use doorway_core::{ANY_NUMBER, layout::Erased};
use doorway_lab::{Access, Choice, Fault, LocalState, Move, Region, Stepped, Subject};
use rustc_hash::FxHashMap;

use crate::reference::{Edge, Graph};

/// What a register holds.
#[derive(Clone)]
struct Held(Rc<dyn Erased>);

impl PartialEq for Held {
    fn eq(&self, other: &Self) -> bool {
        self.0.same(&*other.0)
    }
}
impl Eq for Held {}
impl Hash for Held {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash_into(state);
    }
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    registers: Vec<Held>,
    cut: Vec<Rc<LocalState>>,
    /// Passages left, if they are bounded.
    left: Vec<u32>,
    /// Attempts begun beyond the first of the passage, if they are counted.
    retries: Vec<u32>,
    /// Kills so far, if they are counted.
    kills: u32,
}

/// The local states of all processes that forget nothing.
type Uncut = Vec<Rc<LocalState>>;

/// Why there is no graph.
#[derive(Debug)]
pub(crate) enum Stopped {
    /// There are too many states.
    TooMany,
    /// The algorithm cannot be run in the lab.
    Fault(Fault),
    /// A process does something else if its loops forget.
    Differs(String),
}

impl From<Fault> for Stopped {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

struct Explorer<'s> {
    subject: &'s dyn Subject,
    bounded: bool,
    /// How many attempts of a passage are followed, if they are counted.
    retries: Option<u32>,
    /// How many kills there may be, if they are counted.
    kills: Option<u32>,
}

/// One step from a state.
struct Taken {
    p: usize,
    gives_up: bool,
    to: State,
    uncut: Rc<LocalState>,
}

/// Explores the subject; at most so many states.
pub(crate) fn explore(
    subject: &dyn Subject,
    passages: Option<u32>,
    most: usize,
) -> Result<Graph, Stopped> {
    let counted = |most: &u32| *most != ANY_NUMBER;
    let explorer = Explorer {
        subject,
        bounded: passages.is_some(),
        retries: subject.attempts().filter(counted),
        kills: subject.kills().filter(counted),
    };
    let n = subject.size().n;
    let uncut: Uncut = (0..n).map(|p| Rc::new(subject.start(p))).collect();
    let registers = subject.layout().cells().map(|cell| Held(Rc::from(cell.init.copy()))).collect();
    let left = vec![passages.unwrap_or(0); n];
    let start = State { registers, cut: uncut.clone(), left, retries: vec![0; n], kills: 0 };
    let mut states = vec![Rc::new(start)];
    let mut first = vec![uncut];
    let mut ids = FxHashMap::from_iter([(states[0].clone(), 0)]);
    let mut graph = Graph { depth: vec![0], ..Graph::default() };
    while graph.edges.len() < states.len() {
        let from = graph.edges.len();
        let state = states[from].clone();
        let mut edges = Vec::new();
        for p in 0..n {
            for Taken { p, gives_up, to, uncut } in explorer.steps(&state, p, &first[from][p])? {
                let mut arrives = first[from].clone();
                arrives[p] = uncut;
                let id = match ids.get(&to) {
                    Some(&id) => {
                        for q in (0..n).filter(|&q| arrives[q] != first[id][q]) {
                            explorer.moves(&to, q, &arrives[q])?;
                        }
                        id
                    }
                    None => {
                        let to = Rc::new(to);
                        ids.insert(to.clone(), states.len());
                        states.push(to);
                        first.push(arrives);
                        graph.depth.push(graph.depth[from] + 1);
                        states.len() - 1
                    }
                };
                edges.push(Edge { p, to: id, gives_up });
            }
        }
        if states.len() > most {
            return Err(Stopped::TooMany);
        }
        graph.edges.push(edges);
        graph.regions.push(first[from].iter().map(|local| local.region()).collect());
        graph.sessions.push(first[from].iter().map(|local| local.session()).collect());
        graph
            .largest
            .push(state.registers.iter().map(|held| held.0.magnitude()).max().unwrap_or(0));
    }
    Ok(graph)
}

/// All that is to be the same of an access.
fn shown(access: &Access) -> impl PartialEq + std::fmt::Debug + use<> {
    (access.line, access.kind, access.register, access.waits)
}

impl Explorer<'_> {
    /// Whether process `p` may make the move in this state.
    fn is_allowed(&self, state: &State, p: usize, choice: Choice) -> bool {
        let kills = choice != Choice::Kill || self.kills.is_none_or(|most| state.kills < most);
        let passages = choice.request().is_none() || !self.bounded || state.left[p] > 0;
        kills && passages && self.retries.is_none_or(|most| state.retries[p] < most)
    }

    /// What comes of every move of process `p`, with the cut record after it.
    fn moves(
        &self,
        state: &State,
        p: usize,
        uncut: &LocalState,
    ) -> Result<Vec<(Move, Stepped, LocalState)>, Stopped> {
        let cut = &*state.cut[p];
        let mut moves = self.subject.moves(p, uncut, false)?;
        self.compare_moves(p, &moves, &self.subject.moves(p, cut, true)?)?;
        moves.retain(|step| self.is_allowed(state, p, step.choice));
        let make = |step: Move| {
            let register = self.subject.layout().find(step.access.register);
            let held = register.map(|register| &*state.registers[register].0);
            let stepped = self.subject.step(p, uncut, step.choice, held, false)?;
            let forgetful = self.subject.step(p, cut, step.choice, held, true)?;
            self.compare_steps(p, &step, &stepped, &forgetful)?;
            Ok((step, stepped, forgetful.local))
        };
        moves.into_iter().map(make).collect()
    }

    /// Every step of process `p`.
    fn steps(&self, state: &State, p: usize, uncut: &LocalState) -> Result<Vec<Taken>, Stopped> {
        let take = |(step, stepped, cut): (Move, Stepped, LocalState)| {
            let mut to = state.clone();
            let (from, region) = (uncut.region(), stepped.local.region());
            if step.choice == Choice::Kill && self.kills.is_some() {
                to.kills += 1;
                to.left[p] += u32::from(self.bounded);
            }
            to.left[p] -= u32::from(from == Region::Remainder && self.bounded);
            to.retries[p] += u32::from(stepped.retries && self.retries.is_some());
            if region == Region::Critical && from != Region::Critical {
                to.retries[p] = 0;
            }
            to.cut[p] = Rc::new(cut);
            if let (Some(new), Some(register)) =
                (stepped.effect, self.subject.layout().find(step.access.register))
            {
                to.registers[register] = Held(Rc::from(new));
            }
            Taken { p, gives_up: step.choice.gives_up(), to, uncut: Rc::new(stepped.local) }
        };
        Ok(self.moves(state, p, uncut)?.into_iter().map(take).collect())
    }

    fn compare_moves(&self, p: usize, uncut: &[Move], cut: &[Move]) -> Result<(), Stopped> {
        let all = |moves: &[Move]| {
            moves.iter().map(|step| (step.choice, shown(&step.access))).collect::<Vec<_>>()
        };
        let (uncut, cut) = (all(uncut), all(cut));
        if uncut == cut {
            return Ok(());
        }
        Err(Stopped::Differs(format!("process {p} may do {uncut:?}, and if it forgets, {cut:?}")))
    }

    fn compare_steps(
        &self,
        p: usize,
        step: &Move,
        uncut: &Stepped,
        cut: &Stepped,
    ) -> Result<(), Stopped> {
        let place = |stepped: &Stepped| {
            let pending = stepped.pending.as_ref().map(shown);
            (stepped.local.region(), stepped.local.session(), stepped.retries, pending)
        };
        let effects = match (&uncut.effect, &cut.effect) {
            (Some(a), Some(b)) => a.same(&**b),
            (a, b) => a.is_none() && b.is_none(),
        };
        if effects && place(uncut) == place(cut) {
            return Ok(());
        }
        let line = step.access.line;
        let all = |stepped: &Stepped| {
            format!("{:?}, {:?}", place(stepped), stepped.effect.as_ref().map(|new| new.text()))
        };
        let (uncut, cut) = (all(uncut), all(cut));
        Err(Stopped::Differs(format!(
            "line {line} of process {p} leads to {uncut}, and if it forgets, to {cut}"
        )))
    }
}
