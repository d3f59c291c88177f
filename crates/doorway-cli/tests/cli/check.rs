//! `doorway lab check`.

use std::{fs, process::Stdio};

use serde_json::{Value, json as value};

use super::{command, doorway, fields, has_fields, json, prints};

/// What is decided of the property of this name.
fn verdict<'a>(report: &'a Value, name: &str) -> &'a Value {
    let properties = report["properties"].as_array().expect("an array");
    properties.iter().find(|p| p["name"] == name).unwrap_or_else(|| panic!("no {name} in {report}"))
}

const FIELDS: [&str; 14] = [
    "algorithm",
    "n",
    "k",
    "sessions",
    "passages",
    "registers",
    "crashes",
    "complete",
    "states",
    "transitions",
    "seconds",
    "states_per_second",
    "properties",
    "bounds",
];

#[test]
fn a_bounded_search_is_complete_and_reports_every_field() {
    let report = json(0, &["lab", "check", "bakery", "-n", "3", "--passages", "2", "--json"]);
    has_fields(&report, &FIELDS);
    has_fields(&report["bounds"], &["shared_values", "max_register"]);
    for (field, expected) in [
        ("algorithm", value!("bakery")),
        ("n", value!(3)),
        ("k", value!(1)),
        ("passages", value!(2)),
        ("registers", value!("atomic")),
        ("crashes", value!(0)),
        ("complete", value!(true)),
        // What SPIN finds; scripts/spin/agree asks it.
        ("states", value!(59_331)),
    ] {
        assert_eq!(report[field], expected, "{field}");
    }
    assert!(report["transitions"].as_u64() > report["states"].as_u64());
    assert!(report["seconds"].as_f64().is_some_and(|seconds| seconds > 0.0));
    assert_eq!(report["bounds"]["max_register"], 6, "two passages each of three processes");
    for name in
        ["mutual-exclusion", "fcfs", "starvation-freedom", "deadlock-freedom", "bounded-exit"]
    {
        let verdict = verdict(&report, name);
        assert_eq!(fields(verdict), ["name", "holds", "scope"]);
        assert_eq!(verdict["holds"], true, "{name}");
        assert!(
            verdict["scope"].as_str().is_some_and(|scope| scope.contains("2 passages")),
            "{verdict}"
        );
    }
}

#[test]
fn without_a_bound_passages_are_null() {
    for passages in [&[][..], &["--passages", "unbounded"]] {
        let report =
            json(0, &[&["lab", "check", "bakery", "-n", "2", "--json"], passages].concat());
        has_fields(&report, &FIELDS);
        assert_eq!((&report["passages"], &report["complete"]), (&Value::Null, &value!(true)));
        // The tickets of runs without end are relabelled: their sizes mean nothing.
        assert_eq!(report["bounds"]["max_register"], Value::Null);
    }
}

#[test]
fn one_worker_finds_what_two_find() {
    let with = |workers| {
        let mut report =
            json(0, &["lab", "check", "black-white-bakery", "-n", "3", "-j", workers, "--json"]);
        ["seconds", "states_per_second", "total_seconds", "workers", "bytes_per_state", "timings"]
            .iter()
            .for_each(|field| report[field] = Value::Null);
        report
    };
    assert_eq!(with("1"), with("2"));
}

#[test]
fn a_search_that_is_cut_short_decides_nothing() {
    let report = json(3, &["lab", "check", "bakery", "-n", "3", "--max-states", "1000", "--json"]);
    assert_eq!(report["complete"], false);
    report["properties"]
        .as_array()
        .expect("an array")
        .iter()
        .for_each(|p| assert_eq!(p["holds"], Value::Null, "{p}"));
    assert!(
        prints(3, &["lab", "check", "bakery", "-n", "3", "--max-states", "1000"])
            .contains("incomplete")
    );
}

/// The figure leaves out an else branch, and without it two processes are enough.
#[test]
fn the_black_white_bakery_as_printed_does_not_exclude() {
    let args = ["lab", "check", "black-white-bakery", "-n", "2", "--mutant", "as-printed"];
    let report = json(1, &[&args[..], &["--json"]].concat());
    let verdict = verdict(&report, "mutual-exclusion");
    assert_eq!(verdict["holds"], false);
    let trace = verdict["trace"].as_array().expect("a violation has a trace");
    assert_eq!(verdict["steps"], trace.len());
    for step in trace {
        has_fields(step, &["process", "line", "access"]);
        assert!(
            step["process"].is_u64() && step["line"].is_u64() && step["access"].is_string(),
            "{step}"
        );
    }
    assert!(
        prints(1, &args)
            .contains("mutual-exclusion is violated: two processes are in the critical section.")
    );
}

