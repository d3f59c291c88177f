//! `doorway lab replay`, and files that are not traces or not any more.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{doorway, prints, refused};

/// A trace, written by a check.
struct Trace {
    _directory: TempDir,
    file: PathBuf,
    /// What the check printed.
    printed: String,
}

impl Trace {
    fn of(args: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("trace.json");
        let printed = prints(1, &[&["lab", "check"], args, &["--trace", text(&file)]].concat());
        Self { _directory: directory, file, printed }
    }

    fn value(&self) -> Value {
        serde_json::from_str(&fs::read_to_string(&self.file).expect("it was written"))
            .expect("JSON")
    }

    /// Why it is refused once it has been changed.
    fn damaged(&self, change: impl FnOnce(&mut Value)) -> String {
        let mut value = self.value();
        change(&mut value);
        self.holding(value.to_string())
    }

    /// Why it is refused with something else in the file.
    fn holding(&self, bytes: impl AsRef<[u8]>) -> String {
        let file = self.file.with_file_name("damaged.json");
        fs::write(&file, bytes).expect("written");
        let line = refused(&["lab", "replay", text(&file)]);
        assert!(line.contains("damaged.json"), "{line}");
        line
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a name")
}

/// The lines of the table of steps.
fn steps(printed: &str) -> Vec<&str> {
    printed
        .lines()
        .skip_while(|line| !line.starts_with("  step  "))
        .take_while(|line| line.starts_with("  "))
        .collect()
}

/// No exclusion, after 27 steps.
fn violation() -> Trace {
    Trace::of(&["black-white-bakery", "-n", "2", "--mutant", "as-printed"])
}

/// Process 1 waits for ever.
fn starvation() -> Trace {
    Trace::of(&["burns-lamport", "-n", "2", "--property", "starvation-freedom"])
}

#[test]
fn a_trace_replays_and_prints_the_same_steps() {
    let traces: [&[&str]; 10] = [
        &["bakery", "-n", "2", "--property", "fifo-enabling"],
        &["bakery", "-n", "3", "--property", "k-deadlock-avoidance"],
        &["burns-lamport", "-n", "3", "--passages", "2", "--property", "fifo-enabling"],
        &["black-white-bakery", "-n", "2", "--mutant", "as-printed"],
        &["burns-lamport", "-n", "3", "--property", "starvation-freedom"],
        &["yang-anderson", "-n", "3", "--property", "fcfs"],
        &["yang-anderson", "-n", "3", "--property", "k-fcfs"],
        &["bakery", "-n", "2", "--mutant", "compares-without-ids", "--registers", "safe"],
        &["bakery", "-n", "2", "--crashes", "1", "--property", "deadlock-freedom"],
        &["bakery", "-n", "2", "--abandon", "--property", "starvation-freedom"],
    ];
    for args in traces {
        let trace = Trace::of(args);
        let replayed = prints(0, &["lab", "replay", text(&trace.file)]);
        assert!(steps(&replayed).len() > 5, "{args:?}\n{replayed}");
        assert_eq!(steps(&replayed), steps(&trace.printed), "{args:?}");
        let property = trace.value()["property"].as_str().expect("a property").to_owned();
        assert!(replayed.contains(&format!("\n{property} is violated: ")), "{args:?}\n{replayed}");
    }
}

#[test]
fn what_is_not_a_trace_is_refused() {
    let trace = violation();
    let whole = fs::read_to_string(&trace.file).expect("it was written");
    for length in [0, 1, 2, 50, 500, whole.len() / 2, whole.len() - 3] {
        assert!(trace.holding(&whole[..length]).contains("not a doorway trace"), "{length} bytes");
    }
    for other in [
        "[]",
        "3",
        "null",
        "{}",
        "\"doorway-trace\"",
        r#"{"format": "else", "version": 1}"#,
        "# Doorway\n",
    ] {
        assert!(trace.holding(other).contains("not a doorway trace"), "{other}");
    }
    assert!(trace.holding("[".repeat(100_000)).contains("not a doorway trace"));
    assert!(trace.holding(b"{\"format\": \"\xff\"}").contains("UTF-8"));
}

#[test]
fn traces_of_something_unknown_are_refused() {
    let trace = violation();
    let with = |field: &str, value: Value| trace.damaged(|trace| trace[field] = value);
    assert!(with("version", json!(2)).contains("version 2"));
    assert!(with("version", json!(4_294_967_297_u64)).contains("version 4294967297"));
    assert!(with("version", json!("one")).contains("not a doorway trace"));
    assert!(with("algorithm", json!("backery")).contains("\"backery\""));
    assert!(with("algorithm", json!("two\nlines")).contains("two\\nlines"));
    assert!(with("mutant", json!("luck")).contains("\"luck\""));
    assert!(with("registers", json!("luck")).contains("\"luck\""));
    assert!(with("property", json!("luck")).contains("\"luck\""));
    for (field, size) in [
        ("n", json!(0)),
        ("n", json!(-1)),
        ("n", json!(1_000_000_000_000_u64)),
        ("k", json!(0)),
        ("k", json!(2)),
        ("k", json!(u64::MAX)),
        ("sessions", json!(1)),
    ] {
        let line = with(field, size.clone());
        assert!(
            line.contains("does not fit") || line.contains("not a doorway trace"),
            "{field} = {size}: {line}"
        );
    }
}

#[test]
fn steps_that_the_algorithm_does_not_take_are_noticed() {
    let trace = violation();
    let fifth = |field: &str, value: Value| trace.damaged(|trace| trace["steps"][4][field] = value);
    for (field, value) in [
        ("access", json!("Token[0] := ColoredTicket { color: Black, number: 7 }")),
        ("access", json!("\u{1b}[31m")),
        ("line", json!(99)),
        ("process", json!(1)),
        ("process", json!(2)),
        ("process", json!(u64::MAX)),
        ("region", json!("critical")),
        ("choice", json!("abandon")),
        ("choice", json!("outcome 4294967295")),
        ("choice", json!("request 1")),
        ("choice", json!("luck")),
        ("garbage", json!(0)),
    ] {
        let line = fifth(field, value.clone());
        assert!(line.contains("step 5 of the trace does not replay"), "{field} = {value}: {line}");
    }
    // One step fewer in the middle, another algorithm, other registers, not the mutant.
    let changes: [fn(&mut Value); 4] = [
        |trace| drop(trace["steps"].as_array_mut().expect("steps").remove(9)),
        |trace| (trace["algorithm"], trace["mutant"]) = (json!("bakery"), Value::Null),
        |trace| trace["registers"] = json!("safe"),
        |trace| trace["mutant"] = Value::Null,
    ];
    for change in changes {
        assert!(trace.damaged(change).contains("does not replay"));
    }
    // A read that overlaps no write returns what the register holds.
    let safe = Trace::of(&[
        "bakery",
        "-n",
        "2",
        "--mutant",
        "compares-without-ids",
        "--registers",
        "safe",
    ]);
    let line = safe.damaged(|trace| {
        let steps = trace["steps"].as_array_mut().expect("steps");
        let read = steps.iter().position(|step| step["access"] == "Ticket[1] = 0").expect("a read");
        steps[read]["garbage"] = json!(0);
        steps[read]["access"] = json!("Ticket[1] = 0 (overlaps a write)");
    });
    assert!(line.contains("does not replay"), "{line}");
}

/// A trace may replay to the letter and still not show what it says.
#[test]
fn traces_that_show_nothing_are_noticed() {
    let changes: [fn(&mut Value); 6] = [
        |trace| drop(trace["steps"].as_array_mut().expect("steps").pop()),
        |trace| trace["steps"] = json!([]),
        |trace| trace["property"] = json!("bounded-registers"),
        |trace| trace["property"] = json!("starvation-freedom"),
        |trace| trace["loop_from"] = json!(3),
        |trace| trace["crashed"] = json!([77]),
    ];
    let trace = violation();
    for change in changes {
        assert!(trace.damaged(change).contains("does not show"));
    }
    let changes: [fn(&mut Value); 8] = [
        |trace| trace["loop_from"] = Value::Null,
        |trace| trace["loop_from"] = json!(0),
        |trace| trace["loop_from"] = json!(99),
        |trace| trace["loop_from"] = json!(u64::MAX),
        |trace| drop(trace["steps"].as_array_mut().expect("steps").pop()),
        // Somebody enters again and again.
        |trace| trace["property"] = json!("deadlock-freedom"),
        |trace| trace["property"] = json!("bounded-exit"),
        // Who crashes moves no more.
        |trace| trace["crashed"] = json!([0]),
    ];
    let trace = starvation();
    for change in changes {
        assert!(trace.damaged(change).contains("does not show"));
    }
    let overtaking = Trace::of(&["bakery", "-n", "2", "--property", "fifo-enabling"]);
    let changes: [fn(&mut Value); 4] = [
        |trace| trace["steps"] = json!([]),
        |trace| trace["loop_from"] = json!(0),
        |trace| trace["property"] = json!("k-deadlock-avoidance"),
        |trace| trace["property"] = json!("fcfs"),
    ];
    for change in changes {
        assert!(overtaking.damaged(change).contains("does not show"));
    }
    let standstill = Trace::of(&["bakery", "-n", "2", "--property", "k-deadlock-avoidance"]);
    let changes: [fn(&mut Value); 5] = [
        |trace| trace["steps"] = json!([]),
        |trace| trace["loop_from"] = Value::Null,
        |trace| trace["loop_from"] = json!(0),
        |trace| trace["loop_from"] = json!(6),
        |trace| drop(trace["steps"].as_array_mut().expect("steps").pop()),
    ];
    for change in changes {
        assert!(standstill.damaged(change).contains("does not show"));
    }
    // Without the crash, it is only that the other one does not move.
    let trace =
        Trace::of(&["bakery", "-n", "2", "--crashes", "1", "--property", "deadlock-freedom"]);
    assert!(trace.damaged(|trace| trace["crashed"] = json!([])).contains("does not show"));
}

/// Whatever byte is hit, there is no panic: the trace is refused, or says the same (a space), or
/// uses other words for what it shows.
#[test]
fn a_damaged_byte_does_no_harm() {
    let trace = starvation();
    let whole = fs::read(&trace.file).expect("it was written");
    let replayed = prints(0, &["lab", "replay", text(&trace.file)]);
    let file = trace.file.with_file_name("damaged.json");
    for at in (0..whole.len()).step_by(3) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        fs::write(&file, &bytes).expect("written");
        let ran = doorway(&["lab", "replay", text(&file)]);
        match ran.code {
            Some(0) => assert_eq!(steps(&ran.out), steps(&replayed), "byte {at}"),
            code => {
                assert_eq!((code, ran.err.lines().count()), (Some(2), 1), "byte {at}: {}", ran.err)
            }
        }
    }
}

