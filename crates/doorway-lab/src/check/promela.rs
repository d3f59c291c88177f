//! Writes the learned automata in Promela, the language of SPIN, so that another model checker can
//! explore them.
//!
//! The model has the same states as the search: the numbers of the registers' values, the numbers
//! of the local states, and what is counted. Each move of a local state is one `d_step`, which is
//! one transition to SPIN. So SPIN stores as many states as the search has found, if both are
//! right. A value that the search has never met in a local state leads to `assert(false)`: a
//! transition that the search has missed is an error of the model.
//!
//! What SPIN checks is what the search does with the automata (the successors of a state, packing,
//! storing, counting, exclusion), not whether they were learned rightly.

use std::{fmt::Write, iter, sync::Mutex};

use doorway_core::{Problem, RegisterKind, Session};

use super::{
    Options, Progress, attempts,
    expand::Rules,
    explore::End,
    kills,
    minimise::Merging,
    rehearse::rehearse,
    room::Room,
    rules,
    search::{Search, Searched, Then},
    space::{Known, KnownMove, Outcome, Space},
};
use crate::{
    fault::Fault,
    subject::{Choice, Region, Subject},
};

/// The reason why there is no model.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unmodelled {
    /// The registers are not atomic.
    #[error("{0} registers: a Promela model has atomic registers only")]
    Registers(RegisterKind),
    /// Tickets would be relabelled.
    #[error(
        "tickets would be relabelled, which a Promela model cannot do: bound the passages, and the attempts"
    )]
    Relabelled,
    /// The search did not find all states.
    #[error("the search ended after {0} states, before it had found all of them")]
    Incomplete(u64),
    /// The algorithm cannot be run in the lab.
    #[error("{0}")]
    Fault(Fault),
}

impl From<Fault> for Unmodelled {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Explores a subject and returns a Promela model of its learned automata.
///
/// The search is that of [`check`](crate::check()) with no properties. SPIN stores as many states
/// as it finds, and violates the model's assertion if exclusion is violated.
///
/// # Errors
/// When registers are not atomic, tickets would be relabelled, the search is not complete, or the
/// algorithm cannot be run in the lab.
///
/// ```
/// use doorway_core::Size;
/// use doorway_lab::{Entrant, Options, Progress, Unmodelled, promela};
///
/// let bakery = Entrant::named("bakery").unwrap().build(Size::mutex(2), None, false)?;
/// let model = |passages| promela(&*bakery, &Options { passages, ..Options::default() }, &Progress::default());
/// assert!(model(Some(2)).unwrap().contains("531 states"));
/// assert_eq!(model(None), Err(Unmodelled::Relabelled));
/// # Ok::<(), doorway_core::Unfit>(())
/// ```
pub fn promela(
    subject: &dyn Subject,
    options: &Options,
    progress: &Progress,
) -> Result<String, Unmodelled> {
    if options.registers != RegisterKind::Atomic {
        return Err(Unmodelled::Registers(options.registers));
    }
    let rules = rules(subject, options);
    if rules.relabel {
        return Err(Unmodelled::Relabelled);
    }
    rehearse(subject, options.registers)?;
    let merging =
        options.minimise.then(|| Merging::of(subject, options.registers, rules.bound)).flatten();
    let model = |merging| model(subject, options, rules, merging, progress);
    // As in a check: a fault with merged local states may be that of another state, or none at all.
    match merging.map(|merging| model(Some(merging))) {
        None | Some(Err(Unmodelled::Fault(_))) => model(None),
        Some(written) => written,
    }
}

fn model(
    subject: &dyn Subject,
    options: &Options,
    rules: Rules,
    merging: Option<Merging>,
    progress: &Progress,
) -> Result<String, Unmodelled> {
    let mut space = Space::new(subject, options.registers, None)?;
    if let Some(merging) = merging {
        space.merge(merging);
    }
    let room = Room::new(options.max_memory, options.disk.as_deref());
    let search = Search {
        space: &Mutex::new(space),
        rules,
        passages: options.passages.unwrap_or(0),
        watch: 0,
        max_states: options.max_states,
        workers: options.workers.max(1),
        progress,
        room: &room,
        keeper: None,
    };
    search.run(&mut Describe { options })
}

/// Writes down what a finished search has learned.
struct Describe<'a> {
    options: &'a Options,
}

