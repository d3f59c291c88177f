//! A search that is interrupted and goes on, or that goes to disk, finds what it finds without that.

use std::{
    fs,
    ops::Range,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed},
    thread,
    time::Duration,
};

use doorway_core::{Property, RegisterKind, Size};
use doorway_lab::{
    Checkpoint, CheckpointError, Entrant, Options, Progress, Report, Subject, Unchecked, check, check_kept,
};

#[path = "common/dead.rs"]
mod dead;

use dead::{Dead, dead};

/// A directory that is removed in the end.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("doorway-checkpoint-{}-{}", std::process::id(), COUNT.fetch_add(1, Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).expect("it can be made");
        Self(path)
    }

    fn checkpoint(&self) -> Checkpoint {
        let path = self.0.join("search");
        Checkpoint { path, program: "test".into(), more: String::new(), every: Duration::from_secs(1000) }
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("it is there");
        entries.map(|entry| entry.expect("it is there").file_name().to_string_lossy().into_owned()).collect()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn subject(name: &str, size: Size) -> Box<dyn Subject> {
    Entrant::named(name).expect("there is one").build(size, None, false).expect("it fits")
}

/// All of a report that does not depend on how it came about.
fn facts(report: &Report) -> String {
    let verdicts: Vec<_> = report
        .verdicts
        .iter()
        .map(|verdict| {
            let steps = verdict.trace.as_ref().map(|trace| trace.steps.len());
            (verdict.property, verdict.holds, &verdict.scope, steps)
        })
        .collect();
    let Report { complete, states, transitions, depth, shared_values, max_register, bits, .. } = report;
    format!("{:?}", (complete, states, transitions, depth, shared_values, max_register, bits, verdicts))
}

/// Checks, and interrupts the search as soon as it has finished a level that leaves it with this many states.
fn interrupted(subject: &dyn Subject, options: &Options, checkpoint: &Checkpoint, at: u64) -> Report {
    let progress = Progress::default();
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Relaxed) && progress.states.load(Relaxed) < at {
                thread::yield_now();
            }
            progress.cancel.store(true, Relaxed);
        });
        let report = check_kept(subject, options, &progress, checkpoint);
        ended.store(true, Relaxed);
        report.expect("it runs")
    })
}

fn goes_on(subject: &dyn Subject, options: &Options) {
    let whole = check(subject, options, &Progress::default()).expect("it runs");
    for workers in [(1, 1), (2, 2), (1, 3), (3, 1)] {
        let directory = Directory::new();
        let checkpoint = directory.checkpoint();
        let few = Options { workers: workers.0, max_states: whole.states / 5, ..options.clone() };
        // At the end of a level, and then in the middle of some: how far it gets until then is left to chance.
        let mut kept = check_kept(subject, &few, &Progress::default(), &checkpoint).expect("it runs").states;
        assert!(kept > 1 && kept < whole.states);
        for percent in [30, 50, 80] {
            assert_eq!(directory.names(), ["search"], "{} at {kept} states", subject.name());
            let options = Options { workers: workers.0, ..options.clone() };
            let part = interrupted(subject, &options, &checkpoint, whole.states * percent / 100);
            if !part.resumable {
                break; // it was faster than the interrupt
            }
            assert!(part.states >= kept && part.states <= whole.states, "{} after {kept}", part.states);
            kept = part.states;
        }
        let options = Options { workers: workers.1, ..options.clone() };
        let progress = Progress::default();
        let rest = check_kept(subject, &options, &progress, &checkpoint).expect("it runs");
        assert_eq!(facts(&rest), facts(&whole), "{}", subject.name());
        assert!(directory.names().is_empty(), "it is removed in the end");
    }
}

const SAFETY: [Property; 2] = [Property::MutualExclusion, Property::StarvationFreedom];

#[test]
fn an_interrupted_search_goes_on() {
    let options = Options { properties: SAFETY.to_vec(), ..Options::default() };
    goes_on(&*subject("bakery", Size::mutex(3)), &options);
    goes_on(&*subject("black-white-bakery", Size::mutex(3)), &options);
    goes_on(&*subject("yang-anderson", Size::mutex(3)), &options);
    let bounded = Options { passages: Some(2), ..options.clone() };
    goes_on(&*subject("bakery", Size::mutex(3)), &bounded);
    let slots = Options { properties: vec![Property::KExclusion, Property::KFcfs], ..bounded.clone() };
    goes_on(&*subject("k-bakery", Size { n: 3, k: 2, sessions: 0 }), &slots);
}

