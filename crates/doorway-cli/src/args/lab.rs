//! The commands of the laboratory.

use std::{path::PathBuf, str::FromStr};

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum Lab {
    /// List every algorithm: paper, primitives, claims, mutants
    List(List),
    /// Explore every interleaving and decide the algorithm's properties
    #[command(after_help = CHECK_HELP)]
    Check(Box<Check>),
    /// Run a long schedule and count remote memory references
    #[command(after_help = SIMULATE_HELP)]
    Simulate(Simulate),
    /// Measure how remote memory references grow with the number of processes
    #[command(after_help = RMR_HELP)]
    Rmr(Rmr),
    /// Make up a schedule by hand, in a browser
    #[command(after_help = EXPLORE_HELP)]
    Explore(Explore),
    /// Check, measure and bench everything, and write it all on one page
    #[command(after_help = REPORT_HELP)]
    Report(Report),
    /// Run a saved trace again, step by step
    #[command(after_help = REPLAY_HELP)]
    Replay(Replay),
}

const CHECK_HELP: &str = "\
Exit code:
  0  all properties hold and the search is complete
  1  a property is violated
  2  usage error
  3  nothing is violated, but the search is incomplete
 71  the system refuses: no room for more states, or FILE cannot be written
  interrupted by Ctrl-C or SIGTERM, it ends by that signal (130 or 143 in a shell)

Properties:
  exclusion  mutual-exclusion, k-exclusion, session-exclusion
  progress   deadlock-freedom, starvation-freedom, bounded-exit, k-deadlock-avoidance,
             concurrent-entry, concurrent-occupancy, strong-concurrent-entry
  order      fcfs, k-fcfs, fife, fifo-enabling
  space      bounded-registers
  declared   invariant:NAME, as in lab list

A script is as for lab simulate (see its help), and may also say
  ID chooses COIN  one step, a choice that falls on this outcome (randomized)
  ID reads VALUE   one step, a read that overlaps a write and returns VALUE, or ∞ (--registers safe)
  again            the lines from here on are repeated for ever; who does not move there and is not in
                   its remainder has crashed, of whom there may be as many as --crashes says

With --retries R, who begins another attempt after R of them takes no further step: what would come of
it is not known, and said to be so.

With --checkpoint FILE, Ctrl-C and SIGTERM write the states found so far to FILE, and the same command
goes on with them; so does one with another --max-states, --workers or --max-memory. FILE is also written
every 5 minutes. It is removed when everything is decided, and kept when the search is incomplete or a
property could not be decided. Only the doorway that wrote it can read it. Only the first search is kept;
those that decide fcfs, k-fcfs, fife and invariants are made again.

Of states, as many are in memory as --max-memory says, by default 80 % of what is available at the start;
the rest goes to files without names, in the directory of FILE, else in $TMPDIR, else in /var/tmp. On disk
the search is slower, and what needs the graph of all states in memory is not decided if it does not fit.

With --equivalent-to, both algorithms are run side by side: after every schedule, is everybody in the
same region (remainder, trying, critical, exit) in both? Nothing else is decided then.

With --promela, the model is of the automata that the checker has learned: each state of the search is
a state of the model, and each step one transition. SPIN stores as many states as the search of all
states finds, and asserts exclusion. Registers have to be atomic, and the passages of algorithms with
tickets bounded. A search that stops at --max-states makes no model.

Examples:
  doorway lab check bakery -n 3
  doorway lab check bakery --property fifo-enabling
  doorway lab check bakery --equivalent-to burns-lamport
  doorway lab check burns-lamport -n 3 --property starvation-freedom --trace starved.json
  doorway lab check k-bakery -n 4 -k 2 --passages 1 --property fife --trace fife.html
  doorway lab check black-white-bakery --mutant as-printed
  doorway lab check bakery --passages 2 --promela bakery.pml
  doorway lab check group-black-white-bakery -n 3 --sessions 2
  doorway lab check k-bakery -n 4 -k 2 --passages 1 --max-states 1000000000 --checkpoint search";

const EXPLORE_HELP: &str = "\
Prints the address of a page, served to this machine alone until Ctrl-C. In the page, say who moves
next or crashes, see what each could do and whether it would get in alone, go back, let a scheduler
decide for a while, and save what came of it: as a trace for lab replay, or as a script for lab check
--script and lab simulate.

