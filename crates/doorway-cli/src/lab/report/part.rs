//! A part of the report: one command, and what it prints with `--json`. Each part is kept in a file
//! of its own, so that an interrupted report can continue.

use std::{
    fs::{self, File},
    hash::{DefaultHasher, Hasher},
    io,
    path::{Path, PathBuf},
    time::Instant,
};

use clap::Parser;
use doorway_lab::trace::Trace;
use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    args::{Cli, Command, lab::Lab},
    bench,
    error::Failure,
    lab::{check, rmr},
};

const FORMAT: &str = "doorway-part";

/// The result of a command.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Part {
    format: String,
    /// The command, without `doorway` and `--json`.
    pub(super) command: String,
    /// The build of doorway that ran it.
    by: String,
    /// How long it took.
    pub(super) seconds: f64,
    /// The digest of the rest; if it does not match, the part is damaged.
    digest: String,
    /// What the command prints.
    pub(super) result: Value,
    /// The runs that violate something, in the order of the properties.
    pub(super) traces: Vec<Trace>,
}

impl Part {
    /// Runs the command, in this process and without printing anything.
    fn make(command: &str, by: &str) -> Result<Self, Failure> {
        let began = Instant::now();
        let (result, traces) = match parsed(command)? {
            Command::Lab(Lab::Check(args)) => {
                let found = check::find(&args)?;
                (found.json(), found.traces().cloned().collect())
            }
            Command::Lab(Lab::Rmr(args)) => (rmr::json(&args)?, Vec::new()),
            Command::Bench(args) => (bench::json(&args)?, Vec::new()),
            _ => {
                return Err(Failure::Usage(format!(
                    "{command}: nothing that a report is made from"
                )));
            }
        };
        let seconds = began.elapsed().as_secs_f64();
        let digest = digest_of(&result, &traces);
        Ok(Self {
            format: FORMAT.into(),
            command: command.into(),
            by: by.into(),
            seconds,
            digest,
            result,
            traces,
        })
    }

    /// Returns the name of its file, and of its traces' files, without what follows the point.
    pub(super) fn stem(command: &str) -> String {
        let words = command.split(' ').map(|word| word.trim_start_matches('-'));
        words.collect::<Vec<_>>().join("_")
    }

    /// Returns the names of the pages that show its traces, with the traces.
    pub(super) fn pages(&self) -> impl Iterator<Item = (String, &Trace)> {
        let stem = Self::stem(&self.command);
        let property = |trace: &Trace| trace.property.clone().unwrap_or_default().replace(':', "-");
        self.traces
            .iter()
            .map(move |trace| (format!("traces/{stem}_{}.html", property(trace)), trace))
    }
}

/// Parses a command line as if the user had typed it.
fn parsed(command: &str) -> Result<Command, Failure> {
    let words = ["doorway"].into_iter().chain(command.split(' '));
    Cli::try_parse_from(words)
        .map(|cli| cli.command)
        .map_err(|error| Failure::Usage(error.to_string()))
}

/// Returns how many seconds a bench takes, at least.
pub(super) fn seconds_of_bench(command: &str) -> f64 {
    match parsed(command) {
        Ok(Command::Bench(args)) => bench::seconds(&args).unwrap_or(0.0),
        _ => 0.0,
    }
}

fn digest(bytes: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    format!("{:016x}", hasher.finish())
}

fn digest_of(result: &Value, traces: &[Trace]) -> String {
    digest(json!([result, traces]).to_string().as_bytes())
}

/// The directory of parts, while no other process writes there.
pub(super) struct Store {
    directory: PathBuf,
    by: String,
    _lock: File,
}

impl Store {
    /// Opens the directory of a report, and creates it if it is missing.
    pub(super) fn open(directory: &Path) -> Result<Self, Failure> {
        for part in ["parts", "traces"] {
            let path = directory.join(part);
            fs::create_dir_all(&path).map_err(|error| Failure::File {
                verb: "create",
                path,
                error,
            })?;
        }
        let path = directory.join("parts/lock");
        let lock = File::create(&path).map_err(failed("write", &path))?;
        // Where there are no locks, at least nothing is damaged: a file appears whole or not at
        // all.
        if flock(&lock, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
            let directory = directory.display();
            return Err(Failure::Usage(format!(
                "another doorway is writing {directory}; wait for it, or try -o"
            )));
        }
        // A version does not identify a doorway: it may have been built from other sources since.
        let program = std::env::current_exe()
            .and_then(fs::read)
            .map_err(failed("read", Path::new("doorway itself")))?;
        let by = format!("{} {}", env!("CARGO_PKG_VERSION"), digest(&program));
        Ok(Self { directory: directory.into(), by, _lock: lock })
    }

    /// Returns which build of doorway this is.
    pub(super) fn by(&self) -> &str {
        &self.by
    }

    /// Returns the result of a command, if this doorway has run it here and it is not damaged.
    pub(super) fn find(&self, command: &str) -> Option<Part> {
        let part: Part =
            serde_json::from_str(&fs::read_to_string(self.path(command)).ok()?).ok()?;
        let whole = part.format == FORMAT && part.digest == digest_of(&part.result, &part.traces);
        (whole && part.command == command && part.by == self.by).then_some(part)
    }

    /// Runs a command and stores its result.
    pub(super) fn make(&self, command: &str) -> Result<Part, Failure> {
        let part = Part::make(command, &self.by)?;
        let text = serde_json::to_string(&part).expect("a part is plain data");
        put(&self.path(command), &format!("{text}\n"))?;
        Ok(part)
    }

    /// Writes a file of the report.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<(), Failure> {
        put(&self.directory.join(name), text)
    }

    fn path(&self, command: &str) -> PathBuf {
        self.directory.join(format!("parts/{}.json", Part::stem(command)))
    }
}

fn failed(verb: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Failure {
    move |error| Failure::File { verb, path: path.into(), error }
}

/// Writes a file that appears whole or not at all.
fn put(path: &Path, text: &str) -> Result<(), Failure> {
    let unfinished = path.with_extension("tmp");
    let written = fs::write(&unfinished, text).and_then(|()| fs::rename(&unfinished, path));
    written.map_err(|error| {
        // If it cannot be removed either, nothing more can be done.
        let _ = fs::remove_file(&unfinished);
        failed("write", path)(error)
    })
}
