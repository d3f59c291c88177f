//! Named locks: what one process sees of them, and what several do.
#![cfg(target_os = "linux")]

use std::{
    env,
    fs::{self, Permissions},
    io::{BufRead, BufReader, Read, Write},
    os::unix::{
        fs::{PermissionsExt, symlink},
        process::CommandExt,
    },
    path::Path,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU64, Ordering::SeqCst},
    thread,
    time::{Duration, Instant},
};

use doorway::shared::{Directory, Error, Kind, NotYet};
use tempfile::TempDir;

fn directory() -> (TempDir, Directory) {
    let place = tempfile::tempdir_in("/dev/shm").expect("there is shared memory");
    let locks = Directory::at(place.path()).expect("it is ours");
    (place, locks)
}

/// Runs the named helper below as another process.
fn helper(what: &str, place: &Path, arguments: &[&str]) -> Child {
    Command::new(env::current_exe().expect("a test knows itself"))
        .args(["--exact", "helper_process", "--nocapture", "--test-threads", "1"])
        .env("DOORWAY_HELPER", what)
        .env("DOORWAY_HELPER_ARGUMENTS", arguments.join(" "))
        .env("DOORWAY_DIR", place)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts")
}

/// Waits until a helper says this.
fn says(child: &mut Child, what: &str) {
    let output = child.stdout.as_mut().expect("it is piped");
    let mut reader = BufReader::with_capacity(1, output);
    let mut line = String::new();
    while reader.read_line(&mut line).expect("it can be read") > 0 {
        if line.trim_end().ends_with(what) {
            return;
        }
        line.clear();
    }
    panic!("it ended without saying {what}");
}

/// Not a test of its own: what other processes do.
#[test]
fn helper_process() {
    let Ok(what) = env::var("DOORWAY_HELPER") else { return };
    let arguments = env::var("DOORWAY_HELPER_ARGUMENTS").unwrap_or_default();
    let arguments: Vec<&str> = arguments.split(' ').collect();
    let locks = Directory::of_user().expect("it is there");
    let wait_for_word = || drop(std::io::stdin().read(&mut [0]));
    match &what[..] {
        "holds" => {
            let semaphore = locks.semaphore(arguments[0], arguments[1].parse().expect("slots")).expect("it opens");
            let _permit = semaphore.acquire().expect("it is granted");
            println!("holds");
            wait_for_word();
        }
        "waits" => {
            let semaphore = locks.semaphore(arguments[0], arguments[1].parse().expect("slots")).expect("it opens");
            let place = semaphore.enter().expect("there is room");
            println!("waits");
            let permit = place.wait().expect("it is granted");
            println!("holds");
            println!("recovered {}", permit.recovered());
            wait_for_word();
        }
        "session" => {
            let lock = locks.group_lock(arguments[0], None).expect("it opens");
            let _permit = lock.acquire(arguments[1]).expect("it is granted");
            println!("holds");
            wait_for_word();
        }
        // Enters between two looks at a clock, goes in and notes them, again and again.
        "queues" => {
            let semaphore = locks.semaphore("fifo", 1).expect("it opens");
            let passages: u64 = arguments[1].parse().expect("passages");
            let mut noted = fs::OpenOptions::new().read(true).append(true).open(arguments[0]).expect("it is there");
            let clock = Clock::open(arguments[2]);
            for _ in 0..passages {
                let begins = clock.tick();
                let place = semaphore.enter().expect("there is room");
                let entered = clock.tick();
                let _permit = place.wait().expect("it is granted");
                let bytes = [begins.to_ne_bytes(), entered.to_ne_bytes()].concat();
                noted.write_all(&bytes).expect("it can be written");
            }
        }
        other => panic!("{other}"),
    }
}

