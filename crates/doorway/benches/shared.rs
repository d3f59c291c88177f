//! Named locks beside what the system has: alone, and 8 processes in turns, 2 and 32 besides.
//!
//!     cargo bench --package doorway --bench shared [-- turns | alone | kill]
//!
//! In each round every lock runs once, in turn; ratios are those of one round, and the median of the rounds is shown.

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() {
    bench::main();
}

#[cfg(target_os = "linux")]
mod bench {
    use std::{
        fs::File,
        hint::{black_box, spin_loop},
        os::fd::AsRawFd,
        ptr,
        sync::atomic::{AtomicU64, Ordering::SeqCst},
        time::{Duration, Instant},
    };

    use doorway::shared::{Directory, GroupLock, Mutex, Semaphore};

    const ROUNDS: usize = 31;
    const KILLS: usize = 300;

    /// A lock that other processes have, too.
    trait Shared {
        fn name(&self) -> &'static str;
        fn passage(&self, inside: &mut dyn FnMut());
        /// System calls cost more, and are made less often.
        fn passages(&self) -> u64 {
            100_000
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

    impl Shared for Mutex {
        fn name(&self) -> &'static str {
            "doorway Mutex"
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

    fn shared_page() -> *mut libc::c_void {
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: the system chooses where.
        let page = unsafe { libc::mmap(ptr::null_mut(), 4096, access, flags, -1, 0) };
        assert_ne!(page, libc::MAP_FAILED);
        page
    }

    struct PosixSemaphore(*mut libc::sem_t);

    impl PosixSemaphore {
        fn new() -> Self {
            let semaphore = shared_page().cast();
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
            let mutex = shared_page().cast();
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
                let (pid, file) = open.get_or_init(|| (std::process::id(), File::create(&self.0).expect("it opens")));
                assert_eq!(*pid, std::process::id(), "it was opened before the fork");
                // SAFETY: the file is open.
                unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX) };
                inside();
                // SAFETY: as above.
                unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_UN) };
            });
        }
        fn passages(&self) -> u64 {
            3000
        }
    }

    struct SystemV(i32);

    impl SystemV {
        fn new() -> Self {
            // SAFETY: nothing is pointed to.
            let set = unsafe { libc::semget(libc::IPC_PRIVATE, 1, 0o600) };
            assert!(set >= 0);
            // SAFETY: the set is ours.
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
            // SAFETY: the set is ours.
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
        fn passages(&self) -> u64 {
            3000
        }
    }

    /// Nanoseconds of a passage alone.
    fn alone(lock: &dyn Shared) -> f64 {
        let passages = lock.passages();
        let started = Instant::now();
        for _ in 0..passages {
            lock.passage(&mut || {
                black_box(());
            });
        }
        started.elapsed().as_nanos() as f64 / passages as f64
    }

    /// Passages of so many processes together in 100 ms, a microsecond inside.
    fn busy(lock: &dyn Shared, processes: usize) -> f64 {
        let page: *const AtomicU64 = shared_page().cast();
        // SAFETY: it is a page of zeros, which is never unmapped.
        let (count, go) = unsafe { (&*page, &*page.add(8)) };
        let children: Vec<i32> = (0..processes)
            .map(|_| {
                // SAFETY: there is but one thread here, so the child may do whatever it likes.
                let pid = unsafe { libc::fork() };
                if pid == 0 {
                    count.fetch_add(1, SeqCst);
                    while go.load(SeqCst) == 0 {
                        std::thread::yield_now();
                    }
                    let mut mine = 0;
                    while go.load(SeqCst) == 1 {
                        lock.passage(&mut || {
                            let began = Instant::now();
                            while began.elapsed() < Duration::from_micros(1) {
                                spin_loop();
                            }
                        });
                        mine += 1;
                    }
                    count.fetch_add(mine, SeqCst);
                    // SAFETY: it ends here, and drops nothing of its parent's.
                    unsafe { libc::_exit(0) };
                }
                pid
            })
            .collect();
        while count.load(SeqCst) < processes as u64 {
            std::thread::yield_now();
        }
        count.store(0, SeqCst);
        go.store(1, SeqCst);
        let started = Instant::now();
        std::thread::sleep(Duration::from_millis(100));
        go.store(2, SeqCst);
        for pid in children {
            // SAFETY: nothing is pointed to.
            unsafe { libc::waitpid(pid, ptr::null_mut(), 0) };
        }
        count.load(SeqCst) as f64 / started.elapsed().as_secs_f64()
    }

    /// How long after a kill of who holds, and of so many who wait, the next in line goes in, in milliseconds.
    fn after_a_kill(locks: &Directory, waiting: usize) -> f64 {
        let mutex = locks.mutex("killed").expect("it is made");
        let page: *const AtomicU64 = shared_page().cast();
        // SAFETY: it is a page of zeros, which is never unmapped.
        let there = unsafe { &*page };
        let children: Vec<i32> = (0..=waiting)
            .map(|i| {
                // SAFETY: there is but one thread here, so the child may do whatever it likes.
                let pid = unsafe { libc::fork() };
                if pid == 0 {
                    let place = mutex.enter().expect("there is room");
                    there.fetch_add(1, SeqCst);
                    let _permit = place.wait().expect("it is granted");
                    loop {
                        std::thread::park();
                    }
                }
                while there.load(SeqCst) <= i as u64 {
                    std::thread::yield_now();
                }
                pid
            })
            .collect();
        let place = mutex.enter().expect("there is room");
        let killed = children.clone();
        let killer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(30 + killed[0] as u64 % 20));
            let now = Instant::now();
            // SAFETY: nothing is pointed to, and the children have not been waited for.
            killed.iter().for_each(|&pid| _ = unsafe { libc::kill(pid, libc::SIGKILL) });
            now
        });
        let permit = place.wait().expect("it is granted");
        let inside = Instant::now();
        assert!(permit.recovered());
        // SAFETY: nothing is pointed to.
        children.iter().for_each(|&pid| _ = unsafe { libc::waitpid(pid, ptr::null_mut(), 0) });
        inside.duration_since(killer.join().expect("it kills")).as_secs_f64() * 1e3
    }

    fn median(mut numbers: Vec<f64>) -> f64 {
        numbers.sort_by(f64::total_cmp);
        numbers[numbers.len() / 2]
    }

    /// Measures all, round by round; shows each beside all others.
    fn measure(what: &str, unit: &str, rounds: usize, locks: &[&dyn Shared], run: impl Fn(&dyn Shared) -> f64) {
        locks.iter().for_each(|lock| _ = run(*lock));
        let seen: Vec<Vec<f64>> = (0..rounds).map(|_| locks.iter().map(|lock| run(*lock)).collect()).collect();
        println!("{what}");
        for (i, lock) in locks.iter().enumerate() {
            let own = median(seen.iter().map(|round| round[i]).collect());
            print!("  {:28} {own:10.1} {unit}", lock.name());
            let ratio = |other: usize| median(seen.iter().map(|round| round[i] / round[other]).collect());
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
        let alone_with: [&dyn Shared; 7] = [&semaphore, &mutex, &group, &posix, &robust, &system, &flock];
        let asked: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
        let wanted = |what: &str| asked.is_empty() || asked.iter().any(|asked| asked == what);
        // In turns first: what a process has opened alone its children would share.
        let busy_with: [&dyn Shared; 4] = [&mutex, &posix, &robust, &system];
        if wanted("turns") {
            for processes in [8, 2, 32] {
                let what = format!("{processes} processes, one slot, 1 µs inside: passages/s, and over each");
                measure(&what, "/s", ROUNDS, &busy_with, |lock| busy(lock, processes));
            }
        }
        if wanted("kill") {
            for waiting in [0, 9] {
                let mut times: Vec<f64> = (0..KILLS).map(|_| after_a_kill(&locks, waiting)).collect();
                times.sort_by(f64::total_cmp);
                let [half, most, all] = [KILLS / 2, KILLS * 99 / 100, KILLS - 1].map(|at| times[at]);
                println!(
                    "holder and {waiting} in line killed, the next one goes in after: p50 {half:.1} ms, p99 {most:.1} ms, longest {all:.1} ms, of {KILLS}"
                );
            }
        }
        if wanted("alone") {
            measure("alone: ns, and over each in the same order", "ns", ROUNDS, &alone_with, alone);
        }
    }
}
