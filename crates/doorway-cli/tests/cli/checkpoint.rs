//! `lab check --checkpoint` and `--max-memory`: searches that are interrupted, that go on, and that
//! go to disk.

use std::{
    fs,
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use serde_json::Value;
use tempfile::TempDir;

use super::{
    Ran, command, doorway, json,
    locks::{kill, soon},
    prints, refused,
};

const SIGINT: i32 = 2;
const SIGTERM: i32 = 15;

const K_BAKERY: [&str; 8] = ["lab", "check", "k-bakery", "-n", "3", "-k", "2", "--json"];

/// All of a report that does not depend on how it came about.
fn facts(report: &Value) -> Value {
    let names =
        ["complete", "states", "transitions", "depth", "relabelled", "properties", "bounds"];
    names.iter().map(|name| report[*name].clone()).collect()
}

/// Starts a check, and returns when it listens to signals.
fn started(args: &[&str]) -> Child {
    let child = command(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("doorway starts");
    soon("it listens", || {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).expect("it runs");
        let caught =
            status.lines().find_map(|line| line.strip_prefix("SigCgt:")).expect("Linux says");
        u64::from_str_radix(caught.trim(), 16).expect("a set") >> (SIGINT - 1) & 1 == 1
    });
    child
}

/// Interrupts a check; says what it ends with and what it says.
fn interrupted(args: &[&str], after: Duration, signal: i32) -> (Option<i32>, Ran) {
    let child = started(args);
    thread::sleep(after);
    kill(child.id() as i32, &format!("-{signal}"));
    let output = child.wait_with_output().expect("it ends");
    let [out, err] =
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).expect("it is text"));
    (output.status.signal(), Ran { code: output.status.code(), out, err })
}

/// A directory, and a file in it that is not there yet.
fn file() -> (TempDir, PathBuf, String) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("search");
    let name = path.to_str().expect("a name").to_owned();
    (directory, path, name)
}

/// How many states a line says that are kept.
fn kept(err: &str, path: &str) -> u64 {
    let rest = err.strip_prefix("doorway: interrupted: ").unwrap_or_else(|| panic!("{err:?}"));
    let (count, rest) = rest.split_once(" state").expect("it says how many");
    let rest = rest.strip_prefix('s').unwrap_or(rest);
    assert_eq!(rest, format!(" are kept in {path}, with which the same command goes on\n"));
    count.replace([' ', '\u{202f}', ','], "").parse().expect("a number")
}

#[test]
fn an_interrupted_check_goes_on() {
    let whole = json(0, &K_BAKERY);
    assert_eq!(whole["states"], 570_151);
    for (workers, signal) in [("1", SIGINT), ("2", SIGTERM)] {
        let (_directory, path, name) = file();
        let args = [&K_BAKERY[..], &["--workers", workers, "--checkpoint", &name]].concat();
        let mut before = 0;
        for after in [20, 100, 200] {
            let (by, ran) = interrupted(&args, Duration::from_millis(after), signal);
            assert_eq!((by, ran.out.as_str()), (Some(signal), ""), "{}", ran.err);
            let now = kept(&ran.err, &name);
            assert!(now >= before && now <= 570_151, "{now} after {before}");
            assert!(path.is_file());
            before = now;
        }
        assert_eq!(facts(&json(0, &args)), facts(&whole));
        assert!(!path.exists(), "everything has been decided");
    }
}

#[test]
fn without_a_checkpoint_the_loss_is_reported() {
    let (by, ran) = interrupted(&K_BAKERY, Duration::from_millis(100), SIGINT);
    assert_eq!((by, ran.out.as_str()), (Some(SIGINT), ""));
    assert!(
        ran.err.starts_with("doorway: interrupted at depth ") && ran.err.ends_with('\n'),
        "{}",
        ran.err
    );
    assert!(ran.err.contains(" are lost: --checkpoint FILE would have kept them"), "{}", ran.err);
    assert_eq!(ran.err.lines().count(), 1);
}

/// More states than wanted are no reason to lose them.
#[test]
fn a_check_that_stops_is_kept() {
    let (_directory, path, name) = file();
    let args = ["lab", "check", "bakery", "-n", "3", "--json", "--checkpoint", &name];
    let ran = doorway(&[&args[..], &["--max-states", "1000"]].concat());
    assert_eq!(ran.code, Some(3));
    assert!(
        ran.err.contains(&format!(" states are kept in {name}, with which the same")),
        "{}",
        ran.err
    );
    assert!(path.is_file());
    assert_eq!(facts(&json(0, &args)), facts(&json(0, &args[..6])));
    assert!(!path.exists());
}

