//! What several processes see of a named lock, killed and stopped ones among them; and files that
//! somebody has written into.

use std::convert::Infallible;

use doorway_core::{Home, Layout, engines::named_lock::Table};

use super::{
    corrupted::{self, Outcome},
    *,
};

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
            racers
                .into_iter()
                .filter_map(|racer| racer.join().expect("nobody panics"))
                .collect::<Vec<_>>()
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
    let Err(NotYet::Late(mine)) = mine.wait_timeout(Duration::from_millis(100)) else {
        panic!("somebody holds")
    };
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
    assert!(
        semaphore
            .try_acquire()
            .expect("it works")
            .expect("the dead are not in the way")
            .recovered()
    );
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
    let Err(NotYet::Late(mine)) = mine.wait_timeout(Duration::from_millis(200)) else {
        panic!("it is alive")
    };
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).expect("it is there");
    drop(holder.stdin.take());
    assert!(!mine.wait().expect("it is our turn").recovered());
    holder.wait().expect("it has ended");
}

/// A process is stopped in the few instructions in which it has the table lock. Operations with a
/// time limit keep to it, and the others go on when the process does.
#[test]
fn time_limits_hold_while_a_stopped_process_has_the_table_lock() {
    let (place, locks) = directory();
    let semaphore = locks.semaphore("a", 2).expect("it is made");
    let mut holder = helper("holds", place.path(), &["a", "2"]);
    says(&mut holder, "holds");
    let entries = semaphore.capacity();
    let table = |layout: &mut Layout| {
        Ok::<_, Infallible>(Table::new(layout, entries, 2, false, Home::Process(entries)))
    };
    let Ok((table, _)) = Layout::build(entries + 1, None, table);
    let word = |index: usize| &semaphore.words()[index];
    let mut second = helper("holds", place.path(), &["a", "2"]);
    says(&mut second, "holds");
    let mine = semaphore.enter().expect("there is room");
    // As if it had taken it: no process can be stopped there on purpose.
    let taken = word(table.owner(0).index()).load(SeqCst);
    assert_ne!(taken, 0, "the helper has the first entry");
    word(table.table_lock().index()).store(taken, SeqCst);
    let pid = rustix::process::Pid::from_child(&holder);
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).expect("it runs");
    let begin = Instant::now();
    let limit = Duration::from_millis(50);
    assert!(
        semaphore.enter_timeout(None, limit).expect("it works").is_none()
            && begin.elapsed() >= limit
    );
    assert!(semaphore.try_acquire().expect("it works").is_none());
    // Nor a process that is in line already, and gives up.
    let Err(NotYet::Late(mine)) = mine.wait_timeout(limit) else { panic!("there is no slot") };
    let mine = mine.leave(limit).expect_err("the table lock is taken");
    for refused in [semaphore.drain(), semaphore.set_slots(1), semaphore.remove()] {
        assert!(
            matches!(refused, Err(Error::Stuck { pid, .. }) if pid == holder.id() as i32),
            "{refused:?}"
        );
    }
    // It is killed, and then the table lock is free.
    holder.kill().expect("it is ours");
    holder.wait().expect("it has ended");
    drop(mine.wait().expect("it is our turn"));
    assert!(semaphore.enter_timeout(None, Duration::from_secs(60)).expect("it works").is_some());
    second.kill().expect("it is ours");
    second.wait().expect("it has ended");
}

/// Forks; the child does what it is told with a copy of everything. Returns whether the child says
/// that all is well.
fn forked_is_well(child: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child does not wait for what other threads may have had when it was forked: the C
    // library sees to its own, and there is nothing else.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        // It must not go on as a copy of the tests, not even with a panic.
        let well = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child)).unwrap_or(false);
        // SAFETY: it ends at once.
        unsafe { libc::_exit(i32::from(!well)) }
    }
    ends_well(pid)
}

