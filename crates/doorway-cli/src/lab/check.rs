//! `doorway lab check`.

use std::{fs, path::Path, process::ExitCode, thread, time::Duration};

use doorway_core::{ANY_NUMBER, Primitive, Problem, Property, RegisterKind};
use doorway_lab::{
    Entrant, Options, Progress, Report, Subject, Unmodelled, Verdict, attempts, available_memory,
    check, kills, promela, trace::Trace, viewer::Film,
};
use serde_json::{Value, json};

use super::{kept, steps::steps, watch::watched};
use crate::{
    args::lab::Check,
    error::Failure,
    output::{print, say},
    table::{columns, grouped},
};

/// Runs the command.
pub(crate) fn run(args: &Check) -> Result<ExitCode, Failure> {
    if let Some(other) = &args.equivalent_to {
        return super::equivalent::run(args, other);
    }
    if let Some(path) = &args.script {
        return super::script::run(args, path);
    }
    if let Some(path) = &args.promela {
        write_model(args, path)?;
    }
    let found = attended(args)?;
    let report = &found.report;
    if let Some(path) = &args.trace {
        match found.traces().next() {
            Some(trace) => write_trace(path, trace)?,
            None => {
                say(format_args!("no violation was found, so {} was not written", path.display()))
            }
        }
    }
    let timings = if args.timings { found.timings() } else { String::new() };
    print(&if args.json { format!("{:#}\n", found.json()) } else { found.text() + &timings })?;
    let violated = report.verdicts.iter().any(|verdict| verdict.holds == Some(false));
    let decided = report.complete && report.verdicts.iter().all(|verdict| verdict.holds.is_some());
    Ok(ExitCode::from(match (violated, decided) {
        (true, _) => 1,
        (false, true) => 0,
        (false, false) => 3,
    }))
}

/// The question, and the result.
pub(super) struct Found {
    entrant: &'static Entrant,
    subject: Box<dyn Subject>,
    options: Options,
    report: Report,
}

/// Runs the check of the arguments, and prints nothing.
pub(super) fn find(args: &Check) -> Result<Found, Failure> {
    let (entrant, subject) = super::instance(&args.instance)?;
    let options = options(args, entrant, &*subject)?;
    let progress = Progress::default();
    let report =
        watched(&progress, || check(&*subject, &options, &progress)).map_err(Failure::Fault)?;
    Ok(Found { entrant, subject, options, report })
}

/// Runs the check of the arguments. Ctrl-C saves the search, or says what is lost.
fn attended(args: &Check) -> Result<Found, Failure> {
    let (entrant, subject) = super::instance(&args.instance)?;
    let options = options(args, entrant, &*subject)?;
    let report = kept::check(args, &*subject, &options)?;
    Ok(Found { entrant, subject, options, report })
}

/// Writes a model of the learned automata, in Promela.
fn write_model(args: &Check, path: &Path) -> Result<(), Failure> {
    let (entrant, subject) = super::instance(&args.instance)?;
    let options = options(args, entrant, &*subject)?;
    let progress = Progress::default();
    let file = path.display();
    match watched(&progress, || promela(&*subject, &options, &progress)) {
        Ok(model) => {
            write(path, &model)?;
            let command =
                format!("spin -a {file} && gcc -O2 -DSAFETY -o pan pan.c && ./pan -c0 -m1000000");
            say(format_args!("{file} has the model in Promela; run it: {command}"));
            Ok(())
        }
        // The check reports the same in its exit code.
        Err(incomplete @ Unmodelled::Incomplete(_)) => {
            say(format_args!("{incomplete}, so {file} was not written"));
            Ok(())
        }
        Err(Unmodelled::Fault(fault)) => Err(Failure::Fault(fault)),
        Err(unmodelled) => Err(Failure::Usage(format!("--promela {file}: {unmodelled}"))),
    }
}

/// Saves a trace for `lab replay`, or as a page or a picture to look at.
pub(super) fn write_trace(path: &Path, trace: &Trace) -> Result<(), Failure> {
    let is =
        |name: &str| path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(name));
    match () {
        () if is("html") => write_film(path, trace, Film::page),
        () if is("svg") => write_film(path, trace, Film::svg),
        () => write(path, &trace.to_json()),
    }
}