#[test]
fn burns_lamport_is_free_of_deadlock_and_not_of_starvation() {
    let args = ["lab", "check", "burns-lamport", "-n", "4", "--json"];
    let report = json(0, &args);
    assert_eq!((&report["complete"], &report["passages"]), (&value!(true), &Value::Null));
    assert_eq!(verdict(&report, "deadlock-freedom")["holds"], true);
    let report = json(1, &[&args[..], &["--property", "starvation-freedom"]].concat());
    let verdict = verdict(&report, "starvation-freedom");
    assert_eq!(verdict["holds"], false);
    assert!(verdict["loop_from"].as_u64() < verdict["steps"].as_u64(), "{verdict}");
}

/// With one slot, exclusion and order go by two names each.
#[test]
fn both_names_of_a_property_are_decided_alike() {
    for (algorithm, mutant, names) in [
        ("bakery", "without-line-3", ["mutual-exclusion", "k-exclusion"]),
        ("yang-anderson", "", ["fcfs", "k-fcfs"]),
    ] {
        for name in names {
            let mut args = vec!["lab", "check", algorithm, "-n", "3", "--json", "--property", name];
            if !mutant.is_empty() {
                args.extend(["--mutant", mutant]);
            }
            let report = json(1, &args);
            assert_eq!(verdict(&report, name)["holds"], false, "{algorithm} {name}");
        }
    }
}

/// Who is in the bakery's doorway waits already, as paper 003 sees it, and keeps others waiting.
#[test]
fn the_bakery_enables_nobody_in_order() {
    for (name, steps, loop_from, words) in [
        ("fifo-enabling", 6, Value::Null, "process 0 overtakes process 1"),
        (
            "k-deadlock-avoidance",
            6,
            value!(5),
            "processes 0, 1 wait to enter, and only 0 of k = 1 are enabled",
        ),
    ] {
        let args = ["lab", "check", "bakery", "--property", name];
        let report = json(1, &[&args[..], &["--json"]].concat());
        let verdict = verdict(&report, name);
        assert_eq!(
            (&verdict["holds"], &verdict["steps"]),
            (&value!(false), &value!(steps)),
            "{verdict}"
        );
        assert_eq!(verdict["loop_from"], loop_from);
        let text = prints(1, &args);
        assert!(text.contains(&format!("{name} is violated: ")) && text.contains(words), "{text}");
        // With passages bounded, it is another system that is spoken of.
        let bounded = json(1, &[&args[..], &["--passages", "1", "--json"]].concat());
        let scope = self::verdict(&bounded, name)["scope"].to_string();
        assert!(
            scope.contains("1 passage per process") && scope.contains("nothing of runs with more"),
            "{scope}"
        );
    }
}

#[test]
fn the_instance_is_printed_once() {
    for passages in ["1", "2", "unbounded"] {
        let text = prints(0, &["lab", "check", "bakery", "-n", "2", "--passages", passages]);
        assert_eq!(text.matches("n = 2, k = 1, ").count(), 1, "{text}");
        assert!(text.contains("  mutual-exclusion    holds  every reachable state\n"), "{text}");
    }
}

#[test]
fn the_row_of_a_loop_does_not_push_the_columns_aside() {
    let text = prints(
        1,
        &["lab", "check", "burns-lamport", "-n", "2", "--property", "starvation-freedom"],
    );
    assert!(text.contains("\n  step  process  line  access"), "{text}");
    assert!(text.lines().any(|line| line.starts_with("  ↻ ")), "{text}");
    let one = prints(0, &["lab", "check", "bakery", "-n", "2", "--passages", "1"]);
    assert!(one.contains("1 passage per process") && !one.contains("1 passages"), "{one}");
}

#[test]
fn without_a_violation_no_trace_is_written() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("trace.json");
    let path = file.to_str().expect("a name");
    let ran = doorway(&["lab", "check", "bakery", "--trace", path]);
    assert_eq!(ran.code, Some(0));
    assert_eq!(ran.err, format!("doorway: no violation was found, so {path} was not written\n"));
    assert!(!fs::exists(&file).expect("it can be looked for"));
}

