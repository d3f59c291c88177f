//! What the checker says of the whole registry at small sizes is what `verdicts.txt` holds: states, steps, depth, and for every
//! property whether it holds, how far that was explored, and which run violates it.
//!
//! A change of the checker that is meant to change nothing leaves this file as it is. When a change is meant,
//!
//! ```text
//! DOORWAY_WRITE_VERDICTS=1 cargo test -p doorway-lab --test verdicts
//! ```
//!
//! writes it again, and the difference is for a reader to judge.

use std::{env, fmt::Write, fs, path::Path, thread};

use doorway_core::{ANY_NUMBER, Primitive, Problem, Property, RegisterKind, Size};
use doorway_lab::{Entrant, Limits, Options, Progress, Subject, Verdict, check, most};

/// How many states are explored; where there are more, nothing is said of most properties.
const STATES: u64 = 4_000;

/// The smallest size at which processes compete.
fn size(entrant: &Entrant) -> Size {
    entrant.claims.problem.size(entrant.claims.min_n.max(2), 1, 2)
}

/// What was found out about a property, without its name; a run that violates it as the processes that move, with `|` where
/// its loop begins.
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
    write!(text, ", depth {}, {} values of the memory", report.depth, report.shared_values).expect("it is a string");
    let bits = report.bits.map_or(String::new(), |bits| format!(", {bits} bits"));
    let largest = report.max_register.map_or(String::new(), |largest| format!(", largest {largest}"));
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
    let name = entrant.variant.map_or(entrant.name.into(), |variant| format!("{} ({variant})", entrant.name));
    let all: Vec<Property> = Property::ALL.iter().copied().filter(|property| property.suits(claims.problem)).collect();
    let build = |size: Size, mutant, abandons| entrant.build(size, mutant, abandons).expect("the size is served");
    let mut text = String::new();
    let mut add = |what: &str, subject: &dyn Subject, options: Options| {
        text += &said(&format!("{name}, {}{what}", subject.size()), subject, options);
    };
    let subject = build(size, None, false);
    let of = |properties: &[Property]| Options { properties: properties.to_vec(), ..Options::default() };
    add("", &*subject, of(&all));
    add(", 1 passage", &*subject, Options { passages: Some(1), ..of(&all) });
    add(", 1 crash", &*subject, Options { crashes: 1, ..of(claims.properties) });
    let endless = Options { passages: Some(1), endless: Some(0), ..of(claims.properties) };
    add(", 1 passage of process 1", &*subject, endless);
    for registers in [RegisterKind::Regular, RegisterKind::Safe] {
        if *claims.primitives == [Primitive::ReadWrite] {
            let few = Options { registers, passages: Some(1), ..of(claims.properties) };
            add(&format!(", 1 passage, {registers} registers"), &*subject, few);
            add(&format!(", {registers} registers"), &*subject, Options { registers, ..of(claims.properties) });
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
            add(&format!("{what}, 1 passage"), &*subject, Options { passages: Some(1), ..of(claims.properties) });
        }
    }
    for mutant in claims.mutants {
        let subject = build(size, Some(mutant.name), false);
        add(&format!(", {}", mutant.name), &*subject, of(claims.properties));
    }
    let limits = Limits { passages: Some(1), max_states: STATES, workers: 1 };
    match most(&*subject, &limits, &Progress::default()) {
        Ok(maxima) => writeln!(text, "{name}, 1 passage, most references: dsm {:?}, cc {:?}", maxima.dsm, maxima.cc),
        Err(fault) => writeln!(text, "{name}, 1 passage, most references: {fault}"),
    }
    .expect("it is a string");
    text
}

#[test]
fn every_verdict_is_as_before() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/verdicts.txt");
    // By two threads, which take turns.
    let every_other = |first: usize| move || Entrant::all().iter().skip(first).step_by(2).map(all_said).collect();
    let [even, odd]: [Vec<String>; 2] = thread::scope(|scope| {
        [0, 1].map(|first| scope.spawn(every_other(first))).map(|half| half.join().expect("it ends"))
    });
    let said: String = (0..even.len() + odd.len()).map(|i| &*[&even, &odd][i % 2][i / 2]).collect();
    if env::var_os("DOORWAY_WRITE_VERDICTS").is_some() {
        fs::write(&path, &said).expect("the file can be written");
        return;
    }
    let before = fs::read_to_string(&path).expect("the file is part of the tests");
    let differ: Vec<_> = said.lines().zip(before.lines()).filter(|(now, then)| now != then).take(5).collect();
    assert!(differ.is_empty(), "the checker says something else than before (now, before): {differ:#?}");
    assert_eq!(said.lines().count(), before.lines().count(), "the checker says more or less than before");
}