/// Writes a page or a picture of a trace.
pub(super) fn write_film(
    path: &Path,
    trace: &Trace,
    show: impl FnOnce(&Film) -> String,
) -> Result<(), Failure> {
    let film = Film::of(trace).map_err(|error| Failure::Trace { path: path.into(), error })?;
    write(path, &show(&film))
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| Failure::File { verb: "write", path: path.into(), error })
}

/// Returns the kind of registers, if the algorithm can run on them.
pub(super) fn registers(args: &Check, entrant: &Entrant) -> Result<RegisterKind, Failure> {
    let registers: RegisterKind = args.registers.parse().map_err(|()| {
        Failure::Usage(format!(
            "--registers {}: registers are atomic, regular or safe",
            args.registers
        ))
    })?;
    if registers != RegisterKind::Atomic && entrant.claims.primitives != [Primitive::ReadWrite] {
        return Err(Failure::Usage(format!(
            "--registers {registers}: {} does more than read and write, which only atomic registers can",
            entrant.name
        )));
    }
    Ok(registers)
}

fn options(args: &Check, entrant: &Entrant, subject: &dyn Subject) -> Result<Options, Failure> {
    let registers = registers(args, entrant)?;
    let properties = match &args.property[..] {
        [] => entrant.claims.properties.to_vec(),
        names => names.iter().map(|name| property(name, subject)).collect::<Result<_, _>>()?,
    };
    let passages = match passages(args)? {
        // All the colours and labels that registers may hold: finitely many, but more states than a
        // user can wait for.
        None if args.passages.is_none() && entrant.variant == Some("bounded") => Some(2),
        // Without a bound on passages, kills and restarts have no bound either.
        None if args.instance.kills.is_some() => Some(2),
        // Attempts are bounded, but runs are finite only if passages are bounded as well.
        None if args.passages.is_none() && entrant.attempts.is_some() => Some(2),
        passages => passages,
    };
    let retries = retries(args, entrant)?;
    let n = processes(subject)?;
    if let Some(p) = args.endless {
        if passages.is_none() {
            return Err(Failure::Usage(
                "--endless: passages are not bounded anyway; say --passages P, too".into(),
            ));
        }
        if p >= n {
            return Err(Failure::Usage(format!(
                "--endless {p} with -n {n}: processes are 0 to {}",
                n - 1
            )));
        }
    }
    if args.crashes >= n {
        return Err(Failure::Usage(format!(
            "--crashes {} with -n {n}: somebody has to be left",
            args.crashes
        )));
    }
    let workers =
        args.workers.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from));
    if workers == 0 || workers > 256 {
        return Err(Failure::Usage(format!("--workers {workers}: give a number from 1 to 256")));
    }
    Ok(Options {
        passages,
        endless: args.endless,
        retries,
        registers,
        crashes: args.crashes,
        properties,
        max_states: args.max_states,
        workers,
        max_memory: args.max_memory.or_else(|| available_memory().map(|bytes| bytes / 5 * 4)),
        disk: args.checkpoint.as_deref().map(kept::directory),
        ..Options::default()
    })
}

/// Returns the attempts per passage to follow, if the user names a number.
fn retries(args: &Check, entrant: &Entrant) -> Result<Option<u32>, Failure> {
    let Some(text) = args.retries.as_deref() else { return Ok(None) };
    if entrant.attempts.is_none() {
        return Err(Failure::Usage(format!(
            "{} makes no attempts; leave --retries out",
            entrant.name
        )));
    }
    match text.parse() {
        _ if text == "unbounded" => Ok(Some(ANY_NUMBER)),
        Ok(0) | Err(_) => {
            Err(Failure::Usage(format!("--retries {text}: give a number from 1, or `unbounded`")))
        }
        Ok(retries) => Ok(Some(retries)),
    }
}