impl Then for Describe<'_> {
    type Out = Result<String, Unmodelled>;

    fn then<const W: usize>(&mut self, searched: &Searched<'_, '_, W>) -> Self::Out {
        let states = searched.store.states() as u64;
        match &searched.end {
            End::Exhausted => {}
            End::Fault(fault) => return Err(fault.clone().into()),
            _ => return Err(Unmodelled::Incomplete(states)),
        }
        let space = searched.space.lock().expect("no worker panics");
        let n = space.subject.size().n;
        let processes = (0..n).map(|p| Numbering::of(&space, p)).collect();
        let model =
            Model { space: &space, rules: searched.rules, options: self.options, processes };
        Ok(model.text(states))
    }
}

/// The numbers of the local states of a process in the model. They are ordered by region, with the
/// critical section last, so that one comparison shows where a process is.
struct Numbering {
    /// The local states of the search, in the order of the model.
    order: Vec<u32>,
    /// For each local state of the search, its number in the model.
    numbers: Vec<usize>,
    /// The number of the first local state in the critical section.
    critical: usize,
}

impl Numbering {
    fn of(space: &Space<'_>, p: usize) -> Self {
        let mut order: Vec<u32> = (0..space.count(p) as u32).collect();
        // A process starts with local state 0 in its remainder, which stays the first.
        order.sort_by_key(|&local| rank(space.known(p, local)));
        let mut numbers = vec![0; order.len()];
        order.iter().enumerate().for_each(|(number, &local)| numbers[local as usize] = number);
        let critical =
            order.partition_point(|&local| space.known(p, local).region != Region::Critical);
        Self { order, numbers, critical }
    }
}

/// Returns the rank of a local state among all of its process.
fn rank(known: &Known) -> (usize, u32) {
    match known.region {
        Region::Remainder => (0, 0),
        Region::Doorway => (1, 0),
        Region::Waiting => (2, 0),
        Region::Exit => (3, 0),
        Region::Critical => (4, known.session.0),
    }
}

struct Model<'a, 's> {
    space: &'a Space<'s>,
    rules: Rules,
    options: &'a Options,
    processes: Vec<Numbering>,
}

/// The pieces of the text. Writing to a `String` cannot fail.
impl Model<'_, '_> {
    fn text(&self, states: u64) -> String {
        let mut text = self.header(states);
        text += &self.variables();
        text += &format!("#define EXCLUSION ({})\n\n", self.exclusion());
        text += "active proctype processes() {\nend:\n\tdo\n";
        text += "\t:: d_step { !EXCLUSION -> assert(EXCLUSION) }\n";
        for p in 0..self.processes.len() {
            for &local in &self.processes[p].order {
                text += &self.local(p, local);
            }
        }
        text + "\tod\n}\n"
    }

    fn header(&self, states: u64) -> String {
        let subject = self.space.subject;
        let variant = subject.variant().map_or(String::new(), |variant| format!(", {variant}"));
        let mutant = subject.mutant().map_or(String::new(), |mutant| format!(", mutant {mutant}"));
        let name = format!("{}{variant}{mutant}", subject.name());
        let retries = attempts(subject, self.rules.retries);
        let scope = format!(
            "{}, {}{retries}{}",
            subject.size(),
            self.options.passages_in_words(),
            kills(subject)
        );
        format!(
            "/* {name}: {scope}.\n\n   \
             The automata of its processes, as doorway's checker has learned them. The checker finds\n   \
             {states} states; SPIN stores as many:\n\n   \
             spin -a FILE && gcc -O2 -DSAFETY -o pan pan.c && ./pan -c0 -m{}\n\n   \
             EXCLUSION says that no more processes are in the critical section than may be there.\n   \
             \"assertion violated 0\" says that the checker has missed a transition. */\n\n",
            states + 10
        )
    }

