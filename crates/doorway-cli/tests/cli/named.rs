//! Named locks: `run` and those who look after it, with real processes and real signals.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    os::unix::process::{CommandExt, ExitStatusExt},
    path::PathBuf,
    process::{Child, ChildStdout, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;

use super::{Ran, command};

/// A directory for locks of its own.
struct Locks(TempDir);

impl Locks {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = command(args);
        command.env("DOORWAY_DIR", self.0.path()).env_remove("DOORWAY_HELD");
        command
    }

    fn ran(&self, args: &[&str]) -> Ran {
        let output = self.command(args).output().expect("doorway starts");
        let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).expect("it is text"));
        assert!(!err.contains("panicked"), "{args:?}: {err}");
        Ran { code: output.status.code(), out, err }
    }

    /// What one prints that goes well.
    fn prints(&self, args: &[&str]) -> String {
        let ran = self.ran(args);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{args:?}");
        ran.out
    }

    /// What one says that does not.
    fn fails(&self, code: i32, args: &[&str]) -> String {
        let ran = self.ran(args);
        assert_eq!((ran.code, ran.out.as_str()), (Some(code), ""), "{args:?}: {}", ran.err);
        assert_eq!(ran.err.lines().count(), 1, "{args:?}: {}", ran.err);
        ran.err
    }

    fn status(&self, name: &str) -> Value {
        serde_json::from_str(&self.prints(&["status", name, "--json"])).expect("it is JSON")
    }

    /// A command under `run` that has begun: it says its pid, and waits.
    fn holder(&self, args: &[&str], script: &str) -> Holder {
        let script = format!("echo $$; {script}");
        let args = [&["run"], args, &["--", "sh", "-c", &script]].concat();
        let mut wrapper = self.command(&args).stdout(Stdio::piped()).spawn().expect("doorway starts");
        let mut out = BufReader::new(wrapper.stdout.take().expect("it is piped"));
        let mut line = String::new();
        out.read_line(&mut line).expect("it says its pid");
        Holder { pid: line.trim().parse().expect("a pid"), wrapper, out }
    }
}

struct Holder {
    wrapper: Child,
    pid: i32,
    out: BufReader<ChildStdout>,
}

impl Holder {
    /// What else it prints, and how the wrapper ends.
    fn ends(mut self) -> (String, Option<i32>) {
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).expect("it is text");
        (rest, self.wrapper.wait().expect("it ends").code())
    }
}

fn kill(pid: i32, signal: &str) {
    let status = Command::new("kill").args([signal, &pid.to_string()]).status().expect("there is a kill");
    assert!(status.success());
}

/// Waits for something that is to come soon.
fn soon(what: &str, mut is_there: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_there() {
        assert!(begin.elapsed() < Duration::from_secs(30), "{what}");
        thread::sleep(Duration::from_millis(10));
    }
}

fn is_alive(pid: i32) -> bool {
    // A zombie has ended.
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z"))
}

#[test]
fn a_command_runs_with_a_slot_and_its_exit_code_counts() {
    let locks = Locks::new();
    let show = "echo $DOORWAY_SLOT $DOORWAY_NAME $DOORWAY_SESSION.; exit 3";
    let ran = locks.ran(&["run", "gpu", "--slots", "2", "--", "sh", "-c", show]);
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(3), "0 gpu .\n", ""));
    let show = "echo $DOORWAY_SLOT $DOORWAY_NAME $DOORWAY_SESSION.";
    assert_eq!(locks.prints(&["run", "db", "--session", "read", "--", "sh", "-c", show]), "0 db read.\n");
    // As a shell says it: killed by a signal, no such command, no command at all.
    assert_eq!(locks.ran(&["run", "gpu", "--slots", "2", "--", "sh", "-c", "kill -9 $$"]).code, Some(137));
    assert!(locks.fails(127, &["run", "a", "--", "no-such-command"]).contains("no-such-command"));
    assert!(locks.fails(126, &["run", "a", "--", "/etc/passwd"]).contains("/etc/passwd"));
    assert_eq!(locks.status("a")["holders"], Value::Array(Vec::new()));
    // Tickets grow.
    let ticket = || {
        locks.prints(&["run", "a", "--", "sh", "-c", "echo $DOORWAY_TICKET"]).trim().parse::<u64>().expect("a number")
    };
    assert!(ticket() < ticket());
}

