//! `doorway bench`.

mod show;

use std::{process::ExitCode, sync::atomic::Ordering::Relaxed};

use doorway_bench::{Bench, GROUPS, Group, Plan, Watch};
use serde_json::Value;

pub(crate) use self::show::{duration, number};
use crate::{
    args,
    error::Failure,
    output::{print, say},
    progress::{Pace, shown},
};

/// Fewer rounds have no useful median.
const ROUNDS: u32 = 7;
/// More rounds than any machine here needs.
const MAX_ROUNDS: u32 = 10_000;
const MAX_SECONDS: f64 = 3600.0;
const MAX_THREADS: usize = 4096;

/// Runs the command.
pub(crate) fn run(args: &args::Bench) -> Result<ExitCode, Failure> {
    let groups = groups(&args.groups)?;
    let plan = plan(args)?;
    if args.list {
        print(&show::list(&groups, &plan))?;
        return Ok(ExitCode::SUCCESS);
    }
    for group in &groups {
        if group.benches(&plan).is_empty() {
            say(format_args!(
                "{}: this machine does not let two threads have a core each; left out",
                group.name
            ));
        }
    }
    let benches: Vec<Bench> = groups.iter().flat_map(|group| group.benches(&plan)).collect();
    let mut pace = Pace::new(benches.iter().map(|bench| bench.seconds(&plan)).sum());
    let mut right = true;
    for (i, bench) in benches.iter().enumerate() {
        let watch = Watch::default();
        let line = || {
            let (done, all) = (watch.done.load(Relaxed), bench.measurements(&plan));
            let left = pace.left(bench.seconds(&plan) * f64::from(done) / f64::from(all));
            format!(
                "table {} of {} · {} · measurement {done} of {all} · {left}",
                i + 1,
                benches.len(),
                show::title(bench)
            )
        };
        let rows = shown(line, || bench.run(&plan, &watch));
        pace.add(bench.seconds(&plan));
        right &= !rows.iter().any(doorway_bench::Row::is_wrong);
        // Printed as soon as it is measured: a user who interrupts the rest keeps it.
        let blank = if i > 0 { "\n" } else { "" };
        print(&if args.json {
            show::json(bench, &rows)
        } else {
            format!("{blank}{}", show::text(bench, &rows))
        })?;
    }
    Ok(ExitCode::from(if right { 0 } else { 1 }))
}

/// Measures all that the arguments ask for, and prints nothing. Returns what `--json` prints.
pub(crate) fn json(args: &args::Bench) -> Result<Value, Failure> {
    let plan = plan(args)?;
    let benches = groups(&args.groups)?.into_iter().flat_map(|group| group.benches(&plan));
    Ok(benches
        .flat_map(|bench| show::objects(&bench, &bench.run(&plan, &Watch::default())))
        .collect())
}

/// Returns how many seconds that takes, at least.
pub(crate) fn seconds(args: &args::Bench) -> Result<f64, Failure> {
    let plan = plan(args)?;
    let benches = groups(&args.groups)?.into_iter().flat_map(|group| group.benches(&plan));
    Ok(benches.map(|bench| bench.seconds(&plan)).sum())
}

/// Returns the groups that the user asks for.
fn groups(names: &[String]) -> Result<Vec<&'static Group>, Failure> {
    for name in names {
        if !GROUPS.iter().any(|group| group.name == name) {
            let there = GROUPS.iter().map(|group| group.name).collect::<Vec<_>>().join(", ");
            return Err(Failure::Usage(format!("there is no group {name:?}; there are {there}")));
        }
    }
    let asked = |group: &&Group| names.is_empty() || names.iter().any(|name| group.name == name);
    Ok(GROUPS.iter().filter(asked).collect())
}

/// Returns the plan that the arguments ask for, if it makes sense.
fn plan(args: &args::Bench) -> Result<Plan, Failure> {
    let usage = |text: String| Err(Failure::Usage(text));
    if !(ROUNDS..=MAX_ROUNDS).contains(&args.rounds) {
        let rounds = args.rounds;
        return usage(format!(
            "--rounds {rounds}: medians are of {ROUNDS} to {MAX_ROUNDS} rounds; try --rounds {ROUNDS}"
        ));
    }
    let seconds = args.seconds.unwrap_or(if args.quick { 0.02 } else { 0.1 });
    if !(seconds > 0.0 && seconds <= MAX_SECONDS) {
        return usage(format!(
            "--seconds {seconds}: more than 0 and at most {MAX_SECONDS}; try --seconds 0.1"
        ));
    }
    if let Some(threads) = args.threads.iter().find(|threads| !(1..=MAX_THREADS).contains(*threads))
    {
        return usage(format!(
            "--threads {threads}: from 1 to {MAX_THREADS}; try --threads 1,2,16"
        ));
    }
    let plan = Plan {
        rounds: args.rounds,
        seconds,
        quick: args.quick,
        threads: (!args.threads.is_empty()).then(|| args.threads.clone()),
        locks: args.lock.clone(),
    };
    let locks = show::locks(&GROUPS.each_ref(), &plan);
    if let Some(text) = args.lock.iter().find(|text| !locks.iter().any(|lock| lock.contains(*text)))
    {
        return usage(format!(
            "--lock {text:?}: no lock has that in its name; see doorway bench --list"
        ));
    }
    Ok(plan)
}