    fn variables(&self) -> String {
        let mut text = String::from("/* The registers, and the numbers of their values. */\n");
        for (r, values) in self.space.registers.iter().enumerate() {
            let numbered = values
                .iter()
                .enumerate()
                .map(|(number, value)| format!("{number} = {}", value.text()));
            let list = numbered.collect::<Vec<_>>().join(", ");
            let _ = writeln!(text, "/* reg[{r}]  {}: {} */", comment(&values.name), comment(&list));
        }
        let most =
            |counts: &mut dyn Iterator<Item = usize>| counts.max().unwrap_or(0).saturating_sub(1);
        let n = self.processes.len();
        let values = most(&mut self.space.registers.iter().map(|values| values.len()));
        let locals = most(&mut self.processes.iter().map(|process| process.order.len()));
        let _ = writeln!(text, "{} reg[{}];\n", kind(values), self.space.registers.len());
        let _ = writeln!(text, "/* The local states. */\n{} at[{n}];", kind(locals));
        if let Some(passages) = self.options.passages {
            let kills = self.rules.kills.unwrap_or(0);
            let most = passages as usize + kills as usize;
            let _ = writeln!(text, "/* Passages left. */\n{} left[{n}] = {passages};", kind(most));
        }
        if let Some(most) = self.rules.retries {
            let _ = writeln!(
                text,
                "/* Further attempts begun in this passage. */\n{} tried[{n}];",
                kind(most as usize)
            );
        }
        if let Some(most) = self.rules.kills {
            let _ =
                writeln!(text, "/* Processes killed so far. */\n{} killed;", kind(most as usize));
        }
        text + "\n"
    }

    /// Returns what exclusion says of a state.
    fn exclusion(&self) -> String {
        let subject = self.space.subject;
        let n = self.processes.len();
        if subject.claims().problem != Problem::Group {
            let inside = self
                .processes
                .iter()
                .enumerate()
                .map(|(p, at)| format!("(at[{p}] >= {})", at.critical));
            return format!("{} <= {}", inside.collect::<Vec<_>>().join(" + "), subject.size().k);
        }
        let sessions: Vec<String> = (0..n).map(|p| self.session(p)).collect();
        let pairs = (0..n).flat_map(|p| (0..p).map(move |q| (q, p)));
        let apart = pairs.map(|(q, p)| {
            let (a, b) = (&sessions[q], &sessions[p]);
            format!("({a} == 0 || {b} == 0 || {a} == {b})")
        });
        iter::once("true".into()).chain(apart).collect::<Vec<_>>().join(" && ")
    }

    /// Returns the session of a process in the critical section as an expression; 0 elsewhere.
    fn session(&self, p: usize) -> String {
        let Numbering { order, critical, .. } = &self.processes[p];
        let mut expression = "0".to_string();
        for (number, &local) in order.iter().enumerate().skip(*critical) {
            let of = |local: u32| self.space.known(p, local).session;
            if number == *critical || of(order[number - 1]) != of(local) {
                // Processes without a session keep all other processes out: each is in a session of
                // its own.
                let session = if of(local) == Session::NONE {
                    format!("-{}", p + 1)
                } else {
                    of(local).0.to_string()
                };
                expression = format!("(at[{p}] >= {number} -> {session} : {expression})");
            }
        }
        expression
    }

