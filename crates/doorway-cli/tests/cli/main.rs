//! The command line from outside: what is printed, in which fields, and with which exit code.

#![allow(missing_docs, unreachable_pub)]

mod bench;
mod check;
mod checkpoint;
mod containers;
mod equivalent;
#[cfg(feature = "etcd")]
mod etcd;
mod everywhere;
mod explore;
mod groups;
#[cfg(feature = "etcd")]
mod kit;
mod list;
mod locks;
mod named;
mod replay;
mod report;
mod rmr;
mod script;
mod simulate;
mod storm;
mod terminal;
mod usage;

use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// What came of a run.
struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

fn command(args: &[&str]) -> Command {
    let mut command = Command::new("env");
    // Whoever runs the tests may have been told to ignore them (nohup, a job in the background),
    // and then so would everything here.
    command.args(["--default-signal=HUP,INT,QUIT", env!("CARGO_BIN_EXE_doorway")]);
    command.args(args).stdin(Stdio::null());
    command
}

/// Runs doorway, which must not panic, whatever it is asked.
fn doorway(args: &[&str]) -> Ran {
    let Output { status, stdout, stderr } = command(args).output().expect("doorway starts");
    let [out, err] =
        [stdout, stderr].map(|text| String::from_utf8(text).expect("what is printed is text"));
    assert!(!err.contains("panicked"), "{args:?}: {err}");
    Ran { code: status.code(), out, err }
}

/// What a run that is to end with this code prints; it has no reason to say anything else, and
/// standard error is no terminal here on which to show how far it is.
fn prints(code: i32, args: &[&str]) -> String {
    let ran = doorway(args);
    assert_eq!((ran.code, ran.err.as_str()), (Some(code), ""), "{args:?}\n{}", ran.out);
    ran.out
}

/// The same for a run that prints JSON.
fn json(code: i32, args: &[&str]) -> Value {
    let out = prints(code, args);
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{args:?}: {error} in {out}"))
}

/// The one line that says what is wrong with these arguments.
fn refused(args: &[&str]) -> String {
    let ran = doorway(args);
    assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{args:?}\n{}", ran.err);
    let (line, rest) =
        ran.err.split_once('\n').unwrap_or_else(|| panic!("{args:?}: no line in {:?}", ran.err));
    assert_eq!(rest, "", "{args:?}: more than a line");
    line.strip_prefix("doorway: ")
        .unwrap_or_else(|| panic!("{args:?}: who says {line:?}?"))
        .to_owned()
}

/// The names of an object's fields, in order.
fn fields(value: &Value) -> Vec<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

fn has_fields(value: &Value, names: &[&str]) {
    names.iter().for_each(|name| assert!(fields(value).contains(name), "no {name} in {value}"));
}

/// The texts in an array.
fn texts(value: &Value) -> Vec<&str> {
    value.as_array().expect("an array").iter().map(|text| text.as_str().expect("a text")).collect()
}

const ALGORITHMS: [&str; 16] = [
    "bakery",
    "black-white-bakery",
    "burns-lamport",
    "yang-anderson",
    "mcs",
    "randomized",
    "randomized-bounded",
    "randomized-starvation-free",
    "queue",
    "numbered-ticket",
    "unbounded-colored-ticket",
    "colored-ticket",
    "k-bakery",
    "k-bakery-fife",
    "k-bakery-safe",
    "timestamp-bakery",
];
