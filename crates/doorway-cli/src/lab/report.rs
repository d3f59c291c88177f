//! `doorway lab report`: runs many commands and writes one page with the results. A user can type
//! each of these commands, and the page names the command for each figure. The report computes
//! nothing itself.

mod curves;
mod locks;
mod page;
mod part;
mod plan;
mod verdicts;

use std::{
    collections::{BTreeSet, HashMap},
    process::ExitCode,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use doorway_lab::viewer::Film;

use self::{
    part::{Part, Store},
    plan::{Job, Plan},
};
use crate::{
    args::lab::Report,
    error::Failure,
    output::print,
    progress::{Pace, shown},
};

/// The results of the commands, by command.
type Parts = HashMap<String, Part>;

/// Runs the command.
pub(crate) fn run(args: &Report) -> Result<ExitCode, Failure> {
    let mut entrants = match &args.algorithms[..] {
        [] => super::listed().collect(),
        names => names.iter().map(|name| super::named(name)).collect::<Result<Vec<_>, _>>()?,
    };
    let mut seen = BTreeSet::new();
    entrants.retain(|entrant| seen.insert(entrant.name));
    let plan = Plan::new(&entrants, args.algorithms.is_empty(), args.quick);
    let store = Store::open(&args.directory)?;
    let parts: Parts = plan
        .jobs()
        .filter_map(|job| store.find(&job.command))
        .map(|part| (part.command.clone(), part))
        .collect();
    let found = parts.len();
    let page = Page { command: typed(args), plan, store, parts };
    page.run()?.end(args, found)
}

/// Returns the command that makes this report, in whatever directory.
fn typed(args: &Report) -> String {
    let quick = args.quick.then(|| "--quick".to_owned());
    let words = ["lab".to_owned(), "report".to_owned()]
        .into_iter()
        .chain(args.algorithms.iter().cloned())
        .chain(quick);
    words.collect::<Vec<_>>().join(" ")
}

/// A report, as far as it is complete.
struct Page {
    command: String,
    plan: Plan,
    store: Store,
    parts: Parts,
}

/// How often the page is written while its parts are made: for a user who does not wait for the
/// end, or interrupts it.
const EVERY: Duration = Duration::from_secs(10);

impl Page {
    /// Runs the commands whose results are missing.
    fn run(mut self) -> Result<Self, Failure> {
        for part in self.parts.values() {
            self.write_traces(part)?;
        }
        let missing = |job: &&Job| !self.parts.contains_key(&job.command);
        let jobs: Vec<Job> = self.plan.jobs().filter(missing).cloned().collect();
        let all = self.plan.jobs().count();
        let now = &Mutex::new(Now {
            pace: Pace::new(jobs.iter().map(|job| job.seconds).sum()),
            done: all - jobs.len(),
            began: Instant::now(),
            job: None,
        });
        let look = move || now.lock().unwrap_or_else(PoisonError::into_inner);
        shown(
            move || look().line(all),
            move || {
                let mut written = Instant::now();
                for job in jobs {
                    look().begin(&job);
                    let part = self.store.make(&job.command)?;
                    self.write_traces(&part)?;
                    self.parts.insert(job.command.clone(), part);
                    look().end(&job);
                    if written.elapsed() > EVERY {
                        self.write()?;
                        written = Instant::now();
                    }
                }
                Ok(self)
            },
        )
    }

    /// Writes a page for each violation.
    fn write_traces(&self, part: &Part) -> Result<(), Failure> {
        for (name, trace) in part.pages() {
            let film = Film::of(trace)
                .map_err(|error| Failure::Trace { path: name.clone().into(), error })?;
            self.store.write(&name, &film.page())?;
        }
        Ok(())
    }

    fn write(&self) -> Result<(), Failure> {
        self.store.write("index.html", &page::page(self))
    }

    /// Writes the page, and prints where it is and what is wrong.
    fn end(self, args: &Report, found: usize) -> Result<ExitCode, Failure> {
        self.write()?;
        let wrong = page::wrong(&self);
        let before = if found > 0 { format!(", {found} of them before") } else { String::new() };
        let mut text = format!("{}\n", args.directory.join("index.html").display());
        text += &format!("  {} commands were run{before}: what was claimed ", self.parts.len());
        text += &match wrong.len() {
            0 => "holds as far as it was explored\n".to_owned(),
            _ => format!("DOES NOT HOLD in {} of them\n", wrong.len()),
        };
        wrong.iter().for_each(|command| text += &format!("  doorway {command}\n"));
        print(&text)?;
        Ok(ExitCode::from(u8::from(!wrong.is_empty())))
    }
}

/// The progress of the report.
struct Now {
    pace: Pace,
    /// How many commands have been run.
    done: usize,
    /// The command that runs now, and when it began.
    began: Instant,
    job: Option<Job>,
}

impl Now {
    fn begin(&mut self, job: &Job) {
        (self.began, self.job) = (Instant::now(), Some(job.clone()));
    }

    fn end(&mut self, job: &Job) {
        self.pace.add(job.seconds);
        (self.done, self.job) = (self.done + 1, None);
    }

    fn line(&self, all: usize) -> String {
        let (command, planned) =
            self.job.as_ref().map_or(("", 0.0), |job| (&job.command, job.seconds));
        let left = self.pace.left(self.began.elapsed().as_secs_f64().min(planned));
        format!("{} {} of {all} · {left} · {command}", bar(self.done, all), self.done)
    }
}

/// Draws a progress bar.
fn bar(done: usize, all: usize) -> String {
    const WIDE: usize = 24;
    let full = done * WIDE / all.max(1);
    format!("▕{}{}▏", "█".repeat(full), "░".repeat(WIDE - full))
}
