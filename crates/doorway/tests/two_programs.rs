//! The example with two programs, as real processes.
//!
//! `cargo run` builds it, whichever tests were asked for; with the profile of the tests little is
//! left to build.

use std::process::{Command, Output};

fn two_programs(args: &[&str]) -> Output {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args([
        "run",
        "--quiet",
        "--locked",
        "--profile",
        "test",
        "--package",
        "doorway",
        "--example",
        "two_programs",
    ]);
    cargo.arg("--").args(args).output().expect("cargo runs")
}

#[test]
fn no_count_is_lost() {
    for words in [None, Some("--seq-cst")] {
        let args: Vec<&str> = ["--passages", "20000"].into_iter().chain(words).collect();
        let output = two_programs(&args);
        let (said, problem) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(0), "{said}{problem}");
        let mut lines: Vec<&str> = said.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines.len(), 2, "{said}");
        for (seat, line) in lines.into_iter().enumerate() {
            assert!(line.starts_with(&format!("seat {seat}: 20000 passages in ")), "{line}");
            assert!(line.ends_with("; 40000 of 40000 counted, 0 lost"), "{line}");
        }
    }
}

#[test]
fn bad_arguments_get_one_line() {
    let directory = tempfile::tempdir().expect("there is room");
    let there = directory.path().join("there");
    std::fs::write(&there, "something else").expect("there is room");
    let there = there.to_str().expect("a plain name");
    let cases: [(&[&str], &str); 8] = [
        (&["--passages"], "--passages wants a number"),
        (&["--passages", "many"], "many is no number of passages"),
        (&["--no-such"], "--no-such? usage: two_programs"),
        (&["file"], "after the file comes the seat, 0 or 1"),
        (&["file", "2"], "after the file comes the seat, 0 or 1"),
        (&["--seq-cst", "--without-fences"], "--without-fences or --seq-cst, not both"),
        (&[there, "0"], "remove it first"),
        (&[there, "1"], "is no file of two_programs; choose another name"),
    ];
    for (args, problem) in cases {
        let output = two_programs(args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.starts_with("two_programs: ") && said.contains(problem), "{args:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{args:?}: {said}");
    }
}
