//! The command line's part: wrappers (`doorway run`) and their commands are killed at random
//! moments.
//!
//! A command is this program again. It locks the byte of its slot in a file, which the kernel
//! unlocks when it ends, and in a group lock shares the byte of its session.
//!
//! After every 100 kills no more wrappers are started until all have ended; then all slots must be
//! free. Meanwhile a wait is *stalled* while a live wrapper waits, not all slots are held (in a
//! group lock: none is), no process was killed and none ended; as in the random part, for no more
//! than a second.

use std::{
    env,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    thread::sleep,
    time::Duration,
};

use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, kill_process, pidfd_open,
    pidfd_send_signal, set_child_subreaper, wait,
};

use super::{
    kind::{Kind, SESSIONS, Spec, check},
    page::{Count, Page, Random, Task, now},
    stall::Stall,
    system::{byte_is_free, lock_byte, parent, share_byte},
};

/// The first argument of a command.
pub(crate) const MARK: &str = "soak-command";
/// What a command ends with that is not alone.
const NOT_ALONE: i32 = 99;
const SESSION: usize = 64;
const WRAPPERS: usize = 4;
/// One of so many kills is one here.
const SHARE: u64 = 50;

/// The command: holds the slot for a moment.
pub(crate) fn hold(referee: &str) -> ExitCode {
    let number = |name| env::var(name).ok().and_then(|text| text.parse::<usize>().ok());
    let file = File::options().read(true).write(true).open(referee).expect("it is there");
    let slot = number("DOORWAY_SLOT").expect("a command knows its slot");
    let mut alone = lock_byte(&file, slot);
    if let Some(session) = number("SOAK_SESSION") {
        let others = (0..SESSIONS.len()).filter(|&other| other != session);
        alone &= share_byte(&file, SESSION + session);
        alone &= others.into_iter().all(|other| byte_is_free(&file, SESSION + other));
    }
    sleep(Duration::from_micros(Random(u64::from(std::process::id())).next() % 8000));
    if alone { ExitCode::SUCCESS } else { ExitCode::from(NOT_ALONE as u8) }
}

struct Soaked {
    spec: Spec,
    lock: doorway::shared::Lock,
    referee: PathBuf,
    wrappers: Vec<Pid>,
    /// Kills until it is checked.
    kills: usize,
    excused: u64,
    stall: Stall,
}

/// Kills wrappers and commands until the soak ends.
pub(crate) fn run(page: &'static Page, path: &Path, task: &Task) -> i32 {
    set_child_subreaper(Some(getpid())).expect("Linux knows it");
    let kinds = [Kind::Semaphore(1), Kind::Semaphore(2), Kind::Group(2)];
    let soak = |(i, kind): (usize, Kind)| {
        let spec = Spec::new(path, &format!("command{i}"), kind, 32);
        let lock = spec.open().expect("it can be made");
        let referee = path.join(format!(".command{i}"));
        fs::write(&referee, []).expect("it can be made");
        Soaked {
            spec,
            lock,
            referee,
            wrappers: Vec::new(),
            kills: 100,
            excused: now(),
            stall: Stall::default(),
        }
    };
    let mut soaked: Vec<Soaked> = kinds.into_iter().enumerate().map(soak).collect();
    let mut random = Random(task.seed);
    loop {
        page.beat(task.worker);
        let ends = page.ends();
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            // A command that outlived its wrapper is none of them.
            soaked.iter_mut().any(|one| one.ended(page, pid, status));
        }
        for one in &mut soaked {
            one.judge(page);
            if page.get(Count::Wrong) > 0 {
                return 0;
            }
            if one.kills == 0 || ends {
                one.checks(page);
            }
            while !ends && one.kills > 0 && one.wrappers.len() < WRAPPERS {
                one.start(page, path, &mut random);
            }
        }
        if ends && soaked.iter().all(|one| one.wrappers.is_empty()) {
            return 0;
        }
        let due = page.get(Count::Command) * SHARE <= page.kills();
        let one = &mut soaked[random.below(kinds.len())];
        if due && !ends && one.kills > 0 {
            one.kill(page, &mut random);
        }
        sleep(random.micros(if due { 6000 } else { 20_000 }));
    }
}