#[test]
fn a_lock_is_what_it_was_made() {
    let (_place, locks) = directory();
    let semaphore = locks.semaphore("a", 3).expect("it is made");
    assert_eq!((semaphore.kind(), semaphore.slots(), semaphore.name()), (Kind::Semaphore, 3, "a".into()));
    let other = locks.semaphore("a", 4).expect_err("it has three");
    assert!(matches!(other, Error::Slots { found: 3, asked: 4, .. }), "{other}");
    assert!(other.to_string().contains("has 3 slots and not 4"), "{other}");
    assert!(matches!(locks.mutex("a"), Err(Error::Kind { found: Kind::Semaphore, asked: Kind::Mutex, .. })));
    assert!(matches!(locks.lock("b"), Err(Error::Missing(_))));
    for name in ["", ".a", "a/b", "a\0", &"a".repeat(201)] {
        assert!(matches!(locks.semaphore(name, 1), Err(Error::Name(_))), "{name:?}");
    }
    assert!(matches!(locks.semaphore("c", 0), Err(Error::TooMany { .. })));
    assert!(matches!(locks.semaphore("c", 5000), Err(Error::TooMany { .. })));
    assert_eq!(locks.names().expect("it can be read"), ["a"]);
    let mode = fs::metadata(semaphore.path()).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn slots_are_each_ones_own_and_handed_on() {
    let (_place, locks) = directory();
    let semaphore = locks.semaphore("a", 2).expect("it is made");
    let again = locks.semaphore("a", 2).expect("it is there");
    let first = semaphore.acquire().expect("it is free");
    let second = again.acquire().expect("it is free");
    assert_ne!(first.slot(), second.slot());
    assert!(semaphore.try_acquire().expect("it works").is_none());
    let third = semaphore.enter().expect("there is room");
    let fourth = again.enter().expect("there is room");
    assert_eq!((third.ahead(), fourth.ahead()), (0, 1));
    assert!(third.ticket() < fourth.ticket());
    let Err(NotYet::Late(fourth)) = fourth.wait_timeout(Duration::from_millis(30)) else { panic!("it is full") };
    let status = semaphore.status();
    assert_eq!((status.holders.len(), status.waiting.len()), (2, 2));
    assert_eq!(status.waiting[0].ticket, third.ticket());
    assert_eq!(status.holders[0].pid, std::process::id() as i32);
    assert!(status.holders[0].command.contains("shared"), "{:?}", status.holders[0]);
    let slot = first.slot();
    drop(first);
    // It has given its place up, though a slot has come.
    drop(third);
    let permit = fourth.wait().expect("it is its turn");
    assert_eq!(permit.slot(), slot);
    drop((permit, second));
    assert!(semaphore.status().holders.is_empty() && semaphore.status().waiting.is_empty());
    let all: Vec<_> = (0..2).map(|_| semaphore.try_acquire().expect("it works").expect("it is free")).collect();
    assert!(all.iter().all(|permit| !permit.recovered()));
}

#[test]
fn sessions_share_and_exclude() {
    let (_place, locks) = directory();
    let lock = locks.group_lock("rooms", None).expect("it is made");
    let (one, two) = (lock.acquire("theory").expect("it is empty"), lock.acquire("theory").expect("they share"));
    assert!(lock.try_acquire("practice").expect("it works").is_none());
    let other = lock.enter("practice").expect("there is room");
    assert!(lock.try_acquire("theory").expect("it works").is_none(), "nobody goes in ahead of who waits");
    let status = lock.status();
    assert_eq!(status.holders[0].session.as_deref(), Some("theory"));
    assert_eq!(status.waiting[0].session.as_deref(), Some("practice"));
    drop((one, two));
    let other = other.wait().expect("the room is empty");
    assert!(lock.try_acquire("theory").expect("it works").is_none());
    assert!(lock.try_acquire("practice").expect("it works").is_some());
    drop(other);
    for name in ["", &"x".repeat(64)] {
        assert!(matches!(lock.enter(name), Err(Error::Session(_))));
    }
    assert!(locks.lock("rooms").expect("it is there").enter(None).is_err());
}

#[test]
fn slots_may_become_more_and_fewer_and_closed() {
    let (_place, locks) = directory();
    let semaphore = locks.semaphore("a", 1).expect("it is made");
    let first = semaphore.acquire().expect("it is free");
    let second = semaphore.enter().expect("there is room");
    semaphore.set_slots(2).expect("there can be two");
    let second = second.wait().expect("there is a slot more");
    semaphore.set_slots(1).expect("there can be one");
    let third = semaphore.enter().expect("there is room");
    drop(second);
    let Err(NotYet::Late(third)) = third.wait_timeout(Duration::from_millis(30)) else { panic!("there is one slot") };
    semaphore.drain().expect("it works");
    drop(first);
    let Err(NotYet::Late(third)) = third.wait_timeout(Duration::from_millis(30)) else { panic!("it is drained") };
    assert!(semaphore.status().drained && semaphore.try_acquire().expect("it works").is_none());
    semaphore.resume().expect("it works");
    assert_eq!(third.wait().expect("it is resumed").slot(), 0);
    assert!(matches!(semaphore.set_slots(0), Err(Error::TooMany { .. })));
    assert!(matches!(semaphore.set_slots(257), Err(Error::TooMany { asked: 257, most: 256, .. })));
}

#[test]
fn a_full_table_says_so() {
    let (_place, locks) = directory();
    let semaphore = locks.with_capacity(5).semaphore("a", 1).expect("it is made");
    let places: Vec<_> = (0..5).map(|_| semaphore.enter().expect("there is room")).collect();
    let full = semaphore.enter().expect_err("it is full");
    assert!(full.to_string().contains("capacity"), "{full}");
    drop(places);
    assert!(semaphore.acquire().is_ok());
}

#[test]
fn removed_locks_are_lost_to_those_who_wait() {
    let (_place, locks) = directory();
    let semaphore = locks.semaphore("a", 1).expect("it is made");
    let permit = semaphore.acquire().expect("it is free");
    assert!(matches!(semaphore.remove(), Err(Error::Busy { holders: 1, waiting: 0, .. })));
    let place = semaphore.enter().expect("there is room");
    assert!(permit.check().is_ok());
    fs::remove_file(semaphore.path()).expect("it is there");
    assert!(matches!(permit.check(), Err(Error::Lost(_))));
    assert!(matches!(place.wait(), Err(Error::Lost(_))));
    // The name is another lock's now.
    let new = locks.semaphore("a", 3).expect("it is made");
    new.remove().expect("nobody uses it");
    assert!(matches!(new.enter(), Err(Error::Lost(_))));
    assert!(matches!(new.remove(), Err(Error::Lost(_))));
    assert!(locks.names().expect("it can be read").is_empty());
}

#[test]
fn nothing_foreign_is_trusted() {
    let (place, locks) = directory();
    let path = |name: &str| place.path().join(name);
    let made = locks.semaphore("real", 1).expect("it is made");
    symlink(made.path(), path("link")).expect("it can be made");
    fs::create_dir(path("folder")).expect("it can be made");
    fs::write(path("text"), vec![b'x'; 100_000]).expect("it can be written");
    fs::write(path("open"), fs::read(made.path()).expect("it can be read")).expect("it can be written");
    fs::set_permissions(path("open"), Permissions::from_mode(0o666)).expect("it is ours");
    fs::set_permissions(path("text"), Permissions::from_mode(0o600)).expect("it is ours");
    for name in ["link", "folder", "text", "open"] {
        let error = locks.semaphore(name, 1).expect_err("it is not a lock of ours");
        assert!(matches!(error, Error::Foreign { .. }), "{name}: {error}");
    }
    fs::set_permissions(place.path(), Permissions::from_mode(0o777)).expect("it is ours");
    assert!(matches!(locks.semaphore("real", 1), Err(Error::Directory { .. })));
    fs::set_permissions(place.path(), Permissions::from_mode(0o700)).expect("it is ours");
    symlink(place.path(), path("here")).expect("it can be made");
    assert!(matches!(Directory::at(path("here")), Err(Error::Directory { .. })));
    // Only root can make files of others.
    if rustix::process::geteuid().is_root() {
        let theirs = path("theirs");
        fs::copy(made.path(), &theirs).expect("it can be copied");
        fs::set_permissions(&theirs, Permissions::from_mode(0o600)).expect("it is ours");
        std::os::unix::fs::chown(&theirs, Some(12345), Some(12345)).expect("root may");
        assert!(matches!(locks.semaphore("theirs", 1), Err(Error::Foreign { .. })));
    }
}

#[test]
fn a_group_may_be_let_in() {
    let (place, locks) = directory();
    let gid = rustix::process::getegid().as_raw();
    let shared = locks.clone().with_group(gid).semaphore("a", 1).expect("it is made");
    let mode = fs::metadata(shared.path()).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o660);
    assert!(matches!(locks.semaphore("a", 1), Err(Error::Foreign { .. })), "others may open it");
    assert!(locks.with_group(gid).semaphore("a", 1).is_ok());
    drop(place);
}