#[test]
fn who_must_not_wait_does_not() {
    let locks = Locks::new();
    let holder = locks.holder(&["gpu"], "exec sleep 1000");
    let begin = Instant::now();
    assert_eq!(locks.ran(&["run", "gpu", "--no-wait", "--", "echo", "no"]).code, Some(75));
    assert_eq!(locks.ran(&["run", "gpu", "--timeout", "100ms", "--", "echo", "no"]).code, Some(75));
    assert!(begin.elapsed() >= Duration::from_millis(100));
    let args = ["run", "gpu", "--no-wait", "--conflict-exit-code", "5", "--", "echo", "no"];
    assert_eq!(locks.ran(&args).code, Some(5));
    // Who has given up is not in line any more.
    let status = locks.status("gpu");
    assert_eq!(
        (status["holders"][0]["pid"].as_i64(), status["waiting"].as_array().map(Vec::len)),
        (Some(holder.pid.into()), Some(0))
    );
    kill(holder.pid, "-TERM");
    assert_eq!(holder.ends().1, Some(143));
    locks.prints(&["run", "gpu", "--timeout", "30", "--", "true"]);
}

#[test]
fn whoever_came_first_goes_first() {
    let locks = Locks::new();
    let log = locks.path(".log");
    let holder = locks.holder(&["one"], "exec sleep 1000");
    let waiting = || locks.status("one")["waiting"].as_array().map_or(0, Vec::len);
    let script = |i: usize| format!("echo {i} >> {}", log.display());
    let others: Vec<Child> = (0..5)
        .map(|i| {
            let child = locks.command(&["run", "one", "--", "sh", "-c", &script(i)]).spawn().expect("it starts");
            soon("it is in line", || waiting() == i + 1);
            child
        })
        .collect();
    kill(holder.pid, "-TERM");
    for mut child in others {
        assert!(child.wait().expect("it ends").success());
    }
    assert_eq!(fs::read_to_string(log).expect("they have written"), "0\n1\n2\n3\n4\n");
    holder.ends();
}

/// The wrapper is killed; the command goes on, and keeps its slot until it ends.
#[test]
fn the_slot_follows_the_command_when_the_wrapper_is_killed() {
    let locks = Locks::new();
    let mut holder = locks.holder(&["gpu"], "exec sleep 1000");
    kill(holder.wrapper.id() as i32, "-KILL");
    assert_eq!(holder.wrapper.wait().expect("it ends").signal(), Some(9));
    assert!(is_alive(holder.pid));
    assert_eq!(locks.ran(&["run", "gpu", "--timeout", "200ms", "--", "true"]).code, Some(75));
    assert_eq!(locks.status("gpu")["holders"][0]["pid"].as_i64(), Some(holder.pid.into()));
    kill(holder.pid, "-KILL");
    locks.prints(&["run", "gpu", "--timeout", "30", "--", "true"]);
}

/// What a command leaves behind does not keep its slot, whatever it has inherited.
#[test]
fn a_daemon_that_is_left_behind_does_not_keep_the_slot() {
    let locks = Locks::new();
    let script = "sleep 1000 > /dev/null 2>&1 & echo $!";
    let daemon: i32 = locks.prints(&["run", "gpu", "--", "sh", "-c", script]).trim().parse().expect("a pid");
    assert!(is_alive(daemon));
    locks.prints(&["run", "gpu", "--no-wait", "--", "true"]);
    kill(daemon, "-KILL");
}

#[test]
fn signals_are_passed_on() {
    let locks = Locks::new();
    for signal in ["TERM", "INT", "HUP", "USR1"] {
        let holder =
            locks.holder(&["gpu"], &format!("trap 'echo got {signal}; exit 7' {signal}; while :; do sleep 0.05; done"));
        thread::sleep(Duration::from_millis(100)); // the trap is set after the pid is said
        kill(holder.wrapper.id() as i32, &format!("-{signal}"));
        assert_eq!(holder.ends(), (format!("got {signal}\n"), Some(7)));
    }
}

