//! The groups of measurements, by name.

use std::time::Duration;

use crate::{
    contender::{self, Both, Contender},
    pin,
    work::{How, Setting, Times},
};

/// How much to measure.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Rounds that count; in each round every lock runs once.
    pub rounds: u32,
    /// How long passages are counted in one measurement of a crowd.
    pub seconds: f64,
    /// Fewer settings: no think time, three numbers of threads, two of slots.
    pub quick: bool,
    /// These numbers of threads or tasks; `None` for each group's own numbers.
    pub threads: Option<Vec<usize>>,
    /// Only locks in whose names one of these occurs, and the references; none for all.
    pub locks: Vec<String>,
}

impl Plan {
    /// Returns the numbers of threads: those the user asked for, or `usual`, or `quick` for a quick
    /// plan.
    fn threads(&self, usual: &[usize], quick: &[usize]) -> Vec<usize> {
        self.threads.clone().unwrap_or_else(|| if self.quick { quick } else { usual }.to_vec())
    }
}

/// Measurements that belong together.
pub struct Group {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it shows.
    pub what: &'static str,
    /// Whether more than one process competes.
    crowd: bool,
    /// How much longer than usual.
    factor: f64,
    settings: fn(&Plan) -> Vec<Setting>,
}

/// All groups, in the order in which they run.
pub const GROUPS: [Group; 9] = [
    Group {
        name: "uncontended",
        what: "one thread, nobody else: a passage by locking, by trying, by sharing",
        crowd: false,
        factor: 1.0,
        settings: |_| vec![alone(How::Threads), alone(How::OneSession)],
    },
    Group {
        name: "task",
        what: "one task, nobody else, on both of tokio's runtimes",
        crowd: false,
        factor: 1.0,
        settings: |_| {
            [false, true].map(|current| alone(How::Tasks { current, awaits: false })).to_vec()
        },
    },
    Group {
        name: "algorithms",
        what: "the papers' algorithms for 8 processes, natively: one of them, nobody else",
        crowd: false,
        factor: 1.0,
        settings: |_| vec![alone(How::Process)],
    },
    Group {
        name: "pinned",
        what: "two threads, on a core each",
        crowd: true,
        factor: 1.0,
        settings: |_| {
            if pin::two_cores() { each_inside(2, 1, How::Pinned).to_vec() } else { Vec::new() }
        },
    },
    Group {
        name: "turns",
        what: "strict turn-taking: 16 threads, one slot, measured ten times as long",
        crowd: true,
        factor: 10.0,
        settings: |plan| {
            let threads = plan.threads(&[16], &[16]);
            threads.into_iter().flat_map(|n| each_inside(n, 1, How::Threads)).collect()
        },
    },
    Group {
        name: "slots",
        what: "32 threads, 4 slots",
        crowd: true,
        factor: 1.0,
        settings: |plan| {
            let threads = plan.threads(&[32], &[32]);
            threads.into_iter().flat_map(|n| each_inside(n, 4, How::Threads)).collect()
        },
    },
    Group {
        name: "async",
        what: "tasks that compete, with and without an await inside",
        crowd: true,
        factor: 1.0,
        settings: in_tasks,
    },
    Group {
        name: "groups",
        what: "sessions: all of one, half and half, one passage in sixteen alone",
        crowd: true,
        factor: 1.0,
        settings: with_sessions,
    },
    Group {
        name: "threads",
        what: "the whole table: 1 to 64 threads, 1 to 4 slots, short and long inside, with and without think time",
        crowd: true,
        factor: 1.0,
        settings: in_threads,
    },
];

/// The reference that every program has.
const STD: &str = "std Mutex";

const INSIDE_NS: [u64; 2] = [50, 1000];
const THINK_NS: u64 = 1000;

const fn alone(how: How) -> Setting {
    Setting { threads: 1, k: 1, inside_ns: 0, think_ns: 0, how }
}

fn each_inside(threads: usize, k: usize, how: How) -> [Setting; 2] {
    INSIDE_NS.map(|inside_ns| Setting { threads, k, inside_ns, think_ns: 0, how })
}

fn in_tasks(plan: &Plan) -> Vec<Setting> {
    let kinds = [(false, false), (false, true), (true, true)];
    let mut settings = Vec::new();
    for (current, awaits) in kinds {
        for k in [1, 4] {
            for tasks in plan.threads(&[16, 64], &[16]) {
                settings.extend(each_inside(tasks, k, How::Tasks { current, awaits }));
            }
        }
    }
    settings
}

