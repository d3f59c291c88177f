//! Compares what the lab says of the registry with what it said before.
//!
//! `verdicts.txt` holds what the checker says at small sizes: states, steps, depth, and for every
//! property whether it holds, how far that was explored, and which run violates it. `runs.txt`
//! holds a random run of every algorithm, step by step.
//!
//! A change of the lab that is meant to change nothing leaves both files as they are. When a change
//! is meant,
//!
//! ```text
//! DOORWAY_WRITE_VERDICTS=1 cargo test -p doorway-lab --test verdicts
//! ```
//!
//! writes them again, and a reader judges the difference.

mod runs;

use std::{env, fmt::Write, fs, path::Path};

use doorway_core::{ANY_NUMBER, Primitive, Problem, Property, RegisterKind, Size};
use doorway_lab::{Entrant, Limits, Options, Progress, Subject, Verdict, check, most};

/// Algorithms of which the checker needs seconds to find the local states alone.
const VAST: [(&str, Option<&str>); 4] = [
    ("timestamp-bakery", Some("bounded")),
    ("randomized-bounded", None),
    ("randomized-starvation-free", None),
    ("strong-group-black-white-bakery", None),
];

/// How many states are explored; where there are more, nothing is said of most properties.
const STATES: u64 = 4_000;

/// The smallest size at which processes compete.
fn size(entrant: &Entrant) -> Size {
    entrant.claims.problem.size(entrant.claims.min_n.max(2), 1, 2)
}

/// What was found out about a property, without its name; a run that violates it as the processes
/// that move, with `|` where its loop begins.
fn finding(verdict: &Verdict) -> String {
    let Verdict { holds, scope, trace, .. } = verdict;
    let holds = holds.map_or("not decided", |holds| if holds { "holds" } else { "violated" });
    let Some(trace) = trace else { return format!("{holds}, {scope}") };
    let mut run = String::new();
    for (i, step) in trace.steps.iter().enumerate() {
        if trace.loop_from == Some(i) {
            run.push('|');
        }
        write!(run, "{}", step.process).expect("a string takes anything");
    }
    format!("{holds} in {} steps, {run}: {}", trace.steps.len(), trace.shows)
}

/// Everything that a check says.
fn said(what: &str, subject: &dyn Subject, options: Options) -> String {
    let options = Options { max_states: STATES, ..options };
    let report = match check(subject, &options, &Progress::default()) {
        Ok(report) => report,
        Err(fault) => return format!("{what}: {fault}\n"),
    };
    let complete = if report.complete { "" } else { ", incomplete" };
    let mut text = format!("{what}: {} states, {} steps", report.states, report.transitions);
    write!(text, ", depth {}, {} values of the memory", report.depth, report.shared_values)
        .expect("it is a string");
    let bits = report.bits.map_or(String::new(), |bits| format!(", {bits} bits"));
    let largest =
        report.max_register.map_or(String::new(), |largest| format!(", largest {largest}"));
    writeln!(text, "{largest}{bits}{complete}").expect("it is a string");
    for verdicts in report.verdicts.chunk_by(|a, b| finding(a) == finding(b)) {
        let names: Vec<_> = verdicts.iter().map(|verdict| verdict.property.to_string()).collect();
        writeln!(text, "  {}: {}", names.join(" "), finding(&verdicts[0])).expect("it is a string");
    }
    text
}

/// Everything that is said of one algorithm, in many settings.
fn all_said(entrant: &Entrant) -> String {
    let claims = &entrant.claims;
    let size = size(entrant);
    let name = entrant
        .variant
        .map_or(entrant.name.into(), |variant| format!("{} ({variant})", entrant.name));
    let all: Vec<Property> =
        Property::ALL.iter().copied().filter(|property| property.suits(claims.problem)).collect();
    let build = |size: Size, mutant, abandons| {
        entrant.build(size, mutant, abandons).expect("the size is served")
    };
    let mut text = String::new();
    let mut add = |what: &str, subject: &dyn Subject, options: Options| {
        text += &said(&format!("{name}, {}{what}", subject.size()), subject, options);
    };
    let subject = build(size, None, false);
    let of =
        |properties: &[Property]| Options { properties: properties.to_vec(), ..Options::default() };
    add("", &*subject, of(&all));
    add(", 1 passage", &*subject, Options { passages: Some(1), ..of(&all) });
    add(", 1 crash", &*subject, Options { crashes: 1, ..of(claims.properties) });
    let endless = Options { passages: Some(1), endless: Some(0), ..of(claims.properties) };
    add(", 1 passage of process 1", &*subject, endless);
    for registers in [RegisterKind::Regular, RegisterKind::Safe] {
        if *claims.primitives == [Primitive::ReadWrite] {
            let few = Options { registers, passages: Some(1), ..of(claims.properties) };
            add(&format!(", 1 passage, {registers} registers"), &*subject, few);
            add(
                &format!(", {registers} registers"),
                &*subject,
                Options { registers, ..of(claims.properties) },
            );
        }
    }
    if claims.problem == Problem::KExclusion
        && let Ok(larger) = entrant.build(claims.problem.size(3, 2, 1), None, false)
    {
        add(", 1 passage", &*larger, Options { passages: Some(1), ..of(claims.properties) });
    }
    if claims.abandons {
        add(", waits given up", &*build(size, None, true), of(claims.properties));
    }
    for (kills, what) in [(1, ", 1 kill"), (ANY_NUMBER, ", any kills")] {
        let mut subject = build(claims.problem.size(2, 1, 2), None, false);
        if subject.let_kill(kills) {
            add(
                &format!("{what}, 1 passage"),
                &*subject,
                Options { passages: Some(1), ..of(claims.properties) },
            );
        }
    }
    for mutant in claims.mutants {
        let subject = build(size, Some(mutant.name), false);
        add(&format!(", {}", mutant.name), &*subject, of(claims.properties));
    }
    let limits = Limits { passages: Some(1), max_states: STATES, workers: 1 };
    match most(&*subject, &limits, &Progress::default()) {
        Ok(maxima) => writeln!(
            text,
            "{name}, 1 passage, most references: dsm {:?}, cc {:?}",
            maxima.dsm, maxima.cc
        ),
        Err(fault) => writeln!(text, "{name}, 1 passage, most references: {fault}"),
    }
    .expect("it is a string");
    text
}

/// Fails if a file of this folder does not hold this text, or writes it there if that is asked for.
fn compare(file: &str, said: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/verdicts").join(file);
    if env::var_os("DOORWAY_WRITE_VERDICTS").is_some() {
        fs::write(&path, said).expect("the file can be written");
        return;
    }
    let before = fs::read_to_string(&path).expect("the file is part of the tests");
    let differ: Vec<_> =
        said.lines().zip(before.lines()).filter(|(now, then)| now != then).take(5).collect();
    assert!(differ.is_empty(), "{file} differs (now, before): {differ:#?}");
    assert_eq!(
        said.lines().count(),
        before.lines().count(),
        "{file} has more or fewer lines than before"
    );
}

#[test]
fn every_verdict_is_as_before() {
    let small =
        Entrant::all().iter().filter(|entrant| !VAST.contains(&(entrant.name, entrant.variant)));
    compare("verdicts.txt", &small.map(all_said).collect::<String>());
}

#[test]
fn every_run_is_as_before() {
    compare("runs.txt", &Entrant::all().iter().map(runs::of).collect::<String>());
}
