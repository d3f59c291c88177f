//! `doorway lab check --script`.

use std::fs;

use super::{doorway, json, prints, refused};

/// A file with this text, and its path.
fn file(text: &str) -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().expect("there is room");
    let path = dir.path().join("script");
    fs::write(&path, text).expect("there is room");
    let path = path.to_str().expect("a plain path").to_owned();
    (dir, path)
}

/// Section 5 of paper 001.
const SECTION_5: &str = "0 until waiting\n1 until critical\n2 until waiting\n3 until waiting\n";

fn section_5<'a>(algorithm: &'a str, path: &'a str) -> Vec<&'a str> {
    vec!["lab", "check", algorithm, "-n", "4", "-k", "2", "--script", path, "--property", "fife"]
}

#[test]
fn a_schedule_shows_a_violation() {
    let (_dir, path) = file(SECTION_5);
    let text = prints(1, &section_5("k-bakery", &path));
    assert!(text.starts_with("fife  VIOLATED  a run of"), "{text}");
    assert!(
        text.contains("process 0 has been overtaken, and goes round alone without entering"),
        "{text}"
    );
    let report = json(1, &[&section_5("k-bakery", &path)[..], &["--json"]].concat());
    assert_eq!(report["properties"][0]["holds"], false);
    assert_eq!(report["complete"], false);
}

#[test]
fn a_schedule_that_shows_nothing_claims_nothing() {
    let (_dir, path) = file(SECTION_5);
    let report = json(3, &[&section_5("k-bakery-fife", &path)[..], &["--json"]].concat());
    assert!(report["properties"][0]["holds"].is_null(), "one run cannot say that a property holds");
}

#[test]
fn what_a_schedule_shows_can_be_replayed() {
    let (dir, path) = file(SECTION_5);
    let trace = dir.path().join("trace.json");
    let trace = trace.to_str().expect("a plain path");
    prints(1, &[&section_5("k-bakery", &path)[..], &["--trace", trace]].concat());
    assert!(prints(0, &["lab", "replay", trace]).contains("fife"));
}

#[test]
fn a_schedule_has_to_make_sense() {
    let (_dir, path) = file("0 reads 5\n");
    let script = |rest: &[&str]| {
        refused(&[&["lab", "check", "k-bakery", "--script", path.as_str()], rest].concat())
    };
    assert!(script(&[]).contains("--property"));
    assert!(script(&["--property", "k-exclusion", "--property", "fife"]).contains("--property"));
    let atomic = refused(&["lab", "simulate", "bakery", "--scheduler", &format!("script:{path}")]);
    assert!(atomic.contains("line 1") && atomic.contains("--registers safe"), "{atomic}");
    let ran =
        doorway(&["lab", "check", "k-bakery", "--script", "/nowhere/at/all", "--property", "fife"]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    // Nothing is being written that the read could overlap.
    let ran = doorway(&["lab", "check", "k-bakery", "--script", &path, "--property", "fife"]);
    assert!(ran.code == Some(2) && ran.err.contains("overlap"), "{:?} {}", ran.code, ran.err);
}

/// One run cannot show who is enabled: that is for a search.
#[test]
fn a_schedule_cannot_show_what_is_about_all_schedules() {
    let (_dir, path) = file("0\n1\n");
    for property in ["fifo-enabling", "k-deadlock-avoidance"] {
        let line = refused(&[
            "lab",
            "check",
            "queue",
            "-n",
            "3",
            "--script",
            &path,
            "--property",
            property,
        ]);
        assert!(line.contains("no schedule can show"), "{line}");
    }
}

/// Who does not move in the loop has crashed, and that has to be allowed for.
#[test]
fn crashes_are_allowed_for_or_nothing_is_shown() {
    let (_dir, path) = file("0\n1\nagain\n1\n");
    let args = ["lab", "check", "queue", "--script", &path, "--property", "starvation-freedom"];
    assert!(prints(3, &args).contains("[0] do not move"));
    assert!(prints(1, &[&args[..], &["--crashes", "1"]].concat()).contains("after [0] crashed"));
}

/// On regular registers an overlapping read returns the old value or the new one; on safe ones
/// anything.
#[test]
fn a_schedule_may_say_only_what_the_registers_may() {
    let (_dir, path) =
        file("0*4\n1*2\n1 reads 0\n0*3\n1*3\n0 reads ∞\n0*2\n1*2\n1 reads 2\n0\n1*2\n");
    let args = |kind| {
        [
            "lab",
            "check",
            "k-bakery-fife",
            "--registers",
            kind,
            "--property",
            "k-exclusion",
            "--script",
            &path,
        ]
    };
    assert!(prints(1, &args("safe")).contains("VIOLATED"));
    let line = refused(&args("regular"));
    assert!(line.contains("line 6") && line.contains("overlaps"), "{line}");
}

/// A loop is believed only if it can go on for ever.
#[test]
fn a_loop_has_to_come_back() {
    // Process 1 walks towards its critical section: nothing is repeated.
    let (_dir, path) = file("0 until waiting\nagain\n1\n0\n");
    let args = ["lab", "check", "k-bakery", "--script", &path, "--property", "starvation-freedom"];
    assert!(prints(3, &args).contains("does not violate"));
}

#[test]
fn scripts_have_limits() {
    let (_dir, path) = file("0*1000000001\n");
    let args = ["lab", "check", "k-bakery", "--script", &path, "--property", "fife"];
    assert!(refused(&args).contains("at most 1000000 steps"));
    let (_dir, path) = file("0\nagain\n0\n");
    assert!(
        refused(&["lab", "simulate", "bakery", "--scheduler", &format!("script:{path}")])
            .contains("again")
    );
}