Examples:
  doorway lab explore bakery
  doorway lab explore k-bakery -n 3 -k 2
  doorway lab explore group-bakery -n 3 --sessions 2";

const REPLAY_HELP: &str = "\
The page shows the run as a diagram with a lane for each process, the registers, the remote memory
references and the pseudocode. It is one file that needs no network. ← and → make one step, Home and End
go to the start and the end.

Examples:
  doorway lab check k-bakery -n 4 -k 2 --passages 1 --property fife --trace fife.json
  doorway lab replay fife.json
  doorway lab replay fife.json --html fife.html
  doorway lab replay fife.json --svg fife.svg";

const REPORT_HELP: &str = "\
Runs lab check, lab rmr and bench with many arguments and writes DIR/index.html: one page with tables and
figures of what came of it, each with the command that makes it, and a page of its own for every
violation. What is done is kept in DIR/parts: interrupted and started again, it goes on where it was.
What another doorway has made, or what is damaged, is made again.

With names of algorithms, only these, and no locks beside them.

Exit code:
  0  done
  1  something that is claimed does not hold; the page says what
  2  usage error, or DIR cannot be written

Examples:
  doorway lab report --quick -o quick             about two minutes
  doorway lab report -o full                      less than an hour
  doorway lab report k-bakery k-bakery-fife --quick";

const SIMULATE_HELP: &str = "\
Schedulers:
  round-robin        one after the other
  random             anybody, each as likely
  pct                priorities that change at random
  oblivious          an adversary whose schedule is fixed before the run: anybody, each as likely
    oblivious:bursts               many turns in a row for one process, then for another
    oblivious:skewed               process i is i + 1 times as slow as process 0
  locality-aware     one that sees of every step whether it reads or writes and whether it is local
                     in DSM, and when somebody enters or leaves (paper 004): anybody
    locality-aware:hold-writes     remote writes are held back until everybody else waits
    locality-aware:hold-release    whoever is inside is held back until everybody else waits
    locality-aware:backpack        against randomized: whoever is about to join is held back until its
                                   leader has entered
  strong-adaptive    one that sees everything: anybody
    strong-adaptive:victim         makes the last process pay in CC as often as it can
    strong-adaptive:backpack       against randomized: by the coins, leaders find nobody to wait for
  002-section-4      burns-lamport only: its last process is blocked n(n-1)/2 times in one passage
  002-section-6      group-black-white-bakery only: what lets two sessions in if it is --mutant naive
  003-section-5:I,J  queue and the tickets only, k ≤ J < I < n: one of the runs h(I, J) of which no
                     two may leave the same value in the shared variable
  script:FILE        what the file says, line by line; # begins a comment
                       ID               one step of the process
                       ID*COUNT         that many
                       ID past LINE     until it has executed that line of the paper
                       ID until REGION  until it is there: remainder, doorway, waiting, critical, exit
                       ID until REGION within COUNT  the same, or that many steps
                       ID asks SESSION  one step, the first of a passage, for this session

Exit code:
  0  no property was violated
  1  a property was violated
  2  usage error";

const RMR_HELP: &str = "\
Runs each algorithm with n = 2, 4, 8, … processes, counts the remote memory references of every
passage with coherent caches (CC) and with distributed shared memory (DSM), and fits their worst
and their mean over n, log₂ n and n². What is not local-spin has no bound in DSM: it is not fitted,
and it is shown what waiting costs. With --exact, the most over all runs, for 2 and 3 processes.

With --plot, the means in DSM are drawn as well. A run that was cut off is not drawn.

What --up-to and --scheduler say of one algorithm alone, as ALG=VALUE, goes before --up-to and beside
--scheduler for all.

Schedulers: random, pct, round-robin and, for burns-lamport, 002-section-4; adversaries if asked
for; see lab simulate.

Exit code:
  0  done
  2  usage error

