//! Compares the checker with SPIN: the automata that the checker has learned, written down in
//! Promela, have as many states for both, and both say the same of exclusion.
//!
//! `cargo test` takes a fixed sample of random programs and of the registry. A longer sample of
//! random programs:
//!
//! ```text
//! DOORWAY_FUZZ_SPIN=500 cargo test -p doorway-lab --test fuzz spin -- --nocapture
//! ```

use std::{
    collections::BTreeMap,
    fmt, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
};

use doorway_core::{Problem, Property, Size};
use doorway_lab::{Entrant, Options, Progress, Subject, check, promela};

use crate::{
    compare::options,
    generate::{Generator, Without},
    interpret::subject,
    program::Program,
    setting,
};

/// How many random programs `cargo test` takes.
const PROGRAMS: usize = 15;

/// Programs with fewer states tell little, those with more take long.
const STATES: std::ops::RangeInclusive<u64> = 20..=2000;

/// An algorithm of the registry: name, mutant, size, passages.
type Instance = (&'static str, Option<&'static str>, Size, Option<u32>);

fn registry() -> Vec<Instance> {
    let (two, three) = (Size::mutex(2), Size::mutex(3));
    let groups = Size::group(2, 2);
    vec![
        ("bakery", None, two, Some(2)),
        ("bakery", Some("without-line-3"), two, Some(2)),
        ("burns-lamport", None, two, None),
        ("burns-lamport", Some("without-line-10"), three, Some(1)),
        ("black-white-bakery", None, two, None),
        ("black-white-bakery", Some("without-line-3"), two, Some(2)),
        ("yang-anderson", None, two, None),
        ("mcs", Some("reads-then-writes"), two, Some(2)),
        ("queue", None, Size::slots(3, 2), None),
        ("k-bakery", None, Size::slots(3, 2), Some(1)),
        ("randomized", None, two, Some(1)),
        ("group-black-white-bakery", None, groups, None),
        ("group-black-white-bakery", Some("without-line-17"), groups, Some(1)),
    ]
}

/// What is explored by both: a name for it, how to build it, and how to explore it.
struct Case {
    name: String,
    source: Source,
    options: Options,
}

enum Source {
    Registry(Instance),
    Program(Arc<Program>),
}

impl Source {
    fn build(&self) -> Box<dyn Subject> {
        match self {
            Self::Program(program) => subject(program),
            Self::Registry((name, mutant, size, _)) => {
                let entrant = Entrant::named(name).expect("it is in the registry");
                entrant.build(*size, *mutant, false).expect("it serves that size")
            }
        }
    }
}

impl Case {
    fn registered(instance: Instance) -> Self {
        let (name, mutant, size, passages) = instance;
        let mutant = mutant.map_or(String::new(), |mutant| format!(", {mutant}"));
        let name = format!("{name}{mutant}, {size}");
        Self {
            name,
            source: Source::Registry(instance),
            options: Options { passages, ..Options::default() },
        }
    }
}

/// Random programs of different kinds, with neither too few states nor too many.
fn programs(wanted: usize) -> Vec<Case> {
    let seed = setting("DOORWAY_FUZZ_SEED").unwrap_or(1);
    let mut kinds: BTreeMap<_, usize> = BTreeMap::new();
    let mut cases: Vec<Case> = Vec::new();
    for case in 0.. {
        if cases.len() == wanted {
            break;
        }
        let program = Generator::new(seed, case, Without::default()).program();
        let Program { n, tickets, helpers, .. } = &program;
        let kind =
            (*n, *tickets, helpers.is_empty(), program.abandon.is_some(), program.killed.is_some());
        let taken = kinds.entry(kind).or_default();
        if *taken * PROGRAMS > cases.len() {
            continue;
        }
        let (program, options) = (Arc::new(program.clone()), options(&program));
        let report = check(&*subject(&program), &options, &Progress::default());
        if report.is_ok_and(|report| report.complete && STATES.contains(&report.states)) {
            *taken += 1;
            let name = format!("seed {seed}, case {case}");
            cases.push(Case { name, source: Source::Program(program), options });
        }
    }
    cases
}

/// What one of the two has found out.
#[derive(PartialEq, Eq)]
struct Found {
    states: u64,
    exclusion: bool,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.exclusion { "holds" } else { "violated" };
        write!(f, "{} states, exclusion {word}", self.states)
    }
}

/// What the checker has found out.
fn ours(case: &Case, minimise: bool) -> Result<Found, String> {
    let subject = case.source.build();
    let property = match subject.claims().problem {
        Problem::Mutex => Property::MutualExclusion,
        Problem::KExclusion => Property::KExclusion,
        Problem::Group => Property::SessionExclusion,
    };
    let run = |properties: &[Property]| {
        let options = Options { properties: properties.to_vec(), minimise, ..case.options.clone() };
        check(&*subject, &options, &Progress::default()).map_err(|fault| fault.to_string())
    };
    let (all, judged) = (run(&[])?, run(&[property])?);
    if !all.complete || all.relabelled {
        return Err("the checker does not explore all states as they are".into());
    }
    let exclusion = judged.verdicts[0].holds.ok_or("the checker does not decide exclusion")?;
    Ok(Found { states: all.states, exclusion })
}