#[test]
fn versions_and_sizes_are_checked() {
    let (place, locks) = directory();
    let made = locks.semaphore("a", 1).expect("it is made");
    let bytes = fs::read(made.path()).expect("it can be read");
    drop(made);
    let with = |name: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = bytes.clone();
        change(&mut bytes);
        let path = place.path().join(name);
        fs::write(&path, bytes).expect("it can be written");
        fs::set_permissions(path, Permissions::from_mode(0o600)).expect("it is ours");
        locks.semaphore(name, 1).expect_err("something is wrong with it")
    };
    assert!(matches!(with("newer", &|bytes| bytes[8] = 9), Error::Version { found: 9, known: 1, .. }));
    assert!(matches!(with("short", &|bytes| bytes.truncate(5000)), Error::Truncated { found: 5000, .. }));
    assert!(matches!(with("empty", &Vec::clear), Error::Truncated { found: 0, .. }));
    assert!(matches!(with("long", &|bytes| bytes.push(0)), Error::Truncated { .. }));
    assert!(matches!(with("kind", &|bytes| bytes[16] = 7), Error::Damaged(_)));
    assert!(matches!(with("rows", &|bytes| bytes[26] = 1), Error::Damaged(_)));
    assert!(matches!(with("elsewhere", &|bytes| bytes[32] ^= 1), Error::Namespace(_)));
}

