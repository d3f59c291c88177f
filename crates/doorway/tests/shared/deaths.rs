//! Deaths that waiters find, tell of, and survive.

use super::*;

/// A process may wait in slices that are too short to watch in: it finds a dead holder all the
/// same.
#[test]
fn waiting_in_short_slices_finds_a_dead_holder() {
    let (place, locks) = directory();
    let mutex = locks.semaphore("a", 1).expect("it is made");
    let mut holder = helper("holds", place.path(), &["a", "1"]);
    says(&mut holder, "holds");
    let mut mine = mutex.enter().expect("there is room");
    holder.kill().expect("it runs");
    holder.wait().expect("it has ended");
    let begin = Instant::now();
    loop {
        mine = match mine.wait_timeout(Duration::from_millis(5)) {
            Ok(permit) => break assert!(permit.recovered()),
            Err(NotYet::Late(place)) => place,
            Err(NotYet::Failed(error)) => panic!("{error}"),
        };
        assert!(begin.elapsed() < Duration::from_secs(60), "the holder is dead");
    }
}

/// A place that was granted the slot of a dead process, and is dropped, does not take the news with
/// it.
#[test]
fn a_death_is_told_to_the_next_holder_if_a_place_is_dropped() {
    let (place, locks) = directory();
    let mutex = locks.semaphore("a", 1).expect("it is made");
    let mut holder = helper("holds", place.path(), &["a", "1"]);
    says(&mut holder, "holds");
    let mine = mutex.enter().expect("there is room");
    holder.kill().expect("it runs");
    holder.wait().expect("it has ended");
    mutex.reap().expect("it works");
    assert_eq!(mutex.status().holders.len(), 1, "this process has been granted the slot");
    drop(mine);
    let granted_at_once = mutex.enter().expect("there is room");
    drop(granted_at_once);
    assert!(mutex.acquire().expect("it is free").recovered());
    assert!(!mutex.acquire().expect("it is free").recovered(), "it was told once");
}

/// A child that adopts a slot while its parent releases it either has the slot or learns that it
/// has not.
#[test]
fn adopting_a_slot_races_with_releasing_it() {
    let (_place, locks) = directory();
    let mutex = locks.mutex("a").expect("it is made");
    let other = locks.mutex("a").expect("it is there");
    let (mut adopted, mut stale) = (0, 0);
    for round in 0..400_u64 {
        let permit = mutex.acquire().expect("it is granted");
        let hand_over = permit.hand_over();
        let mut command = Command::new("sleep");
        command.arg("1000").stdin(Stdio::null());
        // SAFETY: between fork and exec nothing is allocated and no lock is taken.
        unsafe { command.pre_exec(move || hand_over.adopt()) };
        let child = thread::scope(|scope| {
            let child = scope.spawn(move || command.spawn());
            (0..round * 500).for_each(|_| std::hint::spin_loop());
            drop(permit);
            child.join().expect("it does not panic")
        });
        match child {
            Ok(mut child) => {
                adopted += 1;
                assert!(other.try_acquire().expect("it works").is_none(), "the child has the slot");
                child.kill().expect("it runs");
                child.wait().expect("it has ended");
            }
            Err(_) => stale += 1,
        }
        drop(other.acquire().expect("it is granted"));
    }
    println!("{adopted} adopted, {stale} too late");
}

/// More processes wait than an entry of the first page has room for, and all get their turn in
/// order.
#[test]
fn a_thousand_places_wait() {
    let (_place, locks) = directory();
    let mutex = locks.mutex("a").expect("it is made");
    let first = mutex.acquire().expect("it is free");
    let places: Vec<_> = (0..1000).map(|_| mutex.enter().expect("there is room")).collect();
    assert!(places.windows(2).all(|pair| pair[0].ticket() < pair[1].ticket()));
    assert_eq!(mutex.status().waiting.len(), 1000);
    drop(first);
    for place in places {
        drop(place.wait().expect("it is its turn"));
    }
    assert!(mutex.try_acquire().expect("it works").is_some());
}

/// Places leave the queue from its middle, its front and its back, and the others keep their order.
#[test]
fn places_leave_the_queue_anywhere() {
    let (_place, locks) = directory();
    let mutex = locks.mutex("a").expect("it is made");
    let first = mutex.acquire().expect("it is free");
    let mut places: Vec<_> = (0..8).map(|_| mutex.enter().expect("there is room")).collect();
    for at in [3, 0, 5, 2] {
        drop(places.remove(at));
    }
    let newcomer = mutex.enter().expect("there is room");
    places.push(newcomer);
    assert!(places.windows(2).all(|pair| pair[0].ticket() < pair[1].ticket()));
    drop(first);
    for place in places {
        drop(place.wait_timeout(Duration::from_secs(60)).expect("it is its turn"));
    }
    assert!(mutex.try_acquire().expect("it works").is_some());
}