/// Runs a command in a directory, and returns what it prints.
fn run(directory: &Path, program: &str, args: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(args).current_dir(directory).output();
    let output =
        output.map_err(|error| format!("{program}: {error}: install spin (scripts/test does)"))?;
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    if output.status.success() { Ok(text) } else { Err(format!("{program} fails:\n{text}")) }
}

/// What SPIN finds out about a model, in a directory of its own.
fn theirs(directory: &Path, model: &str) -> Result<Found, String> {
    fs::create_dir_all(directory).map_err(|error| error.to_string())?;
    fs::write(directory.join("model.pml"), model).map_err(|error| error.to_string())?;
    run(directory, "spin", &["-a", "model.pml"])?;
    run(
        directory,
        "gcc",
        &["-w", "-O0", "-DSAFETY", "-DNOREDUCE", "-DMEMLIM=1000", "-o", "pan", "pan.c"],
    )?;
    let said = run(directory, "./pan", &["-c0", "-w18", "-m1000000"])?;
    let number = |line: &str, after: bool| {
        let found = said.lines().find_map(|text| text.split_once(line))?;
        if after { found.1 } else { found.0 }.trim().parse::<u64>().ok()
    };
    let trouble = [
        "not completed",
        "too small",
        "truncated",
        "out of memory",
        "reached -DMEMLIM",
        "invalid end state (",
    ];
    let whole = said.contains("Full statespace search for:")
        && !trouble.iter().any(|words| said.contains(words));
    let (Some(states), Some(errors), true) =
        (number(" states, stored", false), number("errors: ", true), whole)
    else {
        return Err(format!("SPIN does not explore all states:\n{said}"));
    };
    if said.contains("assertion violated 0") {
        return Err(format!(
            "SPIN finds a transition that the checker has missed, and {states} states"
        ));
    }
    Ok(Found { states, exclusion: errors == 0 })
}

/// Compares a case, with local states merged and not; returns what was found in each model.
fn compare(case: &Case, directory: &Path) -> Result<Vec<Found>, String> {
    let mut models: Vec<String> = Vec::new();
    let mut found = Vec::new();
    for minimise in [false, true] {
        let options = Options { minimise, ..case.options.clone() };
        let ours = ours(case, minimise)?;
        let model = promela(&*case.source.build(), &options, &Progress::default())
            .map_err(|error| error.to_string())?;
        if models.contains(&model) {
            continue;
        }
        let theirs = theirs(directory, &model)?;
        if ours != theirs {
            let merged = if minimise { " (local states merged)" } else { "" };
            return Err(format!("checker{merged}: {ours}; SPIN: {theirs}"));
        }
        models.push(model);
        found.push(ours);
    }
    Ok(found)
}

/// Shows failures as they are. They do not go through the panic hook, which another test sets.
struct Failures(String);

impl fmt::Debug for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[test]
fn the_checker_agrees_with_spin() -> Result<(), Failures> {
    let wanted = setting("DOORWAY_FUZZ_SPIN").unwrap_or(PROGRAMS);
    let cases: Vec<Case> =
        registry().into_iter().map(Case::registered).chain(programs(wanted)).collect();
    let directory =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("spin-{}", std::process::id()));
    let next = AtomicUsize::new(0);
    let (failures, found) = (Mutex::new(String::new()), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for worker in 0..2 {
            let directory = directory.join(worker.to_string());
            let (next, cases, failures, found) = (&next, &cases, &failures, &found);
            scope.spawn(move || {
                while let Some(case) = cases.get(next.fetch_add(1, Relaxed)) {
                    match compare(case, &directory) {
                        Ok(models) => {
                            models.iter().for_each(|model| println!("{}: {model}", case.name));
                            found.lock().expect("no thread panics").extend(models);
                        }
                        Err(why) => {
                            let program = match &case.source {
                                Source::Program(program) => format!("\n{program}"),
                                Source::Registry(_) => String::new(),
                            };
                            *failures.lock().expect("no thread panics") +=
                                &format!("\n{}: {why}{program}", case.name);
                        }
                    }
                }
            });
        }
    });
    let _ = fs::remove_dir_all(&directory);
    let (failures, found) = (failures.into_inner(), found.into_inner());
    let (failures, found) = (failures.expect("no thread panics"), found.expect("no thread panics"));
    if !failures.is_empty() {
        return Err(Failures(failures));
    }
    let violated = found.iter().filter(|found| !found.exclusion).count();
    println!("{} models, {violated} of them without exclusion", found.len());
    if violated < 5 || found.len() - violated < 10 {
        return Err(Failures(format!(
            "a sample of one kind: {violated} of {} without exclusion",
            found.len()
        )));
    }
    Ok(())
}
