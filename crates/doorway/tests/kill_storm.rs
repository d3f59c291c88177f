//! Processes are killed at random moments, and each is replaced. A referee that knows nothing of the lock sees that no slot is ever
//! held twice; at the end all slots can be taken at once, and nobody waits.
//!
//!     cargo test --release --package doorway --test kill_storm -- 10000
//!
//! So many are killed of 16 processes, which always find somebody there, and then a fifth as many of two, which mostly do not and come in
//! through the gate; 1000 and 200 unless told otherwise. Says how far it is. After a minute in which nobody got in it says so and fails.
//!
//! The referee is the kernel: who holds slot i takes a lock on another file, number i, which the kernel lets go of when its holder
//! dies, and not before. It must be free at once.

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    storm::main()
}

#[cfg(target_os = "linux")]
mod storm {
    use std::{
        env,
        fs::{self, File},
        io::{IsTerminal, Write, stderr},
        path::Path,
        process::{Child, Command, ExitCode, Stdio},
        sync::atomic::{AtomicU64, Ordering::SeqCst},
        thread,
        time::{Duration, Instant},
    };

    use doorway::shared::{Directory, Semaphore};
    use rustix::fs::{FlockOperation, flock};

    /// So many processes and slots.
    #[derive(Clone, Copy)]
    struct Size {
        processes: usize,
        slots: usize,
    }

    /// What the processes tell: how often somebody went in, gave up its place, found what a dead process had left; and what went wrong.
    const INSIDE: usize = 0;
    const GAVE_UP: usize = 1;
    const RECOVERED: usize = 2;
    const WRONG: usize = 3;

    struct Counts(memmap2::MmapRaw);

    impl Counts {
        fn open(path: &Path) -> Self {
            let file = File::options().read(true).write(true).open(path).expect("it is there");
            Self(memmap2::MmapRaw::map_raw(&file).expect("it can be mapped"))
        }

        fn of(&self, which: usize) -> &AtomicU64 {
            assert!(which < 8);
            // SAFETY: the file has eight words, a mapping begins with a page, and all accesses are atomic.
            unsafe { &*self.0.as_ptr().cast::<AtomicU64>().add(which) }
        }

        fn get(&self, which: usize) -> u64 {
            self.of(which).load(SeqCst)
        }
    }

    /// A small generator; what it gives decides what happens.
    struct Random(u64);

