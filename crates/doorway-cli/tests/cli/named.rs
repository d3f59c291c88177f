//! Named locks of this machine: what they promise beyond what is promised everywhere, with real
//! processes and real signals.

use std::{
    fs,
    io::Read,
    os::unix::{
        fs::PermissionsExt,
        process::{CommandExt, ExitStatusExt},
    },
    process::{Command, Stdio},
};

use doorway::shared::Directory;
use serde_json::Value;

use super::locks::{Locks, begun, is_alive, kill, soon};

/// A command line of doorway that another program begins, which is named with its own arguments.
fn begun_by(locks: &Locks, wrapper: &[&str], args: &[&str]) -> Command {
    let mut command = Command::new(wrapper[0]);
    command
        .args(&wrapper[1..])
        .arg(env!("CARGO_BIN_EXE_doorway"))
        .args(args)
        .env("DOORWAY_DIR", locks.path(""));
    command
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

/// The end of a command is no accident, unless nobody was there to see it.
#[test]
fn the_next_holder_is_told_of_accidents_only() {
    let locks = Locks::new();
    let recovered = || {
        let directory = Directory::at(locks.path("")).expect("it is ours");
        directory
            .semaphore("gpu", 1)
            .and_then(|lock| Ok(lock.acquire()?.recovered()))
            .expect("it works")
    };
    for script in ["exit 3", "kill -9 $$"] {
        locks.ran(&["run", "gpu", "--", "sh", "-c", script]);
        assert!(!recovered(), "{script}");
    }
    locks.ran(&["run", "gpu", "--", "no-such-command"]);
    assert!(!recovered());
    let holder = locks.holder(&["gpu"], "exec sleep 1000");
    kill(holder.wrapper.id() as i32, "-KILL");
    kill(holder.pid, "-KILL");
    assert!(recovered());
}

/// The command is PID 1 of the namespace into which it is born, and another process to all others.
#[test]
fn the_slot_follows_the_command_into_another_pid_namespace() {
    let locks = Locks::new();
    locks.prints(&["run", "gpu", "--", "true"]);
    let unshare = ["unshare", "--user", "--map-root-user", "--pid"];
    if !Command::new(unshare[0])
        .args(&unshare[1..])
        .arg("true")
        .status()
        .is_ok_and(|status| status.success())
    {
        eprintln!(
            "left out: no namespace can be made here; run the tests as root, or allow user namespaces"
        );
        return;
    }
    let mut unshare = begun_by(&locks, &unshare, &["run", "gpu", "--", "sleep", "1000"]);
    let mut wrapper =
        unshare.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("unshare is there");
    let holders = || locks.status("gpu")["holders"].as_array().cloned().unwrap_or_default();
    soon("it holds", || holders().iter().any(|holder| holder["command"] == "sleep 1000"));
    let pid = holders()[0]["pid"].as_i64().expect("it is a number") as i32;
    assert_ne!(pid, 1);
    assert_eq!(locks.ran(&["run", "gpu", "--no-wait", "--", "true"]).code, Some(75), "it is held");
    kill(pid, "-KILL");
    assert_eq!(wrapper.wait().expect("it ends").code(), Some(137));
    locks.prints(&["run", "gpu", "--no-wait", "--", "true"]);
}

/// The caller may have blocked the signal that says that the command has ended.
#[test]
fn the_end_of_a_command_is_heard_of_though_the_caller_blocks_the_signal() {
    let locks = Locks::new();
    let script = "import os, signal, sys\n\
                  signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])\n\
                  os.execv(sys.argv[1], sys.argv[1:])";
    let args = ["run", "gpu", "--", "grep", "SigBlk", "/proc/self/status"];
    let output = begun_by(&locks, &["timeout", "60", "python3", "-c", script], &args)
        .output()
        .expect("python3 is there");
    let blocked = String::from_utf8_lossy(&output.stdout);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{blocked}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(blocked.trim().ends_with("10000"), "the command inherits what is blocked: {blocked}");
}

/// As `trap '' PIPE` in a shell asks for it, and not otherwise.
#[test]
fn a_command_ignores_what_its_caller_ignores() {
    let locks = Locks::new();
    for (trap, ignored) in [("trap '' PIPE", true), ("true", false)] {
        let script = format!("{trap}; exec \"$@\"");
        let args = ["run", "gpu", "--", "grep", "SigIgn", "/proc/self/status"];
        // Python resets the signal for the shell: this program ignores it itself.
        let reset = "import os, signal, sys\n\
                     signal.signal(signal.SIGPIPE, signal.SIG_DFL)\n\
                     os.execvp(sys.argv[1], sys.argv[1:])";
        let wrapper = ["python3", "-c", reset, "sh", "-c", &script, "sh"];
        let output = begun_by(&locks, &wrapper, &args).output().expect("python3 is there");
        let text = String::from_utf8_lossy(&output.stdout);
        let mask = text.split_whitespace().nth(1).expect("it is printed");
        let mask = u64::from_str_radix(mask, 16).expect("it is a number");
        assert_eq!(mask >> (libc::SIGPIPE - 1) & 1 == 1, ignored, "{trap}: {text}");
    }
}

/// A lock that is removed after it was opened and before it was entered is opened again.
#[test]
fn removing_a_lock_does_not_disturb_those_who_come() {
    let locks = Locks::new();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                locks.ran(&["rm", "gpu"]);
            }
        });
        let runs: Vec<_> = (0..100).map(|_| locks.ran(&["run", "gpu", "--", "true"])).collect();
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        runs.iter().for_each(|run| assert_eq!(run.code, Some(0), "{}", run.err));
    });
}

