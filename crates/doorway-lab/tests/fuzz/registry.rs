//! Cases of the registry: an algorithm, mostly with one line tampered with, at a small size.

mod uncut;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Mutex,
};

use doorway_core::{ANY_NUMBER, RegisterKind, Size};
use doorway_lab::{Entrant, Options, Random, Subject, machine::Machine};

use self::uncut::{Stopped, explore};
use crate::{
    agree::{Comparison, Failure, GROUP, OTHERS, Outcome, Refusal, SAFETY, Verdicts, failure, run},
    decide::{Terms, decide},
    drive::quietly,
    reference::Graph,
};

/// Algorithms with tens of thousands of states where two processes make one passage each.
const VAST: [&str; 3] = ["randomized", "randomized-bounded", "randomized-starvation-free"];
/// Algorithms whose processes can be killed.
const KILLED: [&str; 2] = ["named-lock", "named-group-lock"];

/// An algorithm and how it is run.
#[derive(Clone)]
pub(crate) struct Case {
    entrant: &'static Entrant,
    mutant: Option<&'static str>,
    size: Size,
    /// Processes may give up their waits.
    abandons: bool,
    kills: Option<u32>,
    /// `None` for any number, if there are not too many states then; else for so many that there
    /// are not.
    passages: Option<u32>,
    crashes: usize,
    workers: usize,
    /// How many states the reference explores at most.
    states: usize,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entrant, mutant, size, abandons, kills, passages, crashes, workers, .. } = self;
        let variant = entrant.variant.map_or(String::new(), |variant| format!(" ({variant})"));
        write!(f, "{}{variant}, {}: {size}, ", entrant.name, mutant.unwrap_or("no mutant"))?;
        write!(
            f,
            "passages {passages:?}, abandons {abandons}, kills {kills:?}, crashes {crashes}, workers {workers}"
        )
    }
}

/// What the reference says of a case.
type Explored = Result<Result<Graph, Stopped>, String>;

impl Case {
    /// The case of this number.
    pub(crate) fn random(seed: u64, number: u64) -> Self {
        let mut random = Random::new(seed ^ 0x7e61_5712, number + 1);
        let mut below = |bound: usize| random.below(bound as u64) as usize;
        // One in 128 cases takes seconds.
        let is_large = number % 128 == 127;
        let entrant = loop {
            let entrant = &Entrant::all()[below(Entrant::all().len())];
            if is_large || !VAST.contains(&entrant.name) {
                break entrant;
            }
        };
        let mutants = entrant.claims.mutants;
        let n = match below(8) {
            0 => 3,
            // Where processes can be killed, there are too many states with two.
            1 => 1,
            _ if KILLED.contains(&entrant.name) && !is_large => 1,
            _ => 2,
        };
        let n = n.max(entrant.claims.min_n);
        let size = entrant.claims.problem.size(n, 1 + below(n), [1, 2, 2, 2, 3][below(5)]);
        let lines = lines(entrant, entrant.claims.problem.size(n, 1, 2));
        let mutant = match below(8) {
            0 => None,
            1 | 2 if !mutants.is_empty() => Some(mutants[below(mutants.len())].name),
            choice => {
                let what = if choice < 6 { "writes-nothing" } else { "asks-the-opposite" };
                Some(lasting(format!("line-{}-{what}", lines[below(lines.len())])))
            }
        };
        let passages = if n == 3 { Some(1) } else { [None, Some(1), Some(2), Some(3)][below(4)] };
        let abandons = entrant.claims.abandons && below(2) == 0;
        let kills = [None, None, Some(1), Some(2), Some(ANY_NUMBER)][below(5)];
        let (crashes, workers) = (below(2), if below(16) == 0 { 2 } else { 1 });
        let states = match n {
            _ if is_large => 40_000,
            3 => 8_000,
            _ => 2_500,
        };
        let mut case =
            Self { entrant, mutant, size, abandons, kills, passages, crashes, workers, states };
        let subject = case.subject();
        case.kills = subject.kills();
        if has_tickets(&*subject) {
            // There would be no end of states.
            case.passages = passages.or(Some(3));
        }
        case
    }