/// Numbers are given there in more ways: writes of two steps, domains of reads, renamed states in the middle of a write.
#[test]
fn an_interrupted_search_goes_on_on_other_registers() {
    for registers in [RegisterKind::Safe, RegisterKind::Regular] {
        let options = Options { properties: SAFETY.to_vec(), registers, ..Options::default() };
        goes_on(&*subject("bakery", Size::mutex(3)), &Options { passages: Some(1), ..options.clone() });
        goes_on(&*subject("bakery", Size::mutex(2)), &options);
    }
}

#[test]
fn attempts_and_kills_are_kept() {
    let options = Options { properties: vec![Property::MutualExclusion], passages: Some(1), ..Options::default() };
    goes_on(&*subject("randomized", Size::mutex(2)), &Options { retries: Some(2), ..options.clone() });
    let mut named_lock = subject("named-lock", Size::mutex(2));
    assert!(named_lock.let_kill(1));
    goes_on(&*named_lock, &Options { passages: Some(2), ..options });
}

/// What violates a property is found at the same depth, and then there is nothing more to keep.
#[test]
fn an_interrupted_search_finds_the_same_violation() {
    let entrant = Entrant::named("bakery").expect("there is one");
    let mutant = entrant.build(Size::mutex(3), Some("without-line-3"), false).expect("it fits");
    let options = Options { properties: vec![Property::MutualExclusion], ..Options::default() };
    goes_on(&*mutant, &options);
}

/// A search that has found enough is kept, too: with a larger bound it goes on.
#[test]
fn a_full_search_goes_on() {
    let bakery = subject("bakery", Size::mutex(3));
    let options = Options { properties: SAFETY.to_vec(), ..Options::default() };
    let whole = check(&*bakery, &options, &Progress::default()).expect("it runs");
    let directory = Directory::new();
    let few = Options { max_states: whole.states / 2, ..options.clone() };
    let run = |options| check_kept(&*bakery, options, &Progress::default(), &directory.checkpoint()).expect("it runs");
    let first = run(&few);
    assert!(first.resumable && !first.complete && first.states < whole.states);
    assert_eq!(facts(&run(&few)), facts(&first), "the same command says the same");
    assert_eq!(facts(&run(&options)), facts(&whole));
    assert!(directory.names().is_empty());
}

/// It is saved every now and then: an interrupt is not needed.
#[test]
fn a_search_is_saved_while_it_runs() {
    let subject = subject("k-bakery", Size { n: 3, k: 2, sessions: 0 });
    let options = Options { properties: vec![Property::KExclusion], workers: 2, ..Options::default() };
    let whole = check(&*subject, &options, &Progress::default()).expect("it runs");
    let directory = Directory::new();
    let checkpoint = Checkpoint { every: Duration::ZERO, ..directory.checkpoint() };
    let copy = directory.0.join("copy");
    let ended = AtomicBool::new(false);
    let progress = Progress::default();
    thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Relaxed) {
                let _ = fs::hard_link(&checkpoint.path, &copy); // the first one that it saves
                thread::yield_now();
            }
        });
        let report = check_kept(&*subject, &options, &progress, &checkpoint).expect("it runs");
        ended.store(true, Relaxed);
        assert_eq!(facts(&report), facts(&whole));
    });
    // As if it had been killed after that.
    fs::rename(&copy, &checkpoint.path).expect("it was saved");
    let progress = Progress::default();
    let report = check_kept(&*subject, &options, &progress, &checkpoint).expect("it runs");
    assert_eq!(facts(&report), facts(&whole));
    let resumed = progress.resumed.load(Relaxed);
    assert!(resumed > 1 && resumed < whole.states, "{resumed}");
}