/// One of many first users makes it, and all use the same.
#[test]
fn creation_has_one_winner() {
    let (_place, locks) = directory();
    for round in 0..50 {
        let name = format!("race{round}");
        let permits = thread::scope(|scope| {
            let racers: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        let semaphore = locks.semaphore(&name, 3).expect("it is made or there");
                        semaphore.try_acquire().expect("it works").map(|permit| {
                            let slot = permit.slot();
                            std::mem::forget(permit);
                            slot
                        })
                    })
                })
                .collect();
            racers.into_iter().filter_map(|racer| racer.join().expect("nobody panics")).collect::<Vec<_>>()
        });
        assert_eq!(permits.len(), 3, "{permits:?}");
    }
}

#[test]
fn who_is_killed_hands_on_what_it_had() {
    let (place, locks) = directory();
    let semaphore = locks.semaphore("a", 1).expect("it is made");
    let mut holder = helper("holds", place.path(), &["a", "1"]);
    says(&mut holder, "holds");
    let mut before = helper("waits", place.path(), &["a", "1"]);
    says(&mut before, "waits");
    let mine = semaphore.enter().expect("there is room");
    let mut behind = helper("waits", place.path(), &["a", "1"]);
    says(&mut behind, "waits");
    assert_eq!(mine.ahead(), 1);
    // The one in line before us, and then the holder.
    before.kill().expect("it runs");
    let Err(NotYet::Late(mine)) = mine.wait_timeout(Duration::from_millis(100)) else { panic!("somebody holds") };
    assert_eq!(mine.ahead(), 0);
    let killed = Instant::now();
    holder.kill().expect("it runs");
    let permit = mine.wait().expect("it is our turn");
    println!("passed on in {:?}", killed.elapsed());
    assert!(permit.recovered(), "its last holder died");
    drop(permit);
    says(&mut behind, "recovered false");
    behind.kill().expect("it runs");
    for mut child in [before, holder, behind] {
        child.wait().expect("it has ended");
    }
    assert!(semaphore.try_acquire().expect("it works").expect("the dead are not in the way").recovered());
}