/// Waits for a child, and returns whether it says that all is well.
fn ends_well(pid: i32) -> bool {
    let pid = rustix::process::Pid::from_raw(pid).expect("it is a number");
    let ended = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty());
    let (_, status) = ended.expect("it ends").expect("it has ended");
    status.exit_status() == Some(0)
}

/// Forks; fails unless the child says that all is well. The child has a copy of everything, and
/// takes what it likes out of that: the compiler does not know that there are two of it then.
macro_rules! forked {
    ($child:block) => {{
        // SAFETY: as above.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0);
        if pid == 0 {
            let well: bool = $child;
            // SAFETY: it ends at once.
            unsafe { libc::_exit(i32::from(!well)) }
        }
        assert!(ends_well(pid));
    }};
}

/// What it does to its copies has no effect, and it may enter for itself.
#[test]
fn a_child_inherits_neither_place_nor_permit() {
    let (_place, locks) = directory();
    let semaphore = locks.semaphore("a", 2).expect("it is made");
    let me = std::process::id() as i32;
    let holders = || semaphore.status().holders.iter().map(|holder| holder.pid).collect::<Vec<_>>();
    // The second passage is one through the gate.
    drop(semaphore.acquire().expect("it is free"));
    let first = semaphore.acquire().expect("it is free");
    forked!({
        drop(first);
        holders() == [me]
    });
    assert_eq!(holders(), [me]);
    let second = semaphore.acquire().expect("it is free");
    forked!({
        drop(second);
        drop(first);
        holders() == [me, me] && semaphore.try_acquire().is_ok_and(|permit| permit.is_none())
    });
    let third = semaphore.enter().expect("there is room");
    forked!({ matches!(third.wait(), Err(Error::Forked(_))) });
    forked!({
        drop(third);
        semaphore.status().waiting.len() == 1
    });
    assert_eq!((holders(), semaphore.status().waiting.len()), (vec![me, me], 1));
    drop(first);
    let third = third.wait().expect("it is its turn");
    drop(third);
    // For itself, and it takes that with it.
    forked!({
        std::mem::forget(semaphore.acquire());
        let all = holders();
        all.len() == 2 && all.contains(&me) && all.contains(&(std::process::id() as i32))
    });
    assert!(semaphore.acquire().expect("it is free").recovered());
    assert_eq!(holders(), [me]);
    drop(second);
    assert!(holders().is_empty());
}

/// Other processes would take a process for dead that does not tell who it is.
#[test]
fn a_process_that_cannot_be_identified_does_not_enter() {
    let (_place, locks) = directory();
    let semaphore = locks.semaphore("a", 1).expect("it is made");
    let refused = forked_is_well(|| {
        let none = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
        rustix::process::setrlimit(rustix::process::Resource::Nofile, none)
            .expect("less is allowed");
        matches!(semaphore.try_acquire(), Err(Error::Identity { .. }))
            && matches!(semaphore.enter(), Err(Error::Identity { .. }))
            && locks.semaphore("a", 1).is_err()
    });
    assert!(refused);
    assert!(semaphore.try_acquire().expect("it works").is_some());
}

/// It does not see the processes of its own namespace in `/proc`, and its PID means another process
/// there.
#[test]
fn a_process_with_the_proc_of_another_pid_namespace_does_not_enter() {
    let (_place, locks) = directory();
    let semaphore = locks.semaphore("a", 1).expect("it is made");
    let refused = forked_is_well(|| {
        // SAFETY: changes where the children of this process are born, and with it who may do so,
        // and nothing else.
        let moved = unsafe {
            libc::unshare(libc::CLONE_NEWPID) == 0
                || libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWPID) == 0
        };
        if !moved {
            eprintln!(
                "left out: no namespace can be made here; run the tests as root, or allow user namespaces"
            );
            return true;
        }
        forked_is_well(|| {
            std::process::id() == 1 && matches!(semaphore.try_acquire(), Err(Error::Namespace(_)))
        })
    });
    assert!(refused);
    assert!(semaphore.try_acquire().expect("it works").is_some());
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