/// A file of an interrupted search, and that search.
fn kept(directory: &Directory, name: &str, n: usize, max_states: u64) -> (Box<dyn Subject>, Options, Vec<u8>) {
    let subject = subject(name, Size::mutex(n));
    let options = Options { properties: SAFETY.to_vec(), max_states, ..Options::default() };
    let checkpoint = directory.checkpoint();
    let report = check_kept(&*subject, &options, &Progress::default(), &checkpoint).expect("it runs");
    assert!(report.resumable);
    let bytes = fs::read(&checkpoint.path).expect("it was kept");
    (subject, options, bytes)
}

fn refused(subject: &dyn Subject, options: &Options, checkpoint: &Checkpoint) -> CheckpointError {
    match check_kept(subject, options, &Progress::default(), checkpoint) {
        Err(Unchecked::Checkpoint(error)) => error,
        Err(other) => panic!("{other}"),
        Ok(report) => panic!("{} states were believed", report.states),
    }
}

#[test]
fn damaged_files_are_refused_and_left_alone() {
    let directory = Directory::new();
    let checkpoint = directory.checkpoint();
    let (bakery, options, good) = kept(&directory, "bakery", 3, 2000);
    let refuse = |bytes: &[u8]| {
        fs::write(&checkpoint.path, bytes).expect("it can be written");
        let error = refused(&*bakery, &options, &checkpoint);
        assert!(fs::read(&checkpoint.path).expect("it is there") == bytes, "it is left alone");
        error
    };
    // Any bit of it.
    for at in (0..good.len()).step_by(97).chain([good.len() - 1]) {
        let mut bytes = good.clone();
        bytes[at] ^= 1 << (at % 8);
        match (at, refuse(&bytes)) {
            (0..8, CheckpointError::Foreign(_)) => {}
            (8..16, CheckpointError::Version { .. }) => {}
            (16.., CheckpointError::Damaged { .. }) => {}
            (_, error) => panic!("byte {at}: {error}"),
        }
    }
    // Cut anywhere, or with something after it.
    for len in [0, 7, 23].into_iter().chain((24..good.len()).step_by(1013)) {
        let error = refuse(&good[..len]);
        assert!(matches!(error, CheckpointError::Foreign(_)) == (len < 24), "{len} bytes: {error}");
    }
    refuse(&[&good[..], &[0; 8]].concat());
    refuse(b"#!/bin/sh\necho this is somebody's file\n");
    // And as it was, it is taken.
    fs::write(&checkpoint.path, &good).expect("it can be written");
    check_kept(&*bakery, &options, &Progress::default(), &checkpoint).expect("it runs");
}

/// The checksum of a file, as the module says.
fn checksum(words: &[u64]) -> u64 {
    words.iter().fold(0x243f_6a88_85a3_08d3, |sum: u64, word| {
        let product = u128::from(sum ^ word) * u128::from(0x9e37_79b9_7f4a_7c15_u64);
        (product >> 64) as u64 ^ product as u64 ^ sum.rotate_left(23)
    })
}

/// Where everything stands in the words of a file.
struct Map {
    /// What says which search it is: any change makes it another one.
    identity: Range<usize>,
    elapsed: usize,
    stride: usize,
    lessons: Range<usize>,
    bits: Range<usize>,
    sizes: Range<usize>,
    keys: Range<usize>,
}

impl Map {
    fn of(words: &[u64]) -> Self {
        let text = |at: usize| at + 1 + (words[at] as usize).div_ceil(8);
        let list = |at: usize| at + 1..at + 1 + words[at] as usize;
        let elapsed = text(text(3));
        let lessons = list(elapsed + 3);
        let bits = list(lessons.end);
        let sizes = list(bits.end);
        let keys = sizes.end..words.len() - 1;
        let map = Self { identity: 2..elapsed, elapsed, stride: elapsed + 2, lessons, bits, sizes, keys };
        let count: u64 = words[map.sizes.clone()].iter().sum();
        assert_eq!(count * words[map.stride], map.keys.len() as u64);
        map
    }

    /// Whether a file with this word here cannot be right.
    fn is_wrong(&self, words: &[u64], at: usize, word: u64) -> bool {
        // Keys have one word here, of which the top bit is always set. In some field there is space for more numbers than
        // all lessons can have given, so that not all of its bits can be set.
        let widest = *words[self.bits.clone()].iter().max().expect("there are fields");
        assert!(words[self.stride] == 1 && 1 << widest > words[self.lessons.clone()].len());
        let key = self.keys.contains(&at) && (word >> 63 == 0 || word == u64::MAX);
        word != words[at] && (self.identity.contains(&at) || at == self.stride || self.sizes.contains(&at) || key)
    }
}

