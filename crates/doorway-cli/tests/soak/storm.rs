//! The random part: processes use 24 locks, are killed at random moments, and each is replaced.
//!
//! A lock goes through three phases. In a *storm* its processes are killed. Then it is *calm*: no
//! process is killed until each one that waits has got its slot. Then its processes *park*, and a
//! fresh process acquires all slots.
//!
//! A monitor measures *stalled waits*. A wait is stalled while a live process waits and none of
//! these things happened for so long: a process of the lock was killed or reaped; live processes
//! held all slots (in a group lock: any slot); a process released a slot; a process had drained the
//! lock or changed its slots. The time in which a process of the lock is ready to run and
//! gets no processor is not counted (`stall.rs`). No wait may be stalled for more than a second.

use std::{
    fs::File, ops::Range, path::Path, sync::atomic::Ordering::SeqCst, thread::sleep, time::Instant,
};

use doorway::shared::Lock;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, set_child_subreaper, wait,
};

use super::{
    kind::{Kind, Spec, check},
    page::{
        Count, LIMIT, LOCKS, Page, Random, Record, Task, VICTIMS, VICTIMS_ARE_NICE, now, state,
    },
    stall::Stall,
    system::{PANICKED, be_nice, fork, parent, reap},
    victim::Victim,
};

/// So many processes are killed between two looks for those that have ended.
const KILLS: usize = 24;
/// The monitor runs every so many nanoseconds.
const PERIOD: u64 = 20_000_000;

enum Phase {
    Storm { kills: usize },
    Calm { waiting: Vec<(usize, u64)> },
    Parking { since: Instant },
}

struct Soaked {
    spec: Spec,
    /// For processes to inherit. It is lost when the lock is removed.
    handle: Option<Lock>,
    referee: File,
    records: Range<usize>,
    phase: Phase,
    excused: u64,
}

struct Storm {
    page: &'static Page,
    locks: Vec<Soaked>,
    /// For each record the process and its lock, and its wait.
    processes: Vec<Option<(Pid, usize)>>,
    stalls: Vec<Stall>,
    /// Children that outlive the processes that handed their slots to them, and their locks.
    orphans: Vec<(Pid, usize)>,
    random: Random,
    monitored: u64,
}

/// Kills processes until the soak ends.
pub(crate) fn run(page: &'static Page, path: &Path, task: &Task) -> i32 {
    set_child_subreaper(Some(getpid())).expect("Linux knows it");
    let mut storm = Storm::new(page, path, task.seed);
    while !page.ends() {
        page.beat(task.worker);
        for _ in 0..KILLS {
            storm.kill();
        }
        storm.reap();
        storm.monitor();
        for lock in 0..storm.locks.len() {
            storm.advance(lock);
        }
        let pause = storm.random.micros(500);
        sleep(pause);
    }
    storm.end();
    0
}

impl Storm {
    fn new(page: &'static Page, path: &Path, seed: u64) -> Self {
        let mut next = 0;
        let soak = |i: usize| {
            let (kind, processes) = match i % 6 {
                0 => (Kind::Mutex, 2),
                1 => (Kind::Mutex, 5),
                2 => (Kind::Semaphore(2), 5),
                3 => (Kind::Semaphore(3), 5),
                4 => (Kind::Semaphore(4), 6),
                _ => (Kind::Group(3), 5),
            };
            let mut spec = Spec::new(
                path,
                &format!("storm{i}"),
                kind,
                if i.is_multiple_of(2) { 256 } else { 32 },
            );
            spec.removable = i >= LOCKS * 3 / 4;
            spec.patient = i < LOCKS / 2;
            let referee = path.join(format!(".referee{i}"));
            let referee =
                File::options().read(true).write(true).create(true).truncate(false).open(referee);
            let records = next..next + processes;
            next += processes;
            assert!(next <= VICTIMS);
            let (referee, phase) =
                (referee.expect("it can be made"), Phase::Storm { kills: 100 + i });
            Soaked { spec, handle: None, referee, records, phase, excused: now() }
        };
        let locks: Vec<Soaked> = (0..LOCKS).map(soak).collect();
        let (processes, stalls) = (vec![None; next], vec![Stall::default(); next]);
        let mut storm = Self {
            page,
            locks,
            processes,
            stalls,
            orphans: Vec::new(),
            random: Random(seed),
            monitored: 0,
        };
        for lock in 0..LOCKS {
            storm.locks[lock].records.clone().for_each(|record| storm.start(record, lock));
        }
        storm
    }