/// A wrapper stands still when its command does, and both go on together.
#[test]
fn stopping_and_going_on() {
    let locks = Locks::new();
    let mut wrapper = locks.command(&["run", "gpu", "--", "sleep", "1000"]);
    let mut wrapper = wrapper.process_group(0).spawn().expect("it starts");
    soon("it holds", || locks.ran(&["status", "gpu", "--json"]).out.contains("\"slot\":0"));
    let pid = locks.status("gpu")["holders"][0]["pid"].as_i64().expect("a pid") as i32;
    let state = |pid: i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it is there");
        stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next())
    };
    kill(wrapper.id() as i32, "-TSTP");
    soon("both stand still", || state(pid) == Some('T') && state(wrapper.id() as i32) == Some('T'));
    // Stopped is not dead.
    assert_eq!(locks.ran(&["run", "gpu", "--timeout", "150ms", "--", "true"]).code, Some(75));
    kill(wrapper.id() as i32, "-CONT");
    soon("both go on", || state(pid) == Some('S') && state(wrapper.id() as i32) == Some('S'));
    kill(wrapper.id() as i32, "-TERM");
    assert_eq!(wrapper.wait().expect("it ends").code(), Some(143));
}

#[test]
fn nobody_waits_for_itself() {
    let locks = Locks::new();
    let doorway = env!("CARGO_BIN_EXE_doorway");
    let dir = locks.0.path().to_str().expect("text");
    let nested = [doorway, "run", "gpu", "--dir", dir, "--", "true"];
    for around in [&[][..], &["env", "-i"], &["sh", "-c", "\"$@\"; exit $?", "sh"], &["setsid", "-w"]] {
        let args = [&["run", "gpu", "--"], around, &nested].concat();
        let ran = locks.ran(&args);
        assert_eq!(ran.code, Some(73), "{around:?}: {}", ran.err);
        assert!(ran.err.contains("it would wait for itself"), "{}", ran.err);
    }
    // Around another lock, too; and another name inside is no trouble.
    let inner = format!("{doorway} run other -- {}", nested.join(" "));
    assert_eq!(locks.ran(&["run", "gpu", "--", "sh", "-c", &inner]).code, Some(73));
    locks.prints(&["run", "gpu", "--", doorway, "run", "other", "--", "true"]);
    // What an earlier command has left in the environment means nothing.
    let left = locks.prints(&["run", "gpu", "--", "sh", "-c", "echo \"$DOORWAY_HELD\""]);
    let ran = locks.command(&["run", "gpu", "--", "true"]).env("DOORWAY_HELD", left.trim_end()).status();
    assert!(ran.expect("it starts").success());
}

#[test]
fn sessions_share_and_exclude() {
    let locks = Locks::new();
    let read = locks.holder(&["db", "--session", "read"], "exec sleep 1000");
    locks.prints(&["run", "db", "--session", "read", "--no-wait", "--", "true"]);
    assert_eq!(locks.ran(&["run", "db", "--session", "write", "--no-wait", "--", "true"]).code, Some(75));
    let status = locks.status("db");
    assert_eq!(
        (&status["kind"], &status["slots"], &status["holders"][0]["session"]),
        (&"group".into(), &Value::Null, &"read".into())
    );
    kill(read.pid, "-TERM");
    read.ends();
    locks.prints(&["run", "db", "--session", "write", "--timeout", "30", "--", "true"]);
    // A bound on those of one session.
    let one = locks.holder(&["few", "--session", "read", "--slots", "1"], "exec sleep 1000");
    assert_eq!(
        locks.ran(&["run", "few", "--session", "read", "--slots", "1", "--no-wait", "--", "true"]).code,
        Some(75)
    );
    kill(one.pid, "-TERM");
    one.ends();
}

