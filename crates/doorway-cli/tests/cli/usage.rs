//! Arguments that make no sense, and help.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

use super::{command, doorway, prints, refused};

#[test]
fn what_does_not_exist_is_refused_with_what_does() {
    for (args, complaint) in [
        (&["lab", "check", "backery"][..], "there are bakery, "),
        (&["lab", "check", ""], "there are bakery, "),
        (&["lab", "check", "two\nlines"], "there are bakery, "),
        (&["lab", "simulate", "backery"], "there are bakery, "),
        (&["lab", "check", "bakery", "--property", "luck"], "there are mutual-exclusion, "),
        (&["lab", "check", "bakery", "--property", "bounded-registers"], "states no bound"),
        (&["lab", "check", "bakery", "--mutant", "luck"], "it has without-line-3, "),
        (&["lab", "check", "bakery", "--registers", "foo"], "atomic, regular or safe"),
        (&["lab", "check", "bakery", "--registers", "two\nlines"], "atomic, regular or safe"),
        (&["lab", "simulate", "bakery", "--scheduler", "luck"], "there are round-robin, "),
        (
            &["lab", "simulate", "bakery", "--scheduler", "002-section-4"],
            "002-section-4 for burns-lamport",
        ),
        (&["lab", "check", "bakery", "--timestamps", "bounded"], "bakery has no timestamps"),
        (&["lab", "simulate", "bakery", "--timestamps", "abstract"], "bakery has no timestamps"),
        (
            &["lab", "check", "timestamp-bakery", "--timestamps", "luck"],
            "timestamps are abstract or bounded",
        ),
        (
            &["lab", "check", "timestamp-bakery", "--timestamps", ""],
            "timestamps are abstract or bounded",
        ),
        (
            &["lab", "simulate", "timestamp-bakery", "--timestamps", "two\nlines"],
            "abstract or bounded",
        ),
        (
            &["lab", "check", "bakery", "--retries", "2"],
            "bakery makes no attempts; leave --retries out",
        ),
        (&["lab", "check", "randomized", "--retries", "0"], "a number from 1, or `unbounded`"),
        (&["lab", "check", "randomized", "--retries", "luck"], "a number from 1, or `unbounded`"),
        (&["lab", "check", "bakery", "--endless", "0"], "say --passages P, too"),
        (&["lab", "check", "bakery", "--passages", "1", "--endless", "2"], "processes are 0 to 1"),
        (&["lab", "check", "bakery", "--luck"], "unexpected argument '--luck' found; try --help"),
        (&["lab", "check", "bakery", "--jsn"], "a similar argument exists: '--json'"),
        (&["lab", "check", "bakery", "more"], "'more'"),
        (&["lab", "check"], "<ALG>"),
        (&["lab", "replay"], "<FILE>"),
        (&["lab", "luck"], "'luck'"),
        (&["luck"], "'luck'"),
    ] {
        let line = refused(args);
        assert!(line.contains(complaint), "{args:?}: {line}");
        assert!(!line.contains(" tip: "), "{args:?}: {line}");
    }
}

#[test]
fn sizes_that_make_no_sense_are_refused() {
    for (args, complaint) in [
        (&["-n", "0"][..], "try -n 2"),
        (&["-n", "100"], "at most 16 processes"),
        (&["-n", "4097"], "at most 4096 processes"),
        (&["-n", "many"], "'many'"),
        (&["-n", "99999999999999999999"], "too large"),
        (&["-k", "2"], "k is 1"),
        (&["-k", "0"], "try -k 1"),
        (&["--sessions", "2"], "no sessions"),
        (&["--passages", "0"], "a number from 1"),
        (&["--passages", "-1"], "'-1'"),
        (&["--passages", "some"], "a number from 1"),
        (&["--passages", "4294967296"], "a number from 1"),
        (&["--crashes", "2"], "somebody has to be left"),
        (&["--crashes", "18446744073709551615"], "somebody has to be left"),
        (&["-j", "0"], "from 1 to 256"),
        (&["-j", "257"], "from 1 to 256"),
        (&["--max-states", "many"], "'many'"),
    ] {
        let line = refused(&[&["lab", "check", "bakery"], args].concat());
        assert!(line.contains(complaint), "{args:?}: {line}");
    }
    for (args, complaint) in [
        (&["-n", "0"][..], "try -n 2"),
        (&["-n", "4097"], "at most 4096 processes"),
        (&["-k", "2"], "k is 1"),
        (&["--passages", "0"], "try --passages 1"),
        (&["--crashes", "2"], "somebody has to be left"),
        (&["--seed", "-1"], "'-1'"),
    ] {
        let line = refused(&[&["lab", "simulate", "bakery"], args].concat());
        assert!(line.contains(complaint), "{args:?}: {line}");
    }
}