    impl Random {
        fn next(&mut self) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
        }
    }

    pub(super) fn main() -> ExitCode {
        let arguments: Vec<String> = env::args().skip(1).collect();
        if let [first, place, seed, slots] = &arguments[..]
            && first == "victim"
        {
            victim(Path::new(place), seed.parse().expect("a number"), slots.parse().expect("a number"));
        }
        let kills = arguments.iter().find_map(|text| text.parse().ok()).unwrap_or(1000);
        match storm(Size { processes: 16, slots: 4 }, kills) {
            ExitCode::SUCCESS => storm(Size { processes: 2, slots: 1 }, kills.div_ceil(5)),
            failure => failure,
        }
    }

    fn storm(size: Size, kills: u64) -> ExitCode {
        let place = tempfile::tempdir_in("/dev/shm").expect("there is shared memory");
        fs::write(place.path().join(".counts"), [0; 64]).expect("it can be written");
        for slot in 0..size.slots {
            File::create(place.path().join(format!(".slot{slot}"))).expect("it can be made");
        }
        judge(place.path(), size, kills)
    }

    /// Goes in again and again until it is killed.
    fn victim(place: &Path, seed: u64, slots: usize) -> ! {
        let semaphore = open(place, slots);
        let counts = Counts::open(&place.join(".counts"));
        let referees: Vec<File> =
            (0..slots).map(|slot| File::open(place.join(format!(".slot{slot}"))).expect("it is there")).collect();
        let mut random = Random(seed | 1);
        loop {
            let dice = random.next();
            let place = semaphore.enter().expect("there is room");
            if dice.is_multiple_of(16) {
                drop(place);
                counts.of(GAVE_UP).fetch_add(1, SeqCst);
                continue;
            }
            let permit = place.wait().expect("it is granted");
            let referee = &referees[permit.slot()];
            if flock(referee, FlockOperation::NonBlockingLockExclusive).is_err() {
                eprintln!("slot {} is held twice", permit.slot());
                counts.of(WRONG).fetch_add(1, SeqCst);
            }
            counts.of(INSIDE).fetch_add(1, SeqCst);
            counts.of(RECOVERED).fetch_add(permit.recovered().into(), SeqCst);
            for _ in 0..dice >> 8 & 1023 {
                std::hint::spin_loop();
            }
            flock(referee, FlockOperation::Unlock).expect("it is locked");
            drop(permit);
        }
    }

    fn open(place: &Path, slots: usize) -> Semaphore {
        Directory::at(place).and_then(|locks| locks.semaphore("storm", slots)).expect("it opens")
    }

    fn start(place: &Path, seed: u64, slots: usize) -> Child {
        Command::new(env::current_exe().expect("a test knows itself"))
            .args(["victim".as_ref(), place.as_os_str(), seed.to_string().as_ref(), slots.to_string().as_ref()])
            .stdin(Stdio::null())
            .spawn()
            .expect("it starts")
    }

    /// Those who go in, none of whom is left behind, however it ends.
    struct Victims(Vec<Child>);

    impl Drop for Victims {
        fn drop(&mut self) {
            for child in &mut self.0 {
                child.kill().expect("it is ours");
                child.wait().expect("it has ended");
            }
        }
    }

    fn judge(place: &Path, Size { processes, slots }: Size, kills: u64) -> ExitCode {
        let semaphore = open(place, slots);
        let counts = Counts::open(&place.join(".counts"));
        let mut random = Random(0x5eed_0f57_0a11_5eed);
        let mut children = Victims((0..processes as u64).map(|seed| start(place, seed + 1, slots)).collect());
        let (started, mut said) = (Instant::now(), Instant::now());
        let (mut progress, mut since) = (0, Instant::now());
        for killed in 0..kills {
            // Mostly in the middle of things, sometimes one right after the other. The fewer there are, the longer each lives.
            thread::sleep(Duration::from_micros(random.next() % (48_000 / processes as u64)));
            let child = &mut children.0[random.next() as usize % processes];
            child.kill().expect("it is ours");
            let ended = child.wait().expect("it has ended");
            if ended.code().is_some() {
                eprintln!("a process ended by itself: {ended}");
                return ExitCode::FAILURE;
            }
            *child = start(place, random.next(), slots);
            let inside = counts.get(INSIDE);
            if inside > progress {
                (progress, since) = (inside, Instant::now());
            } else if since.elapsed() > Duration::from_secs(60) {
                eprintln!("\nnobody has got in for a minute: {:#?}", semaphore.status());
                return ExitCode::FAILURE;
            }
            if counts.get(WRONG) > 0 {
                return ExitCode::FAILURE;
            }
            if stderr().is_terminal() && said.elapsed() > Duration::from_millis(200) {
                said = Instant::now();
                let _ = write!(stderr(), "\r{killed} killed, {inside} went in ");
            }
        }
        drop(children);
        // Nobody is left: all that is held or waited for is the dead's.
        let all: Vec<_> =
            (0..slots).map(|_| semaphore.try_acquire().expect("it works").expect("no slot is lost")).collect();
        let mut taken: Vec<_> = all.iter().map(|permit| permit.slot()).collect();
        taken.sort_unstable();
        assert_eq!(taken, (0..slots).collect::<Vec<_>>());
        let status = semaphore.status();
        assert_eq!((status.holders.len(), status.waiting.len()), (slots, 0), "{status:?}");
        assert!(semaphore.try_acquire().expect("it works").is_none());
        drop(all);
        assert_eq!(counts.get(WRONG), 0);
        println!(
            "{kills} killed of {processes} processes and replaced, slots: {slots}: {} went in, {} gave up, {} were told of a death; \
             {:.1} s",
            counts.get(INSIDE),
            counts.get(GAVE_UP),
            counts.get(RECOVERED),
            started.elapsed().as_secs_f64()
        );
        assert!(counts.get(RECOVERED) > 0, "nobody was killed where it matters");
        semaphore.remove().expect("nobody uses it");
        ExitCode::SUCCESS
    }
}
