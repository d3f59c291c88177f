//! `doorway lab check ALG --equivalent-to OTHER`.

use serde_json::{Value, json as value};

use super::{ALGORITHMS, fields, has_fields, json, prints, refused};

/// The one verdict that there is.
fn verdict<'a>(report: &'a Value, other: &str) -> &'a Value {
    let [verdict] = &report["properties"].as_array().expect("an array")[..] else {
        panic!("not one in {report}")
    };
    assert_eq!(verdict["name"], format!("equivalent-to:{other}"));
    verdict
}

#[test]
fn an_algorithm_is_equivalent_to_itself() {
    // Whose coins a schedule would have to name is not compared.
    for name in ALGORITHMS.into_iter().filter(|name| !name.starts_with("randomized")) {
        let report = json(0, &["lab", "check", name, "--equivalent-to", name, "--json"]);
        has_fields(
            &report,
            &[
                "algorithm",
                "equivalent_to",
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
            ],
        );
        has_fields(&report["bounds"], &["shared_values", "max_register"]);
        assert_eq!(
            (&report["algorithm"], &report["equivalent_to"]),
            (&value!(name), &value!(name))
        );
        assert_eq!(report["complete"], true, "{name}");
        assert_eq!(fields(verdict(&report, name)), ["name", "holds", "scope"]);
        assert_eq!(verdict(&report, name)["holds"], true, "{name}");
        // The bakery's tickets can only be followed where passages are bounded.
        let passages = if name == "bakery" { value!(2) } else { Value::Null };
        assert_eq!(report["passages"], passages, "{name}");
    }
    let text = prints(0, &["lab", "check", "bakery", "--equivalent-to", "bakery"]);
    assert!(text.contains("  equivalent-to:bakery  holds  every schedule"), "{text}");
    assert_eq!(text.matches("n = 2, k = 1, 2 passages per process").count(), 1, "{text}");
}

/// Without anybody else about, Burns and Lamport's process is in after two steps, the bakery's in
/// its doorway.
#[test]
fn different_algorithms_differ_after_a_shortest_schedule() {
    let args = ["lab", "check", "bakery", "--equivalent-to", "burns-lamport"];
    let report = json(1, &[&args[..], &["--json"]].concat());
    let verdict = verdict(&report, "burns-lamport");
    assert_eq!((&verdict["holds"], &verdict["steps"]), (&value!(false), &value!(2)));
    let trace = verdict["trace"].as_array().expect("a trace");
    assert_eq!(trace.len(), 2);
    for step in trace {
        has_fields(step, &["process", "line", "access", "region", "other"]);
        has_fields(&step["other"], &["line", "access", "region"]);
    }
    assert_eq!(
        (&trace[1]["region"], &trace[1]["other"]["region"]),
        (&value!("doorway"), &value!("critical"))
    );
    assert_eq!(
        verdict["regions"],
        value!({ "first": ["doorway", "remainder"], "other": ["critical", "remainder"] })
    );
    let text = prints(1, &args);
    let said = "They differ: after step 2 process 0 is in its doorway in bakery and in the critical section in burns-lamport.";
    assert!(text.contains(said), "{text}");
    assert!(text.contains("\n  step  process  line  bakery "), "{text}");
}

/// A mutant is compared with what it was made from.
#[test]
fn a_mutant_differs_from_the_original() {
    let args =
        ["lab", "check", "bakery", "--mutant", "without-line-5", "--equivalent-to", "bakery"];
    let text = prints(1, &args);
    assert!(text.contains("in bakery (without-line-5) and "), "{text}");
    let harmless = [
        "lab",
        "check",
        "burns-lamport",
        "-n",
        "3",
        "--equivalent-to",
        "burns-lamport",
        "--passages",
        "1",
    ];
    prints(0, &harmless);
}

#[test]
fn what_is_not_explored_is_not_claimed() {
    let unbounded = json(
        3,
        &[
            "lab",
            "check",
            "bakery",
            "--equivalent-to",
            "bakery",
            "--passages",
            "unbounded",
            "--json",
        ],
    );
    assert_eq!((&unbounded["complete"], &unbounded["passages"]), (&value!(false), &Value::Null));
    let undecided = verdict(&unbounded, "bakery");
    assert_eq!(undecided["holds"], Value::Null);
    assert!(
        undecided["scope"].as_str().is_some_and(|scope| scope.contains("bound the passages")),
        "{undecided}"
    );
    let cut = [
        "lab",
        "check",
        "yang-anderson",
        "-n",
        "3",
        "--equivalent-to",
        "yang-anderson",
        "--max-states",
        "1000",
    ];
    let text = prints(3, &cut);
    assert!(
        text.contains("unknown")
            && text.contains("raise --max-states")
            && text.contains("incomplete"),
        "{text}"
    );
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (args, complaint) in [
        (&["--equivalent-to", "backery"][..], "there are bakery, "),
        (&["--equivalent-to", ""], "there are bakery, "),
        (&["--equivalent-to"], "--equivalent-to"),
        (&["--equivalent-to", "bakery", "--property", "fcfs"], "cannot be used with"),
        (&["--equivalent-to", "bakery", "--trace", "file"], "cannot be used with"),
        (&["--equivalent-to", "bakery", "--crashes", "1"], "cannot be used with"),
        (&["--equivalent-to", "bakery", "--abandon"], "cannot be used with"),
        (&["--equivalent-to", "bakery", "--registers", "safe"], "leave --registers out"),
        (&["--equivalent-to", "bakery", "--passages", "0"], "a number from 1"),
        (&["--equivalent-to", "yang-anderson", "-n", "1"], "yang-anderson"),
        (&["--equivalent-to", "bakery", "-n", "17"], "at most 16 processes"),
        (&["--equivalent-to", "bakery", "-k", "2"], "k is 1"),
    ] {
        let line = refused(&[&["lab", "check", "bakery"], args].concat());
        assert!(line.contains(complaint), "{args:?}: {line}");
    }
}
