//! What several processes see of a named lock, killed and stopped ones among them; and files that somebody has written into.

use super::*;

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