    /// Returns all moves of a process in a local state.
    fn local(&self, p: usize, local: u32) -> String {
        let known = self.space.known(p, local);
        let region = format!("{:?}", known.region).to_lowercase();
        let mut text = format!(
            "\t/* process {p}, local state {}: {region} */\n",
            self.processes[p].numbers[local as usize]
        );
        for (index, step) in (0..).zip(known.moves.iter()) {
            let (guards, first) = self.before(p, local, step);
            let outcomes = self.space.outcomes_of(p, local, index);
            let _ = write!(text, "\t:: d_step {{ {} ->", guards.join(" && "));
            first.iter().for_each(|statement| text += &format!(" {statement};"));
            match (step.register, &outcomes[..]) {
                (_, []) => text += " assert(false)",
                (None, [(_, outcome), ..]) => {
                    text += &format!(" {}", self.after(p, local, step, 0, outcome))
                }
                (Some(r), outcomes) => {
                    let after = |(value, outcome): &(u32, Outcome)| {
                        format!(
                            "\n\t\t:: reg[{r}] == {value} -> {}",
                            self.after(p, local, step, *value, outcome)
                        )
                    };
                    let options: String = outcomes.iter().map(after).collect();
                    text += &format!(" if{options}\n\t\t:: else -> assert(false)\n\t\tfi");
                }
            }
            let _ = writeln!(text, " }} /* line {}{} */", step.line, chosen(step.choice));
        }
        text
    }

    /// Returns when a move may be made, and what is counted whatever its outcome.
    fn before(&self, p: usize, local: u32, step: &KnownMove) -> (Vec<String>, Vec<String>) {
        let (mut guards, mut first) =
            (vec![format!("at[{p}] == {}", self.processes[p].numbers[local as usize])], Vec::new());
        let begins = self.space.known(p, local).region == Region::Remainder && self.rules.counts(p);
        if begins {
            guards.push(format!("left[{p}] > 0"));
            first.push(format!("left[{p}]--"));
        }
        if let Some(most) = self.rules.retries {
            guards.push(format!("tried[{p}] < {most}"));
        }
        if let (Choice::Kill, Some(most)) = (step.choice, self.rules.kills) {
            guards.push(format!("killed < {most}"));
            first.push("killed++".into());
            // The process that takes its place makes the passage again.
            first.extend(self.rules.counts(p).then(|| format!("left[{p}]++")));
        }
        (guards, first)
    }

    /// Returns what a move does if its register holds `value`.
    fn after(
        &self,
        p: usize,
        local: u32,
        step: &KnownMove,
        value: u32,
        outcome: &Outcome,
    ) -> String {
        let mut statements = Vec::new();
        if outcome.next != local {
            statements
                .push(format!("at[{p}] = {}", self.processes[p].numbers[outcome.next as usize]));
        }
        if let Some(r) = step.register.filter(|_| outcome.value != value) {
            statements.push(format!("reg[{r}] = {}", outcome.value));
        }
        if self.rules.retries.is_some() {
            let inside = |local| self.space.known(p, local).region == Region::Critical;
            if inside(outcome.next) && !inside(local) {
                statements.push(format!("tried[{p}] = 0"));
            } else if outcome.retries {
                statements.push(format!("tried[{p}]++"));
            }
        }
        if statements.is_empty() { "skip".into() } else { statements.join("; ") }
    }
}

/// Returns the smallest type that holds numbers up to this one.
fn kind(most: usize) -> &'static str {
    match most {
        0..=0xff => "byte",
        0x100..=0x7fff => "short",
        _ => "int",
    }
}

/// Returns what a process chooses, for a comment.
fn chosen(choice: Choice) -> String {
    match choice {
        Choice::Go => String::new(),
        Choice::Request(request) => format!(", request {request}"),
        Choice::Abandon => ", gives up".into(),
        Choice::Kill => ", is killed".into(),
        Choice::Outcome(outcome) => format!(", chooses {outcome}"),
        Choice::RequestOutcome(request, outcome) => {
            format!(", request {request}, chooses {outcome}")
        }
    }
}

/// Returns text that cannot end the comment that it stands in.
fn comment(text: &str) -> String {
    text.replace("*/", "* /").replace('\n', " ")
}
