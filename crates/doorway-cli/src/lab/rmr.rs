//! `doorway lab rmr`.

mod plot;
mod show;

use std::{
    collections::BTreeSet, process::ExitCode, sync::atomic::Ordering::Relaxed, thread,
    time::Instant,
};

use doorway_core::{Problem, Size};
use doorway_lab::{
    Entrant, Limits, Maxima, Progress, most,
    rmr::{Measured, Passages, Sweep, Watch, measure},
    schedule::ADVERSARIES,
    simulate::schedulers,
};
use serde_json::Value;

use super::{MAX_N, MAX_SESSIONS, SESSIONS, watch::watched};
use crate::{
    args::lab::{For, Rmr},
    error::Failure,
    output::print,
    progress::shown,
    table::grouped,
};

/// All results about one algorithm.
struct Found {
    entrant: &'static Entrant,
    sweep: Sweep,
    measured: Measured,
    exact: Vec<Exact>,
}

/// The maximum over all runs, at one size.
struct Exact {
    size: Size,
    maxima: Maxima,
}

/// Runs the command.
pub(crate) fn run(args: &Rmr) -> Result<ExitCode, Failure> {
    let entrants = entrants(args)?;
    if let Some(path) = &args.plot {
        plot::check(path, &entrants)?;
    }
    let mut all = Vec::new();
    for (i, entrant) in entrants.iter().enumerate() {
        let found = find(args, entrant)?;
        // Printed as soon as it is measured: a user who interrupts the rest keeps it.
        if !args.json {
            print(&format!("{}{}", if i > 0 { "\n" } else { "" }, show::text(&found)))?;
        }
        all.push(found);
        if let Some(path) = &args.plot {
            plot::write(path, &all)?;
        }
    }
    if args.json {
        print(&format!("{:#}\n", show::json(&all)))?;
    } else if args.plot.is_some() {
        print(&format!("\n{}", plot::table(&all)))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Measures all that the arguments ask for, and prints nothing. Returns what `--json` prints.
pub(super) fn json(args: &Rmr) -> Result<Value, Failure> {
    let found = entrants(args)?
        .into_iter()
        .map(|entrant| find(args, entrant))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(show::json(&found))
}

fn find(args: &Rmr, entrant: &'static Entrant) -> Result<Found, Failure> {
    let sweep = sweep(args, entrant);
    let measured = curves(entrant, &sweep)?;
    Ok(Found {
        entrant,
        sweep,
        measured,
        exact: if args.exact { exact(entrant, args)? } else { Vec::new() },
    })
}

/// Returns the algorithms that the arguments ask for, if the request makes sense.
fn entrants(args: &Rmr) -> Result<Vec<&'static Entrant>, Failure> {
    let usage = |text: String| Err(Failure::Usage(text));
    for &For { value, .. } in &args.up_to {
        if value < 2 {
            return usage(format!("--up-to {value}: the smallest n is 2; try --up-to 64"));
        }
        if value > MAX_N {
            return usage(format!("--up-to {value}: the lab runs at most {MAX_N} processes"));
        }
    }
    if args.passages == 0 {
        return usage("--passages 0: nothing would happen; try --passages 1".into());
    }
    if args.total == Some(0) {
        return usage("--total 0: nothing would happen; try --total 100000".into());
    }
    if let Some(script) =
        args.scheduler.iter().map(|s| &s.value).find(|name| name.starts_with("script:"))
    {
        return usage(format!("--scheduler {script}: a script is for one n; try lab simulate"));
    }
    let entrants = match &args.algorithms[..] {
        [] => Entrant::all().iter().collect(),
        names => {
            let mut entrants =
                names.iter().map(|name| super::named(name)).collect::<Result<Vec<_>, _>>()?;
            let mut seen = BTreeSet::new();
            entrants.retain(|entrant| seen.insert(entrant.name));
            entrants
        }
    };
    let measured = |name: &String| entrants.iter().any(|entrant| entrant.name == name);
    let one = |up_to: &For<usize>| up_to.algorithm.clone();
    let ones = args.up_to.iter().filter_map(one).map(|name| ("--up-to", name));
    let ones = ones.chain(
        args.scheduler.iter().filter_map(|s| s.algorithm.clone()).map(|name| ("--scheduler", name)),
    );
    if let Some((flag, name)) = ones.into_iter().find(|(_, name)| !measured(name)) {
        return usage(format!("{flag} {name}=…: {name} is not measured here; name it before, too"));
    }
    let up_to = entrants.iter().map(|entrant| up_to(args, entrant)).min().unwrap_or(UP_TO);
    match args.k {
        Some(0) => return usage("-k 0: there has to be a slot; try -k 1".into()),
        Some(k) if k >= up_to => {
            return usage(format!(
                "-k {k} with --up-to {up_to}: nobody would have to wait; try -k {}",
                up_to / 2
            ));
        }
        Some(k) if k > 1 && !args.algorithms.is_empty() => {
            if let Some(mutex) =
                entrants.iter().find(|entrant| entrant.claims.problem != Problem::KExclusion)
            {
                let what = match mutex.claims.problem {
                    Problem::Group => "lets any number of one session in",
                    _ => "has one slot",
                };
                return usage(format!("-k {k}: {} {what}; leave -k out", mutex.name));
            }
        }
        _ => {}
    }
    match args.sessions {
        Some(0) => {
            return usage(
                "--sessions 0: there has to be something to ask for; try --sessions 2".into(),
            );
        }
        Some(sessions) if sessions > MAX_SESSIONS => {
            return usage(format!("--sessions {sessions}: the lab runs at most {MAX_SESSIONS}"));
        }
        Some(sessions) if !args.algorithms.is_empty() => {
            if let Some(other) =
                entrants.iter().find(|entrant| entrant.claims.problem != Problem::Group)
            {
                return usage(format!(
                    "--sessions {sessions}: {} knows no sessions; leave --sessions out",
                    other.name
                ));
            }
        }
        _ => {}
    }
    for entrant in &entrants {
        let there = [&schedulers(entrant.name)[..], &ADVERSARIES[..]].concat();
        let mut named = args
            .scheduler
            .iter()
            .filter(|scheduler| scheduler.concerns(entrant.name))
            .map(|s| &s.value);
        if let Some(name) = named.find(|name| !there.contains(&name.as_str())) {
            let there = there.join(", ");
            return usage(format!(
                "there is no scheduler {name:?} for {}; there are {there}",
                entrant.name
            ));
        }
    }
    Ok(entrants)
}

/// The default for the most processes.
const UP_TO: usize = 64;

/// Returns the most processes of this algorithm. A bound for this algorithm alone goes before a
/// bound for all.
fn up_to(args: &Rmr, entrant: &Entrant) -> usize {
    let said = args.up_to.iter().filter(|up_to| up_to.concerns(entrant.name));
    said.max_by_key(|up_to| up_to.algorithm.is_some()).map_or(UP_TO, |up_to| up_to.value)
}

fn sweep(args: &Rmr, entrant: &Entrant) -> Sweep {
    let asked = args.scheduler.iter().filter(|scheduler| scheduler.concerns(entrant.name));
    Sweep {
        k: if entrant.claims.problem == Problem::KExclusion { args.k.unwrap_or(2) } else { 1 },
        sessions: args.sessions.unwrap_or(SESSIONS),
        up_to: up_to(args, entrant),
        schedulers: match asked.map(|scheduler| scheduler.value.clone()).collect::<Vec<_>>() {
            none if none.is_empty() => {
                schedulers(entrant.name).into_iter().map(String::from).collect()
            }
            names => names,
        },
        passages: args.total.map_or(Passages::Each(args.passages), Passages::Total),
        seed: args.seed,
        max_steps: args.max_steps,
        workers: workers(),
    }
}

/// Returns one worker for each core.
fn workers() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

fn curves(entrant: &Entrant, sweep: &Sweep) -> Result<Measured, Failure> {
    let (watch, began) = (Watch::default(), Instant::now());
    let line = || {
        let (steps, seconds) = (watch.steps.load(Relaxed), began.elapsed().as_secs_f64());
        let pace = steps as f64 / seconds.max(0.001) / 1e6;
        format!("{} · {} steps · {pace:.1} million/s · {seconds:.0} s", watch.now(), grouped(steps))
    };
    Ok(shown(line, || measure(entrant, sweep, &watch))?)
}

/// Computes the maximum over all runs, for as many processes as can be explored.
fn exact(entrant: &Entrant, args: &Rmr) -> Result<Vec<Exact>, Failure> {
    let sizes = match entrant.claims.problem {
        Problem::KExclusion => vec![Size::slots(2, 1), Size::slots(3, 1), Size::slots(3, 2)],
        Problem::Mutex => vec![Size::mutex(2), Size::mutex(3)],
        Problem::Group => {
            [2, 3].map(|n| Size::group(n, args.sessions.unwrap_or(SESSIONS))).to_vec()
        }
    };
    let limits = Limits { passages: None, max_states: args.max_states, workers: workers() };
    let mut found = Vec::new();
    for size in sizes {
        // The curves report what it refuses.
        let Ok(subject) = entrant.build(size, None, false) else { continue };
        let progress = Progress::default();
        let maxima =
            watched(&progress, || most(&*subject, &limits, &progress)).map_err(Failure::Fault)?;
        found.push(Exact { size, maxima });
    }
    Ok(found)
}