Examples:
  doorway lab rmr
  doorway lab rmr bakery yang-anderson --up-to 256
  doorway lab rmr burns-lamport --scheduler 002-section-4 --exact
  doorway lab rmr yang-anderson --up-to 4096 --total 100000 --scheduler oblivious --max-steps 10000000000
  doorway lab rmr bakery mcs --up-to 1024 --up-to bakery=64 --scheduler oblivious --plot mean.svg";

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which instance of which algorithm.
#[derive(Debug, Args)]
pub(crate) struct Instance {
    /// The algorithm, as in `doorway lab list`
    #[arg(value_name = "ALG")]
    pub(crate) algorithm: String,
    /// Processes
    #[arg(short, value_name = "N", default_value_t = 2)]
    pub(crate) n: usize,
    /// Slots (k-exclusion)
    #[arg(short, value_name = "K")]
    pub(crate) k: Option<usize>,
    /// Sessions (groups); default: 2
    #[arg(long, value_name = "S")]
    pub(crate) sessions: Option<usize>,
    /// Timestamps of timestamp-bakery: abstract (the default) or bounded
    #[arg(long, value_name = "KIND")]
    pub(crate) timestamps: Option<String>,
    /// Change the algorithm as its mutant of this name does
    #[arg(long, value_name = "NAME")]
    pub(crate) mutant: Option<String>,
    /// Let processes give up their waits at any time, where the algorithm knows how
    #[arg(long)]
    pub(crate) abandon: bool,
    /// How many processes may be killed, at any step, and come back as others
    #[arg(long, value_name = "F")]
    pub(crate) kills: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct Check {
    #[command(flatten)]
    pub(crate) instance: Instance,
    /// Passages per process, or `unbounded`; default: unbounded where that can be explored, else 2
    #[arg(long, value_name = "P")]
    pub(crate) passages: Option<String>,
    /// Let this process make any number of passages, whatever --passages says of the others
    #[arg(long, value_name = "ID")]
    pub(crate) endless: Option<usize>,
    /// Attempts per passage that are followed, or `unbounded`; default: as the algorithm says
    #[arg(long, value_name = "R")]
    pub(crate) retries: Option<String>,
    /// Kind of registers: atomic, regular or safe
    #[arg(long, value_name = "KIND", default_value = "atomic")]
    pub(crate) registers: String,
    /// How many processes may crash (for deadlock and starvation)
    #[arg(long, value_name = "F", default_value_t = 0)]
    pub(crate) crashes: usize,
    /// Decide this property; may be repeated; default: all that the algorithm claims
    #[arg(long, value_name = "NAME")]
    pub(crate) property: Vec<String>,
    /// Decide instead whether the algorithm is equivalent to this one
    #[arg(long, value_name = "ALG", conflicts_with_all = ["property", "trace", "crashes", "abandon", "kills", "retries", "endless"])]
    pub(crate) equivalent_to: Option<String>,
    /// Follow this schedule instead of all: does it violate the --property?
    #[arg(long, value_name = "FILE", conflicts_with_all = ["equivalent_to", "passages", "abandon", "kills", "retries", "endless"])]
    pub(crate) script: Option<PathBuf>,
    /// Stop after this many states
    #[arg(long, value_name = "M", default_value_t = 50_000_000)]
    pub(crate) max_states: u64,
    /// Workers; default: one per core
    #[arg(long, short = 'j', value_name = "J")]
    pub(crate) workers: Option<usize>,
    /// Keep an interrupted search in this file, and go on with one that is kept there
    #[arg(long, value_name = "FILE", conflicts_with_all = ["equivalent_to", "script"])]
    pub(crate) checkpoint: Option<PathBuf>,
    /// Memory for states, such as 8G; more go to disk; default: 80 % of what is available
    #[arg(long, value_name = "SIZE", value_parser = bytes, conflicts_with_all = ["equivalent_to", "script"])]
    pub(crate) max_memory: Option<u64>,
    /// Show how long each stage took (--json always has it)
    #[arg(long, conflicts_with_all = ["equivalent_to", "script"])]
    pub(crate) timings: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the first counterexample here, for `lab replay`, or to look at if it is .html or .svg
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Also write a model in Promela here, to be explored by SPIN
    #[arg(long, value_name = "FILE", conflicts_with_all = ["equivalent_to", "script"])]
    pub(crate) promela: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Simulate {
    #[command(flatten)]
    pub(crate) instance: Instance,
    /// Who moves next, see below
    #[arg(long, value_name = "NAME", default_value = "random")]
    pub(crate) scheduler: String,
    /// Passages per process
    #[arg(long, value_name = "P", default_value_t = 100)]
    pub(crate) passages: u64,
    /// Seed of everything that is random
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Crash this many processes, at random steps outside their remainder
    #[arg(long, value_name = "F", default_value_t = 0)]
    pub(crate) crashes: usize,
    /// Stop after this many steps
    #[arg(long, value_name = "M", default_value_t = 100_000_000)]
    pub(crate) max_steps: u64,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Rmr {
    /// The algorithms, as in `doorway lab list`; default: all
    #[arg(value_name = "ALG")]
    pub(crate) algorithms: Vec<String>,
    /// Slots (k-exclusion); among few processes one less than there are; default: 2
    #[arg(short, value_name = "K")]
    pub(crate) k: Option<usize>,
    /// Sessions (groups); default: 2
    #[arg(long, value_name = "S")]
    pub(crate) sessions: Option<usize>,
    /// The most processes; ALG=N for one algorithm; default: 64
    #[arg(long, value_name = "N")]
    pub(crate) up_to: Vec<For<usize>>,
    /// Who moves next; may be repeated; ALG=NAME for one algorithm; default: all there are for it
    #[arg(long, value_name = "NAME")]
    pub(crate) scheduler: Vec<For<String>>,
    /// Passages per process
    #[arg(long, value_name = "P", default_value_t = 5)]
    pub(crate) passages: u64,
    /// Passages of all processes together, at least, shared out evenly; instead of --passages
    #[arg(long, value_name = "P", conflicts_with = "passages")]
    pub(crate) total: Option<u64>,
    /// Seed of everything that is random
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Stop a run after this many steps; it is then not fitted
    #[arg(long, value_name = "M", default_value_t = 1_000_000_000)]
    pub(crate) max_steps: u64,
    /// Find the most references over all runs, for 2 and 3 processes
    #[arg(long)]
    pub(crate) exact: bool,
    /// Draw the means in DSM over n into this file (SVG)
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
    /// With --exact: give up a search after this many states
    #[arg(long, value_name = "M", default_value_t = 5_000_000)]
    pub(crate) max_states: u64,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Explore {
    #[command(flatten)]
    pub(crate) instance: Instance,
}

#[derive(Debug, Args)]
pub(crate) struct Report {
    /// Only these algorithms, as in `doorway lab list`; default: all
    #[arg(value_name = "ALG")]
    pub(crate) algorithms: Vec<String>,
    /// Where to write the page and what it is made from
    #[arg(short = 'o', long = "output", value_name = "DIR", default_value = "doorway-report")]
    pub(crate) directory: PathBuf,
    /// Fewer processes, shorter measurements
    #[arg(long)]
    pub(crate) quick: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// A trace written by `doorway lab check --trace`
    pub(crate) file: PathBuf,
    /// Write the run to this file as a page to look at
    #[arg(long, value_name = "OUT")]
    pub(crate) html: Option<PathBuf>,
    /// Write the run to this file as a picture (SVG), for documents
    #[arg(long, value_name = "OUT")]
    pub(crate) svg: Option<PathBuf>,
}

/// A number of bytes, with a unit if it has one: K, M, G or T, each 1024 times the one before.
fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit.to_ascii_uppercase().trim_end_matches('B').trim_end_matches('I') {
        "" => Some(0),
        "K" => Some(10),
        "M" => Some(20),
        "G" => Some(30),
        "T" => Some(40),
        _ => None,
    };
    let bytes = shift.and_then(|shift| number.parse::<u64>().ok()?.checked_mul(1 << shift));
    bytes.ok_or_else(|| "give a size such as 500M or 8G".into())
}

/// A value for every algorithm, or as `ALG=VALUE` for one of them.
#[derive(Clone, Debug)]
pub(crate) struct For<T> {
    pub(crate) algorithm: Option<String>,
    pub(crate) value: T,
}

impl<T> For<T> {
    /// Whether it is said of this algorithm, by its name or with all others.
    pub(crate) fn concerns(&self, name: &str) -> bool {
        self.algorithm.as_ref().is_none_or(|algorithm| algorithm == name)
    }
}

impl<T: FromStr> FromStr for For<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        let (algorithm, value) = match text.split_once('=') {
            Some((algorithm, value)) => (Some(algorithm.into()), value),
            None => (None, text),
        };
        Ok(Self { algorithm, value: value.parse()? })
    }
}
