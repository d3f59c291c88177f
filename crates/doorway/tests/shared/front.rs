//! A waiter that comes to the front of the queue watches the holders from then on.
//!
//! Behind another waiter a process watches that one, and looks at the queue every 10 s only. So it
//! has to be told when it comes to the front: otherwise it would find a dead holder late.

use super::*;

/// Processes that have waited for so long watch others.
const WATCHES: Duration = Duration::from_millis(500);
/// A waiter that was not told finds a death after 10 s.
const SOON: Duration = Duration::from_secs(5);

/// Kills the holder. The waiter, which has been told that it is at the front, gets the slot soon.
fn is_told(mut holder: Child, mut waiter: Child) {
    thread::sleep(Duration::from_millis(100));
    holder.kill().expect("it runs");
    let begin = Instant::now();
    holder.wait().expect("it has ended");
    says(&mut waiter, "holds");
    assert!(begin.elapsed() < SOON, "it was not told: {:?}", begin.elapsed());
    waiter.kill().expect("it runs");
    waiter.wait().expect("it has ended");
}

fn helper_that(what: &str, place: &TempDir, slots: &str) -> Child {
    let mut child = helper(what, place.path(), &["a", slots]);
    says(&mut child, what);
    child
}

#[test]
fn the_waiter_ahead_gives_up() {
    let (place, locks) = directory();
    let mutex = locks.semaphore("a", 1).expect("it is made");
    let holder = helper_that("holds", &place, "1");
    let ahead = mutex.enter().expect("there is room");
    let waiter = helper_that("waits", &place, "1");
    thread::sleep(WATCHES);
    drop(ahead);
    is_told(holder, waiter);
}

#[test]
fn the_waiter_ahead_is_granted_another_slot() {
    let (place, locks) = directory();
    let semaphore = locks.semaphore("a", 2).expect("it is made");
    let mine = semaphore.acquire().expect("it is free");
    let holder = helper_that("holds", &place, "2");
    let mut ahead = helper_that("waits", &place, "2");
    let waiter = helper_that("waits", &place, "2");
    thread::sleep(WATCHES);
    drop(mine);
    says(&mut ahead, "holds");
    is_told(holder, waiter);
    ahead.kill().expect("it runs");
    ahead.wait().expect("it has ended");
}

/// Its place is granted a slot while it does something else: it does not wait for it now.
#[test]
fn the_process_ahead_does_not_wait_and_is_granted_another_slot() {
    let (place, locks) = directory();
    let semaphore = locks.semaphore("a", 2).expect("it is made");
    let mine = semaphore.acquire().expect("it is free");
    let holder = helper_that("holds", &place, "2");
    let ahead = semaphore.enter().expect("there is room");
    let waiter = helper_that("waits", &place, "2");
    thread::sleep(WATCHES);
    drop(mine);
    is_told(holder, waiter);
    drop(ahead);
}

#[test]
fn the_waiter_ahead_is_killed() {
    let (place, locks) = directory();
    let _semaphore = locks.semaphore("a", 1).expect("it is made");
    let holder = helper_that("holds", &place, "1");
    let mut ahead = helper_that("waits", &place, "1");
    let waiter = helper_that("waits", &place, "1");
    thread::sleep(WATCHES);
    ahead.kill().expect("it runs");
    ahead.wait().expect("it has ended");
    is_told(holder, waiter);
}
