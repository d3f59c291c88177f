//! `doorway lab simulate`.

use std::fs;

use doorway_lab::schedule::ADVERSARIES;

use super::{ALGORITHMS, has_fields, json, prints, refused};

#[test]
fn every_field_is_there() {
    for name in ALGORITHMS {
        let outcome = json(
            0,
            &["lab", "simulate", name, "-n", "4", "--passages", "20", "--seed", "7", "--json"],
        );
        has_fields(
            &outcome,
            &[
                "algorithm",
                "n",
                "k",
                "sessions",
                "scheduler",
                "seed",
                "passages",
                "steps",
                "violations",
            ],
        );
        has_fields(&outcome["rmr"], &["cc", "dsm"]);
        for model in ["cc", "dsm"] {
            let cost = &outcome["rmr"][model];
            let mean = cost["mean"].as_f64().expect("a mean");
            assert!(mean > 0.0 && mean <= cost["max"].as_f64().expect("a maximum"), "{cost}");
        }
        assert_eq!(outcome["algorithm"], name);
        assert_eq!(outcome["passages"], 4 * 20, "{name}");
        assert_eq!((&outcome["seed"], &outcome["violations"]), (&7.into(), &0.into()), "{name}");
    }
}

#[test]
fn a_run_follows_from_its_seed() {
    for scheduler in ["random", "pct"] {
        let with = |seed: &str, json: &[&str]| {
            let args =
                ["lab", "simulate", "bakery", "-n", "4", "--scheduler", scheduler, "--seed", seed];
            prints(0, &[&args[..], json].concat())
        };
        let outcomes: Vec<String> = ["1", "2", "3"].map(|seed| with(seed, &["--json"])).into();
        let steps: std::collections::BTreeSet<String> = outcomes
            .iter()
            .map(|outcome| {
                serde_json::from_str::<serde_json::Value>(outcome).expect("JSON")["steps"]
                    .to_string()
            })
            .collect();
        assert!(steps.len() > 1, "{scheduler}: three seeds, one run");
        assert_eq!(with("1", &["--json"]), outcomes[0], "{scheduler}");
        assert_eq!(with("1", &[]), with("1", &[]), "{scheduler}");
    }
}

/// Paper 004's proof beside a run: for its lock, and for no other.
#[test]
fn the_lemmas_stand_beside_their_constants() {
    let args = [
        "lab",
        "simulate",
        "randomized",
        "-n",
        "4",
        "--passages",
        "500",
        "--scheduler",
        "locality-aware",
    ];
    let outcome = json(0, &[&args[..], &["--json"]].concat());
    let lemmas = &outcome["lemmas"];
    let number = |name: &str| lemmas[name].as_f64().expect(name);
    assert_eq!((number("lemma_5"), number("lemma_6")), (0.5, 1.0 / 36.0));
    assert_eq!(number("share_of_good_writes"), number("good_writes") / number("writes"));
    assert_eq!(
        number("passages_per_good_write"),
        2000.0 / number("good_writes"),
        "everybody has passed"
    );
    let text = prints(0, &args);
    let share = format!("{:.3}", number("share_of_good_writes"));
    for part in [&share, "at least 1/2 = 0.500 (Lemma 5)", "at least 1/36 = 0.028 (Lemma 6)"] {
        assert!(text.contains(part), "{text}");
    }
    // Where there is nothing to divide by, there is no number.
    let none = json(
        0,
        &["lab", "simulate", "randomized", "-n", "2", "--mutant", "without-line-5", "--json"],
    );
    assert_eq!(
        (&none["lemmas"]["writes"], none["lemmas"]["share_of_good_writes"].is_null()),
        (&0.into(), true)
    );
    let other = json(0, &["lab", "simulate", "mcs", "-n", "4", "--json"]);
    assert!(other.get("lemmas").is_none(), "{other}");
}

#[test]
fn every_adversary_has_a_name() {
    let help = prints(0, &["lab", "simulate", "--help"]);
    for name in ADVERSARIES {
        let args = [
            "lab",
            "simulate",
            "burns-lamport",
            "-n",
            "4",
            "--passages",
            "20",
            "--scheduler",
            name,
            "--json",
        ];
        let outcome = json(0, &args);
        assert_eq!((&outcome["scheduler"], &outcome["passages"]), (&name.into(), &80.into()));
        assert!(help.contains(&format!("  {name} ")), "{name} is not in the help");
    }
    for name in ["oblivious:", "oblivious:victim", "strong-adaptive:luck", "adaptive"] {
        let line = refused(&["lab", "simulate", "bakery", "--scheduler", name]);
        ADVERSARIES.iter().for_each(|name| assert!(line.contains(name), "{line}"));
    }
}

