//! Searches that go to disk, with little memory.

use super::*;

/// Little memory, and the same is found on disk; nothing is left behind there.
#[test]
fn what_memory_does_not_hold_goes_to_disk() {
    let subject = subject("k-bakery", Size { n: 3, k: 2, sessions: 0 });
    let options =
        Options { properties: vec![Property::KExclusion], workers: 2, ..Options::default() };
    let whole = check(&*subject, &options, &Progress::default()).expect("it runs");
    for megabytes in [0, 4, 8] {
        let directory = Directory::new();
        let options = Options {
            max_memory: Some(megabytes << 20),
            disk: Some(directory.0.clone()),
            ..options.clone()
        };
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
    let options = Options {
        properties: SAFETY.to_vec(),
        disk: Some(directory.0.clone()),
        ..Options::default()
    };
    let little = Options { max_memory: Some(1 << 16), ..options.clone() };
    let run = |options| {
        check_kept(&*bakery, options, &Progress::default(), &directory.checkpoint())
            .expect("it runs")
    };
    let report = run(&little);
    assert_eq!(
        report.verdicts.iter().map(|verdict| verdict.holds).collect::<Vec<_>>(),
        [Some(true), None]
    );
    assert!(
        report.verdicts[1].scope.contains("raise --max-memory"),
        "{}",
        report.verdicts[1].scope
    );
    // The search is kept, so that nothing is searched twice.
    assert!(report.resumable && directory.names() == ["search"]);
    let progress = Progress::default();
    let again =
        check_kept(&*bakery, &options, &progress, &directory.checkpoint()).expect("it runs");
    assert_eq!(again.verdicts[1].holds, Some(true));
    assert_eq!(progress.resumed.load(Relaxed), report.states);
    assert!(directory.names().is_empty());
}

/// Where nothing can be written, the search ends with a word about it.
#[test]
fn without_a_disk_the_search_ends() {
    let bakery = subject("bakery", Size::mutex(3));
    let nowhere = Path::new("/there/is/no/such/directory");
    let options =
        Options { max_memory: Some(6 << 20), disk: Some(nowhere.into()), ..Options::default() };
    let subject = subject("k-bakery", Size { n: 3, k: 2, sessions: 0 });
    let report = check(&*subject, &options, &Progress::default()).expect("it runs");
    assert!(!report.complete && report.states > 10_000, "{}", report.states);
    assert!(report.no_room.is_some_and(|why| why.contains("/there/is/no/such/directory")));
    // Not even for the beginning.
    let options = Options { max_memory: Some(0), ..options };
    let report = check(&*bakery, &options, &Progress::default()).expect("it runs");
    assert!(!report.complete && report.no_room.is_some());
}
