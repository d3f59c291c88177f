//! What is done with a file in which somebody scribbles: by the tests, and by the fuzzer in `fuzz`.
//!
//! The input says how. It is not a file, since files are made for a pid namespace, and the fuzzer's
//! finds are to be tried elsewhere, too.
//!
//! ```text
//! byte 0       the kind of lock; how many slots; whether somebody holds and waits already
//! bytes 1, 2   how many bytes are cut off the end, if any
//! then 11 bytes each: a word of the file, what is done to it (set or changed, before it is opened or while it is used), a number
//! ```

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    sync::atomic::{AtomicU64, Ordering::SeqCst},
    time::Duration,
};

use doorway::shared::{Directory, Kind, Lock, NotYet, Place};

/// Words of a header and of all: with four rows.
const HEADER: usize = 512;
const ROWS: usize = 4;

/// What came of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// It was not opened.
    Refused,
    /// Something that was done with it said that it is damaged.
    Damaged,
    /// Nothing was noticed.
    Fine,
}

struct Scribble {
    word: usize,
    late: bool,
    changes: bool,
    number: u64,
}

impl Scribble {
    fn of(bytes: &[u8]) -> Option<Self> {
        let [low, high, how, number @ ..] = bytes else { return None };
        let number = u64::from_le_bytes(number.try_into().ok()?);
        let word = usize::from(u16::from_le_bytes([*low, *high]));
        // Most of a header is empty.
        let word = if how & 4 == 0 { HEADER + word % (ROWS * 16 + 8) } else { word };
        Some(Self { word, late: how & 1 != 0, changes: how & 2 != 0, number })
    }

    fn apply(&self, old: u64) -> u64 {
        if self.changes { old ^ self.number } else { self.number }
    }
}

/// Makes the file of a lock, corrupts it, and uses it in every way.
pub(crate) fn exercise(locks: &Directory, input: &[u8]) -> Outcome {
    let [what, low, high, scribbles @ ..] = input else { return Outcome::Fine };
    let scribbles: Vec<Scribble> = scribbles.chunks_exact(11).filter_map(Scribble::of).collect();
    let mut bytes = sound(locks, *what);
    for scribble in scribbles.iter().filter(|scribble| !scribble.late) {
        if let Some(word) = bytes.chunks_exact_mut(8).nth(scribble.word) {
            let old = u64::from_ne_bytes(word.try_into().expect("these are eight"));
            word.copy_from_slice(&scribble.apply(old).to_ne_bytes());
        }
    }
    let cut = usize::from(u16::from_le_bytes([*low, *high]));
    bytes.truncate(bytes.len() - cut.min(bytes.len()));
    let path = locks.path().join("corrupted");
    let _ = fs::remove_file(&path);
    fs::write(&path, &bytes).expect("it can be written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("it is ours");
    match locks.lock("corrupted") {
        Err(_) => Outcome::Refused,
        Ok(lock) => {
            let mut failures = 0;
            use_it(&lock, &mut failures);
            scribble(lock.words(), scribbles.iter().filter(|scribble| scribble.late));
            use_it(&lock, &mut failures);
            failures += through_the_gate(locks, &lock);
            failures += usize::from(lock.reap().is_err()) + usize::from(lock.set_slots(1).is_err());
            let _ = (lock.status(), lock.remove());
            if failures > 0 { Outcome::Damaged } else { Outcome::Fine }
        }
    }
}

/// The bytes of a file that is as it should be.
fn sound(locks: &Directory, what: u8) -> Vec<u8> {
    let locks = locks.clone().with_capacity(ROWS);
    let slots = 1 + usize::from(what >> 2 & 1);
    let session = (what % 3 == 2).then_some("room");
    let (semaphore, mutex, group);
    let lock: &Lock = match what % 3 {
        0 => {
            semaphore = locks.semaphore("sound", slots).expect("it is made");
            &semaphore
        }
        1 => {
            mutex = locks.mutex("sound").expect("it is made");
            &mutex
        }
        _ => {
            group = locks.group_lock("sound", None).expect("it is made");
            &group
        }
    };
    let used: Vec<Place<'_>> = (0..if what & 128 == 0 { 0 } else { 3 })
        .map(|_| lock.enter(session).expect("there is room"))
        .collect();
    let bytes = fs::read(lock.path()).expect("it can be read");
    drop(used);
    lock.remove().expect("nobody uses it");
    bytes
}

fn scribble<'a>(words: &[AtomicU64], scribbles: impl Iterator<Item = &'a Scribble>) {
    for scribble in scribbles {
        if let Some(word) = scribble.word.checked_sub(HEADER).and_then(|word| words.get(word)) {
            word.store(scribble.apply(word.load(SeqCst)), SeqCst);
        }
    }
}

fn use_it(lock: &Lock, failures: &mut usize) {
    let session = (lock.kind() == Kind::GroupLock).then_some("room");
    let mut places = Vec::new();
    for _ in 0..2 {
        match lock.enter(session).map(|place| place.wait_timeout(Duration::from_micros(100))) {
            Ok(Ok(permit)) => {
                let _ = (permit.slot(), permit.recovered(), permit.hand_over(), permit.take_back());
                permit.note();
            }
            Ok(Err(NotYet::Late(place))) => places.push(place),
            Ok(Err(NotYet::Failed(_))) | Err(_) => *failures += 1,
        }
        *failures += usize::from(lock.try_enter(session).is_err());
    }
    let _ = (places.iter().map(Place::ahead).sum::<usize>(), lock.status());
}

/// What only locks of a known kind do.
fn through_the_gate(locks: &Directory, lock: &Lock) -> usize {
    let passages = |enter: &dyn Fn() -> bool| (0..3).filter(|_| !enter()).count();
    let settled = |place: Result<Place<'_>, _>| {
        place.is_ok_and(|place| {
            !matches!(place.wait_timeout(Duration::from_micros(100)), Err(NotYet::Failed(_)))
        })
    };
    match lock.kind() {
        Kind::Semaphore => {
            let opened = locks.semaphore("corrupted", lock.slots());
            opened.map_or(1, |semaphore| passages(&|| settled(semaphore.enter())))
        }
        Kind::Mutex => {
            locks.mutex("corrupted").map_or(1, |mutex| passages(&|| settled(mutex.enter())))
        }
        Kind::GroupLock => 0,
    }
}