fn with_sessions(plan: &Plan) -> Vec<Setting> {
    let mut settings = Vec::new();
    for how in [How::OneSession, How::TwoSessions, How::SomeAlone] {
        for threads in plan.threads(&[2, 16], &[16]) {
            settings.extend(each_inside(threads, 1, how));
        }
    }
    settings
}

fn in_threads(plan: &Plan) -> Vec<Setting> {
    let (slots, thinks): (&[usize], &[u64]) =
        if plan.quick { (&[1, 4], &[0]) } else { (&[1, 2, 4], &[0, THINK_NS]) };
    let mut settings = Vec::new();
    for &k in slots {
        for inside_ns in INSIDE_NS {
            for &think_ns in thinks {
                for threads in plan.threads(&[1, 2, 4, 16, 64], &[1, 2, 16]) {
                    settings.push(Setting { threads, k, inside_ns, think_ns, how: How::Threads });
                }
            }
        }
    }
    settings
}

impl Group {
    /// Returns the tables to measure. None where the machine cannot.
    pub fn benches(&'static self, plan: &Plan) -> Vec<Bench> {
        (self.settings)(plan).into_iter().map(|setting| Bench::new(self, setting, plan)).collect()
    }
}

/// One table.
pub struct Bench {
    /// The group to which it belongs.
    pub group: &'static Group,
    /// What is the same for all locks in the table.
    pub setting: Setting,
    /// The locks to compare with, the most important first.
    pub references: &'static [&'static str],
    /// The locks.
    pub contenders: Vec<Contender>,
}

impl Bench {
    fn new(group: &'static Group, setting: Setting, plan: &Plan) -> Self {
        let (locks, references): (_, &[_]) = match setting.how {
            How::Process => {
                let std = contender::threads().into_iter().filter(|lock| lock.alone.name == STD);
                (contender::algorithms().into_iter().chain(std).collect(), &[STD])
            }
            How::Threads | How::Pinned if !group.crowd => {
                let locks = [contender::threads(), contender::tries()].concat();
                (locks, &[STD, "tokio Semaphore try_acquire"])
            }
            How::Threads | How::Pinned if setting.k == 1 => {
                (contender::threads(), &["parking_lot FairMutex", "tokio Semaphore", STD])
            }
            How::Threads | How::Pinned => (contender::threads(), &["tokio Semaphore"]),
            How::Tasks { .. } => (contender::in_tasks(), &["tokio Semaphore"]),
            How::OneSession | How::TwoSessions | How::SomeAlone => {
                (contender::groups(), &["std RwLock"])
            }
        };
        let asked =
            |lock: &str| plan.locks.is_empty() || plan.locks.iter().any(|text| lock.contains(text));
        let contenders = locks
            .into_iter()
            .map(|Both { alone, crowd }| if group.crowd { crowd } else { alone })
            .filter(|lock| {
                lock.most_slots >= setting.k
                    && (references.contains(&lock.name) || asked(lock.name))
            })
            .collect();
        Self { group, setting, references, contenders }
    }

    /// Returns the rounds before those that count, and those that count. Uncontended rounds take
    /// milliseconds, so there can be more.
    pub(crate) fn rounds(&self, plan: &Plan) -> (u32, u32) {
        if self.group.crowd { (1, plan.rounds) } else { (3, 7 * plan.rounds) }
    }

    pub(crate) fn times(&self, plan: &Plan) -> Times {
        let seconds = |seconds: f64| Duration::from_secs_f64(seconds);
        if !self.group.crowd {
            return Times {
                warm_up: Duration::ZERO,
                count: seconds((plan.seconds / 50.0).min(0.002)),
                stamp: Duration::ZERO,
            };
        }
        let count = plan.seconds * self.group.factor;
        Times {
            warm_up: seconds(count / 4.0),
            count: seconds(count),
            stamp: seconds((count / 4.0).min(0.1)),
        }
    }

    /// Returns how many seconds it will take, at least.
    pub fn seconds(&self, plan: &Plan) -> f64 {
        let (Times { warm_up, count, stamp }, (before, rounds)) =
            (self.times(plan), self.rounds(plan));
        (warm_up + count + stamp).as_secs_f64()
            * f64::from(before + rounds)
            * self.contenders.len() as f64
    }
}