/// What the operating system refuses is not a mistake of the caller's.
#[test]
fn no_file_descriptors_left_is_an_error_of_the_system() {
    let locks = Locks::new();
    // One is left for the loader, and for the directory; none for the file.
    let limited = ["sh", "-c", "ulimit -n 4; exec \"$@\"", "sh"];
    let output =
        begun_by(&locks, &limited, &["run", "gpu", "--", "true"]).output().expect("sh is there");
    assert_eq!(output.status.code(), Some(71), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Nor is a lock that has no room for another waiter, which is not a time-out either.
#[test]
fn a_full_lock_is_an_error_of_the_system() {
    let locks = Locks::new();
    let directory = Directory::at(locks.path("")).expect("it is ours").with_capacity(4);
    let gpu = directory.semaphore("gpu", 1).expect("it is made");
    // This process must not hold a slot: the command would be one of its own.
    gpu.drain().expect("it works");
    let places: Vec<_> = (0..4).map(|_| gpu.enter().expect("there is room")).collect();
    let ran = locks.ran(&["run", "gpu", "--", "true"]);
    assert_eq!(ran.code, Some(71), "{}", ran.err);
    assert!(ran.err.contains("4 processes hold or wait"), "{}", ran.err);
    drop(places);
    gpu.resume().expect("it works");
    // A handle keeps its entries for later.
    drop(gpu);
    locks.prints(&["run", "gpu", "--", "true"]);
}

/// What a command leaves behind does not keep its slot, whatever it has inherited.
#[test]
fn a_daemon_that_is_left_behind_does_not_keep_the_slot() {
    let locks = Locks::new();
    let script = "sleep 1000 > /dev/null 2>&1 & echo $!";
    let daemon: i32 =
        locks.prints(&["run", "gpu", "--", "sh", "-c", script]).trim().parse().expect("a pid");
    assert!(is_alive(daemon));
    locks.prints(&["run", "gpu", "--no-wait", "--", "true"]);
    kill(daemon, "-KILL");
}

/// A lock whose file is removed under its users is lost, and they are told.
#[test]
fn a_file_that_is_removed_is_a_lock_that_is_lost() {
    let locks = Locks::new();
    let holder = locks.holder(&["gpu"], "exec sleep 1000");
    let mut waiter = locks.command(&["run", "gpu", "--", "true"]);
    let mut waiter = waiter.stderr(Stdio::piped()).spawn().expect("it starts");
    soon("it waits", || {
        locks.status("gpu")["waiting"].as_array().is_some_and(|line| line.len() == 1)
    });
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
        assert!(
            locks.fails(2, &["run", name, "--", "true"]).contains("no name for a lock"),
            "{name}"
        );
    }
    for (args, complaint) in [
        (&["run", "a", "--slots", "0", "--", "true"][..], "0 slots"),
        (&["run", "a", "--slots", "1000000", "--", "true"], "1000000 slots"),
        (&["run", "a", "--timeout", "soon", "--", "true"], "is no time"),
        (&["run", "a", "--timeout", "1", "--no-wait", "--", "true"], "--no-wait"),
        (&["run", "a", "--session", "", "--", "true"], "session"),
        (&["run", "a"], "<COMMAND>"),
        (&["run", "a", "true"], "doorway run NAME -- COMMAND"),
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
    assert_eq!(locks.ran(&["run", "a", "--dir", "/proc/nowhere", "--", "true"]).code, Some(71));
}

/// Users of a group share its locks, and others have no part in them. Only root can be many users.
#[test]
fn users_of_a_group_share_its_locks() {
    const GROUP: u32 = 54_321;
    let place = tempfile::tempdir().expect("a directory");
    let everybodys = fs::Permissions::from_mode(0o1777);
    fs::set_permissions(place.path(), everybodys).expect("it is ours");
    // Where the other users can run it.
    let doorway = place.path().join("doorway");
    fs::copy(env!("CARGO_BIN_EXE_doorway"), &doorway).expect("it can be copied");
    let locks = place.path().join("locks");
    let run = |user: u32, group: u32, args: &[&str]| {
        let mut command = Command::new(&doorway);
        command.args(args).env("DOORWAY_DIR", &locks).env_remove("DOORWAY_HELD").current_dir("/");
        command.uid(user).gid(group).stdin(Stdio::null());
        command
    };
    if !rustix::process::geteuid().is_root() {
        println!("left out: this is not root");
        return;
    }
    let holder = begun(&mut run(
        1001,
        GROUP,
        &["run", "gpu", "--group", "54321", "--", "sh", "-c", "echo $$; exec sleep 1000"],
    ));
    let no_wait = ["run", "gpu", "--group", "54321", "--no-wait", "--", "true"];
    assert_eq!(run(1002, GROUP, &no_wait).status().expect("it starts").code(), Some(75));
    let status = run(1002, GROUP, &["status", "gpu", "--group", "54321", "--json"])
        .output()
        .expect("it starts");
    let status: Value = serde_json::from_slice(&status.stdout).expect("it is JSON");
    assert_eq!(status["holders"][0]["pid"].as_i64(), Some(holder.pid.into()));
    // One of another group, and one of this group who has not said so.
    for (group, args) in [(GROUP + 1, &no_wait[..]), (GROUP, &["status"])] {
        let ran = run(1003, group, args).output().expect("it starts");
        assert_eq!(ran.status.code(), Some(2), "{ran:?}");
        assert!(String::from_utf8_lossy(&ran.stderr).contains("locks"), "{ran:?}");
    }
    // The next user has it when the first one is killed.
    let waiter =
        run(1002, GROUP, &["run", "gpu", "--group", "54321", "--timeout", "30", "--", "true"])
            .spawn();
    kill(holder.wrapper.id() as i32, "-KILL");
    kill(holder.pid, "-KILL");
    assert!(waiter.and_then(|mut waiter| waiter.wait()).expect("it starts").success());
    drop(holder.ends());
}

/// What is printed where a standard tool drives it.
fn driven(program: &str, args: &[&str], locks: &Locks, input: &str) -> Option<String> {
    use std::io::Write;
    let mut command = Command::new(program);
    command
        .args(args)
        .env("DOORWAY_DIR", locks.directory.path())
        .env("DOORWAY", env!("CARGO_BIN_EXE_doorway"));
    let spawned = command
        .current_dir(locks.directory.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut child = spawned.ok()?;
    child.stdin.take().expect("it is piped").write_all(input.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{program}");
    Some(String::from_utf8(output.stdout).expect("it is text"))
}

/// A script that fails if more than two run at once: each makes one of two directories for the time
/// that it is inside.
const TWO: &str =
    "mkdir .in.$DOORWAY_SLOT && sleep 0.02 && rmdir .in.$DOORWAY_SLOT && echo $DOORWAY_SLOT";

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
    assert!(
        Command::new("bash").arg("-n").arg(script).status().expect("there is a bash").success()
    );
}