/// Returns the passages per process; `None` for any number, which is the default. Tickets are
/// relabelled and everything else is bounded, so runs without end are finite for all algorithms
/// there are.
pub(super) fn passages(args: &Check) -> Result<Option<u32>, Failure> {
    match args.passages.as_deref() {
        None | Some("unbounded") => Ok(None),
        Some(text) => match text.parse() {
            Ok(0) | Err(_) => Err(Failure::Usage(format!(
                "--passages {text}: give a number from 1, or `unbounded`"
            ))),
            Ok(passages) => Ok(Some(passages)),
        },
    }
}

/// Returns how many processes there are, if they are not too many.
pub(super) fn processes(subject: &dyn Subject) -> Result<usize, Failure> {
    let n = subject.size().n;
    if n > MAX_N {
        return Err(Failure::Usage(format!(
            "-n {n}: the checker explores at most {MAX_N} processes; try lab simulate"
        )));
    }
    Ok(n)
}

/// Sets of processes are stored in the bits of a word.
const MAX_N: usize = 16;

pub(super) fn property(name: &str, subject: &dyn Subject) -> Result<Property, Failure> {
    let claims = subject.claims();
    let suits = |property: &Property| property.suits(claims.problem);
    let property = claims.property(name).ok_or_else(|| {
        let declared = claims.invariants.iter().map(|invariant| invariant.name);
        let all = Property::ALL.iter().copied().filter(suits).map(Property::name).chain(declared);
        let names = all.collect::<Vec<_>>().join(", ");
        Failure::Usage(format!(
            "{} has no property {name:?} to decide; there are {names}",
            subject.name()
        ))
    })?;
    if !suits(&property) {
        let what =
            if claims.problem == Problem::Group { "has sessions" } else { "knows no sessions" };
        return Err(Failure::Usage(format!(
            "{} {what}, and {property} does not speak of such",
            subject.name()
        )));
    }
    if property == Property::BoundedRegisters && subject.claims().bound.is_none() {
        return Err(Failure::Usage(format!("{} states no bound on its registers", subject.name())));
    }
    Ok(property)
}

impl Found {
    /// Returns the runs that violate a property, in the order of the properties.
    pub(super) fn traces(&self) -> impl Iterator<Item = &Trace> {
        self.report.verdicts.iter().filter_map(|verdict| verdict.trace.as_ref())
    }

    /// Returns what `--json` prints.
    pub(super) fn json(&self) -> Value {
        let Self { subject, options, report, .. } = self;
        let size = subject.size();
        let properties: Vec<_> = report
            .verdicts
            .iter()
            .map(|verdict| {
                let mut object = json!({
                    "name": verdict.property.name(),
                    "holds": verdict.holds,
                    "scope": verdict.scope,
                });
                if let Some(trace) = &verdict.trace {
                    object["shows"] = json!(trace.shows);
                    object["steps"] = json!(trace.steps.len());
                    object["loop_from"] = json!(trace.loop_from);
                    object["trace"] = json!(trace.steps);
                }
                object
            })
            .collect();
        let seconds = report.search.as_secs_f64();
        let stages = report.timings.iter();
        let timings: Vec<_> = stages
            .map(|(stage, took)| json!({ "stage": stage, "seconds": took.as_secs_f64() }))
            .collect();
        let mut object = json!({
            "algorithm": subject.name(),
            "mutant": subject.mutant(),
            "n": size.n,
            "k": size.k,
            "sessions": size.sessions,
            "passages": options.passages,
            "registers": options.registers.name(),
            "crashes": options.crashes,
            "kills": subject.kills(),
            "complete": report.complete,
            "states": report.states,
            "transitions": report.transitions,
            "depth": report.depth,
            "seconds": seconds,
            "states_per_second": report.states as f64 / seconds.max(1e-9),
            "total_seconds": report.elapsed.as_secs_f64(),
            "timings": timings,
            "workers": options.workers,
            "bytes_per_state": report.bytes_per_state,
            "relabelled": report.relabelled,
            "locals": report.locals.map(|(before, after)| json!({ "before": before, "after": after })),
            "properties": properties,
            "bounds": {
                "shared_values": report.shared_values,
                "max_register": report.max_register,
                "max_number": report.max_register,
                "bound": subject.claims().bound.map(|bound| bound(size)),
                "bits": report.bits,
            },
        });
        let formulas = subject.claims().values;
        if !formulas.is_empty() {
            let values = formulas
                .iter()
                .map(|formula| json!({ "formula": formula.name, "value": (formula.of)(size) }));
            object["bounds"]["paper"] = values.collect();
        }
        if subject.attempts().is_some() {
            object["retries"] = json!(report.retries);
        }
        if let Some(p) = options.endless {
            object["endless"] = json!(p);
        }
        if let Some(timestamps) = subject.variant() {
            object["timestamps"] = json!(timestamps);
        }
        object
    }

