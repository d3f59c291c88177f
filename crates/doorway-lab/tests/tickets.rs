//! Paper 003 in numbers: how many values of the shared variable are reached, the runs of its lower
//! bound, what its footnote promises, and crashes.

use std::collections::BTreeSet;

use doorway_core::{Property, RegisterKind, Size};
use doorway_lab::{
    Choice, Entrant, Options, Progress, Random, Region, Report, Subject, check,
    machine::Machine,
    schedule::{Script, section_5},
};

const ALGORITHMS: [&str; 4] =
    ["queue", "numbered-ticket", "unbounded-colored-ticket", "colored-ticket"];

fn subject(name: &str, n: usize, k: usize, mutant: Option<&'static str>) -> Box<dyn Subject> {
    let entrant = Entrant::named(name).unwrap_or_else(|| panic!("{name} is not in the registry"));
    entrant.build(Size::slots(n, k), mutant, false).expect("it fits")
}

fn explore(subject: &dyn Subject, properties: &[Property], crashes: usize) -> Report {
    explore_passages(subject, properties, crashes, None)
}

fn explore_passages(
    subject: &dyn Subject,
    properties: &[Property],
    crashes: usize,
    passages: Option<u32>,
) -> Report {
    let options = Options {
        passages,
        crashes,
        properties: properties.to_vec(),
        max_states: 5_000_000,
        workers: 2,
        ..Options::default()
    };
    check(subject, &options, &Progress::default()).expect("it runs")
}

fn all_hold(report: &Report, what: &str) {
    assert!(report.complete, "{what}: incomplete");
    for verdict in &report.verdicts {
        assert_eq!(verdict.holds, Some(true), "{what}: {} ({})", verdict.property, verdict.scope);
    }
}

/// n over k.
fn choose(n: usize, k: usize) -> usize {
    (0..k).fold(1, |product, i| product * (n - i) / (i + 1))
}

/// All sizes with k < n ≤ `most`.
fn sizes(most: usize) -> impl Iterator<Item = (usize, usize)> {
    (2..=most).flat_map(|n| (1..n).map(move |k| (n, k)))
}

/// The paper gives two numbers for the values of the Colored Ticket Algorithm's variable,
/// (k+1)·C(2k,k)·M² (Theorem 4.1) and C(2k,k)·((k+1)·M)² (section 2.4), and proves that no
/// algorithm has fewer than C(N-k, 2) (section 5). What is reached is between. (5, 4) has too many
/// states for this; `doorway-core` counts its values without telling processes apart.
#[test]
fn shared_values_are_between_the_bounds() {
    println!("N  k  lower  reached  Theorem 4.1  section 2.4  queue");
    let mut reached = Vec::new();
    for (n, k) in sizes(5).filter(|&size| size != (5, 4)).chain([(6, 1), (7, 1)]) {
        let report =
            explore(&*subject("colored-ticket", n, k, None), &[Property::BoundedRegisters], 0);
        all_hold(&report, &format!("colored-ticket n = {n}, k = {k}"));
        let m = 1 + k.max(n - k);
        let lower = choose(n - k, 2);
        let theorem = (k + 1) * choose(2 * k, k) * m * m;
        let section = choose(2 * k, k) * ((k + 1) * m) * ((k + 1) * m);
        // Every line of at most n of n processes.
        let queue: usize = (0..=n).map(|waiting| (n - waiting + 1..=n).product::<usize>()).sum();
        println!(
            "{n}  {k}  {lower:5}  {:7}  {theorem:11}  {section:11}  {queue:5}",
            report.shared_values
        );
        assert!(lower <= report.shared_values, "n = {n}, k = {k}");
        assert!(report.shared_values <= theorem && theorem <= section, "n = {n}, k = {k}");
        if k == 1 {
            assert_eq!(report.shared_values, 2 * n * (n + 1), "n = {n}");
        }
        reached.push(((n, k), report.shared_values));
        if n < 5 {
            let report = explore(&*subject("queue", n, k, None), &[Property::BoundedRegisters], 0);
            assert_eq!(report.shared_values, queue, "n = {n}, k = {k}");
        }
    }
    for known in [((2, 1), 12), ((3, 1), 24), ((3, 2), 93)] {
        assert!(reached.contains(&known), "{known:?} is not among {reached:?}");
    }
}

