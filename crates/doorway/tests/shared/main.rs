//! Named locks: what one process sees of them, and what several do.
#![cfg(target_os = "linux")]

use std::{
    env,
    fs::{self, Permissions},
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::{
        fs::{PermissionsExt, symlink},
        process::CommandExt,
    },
    path::Path,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst},
    thread,
    time::{Duration, Instant},
};

use doorway::shared::{Directory, Error, Kind, NotYet};
use tempfile::TempDir;

mod containers;
mod corrupted;
mod deaths;
mod front;
mod hand_over;
mod processes;

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
            let semaphore = locks
                .semaphore(arguments[0], arguments[1].parse().expect("slots"))
                .expect("it opens");
            let _permit = semaphore.acquire().expect("it is granted");
            println!("holds");
            wait_for_word();
        }
        "waits" => {
            let semaphore = locks
                .semaphore(arguments[0], arguments[1].parse().expect("slots"))
                .expect("it opens");
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
            let mut noted = fs::OpenOptions::new()
                .read(true)
                .append(true)
                .open(arguments[0])
                .expect("it is there");
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
    assert_eq!(
        (semaphore.kind(), semaphore.slots(), semaphore.name()),
        (Kind::Semaphore, 3, "a".into())
    );
    let other = locks.semaphore("a", 4).expect_err("it has three");
    assert!(matches!(other, Error::Slots { found: 3, asked: 4, .. }), "{other}");
    assert!(other.to_string().contains("has 3 slots and not 4"), "{other}");
    assert!(matches!(
        locks.mutex("a"),
        Err(Error::Kind { found: Kind::Semaphore, asked: Kind::Mutex, .. })
    ));
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
    let Err(NotYet::Late(fourth)) = fourth.wait_timeout(Duration::from_millis(30)) else {
        panic!("it is full")
    };
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
    let all: Vec<_> =
        (0..2).map(|_| semaphore.try_acquire().expect("it works").expect("it is free")).collect();
    assert!(all.iter().all(|permit| !permit.recovered()));
}

#[test]
fn sessions_share_and_exclude() {
    let (_place, locks) = directory();
    let lock = locks.group_lock("rooms", None).expect("it is made");
    let (one, two) =
        (lock.acquire("theory").expect("it is empty"), lock.acquire("theory").expect("they share"));
    assert!(lock.try_acquire("practice").expect("it works").is_none());
    let other = lock.enter("practice").expect("there is room");
    assert!(
        lock.try_acquire("theory").expect("it works").is_none(),
        "nobody goes in ahead of who waits"
    );
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
    // However alike they are.
    let long = "x".repeat(63);
    let names = [
        "a",
        "a\0",
        "a\0b",
        "aaaaaaaa",
        "aaaaaaaa\0",
        "aaaaaaaab",
        &long[..62],
        &long[..56],
        &long,
    ];
    for (i, name) in names.iter().enumerate() {
        let _permit = lock.acquire(name).expect("it is empty");
        assert_eq!(lock.status().holders[0].session.as_deref(), Some(*name));
        for (j, other) in names.iter().enumerate() {
            assert_eq!(
                lock.try_acquire(other).expect("it works").is_some(),
                i == j,
                "{name:?} {other:?}"
            );
        }
    }
    assert!(locks.lock("rooms").expect("it is there").enter(None).is_err());
}

/// Who comes in through the gate has not written down what it asks for.
#[test]
fn what_is_asked_for_at_the_gate_shows() {
    let (_place, locks) = directory();
    let [one, two] = [(); 2].map(|()| locks.group_lock("rooms", None).expect("it opens"));
    drop(one.acquire("theory").expect("it is empty"));
    let other = two.acquire("theory").expect("it is empty");
    drop(one.acquire("theory").expect("they share, under the other's number"));
    drop(other);
    // Which stands for something else from now on.
    drop(two.acquire("practice").expect("it is empty"));
    let _permit = one.acquire("theory").expect("it is empty");
    assert_eq!(one.status().holders[0].session.as_deref(), Some("theory"));
}