/// Long enough that a terminal would see how far it is; a pipe does not.
#[test]
fn a_long_search_says_nothing_to_a_pipe() {
    prints(3, &["lab", "check", "yang-anderson", "-n", "4", "--max-states", "3000000"]);
}

/// A reader who has seen enough closes the pipe. That is no error, and the exit code still says
/// what was found.
#[test]
fn a_closed_pipe_is_no_error() {
    let violated = ["lab", "check", "bakery", "--mutant", "without-line-3"];
    let runs: [(&[&str], i32); 4] = [
        (&["lab", "list"], 0),
        (&violated, 1),
        (&["lab", "simulate", "bakery"], 0),
        (&["lab", "check", "--help"], 0),
    ];
    for (args, code) in runs {
        let mut child = command(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("doorway starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("doorway ends");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{args:?}");
        assert_eq!(output.status.code(), Some(code), "{args:?}");
    }
}

/// Timestamps are abstract unless asked for; the bounded ones have too many states for runs without
/// end.
#[test]
fn timestamps_are_chosen_and_reported() {
    for (args, kind, passages) in [
        (&[][..], "abstract", Value::Null),
        (&["--timestamps", "abstract"], "abstract", Value::Null),
        (&["--timestamps", "bounded"], "bounded", value!(2)),
        (&["--timestamps", "bounded", "--passages", "1"], "bounded", value!(1)),
    ] {
        let report = json(
            0,
            &[&["lab", "check", "timestamp-bakery", "-n", "2", "-k", "1", "--json"], args].concat(),
        );
        assert_eq!(
            (&report["timestamps"], &report["passages"]),
            (&value!(kind), &passages),
            "{args:?}"
        );
        assert_eq!(report["complete"], true, "{args:?}");
    }
    assert!(json(0, &["lab", "check", "bakery", "--json"])["timestamps"].is_null());
}

/// A counterexample says which timestamps it is about, and is replayed on these.
#[test]
fn traces_keep_their_timestamps() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("trace.json");
    let file = file.to_str().expect("a name");
    let check = [
        "lab",
        "check",
        "timestamp-bakery",
        "--timestamps",
        "bounded",
        "--mutant",
        "waits-for-more-than-k",
    ];
    prints(1, &[&check[..], &["--property", "k-exclusion", "--trace", file]].concat());
    let trace: Value =
        serde_json::from_str(&fs::read_to_string(file).expect("it is there")).expect("JSON");
    assert_eq!(trace["timestamps"], "bounded");
    assert!(prints(0, &["lab", "replay", file]).contains("M[0]"));
}

/// Paper 004's lock: complete up to a number of attempts that is printed, or for any number; and
/// line 32 as printed.
#[test]
fn attempts_are_followed_as_far_as_is_said() {
    let of = |retries, code, more: &[&str]| {
        let args =
            ["lab", "check", "randomized", "--passages", "1", "--retries", retries, "--json"];
        json(code, &[&args, more].concat())
    };
    for (retries, expected) in [("1", value!(1)), ("2", value!(2)), ("unbounded", value!(null))] {
        let report = of(retries, 0, &[]);
        assert_eq!((&report["retries"], &report["complete"]), (&expected, &value!(true)));
        for name in ["mutual-exclusion", "deadlock-freedom"] {
            let verdict = verdict(&report, name);
            assert_eq!(verdict["holds"], true);
            assert!(
                verdict["scope"].as_str().is_some_and(|scope| scope.contains(" attempt")),
                "{verdict}"
            );
        }
    }
    // Everybody tries for ever, and nobody waits: what happens after two attempts is not known, so
    // this is no deadlock.
    let printed = ["--mutant", "as-printed", "--property", "deadlock-freedom"];
    let scope = of("2", 0, &printed)["properties"][0]["scope"].to_string();
    assert!(
        scope.contains("of runs in which somebody would try more often it says nothing"),
        "{scope}"
    );
    assert_eq!(of("unbounded", 1, &printed)["properties"][0]["holds"], false);
    assert_eq!(
        fields(&json(0, &["lab", "check", "mcs", "--json"]))
            .iter()
            .find(|field| **field == "retries"),
        None
    );
}
