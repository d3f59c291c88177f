//! Group locks: sessions on the command line.

use std::fs;

use serde_json::{Value, json as value};

use super::{doorway, has_fields, json, prints, refused};

const BLACK_WHITE: &str = "group-black-white-bakery";

#[test]
fn the_largest_number_is_printed() {
    let report = json(0, &["lab", "check", BLACK_WHITE, "-n", "2", "--sessions", "2", "--json"]);
    for (field, expected) in [
        ("n", value!(2)),
        ("sessions", value!(2)),
        ("passages", Value::Null),
        ("complete", value!(true)),
        ("states", value!(6582)),
    ] {
        assert_eq!(report[field], expected, "{field}");
    }
    has_fields(&report["bounds"], &["shared_values", "max_register", "max_number", "bits"]);
    assert_eq!(
        (&report["bounds"]["max_number"], &report["bounds"]["bits"]),
        (&value!(3), &value!(11))
    );
    let verdicts = report["properties"].as_array().expect("an array");
    assert!(verdicts.iter().all(|verdict| verdict["holds"] == true), "{report}");
    assert!(verdicts.iter().any(|verdict| verdict["name"] == "invariant:one-flip"));
    assert!(
        verdicts
            .iter()
            .all(|verdict| verdict["scope"].as_str().is_some_and(|s| s.contains("2 sessions")))
    );
    let text = prints(0, &["lab", "check", BLACK_WHITE]);
    assert!(text.contains("n = 2, 2 sessions, any number of passages"), "{text}");
    assert!(
        text.contains("the largest number is 3, the bound 3; 11 bits of shared memory"),
        "{text}"
    );
}

#[test]
fn what_the_paper_says_fails_is_shown_and_replays() {
    let file = std::env::temp_dir().join(format!("doorway-group-{}.json", std::process::id()));
    let path = file.to_str().expect("a path in text");
    for algorithm in ["group-bakery", BLACK_WHITE] {
        for property in ["fife", "strong-concurrent-entry"] {
            let out =
                prints(1, &["lab", "check", algorithm, "--property", property, "--trace", path]);
            assert!(out.contains("asks for 1: "), "{out}");
            let replayed = prints(0, &["lab", "replay", path]);
            assert!(replayed.contains(&format!("{property} is violated")), "{replayed}");
            assert!(replayed.starts_with(&format!("{algorithm}: n = 2, 2 sessions")), "{replayed}");
        }
    }
    // Who asks for what is part of the run.
    let text = fs::read_to_string(&file).expect("it was written");
    fs::write(&file, text.replace("\"session 2\"", "\"session 1\"")).expect("it can be written");
    assert_eq!(doorway(&["lab", "replay", path]).code, Some(2));
    fs::remove_file(&file).expect("it is there");
}

#[test]
fn the_schedule_of_section_6_refutes_the_naive_generalisation() {
    let section_6 =
        ["lab", "simulate", BLACK_WHITE, "-n", "4", "--scheduler", "002-section-6", "--json"];
    let naive = json(1, &[&section_6[..], &["--mutant", "naive"]].concat());
    assert!(
        naive["violated"].as_array().is_some_and(|all| all.contains(&value!("session-exclusion"))),
        "{naive}"
    );
    assert_eq!(json(0, &section_6)["violations"], 0);
    let line =
        refused(&["lab", "simulate", BLACK_WHITE, "-n", "3", "--scheduler", "002-section-6"]);
    assert!(line.contains("-n 4 or more"), "{line}");
}

#[test]
fn scripts_say_who_asks_for_what() {
    let file = std::env::temp_dir().join(format!("doorway-asks-{}", std::process::id()));
    let path = file.to_str().expect("a path in text");
    let scheduler = format!("script:{path}");
    let simulate = ["lab", "simulate", "group-bakery", "--scheduler", &scheduler, "--json"];
    fs::write(
        &file,
        "0 asks 1\n0 until critical\n1 asks 1\n1 until remainder\n0 until remainder\n",
    )
    .expect("it can be written");
    assert_eq!(json(0, &simulate)["passages"], 2);
    for (script, complaint) in [
        ("0 asks 3\n", "line 1 of the script: process 0 cannot ask for that here"),
        ("0 asks 0\n", "cannot ask for that here"),
        ("0\n0 asks 1\n", "line 2 of the script"),
        ("0 asks\n", "`ID asks SESSION`"),
        ("0 until critical within many\n", "`ID until REGION within COUNT`"),
    ] {
        fs::write(&file, script).expect("it can be written");
        let line = refused(&simulate);
        assert!(line.contains(complaint), "{script:?}: {line}");
    }
    fs::write(&file, "0 asks 1\n").expect("it can be written");
    assert!(
        refused(&["lab", "simulate", "bakery", "--scheduler", &scheduler])
            .contains("cannot ask for that")
    );
    fs::remove_file(&file).expect("it is there");
}

#[test]
fn what_does_not_go_together_is_refused() {
    for (args, complaint) in [
        (&["group-bakery", "-k", "2"][..], "leave -k out"),
        (&["group-bakery", "-n", "4", "-k", "4"], "leave -k out"),
        (&["group-bakery", "--sessions", "0"], "try --sessions 2"),
        (&["group-bakery", "--sessions", "201"], "at most 200"),
        (&["group-bakery", "--property", "k-fcfs"], "does not speak of such"),
        (
            &["group-bakery", "--property", "invariant:one-flip"],
            "there are mutual-exclusion, session-exclusion",
        ),
        (&["group-bakery", "--equivalent-to", "strong-group-bakery"], "make choices"),
        (&["bakery", "--property", "session-exclusion"], "knows no sessions"),
        (&["bakery", "--property", "concurrent-entry"], "knows no sessions"),
    ] {
        let line = refused(&[&["lab", "check"], args].concat());
        assert!(line.contains(complaint), "{args:?}: {line}");
    }
    for (args, complaint) in [
        (&["group-bakery", "--sessions", "0"][..], "try --sessions 2"),
        (&["bakery", "--sessions", "2"], "knows no sessions"),
        (&["group-bakery", "-k", "2"], "leave -k out"),
    ] {
        let line = refused(&[&["lab", "rmr"], args].concat());
        assert!(line.contains(complaint), "{args:?}: {line}");
    }
}

#[test]
fn references_are_measured_with_sessions() {
    let report = json(
        0,
        &[
            "lab",
            "rmr",
            "group-bakery",
            "--up-to",
            "4",
            "--sessions",
            "3",
            "--passages",
            "1",
            "--json",
        ],
    );
    assert_eq!(report[0]["sessions"], 3, "{report}");
    let text = prints(0, &["lab", "rmr", "group-bakery", "--up-to", "4", "--passages", "1"]);
    assert!(text.starts_with("group-bakery: sessions = 2, 1 passage per process"), "{text}");
}

/// With several slots, too, the names of the properties mean what they say.
#[test]
fn two_inside_are_two_inside() {
    let decide = |property| {
        let report = json(
            1,
            &["lab", "check", "queue", "-n", "3", "-k", "2", "--property", property, "--json"],
        );
        (report["properties"][0]["holds"].clone(), report["properties"][0]["steps"].clone())
    };
    assert_eq!(decide("mutual-exclusion"), (value!(false), value!(2)));
    assert_eq!(
        json(
            0,
            &["lab", "check", "queue", "-n", "3", "-k", "2", "--property", "k-exclusion", "--json"]
        )["complete"],
        true
    );
}