#[test]
fn another_kind_or_number_of_slots_is_refused_with_both() {
    let locks = Locks::new();
    locks.prints(&["run", "gpu", "--slots", "2", "--", "true"]);
    let complaint = locks.fails(78, &["run", "gpu", "--slots", "3", "--", "true"]);
    assert!(complaint.contains("2 slots") && complaint.contains("--slots 3"), "{complaint}");
    assert!(locks.fails(78, &["run", "gpu", "--", "true"]).contains("2 slots"));
    assert!(locks.fails(78, &["run", "gpu", "--session", "a", "--", "true"]).contains("semaphore"));
    locks.prints(&["set", "gpu", "--slots", "3"]);
    locks.prints(&["run", "gpu", "--slots", "3", "--", "true"]);
}

#[test]
fn drained_resumed_and_removed() {
    let locks = Locks::new();
    let holder = locks.holder(&["gpu"], "exec sleep 1000");
    let complaint = locks.fails(75, &["rm", "gpu"]);
    assert!(complaint.contains("1 hold"), "{complaint}");
    locks.prints(&["drain", "gpu"]);
    kill(holder.pid, "-TERM");
    holder.ends();
    assert_eq!(locks.ran(&["run", "gpu", "--timeout", "100ms", "--", "true"]).code, Some(75));
    assert!(locks.prints(&["status"]).contains("drained"));
    locks.prints(&["resume", "gpu"]);
    locks.prints(&["run", "gpu", "--timeout", "30", "--", "true"]);
    locks.prints(&["rm", "gpu"]);
    assert!(!locks.path("gpu").exists());
    assert!(locks.prints(&["status"]).contains("no locks"));
    assert_eq!(locks.prints(&["status", "--json"]), "[]\n");
    for args in [&["rm", "gpu"][..], &["status", "gpu"], &["set", "gpu", "--slots", "2"], &["drain", "gpu"]] {
        assert!(locks.fails(2, args).contains("no such lock"), "{args:?}");
    }
}

/// A lock whose file is removed under its users is lost, and they are told.
#[test]
fn a_file_that_is_removed_is_a_lock_that_is_lost() {
    let locks = Locks::new();
    let holder = locks.holder(&["gpu"], "exec sleep 1000");
    let mut waiter = locks.command(&["run", "gpu", "--", "true"]);
    let mut waiter = waiter.stderr(Stdio::piped()).spawn().expect("it starts");
    soon("it waits", || locks.status("gpu")["waiting"].as_array().is_some_and(|line| line.len() == 1));
    fs::remove_file(locks.path("gpu")).expect("it is there");
    let mut said = String::new();
    waiter.stderr.take().expect("it is piped").read_to_string(&mut said).expect("it is text");
    assert_eq!(waiter.wait().expect("it ends").code(), Some(69), "{said}");
    assert!(said.contains("lost"), "{said}");
    kill(holder.pid, "-TERM");
    assert_eq!(holder.ends().1, Some(69));
}

#[test]
fn bad_names_and_files_are_refused() {
    let locks = Locks::new();
    for name in ["", ".hidden", "a/b", &"x".repeat(201)] {
        assert!(locks.fails(2, &["run", name, "--", "true"]).contains("no name for a lock"), "{name}");
    }
    for (args, complaint) in [
        (&["run", "a", "--slots", "0", "--", "true"][..], "0 slots"),
        (&["run", "a", "--slots", "1000000", "--", "true"], "1000000 slots"),
        (&["run", "a", "--timeout", "soon", "--", "true"], "is no time"),
        (&["run", "a", "--timeout", "1", "--no-wait", "--", "true"], "--no-wait"),
        (&["run", "a", "--session", "", "--", "true"], "session"),
        (&["run", "a"], "<COMMAND>"),
        (&["run", "a", "true"], "'true'"),
    ] {
        let said = locks.fails(2, args);
        assert!(said.contains(complaint), "{args:?}: {said}");
    }
    fs::write(locks.path("text"), "this is no lock").expect("it can be written");
    let said = locks.fails(78, &["run", "text", "--", "true"]);
    assert!(said.contains("text"), "{said}");
    std::os::unix::fs::symlink("/etc/passwd", locks.path("link")).expect("it can be made");
    assert!(locks.fails(78, &["run", "link", "--", "true"]).contains("link"));
    // One that cannot be read does not keep the others from being shown.
    locks.prints(&["run", "good", "--", "true"]);
    let ran = locks.ran(&["status"]);
    assert!(
        ran.code == Some(1)
            && ran.out.contains("good: semaphore, 1 slot, 0 inside, 0 waiting\n")
            && ran.err.contains("text"),
        "{}",
        ran.err
    );
    // Where nobody can make a directory.
    assert_eq!(locks.ran(&["run", "a", "--dir", "/proc/nowhere", "--", "true"]).code, Some(2));
}