/// They come in through the gate by one row, for now this and now that.
#[test]
fn threads_ask_for_different_sessions() {
    let (_place, locks) = directory();
    let lock = locks.group_lock("rooms", None).expect("it is made");
    let inside = [const { AtomicUsize::new(0) }; 3];
    thread::scope(|scope| {
        for thread in 0..3_usize {
            let (lock, inside) = (&lock, &inside);
            scope.spawn(move || {
                for round in 0..20_000 {
                    // Mostly the same twice, so that the gate is used.
                    let own = (thread + round / 2) % 3;
                    let permit = lock
                        .acquire(["a", "a room", "a room with a long name"][own])
                        .expect("there is room");
                    inside[own].fetch_add(1, SeqCst);
                    thread::yield_now();
                    let others =
                        (0..3).filter(|&other| other != own && inside[other].load(SeqCst) > 0);
                    assert_eq!(others.count(), 0);
                    inside[own].fetch_sub(1, SeqCst);
                    drop(permit);
                    thread::yield_now();
                }
            });
        }
    });
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
    let Err(NotYet::Late(third)) = third.wait_timeout(Duration::from_millis(30)) else {
        panic!("there is one slot")
    };
    semaphore.drain().expect("it works");
    drop(first);
    let Err(NotYet::Late(third)) = third.wait_timeout(Duration::from_millis(30)) else {
        panic!("it is drained")
    };
    assert!(semaphore.status().drained && semaphore.try_acquire().expect("it works").is_none());
    semaphore.resume().expect("it works");
    assert_eq!(third.wait().expect("it is resumed").slot(), 0);
    assert!(matches!(semaphore.set_slots(0), Err(Error::TooMany { .. })));
    assert!(matches!(
        semaphore.set_slots(4096),
        Err(Error::TooMany { asked: 4096, most: 4095, .. })
    ));
}

#[test]
fn a_full_table_says_so() {
    let (_place, locks) = directory();
    let semaphore = locks.with_capacity(5).semaphore("a", 1).expect("it is made");
    let places: Vec<_> = (0..5).map(|_| semaphore.enter().expect("there is room")).collect();
    let full = semaphore.enter().expect_err("it is full");
    assert!(full.to_string().contains("5 processes hold or wait"), "{full}");
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
    fs::write(path("open"), fs::read(made.path()).expect("it can be read"))
        .expect("it can be written");
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
    let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o7777;
    let shared = Directory::for_group(place.path().join("ours/"), gid).expect("it is made");
    let semaphore = shared.semaphore("a", 1).expect("it is made");
    assert_eq!((mode(shared.path()), mode(semaphore.path())), (0o770, 0o660));
    let alone = Directory::at(shared.path()).expect_err("others may write into it");
    assert!(matches!(alone, Error::Directory { .. }), "{alone}");
    // What is the group's is not to be opened by others, and what is not the group's is not
    // trusted.
    fs::copy(semaphore.path(), place.path().join("a")).expect("it can be copied");
    fs::set_permissions(place.path().join("a"), Permissions::from_mode(0o660)).expect("it is ours");
    assert!(matches!(locks.semaphore("a", 1), Err(Error::Foreign { .. })));
    fs::set_permissions(semaphore.path(), Permissions::from_mode(0o666)).expect("it is ours");
    assert!(matches!(shared.semaphore("a", 1), Err(Error::Foreign { .. })));
    // In the last one a user outside of the group may make a file that belongs to the group.
    for mode in [0o777, 0o1777, 0o3777] {
        fs::set_permissions(shared.path(), Permissions::from_mode(mode)).expect("it is ours");
        assert!(matches!(shared.semaphore("a", 1), Err(Error::Directory { .. })), "{mode:o}");
    }
    assert_eq!(
        fs::read_dir(place.path()).expect("it can be read").count(),
        2,
        "nothing else is left behind"
    );
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
    assert!(matches!(
        with("newer", &|bytes| bytes[8] = 9),
        Error::Version { found: 9, known: 7, .. }
    ));
    assert!(matches!(
        with("short", &|bytes| bytes.truncate(5000)),
        Error::Truncated { found: 5000, .. }
    ));
    assert!(matches!(with("empty", &Vec::clear), Error::Truncated { found: 0, .. }));
    assert!(matches!(with("long", &|bytes| bytes.push(0)), Error::Truncated { .. }));
    assert!(matches!(with("kind", &|bytes| bytes[16] = 7), Error::Damaged(_)));
    assert!(matches!(with("rows", &|bytes| bytes[26] = 1), Error::Damaged(_)));
}

/// A number in a file that every process counts up.
struct Clock(memmap2::MmapRaw);

impl Clock {
    fn open(path: &str) -> Self {
        let file = fs::OpenOptions::new().read(true).write(true).open(path).expect("it is there");
        Self(memmap2::MmapRaw::map_raw(&file).expect("it can be mapped"))
    }

    fn tick(&self) -> u64 {
        // SAFETY: the file has eight bytes, a mapping begins with a page, and all accesses are
        // atomic.
        unsafe { &*self.0.as_ptr().cast::<AtomicU64>() }.fetch_add(1, SeqCst)
    }
}