/// With the checksum made right again: whatever the words say, it is refused or the search goes on, without a panic and
/// without a table for 2^60 states.
#[test]
fn made_up_files_do_no_harm() {
    for name in ["bakery", "black-white-bakery"] {
        let directory = Directory::new();
        let checkpoint = directory.checkpoint();
        let (subject, options, good) = kept(&directory, name, 2, 80);
        let good: Vec<u64> = good.as_chunks().0.iter().map(|&bytes| u64::from_le_bytes(bytes)).collect();
        assert_eq!(good.last(), Some(&checksum(&good[..good.len() - 1])));
        let map = Map::of(&good);
        let run = |words: &[u64]| {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            fs::write(&checkpoint.path, bytes).expect("it can be written");
            check_kept(&*subject, &options, &Progress::default(), &checkpoint)
        };
        let whole = facts(&run(&good).expect("it runs"));
        // Of what was learned there is much of a kind.
        let all = (2..map.lessons.start).chain(map.lessons.clone().step_by(5)).chain(map.bits.start - 1..map.keys.end);
        for at in all {
            for word in [0, u64::MAX, good[at].wrapping_add(1), good[at] ^ 1 << 40] {
                let mut words = good.clone();
                words[at] = word;
                *words.last_mut().expect("it is long") = checksum(&words[..words.len() - 1]);
                let wrong = map.is_wrong(&good, at, word);
                match run(&words) {
                    Err(Unchecked::Checkpoint(_)) => assert_ne!(at, map.elapsed, "{word:x} is a time"),
                    Err(other) => panic!("{name}: word {at}: {other}"),
                    Ok(_) if wrong => panic!("{name}: word {at} was believed to be {word:x}"),
                    Ok(report) if at == map.elapsed => assert_eq!(facts(&report), whole),
                    Ok(_) => {}
                }
            }
        }
    }
}

#[test]
fn other_searches_are_refused() {
    let directory = Directory::new();
    let checkpoint = directory.checkpoint();
    let (bakery, options, _) = kept(&directory, "bakery", 3, 2000);
    let program = Checkpoint { program: "another".into(), ..checkpoint.clone() };
    assert!(matches!(refused(&*bakery, &options, &program), CheckpointError::Program { .. }));
    let more = Checkpoint { more: ", abandoning".into(), ..checkpoint.clone() };
    assert!(matches!(refused(&*bakery, &options, &more), CheckpointError::Asked { .. }));
    let entrant = Entrant::named("bakery").expect("there is one");
    let mutant = entrant.build(Size::mutex(3), Some("without-line-3"), false).expect("it fits");
    let larger = subject("bakery", Size::mutex(4));
    let other = subject("yang-anderson", Size::mutex(3));
    let default = &options;
    for (subject, options) in [
        (&*mutant, default.clone()),
        (&*larger, default.clone()),
        (&*other, default.clone()),
        (&*bakery, Options { passages: Some(2), ..default.clone() }),
        (&*bakery, Options { registers: RegisterKind::Safe, ..default.clone() }),
        (&*bakery, Options { relabel: Some(false), ..default.clone() }),
        // It would have gone past a violation of this.
        (&*bakery, Options { properties: vec![Property::KExclusion], ..default.clone() }),
    ] {
        let error = refused(subject, &options, &checkpoint);
        assert!(matches!(error, CheckpointError::Asked { .. }), "{error}");
        assert_eq!(error.to_string().lines().count(), 1);
    }
    // What is decided afterwards is another matter, and so is how many workers search.
    let later = Options { properties: vec![Property::MutualExclusion], workers: 2, ..options };
    check_kept(&*bakery, &later, &Progress::default(), &checkpoint).expect("it runs");
}

