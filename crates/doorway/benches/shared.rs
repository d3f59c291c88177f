//! Named locks beside what the system has: alone, and 8 processes in turns, 2 and 32 besides.
//!
//!     cargo bench --package doorway --bench shared [-- turns | alone]
//!
//! In each round every lock runs once, in turn; ratios are those of one round, and the median of
//! the rounds is shown.

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() {
    bench::main();
}

#[cfg(target_os = "linux")]
#[path = "common/peers.rs"]
mod peers;
#[cfg(target_os = "linux")]
#[path = "common/processes.rs"]
mod processes;

#[cfg(target_os = "linux")]
mod bench {
    use std::{
        fs::File,
        hint::black_box,
        os::fd::AsRawFd,
        time::{Duration, Instant},
    };

    use doorway::shared::{Directory, GroupLock, Mutex, Semaphore};

    use super::{
        peers::{Shared, SystemV, median, take_turns},
        processes::shared_memory,
    };

    const ROUNDS: usize = 31;

    /// A lock whose passages are measured alone.
    trait Alone: Shared {
        /// Returns how many passages a round has. System calls cost more, and are made less often.
        fn passages(&self) -> u64 {
            100_000
        }
    }

    impl Alone for Semaphore {}
    impl Alone for Mutex {}
    impl Alone for GroupLock {}
    impl Alone for PosixSemaphore {}
    impl Alone for RobustMutex {}

    impl Alone for SystemV {
        fn passages(&self) -> u64 {
            3000
        }
    }

    impl Alone for Flock {
        fn passages(&self) -> u64 {
            3000
        }
    }