impl Soaked {
    fn start(&mut self, page: &Page, path: &Path, random: &mut Random) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_doorway"));
        command
            .env("DOORWAY_DIR", path)
            .env("DOORWAY_CAPACITY", "32")
            .arg("run")
            .arg(&self.spec.name);
        let session = random.below(SESSIONS.len());
        match self.spec.kind {
            Kind::Mutex => {}
            Kind::Semaphore(slots) => drop(command.args(["--slots", &slots.to_string()])),
            Kind::Group(slots) => {
                command.args(["--slots", &slots.to_string(), "--session", SESSIONS[session]]);
                command.env("SOAK_SESSION", session.to_string());
            }
        }
        let this = env::current_exe().expect("a test knows itself");
        command
            .arg("--")
            .arg(this)
            .arg(MARK)
            .arg(&self.referee)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        match command.spawn() {
            Ok(child) => self.wrappers.push(Pid::from_child(&child)),
            Err(error) => page.wrong(&format!("doorway run does not start: {error}")),
        }
    }

    /// Kills a wrapper or a command.
    fn kill(&mut self, page: &Page, random: &mut Random) {
        let holders = self.lock.status().holders;
        let killed = if random.below(2) == 0 || holders.is_empty() {
            // It has not been reaped, so it is that wrapper.
            kill_process(self.wrappers[random.below(self.wrappers.len())], Signal::KILL).is_ok()
        } else {
            self.kill_holder(holders[random.below(holders.len())].pid)
        };
        if killed {
            page.add(Count::Command);
            self.kills -= 1;
            self.excused = now();
        }
    }

    /// Kills the process that holds a slot. Its PID may be another process's by now: it must be a
    /// wrapper, or the child of one or of this process.
    fn kill_holder(&self, pid: i32) -> bool {
        let Some(pid) = Pid::from_raw(pid) else { return false };
        let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else { return false };
        let parent = parent(pid);
        let mut ours = self.wrappers.iter().copied().chain([getpid()]);
        ours.any(|known| known == pid || Some(known) == parent)
            && pid != getpid()
            && pidfd_send_signal(&pidfd, Signal::KILL).is_ok()
    }

    /// Judges a process that has ended. Returns whether it was a wrapper of this lock.
    fn ended(&mut self, page: &Page, pid: Pid, status: WaitStatus) -> bool {
        let Some(i) = self.wrappers.iter().position(|&wrapper| wrapper == pid) else {
            return false;
        };
        self.wrappers.swap_remove(i);
        self.excused = now();
        let name = &self.spec.name;
        match (status.exit_status(), status.terminating_signal()) {
            (Some(0), _) => page.add(Count::Passages),
            // Its command was killed, or it was killed itself.
            (Some(137), _) | (_, Some(9)) => {}
            (Some(NOT_ALONE), _) => page.wrong(&format!("{name}: two commands are inside")),
            _ => page.wrong(&format!("{name}: doorway run ended with {status:?}")),
        }
        true
    }

    /// Looks for stalled waits.
    fn judge(&mut self, page: &Page) {
        let status = self.lock.status();
        let enough =
            if matches!(self.spec.kind, Kind::Group(_)) { 1 } else { self.spec.kind.slots() };
        let Some(first) = status.waiting.first().filter(|_| status.holders.len() < enough) else {
            self.excused = now();
            return;
        };
        let all: Vec<i32> = self.wrappers.iter().map(|pid| pid.as_raw_nonzero().get()).collect();
        if self.stall.is_too_long(page, first.pid, &all, self.excused) {
            page.wrong(&format!(
                "{}: a wrapper waits and no process holds: {status:#?}",
                self.spec.name
            ));
        }
    }

    /// Checks that all slots are free, when all wrappers have ended.
    fn checks(&mut self, page: &Page) {
        if !self.wrappers.is_empty() {
            return;
        }
        match check(page, &self.lock, self.spec.kind) {
            Ok(()) => page.add(Count::Checks),
            Err(what) => page.wrong(&format!("{}: {what}", self.spec.name)),
        }
        self.kills = 100;
    }
}