/// Local states that are merged have to be merged again before anything is learned again.
#[test]
fn merged_local_states_are_merged_again() {
    for (name, n) in [("black-white-bakery", 2), ("mcs", 3)] {
        let subject = subject(name, Size::mutex(n));
        let options = Options { properties: SAFETY.to_vec(), ..Options::default() };
        let whole = check(&*subject, &options, &Progress::default()).expect("it runs");
        let (before, after) = whole.locals.expect("there are no tickets");
        assert!(after < before, "{name}");
        goes_on(&*subject, &options);
        // Where they are not merged, it is another search; and so it is the other way round.
        for minimise in [true, false] {
            let directory = Directory::new();
            let few = Options { minimise, max_states: whole.states / 2, ..options.clone() };
            let report = check_kept(&*subject, &few, &Progress::default(), &directory.checkpoint()).expect("it runs");
            assert!(report.resumable);
            let other = Options { minimise: !minimise, ..options.clone() };
            let error = refused(&*subject, &other, &directory.checkpoint());
            assert!(matches!(&error, CheckpointError::Asked { .. }), "{error}");
            assert!(error.to_string().contains(", local states merged"), "{error}");
        }
    }
    // Nothing is merged where there are tickets, whatever is asked for.
    let directory = Directory::new();
    let (bakery, options, _) = kept(&directory, "bakery", 3, 2000);
    let options = Options { minimise: false, ..options };
    check_kept(&*bakery, &options, &Progress::default(), &directory.checkpoint()).expect("it is the same search");
}

/// After a fault with merged local states the check begins again without: both searches can be interrupted, and nothing
/// of one goes into the other.
#[test]
fn a_search_that_has_begun_again_goes_on() {
    let subject = dead(Dead::Bound);
    let options = Options { properties: SAFETY.to_vec(), ..Options::default() };
    let whole = check(&*subject, &options, &Progress::default()).expect("it runs");
    assert_eq!(whole.locals, None, "it has begun again");
    let mut kinds = [0, 0];
    for max_states in 1..whole.states {
        let directory = Directory::new();
        let checkpoint = directory.checkpoint();
        let few = Options { max_states, ..options.clone() };
        let report = check_kept(&*subject, &few, &Progress::default(), &checkpoint).expect("it runs");
        if report.resumable {
            let bytes = fs::read(&checkpoint.path).expect("it was kept");
            let says = |words: &str| bytes.windows(words.len()).any(|bytes| bytes == words.as_bytes());
            let again = says("local states no longer merged");
            assert!(again != says("local states merged"));
            assert_eq!(again, report.locals.is_none());
            kinds[usize::from(again)] += 1;
        }
        let progress = Progress::default();
        let rest = check_kept(&*subject, &options, &progress, &checkpoint).expect("it runs");
        assert_eq!(facts(&rest), facts(&whole), "after {max_states} states");
        // A file of the search that ended with a fault is of no use.
        let resumed = if report.locals.is_none() && report.resumable { report.states } else { 0 };
        assert_eq!(progress.resumed.load(Relaxed), resumed);
        assert!(directory.names().is_empty());
    }
    assert!(kinds[0] > 0 && kinds[1] > 0, "{kinds:?}");
}

/// Whether an exit section ends is decided from all that was learned, also from what gave no new number: a finished
/// search that goes on expands nothing again.
#[test]
fn what_gave_no_number_is_learned_again() {
    let mcs = subject("mcs", Size::mutex(2));
    let directory = Directory::new();
    let options =
        Options { properties: vec![Property::BoundedExit], disk: Some(directory.0.clone()), ..Options::default() };
    let little = Options { max_memory: Some(0), ..options.clone() };
    let run = |options| check_kept(&*mcs, options, &Progress::default(), &directory.checkpoint()).expect("it runs");
    let first = run(&little);
    assert!(first.complete && first.resumable && first.verdicts[0].holds.is_none());
    let whole = check(&*mcs, &options, &Progress::default()).expect("it runs");
    assert_eq!(whole.verdicts[0].holds, Some(false), "an exit waits");
    assert_eq!(facts(&run(&options)), facts(&whole));
}

/// What no search can decide is no reason to keep one.
#[test]
fn a_search_that_cannot_decide_more_is_not_kept() {
    let mut directory = Directory::new();
    let bakery = subject("bakery", Size::mutex(2));
    let options = Options { properties: vec![Property::BoundedRegisters], ..Options::default() };
    let report = check_kept(&*bakery, &options, &Progress::default(), &directory.checkpoint()).expect("it runs");
    assert!(report.complete && report.verdicts[0].holds != Some(true));
    assert!(!report.resumable && directory.names().is_empty());
    directory = Directory::new();
    let few = Options { max_states: 10, ..options };
    let report = check_kept(&*bakery, &few, &Progress::default(), &directory.checkpoint()).expect("it runs");
    assert!(report.resumable && directory.names() == ["search"]);
}