    impl Shared for Semaphore {
        fn name(&self) -> &'static str {
            "doorway Semaphore, 4 slots"
        }
        fn passage(&self, inside: &mut dyn FnMut()) {
            let _permit = self.acquire().expect("it is granted");
            inside();
        }
    }

    impl Shared for GroupLock {
        fn name(&self) -> &'static str {
            "doorway GroupLock"
        }
        fn passage(&self, inside: &mut dyn FnMut()) {
            let _permit = self.acquire("room").expect("it is granted");
            inside();
        }
    }

    struct PosixSemaphore(*mut libc::sem_t);

    impl PosixSemaphore {
        fn new() -> Self {
            let semaphore = shared_memory(4096).cast();
            // SAFETY: the page is ours, and large enough.
            assert_eq!(unsafe { libc::sem_init(semaphore, 1, 1) }, 0);
            Self(semaphore)
        }
    }

    impl Shared for PosixSemaphore {
        fn name(&self) -> &'static str {
            "sem_t"
        }
        fn passage(&self, inside: &mut dyn FnMut()) {
            // SAFETY: it has been initialised, and is never destroyed.
            while unsafe { libc::sem_wait(self.0) } != 0 {}
            inside();
            // SAFETY: as above.
            unsafe { libc::sem_post(self.0) };
        }
    }

    struct RobustMutex(*mut libc::pthread_mutex_t);

    impl RobustMutex {
        fn new() -> Self {
            let mutex = shared_memory(4096).cast();
            // SAFETY: the page is ours, and large enough.
            unsafe {
                let mut attributes = std::mem::zeroed();
                libc::pthread_mutexattr_init(&mut attributes);
                libc::pthread_mutexattr_setpshared(&mut attributes, libc::PTHREAD_PROCESS_SHARED);
                libc::pthread_mutexattr_setrobust(&mut attributes, libc::PTHREAD_MUTEX_ROBUST);
                assert_eq!(libc::pthread_mutex_init(mutex, &attributes), 0);
            }
            Self(mutex)
        }
    }

    impl Shared for RobustMutex {
        fn name(&self) -> &'static str {
            "pthread robust mutex"
        }
        fn passage(&self, inside: &mut dyn FnMut()) {
            // SAFETY: it has been initialised, and is never destroyed.
            assert_eq!(unsafe { libc::pthread_mutex_lock(self.0) }, 0);
            inside();
            // SAFETY: this thread has it.
            unsafe { libc::pthread_mutex_unlock(self.0) };
        }
    }

    struct Flock(std::path::PathBuf);

    std::thread_local! {
        /// Each process has to open the file for itself, or it would share the lock.
        static OPEN: std::cell::OnceCell<(u32, File)> = const { std::cell::OnceCell::new() };
    }

    impl Shared for Flock {
        fn name(&self) -> &'static str {
            "flock(2)"
        }
        fn passage(&self, inside: &mut dyn FnMut()) {
            OPEN.with(|open| {
                let (pid, file) = open
                    .get_or_init(|| (std::process::id(), File::create(&self.0).expect("it opens")));
                assert_eq!(*pid, std::process::id(), "it was opened before the fork");
                // SAFETY: the file is open.
                unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX) };
                inside();
                // SAFETY: as above.
                unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_UN) };
            });
        }
    }

    /// Nanoseconds of a passage alone.
    fn alone<L: Alone + ?Sized>(lock: &L) -> f64 {
        let passages = lock.passages();
        let started = Instant::now();
        for _ in 0..passages {
            lock.passage(&mut || {
                black_box(());
            });
        }
        started.elapsed().as_nanos() as f64 / passages as f64
    }

    /// Passages per second of so many processes together, a microsecond inside.
    fn busy(lock: &dyn Shared, processes: usize) -> f64 {
        take_turns(lock, processes, Duration::from_millis(20), Duration::from_millis(100))
            .iter()
            .sum()
    }

    /// Measures all, round by round; shows each beside all others.
    fn measure<L: Shared + ?Sized>(
        what: &str,
        unit: &str,
        rounds: usize,
        locks: &[&L],
        run: impl Fn(&L) -> f64,
    ) {
        locks.iter().for_each(|lock| _ = run(*lock));
        let seen: Vec<Vec<f64>> =
            (0..rounds).map(|_| locks.iter().map(|lock| run(*lock)).collect()).collect();
        println!("{what}");
        for (i, lock) in locks.iter().enumerate() {
            let own = median(seen.iter().map(|round| round[i]).collect());
            print!("  {:28} {own:10.1} {unit}", lock.name());
            let ratio =
                |other: usize| median(seen.iter().map(|round| round[i] / round[other]).collect());
            (0..locks.len()).for_each(|other| print!(" {:8.2}", ratio(other)));
            println!();
        }
    }

    pub(super) fn main() {
        let place = tempfile::tempdir_in("/dev/shm").expect("there is shared memory");
        let locks = Directory::at(place.path()).expect("it is ours");
        let semaphore = locks.semaphore("semaphore", 4).expect("it is made");
        let mutex = locks.mutex("mutex").expect("it is made");
        let group = locks.group_lock("group", None).expect("it is made");
        let (posix, robust, system) = (PosixSemaphore::new(), RobustMutex::new(), SystemV::new());
        let flock = Flock(place.path().join(".flock"));
        let alone_with: [&dyn Alone; 7] =
            [&semaphore, &mutex, &group, &posix, &robust, &system, &flock];
        let asked: Vec<String> =
            std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
        let wanted = |what: &str| asked.is_empty() || asked.iter().any(|asked| asked == what);
        // In turns first: what a process has opened alone its children would share.
        let busy_with: [&dyn Shared; 4] = [&mutex, &posix, &robust, &system];
        if wanted("turns") {
            for processes in [8, 2, 32] {
                let what = format!(
                    "{processes} processes, one slot, 1 µs inside: passages/s, and over each"
                );
                measure(&what, "/s", ROUNDS, &busy_with, |lock| busy(lock, processes));
            }
        }
        if wanted("alone") {
            measure("alone: ns, and over each in the same order", "ns", ROUNDS, &alone_with, alone);
        }
    }
}