    /// Returns what `--timings` prints: every stage with its seconds. Stages of the same kind that
    /// run at the same time each count in full.
    fn timings(&self) -> String {
        let stages = self.report.timings.iter().map(|(stage, took)| (stage.as_str(), *took));
        let total = ("in all", self.report.elapsed);
        let row = |(stage, took): (&str, Duration)| {
            vec![stage.into(), format!("{:8.3} s", took.as_secs_f64())]
        };
        format!("\n{}", columns(&stages.chain([total]).map(row).collect::<Vec<_>>()))
    }

    fn text(&self) -> String {
        let Self { entrant, subject, options, report } = self;
        let subject = &**subject;
        let size = subject.size();
        let mutant = subject.mutant().map_or(String::new(), |name| format!(", mutant {name}"));
        let passages = options.passages_in_words();
        let seconds = report.search.as_secs_f64();
        // A search that ends at once has no meaningful speed.
        let speed = if seconds < 0.1 {
            String::new()
        } else {
            let rate = report.states as f64 / seconds / 1e6;
            format!(" ({rate:.1} million states/s, {} bytes each)", report.bytes_per_state)
        };
        let instance = format!(
            "{size}, {passages}{}, {} registers{}{}",
            attempts(subject, report.retries),
            options.registers,
            kills(subject),
            if report.relabelled { ", tickets relabelled" } else { "" },
        );
        let timestamps =
            subject.variant().map_or(String::new(), |kind| format!(", {kind} timestamps"));
        let claims = &entrant.claims;
        let mut text =
            format!("{}{timestamps}{mutant}: {}, {}\n", entrant.name, claims.paper, claims.figure);
        text.push_str(&format!("  {instance}\n"));
        text.push_str(&format!(
            "  {} states, {} steps, depth {}, in {seconds:.2} s{speed}: {}\n\n",
            grouped(report.states),
            grouped(report.transitions),
            report.depth,
            if report.complete { "complete" } else { "incomplete" },
        ));
        let so_far = if report.complete { "" } else { " so far" };
        if let (Some(bound), Some(most)) = (claims.bound, report.max_register) {
            let bits =
                report.bits.map_or(String::new(), |bits| format!("; {bits} bits of shared memory"));
            text.push_str(&format!(
                "  the largest number{so_far} is {most}, the bound {}{bits}\n\n",
                bound(size)
            ));
        }
        let formulas = subject.claims().values;
        if !formulas.is_empty() {
            let reached = if report.complete { "reached" } else { "reached so far" };
            text.push_str(&format!(
                "  {} values of the shared memory {reached}; the paper:\n",
                grouped(report.shared_values as u64)
            ));
            for formula in formulas {
                let value = (formula.of)(size).map_or("more than 2⁶⁴".into(), grouped);
                text.push_str(&format!("    {} = {value}\n", formula.name));
            }
            text.push('\n');
        }
        text.push_str(&columns(
            &report.verdicts.iter().map(|verdict| row(verdict, &instance)).collect::<Vec<_>>(),
        ));
        for verdict in &report.verdicts {
            if let Some(trace) = &verdict.trace {
                text.push_str(&format!("\n{} is violated: {}.\n", verdict.property, trace.shows));
                text.push_str(&steps(trace));
            }
        }
        text
    }
}

/// Formats a verdict and its scope. The instance is left out: it is printed above all verdicts.
fn row(verdict: &Verdict, instance: &str) -> Vec<String> {
    let word = match verdict.holds {
        Some(true) => "holds",
        Some(false) => "VIOLATED",
        None => "unknown",
    };
    vec![
        verdict.property.name().into(),
        word.into(),
        verdict.scope.replace(&format!(": {instance}"), ""),
    ]
}
