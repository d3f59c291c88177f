//! What `doorway run` adds to a command, beside flock(1) and GNU sem.
//!
//!     cargo bench --package doorway-cli --bench run
//!
//! In each round every way to run `true` is taken once, in turn. What a way adds is the median over
//! the rounds of its time less that of bare `true` in the same round.

use std::{
    env,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

const ROUNDS: usize = 301;

/// A way to run `true`.
struct Way {
    name: &'static str,
    command: Vec<String>,
}

impl Way {
    fn new(name: &'static str, command: &[&str]) -> Self {
        Self { name, command: command.iter().map(ToString::to_string).collect() }
    }

    fn takes(&self) -> Option<Duration> {
        let (program, rest) = self.command.split_first()?;
        let begin = Instant::now();
        let status = Command::new(program)
            .args(rest)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .ok()?;
        status.success().then(|| begin.elapsed())
    }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() {
    if env::args().any(|argument| argument == "--test") {
        return; // as cargo test asks benches
    }
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("lock");
    let (doorway, file) = (env!("CARGO_BIN_EXE_doorway"), file.to_str().expect("text"));
    let place = directory.path().join("locks");
    let place = place.to_str().expect("text");
    let mut ways = vec![
        Way::new("true", &["true"]),
        Way::new("flock F true", &["flock", file, "true"]),
        Way::new("flock --no-fork F true", &["flock", "--no-fork", file, "true"]),
        Way::new("doorway run F -- true", &[doorway, "run", "F", "--dir", place, "--", "true"]),
    ];
    let sem = Way::new("sem --fg true", &["sem", "--fg", "--id", "doorway-bench", "true"]);
    ways.retain(|way| way.takes().is_some());
    let mut times = vec![Vec::new(); ways.len()];
    for round in 0..ROUNDS {
        for i in 0..ways.len() {
            let i = (i + round) % ways.len();
            times[i].push(ways[i].takes().expect("it went well before").as_secs_f64() * 1e3);
        }
    }
    // It polls, and takes a hundred times as long.
    if sem.takes().is_some() {
        times.push(
            (0..15)
                .map(|_| sem.takes().expect("it went well before").as_secs_f64() * 1e3)
                .collect(),
        );
        ways.push(sem);
    }
    let adds =
        |i: usize| median(times[i].iter().zip(&times[0]).map(|(time, bare)| time - bare).collect());
    let flock = ways.iter().position(|way| way.name == "flock F true").map(adds);
    println!("{:<26}{:>10}{:>10}{:>16}", "", "median ms", "adds ms", "× flock adds");
    for (i, way) in ways.iter().enumerate() {
        let ratio = flock.map_or(String::new(), |flock| format!("{:.2}", adds(i) / flock));
        println!(
            "{:<26}{:>10.3}{:>10.3}{:>16}",
            way.name,
            median(times[i].clone()),
            adds(i),
            ratio
        );
    }
}