/// The page is one file that holds the trace and asks for nothing from elsewhere.
#[test]
fn a_trace_becomes_a_page() {
    let trace = violation();
    let page = trace.file.with_file_name("page.html");
    let printed = prints(0, &["lab", "replay", text(&trace.file), "--html", text(&page)]);
    assert_eq!(steps(&printed), steps(&trace.printed));
    let html = fs::read_to_string(&page).expect("a page");
    assert!(html.contains("<title>black-white-bakery: mutual-exclusion is violated</title>"));
    assert!(!html.contains("http://") && !html.contains("https://"), "it needs no network");
    assert!(!html.contains("src="));
    let film = html
        .split_once("id=\"film\">")
        .and_then(|(_, rest)| rest.split_once("</script>"))
        .expect("a film")
        .0;
    let film: Value = serde_json::from_str(film).expect("JSON");
    assert_eq!(film["trace"], trace.value());
    // The same from the check itself.
    let direct = trace.file.with_file_name("direct.HTML");
    prints(
        1,
        &["lab", "check", "black-white-bakery", "--mutant", "as-printed", "--trace", text(&direct)],
    );
    assert!(fs::read_to_string(direct).expect("a page") == html);
    // What cannot be written, or shows nothing, is said in a line.
    let nowhere = trace.file.join("page.html");
    assert!(
        refused(&["lab", "replay", text(&trace.file), "--html", text(&nowhere)])
            .contains("cannot write")
    );
    fs::write(&trace.file, "{}").expect("written");
    assert!(
        refused(&["lab", "replay", text(&trace.file), "--html", text(&page)])
            .contains("not a doorway trace")
    );
}