    /// An instance to run in the lab.
    fn subject(&self) -> Box<dyn Subject> {
        let built = self.entrant.build(self.size, self.mutant, self.abandons);
        let mut subject = built.unwrap_or_else(|unfit| panic!("{self}: {unfit}"));
        if let Some(most) = self.kills {
            subject.let_kill(most);
        }
        subject
    }

    /// Compares checker and reference, on a smaller case if there are too many states.
    pub(crate) fn compare(&self, verdicts: &mut Verdicts) -> Result<Outcome, Failure> {
        let mut case = self.clone();
        loop {
            let subject = case.subject();
            let explored = quietly(|| explore(&*subject, case.passages, case.states));
            let Ok(Err(Stopped::TooMany)) = explored else {
                return case.compare_with(&*subject, explored, verdicts);
            };
            let Size { n, k, sessions } = case.size;
            match case.passages {
                None => case.passages = Some(2),
                Some(2..) => case.passages = Some(1),
                _ if n > 2 => case.size = self.entrant.claims.problem.size(2, k.min(2), sessions),
                _ if case.kills.is_some() => case.kills = None,
                _ if case.abandons => case.abandons = false,
                _ => return Ok(Outcome::TooMany),
            }
        }
    }

    fn options(&self) -> Options {
        Options {
            passages: self.passages,
            crashes: self.crashes,
            max_states: 100_000,
            workers: self.workers,
            relabel: Some(false),
            minimise: false,
            rehearse: false,
            ..Options::default()
        }
    }

    fn compare_with(
        &self,
        subject: &dyn Subject,
        explored: Explored,
        verdicts: &mut Verdicts,
    ) -> Result<Outcome, Failure> {
        let problem = self.entrant.claims.problem;
        let asked = OTHERS.into_iter().chain(GROUP).filter(|property| property.suits(problem));
        let graph = match explored {
            Ok(Ok(graph)) => graph,
            Ok(Err(Stopped::Differs(how))) => {
                return Err(failure("cut and uncut runs differ", how));
            }
            // It must not be decided if it cannot be run.
            refused => {
                let why = match refused {
                    Ok(Err(Stopped::Fault(fault))) => fault.to_string(),
                    Err(words) => words,
                    Ok(_) => unreachable!("it is refused"),
                };
                return match run(
                    subject,
                    &Options { properties: asked.collect(), rehearse: true, ..self.options() },
                ) {
                    Err(_) => Ok(Outcome::Refused),
                    Ok(report) => {
                        Err(failure("not refused", format!("{why}: {} states", report.states)))
                    }
                };
            }
        };
        let bound = self.entrant.claims.bound.map_or(u64::MAX, |bound| bound(self.size));
        let terms = Terms { n: self.size.n, k: self.size.k, bound, crashes: self.crashes };
        let all = SAFETY.into_iter().filter(|property| property.suits(problem)).chain(asked);
        let decided = all.map(|property| (property, decide(&graph, property, terms))).collect();
        let (graph, options) = (&graph, self.options());
        let mut comparison =
            Comparison { subject, options, graph, decided, verdicts, failures: Vec::new() };
        let outcome = comparison.exactly(|_| self.may_refuse())?;
        if self.passages.is_some() && outcome == Outcome::Same {
            // A mutant may do with tickets what the relabelling does not allow, and run into
            // anything after that.
            let must_run = |_: &Refusal| self.mutant.is_none();
            comparison.relabelled(|_| false, must_run)?;
        }
        Ok(outcome)
    }

