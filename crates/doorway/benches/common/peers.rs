//! Processes that take turns: the named mutex and the SysV semaphore that it is compared with.

use std::{
    hint::spin_loop,
    sync::atomic::Ordering::{Relaxed, SeqCst},
    thread::sleep,
    time::{Duration, Instant},
};

use doorway::shared::Mutex;

use super::processes::{Children, Start, Words, now, until};

/// A lock that processes share.
pub(crate) trait Shared {
    fn name(&self) -> &'static str;
    fn passage(&self, inside: &mut dyn FnMut());
    /// Called by a process after its last passage.
    fn leave(&self) {}
}

impl Shared for Mutex {
    fn name(&self) -> &'static str {
        "doorway Mutex"
    }
    fn passage(&self, inside: &mut dyn FnMut()) {
        let _permit = self.acquire().expect("it is granted");
        inside();
    }
}

/// A SysV semaphore with SEM_UNDO, which is removed when this is dropped.
pub(crate) struct SystemV(i32);

impl SystemV {
    pub(crate) fn new() -> Self {
        // SAFETY: no pointer is passed.
        let set = unsafe { libc::semget(libc::IPC_PRIVATE, 1, 0o600) };
        assert!(set >= 0, "semget: {}", std::io::Error::last_os_error());
        // SAFETY: the set is this value's own.
        assert_eq!(unsafe { libc::semctl(set, 0, libc::SETVAL, 1) }, 0);
        Self(set)
    }

    fn change(&self, by: i16) {
        let mut change = libc::sembuf { sem_num: 0, sem_op: by, sem_flg: libc::SEM_UNDO as i16 };
        // SAFETY: one change is pointed to.
        while unsafe { libc::semop(self.0, &mut change, 1) } != 0 {}
    }
}

impl Drop for SystemV {
    fn drop(&mut self) {
        // SAFETY: the set is this value's own.
        unsafe { libc::semctl(self.0, 0, libc::IPC_RMID) };
    }
}

impl Shared for SystemV {
    fn name(&self) -> &'static str {
        "SysV semaphore with UNDO"
    }
    fn passage(&self, inside: &mut dyn FnMut()) {
        self.change(-1);
        inside();
        self.change(1);
    }
}

/// Keeps the processor busy for this long.
pub(crate) fn spin(time: Duration) {
    let began = Instant::now();
    while began.elapsed() < time {
        spin_loop();
    }
}

/// Lets so many processes take turns, a microsecond inside each time. Returns the passages per
/// second of each process, measured after the warm-up.
pub(crate) fn take_turns(
    lock: &dyn Shared,
    processes: usize,
    warm_up: Duration,
    measured: Duration,
) -> Vec<f64> {
    let (counts, ended, start) = (Words::new(processes), Words::new(2), Start::new());
    let (stop, stopped) = (&ended[0], &ended[1]);
    let mut children = Children::default();
    for i in 0..processes {
        children.fork(|| {
            start.arrive();
            while stop.load(Relaxed) == 0 {
                lock.passage(&mut || spin(Duration::from_micros(1)));
                counts[i].fetch_add(1, Relaxed);
            }
            lock.leave();
            stopped.fetch_add(1, SeqCst);
        });
    }
    start.release(processes);
    sleep(warm_up);
    let count = || (0..processes).map(|i| counts[i].load(Relaxed)).collect::<Vec<_>>();
    let (began, before) = (now(), count());
    sleep(measured);
    let (seconds, after) = ((now() - began) as f64 / 1e9, count());
    stop.store(1, SeqCst);
    until("all processes have stopped", || stopped.load(SeqCst) == processes as u64);
    before.iter().zip(after).map(|(before, after)| (after - before) as f64 / seconds).collect()
}

pub(crate) fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}
