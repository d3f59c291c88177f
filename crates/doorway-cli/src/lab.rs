//! `doorway lab`: the commands of the laboratory.

mod check;
mod equivalent;
mod explore;
mod kept;
mod list;
mod replay;
mod report;
mod rmr;
mod script;
mod simulate;
mod steps;
mod watch;

use std::process::ExitCode;

use doorway_core::{Problem, Size};
use doorway_lab::{Entrant, Subject};

use crate::{
    args::lab::{Instance, Lab},
    error::Failure,
};

/// Runs a command of the laboratory.
pub(crate) fn run(command: Lab) -> Result<ExitCode, Failure> {
    match command {
        Lab::List(args) => list::run(&args),
        Lab::Check(args) => check::run(&args),
        Lab::Simulate(args) => simulate::run(&args),
        Lab::Rmr(args) => rmr::run(&args),
        Lab::Explore(args) => explore::run(&args),
        Lab::Report(args) => report::run(&args),
        Lab::Replay(args) => replay::run(&args),
    }
}

/// Returns the algorithm of that name.
fn named(name: &str) -> Result<&'static Entrant, Failure> {
    let names = || listed().map(|entrant| entrant.name).collect::<Vec<_>>().join(", ");
    Entrant::named(name).ok_or_else(|| {
        Failure::Usage(format!("there is no algorithm {name:?}; there are {}", names()))
    })
}

/// Returns the algorithm that the arguments name, and an instance of it.
fn instance(args: &Instance) -> Result<(&'static Entrant, Box<dyn Subject>), Failure> {
    let entrant = entrant(args)?;
    let mutant = match &args.mutant {
        None => None,
        Some(name) => {
            let mutants = entrant.claims.mutants;
            let known = || mutants.iter().map(|mutant| mutant.name).collect::<Vec<_>>().join(", ");
            let found = mutants.iter().find(|mutant| mutant.name == name).ok_or_else(|| {
                Failure::Usage(format!(
                    "{} has no mutant {name:?}; it has {}",
                    entrant.name,
                    known()
                ))
            })?;
            Some(found.name)
        }
    };
    if args.n == 0 {
        return Err(Failure::Usage("-n 0: there has to be a process; try -n 2".into()));
    }
    if args.n > MAX_N {
        return Err(Failure::Usage(format!(
            "-n {}: the lab runs at most {MAX_N} processes",
            args.n
        )));
    }
    let group = entrant.claims.problem == Problem::Group;
    let k = match (args.k, entrant.claims.problem) {
        (None, Problem::Group) => args.n,
        (Some(_), Problem::Group) => {
            let name = entrant.name;
            return Err(Failure::Usage(format!(
                "{name} lets any number of one session in; leave -k out"
            )));
        }
        (None, _) => 1,
        (Some(0), _) => {
            return Err(Failure::Usage("-k 0: there has to be a slot; try -k 1".into()));
        }
        (Some(k), Problem::KExclusion) if k >= args.n.max(2) => {
            return Err(Failure::Usage(format!(
                "-k {k} with -n {}: with a slot for everybody there is nothing to exclude; try -k {}",
                args.n,
                args.n.saturating_sub(1).max(1)
            )));
        }
        (Some(k), _) => k,
    };
    let size =
        Size { n: args.n, k, sessions: args.sessions.unwrap_or(if group { SESSIONS } else { 0 }) };
    if size.sessions > MAX_SESSIONS {
        return Err(Failure::Usage(format!(
            "--sessions {}: the lab runs at most {MAX_SESSIONS}",
            size.sessions
        )));
    }
    let mut subject = entrant
        .build(size, mutant, args.abandon)
        .map_err(|unfit| Failure::Usage(unfit.to_string()))?;
    if let Some(most) = args.kills
        && !subject.let_kill(most)
    {
        return Err(Failure::Usage(format!(
            "--kills {most}: nobody would notice in {}; try named-lock, or --crashes {most}",
            entrant.name
        )));
    }
    Ok((entrant, subject))
}

/// Returns the algorithm of that name, with the timestamps that the arguments ask for.
fn entrant(args: &Instance) -> Result<&'static Entrant, Failure> {
    let default = named(&args.algorithm)?;
    let Some(timestamps) = &args.timestamps else { return Ok(default) };
    if default.variant.is_none() {
        return Err(Failure::Usage(format!(
            "{} has no timestamps; leave --timestamps out",
            default.name
        )));
    }
    Entrant::variants(default.name).find(|entrant| entrant.variant == Some(timestamps)).ok_or_else(
        || {
            let kinds = timestamps_of(default).join(" or ");
            Failure::Usage(format!("--timestamps {timestamps}: timestamps are {kinds}"))
        },
    )
}

/// Returns every algorithm once, whatever timestamps it may have.
fn listed() -> impl Iterator<Item = &'static Entrant> {
    Entrant::all().iter().filter(|entrant| {
        Entrant::named(entrant.name).is_some_and(|default| default.variant == entrant.variant)
    })
}

/// Returns the kinds of timestamps that an algorithm can have.
fn timestamps_of(entrant: &Entrant) -> Vec<&'static str> {
    Entrant::variants(entrant.name).filter_map(|entrant| entrant.variant).collect()
}

/// The fewest sessions of which two can conflict.
const SESSIONS: usize = 2;

/// The most sessions: a process may ask for each of them, and the checker tries them all.
const MAX_SESSIONS: usize = 200;

/// The most processes. No run here needs more; each may have a row of registers per other process.
const MAX_N: usize = 4096;
