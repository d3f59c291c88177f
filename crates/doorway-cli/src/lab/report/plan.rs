//! The plan of a report: commands, as a user would type them.

use doorway_bench::GROUPS;
use doorway_core::{ANY_NUMBER, Problem, Property, RegisterKind, Setting, Size};
use doorway_lab::Entrant;

use super::part::seconds_of_bench;

/// A command to run.
#[derive(Clone, Debug)]
pub(super) struct Job {
    /// The command, without `doorway` and `--json`.
    pub(super) command: String,
    /// About how long it takes.
    pub(super) seconds: f64,
}

/// All commands about one algorithm.
pub(super) struct Study {
    pub(super) entrant: &'static Entrant,
    pub(super) checks: Vec<Job>,
    pub(super) curves: Job,
    /// How many values the shared memory takes, where the paper makes a statement about it.
    pub(super) values: Vec<Job>,
}

impl Study {
    fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.checks.iter().chain([&self.curves]).chain(&self.values)
    }
}

/// All commands of a report.
pub(super) struct Plan {
    pub(super) studies: Vec<Study>,
    /// The native time of the algorithms' passages.
    pub(super) native: Job,
    /// Locks against their peers.
    pub(super) locks: Vec<Job>,
}

impl Plan {
    /// Plans a report about these algorithms, with locks or without.
    pub(super) fn new(entrants: &[&'static Entrant], locks: bool, quick: bool) -> Self {
        let native = bench(if quick { "bench algorithms --quick" } else { "bench algorithms" });
        let locks = match (locks, quick) {
            (false, _) => Vec::new(),
            (true, true) => QUICK_LOCKS.map(bench).to_vec(),
            (true, false) => {
                let groups = GROUPS.iter().map(|group| format!("bench {}", group.name));
                groups
                    .map(|command| bench(&command))
                    .filter(|job| job.command != native.command)
                    .collect()
            }
        };
        Self {
            studies: entrants.iter().map(|entrant| study(entrant, quick)).collect(),
            native,
            locks,
        }
    }

    /// Returns every command.
    pub(super) fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.studies.iter().flat_map(Study::jobs).chain([&self.native]).chain(&self.locks)
    }
}

/// Enough to compare the speed of locks: the shortest benches with medians of seven rounds.
const QUICK_LOCKS: [&str; 6] = [
    "bench uncontended --quick",
    "bench task --quick",
    "bench pinned --quick --seconds 0.01",
    "bench turns --quick --seconds 0.003",
    "bench slots --quick",
    "bench groups --quick --seconds 0.005",
];

fn bench(command: &str) -> Job {
    // Threads also have to be started and joined.
    Job { command: command.into(), seconds: 1.2 * seconds_of_bench(command) }
}

fn study(entrant: &'static Entrant, quick: bool) -> Study {
    let rmr =
        |rest: &str, seconds| Job { command: format!("lab rmr {} {rest}", entrant.name), seconds };
    Study {
        entrant,
        checks: checks(entrant, quick),
        curves: if quick { rmr("--up-to 32", 0.6) } else { rmr("--up-to 64", 15.0) },
        values: if entrant.claims.values.is_empty() { Vec::new() } else { values(entrant, quick) },
    }
}

/// Returns where claims are checked, and how many states are explored there at most.
fn settings(entrant: &Entrant, quick: bool) -> Vec<(Setting, u64)> {
    let one = |setting: Setting| setting.passages(1);
    let small = 1_000_000;
    let (middle, large) = if quick { (2_000_000, 600_000) } else { (20_000_000, 10_000_000) };
    let mut all = match entrant.claims.problem {
        Problem::Mutex if entrant.attempts.is_some() => {
            let two = Setting::slots(2, 1);
            vec![(one(two).retries(ANY_NUMBER), small), (two.passages(2), large)]
        }
        Problem::Mutex => {
            vec![
                (Setting::slots(2, 1), small),
                (Setting::slots(3, 1), middle),
                (Setting::slots(4, 1), large),
            ]
        }
        Problem::KExclusion => {
            let three = Setting::slots(3, 2);
            vec![(Setting::slots(2, 1), small), (one(three), middle), (three, large)]
        }
        Problem::Group => {
            let three = Setting::group(3, 2);
            vec![(Setting::group(2, 2), small), (one(three), middle), (three, large)]
        }
    };
    all.retain(|(setting, _)| entrant.build(setting.size, None, false).is_ok());
    all
}

/// What `lab check` explores unless told otherwise.
const DEFAULT_STATES: u64 = 50_000_000;

/// The most states among which to look for a property that is not claimed and may hold or not.
const UNCLAIMED_STATES: u64 = 1_000_000;

