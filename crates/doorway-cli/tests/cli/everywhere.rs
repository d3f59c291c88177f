//! Named locks: what is promised wherever they are, with real processes and real signals.

use std::{
    fs,
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

use super::locks::{Locks, begun, kill, soon};

/// Each is a test on this machine, and one on etcd.
macro_rules! tests {
    ($($name:ident),* $(,)?) => {
        mod here {
            $(
                #[test]
                fn $name() {
                    super::$name(&super::Locks::new());
                }
            )*
        }

        #[cfg(feature = "etcd")]
        mod on_etcd {
            $(
                #[test]
                fn $name() {
                    super::$name(&super::Locks::on_etcd());
                }
            )*
        }
    };
}

tests!(
    a_command_runs_with_a_slot_and_its_exit_code_counts,
    who_must_not_wait_does_not,
    whoever_came_first_goes_first,
    signals_are_passed_on,
    what_is_ignored_stays_ignored,
    no_end_is_missed,
    stopping_and_going_on,
    nobody_waits_for_itself,
    sessions_share_and_exclude,
    a_session_that_is_none_makes_no_lock,
    another_kind_or_number_of_slots_is_refused_with_both,
    drained_resumed_and_removed,
);

fn a_command_runs_with_a_slot_and_its_exit_code_counts(locks: &Locks) {
    let show = "echo $DOORWAY_SLOT $DOORWAY_NAME $DOORWAY_SESSION.; exit 3";
    let ran = locks.ran(&["run", "gpu", "--slots", "2", "--", "sh", "-c", show]);
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(3), "0 gpu .\n", ""));
    let show = "echo $DOORWAY_SLOT $DOORWAY_NAME $DOORWAY_SESSION.";
    assert_eq!(
        locks.prints(&["run", "db", "--session", "read", "--", "sh", "-c", show]),
        "0 db read.\n"
    );
    // What the environment says of another lock is not handed on, and all else is.
    let show = "echo $DOORWAY_SLOT $DOORWAY_NAME $DOORWAY_SESSION. $WHO";
    let mut command = locks.command(&["run", "a", "--", "sh", "-c", show]);
    command.envs([
        ("DOORWAY_SLOT", "9"),
        ("DOORWAY_NAME", "z"),
        ("DOORWAY_SESSION", "old"),
        ("WHO", "ada"),
    ]);
    assert_eq!(command.output().expect("it starts").stdout, b"0 a . ada\n");
    // As a shell says it: killed by a signal, no such command, no command at all.
    assert_eq!(
        locks.ran(&["run", "gpu", "--slots", "2", "--", "sh", "-c", "kill -9 $$"]).code,
        Some(137)
    );
    assert!(locks.fails(127, &["run", "a", "--", "no-such-command"]).contains("no-such-command"));
    assert!(locks.fails(126, &["run", "a", "--", "/etc/passwd"]).contains("/etc/passwd"));
    assert_eq!(locks.status("a")["holders"], Value::Array(Vec::new()));
    // Tickets grow.
    let ticket = || {
        locks
            .prints(&["run", "a", "--", "sh", "-c", "echo $DOORWAY_TICKET"])
            .trim()
            .parse::<u64>()
            .expect("a number")
    };
    assert!(ticket() < ticket());
}

fn who_must_not_wait_does_not(locks: &Locks) {
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
        (Some(locks.owner(&holder).into()), Some(0))
    );
    kill(holder.pid, "-TERM");
    assert_eq!(holder.ends().1, Some(143));
    locks.prints(&["run", "gpu", "--timeout", "30", "--", "true"]);
}

