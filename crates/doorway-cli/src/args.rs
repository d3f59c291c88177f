//! The command line: every command and flag, with its help.

#[cfg(feature = "etcd")]
pub(crate) mod etcd;
pub(crate) mod lab;
pub(crate) mod named;
mod quick;

use std::{env, path::PathBuf};

use clap::{Args, Parser, Subcommand};

/// Fair, crash-tolerant exclusion, and a laboratory for the algorithms behind it.
#[derive(Debug, Parser)]
#[command(name = "doorway", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// What was typed.
    pub(crate) fn typed() -> Result<Self, clap::Error> {
        let mut words = env::args_os().skip(1);
        if words.next().is_none_or(|word| word != "run") {
            return Self::try_parse();
        }
        let run = match quick::run(words) {
            Some(run) => run,
            None => Running::try_parse()?.into_run(),
        };
        Ok(Self { command: Command::Run(run) })
    }
}

/// The same with one command, so that no other has to be described first.
#[derive(Debug, Parser)]
#[command(name = "doorway", version, max_term_width = 100)]
struct Running {
    #[command(subcommand)]
    command: OnlyRun,
}

impl Running {
    fn into_run(self) -> named::Run {
        let OnlyRun::Run(run) = self.command;
        run
    }
}

#[derive(Debug, Subcommand)]
enum OnlyRun {
    /// Wait for a slot of a named lock, run a command, and give the slot back
    #[command(after_help = named::RUN_HELP)]
    Run(named::Run),
}

#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "there is only one of it")]
pub(crate) enum Command {
    /// Wait for a slot of a named lock, run a command, and give the slot back
    #[command(after_help = named::RUN_HELP)]
    Run(named::Run),
    /// Show who holds a lock and who waits, in which order and since when
    Status(named::Status),
    /// The same, live, in the terminal
    Top(named::Top),
    /// Change how many slots a lock has
    Set(named::Set),
    /// Let nobody in any more; who is inside stays, and who waits waits
    Drain(named::Named),
    /// Let them in again
    Resume(named::Named),
    /// Remove a lock that nobody holds or waits for
    Rm(named::Named),
    /// Explore, simulate and replay the published algorithms
    #[command(subcommand)]
    Lab(lab::Lab),
    /// Measure locks for threads and tasks against one another
    #[command(after_help = BENCH_HELP)]
    Bench(Bench),
    /// Print completions for a shell
    Completions {
        /// Which one
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write the pages of all commands into a directory
    Man {
        /// Where to
        #[arg(value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

const BENCH_HELP: &str = "\
In each round every lock runs once, in turn. A ratio is a lock's passages per second over those of
the reference in the same round, and its median over the rounds: above 1, the lock is faster. All
processes compete before, while and after anything is measured. Ratios come first in each table; then
passages per second, the most passages of a process over the fewest (share), and waits.

The order is judged by stamps that are taken outside the lock. A lock with a doorway of its own is
`fifo`, or it is wrong. Of the others it is said how many passages in a hundred went in ahead of k
who had begun earlier.

Exit code:
  0  done
  1  a lock let too many in, or let somebody overtake who may not
  2  usage error

Examples:
  doorway bench                                  all groups; about a quarter of an hour
  doorway bench --quick                          fewer settings, shorter measurements
  doorway bench uncontended task --json
  doorway bench turns --lock FairMutex --lock tokio
  doorway bench threads --threads 2,8 --seconds 0.5 --rounds 15";

#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// What to measure, see --list; default: everything
    #[arg(value_name = "GROUP")]
    pub(crate) groups: Vec<String>,
    /// List the groups and the locks, and measure nothing
    #[arg(long, conflicts_with = "json")]
    pub(crate) list: bool,
    /// Rounds that count, at least 7
    #[arg(long, value_name = "N", default_value_t = 7)]
    pub(crate) rounds: u32,
    /// Seconds for which passages are counted in each measurement; default: 0.1, or 0.02 with
    /// --quick
    #[arg(long, value_name = "S")]
    pub(crate) seconds: Option<f64>,
    /// Fewer settings, shorter measurements
    #[arg(long)]
    pub(crate) quick: bool,
    /// Numbers of threads or tasks; default: those of each group
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    pub(crate) threads: Vec<usize>,
    /// Only locks with this in their name, and the references; may be repeated
    #[arg(long, value_name = "TEXT")]
    pub(crate) lock: Vec<String>,
    /// Print JSON, one object per line
    #[arg(long)]
    pub(crate) json: bool,
}