    fn start(&mut self, record: usize, lock: usize) {
        let (page, seed) = (self.page, self.random.next());
        let inherits = self.random.below(2) == 0;
        let soaked = &mut self.locks[lock];
        if soaked.handle.as_ref().is_none_or(Lock::is_removed) {
            soaked.handle = soaked
                .spec
                .open()
                .map_err(|error| page.wrong(&format!("{}: {error}", soaked.spec.name)))
                .ok();
        }
        let soaked = &self.locks[lock];
        let pid = fork(true, || {
            be_nice(VICTIMS_ARE_NICE);
            let mut victim = Victim {
                page,
                spec: &soaked.spec,
                watched: &page.locks[lock],
                records: &page.records[soaked.records.clone()],
                own: record - soaked.records.start,
                referee: &soaked.referee,
                random: Random(seed),
            };
            victim.live(soaked.handle.as_ref().filter(|_| inherits))
        });
        self.processes[record] = Some((pid, lock));
    }

    fn record(&self, i: usize) -> &'static Record {
        &self.page.records[i]
    }

    /// Kills a process, now and then all of its lock.
    fn kill(&mut self) {
        let first = self.random.below(self.processes.len());
        let Some((_, lock)) = self.processes[first] else { return };
        let all = self.random.below(100) == 0;
        for record in if all { self.locks[lock].records.clone() } else { first..first + 1 } {
            let Phase::Storm { kills } = &mut self.locks[lock].phase else { return };
            *kills = kills.saturating_sub(1);
            let (Some((pid, _)), known) = (self.processes[record], self.record(record)) else {
                continue;
            };
            if known.doomed.swap(1, SeqCst) == 0 {
                // It has not been reaped, so it is that process.
                kill_process(pid, Signal::KILL).expect("it is a child");
                self.page.add(Count::Random);
                self.locks[lock].excused = now();
            }
        }
    }

    /// Replaces the processes that have ended.
    fn reap(&mut self) {
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            let found = self
                .processes
                .iter()
                .position(|process| process.is_some_and(|(known, _)| known == pid));
            // A child of a victim, to which that handed its slot, is not among them.
            let Some(record) = found else {
                if status.exit_status() == Some(PANICKED) {
                    self.page.wrong("a child has panicked");
                }
                continue;
            };
            let (_, lock) = self.processes[record].take().expect("it was found");
            self.clean_up(record, lock, status);
            self.start(record, lock);
        }
    }

    /// Undoes what a dead process would have undone.
    fn clean_up(&mut self, record: usize, lock: usize, status: WaitStatus) {
        let (known, soaked) = (self.record(record), &mut self.locks[lock]);
        if known.doomed.load(SeqCst) == 0
            || status.terminating_signal() != Some(Signal::KILL.as_raw())
        {
            self.page
                .wrong(&format!("{}: a process ended by itself: {status:?}", soaked.spec.name));
        }
        if known.state.load(SeqCst) == state::MANAGING {
            let restored = soaked.spec.directory.lock(&soaked.spec.name).and_then(|lock| {
                let slots = soaked.spec.kind.slots();
                let resized =
                    if soaked.spec.kind == Kind::Mutex { Ok(()) } else { lock.set_slots(slots) };
                resized.and_then(|()| lock.resume())
            });
            if let (Err(error), false) = (restored, soaked.spec.removable) {
                self.page.wrong(&format!("{}: it cannot be restored: {error}", soaked.spec.name));
            }
        }
        soaked.excused = now();
        if let Some(child) = Pid::from_raw(known.child.swap(0, SeqCst) as i32) {
            self.orphans.push((child, lock));
        }
        known.state.store(state::IDLE, SeqCst);
        known.since.store(0, SeqCst);
        known.doomed.store(0, SeqCst);
    }

    /// Measures stalled waits.
    fn monitor(&mut self) {
        if now().saturating_sub(self.monitored) < PERIOD {
            return;
        }
        self.monitored = now();
        let known = |pid: Pid| {
            self.processes.iter().any(|process| process.is_some_and(|(known, _)| known == pid))
        };
        self.orphans.retain(|&(pid, _)| parent(pid) == Some(getpid()) && !known(pid));
        for (lock, (soaked, watched)) in self.locks.iter_mut().zip(&self.page.locks).enumerate() {
            let records = &self.page.records[soaked.records.clone()];
            let count = |wanted| {
                records.iter().filter(|record| record.state.load(SeqCst) == wanted).count()
            };
            let enough = if matches!(soaked.spec.kind, Kind::Group(_)) {
                1
            } else {
                soaked.spec.kind.slots()
            };
            let dying = records.iter().any(|record| record.doomed.load(SeqCst) != 0);
            let orphaned = self.orphans.iter().any(|&(_, of)| of == lock);
            if dying || orphaned || count(state::MANAGING) > 0 || count(state::HOLDING) >= enough {
                soaked.excused = now();
            }
            let processes = &self.processes[soaked.records.clone()];
            let all: Vec<i32> = processes.iter().flatten().map(|&(pid, _)| raw(pid)).collect();
            for (i, record) in soaked.records.clone().zip(records) {
                let since = record.since.load(SeqCst);
                let excused = since.max(soaked.excused).max(watched.released.load(SeqCst));
                let waits = record.state.load(SeqCst) == state::WAITING
                    && record.since.load(SeqCst) == since;
                let Some((pid, _)) = self.processes[i].filter(|_| waits && since != 0) else {
                    continue;
                };
                if self.stalls[i].is_too_long(self.page, raw(pid), &all, excused) {
                    let status =
                        soaked.spec.directory.lock(&soaked.spec.name).map(|lock| lock.status());
                    self.page.wrong(&format!(
                        "{}: a wait is stalled for a second: {status:#?}",
                        soaked.spec.name
                    ));
                    return;
                }
            }
        }
    }

    /// Lets a lock go from phase to phase.
    fn advance(&mut self, lock: usize) {
        let (page, soaked, watched) = (self.page, &mut self.locks[lock], &self.page.locks[lock]);
        let records = || soaked.records.clone().map(|record| (record, &page.records[record]));
        let waits = |record: &Record| record.state.load(SeqCst) == state::WAITING;
        match &soaked.phase {
            Phase::Storm { kills: 0 } => {
                let waiting = records()
                    .filter(|(_, record)| waits(record) && record.doomed.load(SeqCst) == 0);
                let waiting = waiting.map(|(i, record)| (i, record.since.load(SeqCst))).collect();
                soaked.phase = Phase::Calm { waiting };
            }
            Phase::Storm { .. } => {}
            Phase::Calm { waiting } => {
                let still = |&(i, since): &(usize, u64)| {
                    let record = &page.records[i];
                    waits(record) && record.since.load(SeqCst) == since
                };
                if !waiting.iter().any(still) {
                    watched.parked.store(1, SeqCst);
                    soaked.phase = Phase::Parking { since: Instant::now() };
                }
            }
            Phase::Parking { since } => {
                let parked = |record: &Record| {
                    record.state.load(SeqCst) == state::PARKED && record.doomed.load(SeqCst) == 0
                };
                let orphaned = self.orphans.iter().any(|&(_, of)| of == lock);
                if !orphaned && records().all(|(_, record)| parked(record)) {
                    checks(page, &soaked.spec);
                    // The process that checked has been told of the deaths so far.
                    watched.holders.iter().for_each(|holder| holder.store(0, SeqCst));
                    watched.parked.store(0, SeqCst);
                    soaked.phase = Phase::Storm { kills: 200 + self.random.below(400) };
                } else if since.elapsed() > 20 * LIMIT && !page.ends() {
                    let status =
                        soaked.spec.directory.lock(&soaked.spec.name).map(|lock| lock.status());
                    page.wrong(&format!(
                        "{}: a process does not come to an end: {status:#?}",
                        soaked.spec.name
                    ));
                }
            }
        }
    }

    /// Kills all processes, and checks all locks.
    fn end(&mut self) {
        for (record, process) in self.processes.iter().enumerate() {
            if let Some((pid, _)) = process {
                self.record(record).doomed.store(1, SeqCst);
                kill_process(*pid, Signal::KILL).expect("it is a child");
                self.page.add(Count::Random);
            }
        }
        for record in 0..self.processes.len() {
            if let Some((pid, lock)) = self.processes[record].take() {
                let status = reap(pid);
                self.clean_up(record, lock, status);
            }
        }
        if self.page.get(Count::Wrong) == 0 {
            self.locks.iter().for_each(|soaked| checks(self.page, &soaked.spec));
        }
    }
}

fn raw(pid: Pid) -> i32 {
    pid.as_raw_nonzero().get()
}

/// Lets a fresh process acquire all slots.
fn checks(page: &'static Page, spec: &Spec) {
    let pid = fork(true, || {
        match spec
            .open()
            .map_err(|error| error.to_string())
            .and_then(|lock| check(page, &lock, spec.kind))
        {
            Ok(()) => {}
            Err(what) => page.wrong(&format!("{}: {what}", spec.name)),
        }
        0
    });
    if reap(pid).exit_status() != Some(0) {
        page.wrong(&format!("{}: a process that checked it has failed", spec.name));
    }
    page.add(Count::Checks);
}
