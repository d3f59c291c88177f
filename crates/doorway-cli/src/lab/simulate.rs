//! `doorway lab simulate`.

use std::{path::Path, process::ExitCode};

use doorway_lab::{
    Subject,
    cost::Cost,
    schedule::{SECTION_4, ScheduleError},
    simulate::{Lemmas, Outcome, SimulateError, Simulation, scheduler, simulate},
};
use serde_json::json;

use crate::{
    args::lab::Simulate,
    error::Failure,
    output::{print, read},
    table::{columns, grouped},
};

impl From<ScheduleError> for Failure {
    fn from(error: ScheduleError) -> Self {
        Self::Usage(error.to_string())
    }
}

impl From<SimulateError> for Failure {
    fn from(error: SimulateError) -> Self {
        match error {
            SimulateError::Schedule(error) => error.into(),
            SimulateError::Fault(fault) => Self::Fault(fault),
        }
    }
}

/// Runs the command.
pub(crate) fn run(args: &Simulate) -> Result<ExitCode, Failure> {
    let (_, subject) = super::instance(&args.instance)?;
    if args.passages == 0 {
        return Err(Failure::Usage("--passages 0: nothing would happen; try --passages 1".into()));
    }
    if args.crashes >= subject.size().n {
        return Err(Failure::Usage(format!(
            "--crashes {} with -n {}: somebody has to be left",
            args.crashes,
            subject.size().n
        )));
    }
    let mut scheduler =
        scheduler(&args.scheduler, &*subject, args.seed, |file| read(Path::new(file)))?;
    let how = Simulation {
        passages: args.passages,
        seed: args.seed,
        crashes: args.crashes,
        max_steps: args.max_steps,
    };
    let outcome = simulate(&*subject, &how, &mut *scheduler)?;
    let text = if args.json {
        as_json(&*subject, args, &outcome)
    } else {
        as_text(&*subject, args, &outcome)
    };
    print(&text)?;
    Ok(ExitCode::from(u8::from(outcome.violations > 0)))
}

/// Returns how often the last process was blocked, for the scheduler that is about that.
fn blocked(subject: &dyn Subject, args: &Simulate, outcome: &Outcome) -> Option<u64> {
    (args.scheduler == SECTION_4).then(|| outcome.lines.of(subject.size().n - 1, 4))
}

fn as_json(subject: &dyn Subject, args: &Simulate, outcome: &Outcome) -> String {
    let size = subject.size();
    let cost = |cost: &Cost| json!({ "mean": cost.mean(), "max": cost.max });
    let mut object = json!({
        "algorithm": subject.name(),
        "mutant": subject.mutant(),
        "n": size.n,
        "k": size.k,
        "sessions": size.sessions,
        "scheduler": args.scheduler,
        "seed": args.seed,
        "passages": outcome.meter.cc.passages,
        "steps": outcome.steps,
        "violations": outcome.violations,
        "violated": outcome.violated,
        "rmr": { "cc": cost(&outcome.meter.cc), "dsm": cost(&outcome.meter.dsm) },
        "crashed": outcome.crashed,
        "stuck": outcome.stuck,
        "cut_off": outcome.cut_off,
    });
    if let Some(timestamps) = subject.variant() {
        object["timestamps"] = json!(timestamps);
    }
    if let Some(blocked) = blocked(subject, args, outcome) {
        object["blocked"] = json!(blocked);
    }
    if let Some(lemmas) = &outcome.lemmas {
        object["lemmas"] = json!({
            "writes": lemmas.writes,
            "good_writes": lemmas.good_writes,
            "share_of_good_writes": lemmas.share_of_good_writes(),
            "lemma_5": Lemmas::LEMMA_5,
            "passages_per_good_write": lemmas.passages_per_good_write(),
            "lemma_6": Lemmas::LEMMA_6,
        });
    }
    format!("{object:#}\n")
}

/// Formats what the proof of Giakkoupis and Woelfel 2014 counts, beside its constants.
fn lemmas_as_text(lemmas: &Lemmas) -> String {
    let measured = |ratio: Option<f64>| ratio.map_or("none".into(), |ratio| format!("{ratio:.3}"));
    let share = format!("good writes, of {} to R", grouped(lemmas.writes));
    let passages = format!("passages per good write, of {}", grouped(lemmas.good_writes));
    columns(&[
        ["The proof counts", "measured", "the paper, in expectation"].map(String::from).to_vec(),
        vec![
            share,
            measured(lemmas.share_of_good_writes()),
            "at least 1/2 = 0.500 (Lemma 5)".into(),
        ],
        vec![
            passages,
            measured(lemmas.passages_per_good_write()),
            "at least 1/36 = 0.028 (Lemma 6)".into(),
        ],
    ])
}

fn as_text(subject: &dyn Subject, args: &Simulate, outcome: &Outcome) -> String {
    let size = subject.size();
    let mutant = subject.mutant().map_or(String::new(), |name| format!(", mutant {name}"));
    let timestamps = subject.variant().map_or(String::new(), |kind| format!(", {kind} timestamps"));
    let mut text = format!(
        "{}{timestamps}{mutant}: {size}, scheduler {}, seed {}\n  {} passages in {} steps\n\n",
        subject.name(),
        args.scheduler,
        args.seed,
        grouped(outcome.meter.cc.passages),
        grouped(outcome.steps)
    );
    let row = |name: &str, cost: &Cost, claim: &str| {
        vec![name.into(), format!("{:.2}", cost.mean()), cost.max.to_string(), claim.into()]
    };
    let claims = subject.claims();
    text.push_str(&columns(&[
        ["RMR per passage", "mean", "max", "the paper"].map(String::from).to_vec(),
        row("CC", &outcome.meter.cc, claims.rmr.cc),
        row("DSM", &outcome.meter.dsm, claims.rmr.dsm),
    ]));
    if let Some(lemmas) = &outcome.lemmas {
        text.push('\n');
        text.push_str(&lemmas_as_text(lemmas));
    }
    if let Some(blocked) = blocked(subject, args, outcome) {
        text.push_str(&format!(
            "\nProcess {} was blocked {blocked} times in one passage.\n",
            size.n - 1
        ));
    }
    if !outcome.crashed.is_empty() {
        text.push_str(&format!("\nCrashed: {:?}.\n", outcome.crashed));
    }
    if outcome.stuck {
        text.push_str("\nThe others wait for ever.\n");
    }
    if outcome.cut_off {
        text.push_str(&format!(
            "\nCut off after {} steps; see --max-steps.\n",
            grouped(args.max_steps)
        ));
    }
    match outcome.violations {
        0 => text.push_str("\nNo violation was seen.\n"),
        times => {
            let names = outcome.violated.iter().copied().collect::<Vec<_>>().join(", ");
            text.push_str(&format!("\n{times} VIOLATIONS of {names}.\n"));
        }
    }
    text
}