fn checks(entrant: &Entrant, quick: bool) -> Vec<Job> {
    let settings = settings(entrant, quick);
    let claims = &entrant.claims;
    let mut jobs = Vec::new();
    for (setting, most) in &settings {
        jobs.push(check(entrant, setting, *most, ""));
    }
    // Unclaimed properties, and crashes, are not looked for in the largest setting.
    let few = &settings[..settings.len().saturating_sub(1).max(1)];
    for (setting, _) in few {
        for property in columns(claims.problem) {
            let decided = claims.properties.contains(&property)
                || claims.refuted.iter().any(|it| it.0 == property);
            if !decided && (property != Property::BoundedRegisters || claims.bound.is_some()) {
                jobs.push(check(
                    entrant,
                    setting,
                    UNCLAIMED_STATES,
                    &format!(" --property {property}"),
                ));
            }
        }
    }
    for (property, setting) in claims.refuted {
        jobs.push(check(entrant, setting, DEFAULT_STATES, &format!(" --property {property}")));
    }
    // As many crashes as the algorithm tolerates, and one more.
    let progress = progress(entrant);
    for (setting, most) in few {
        let tolerated = (claims.crashes)(setting.size);
        for crashes in [tolerated, tolerated + 1]
            .into_iter()
            .filter(|crashes| (1..setting.size.n).contains(crashes))
        {
            jobs.push(check(
                entrant,
                setting,
                *most,
                &format!(" --crashes {crashes} --property {progress}"),
            ));
        }
    }
    let (least, most) = &settings[0];
    if claims.registers != RegisterKind::Atomic {
        for registers in [RegisterKind::Regular, RegisterKind::Safe] {
            jobs.push(check(entrant, &least.on(registers), *most, ""));
        }
    }
    if entrant.build(least.size, None, false).is_ok_and(|mut subject| subject.let_kill(1)) {
        jobs.push(check(entrant, &least.passages(1).kills(1), *most, ""));
    }
    let mut seen = std::collections::BTreeSet::new();
    jobs.retain(|job| seen.insert(job.command.clone()));
    jobs
}

/// Returns the property that a crash may take away.
fn progress(entrant: &Entrant) -> Property {
    let starvation = Property::StarvationFreedom;
    if entrant.claims.properties.contains(&starvation) {
        starvation
    } else {
        Property::DeadlockFreedom
    }
}

/// Returns the properties to show for algorithms for a problem. With one slot, the special and the
/// general ones are the same; with several slots, or with sessions, only the general ones are
/// meant. That the doorway is bounded is part of the order.
pub(super) fn columns(problem: Problem) -> Vec<Property> {
    let left_out: &[Property] = match problem {
        Problem::Mutex => &[Property::KExclusion, Property::KFcfs, Property::OrderedEntry],
        Problem::KExclusion => &[Property::MutualExclusion, Property::Fcfs],
        Problem::Group => &[Property::MutualExclusion],
    };
    let shown = |property: &Property| {
        property.suits(problem)
            && !left_out.contains(property)
            && *property != Property::BoundedDoorway
    };
    Property::ALL.iter().copied().filter(shown).collect()
}

fn check(entrant: &Entrant, setting: &Setting, most: u64, rest: &str) -> Job {
    let Size { n, k, sessions } = setting.size;
    let mut command = format!("lab check {} -n {n}", entrant.name);
    match entrant.claims.problem {
        Problem::Mutex => {}
        Problem::KExclusion => command += &format!(" -k {k}"),
        Problem::Group => command += &format!(" --sessions {sessions}"),
    }
    match setting.passages {
        Some(passages) => command += &format!(" --passages {passages}"),
        None if entrant.attempts.is_some() || setting.kills.is_some() => {
            command += " --passages unbounded"
        }
        None => {}
    }
    if let Some(p) = setting.endless {
        command += &format!(" --endless {p}");
    }
    match setting.retries {
        Some(ANY_NUMBER) => command += " --retries unbounded",
        Some(retries) => command += &format!(" --retries {retries}"),
        None => {}
    }
    if setting.registers != RegisterKind::Atomic {
        command += &format!(" --registers {}", setting.registers);
    }
    if let Some(kills) = setting.kills {
        command += &format!(" --kills {kills}");
    }
    // An estimate: few searches reach their limit.
    let seconds = if n > 2 { 0.4 + most as f64 / 2e6 } else { 0.1 };
    let most = if most == DEFAULT_STATES { String::new() } else { format!(" --max-states {most}") };
    Job { command: format!("{command}{most}{rest}"), seconds }
}

/// Uses every number of slots, as long as there are few processes.
fn values(entrant: &Entrant, quick: bool) -> Vec<Job> {
    let most = if quick { 4 } else { 6 };
    let sizes = (2..=most).flat_map(|n| (1..n).map(move |k| Setting::slots(n, k)));
    sizes.map(|setting| check(entrant, &setting, 5_000_000, " --property k-exclusion")).collect()
}