/// What the shared variable holds at the end of h(i, j).
fn value_after(subject: &dyn Subject, i: usize, j: usize) -> String {
    let Size { n, k, .. } = subject.size();
    let mut script = Script::parse(&section_5(n, k, i, j), n).expect("it is a script");
    let mut machine = Machine::new(subject, RegisterKind::Atomic, true).expect("it runs").silent();
    let able: Vec<usize> = (0..n).collect();
    let mut regions = vec![Region::Remainder; n];
    let mut last = None;
    while let Some(p) = script.follow(&able, last.as_ref(), &regions).expect("it can be followed") {
        let choice = if regions[p] == Region::Remainder { Choice::Request(0) } else { Choice::Go };
        let event = machine.step(p, choice, None).expect("it runs");
        regions[p] = event.to;
        last = Some(event);
    }
    // Step 4 of the paper's construction: they are in their trying regions once again, all but
    // those who may go in.
    let came = |p: usize| p >= k && p < j;
    assert!((0..n).all(|p| !came(p) || regions[p] != Region::Remainder), "h({i}, {j})");
    assert!((j.max(k)..i).all(|p| regions[p] == Region::Remainder), "h({i}, {j})");
    machine.value(0).text()
}

/// Lemma 5.7: every q(i, j) has a shared value of its own. Hence the lower bound.
#[test]
fn the_runs_of_the_lower_bound_leave_distinct_values() {
    for name in ALGORITHMS {
        for (n, k) in sizes(8) {
            let subject = subject(name, n, k, None);
            let pairs: Vec<_> = (k..n).flat_map(|j| (j + 1..n).map(move |i| (i, j))).collect();
            let values: BTreeSet<_> =
                pairs.iter().map(|&(i, j)| value_after(&*subject, i, j)).collect();
            assert_eq!(values.len(), pairs.len(), "{name} n = {n}, k = {k}");
            assert_eq!(pairs.len(), choose(n - k, 2), "n = {n}, k = {k}");
        }
    }
}

/// Up to k - 1 may crash, wherever they are, and nobody starves.
#[test]
fn all_slots_but_one_may_be_lost() {
    for name in ALGORITHMS {
        for (n, k) in [(2, 1), (3, 1), (3, 2), (4, 2)] {
            let progress = [Property::StarvationFreedom, Property::DeadlockFreedom];
            let report = explore(&*subject(name, n, k, None), &progress, k - 1);
            all_hold(&report, &format!("{name} n = {n}, k = {k} with {} crashes", k - 1));
        }
    }
}

/// What the checker says of the Colored Ticket Algorithm with blocks of M = max(k, N - k): how many
/// values are reached, or what is violated.
fn with_small_blocks(mutant: &'static str, n: usize, k: usize) -> Result<usize, Property> {
    let subject = subject("colored-ticket", n, k, Some(mutant));
    // The order takes a search of its own, which is dear.
    let order = (n < 5).then_some(Property::Fife);
    let properties: Vec<_> =
        [Property::KExclusion, Property::StarvationFreedom].into_iter().chain(order).collect();
    let report = explore(&*subject, &properties, 0);
    if let Some(verdict) = report.verdicts.iter().find(|verdict| verdict.holds == Some(false)) {
        return Err(verdict.property);
    }
    all_hold(&report, &format!("{mutant} n = {n}, k = {k}"));
    Ok(report.shared_values)
}

/// Footnote 2: "In case k ≠ N - k, we can actually take M = max(k, N - k) and adjust the conditions
/// appropriately." So one can. One also can without adjusting anything, and if k = N - k: whoever
/// asks which pointer leads is in the middle of a transaction of its own, holds a ticket or is
/// about to take one, and that rules out the ambiguous distance.
#[test]
fn footnote_2_holds_and_says_too_little() {
    for (n, k) in sizes(5).filter(|&size| size != (5, 4)) {
        let smaller = with_small_blocks("blocks-of-max", n, k);
        let reached = smaller.unwrap_or_else(|property| panic!("n = {n}, k = {k}: {property}"));
        let footnote = with_small_blocks("footnote-2", n, k);
        println!("n = {n}, k = {k}: {reached} values, with the footnote's conditions {footnote:?}");
        if 2 * k == n {
            // The footnote does not speak of these, so the mutant leaves M as it is.
            assert!(footnote.is_ok_and(|values| values > reached), "n = {n}, k = {k}");
        } else {
            assert_eq!(footnote, Ok(reached), "n = {n}, k = {k}");
        }
    }
}

