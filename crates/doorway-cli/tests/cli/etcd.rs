//! Named locks on etcd: what they promise beyond what is promised everywhere, with a server,
//! processes and signals that are real.

use std::{
    fs,
    io::Read,
    os::unix::process::ExitStatusExt,
    process::{Child, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::json;

use super::{
    Ran, fields,
    kit::{
        cluster::Cluster,
        secrets::{Certificates, ask_for_passwords, password_file},
    },
    locks::{Locks, is_alive, kill, soon},
    refused,
};

const TTL: Duration = Duration::from_secs(2);

impl Locks {
    fn cluster(&self) -> &Cluster {
        self.cluster.as_ref().expect("it is on etcd")
    }

    /// The leases of all who are in line, in order.
    fn leases(&self, name: &str) -> Vec<String> {
        let places =
            self.cluster().gateway().keys(&format!("/doorway/{name}/q/")).expect("it answers");
        let lease = |(key, _): &(String, String)| {
            let place =
                key.rsplit('/').next().and_then(|place| place.split('-').next()).expect("a place");
            i64::from_str_radix(place, 16).expect("a lease").to_string()
        };
        places.iter().map(lease).collect()
    }

    /// Ends the leases of all who are in line, the last first, as if etcd had not heard from them.
    fn revoke(&self, name: &str) {
        for lease in self.leases(name).iter().rev() {
            self.cluster()
                .gateway()
                .post("/v3/lease/revoke", &json!({ "ID": lease }))
                .expect("it is revoked");
        }
    }

    fn waiting(&self, name: &str) -> usize {
        self.status(name)["waiting"].as_array().map_or(0, Vec::len)
    }

    /// One who waits for a lock that somebody holds, and is in line already.
    fn waiter(&self, args: &[&str]) -> Child {
        let before = self.waiting("gpu");
        let args = [&["run", "gpu"], args, &["--", "true"]].concat();
        let child = self.command(&args).stderr(Stdio::piped()).spawn().expect("it starts");
        soon("it is in line", || self.waiting("gpu") == before + 1);
        child
    }
}

/// Commands that fail if somebody else has their slot.
#[test]
fn nobody_else_has_the_slot() {
    let locks = Locks::on_etcd();
    let inside = locks.path("inside");
    let script = format!(
        "mkdir {0}.$DOORWAY_SLOT && sleep 0.05 && rmdir {0}.$DOORWAY_SLOT",
        inside.display()
    );
    let runs: Vec<Child> = (0..8)
        .map(|_| {
            locks
                .command(&["run", "two", "--slots", "2", "--", "sh", "-c", &script])
                .spawn()
                .expect("it starts")
        })
        .collect();
    for mut run in runs {
        assert!(run.wait().expect("it ends").success());
    }
    // What has ended has left nothing but the lock.
    let keys = locks.cluster().gateway().keys("/doorway/").expect("it answers");
    assert_eq!(keys.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(), ["/doorway/two/cfg"]);
}

#[test]
fn status_names_the_machine() {
    let locks = Locks::on_etcd();
    let holder = locks.holder(&["db", "--session", "read"], "exec sleep 1000");
    let status = locks.status("db");
    assert_eq!(fields(&status), ["name", "kind", "slots", "drained", "holders", "waiting"]);
    let who = &status["holders"][0];
    assert_eq!(fields(who), ["slot", "host", "pid", "ticket", "session", "seconds", "command"]);
    let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("it has a name");
    assert_eq!(who["host"].as_str(), Some(host.trim()));
    assert!(
        who["command"].as_str().is_some_and(|command| command.starts_with("sh -c echo")),
        "{who}"
    );
    assert!(locks.prints(&["status"]).contains(host.trim()));
    kill(holder.pid, "-TERM");
    assert_eq!(holder.ends().1, Some(143));
}

/// The lease is kept alive while the command runs, whatever the wrapper waits for.
#[test]
fn a_lock_is_kept_for_as_long_as_the_command_runs() {
    let locks = Locks::on_etcd();
    let holder = locks.holder(&["gpu", "--ttl", "2s"], "sleep 5; echo still here");
    assert_eq!(locks.ran(&["run", "gpu", "--timeout", "4s", "--", "true"]).code, Some(75));
    assert_eq!(holder.ends(), ("still here\n".into(), Some(0)));
}

/// For as long as it was asked to, without a word from here.
#[test]
fn a_lease_lasts_as_long_as_it_was_asked_to() {
    let locks = Locks::on_etcd();
    for (options, seconds) in [(&[][..], "10"), (&["--ttl", "7s"], "7")] {
        let holder = locks.holder(&[&["gpu"], options].concat(), "exec sleep 1000");
        let lease = json!({ "ID": locks.leases("gpu")[0] });
        let said =
            locks.cluster().gateway().post("/v3/lease/timetolive", &lease).expect("it answers");
        assert_eq!(said["grantedTTL"], seconds);
        kill(holder.pid, "-TERM");
        assert_eq!(holder.ends().1, Some(143));
    }
}

/// A command whose lock is lost is asked to end, and the exit code says why, whatever the command
/// says.
#[test]
fn a_command_that_loses_its_lock_is_stopped() {
    let locks = Locks::on_etcd();
    for (options, signal) in [(&[][..], "TERM"), (&["--lost-signal", "INT"], "INT")] {
        let script = format!(
            "trap 'echo got {signal}; exit 0' {signal}; echo ready; while :; do sleep 0.05; done"
        );
        let mut holder = locks.holder(&[&["gpu"], options].concat(), &script);
        holder.says("ready");
        locks.revoke("gpu");
        assert_eq!(holder.ends(), (format!("got {signal}\n"), Some(69)));
    }
}

/// One that does not heed the signal is killed, but not before its time.
#[test]
fn a_command_that_does_not_stop_is_killed() {
    let locks = Locks::on_etcd();
    let script = "trap '' TERM; echo ready; while :; do sleep 0.05; done";
    let mut holder = locks.holder(&["gpu", "--lost-grace", "1500ms"], script);
    holder.says("ready");
    let (pid, begin) = (holder.pid, Instant::now());
    locks.revoke("gpu");
    thread::sleep(Duration::from_millis(700));
    assert!(is_alive(pid));
    assert_eq!(holder.ends().1, Some(69));
    assert!(begin.elapsed() >= Duration::from_millis(1500));
    assert!(!is_alive(pid));
}

/// Without etcd nobody knows that the lock is still theirs when the lease has ended.
#[test]
fn a_command_is_stopped_when_etcd_is_gone() {
    let mut locks = Locks::on_etcd();
    let holder = locks.holder(&["gpu", "--ttl", "2s"], "exec sleep 1000");
    let begin = Instant::now();
    locks.cluster.as_mut().expect("it is on etcd").kill(0);
    assert_eq!(holder.ends().1, Some(69));
    assert!(begin.elapsed() >= TTL / 4, "it has time to come back: {:?}", begin.elapsed());
}

/// With nobody to keep the lock alive the command would run without it.
#[test]
fn the_command_dies_with_the_wrapper() {
    let locks = Locks::on_etcd();
    let mut holder = locks.holder(&["gpu", "--ttl", "2s"], "exec sleep 1000");
    let mut waiter = locks.waiter(&[]);
    kill(holder.wrapper.id() as i32, "-KILL");
    let begin = Instant::now();
    assert_eq!(holder.wrapper.wait().expect("it ends").signal(), Some(9));
    soon("it dies", || !is_alive(holder.pid));
    // And not only when the lease ends.
    assert_eq!(locks.status("gpu")["holders"].as_array().map(Vec::len), Some(1));
    assert!(waiter.wait().expect("it ends").success());
    println!("the slot came back after {:?}", begin.elapsed());
}

/// A wrapper that stands still loses the lock, and learns it when it goes on.
#[test]
fn a_wrapper_that_stood_still_stops_its_command() {
    let locks = Locks::on_etcd();
    let holder = locks.holder(&["gpu", "--ttl", "2s"], "exec sleep 1000");
    let mut waiter = locks.waiter(&[]);
    kill(holder.wrapper.id() as i32, "-STOP");
    assert!(waiter.wait().expect("it ends").success());
    assert!(is_alive(holder.pid));
    kill(holder.wrapper.id() as i32, "-CONT");
    assert_eq!(holder.ends().1, Some(69));
}

/// Who is called away from the line leaves it first, and whoever is told to ignore that does.
#[test]
fn who_is_called_away_leaves_the_line() {
    let locks = Locks::on_etcd();
    let holder = locks.holder(&["gpu"], "exec sleep 1000");
    for (signal, number) in [("-TERM", 15), ("-INT", 2), ("-HUP", 1)] {
        let mut waiter = locks.waiter(&["--ttl", "1h"]);
        kill(waiter.id() as i32, signal);
        assert_eq!(waiter.wait().expect("it ends").signal(), Some(number));
        assert_eq!(locks.waiting("gpu"), 0, "{signal}");
    }
    let (_, endpoints) = locks.place();
    let script = format!(
        "trap '' HUP; exec {} run gpu --etcd {endpoints} -- true",
        env!("CARGO_BIN_EXE_doorway")
    );
    let mut waiter =
        std::process::Command::new("sh").args(["-c", &script]).spawn().expect("it starts");
    soon("it is in line", || locks.waiting("gpu") == 1);
    kill(waiter.id() as i32, "-HUP");
    thread::sleep(Duration::from_millis(300));
    assert_eq!(locks.waiting("gpu"), 1);
    kill(holder.pid, "-TERM");
    assert!(waiter.wait().expect("it ends").success());
    holder.ends();
}

/// Who waits for a lock that it loses its place in is told.
#[test]
fn a_place_can_be_lost() {
    let locks = Locks::on_etcd();
    let holder = locks.holder(&["gpu"], "exec sleep 1000");
    let mut waiter = locks.waiter(&[]);
    locks.revoke("gpu");
    let mut said = String::new();
    waiter.stderr.take().expect("it is piped").read_to_string(&mut said).expect("it is text");
    assert_eq!(waiter.wait().expect("it ends").code(), Some(69), "{said}");
    assert!(said.contains("gpu is lost"), "{said}");
    assert_eq!(holder.ends().1, Some(69));
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    let run = |options: &[&str]| refused(&[&["run", "a"], options, &["--", "true"]].concat());
    for (options, complaint) in [
        (&["--etcd", "127.0.0.1:1", "--dir", "/tmp"][..], "--dir"),
        (&["--etcd"], "--etcd"),
        (&["--etcd", ""], "HOST:PORT"),
        (&["--etcd", "127.0.0.1"], "\"127.0.0.1\" is no endpoint: write HOST:PORT"),
        (&["--etcd", "127.0.0.1:1,ftp://x:2"], "\"ftp://x:2\" is no endpoint"),
        (&["--etcd-user", "me"], "--etcd"),
        (&["--ttl", "5"], "--etcd"),
        (&["--etcd", "127.0.0.1:1", "--ttl", "1.5s"], "whole seconds"),
        (&["--etcd", "127.0.0.1:1", "--lost-signal", "LUCK"], "the name or the number of a signal"),
        (&["--etcd", "127.0.0.1:1", "--lost-grace", "soon"], "is no time"),
        (&["--etcd", "127.0.0.1:1", "--etcd-cert", "/tmp/a"], "--etcd-key"),
        (&["--etcd", "127.0.0.1:1", "--etcd-password-file", "/tmp/a"], "--etcd-user"),
        (&["--etcd", "127.0.0.1:1", "--etcd-user", "me", "--etcd-password-file", "/none"], "/none"),
        (&["--etcd", "127.0.0.1:1", "--etcd-ca", "/none"], "/none"),
    ] {
        let said = run(options);
        assert!(said.contains(complaint), "{options:?}: {said}");
    }
}

#[test]
fn nobody_there_is_said_in_one_line() {
    for args in [
        &["run", "a", "--etcd", "127.0.0.1:1", "--", "true"][..],
        &["status", "--etcd", "127.0.0.1:1"],
    ] {
        let Ran { code, out, err } = super::doorway(args);
        assert_eq!((code, out.as_str(), err.lines().count()), (Some(69), "", 1), "{args:?}: {err}");
        assert!(err.contains("no etcd answers at 127.0.0.1:1"), "{err}");
    }
}

#[test]
fn passwords_come_from_a_file_or_the_environment() {
    let locks = Locks::on_etcd();
    ask_for_passwords(&locks.cluster().gateway(), "doorway", "open sesame", &["/doorway/"]);
    let file = |name: &str, password| {
        let directory = locks.path(name);
        fs::create_dir(&directory).expect("it can be made");
        password_file(&directory, password).to_str().expect("it is text").to_string()
    };
    let (right, wrong) = (file("right", "open sesame"), file("wrong", "open barley"));
    let command = ["--", "true"];
    locks.prints(
        &[&["run", "a", "--etcd-user", "doorway", "--etcd-password-file", &right][..], &command]
            .concat(),
    );
    let ran = locks
        .command(&["status", "a", "--etcd-user", "doorway"])
        .env("DOORWAY_ETCD_PASSWORD", "open sesame")
        .status();
    assert!(ran.expect("it starts").success());
    for (options, complaint) in [
        (
            &["--etcd-user", "doorway", "--etcd-password-file", &wrong][..],
            "knows no user \"doorway\" with this password",
        ),
        (&["--etcd-user", "doorway"], "DOORWAY_ETCD_PASSWORD"),
        (&[], "without a user"),
    ] {
        let said = locks.fails(2, &[&["run", "a"], options, &command].concat());
        assert!(said.contains(complaint), "{options:?}: {said}");
    }
}

#[test]
fn tls_with_a_certificate_of_ones_own() {
    let certificates = Certificates::new();
    let cluster = Cluster::start_with(1, Some(&certificates.server(true)));
    let file = |name: &str| certificates.file(name).to_str().expect("it is text").to_string();
    let [ca, certificate, key] = ["ca.pem", "client.pem", "client.key"].map(file);
    let endpoints = cluster.secure_endpoints().join(",");
    let mut args = vec!["run", "a", "--etcd", &endpoints, "--etcd-ca", &ca];
    assert_eq!(super::doorway(&[&args[..], &["--", "true"]].concat()).code, Some(69));
    args.extend(["--etcd-cert", &certificate, "--etcd-key", &key, "--", "echo", "inside"]);
    assert_eq!(super::prints(0, &args), "inside\n");
}