/// What is printed where a standard tool drives it.
fn driven(program: &str, args: &[&str], locks: &Locks, input: &str) -> Option<String> {
    use std::io::Write;
    let mut command = Command::new(program);
    command.args(args).env("DOORWAY_DIR", locks.0.path()).env("DOORWAY", env!("CARGO_BIN_EXE_doorway"));
    let spawned = command.current_dir(locks.0.path()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = spawned.ok()?;
    child.stdin.take().expect("it is piped").write_all(input.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{program}");
    Some(String::from_utf8(output.stdout).expect("it is text"))
}

/// A script that fails if more than two run at once: each makes one of two directories for the time that it is inside.
const TWO: &str = "mkdir .in.$DOORWAY_SLOT && sleep 0.02 && rmdir .in.$DOORWAY_SLOT && echo $DOORWAY_SLOT";

fn all_went_in(out: Option<String>, count: usize, program: &str) {
    let out = out.unwrap_or_else(|| panic!("{program} is missing: scripts/test installs it"));
    assert_eq!(out.lines().count(), count, "{program}: {out}");
    assert!(out.lines().all(|slot| ["0", "1"].contains(&slot)), "{program}: {out}");
}

#[test]
fn xargs_parallel_and_make_drive_it() {
    let locks = Locks::new();
    let numbers: String = (0..24).map(|i| format!("{i}\n")).collect();
    let run = format!("\"$DOORWAY\" run two --slots 2 -- sh -c '{TWO}'");
    let xargs = ["-P", "8", "-I{}", "sh", "-c", &run];
    all_went_in(driven("xargs", &xargs, &locks, &numbers), 24, "xargs");
    let parallel = ["--will-cite", "-j", "8", &format!("{run} # {{}}")];
    all_went_in(driven("parallel", &parallel, &locks, &numbers), 24, "parallel");
    let targets: Vec<String> = (0..24).map(|i| format!("t{i}")).collect();
    let recipe = run.replace('$', "$$");
    let makefile = format!("all: {0}\n{0}:\n\t@{recipe}\n.PHONY: all {0}\n", targets.join(" "));
    fs::write(locks.path(".Makefile"), makefile).expect("it can be written");
    all_went_in(driven("make", &["-j8", "-f", ".Makefile"], &locks, ""), 24, "make");
    assert_eq!(locks.status("two")["holders"], Value::Array(Vec::new()));
}

#[test]
fn completions_and_manual_pages_come_from_the_same_definitions() {
    let locks = Locks::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = locks.prints(&["completions", shell]);
        assert!(script.contains("conflict-exit-code") && script.contains("drain"), "{shell}");
    }
    assert!(locks.prints(&["man"]).contains(".TH doorway"));
    let pages = locks.path("man");
    locks.prints(&["man", pages.to_str().expect("text")]);
    let page = fs::read_to_string(pages.join("doorway-run.1")).expect("it is there");
    assert!(page.contains("DOORWAY_SLOT") && page.contains("conflict"), "{page}");
    // What is made for bash is what bash can read.
    let script = locks.path(".completions");
    fs::write(&script, locks.prints(&["completions", "bash"])).expect("it can be written");
    assert!(Command::new("bash").arg("-n").arg(script).status().expect("there is a bash").success());
}