fn whoever_came_first_goes_first(locks: &Locks) {
    let log = locks.path(".log");
    let holder = locks.holder(&["one"], "exec sleep 1000");
    let waiting = || locks.status("one")["waiting"].as_array().map_or(0, Vec::len);
    let script = |i: usize| format!("echo {i} >> {}", log.display());
    let others: Vec<Child> = (0..5)
        .map(|i| {
            let child = locks
                .command(&["run", "one", "--", "sh", "-c", &script(i)])
                .spawn()
                .expect("it starts");
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

fn signals_are_passed_on(locks: &Locks) {
    for signal in ["TERM", "INT", "HUP", "USR1"] {
        let holder = locks.holder(
            &["gpu"],
            &format!("trap 'echo got {signal}; exit 7' {signal}; while :; do sleep 0.05; done"),
        );
        thread::sleep(Duration::from_millis(100)); // the trap is set after the pid is said
        kill(holder.wrapper.id() as i32, &format!("-{signal}"));
        assert_eq!(holder.ends(), (format!("got {signal}\n"), Some(7)));
    }
}

/// `doorway run`, started by somebody who ignores a signal.
fn run_by_one_who_ignores(signal: &str, locks: &Locks, script: &str) -> Child {
    let (option, place) = locks.place();
    let run =
        [env!("CARGO_BIN_EXE_doorway"), "run", "gpu", option, &place, "--", "sh", "-c", script];
    // On one processor, where a command runs ahead of its wrapper now and then.
    let mut command = Command::new("env");
    command
        .args([&format!("--ignore-signal={signal}"), "taskset", "-c", "0"])
        .args(run)
        .stdout(Stdio::piped());
    command.spawn().expect("there is an env")
}

/// Under `nohup`, say.
fn what_is_ignored_stays_ignored(locks: &Locks) {
    let ran = run_by_one_who_ignores("HUP", locks, "kill -HUP $$; echo alive")
        .wait_with_output()
        .expect("it ends");
    assert_eq!((ran.status.code(), ran.stdout.as_slice()), (Some(0), &b"alive\n"[..]), "{ran:?}");
}

/// However soon it comes, and where nobody wanted to hear of it.
fn no_end_is_missed(locks: &Locks) {
    for _ in 0..60 {
        let mut wrapper = run_by_one_who_ignores("CHLD", locks, "exit 3");
        let begin = Instant::now();
        while wrapper.try_wait().expect("it is ours").is_none()
            && begin.elapsed() < Duration::from_secs(30)
        {
            thread::sleep(Duration::from_millis(1));
        }
        // Nothing is left behind, whatever comes of it.
        let _ = wrapper.kill();
        assert_eq!(wrapper.wait().expect("it ends").code(), Some(3));
    }
}

/// A wrapper stands still when its command does, and both go on together.
fn stopping_and_going_on(locks: &Locks) {
    let script = ["run", "gpu", "--", "sh", "-c", "echo $$; exec sleep 1000"];
    let mut holder = begun(locks.command(&script).process_group(0));
    let (wrapper, pid) = (&mut holder.wrapper, holder.pid);
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

fn nobody_waits_for_itself(locks: &Locks) {
    let doorway = env!("CARGO_BIN_EXE_doorway");
    let (option, place) = locks.place();
    let nested = [doorway, "run", "gpu", option, &place, "--", "true"];
    for around in
        [&[][..], &["env", "-i"], &["sh", "-c", "\"$@\"; exit $?", "sh"], &["setsid", "-w"]]
    {
        let args = [&["run", "gpu", "--"], around, &nested].concat();
        let ran = locks.ran(&args);
        assert_eq!(ran.code, Some(73), "{around:?}: {}", ran.err);
        assert!(ran.err.contains("it would wait for itself"), "{}", ran.err);
    }
    // Around another lock, too; and another name inside is no trouble.
    let inner = format!("{doorway} run other {option} {place} -- {}", nested.join(" "));
    assert_eq!(locks.ran(&["run", "gpu", "--", "sh", "-c", &inner]).code, Some(73));
    locks.prints(&["run", "gpu", "--", doorway, "run", "other", option, &place, "--", "true"]);
    // What an earlier command has left in the environment means nothing.
    let left = locks.prints(&["run", "gpu", "--", "sh", "-c", "echo \"$DOORWAY_HELD\""]);
    let ran =
        locks.command(&["run", "gpu", "--", "true"]).env("DOORWAY_HELD", left.trim_end()).status();
    assert!(ran.expect("it starts").success());
}

fn sessions_share_and_exclude(locks: &Locks) {
    let read = locks.holder(&["db", "--session", "read"], "exec sleep 1000");
    locks.prints(&["run", "db", "--session", "read", "--no-wait", "--", "true"]);
    assert_eq!(
        locks.ran(&["run", "db", "--session", "write", "--no-wait", "--", "true"]).code,
        Some(75)
    );
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
        locks
            .ran(&["run", "few", "--session", "read", "--slots", "1", "--no-wait", "--", "true"])
            .code,
        Some(75)
    );
    kill(one.pid, "-TERM");
    one.ends();
}

fn a_session_that_is_none_makes_no_lock(locks: &Locks) {
    for session in ["", &"s".repeat(64)] {
        let complaint = locks.fails(2, &["run", "db", "--session", session, "--", "true"]);
        assert!(
            complaint.contains("--session") && complaint.contains("1 to 63 bytes"),
            "{complaint}"
        );
    }
    assert_eq!(locks.prints(&["status", "--json"]), "[]\n");
    locks.prints(&["run", "db", "--session", &"s".repeat(63), "--", "true"]);
}

fn another_kind_or_number_of_slots_is_refused_with_both(locks: &Locks) {
    locks.prints(&["run", "gpu", "--slots", "2", "--", "true"]);
    let complaint = locks.fails(78, &["run", "gpu", "--slots", "3", "--", "true"]);
    assert!(complaint.contains("2 slots") && complaint.contains("--slots 3"), "{complaint}");
    assert!(locks.fails(78, &["run", "gpu", "--", "true"]).contains("2 slots"));
    assert!(locks.fails(78, &["run", "gpu", "--session", "a", "--", "true"]).contains("semaphore"));
    locks.prints(&["set", "gpu", "--slots", "3"]);
    locks.prints(&["run", "gpu", "--slots", "3", "--", "true"]);
}

fn drained_resumed_and_removed(locks: &Locks) {
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
    for args in
        [&["rm", "gpu"][..], &["status", "gpu"], &["set", "gpu", "--slots", "2"], &["drain", "gpu"]]
    {
        assert!(locks.fails(2, args).contains("no such lock"), "{args:?}");
    }
}
