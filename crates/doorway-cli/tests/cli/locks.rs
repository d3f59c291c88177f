//! Locks for a test, and commands that hold them.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    path::PathBuf,
    process::{Child, ChildStdout, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;

use super::Ran;

/// Locks of its own, in a directory or on etcd.
pub(super) struct Locks {
    pub(super) directory: TempDir,
    #[cfg(feature = "etcd")]
    pub(super) cluster: Option<super::kit::cluster::Cluster>,
}

impl Locks {
    pub(super) fn new() -> Self {
        Self {
            directory: tempfile::tempdir().expect("a directory"),
            #[cfg(feature = "etcd")]
            cluster: None,
        }
    }

    #[cfg(feature = "etcd")]
    pub(super) fn on_etcd() -> Self {
        Self { cluster: Some(super::kit::cluster::Cluster::start(1)), ..Self::new() }
    }

    /// The option that says where they are, and its value.
    pub(super) fn place(&self) -> (&'static str, String) {
        #[cfg(feature = "etcd")]
        if let Some(cluster) = &self.cluster {
            return ("--etcd", cluster.endpoints().join(","));
        }
        ("--dir", self.directory.path().to_str().expect("it is text").into())
    }

    /// The process that status names for a holder: on etcd the one that keeps the lock alive.
    pub(super) fn owner(&self, holder: &Holder) -> i32 {
        if self.place().0 == "--etcd" { holder.wrapper.id() as i32 } else { holder.pid }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(super) fn command(&self, args: &[&str]) -> Command {
        let mut command = super::command(&[]);
        match (self.place(), args) {
            // Before `--`: what comes after it is none of ours.
            (
                ("--etcd", endpoints),
                [name @ ("run" | "status" | "set" | "drain" | "resume" | "rm"), rest @ ..],
            ) => command.args([name, "--etcd", &endpoints]).args(rest),
            _ => command.args(args),
        };
        command.env("DOORWAY_DIR", self.directory.path()).env_remove("DOORWAY_HELD");
        command
    }

    pub(super) fn ran(&self, args: &[&str]) -> Ran {
        let output = self.command(args).output().expect("doorway starts");
        let [out, err] =
            [output.stdout, output.stderr].map(|text| String::from_utf8(text).expect("it is text"));
        assert!(!err.contains("panicked"), "{args:?}: {err}");
        Ran { code: output.status.code(), out, err }
    }

    /// What one prints that goes well.
    pub(super) fn prints(&self, args: &[&str]) -> String {
        let ran = self.ran(args);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{args:?}");
        ran.out
    }

    /// What one says that does not.
    pub(super) fn fails(&self, code: i32, args: &[&str]) -> String {
        let ran = self.ran(args);
        assert_eq!((ran.code, ran.out.as_str()), (Some(code), ""), "{args:?}: {}", ran.err);
        assert_eq!(ran.err.lines().count(), 1, "{args:?}: {}", ran.err);
        ran.err
    }

    pub(super) fn status(&self, name: &str) -> Value {
        serde_json::from_str(&self.prints(&["status", name, "--json"])).expect("it is JSON")
    }

    /// A command under `run` that has begun: it says its pid, and waits.
    pub(super) fn holder(&self, args: &[&str], script: &str) -> Holder {
        let script = format!("echo $$; {script}");
        let args = [&["run"], args, &["--", "sh", "-c", &script]].concat();
        begun(&mut self.command(&args))
    }
}

/// A command that says its pid first, when it has done so.
pub(super) fn begun(command: &mut Command) -> Holder {
    let mut wrapper = command.stdout(Stdio::piped()).spawn().expect("doorway starts");
    let mut out = BufReader::new(wrapper.stdout.take().expect("it is piped"));
    let mut line = String::new();
    out.read_line(&mut line).expect("it says its pid");
    Holder { pid: line.trim().parse().expect("a pid"), wrapper, out }
}

pub(super) struct Holder {
    pub(super) wrapper: Child,
    pub(super) pid: i32,
    out: BufReader<ChildStdout>,
}

impl Holder {
    /// Waits until it says this, in a line of its own.
    #[cfg(feature = "etcd")]
    pub(super) fn says(&mut self, what: &str) {
        let mut line = String::new();
        self.out.read_line(&mut line).expect("it is text");
        assert_eq!(line.trim_end(), what);
    }

    /// What else it prints, and how the wrapper ends.
    pub(super) fn ends(mut self) -> (String, Option<i32>) {
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).expect("it is text");
        (rest, self.wrapper.wait().expect("it ends").code())
    }
}

/// A test that fails leaves nobody behind, who might keep what the test has open.
impl Drop for Holder {
    fn drop(&mut self) {
        if thread::panicking() {
            let _ = self.wrapper.kill();
            let _ = Command::new("kill").args(["-KILL", &self.pid.to_string()]).status();
        }
    }
}

pub(super) fn kill(pid: i32, signal: &str) {
    let status =
        Command::new("kill").args([signal, &pid.to_string()]).status().expect("there is a kill");
    assert!(status.success());
}

/// Waits for something that is to come soon.
pub(super) fn soon(what: &str, mut is_there: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_there() {
        assert!(begin.elapsed() < Duration::from_secs(30), "{what}");
        thread::sleep(Duration::from_millis(10));
    }
}

pub(super) fn is_alive(pid: i32) -> bool {
    // A zombie has ended.
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z"))
}