/// The lab knows what a safe register with several writers or too many values would be: nothing
/// that it can explore.
#[test]
fn algorithms_that_need_atomic_registers_are_not_explored_on_weaker_ones() {
    for (args, complaint) in [
        (["lab", "check", "yang-anderson", "--registers", "safe"], "two writers"),
        (["lab", "check", "yang-anderson", "--registers", "regular"], "two writers"),
        (["lab", "check", "black-white-bakery", "--registers", "safe"], "too many values"),
        (["lab", "check", "timestamp-bakery", "--registers", "safe"], "more than read and write"),
    ] {
        let line = refused(&args);
        assert!(line.contains(complaint), "{args:?}: {line}");
    }
}

#[test]
fn files_that_cannot_be_read_or_written_are_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).to_str().expect("a name").to_owned();
    let missing = path("missing/file");
    let script = format!("script:{missing}");
    let script_folder = format!("script:{}", path(""));
    for args in [
        &["lab", "replay", &missing][..],
        &["lab", "replay", &path("")],
        &["lab", "replay", "/dev/zero"],
        &["lab", "replay", "two\nlines"],
        &["lab", "simulate", "bakery", "--scheduler", &script],
        &["lab", "simulate", "bakery", "--scheduler", &script_folder],
        &["lab", "check", "bakery", "--mutant", "without-line-3", "--trace", &missing],
    ] {
        let line = refused(args);
        let name = args.last().expect("a name").trim_start_matches("script:").replace('\n', "\\n");
        assert!(line.contains(&name), "{args:?}: {line}");
    }
}

#[test]
fn arguments_that_are_not_text_are_refused() {
    let ran = command(&["lab", "check"])
        .arg(OsStr::from_bytes(b"\xff"))
        .output()
        .expect("doorway starts");
    assert_eq!(ran.status.code(), Some(2));
    assert_eq!(ran.stderr.iter().filter(|byte| **byte == b'\n').count(), 1);
    let ran = command(&["lab", "replay"])
        .arg(OsStr::from_bytes(b"\xff"))
        .output()
        .expect("doorway starts");
    assert_eq!(ran.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&ran.stderr).starts_with("doorway: cannot read"));
}

#[test]
fn everything_has_help() {
    for command in [
        &[][..],
        &["lab"],
        &["lab", "list"],
        &["lab", "check"],
        &["lab", "simulate"],
        &["lab", "rmr"],
        &["lab", "explore"],
        &["lab", "replay"],
        &["bench"],
        &["run"],
        &["status"],
        &["top"],
        &["set"],
        &["drain"],
        &["resume"],
        &["rm"],
        &["completions"],
        &["man"],
    ] {
        for flag in ["-h", "--help"] {
            let text = prints(0, &[command, &[flag]].concat());
            assert!(
                text.contains(
                    &["Usage: doorway", &command.join(" ")].join(" ").trim_end().to_owned()
                ),
                "{text}"
            );
            // Help for a terminal that is not wide.
            text.lines()
                .for_each(|line| assert!(line.chars().count() <= 120, "{command:?}: {line}"));
        }
    }
    assert!(prints(0, &["--version"]).starts_with("doorway "));
}

/// Who types half a command sees the other halves.
#[test]
fn half_a_command_shows_what_there_is() {
    for command in [&[][..], &["lab"]] {
        let ran = doorway(command);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""));
        assert!(ran.err.contains("Usage: doorway"), "{}", ran.err);
    }
}
