//! Processes are killed at random moments, and each is replaced. A referee that knows nothing of
//! the lock sees that no slot is ever held twice; at the end all slots can be taken at once, and
//! nobody waits.
//!
//!     cargo test --release --package doorway --test kill_storm -- 10000
//!
//! So many are killed of 16 processes, which always find somebody there, and then a fifth as many
//! of two, which mostly do not and come in through the gate, and of three that ask for one of two
//! sessions; 1000 and 200 unless told otherwise. Says how far it is. After 20 s in which nobody got
//! in it says so and fails.
//!
//! The referee is the kernel: who holds slot i takes a lock on another file, number i, which the
//! kernel lets go of when its holder dies, and not before. It must be free at once. Those of a
//! session share the lock on a file, and ask who has one on another's.

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
        os::fd::AsRawFd,
        path::{Path, PathBuf},
        process::{Child, Command, ExitCode, Stdio},
        sync::atomic::{AtomicU64, Ordering::SeqCst},
        thread,
        time::{Duration, Instant},
    };

    use doorway::shared::{Directory, Lock};
    use rustix::fs::{
        FlockOperation::{NonBlockingLockExclusive, Unlock},
        flock,
    };

    /// So many processes, and slots or sessions.
    #[derive(Clone, Copy)]
    struct Size {
        processes: usize,
        kind: Kind,
        /// How long a process lives, more or less: longer than 20 ms, after which a death is
        /// noticed.
        life: Duration,
    }

    #[derive(Clone, Copy, PartialEq)]
    enum Kind {
        Slots(usize),
        Sessions(usize),
    }

    impl Kind {
        fn name(self) -> &'static str {
            if matches!(self, Self::Slots(_)) { "slots" } else { "sessions" }
        }

        fn count(self) -> usize {
            let (Self::Slots(count) | Self::Sessions(count)) = self;
            count
        }
    }

    /// What the processes tell: how often somebody went in, gave up its place, found what a dead
    /// process had left; and what went wrong.
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
            // SAFETY: the file has eight words, a mapping begins with a page, and all accesses are
            // atomic.
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
        if let [first, place, seed, kind, count] = &arguments[..]
            && first == "victim"
        {
            let count = count.parse().expect("a number");
            let kind = if kind == "slots" { Kind::Slots(count) } else { Kind::Sessions(count) };
            victim(Path::new(place), seed.parse().expect("a number"), kind);
        }
        let kills: u64 = arguments.iter().find_map(|text| text.parse().ok()).unwrap_or(1000);
        let fewer = kills.div_ceil(5);
        let storms = [
            (16, Kind::Slots(4), 24, kills),
            (2, Kind::Slots(1), 24, fewer),
            (3, Kind::Sessions(2), 72, fewer),
        ];
        let passes = |&(processes, kind, life, kills)| {
            storm(Size { processes, kind, life: Duration::from_millis(life) }, kills)
                == ExitCode::SUCCESS
        };
        if storms.iter().all(passes) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    fn storm(size: Size, kills: u64) -> ExitCode {
        let place = tempfile::tempdir_in("/dev/shm").expect("there is shared memory");
        fs::write(place.path().join(".counts"), [0; 64]).expect("it can be written");
        for i in 0..size.kind.count() {
            File::create(referee(place.path(), i)).expect("it can be made");
        }
        judge(place.path(), size, kills)
    }

    fn referee(place: &Path, i: usize) -> PathBuf {
        place.join(format!(".referee{i}"))
    }

    /// Goes in again and again until it is killed.
    fn victim(place: &Path, seed: u64, kind: Kind) -> ! {
        let lock = Directory::at(place).and_then(|locks| locks.lock("storm")).expect("it is there");
        let counts = Counts::open(&place.join(".counts"));
        let referees: Vec<File> = (0..kind.count())
            .map(|i| File::open(referee(place, i)).expect("it is there"))
            .collect();
        let sessions: Vec<String> = (0..kind.count()).map(|i| format!("session {i}")).collect();
        let mut random = Random(seed | 1);
        loop {
            let dice = random.next();
            let asked = (dice >> 4) as usize % kind.count();
            let session = matches!(kind, Kind::Sessions(_)).then(|| &sessions[asked][..]);
            let place = lock.enter(session).expect("there is room");
            if dice.is_multiple_of(16) {
                drop(place);
                counts.of(GAVE_UP).fetch_add(1, SeqCst);
                continue;
            }
            let permit = place.wait().expect("it is granted");
            let (own, alone) = match kind {
                Kind::Slots(_) => (
                    permit.slot(),
                    flock(&referees[permit.slot()], NonBlockingLockExclusive).is_ok(),
                ),
                Kind::Sessions(_) => (asked, others_are_out(&referees, asked)),
            };
            if !alone {
                eprintln!("{} {own} is not alone", kind.name());
                counts.of(WRONG).fetch_add(1, SeqCst);
            }
            counts.of(INSIDE).fetch_add(1, SeqCst);
            counts.of(RECOVERED).fetch_add(permit.recovered().into(), SeqCst);
            for _ in 0..dice >> 8 & 1023 {
                std::hint::spin_loop();
            }
            match kind {
                Kind::Slots(_) => flock(&referees[own], Unlock).expect("it is locked"),
                Kind::Sessions(_) => lets_others_in(&referees[own]),
            }
            drop(permit);
        }
    }

    /// Takes the lock on the file of a session; says whether nobody has one on another's. That is
    /// asked for and not tried: who is killed while it tries has a lock on another's file for the
    /// moment that it takes to die.
    fn others_are_out(referees: &[File], own: usize) -> bool {
        let mut request = record(libc::F_RDLCK);
        // SAFETY: a record is pointed to, and the file is open.
        let mine =
            unsafe { libc::fcntl(referees[own].as_raw_fd(), libc::F_SETLK, &raw mut request) } == 0;
        let is_free = |other: &File| {
            let mut request = record(libc::F_WRLCK);
            // SAFETY: as above.
            let asked = unsafe { libc::fcntl(other.as_raw_fd(), libc::F_GETLK, &raw mut request) };
            asked == 0 && i32::from(request.l_type) == libc::F_UNLCK
        };
        mine && referees.iter().enumerate().all(|(i, other)| i == own || is_free(other))
    }

    fn lets_others_in(own: &File) {
        let mut request = record(libc::F_UNLCK);
        // SAFETY: a record is pointed to, and the file is open.
        assert_eq!(unsafe { libc::fcntl(own.as_raw_fd(), libc::F_SETLK, &raw mut request) }, 0);
    }

    /// A lock on all of a file.
    fn record(kind: i32) -> libc::flock {
        // SAFETY: it is plain data, and zeros stand for the whole file.
        let mut record: libc::flock = unsafe { std::mem::zeroed() };
        record.l_type = kind as i16;
        record
    }

    fn open(place: &Path, kind: Kind) -> Lock {
        let locks = Directory::at(place).expect("it is ours");
        match kind {
            Kind::Slots(slots) => drop(locks.semaphore("storm", slots).expect("it is made")),
            Kind::Sessions(_) => drop(locks.group_lock("storm", None).expect("it is made")),
        }
        locks.lock("storm").expect("it is there")
    }

    fn start(place: &Path, seed: u64, kind: Kind) -> Child {
        let [seed, count] = [seed, kind.count() as u64].map(|number| number.to_string());
        Command::new(env::current_exe().expect("a test knows itself"))
            .args([
                "victim".as_ref(),
                place.as_os_str(),
                seed.as_ref(),
                kind.name().as_ref(),
                count.as_ref(),
            ])
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

    fn judge(place: &Path, Size { processes, kind, life }: Size, kills: u64) -> ExitCode {
        let lock = open(place, kind);
        let counts = Counts::open(&place.join(".counts"));
        let mut random = Random(0x5eed_0f57_0a11_5eed);
        let mut children =
            Victims((0..processes as u64).map(|seed| start(place, seed + 1, kind)).collect());
        let (started, mut said) = (Instant::now(), Instant::now());
        let (mut progress, mut since) = (0, Instant::now());
        for killed in 0..kills {
            // Mostly in the middle of things, sometimes one right after the other.
            let most = 2 * life / processes as u32;
            thread::sleep(Duration::from_micros(random.next() % most.as_micros() as u64));
            let child = &mut children.0[random.next() as usize % processes];
            child.kill().expect("it is ours");
            let ended = child.wait().expect("it has ended");
            if ended.code().is_some() {
                eprintln!("a process ended by itself: {ended}");
                return ExitCode::FAILURE;
            }
            *child = start(place, random.next(), kind);
            let inside = counts.get(INSIDE);
            if inside > progress {
                (progress, since) = (inside, Instant::now());
            } else if since.elapsed() > Duration::from_secs(20) {
                eprintln!("\nnobody has got in for 20 s: {:#?}", lock.status());
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
        let (slots, asked) = match kind {
            Kind::Slots(slots) => (slots, [None, None]),
            Kind::Sessions(_) => (lock.slots(), [Some("session 0"), Some("session 1")]),
        };
        let try_enter = |session| lock.try_enter(session).expect("it works");
        let all: Vec<_> = (0..slots)
            .map(|_| try_enter(asked[0]).expect("no slot is lost").wait().expect("it has one"))
            .collect();
        let mut taken: Vec<_> = all.iter().map(|permit| permit.slot()).collect();
        taken.sort_unstable();
        assert_eq!(taken, (0..slots).collect::<Vec<_>>());
        let status = lock.status();
        assert_eq!((status.holders.len(), status.waiting.len()), (slots, 0), "{status:?}");
        drop(all);
        let one = try_enter(asked[0]).expect("all are free");
        assert_eq!(
            try_enter(asked[1]).is_none(),
            slots == 1 || asked[1].is_some(),
            "they exclude each other"
        );
        drop(one);
        assert_eq!(counts.get(WRONG), 0);
        println!(
            "{kills} killed of {processes} processes and replaced, {}: {}: {} went in, {} gave up, {} were told of a death; \
             {:.1} s",
            kind.name(),
            kind.count(),
            counts.get(INSIDE),
            counts.get(GAVE_UP),
            counts.get(RECOVERED),
            started.elapsed().as_secs_f64()
        );
        assert!(counts.get(RECOVERED) > 0, "nobody was killed where it matters");
        lock.remove().expect("nobody uses it");
        ExitCode::SUCCESS
    }
}