/// Whoever was through `enter` before another began it goes in before it. When they began and were
/// through is told by a clock that has nothing to do with the lock, and in which order they went in
/// by a file that is written inside.
#[test]
fn eight_processes_go_in_in_the_order_in_which_they_entered() {
    let (place, locks) = directory();
    let passages = 100_000;
    let semaphore = locks.semaphore("fifo", 1).expect("it is made");
    let [noted, clock] =
        [".noted", ".clock"].map(|name| place.path().join(name).display().to_string());
    fs::write(&noted, "").expect("it can be written");
    fs::write(&clock, [0; 8]).expect("it can be written");
    let each = (passages / 8).to_string();
    let gate = semaphore.acquire().expect("it is free");
    let children: Vec<_> =
        (0..8).map(|_| helper("queues", place.path(), &[&noted, &each, &clock])).collect();
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
    let inside: Vec<_> =
        noted.chunks_exact(16).map(|both| (number(&both[..8]), number(&both[8..]))).collect();
    assert_eq!(inside.len(), passages / 8 * 8);
    let mut earliest = u64::MAX;
    let mut waited = 0;
    for &(begins, entered) in inside.iter().rev() {
        assert!(
            earliest > begins,
            "who was through at {earliest} went in after one who began at {begins}"
        );
        waited += usize::from(earliest < u64::MAX && earliest < entered + 8);
        earliest = earliest.min(entered);
    }
    assert!(waited > 0, "nobody ever waited");
}

/// What the fuzzer has found to lead somewhere new (`fuzz/corpus`), and some hundred inputs more:
/// nothing crashes, nothing hangs. `DOORWAY_SCRIBBLES` says how many.
#[test]
fn a_file_that_is_scribbled_in_does_no_harm() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/corrupted");
    let found = fs::read_dir(&corpus)
        .expect("the corpus is there")
        .map(|entry| entry.expect("it can be read").path());
    let mut inputs: Vec<Vec<u8>> =
        found.map(|path| fs::read(path).expect("it can be read")).collect();
    assert!(inputs.len() > 20, "the corpus has {}", inputs.len());
    let mut dice = 0x5eed_u64;
    let mut random = || {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        dice
    };
    let rounds: usize =
        env::var("DOORWAY_SCRIBBLES").map_or(300, |text| text.parse().expect("a number"));
    inputs.extend((0..rounds).map(|_| {
        let cut = if random().is_multiple_of(16) { random() as u16 % 6000 } else { 0 };
        let mut input = vec![random() as u8, cut as u8, (cut >> 8) as u8];
        for _ in 0..1 + random() % 20 {
            input.extend((random() as u16).to_le_bytes());
            // The header seldom, and small numbers often.
            input.push(random() as u8 & if random().is_multiple_of(8) { 7 } else { 3 });
            input.extend((random() >> (random() % 64)).to_le_bytes());
        }
        input
    }));
    let (say, said) = std::sync::mpsc::channel();
    let tried = inputs.clone();
    let all = thread::spawn(move || {
        let (_place, locks) = directory();
        tried.iter().for_each(|input| {
            say.send(corrupted::exercise(&locks, input)).expect("somebody listens")
        });
    });
    let mut outcomes = Vec::new();
    for input in &inputs {
        match said.recv_timeout(Duration::from_secs(120)) {
            Ok(outcome) => outcomes.push(outcome),
            Err(why) => panic!("{input:02x?}: {why}"),
        }
    }
    all.join().expect("it has come to its end");
    for outcome in [Outcome::Refused, Outcome::Damaged, Outcome::Fine] {
        let times = outcomes.iter().filter(|&&other| other == outcome).count();
        println!("{outcome:?}: {times}");
        assert!(times > 0, "never {outcome:?}");
    }
}
