//! One lock for processes of several PID namespaces, which is what containers have.

use std::{
    fs,
    process::{Child, Command, Stdio},
};

use super::locks::{Locks, soon};

/// Returns the words before a command that run it as the first process of a PID namespace of its
/// own, as container engines do; `None` if the system does not allow it.
fn container(others: &[&'static str]) -> Option<Vec<&'static str>> {
    let own = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];
    let as_user = ["--user", "--map-root-user"];
    let ways = [[&own[..], others].concat(), [&own[..], &as_user, others].concat()];
    let works = |way: &Vec<&str>| {
        Command::new(way[0])
            .args(&way[1..])
            .arg("true")
            .status()
            .is_ok_and(|status| status.success())
    };
    let found = ways.into_iter().find(works);
    if found.is_none() {
        eprintln!(
            "left out: no namespace can be made here; run the tests as root, or allow user namespaces"
        );
    }
    found
}

/// Ends with its test.
struct Container(Child);

impl Drop for Container {
    fn drop(&mut self) {
        // `--kill-child`: all of it ends with `unshare`.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a shell as the first process of a container. `$0` is `doorway`, and the lock's directory
/// the current one.
fn shell(locks: &Locks, container: &[&str], script: &str) -> Container {
    let mut command = Command::new(container[0]);
    command.args(&container[1..]).args(["sh", "-c", script, env!("CARGO_BIN_EXE_doorway")]);
    command
        .env("DOORWAY_DIR", locks.path(""))
        .env_remove("DOORWAY_HELD")
        .current_dir(locks.path(""));
    Container(command.stdout(Stdio::null()).spawn().expect("unshare is there"))
}

/// Waits for a file that a command makes.
fn appears(locks: &Locks, name: &str) {
    soon(name, || locks.path(name).exists());
}

const BUSY: Option<i32> = Some(75);

fn try_to_enter(locks: &Locks) -> Option<i32> {
    locks.ran(&["run", "gpu", "--no-wait", "--", "true"]).code
}

#[test]
fn processes_of_several_containers_exclude_each_other() {
    let locks = Locks::new();
    for others in [&[][..], &["--ipc"], &["--ipc", "--uts", "--net"]] {
        let Some(container) = container(others) else { return };
        let script = "$0 run gpu -- sh -c 'touch .begun; while ! test -e .go; do sleep 0.02; done; touch .done'";
        let _first = shell(&locks, &container, script);
        appears(&locks, ".begun");
        assert_eq!(try_to_enter(&locks), BUSY);
        let status = locks.status("gpu");
        assert_eq!(status["holders"][0]["foreign"], true, "{status}");
        assert!(locks.prints(&["status", "gpu"]).contains("[in another PID namespace]"));
        // The second one has another PID namespace than both the first and this process, and enters
        // when the first has ended.
        let _second =
            shell(&locks, &container, "$0 run gpu -- sh -c 'test -e .done && touch .second'");
        soon("it waits", || {
            locks.status("gpu")["waiting"].as_array().is_some_and(|waiting| waiting.len() == 1)
        });
        fs::write(locks.path(".go"), "").expect("it is ours");
        appears(&locks, ".second");
        locks.prints(&["run", "gpu", "--timeout", "60s", "--", "true"]);
        for name in [".begun", ".go", ".done", ".second"] {
            fs::remove_file(locks.path(name)).expect("it is there");
        }
    }
}

/// Its PID is 2 in the container, and another process has that PID here.
#[test]
fn a_killed_container_frees_its_slot() {
    let locks = Locks::new();
    let Some(container) = container(&[]) else { return };
    // Once before a process of another namespace has used the lock, and once after.
    for _ in 0..2 {
        let first = shell(&locks, &container, "$0 run gpu -- sh -c 'touch .begun; sleep 1000'");
        appears(&locks, ".begun");
        assert_eq!(try_to_enter(&locks), BUSY);
        drop(first);
        locks.prints(&["run", "gpu", "--timeout", "60s", "--", "true"]);
        fs::remove_file(locks.path(".begun")).expect("it is there");
    }
}

/// The wrapper is killed, and the command goes on: it holds the slot until it ends.
#[test]
fn a_command_without_its_wrapper_is_alive_for_other_containers() {
    let locks = Locks::new();
    let Some(container) = container(&[]) else { return };
    let script = "$0 run gpu -- sh -c 'touch .begun; while ! test -e .go; do sleep 0.02; done; touch .done' & \
                  while ! test -e .begun; do sleep 0.02; done; kill -9 $!; wait; touch .killed; sleep 1000";
    let _first = shell(&locks, &container, script);
    appears(&locks, ".killed");
    assert_eq!(try_to_enter(&locks), BUSY);
    fs::write(locks.path(".go"), "").expect("it is ours");
    locks.prints(&[
        "run",
        "gpu",
        "--timeout",
        "60s",
        "--",
        "test",
        "-e",
        locks.path(".done").to_str().expect("it is text"),
    ]);
}

/// The command closes the descriptor by which other containers would see that it lives.
#[test]
fn a_command_that_closes_all_descriptors_is_alive_for_other_containers() {
    let locks = Locks::new();
    let Some(container) = container(&[]) else { return };
    let script = "$0 run gpu -- python3 -c '
import os, time
os.closerange(3, 4096)
open(\".closed\", \"w\")
while not os.path.exists(\".go\"): time.sleep(0.02)
' & while ! test -e .closed; do sleep 0.02; done; sleep 0.5; kill -9 $!; touch .killed; wait; \
                  while ! test -e .look; do sleep 0.02; done; $0 run gpu -- touch .looked; sleep 1000";
    let _first = shell(&locks, &container, script);
    appears(&locks, ".killed");
    assert_eq!(try_to_enter(&locks), BUSY);
    fs::write(locks.path(".go"), "").expect("it is ours");
    // When it has ended, a process of its own namespace finds that out, which enters, and others
    // can then.
    fs::write(locks.path(".look"), "").expect("it is ours");
    appears(&locks, ".looked");
    locks.prints(&["run", "gpu", "--timeout", "60s", "--", "true"]);
}

/// While the wrapper lives, what the command leaves behind does not keep the slot.
#[test]
fn a_daemon_of_the_command_does_not_keep_the_slot_from_other_containers() {
    let locks = Locks::new();
    let Some(container) = container(&[]) else { return };
    let _first = shell(
        &locks,
        &container,
        "$0 run gpu -- sh -c 'sleep 1000 & touch .begun'; touch .ended; sleep 1000",
    );
    appears(&locks, ".ended");
    assert_eq!(try_to_enter(&locks), Some(0));
}

/// Containers are killed at random moments. The kernel is the referee: the command locks a file,
/// which no other command may have locked.
#[test]
fn killed_containers_neither_let_two_in_nor_lose_the_slot() {
    let locks = Locks::new();
    let Some(container) = container(&[]) else { return };
    let script = "while :; do $0 run gpu -- flock -n .referee sleep 0.003 || touch .violated; echo >> .passed; done";
    let passed = || fs::metadata(locks.path(".passed")).map_or(0, |about| about.len());
    let mut containers: Vec<_> = (0..3).map(|_| shell(&locks, &container, script)).collect();
    for kill in 0..30 {
        let before = passed();
        soon("it goes on", || passed() > before + kill % 4);
        std::thread::sleep(std::time::Duration::from_micros(kill * 997 % 5000));
        containers.remove(0);
        containers.push(shell(&locks, &container, script));
    }
    drop(containers);
    assert!(!locks.path(".violated").exists(), "two were inside");
    assert_eq!(
        locks.ran(&["run", "gpu", "--timeout", "60s", "--", "true"]).code,
        Some(0),
        "the slot is lost"
    );
}

/// There, `/proc` numbers the processes of another namespace, and would show other processes in
/// place of those of the lock.
#[test]
fn a_container_without_its_own_proc_is_refused() {
    let locks = Locks::new();
    let Some(mut container) = container(&[]) else { return };
    container.retain(|word| *word != "--mount-proc");
    let mut command = Command::new(container[0]);
    command
        .args(&container[1..])
        .arg(env!("CARGO_BIN_EXE_doorway"))
        .args(["run", "gpu", "--", "echo", "inside"]);
    let output = command.env("DOORWAY_DIR", locks.path("")).output().expect("unshare is there");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        (output.status.code(), &*output.stdout, said.lines().count()),
        (Some(78), &b""[..], 1),
        "{said}"
    );
    assert!(said.contains("unshare --mount-proc"), "{said}");
}