#[test]
fn other_files_are_refused_and_left_alone() {
    let (directory, path, name) = file();
    let bakery =
        ["lab", "check", "bakery", "-n", "3", "--max-states", "1000", "--checkpoint", &name];
    assert_eq!(doorway(&bakery).code, Some(3));
    let good = fs::read(&path).expect("it was kept");
    let line = refused(&["lab", "check", "bakery", "-n", "4", "--checkpoint", &name]);
    assert!(line.starts_with(&format!("{name} keeps another search (bakery, n = 3")), "{line}");
    assert!(
        line.ends_with("name another file, or remove it") && line.contains("this is bakery, n = 4"),
        "{line}"
    );
    let refuses = |bytes: &[u8], words: &str| {
        fs::write(&path, bytes).expect("it can be written");
        let line = refused(&bakery);
        assert!(line.starts_with(&name) && line.contains(words), "{line}");
        assert!(fs::read(&path).expect("it is there") == bytes);
    };
    let mut damaged = good.clone();
    damaged[good.len() / 2] ^= 4;
    refuses(&damaged, "is damaged (its checksum is wrong): remove it to search from the beginning");
    refuses(&good[..good.len() - 8], "is damaged (it is not as long as it was)");
    refuses(b"", "is not a search that doorway has kept: name another file");
    refuses(
        b"# Notes\n\nNothing of doorway's, and longer than a header.\n",
        "is not a search that doorway has kept",
    );
    let mut newer = good.clone();
    newer[8] = 77;
    refuses(&newer, "was kept in format 77");
    let line = refused(&[
        "lab",
        "check",
        "bakery",
        "--checkpoint",
        directory.path().to_str().expect("a name"),
    ]);
    assert!(line.contains("is not a search"), "{line}");
    // A place that cannot be written is found out at the start.
    let ran =
        doorway(&["lab", "check", "bakery", "--checkpoint", "/there/is/no/such/directory/search"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(71), ""));
    assert!(
        ran.err.starts_with("doorway: cannot write /there/is/no/such/directory/search: "),
        "{}",
        ran.err
    );
}

/// Runs with files in this directory.
fn with_disk(directory: &Path, args: &[&str]) -> Ran {
    let output = command(args).env("TMPDIR", directory).output().expect("doorway starts");
    let [out, err] =
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).expect("it is text"));
    Ran { code: output.status.code(), out, err }
}

#[test]
fn what_memory_does_not_hold_goes_to_disk() {
    let directory = tempfile::tempdir().expect("a directory");
    let args = [&K_BAKERY[..], &["--property", "k-exclusion"]].concat();
    let ran = with_disk(directory.path(), &[&args[..], &["--max-memory", "8M"]].concat());
    let place = directory.path().display();
    assert_eq!(
        ran.err,
        format!("doorway: memory is full: the search goes on on disk, in {place}\n")
    );
    let report: Value = serde_json::from_str(&ran.out).expect("it is JSON");
    assert_eq!((ran.code, facts(&report)), (Some(0), facts(&json(0, &args))));
    assert_eq!(fs::read_dir(directory.path()).expect("it is there").count(), 0);
    for size in ["", "8 apples", "8X", "99999999999999999999", "99999999999T"] {
        let line = refused(&["lab", "check", "bakery", "--max-memory", size]);
        assert!(line.contains("--max-memory"), "{line}");
    }
    prints(0, &["lab", "check", "bakery", "--max-memory", "512MiB"]);
}

/// A file system of its own with little room.
struct Small(TempDir);

impl Small {
    /// Only root may make one.
    fn new() -> Option<Self> {
        let directory = tempfile::tempdir().expect("a directory");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=12m", "tmpfs"]).arg(directory.path());
        mount
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
            .then_some(Self(directory))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_disk_is_an_error() {
    let Some(small) = Small::new() else {
        eprintln!("skipped: only root can mount a small file system");
        return;
    };
    let args = [&K_BAKERY[..], &["--property", "k-exclusion", "--max-memory", "4M"]].concat();
    let ran = with_disk(small.0.path(), &args);
    assert_eq!((ran.code, ran.out.as_str()), (Some(71), ""), "{}", ran.err);
    let lines: Vec<_> = ran.err.lines().collect();
    assert!(lines[0].contains("the search goes on on disk"), "{}", ran.err);
    assert!(
        lines[1].starts_with("doorway: no room for more states: No space left on device"),
        "{}",
        ran.err
    );
    assert!(lines[1].ends_with(" states are lost") && lines.len() == 2, "{}", ran.err);
    // With a checkpoint the files are beside it; what is found by then is small enough to be
    // written there.
    let path = small.0.path().join("search");
    let name = path.to_str().expect("a name");
    let ran = doorway(&[&args[..], &["--checkpoint", name]].concat());
    assert_eq!((ran.code, ran.out.as_str()), (Some(71), ""), "{}", ran.err);
    assert!(
        ran.err.ends_with(&format!(
            " states are kept in {name}, with which the same command goes on\n"
        )),
        "{}",
        ran.err
    );
    // With more memory it does.
    let more = [&args[..10], &["--checkpoint", name]].concat();
    assert_eq!(facts(&json(0, &more)), facts(&json(0, &args[..10])));
}
