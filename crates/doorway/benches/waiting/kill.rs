//! From the kill of a holder to the next holder being inside.

use std::{
    collections::VecDeque,
    env,
    sync::atomic::Ordering::SeqCst,
    thread::{park, sleep},
    time::Duration,
};

use doorway::shared::Permit;

use crate::{
    options::Bench,
    processes::{Children, Words, kill, now, reap, until},
    table::{Table, verdict},
};

/// Kills of a setting with few waiters, and with many, each of which takes longer to replace.
const SAMPLES: usize = 200;
const SAMPLES_OF_MANY: usize = 40;
const MANY: usize = 100;

/// How long waiters wait before the first kill. With few waiters, many lines are measured in turn,
/// so that each waiter waits about so long.
const SETTLE: Duration = Duration::from_millis(1500);
const LINES: usize = 20;

/// The targets in milliseconds.
const P50: f64 = 5.0;
const P99: f64 = 25.0;

/// Which process has the slot and is killed.
#[derive(Clone, Copy, PartialEq)]
enum Holder {
    /// The process that has acquired it.
    Process,
    /// A command that this process has started, and has given the slot to. The process is dead by
    /// the time that the command is killed.
    Command,
}

#[derive(Clone, Copy)]
struct Setting {
    holder: Holder,
    waiters: usize,
    /// How many of the first waiters are killed with the holder.
    killed: usize,
}

impl Setting {
    fn samples(self) -> usize {
        if self.waiters < MANY { SAMPLES } else { SAMPLES_OF_MANY }
    }
}

pub(crate) fn run(bench: &Bench) {
    let table = Table::new(
        "kill: from kill -9 of the holder to the next holder being inside, in ms",
        &[
            ("holder", 7),
            ("waiters", 0),
            ("waiters killed", 0),
            ("samples", 0),
            ("p50", 8),
            ("p99", 8),
            ("max", 8),
            ("target", 0),
        ],
    );
    let (process, command) = (Holder::Process, Holder::Command);
    let few = [(process, 1, 0), (command, 1, 0), (process, 11, 10)];
    let many = [(process, 500, 0), (command, 500, 0), (process, 500, 10)];
    for (i, (holder, waiters, killed)) in few.into_iter().chain(many).enumerate() {
        let times = measure(bench, &format!("kill-{i}"), Setting { holder, waiters, killed });
        let samples = times.len();
        let [half, most, all] = [samples / 2, samples * 99 / 100, samples - 1].map(|at| times[at]);
        table.row([
            if holder == Holder::Process { "process" } else { "command" }.into(),
            waiters.to_string(),
            killed.to_string(),
            samples.to_string(),
            format!("{half:.2}"),
            format!("{most:.2}"),
            format!("{all:.2}"),
            verdict(&format!("p50 ≤ {P50}, p99 ≤ {P99}"), half <= P50 && most <= P99),
        ]);
    }
}