/// Little memory, and the same is found on disk; nothing is left behind there.
#[test]
fn what_memory_does_not_hold_goes_to_disk() {
    let subject = subject("k-bakery", Size { n: 3, k: 2, sessions: 0 });
    let options = Options { properties: vec![Property::KExclusion], workers: 2, ..Options::default() };
    let whole = check(&*subject, &options, &Progress::default()).expect("it runs");
    for megabytes in [0, 4, 8] {
        let directory = Directory::new();
        let options = Options { max_memory: Some(megabytes << 20), disk: Some(directory.0.clone()), ..options.clone() };
        let progress = Progress::default();
        let report = check(&*subject, &options, &progress).expect("it runs");
        assert_eq!(facts(&report), facts(&whole));
        let news = progress.news();
        assert!(news.len() == 1 && news[0].contains("the search goes on on disk, in "), "{news:?}");
        assert!(directory.names().is_empty());
    }
}

/// So it is in a second search, which remembers more.
#[test]
fn a_second_search_goes_to_disk() {
    let subject = subject("group-black-white-bakery", Size::group(2, 2));
    let invariant = Property::Invariant(subject.claims().invariants[0].name);
    let options = Options { properties: vec![invariant], ..Options::default() };
    let whole = check(&*subject, &options, &Progress::default()).expect("it runs");
    assert_eq!(whole.verdicts[0].holds, Some(true));
    let directory = Directory::new();
    let options = Options { max_memory: Some(0), disk: Some(directory.0.clone()), ..options };
    let progress = Progress::default();
    let report = check(&*subject, &options, &progress).expect("it runs");
    assert_eq!(facts(&report), facts(&whole));
    assert_eq!(progress.news().len(), 1);
    assert!(directory.names().is_empty());
}

/// A graph is in memory, or there is none: then what needs it is not decided.
#[test]
fn a_graph_that_does_not_fit_is_not_built() {
    let bakery = subject("bakery", Size::mutex(3));
    let directory = Directory::new();
    let options = Options { properties: SAFETY.to_vec(), disk: Some(directory.0.clone()), ..Options::default() };
    let little = Options { max_memory: Some(1 << 16), ..options.clone() };
    let run = |options| check_kept(&*bakery, options, &Progress::default(), &directory.checkpoint()).expect("it runs");
    let report = run(&little);
    assert_eq!(report.verdicts.iter().map(|verdict| verdict.holds).collect::<Vec<_>>(), [Some(true), None]);
    assert!(report.verdicts[1].scope.contains("raise --max-memory"), "{}", report.verdicts[1].scope);
    // The search is kept, so that nothing is searched twice.
    assert!(report.resumable && directory.names() == ["search"]);
    let progress = Progress::default();
    let again = check_kept(&*bakery, &options, &progress, &directory.checkpoint()).expect("it runs");
    assert_eq!(again.verdicts[1].holds, Some(true));
    assert_eq!(progress.resumed.load(Relaxed), report.states);
    assert!(directory.names().is_empty());
}

/// Where nothing can be written, the search ends with a word about it.
#[test]
fn without_a_disk_the_search_ends() {
    let bakery = subject("bakery", Size::mutex(3));
    let nowhere = Path::new("/there/is/no/such/directory");
    let options = Options { max_memory: Some(6 << 20), disk: Some(nowhere.into()), ..Options::default() };
    let subject = subject("k-bakery", Size { n: 3, k: 2, sessions: 0 });
    let report = check(&*subject, &options, &Progress::default()).expect("it runs");
    assert!(!report.complete && report.states > 10_000, "{}", report.states);
    assert!(report.no_room.is_some_and(|why| why.contains("/there/is/no/such/directory")));
    // Not even for the beginning.
    let options = Options { max_memory: Some(0), ..options };
    let report = check(&*bakery, &options, &Progress::default()).expect("it runs");
    assert!(!report.complete && report.no_room.is_some());
}