#[test]
fn a_violation_is_the_exit_code() {
    let args = ["lab", "simulate", "bakery", "-n", "4", "--mutant", "without-line-7", "--json"];
    let outcome = json(1, &args);
    assert!(outcome["violations"].as_u64() > Some(0));
    assert!(
        outcome["violated"]
            .as_array()
            .is_some_and(|names| names.contains(&"mutual-exclusion".into()))
    );
}

#[test]
fn the_schedule_of_the_paper_blocks_the_last_process_as_often_as_the_paper_says() {
    for n in 2..=16u64 {
        let size = n.to_string();
        let args = [
            "lab",
            "simulate",
            "burns-lamport",
            "-n",
            &size,
            "--scheduler",
            "002-section-4",
            "--json",
        ];
        assert_eq!(json(0, &args)["blocked"], n * (n - 1) / 2, "n = {n}");
    }
}

/// The runs h(i, j) of paper 003, section 5.2.
#[test]
fn the_schedules_of_the_lower_bound_run() {
    for name in ["queue", "numbered-ticket", "unbounded-colored-ticket", "colored-ticket"] {
        let args = ["lab", "simulate", name, "-n", "5", "-k", "2", "--json", "--scheduler"];
        let outcome = json(0, &[&args[..], &["003-section-5:4,3"]].concat());
        // P_1, P_3 and P_4 have been through; P_3 has come again.
        assert_eq!((&outcome["passages"], &outcome["steps"]), (&3.into(), &11.into()), "{name}");
        for pair in ["", ":", ":4", ":4,1", ":5,3", ":3,3", ":x,y", ":-1,2"] {
            let line = refused(&[&args[..], &[&format!("003-section-5{pair}")]].concat());
            assert!(
                line.contains("k ≤ J < I < n; with -n 5 -k 2 try 003-section-5:4,2"),
                "{pair}: {line}"
            );
        }
    }
    let line = refused(&[
        "lab",
        "simulate",
        "queue",
        "-n",
        "3",
        "-k",
        "2",
        "--scheduler",
        "003-section-5:2,1",
    ]);
    assert!(line.contains("there is none below -n 4"), "{line}");
    let line = refused(&["lab", "simulate", "bakery", "--scheduler", "003-section-5:2,1"]);
    assert!(line.contains("003-section-5:I,J for queue and the tickets"), "{line}");
}

#[test]
fn scripts_are_followed_and_their_errors_are_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let script = directory.path().join("script");
    let scheduler = format!("script:{}", script.display());
    let args = [
        "lab",
        "simulate",
        "bakery",
        "-n",
        "2",
        "--passages",
        "1",
        "--scheduler",
        &scheduler,
        "--json",
    ];
    fs::write(
        &script,
        "# one alone\n0 until critical\n0*1 # leaves\n\n1 past 3\n1 until remainder\n",
    )
    .expect("written");
    let outcome = json(0, &args);
    assert_eq!(outcome["passages"], 2);
    // A passage among two is seven accesses.
    assert_eq!(outcome["steps"], 14);
    for (text, complaint) in [
        ("0\n0 foo\n", "line 2 of the script"),
        ("x", "line 1 of the script"),
        ("0*", "line 1 of the script"),
        ("0 until lunch", "line 1 of the script"),
        ("0*99999999999999999999999", "line 1 of the script"),
        ("-1", "line 1 of the script"),
        ("\n\n2", "line 3 of the script: there is no process 2"),
        ("18446744073709551615", "there is no process 18446744073709551615"),
        (
            "0 until remainder\n0",
            "line 2 of the script: process 0 has crashed or made all its passages",
        ),
        (
            "0 past 3\n1 until critical",
            "line 2 of the script: process 1 took 1000000 steps and did not get there",
        ),
    ] {
        fs::write(&script, text).expect("written");
        let line = refused(&args);
        assert!(line.contains(complaint), "{text:?}: {line}");
    }
    fs::write(&script, b"0\n\xff\n").expect("written");
    assert!(refused(&args).contains("UTF-8"));
}
