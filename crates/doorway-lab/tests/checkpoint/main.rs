//! A search that is interrupted and goes on, or that goes to disk, finds what it finds without
//! that.

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
    Checkpoint, CheckpointError, Entrant, Options, Progress, Report, Subject, Unchecked, check,
    check_kept,
};

#[path = "../common/dead.rs"]
mod dead;
mod disk;
mod files;

use dead::{Dead, dead};

/// A directory that is removed in the end.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name =
            format!("doorway-checkpoint-{}-{}", std::process::id(), COUNT.fetch_add(1, Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).expect("it can be made");
        Self(path)
    }

    fn checkpoint(&self) -> Checkpoint {
        let path = self.0.join("search");
        Checkpoint {
            path,
            program: "test".into(),
            more: String::new(),
            every: Duration::from_secs(1000),
        }
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("it is there");
        entries
            .map(|entry| entry.expect("it is there").file_name().to_string_lossy().into_owned())
            .collect()
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
    let Report { complete, states, transitions, depth, shared_values, max_register, bits, .. } =
        report;
    format!(
        "{:?}",
        (complete, states, transitions, depth, shared_values, max_register, bits, verdicts)
    )
}

/// Checks, and interrupts the search as soon as it has finished a level that leaves it with this
/// many states.
fn interrupted(
    subject: &dyn Subject,
    options: &Options,
    checkpoint: &Checkpoint,
    at: u64,
) -> Report {
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
        // At the end of a level, and then in the middle of some: how far it gets until then is left
        // to chance.
        let mut kept =
            check_kept(subject, &few, &Progress::default(), &checkpoint).expect("it runs").states;
        assert!(kept > 1 && kept < whole.states);
        for percent in [30, 50, 80] {
            assert_eq!(directory.names(), ["search"], "{} at {kept} states", subject.name());
            let options = Options { workers: workers.0, ..options.clone() };
            let part = interrupted(subject, &options, &checkpoint, whole.states * percent / 100);
            if !part.resumable {
                break; // it was faster than the interrupt
            }
            assert!(
                part.states >= kept && part.states <= whole.states,
                "{} after {kept}",
                part.states
            );
            kept = part.states;
        }
        let options = Options { workers: workers.1, ..options.clone() };
        let progress = Progress::default();
        let rest = check_kept(subject, &options, &progress, &checkpoint).expect("it runs");
        assert_eq!(facts(&rest), facts(&whole), "{}", subject.name());
        assert!(directory.names().is_empty(), "it is removed in the end");
    }
}

/// A file of an interrupted search, and that search.
fn kept(
    directory: &Directory,
    name: &str,
    n: usize,
    max_states: u64,
) -> (Box<dyn Subject>, Options, Vec<u8>) {
    let subject = subject(name, Size::mutex(n));
    let options = Options { properties: SAFETY.to_vec(), max_states, ..Options::default() };
    let checkpoint = directory.checkpoint();
    let report =
        check_kept(&*subject, &options, &Progress::default(), &checkpoint).expect("it runs");
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

const SAFETY: [Property; 2] = [Property::MutualExclusion, Property::StarvationFreedom];

#[test]
fn an_interrupted_search_goes_on() {
    let options = Options { properties: SAFETY.to_vec(), ..Options::default() };
    goes_on(&*subject("bakery", Size::mutex(3)), &options);
    goes_on(&*subject("black-white-bakery", Size::mutex(3)), &options);
    goes_on(&*subject("yang-anderson", Size::mutex(3)), &options);
    let bounded = Options { passages: Some(2), ..options.clone() };
    goes_on(&*subject("bakery", Size::mutex(3)), &bounded);
    let slots =
        Options { properties: vec![Property::KExclusion, Property::KFcfs], ..bounded.clone() };
    goes_on(&*subject("k-bakery", Size { n: 3, k: 2, sessions: 0 }), &slots);
}

/// Numbers are given there in more ways: writes of two steps, domains of reads, renamed states in
/// the middle of a write.
#[test]
fn an_interrupted_search_goes_on_on_other_registers() {
    for registers in [RegisterKind::Safe, RegisterKind::Regular] {
        let options = Options { properties: SAFETY.to_vec(), registers, ..Options::default() };
        goes_on(
            &*subject("bakery", Size::mutex(3)),
            &Options { passages: Some(1), ..options.clone() },
        );
        goes_on(&*subject("bakery", Size::mutex(2)), &options);
    }
}

#[test]
fn attempts_and_kills_are_kept() {
    let options = Options {
        properties: vec![Property::MutualExclusion],
        passages: Some(1),
        ..Options::default()
    };
    goes_on(
        &*subject("randomized", Size::mutex(2)),
        &Options { retries: Some(2), ..options.clone() },
    );
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
    let run = |options| {
        check_kept(&*bakery, options, &Progress::default(), &directory.checkpoint())
            .expect("it runs")
    };
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
    let options =
        Options { properties: vec![Property::KExclusion], workers: 2, ..Options::default() };
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
            let report = check_kept(&*subject, &few, &Progress::default(), &directory.checkpoint())
                .expect("it runs");
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
    check_kept(&*bakery, &options, &Progress::default(), &directory.checkpoint())
        .expect("it is the same search");
}

/// After a fault with merged local states the check begins again without: both searches can be
/// interrupted, and nothing of one goes into the other.
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
        let report =
            check_kept(&*subject, &few, &Progress::default(), &checkpoint).expect("it runs");
        if report.resumable {
            let bytes = fs::read(&checkpoint.path).expect("it was kept");
            let says =
                |words: &str| bytes.windows(words.len()).any(|bytes| bytes == words.as_bytes());
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

/// Whether an exit section ends is decided from all that was learned, also from what gave no new
/// number: a finished search that goes on expands nothing again.
#[test]
fn what_gave_no_number_is_learned_again() {
    let mcs = subject("mcs", Size::mutex(2));
    let directory = Directory::new();
    let options = Options {
        properties: vec![Property::BoundedExit],
        disk: Some(directory.0.clone()),
        ..Options::default()
    };
    let little = Options { max_memory: Some(0), ..options.clone() };
    let run = |options| {
        check_kept(&*mcs, options, &Progress::default(), &directory.checkpoint()).expect("it runs")
    };
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
    let report = check_kept(&*bakery, &options, &Progress::default(), &directory.checkpoint())
        .expect("it runs");
    assert!(report.complete && report.verdicts[0].holds != Some(true));
    assert!(!report.resumable && directory.names().is_empty());
    directory = Directory::new();
    let few = Options { max_states: 10, ..options };
    let report =
        check_kept(&*bakery, &few, &Progress::default(), &directory.checkpoint()).expect("it runs");
    assert!(report.resumable && directory.names() == ["search"]);
}
