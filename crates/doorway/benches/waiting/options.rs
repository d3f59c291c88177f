//! The command line of the benchmark, and what all parts share.

use std::{env, process::ExitCode};

use doorway::shared::Directory;

use crate::{commands, handover, idle, kill, peers::SystemV, supervisor, turns};

/// The most processes that a lock of the benchmark has room for.
const CAPACITY: usize = 4095;

/// The most processes that exist at the same time, and a few.
const PROCESSES: libc::rlim_t = 2100;

/// The most files that one process may have to open at the same time.
const FILES: libc::rlim_t = 1100;

const PARTS: [&str; 4] = ["idle", "kill", "handover", "turns"];

/// What all parts share.
pub(crate) struct Bench {
    /// A directory for locks with room for thousands of waiters.
    pub(crate) locks: Directory,
    /// How often each figure is measured.
    pub(crate) runs: usize,
    /// How many processes spin beside `turns`, one setting after the other.
    pub(crate) busy: Vec<usize>,
    /// Made by the supervisor, which outlives the runner and removes it.
    pub(crate) system_v: SystemV,
}

struct Options {
    parts: Vec<String>,
    runs: usize,
    busy: Vec<usize>,
}

impl Options {
    fn parse(arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self { parts: Vec::new(), runs: 10, busy: vec![0, 1] };
        let mut arguments = arguments.filter(|argument| argument != "--bench");
        while let Some(argument) = arguments.next() {
            let mut number = || {
                let value = arguments.next().and_then(|text| text.parse::<usize>().ok());
                value.ok_or_else(|| format!("{argument} needs a number"))
            };
            match &argument[..] {
                "--runs" => options.runs = number()?.max(1),
                "--busy" => options.busy = vec![number()?],
                part if PARTS.contains(&part) => options.parts.push(argument),
                _ => {
                    return Err(format!(
                        "unknown argument {argument}; the parts are {}",
                        PARTS.join(", ")
                    ));
                }
            }
        }
        Ok(options)
    }

    fn wants(&self, part: &str) -> bool {
        self.parts.is_empty() || self.parts.iter().any(|wanted| wanted == part)
    }
}

pub(crate) fn main() -> ExitCode {
    // `cargo test --all-targets` runs benchmarks without this argument.
    if !env::args().any(|argument| argument == "--bench") {
        println!("nothing is measured without --bench, which cargo bench passes");
        return ExitCode::SUCCESS;
    }
    let options = match Options::parse(env::args().skip(1)) {
        Ok(options) => options,
        Err(message) => {
            eprintln!("waiting: {message}");
            return ExitCode::from(2);
        }
    };
    raise(libc::RLIMIT_NPROC, PROCESSES, "processes (ulimit -u)");
    raise(libc::RLIMIT_NOFILE, FILES, "open files (ulimit -n)");
    let place = tempfile::Builder::new().prefix("doorway-bench-").tempdir_in("/dev/shm");
    let place = place.expect("there is shared memory");
    let locks =
        Directory::at(place.path()).expect("the directory is this user's").with_capacity(CAPACITY);
    let bench =
        Bench { locks, runs: options.runs, busy: options.busy.clone(), system_v: SystemV::new() };
    supervisor::supervise(|| {
        if options.wants("idle") {
            idle::run(&bench);
        }
        if options.wants("kill") {
            kill::run(&bench);
        }
        if options.wants("handover") {
            handover::run(&bench);
            commands::run(&bench);
        }
        if options.wants("turns") {
            turns::run(&bench);
        }
    })
}

/// Raises the soft limit to the hard one. Prints a warning where that is less than needed.
fn raise(resource: libc::__rlimit_resource_t, needed: libc::rlim_t, what: &str) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is valid in both calls.
    unsafe {
        libc::getrlimit(resource, &mut limit);
        limit.rlim_cur = limit.rlim_max;
        libc::setrlimit(resource, &limit);
        libc::getrlimit(resource, &mut limit);
    }
    if limit.rlim_cur < needed {
        eprintln!(
            "waiting: the limit of {what} is {}; some parts need {needed} and may fail",
            limit.rlim_cur
        );
    }
}