#[test]
fn who_is_stopped_is_alive() {
    let (place, locks) = directory();
    let semaphore = locks.semaphore("a", 1).expect("it is made");
    let mut holder = helper("holds", place.path(), &["a", "1"]);
    says(&mut holder, "holds");
    let pid = rustix::process::Pid::from_child(&holder);
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).expect("it runs");
    let mine = semaphore.enter().expect("there is room");
    let Err(NotYet::Late(mine)) = mine.wait_timeout(Duration::from_millis(200)) else { panic!("it is alive") };
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).expect("it is there");
    drop(holder.stdin.take());
    assert!(!mine.wait().expect("it is our turn").recovered());
    holder.wait().expect("it has ended");
}

#[test]
fn sessions_are_the_same_everywhere() {
    let (place, locks) = directory();
    let lock = locks.group_lock("rooms", None).expect("it is made");
    let mut theory = helper("session", place.path(), &["rooms", "theory"]);
    says(&mut theory, "holds");
    assert!(lock.try_acquire("practice").expect("it works").is_none());
    assert!(lock.try_acquire("theory").expect("it works").is_some());
    theory.kill().expect("it runs");
    theory.wait().expect("it has ended");
    assert!(lock.try_acquire("practice").expect("it works").is_some());
}

/// The slot follows the command: it is the child's from before exec to its end, whatever becomes of the parent.
#[test]
fn a_slot_can_be_handed_to_a_child() {
    let (_place, locks) = directory();
    let semaphore = locks.semaphore("a", 1).expect("it is made");
    let permit = semaphore.acquire().expect("it is free");
    let hand_over = permit.hand_over();
    let mut command = Command::new("sleep");
    command.arg("60");
    // SAFETY: adopting allocates nothing and takes no lock.
    unsafe { command.pre_exec(move || hand_over.adopt()) };
    let mut child = command.spawn().expect("it adopts the slot");
    let holders = || semaphore.status().holders;
    assert_eq!(holders()[0].pid, child.id() as i32);
    assert_eq!(holders()[0].command, "sleep 60");
    assert!(!permit.take_back().expect("it works"), "it lives");
    // It is not the parent's any more.
    drop(permit);
    assert!(semaphore.try_acquire().expect("it works").is_none());
    child.kill().expect("it runs");
    let next = semaphore.acquire().expect("a zombie has no slot");
    assert!(next.recovered());
    child.wait().expect("it has ended");
    // A child whose parent has the slot no more does not run.
    let hand_over = next.hand_over();
    drop(next);
    drop(semaphore);
    let mut command = Command::new("true");
    // SAFETY: as above.
    unsafe { command.pre_exec(move || hand_over.adopt()) };
    assert!(command.spawn().is_err(), "it must not run");
}

#[test]
fn a_slot_comes_back_from_a_child_that_has_ended() {
    let (_place, locks) = directory();
    let semaphore = locks.semaphore("a", 1).expect("it is made");
    let permit = semaphore.acquire().expect("it is free");
    let hand_over = permit.hand_over();
    let mut command = Command::new("true");
    // SAFETY: as above.
    unsafe { command.pre_exec(move || hand_over.adopt()) };
    assert!(command.status().expect("it runs").success());
    assert!(permit.take_back().expect("it works"));
    drop(permit);
    assert!(!semaphore.acquire().expect("it is free").recovered());
}

/// A number in a file that every process counts up.
struct Clock(memmap2::MmapRaw);

impl Clock {
    fn open(path: &str) -> Self {
        let file = fs::OpenOptions::new().read(true).write(true).open(path).expect("it is there");
        Self(memmap2::MmapRaw::map_raw(&file).expect("it can be mapped"))
    }

    fn tick(&self) -> u64 {
        // SAFETY: the file has eight bytes, a mapping begins with a page, and all accesses are atomic.
        unsafe { &*self.0.as_ptr().cast::<AtomicU64>() }.fetch_add(1, SeqCst)
    }
}