/// What breaks: reading a tie the other way, and reading it either way where k = N - k.
#[test]
fn ties_have_to_be_read_the_right_way() {
    for (n, k) in sizes(5).filter(|&size| size != (5, 4)) {
        let (valid, issue) =
            (with_small_blocks("ties-to-valid", n, k), with_small_blocks("ties-to-issue", n, k));
        println!("n = {n}, k = {k}: a tie to VALID {valid:?}, a tie to ISSUE {issue:?}");
        assert_eq!(valid.is_ok(), k > n - k, "n = {n}, k = {k}");
        assert_eq!(issue.is_ok(), k < n - k, "n = {n}, k = {k}");
    }
}

/// The paper's equivalence (section 3.2): after every schedule, every process is in the same region
/// whichever of the four algorithms it runs. Here for schedules at random. Returns at which step of
/// which schedule they part.
fn part(
    names: &[(&str, Option<&'static str>)],
    n: usize,
    k: usize,
    schedules: u64,
) -> Option<(u64, u64)> {
    let subjects: Vec<_> =
        names.iter().map(|&(name, mutant)| subject(name, n, k, mutant)).collect();
    let mut random = Random::new(n as u64, k as u64);
    for schedule in 0..schedules {
        let start =
            |subject| Machine::new(subject, RegisterKind::Atomic, true).expect("it runs").silent();
        let mut machines: Vec<_> = subjects.iter().map(|subject| start(&**subject)).collect();
        for step in 0..300 {
            let p = random.below(n as u64) as usize;
            for machine in &mut machines {
                let choice = machine.moves(p)[0].choice;
                machine.step(p, choice, None).expect("it runs");
            }
            if machines.iter().any(|machine| machine.region(p) != machines[0].region(p)) {
                return Some((schedule, step));
            }
        }
    }
    None
}

#[test]
fn the_four_algorithms_are_equivalent() {
    let plain = ALGORITHMS.map(|name| (name, None));
    for (n, k) in sizes(8) {
        assert_eq!(part(&plain, n, k, 30), None, "n = {n}, k = {k}");
    }
    // Blocks of max(k, N - k) are equivalent, too, and smaller ones are not.
    let with = |mutant| [("queue", None), ("colored-ticket", Some(mutant))];
    for (n, k) in sizes(8) {
        assert_eq!(part(&with("blocks-of-max"), n, k, 30), None, "n = {n}, k = {k}");
    }
    assert!(part(&with("blocks-too-small"), 5, 2, 30).is_some());
}

/// Tickets relabelled, in runs without end, against tickets as they are, in runs of three passages:
/// the same verdicts, and counterexamples of the same length.
#[test]
fn relabelled_tickets_tell_the_truth() {
    for name in ["numbered-ticket", "unbounded-colored-ticket"] {
        let mutants = Entrant::named(name).expect("it is in the registry").claims.mutants.iter();
        // In blocks that are too small the pointers are two colours apart, and only neighbours are
        // told apart.
        let mutants = mutants.map(|mutant| mutant.name).filter(|&name| name != "blocks-too-small");
        for mutant in mutants.map(Some).chain([None]) {
            for (n, k) in [(2, 1), (3, 1), (3, 2)] {
                let subject = subject(name, n, k, mutant);
                for property in [Property::KExclusion, Property::KFcfs] {
                    let [relabelled, plain] = [None, Some(3)]
                        .map(|passages| explore_passages(&*subject, &[property], 0, passages));
                    assert!(relabelled.relabelled && !plain.relabelled);
                    let verdict = |report: &Report| {
                        let verdict = &report.verdicts[0];
                        (verdict.holds, verdict.trace.as_ref().map(|trace| trace.steps.len()))
                    };
                    let what = format!("{name} {mutant:?} n = {n}, k = {k}: {property}");
                    assert!(verdict(&plain).0.is_some(), "{what}");
                    assert_eq!(verdict(&relabelled), verdict(&plain), "{what}");
                }
            }
        }
    }
}