    /// Whether the lab is right to refuse what the reference runs: it may look beyond the bounds on
    /// passages and kills, and a mutant may fail there.
    fn may_refuse(&self) -> bool {
        let more = Self { kills: self.kills.map(|_| ANY_NUMBER), ..self.clone() };
        let beyond = quietly(|| explore(&*more.subject(), None, 50_000));
        matches!(beyond, Err(_) | Ok(Err(Stopped::Fault(_))))
    }

    /// Makes a failing case smaller, as long as it fails.
    pub(crate) fn shrink(self, fails: &dyn Fn(&Self) -> bool) -> Self {
        let mut case = self;
        loop {
            match case.simpler().into_iter().find(|simpler| fails(simpler)) {
                Some(simpler) => case = simpler,
                None => return case,
            }
        }
    }

    /// Every case with one thing made simpler.
    fn simpler(&self) -> Vec<Self> {
        let mut all = Vec::new();
        let mut propose = |change: &dyn Fn(&mut Self)| {
            let mut case = self.clone();
            change(&mut case);
            if case.to_string() != self.to_string() {
                all.push(case);
            }
        };
        let problem = self.entrant.claims.problem;
        let Size { n, k, sessions } = self.size;
        propose(&|case| case.mutant = None);
        propose(&|case| case.size = problem.size(n.min(2), k.min(2), sessions));
        propose(&|case| case.size = problem.size(n, 1, 1));
        propose(&|case| case.size = problem.size(n, k, sessions.min(2)));
        propose(&|case| case.kills = None);
        propose(&|case| case.kills = case.kills.map(|_| 1));
        propose(&|case| case.abandons = false);
        propose(&|case| case.crashes = 0);
        propose(&|case| case.workers = 1);
        propose(&|case| case.passages = Some(1));
        propose(&|case| {
            case.passages = case.passages.map_or(Some(3), |passages| Some((passages - 1).max(1)))
        });
        all
    }
}

/// Whether a register holds a ticket at the start.
fn has_tickets(subject: &dyn Subject) -> bool {
    let mut found = false;
    for cell in subject.layout().cells() {
        let _ = cell.init.relabelled(&mut |ticket| {
            found = true;
            ticket
        });
    }
    found
}

/// The lines at which an algorithm makes accesses, as random runs show them.
fn lines(entrant: &'static Entrant, size: Size) -> Vec<u32> {
    static KNOWN: Mutex<BTreeMap<String, Vec<u32>>> = Mutex::new(BTreeMap::new());
    let name = format!("{} {:?} {size}", entrant.name, entrant.variant);
    if let Some(lines) = KNOWN.lock().expect("no thread panics").get(&name) {
        return lines.clone();
    }
    let mut subject =
        entrant.build(size, None, true).unwrap_or_else(|unfit| panic!("{name}: {unfit}"));
    subject.let_kill(ANY_NUMBER);
    let mut lines = BTreeSet::new();
    for run in 0..20 {
        let mut random = Random::new(run, 0);
        let mut machine = Machine::new(&*subject, RegisterKind::Atomic, true)
            .expect("the algorithm can be run")
            .silent();
        for _ in 0..200 {
            let p = random.below(size.n as u64) as usize;
            let moves = machine.moves(p);
            // Mostly the first, or no passage would come to its end.
            let other =
                if random.below(8) == 0 { random.below(moves.len() as u64) as usize } else { 0 };
            let step = moves[other];
            lines.insert(step.access.line);
            machine.step(p, step.choice, None).expect("the algorithm can be run");
        }
    }
    let lines: Vec<u32> = lines.into_iter().collect();
    KNOWN.lock().expect("no thread panics").insert(name, lines.clone());
    lines
}

/// The same name, for as long as the program runs.
fn lasting(name: String) -> &'static str {
    static KNOWN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut known = KNOWN.lock().expect("no thread panics");
    if let Some(known) = known.get(&*name) {
        return known;
    }
    let name: &'static str = name.leak();
    known.insert(name);
    name
}