/// Whoever was through `enter` before another began it goes in before it. When they began and were through is told by a clock
/// that has nothing to do with the lock, and in which order they went in by a file that is written inside.
///
///     DOORWAY_FIFO_PASSAGES=100000 cargo test --release --package doorway --test shared -- eight
#[test]
fn eight_processes_go_in_in_the_order_in_which_they_entered() {
    let (place, locks) = directory();
    let passages = env::var("DOORWAY_FIFO_PASSAGES").map_or(20_000, |text| text.parse().expect("a number"));
    let semaphore = locks.semaphore("fifo", 1).expect("it is made");
    let [noted, clock] = [".noted", ".clock"].map(|name| place.path().join(name).display().to_string());
    fs::write(&noted, "").expect("it can be written");
    fs::write(&clock, [0; 8]).expect("it can be written");
    let each = (passages / 8_usize).to_string();
    let gate = semaphore.acquire().expect("it is free");
    let children: Vec<_> = (0..8).map(|_| helper("queues", place.path(), &[&noted, &each, &clock])).collect();
    while semaphore.status().waiting.len() < 8 {
        thread::sleep(Duration::from_millis(1));
    }
    drop(gate);
    for mut child in children {
        drop(child.stdin.take());
        assert!(child.wait().expect("it ends").success());
    }
    let noted = fs::read(noted).expect("it can be read");
    let number = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().expect("eight"));
    let inside: Vec<_> = noted.chunks_exact(16).map(|both| (number(&both[..8]), number(&both[8..]))).collect();
    assert_eq!(inside.len(), passages / 8 * 8);
    let mut earliest = u64::MAX;
    let mut waited = 0;
    for &(begins, entered) in inside.iter().rev() {
        assert!(earliest > begins, "who was through at {earliest} went in after one who began at {begins}");
        waited += usize::from(earliest < u64::MAX && earliest < entered + 8);
        earliest = earliest.min(entered);
    }
    assert!(waited > 0, "nobody ever waited");
}

/// Whatever is written into a file: those who open it and those who use it get an error or go on, and come back. What they are told
/// is another matter.
#[test]
fn a_file_that_is_scribbled_in_does_no_harm() {
    let (place, locks) = directory();
    let made = locks.clone().with_capacity(8).semaphore("a", 2).expect("it is made");
    let permit = made.acquire().expect("it is free");
    let path = made.path().to_owned();
    let bytes = fs::read(&path).expect("it can be read");
    drop(permit);
    drop(made);
    let mut dice = 0x5eed_u64;
    let mut random = || {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        dice
    };
    let rounds = env::var("DOORWAY_SCRIBBLES").map_or(300, |text| text.parse().expect("a number"));
    let (mut opened, mut refused, mut damaged) = (0, 0, 0);
    for round in 0..rounds {
        let name = format!("scribbled{round}");
        let mut scribbled = bytes.clone();
        let table = 4096 + 8 * 128;
        for _ in 0..1 + random() % 40 {
            // Mostly where it matters.
            let end = if random().is_multiple_of(4) { scribbled.len() } else { table };
            let begin = if random().is_multiple_of(8) { 0 } else { 4096 };
            let at = begin + random() as usize % (end - begin);
            scribbled[at] =
                if random().is_multiple_of(2) { random() as u8 } else { scribbled[at] ^ 1 << (random() % 8) };
        }
        if random().is_multiple_of(16) {
            scribbled.truncate(random() as usize % scribbled.len());
        }
        fs::write(place.path().join(&name), &scribbled).expect("it can be written");
        fs::set_permissions(place.path().join(&name), Permissions::from_mode(0o600)).expect("it is ours");
        let Ok(lock) = locks.lock(&name) else {
            refused += 1;
            continue;
        };
        opened += 1;
        let session = (lock.kind() == Kind::GroupLock).then_some("room");
        let mut fails = 0;
        for _ in 0..4 {
            match lock.enter(session).map(|place| place.wait_timeout(Duration::from_millis(1))) {
                Ok(Ok(permit)) => drop(permit),
                Ok(Err(NotYet::Late(place))) => drop(place),
                Ok(Err(NotYet::Failed(_))) | Err(_) => fails += 1,
            }
            fails += usize::from(lock.try_enter(session).is_err());
        }
        let _ = lock.status();
        fails += usize::from(lock.set_slots(1).is_err());
        fails += usize::from(lock.bury_dead().is_err());
        let _ = lock.remove();
        damaged += usize::from(fails > 0);
    }
    println!("{opened} opened, {damaged} of them damaged, {refused} refused");
    assert!(opened > 0 && refused > 0 && damaged > 0, "{opened} {damaged} {refused}");
}
