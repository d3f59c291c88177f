//! `doorway bench`.

use serde_json::Value;

use super::{fields, has_fields, prints, refused};

/// The shortest measurements that may be asked for.
const SHORT: [&str; 6] = ["bench", "--quick", "--seconds", "0.002", "--threads", "2"];

/// The objects that are printed, one in each line.
fn objects(args: &[&str]) -> Vec<Value> {
    let out = prints(0, &[&SHORT, args, &["--json"]].concat());
    out.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}")))
        .collect()
}

#[test]
fn a_lock_is_an_object_in_a_line() {
    let rows = objects(&["turns", "uncontended", "--lock", "FairMutex"]);
    for row in &rows {
        has_fields(
            row,
            &[
                "group",
                "lock",
                "threads",
                "k",
                "inside_ns",
                "think_ns",
                "ops_per_second",
                "reference",
                "ratio",
            ],
        );
        has_fields(row, &["how", "ratios", "share_max_min", "wait_ns", "order"]);
        assert_eq!(fields(&row["wait_ns"]), ["p50", "p99", "max"]);
        assert_eq!(fields(&row["order"]), ["doorway", "passages", "overtakings", "intrusions"]);
        assert_eq!(row["order"]["intrusions"], 0, "{row}");
        assert_eq!(
            row["ratio"],
            row["ratios"][row["reference"].as_str().expect("a name")],
            "{row}"
        );
        // On a busy machine so short a measurement may see nothing.
        if row["reference"] == row["lock"] && row["ops_per_second"] != 0.0 {
            assert_eq!(row["ratio"], 1.0, "{row}");
        }
    }
    let of = |group: &str, lock: &str| {
        rows.iter().filter(|row| row["group"] == group && row["lock"] == lock).count()
    };
    // 50 ns and 1 µs inside.
    assert_eq!(of("turns", "parking_lot FairMutex"), 2);
    assert_eq!(of("turns", "tokio Semaphore"), 2, "a reference is there, whatever is asked for");
    assert_eq!(of("turns", "async-lock Semaphore"), 0);
    assert_eq!(
        (of("uncontended", "std Mutex"), of("uncontended", "tokio Semaphore try_acquire")),
        (1, 1)
    );
    assert!(rows.iter().all(|row| row["group"] != "uncontended" || row["threads"] == 1));
    assert!(rows.iter().all(|row| row["group"] != "turns" || row["threads"] == 2));
}

#[test]
fn a_table_has_ratios_first() {
    let out = prints(0, &[&SHORT[..], &["slots"]].concat());
    let mut lines = out.lines();
    assert_eq!(lines.next(), Some("slots: threads, n = 2, k = 4, 50 ns inside, no think time"));
    let head = lines.next().expect("a head");
    assert!(head.starts_with("  × tokio Semaphore  lock"), "{head}");
    // On a busy machine so short a measurement may see nothing, and then there is no ratio.
    let own = |row: &str| {
        row.trim_start_matches([' ', '1', '.', '0', '-']).starts_with("tokio Semaphore ")
    };
    assert!(lines.take_while(|line| !line.is_empty()).any(own), "{out}");
    // Those with one slot have no place here.
    assert!(out.contains("async-lock Semaphore") && !out.contains("std Mutex  "), "{out}");
}

#[test]
fn groups_and_locks_are_listed() {
    let out = prints(0, &["bench", "--list"]);
    for name in
        ["uncontended: ", "task: ", "turns: ", "slots: ", "async: ", "groups: ", "threads: "]
    {
        assert!(out.lines().any(|line| line.starts_with(name)), "no {name}in {out}");
    }
    for peer in [
        "std Mutex",
        "parking_lot FairMutex",
        "parking_lot RwLock",
        "tokio RwLock",
        "async-lock Mutex",
        "spin Mutex",
    ] {
        assert!(out.contains(peer), "no {peer} in {out}");
    }
    let one = prints(0, &["bench", "task", "--list"]);
    assert!(one.starts_with("task: ") && !one.contains("turns"), "{one}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (args, complaint) in [
        (&["luck"][..], "there are uncontended, task, "),
        (&["turns", "two\nlines"], "there are uncontended, task, "),
        (&["--rounds", "6"], "try --rounds 7"),
        (&["--rounds", "-1"], "'-1'"),
        (&["--seconds", "0"], "try --seconds 0.1"),
        (&["--seconds", "NaN"], "try --seconds 0.1"),
        (&["--seconds", "inf"], "try --seconds 0.1"),
        (&["--threads", "0"], "try --threads 1,2,16"),
        (&["--threads", "2,5000"], "from 1 to 4096"),
        (&["--threads", "some"], "'some'"),
        (&["--lock", "luck"], "see doorway bench --list"),
        (&["--list", "--json"], "cannot be used with"),
    ] {
        let line = refused(&[&["bench"], args].concat());
        assert!(line.contains(complaint), "{args:?}: {line}");
    }
}