/// Returns the times of all kills in milliseconds, sorted.
fn measure(bench: &Bench, name: &str, setting: Setting) -> Vec<f64> {
    let count = if setting.waiters < MANY { LINES } else { 1 };
    let mut lines: Vec<Line> =
        (0..count).map(|i| Line::new(bench, format!("{name}-{i}"), setting)).collect();
    sleep(SETTLE);
    let mut times: Vec<f64> = (0..setting.samples())
        .map(|i| {
            // Waiters may look in turns of some milliseconds: the kill comes at any time of a turn.
            sleep(Duration::from_micros(20_000 + now() % 40_000));
            lines[i % count].kill()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times
}

/// A lock with a holder and waiters, whose order is known.
struct Line<'a> {
    bench: &'a Bench,
    name: String,
    setting: Setting,
    words: Words,
    /// The holder and the waiters, in the order in which they entered, with the number of each.
    queue: VecDeque<(usize, i32)>,
    children: Children,
    forked: usize,
    /// The command that has the slot.
    command: Option<i32>,
}

/// The word that counts the processes that have entered; three words for each process follow.
const ENTERED: usize = 0;

/// The ticket of this process.
fn ticket(number: usize) -> usize {
    1 + 3 * number
}

/// The time at which this process has acquired the slot.
fn inside(number: usize) -> usize {
    2 + 3 * number
}

/// The PID of the command that this process has started.
fn command(number: usize) -> usize {
    3 + 3 * number
}

impl<'a> Line<'a> {
    fn new(bench: &'a Bench, name: String, setting: Setting) -> Self {
        let processes = 1 + setting.waiters + setting.samples() * (1 + setting.killed);
        let words = Words::new(1 + 3 * processes);
        let (queue, children) = (VecDeque::new(), Children::default());
        let mut line =
            Self { bench, name, setting, words, queue, children, forked: 0, command: None };
        line.add(1 + setting.waiters);
        line.start_command();
        line
    }

    /// Forks so many processes. They enter behind those that are there, in any order.
    fn add(&mut self, processes: usize) {
        let first = self.forked;
        self.forked += processes;
        let mut added: Vec<_> =
            (first..self.forked).map(|number| (number, self.fork(number))).collect();
        let words = &self.words;
        until("all processes are in line", || words[ENTERED].load(SeqCst) == self.forked as u64);
        added.sort_by_key(|(number, _)| words[ticket(*number)].load(SeqCst));
        self.queue.extend(added);
    }

    fn fork(&mut self, number: usize) -> i32 {
        let words = &self.words;
        self.children.fork(|| {
            let lock = self.bench.locks.mutex(&self.name).expect("the lock opens");
            let place = lock.enter().expect("there is room");
            words[ticket(number)].store(place.ticket(), SeqCst);
            words[ENTERED].fetch_add(1, SeqCst);
            let permit = place.wait().expect("it is granted");
            words[inside(number)].store(now(), SeqCst);
            if self.setting.holder == Holder::Command {
                words[command(number)].store(start_sleep(&permit), SeqCst);
            }
            loop {
                park();
            }
        })
    }

    /// Waits until the holder is inside. If commands hold the slot, waits for the command and kills
    /// the process that has started it.
    fn start_command(&mut self) {
        let (number, pid) = self.queue[0];
        until("the first process is inside", || self.words[inside(number)].load(SeqCst) != 0);
        if self.setting.holder == Holder::Command {
            let started = &self.words[command(number)];
            until("the command has started", || started.load(SeqCst) != 0);
            self.command = Some(started.load(SeqCst) as i32);
            kill(pid);
            self.reap(pid);
        }
    }

    /// Kills the holder and the first waiters, and replaces them. Returns after how many
    /// milliseconds the next holder was inside.
    fn kill(&mut self) -> f64 {
        let dead: Vec<i32> = self.queue.drain(..=self.setting.killed).map(|(_, pid)| pid).collect();
        let (next, _) = self.queue[0];
        let command = self.command.take();
        let killed = now();
        kill(command.unwrap_or(dead[0]));
        dead[1..].iter().for_each(|&pid| kill(pid));
        until("the next process is inside", || self.words[inside(next)].load(SeqCst) != 0);
        let time = self.words[inside(next)].load(SeqCst) - killed;
        dead.iter().for_each(|&pid| self.reap(pid));
        self.start_command();
        self.add(dead.len());
        time as f64 / 1e6
    }

    /// Reaps a child, unless that has been done.
    fn reap(&mut self, pid: i32) {
        if let Some(at) = self.children.pids.iter().position(|child| *child == pid) {
            self.children.pids.swap_remove(at);
            reap(pid);
        }
    }
}

/// Commands have lost their parents: the supervisor reaps them.
impl Drop for Line<'_> {
    fn drop(&mut self) {
        if let Some(command) = self.command {
            kill(command);
        }
    }
}

/// Starts a command that holds the slot until it is killed. Returns its PID.
fn start_sleep(permit: &Permit<'_>) -> u64 {
    permit.start(["sleep", "1000"], env::vars_os(), u64::from).expect("the command starts")
}
