//! `doorway lab report`.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader},
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;

use super::{command, doorway, json, prints, refused};

/// A report of these algorithms alone, quick, in a directory of its own.
fn report(algorithms: &[&str]) -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let out =
        prints(0, &[&["lab", "report", "--quick", "-o", path(&directory)], algorithms].concat());
    assert!(out.contains("what was claimed holds as far as it was explored"), "{out}");
    directory
}

fn path(directory: &TempDir) -> &str {
    directory.path().to_str().expect("a path")
}

fn page(directory: &TempDir) -> String {
    fs::read_to_string(directory.path().join("index.html")).expect("a page")
}

/// The rows of the page that say this of themselves: their attributes.
fn rows(page: &str, attribute: &str) -> Vec<BTreeMap<String, String>> {
    let rows = page.split("<tr ").skip(1).map(|row| row.split('>').next().expect("it ends"));
    let attributes = |row: &str| {
        let parts = row.split("\" ").filter_map(|part| part.split_once("=\""));
        parts
            .map(|(name, value)| (name.into(), value.trim_end_matches('"').into()))
            .collect::<BTreeMap<_, _>>()
    };
    rows.map(attributes).filter(|row| row.contains_key(attribute)).collect()
}

/// Runs the command of a row by hand.
fn by_hand(row: &BTreeMap<String, String>) -> Value {
    let words: Vec<&str> = row["data-command"].split(' ').chain(["--json"]).collect();
    let ran = doorway(&words);
    assert!(matches!(ran.code, Some(0 | 1 | 3)), "{words:?}: {}", ran.err);
    serde_json::from_str(&ran.out).expect("JSON")
}

/// Files and what identifies their contents in time.
fn parts(directory: &TempDir) -> BTreeMap<String, (u64, i64, i64)> {
    // Before the first part there is no directory, and a part that is being written has another
    // ending.
    let files = fs::read_dir(directory.path().join("parts"))
        .into_iter()
        .flatten()
        .map(|file| file.expect("a file"));
    let files = files.filter(|file| file.path().extension().is_some_and(|it| it == "json"));
    let of = |file: fs::DirEntry| {
        let about = file.metadata().expect("a file");
        (
            file.file_name().into_string().expect("a name"),
            (about.ino(), about.mtime(), about.mtime_nsec()),
        )
    };
    files.map(of).collect()
}

/// What the page says is what the commands beside it print: verdicts and states, references,
/// values.
#[test]
fn the_tables_agree_with_the_commands_run_by_hand() {
    let directory = report(&["burns-lamport", "queue", "group-bakery"]);
    let page = page(&directory);
    let verdicts = rows(&page, "data-holds");
    let mut checked = BTreeMap::new();
    for row in &verdicts {
        let check = checked.entry(row["data-command"].clone()).or_insert_with(|| by_hand(row));
        assert_eq!(row["data-states"], check["states"].to_string(), "{row:?}");
        let properties = check["properties"].as_array().expect("verdicts");
        let property = properties
            .iter()
            .find(|it| it["name"] == *row["data-property"])
            .expect("it was decided");
        let holds =
            property["holds"].as_bool().map_or("undecided".into(), |holds| holds.to_string());
        assert_eq!(row["data-holds"], holds, "{row:?}");
    }
    let of = |holds: &str| verdicts.iter().filter(|row| row["data-holds"] == holds).count();
    assert!(
        of("true") > 20 && of("false") > 5,
        "{} hold, {} are violated",
        of("true"),
        of("false")
    );
    let starves = |row: &&BTreeMap<_, _>| {
        row["data-property"] == "starvation-freedom" && row["data-holds"] == "false"
    };
    assert!(
        verdicts
            .iter()
            .filter(starves)
            .any(|row| row["data-command"].starts_with("lab check burns-lamport"))
    );
    let runs = rows(&page, "data-cc-mean");
    assert_eq!(runs.len(), 50, "five sizes, under four schedulers and twice three");
    for row in &runs {
        let run = by_hand(row);
        for model in ["cc", "dsm"] {
            assert_eq!(
                row[&format!("data-{model}-mean")],
                run["rmr"][model]["mean"].to_string(),
                "{row:?}"
            );
        }
    }
    // Whatever is linked to is there.
    for link in page.split("href=\"").skip(1).map(|rest| rest.split('"').next().expect("it ends")) {
        match link.strip_prefix('#') {
            Some(name) => assert!(page.contains(&format!("id=\"{name}\"")), "{link}"),
            None => assert!(link == "data:," || directory.path().join(link).exists(), "{link}"),
        }
    }
    assert!(
        !page.contains("<script") && !page.contains("http://") && !page.contains("https://")
            || page.contains("w3.org")
    );
}

#[test]
fn values_stand_beside_the_formulas() {
    let page = page(&report(&["colored-ticket"]));
    let rows = rows(&page, "data-values");
    assert_eq!(rows.len(), 6, "two to four processes, with every number of slots");
    for row in &rows {
        assert_eq!(
            row["data-values"],
            by_hand(row)["bounds"]["shared_values"].to_string(),
            "{row:?}"
        );
    }
}

/// The command is killed in the middle, at any step of writing: what is there is whole, and is not
/// made again.
#[test]
fn it_goes_on_where_it_was() {
    let directory = tempfile::tempdir().expect("a directory");
    let args = ["lab", "report", "bakery", "mcs", "--quick", "-o", path(&directory)];
    for (at_least, signal) in [(3, "INT"), (8, "KILL")] {
        let mut child = command(&args).stdout(Stdio::null()).spawn().expect("doorway starts");
        let began = Instant::now();
        while parts(&directory).len() < at_least {
            assert!(began.elapsed() < Duration::from_secs(120), "there is no progress");
            thread::sleep(Duration::from_millis(1));
        }
        let pid = child.id().to_string();
        let killed =
            std::process::Command::new("kill").args(["-s", signal, &pid]).status().expect("kill");
        assert!(killed.success());
        child.wait().expect("it ends");
    }
    let before = parts(&directory);
    let out = prints(0, &args);
    let after = parts(&directory);
    assert!(before.len() >= 8 && before.len() < after.len(), "{} of {}", before.len(), after.len());
    assert!(out.contains(&format!("{} of them before", before.len())), "{out}");
    for (name, made) in &before {
        assert_eq!(after.get(name), Some(made), "{name} was made again");
    }
    // And with everything there nothing is made.
    prints(0, &args);
    assert_eq!(parts(&directory), after);
    let unfinished = fs::read_dir(directory.path().join("parts"))
        .expect("parts")
        .map(|file| file.expect("a file").path());
    assert_eq!(unfinished.filter(|file| file.extension().is_some_and(|it| it == "tmp")).count(), 0);
}

/// A part that is cut off, changed, empty, foreign, of another version or for other arguments is
/// not used.
#[test]
fn damaged_and_foreign_parts_are_made_again() {
    let directory = report(&["mcs"]);
    let whole = page(&directory);
    let file = directory.path().join("parts/lab_check_mcs_n_2_max-states_1000000.json");
    let text = fs::read_to_string(&file).expect("a part");
    let part: Value = serde_json::from_str(&text).expect("JSON");
    let version = part["by"].as_str().expect("a version");
    let damages = [
        String::new(),
        text[..text.len() / 2].into(),
        "{}".into(),
        "[1, 2]".into(),
        text.replacen("\"states\":50", "\"states\":51", 1),
        text.replacen("\"holds\":true", "\"holds\":false", 1),
        text.replace(version, "0.0.9 0123456789abcdef"),
        text.replace(
            "lab check mcs -n 2 --max-states 1000000",
            "lab check mcs -n 2 --max-states 1000001",
        ),
        text.replace("doorway-part", "doorway-trace"),
    ];
    for damage in damages {
        assert_ne!(damage, text);
        fs::write(&file, &damage).expect("written");
        let out = prints(0, &["lab", "report", "mcs", "--quick", "-o", path(&directory)]);
        let all = parts(&directory).len();
        assert!(
            out.contains(&format!("{all} commands were run, {} of them before", all - 1)),
            "{damage}: {out}"
        );
        let made: Value =
            serde_json::from_str(&fs::read_to_string(&file).expect("a part")).expect("JSON");
        assert_eq!(made["digest"] == part["digest"], made["result"] == part["result"]);
        assert_eq!(made["result"]["states"], part["result"]["states"], "{damage}");
        let page = page(&directory);
        assert_eq!(rows(&page, "data-holds"), rows(&whole, "data-holds"));
    }
}

#[test]
fn what_cannot_be_written_is_one_line() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("file");
    fs::write(&file, "").expect("written");
    for place in [
        file.clone(),
        file.join("below"),
        Path::new("/proc/doorway").into(),
        Path::new("/dev/full").into(),
    ] {
        let place = place.to_str().expect("a path");
        let line = refused(&["lab", "report", "mcs", "--quick", "-o", place]);
        assert!(line.contains("cannot create") && line.contains(place), "{line}");
    }
    // Whoever may do anything may write here, too.
    let closed = directory.path().join("closed");
    fs::create_dir(&closed).expect("created");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o500)).expect("set");
    if fs::write(closed.join("try"), "").is_err() {
        refused(&["lab", "report", "mcs", "--quick", "-o", closed.to_str().expect("a path")]);
    }
    assert!(refused(&["lab", "report", "backery"]).contains("there are bakery, "));
    assert!(refused(&["lab", "report", "--quik"]).contains("--quick"));
}

/// Two at once would make everything twice.
#[test]
fn one_at_a_time_writes_a_report() {
    let directory = report(&["mcs"]);
    let held = fs::File::open(directory.path().join("parts/lock")).expect("a lock");
    let mut holder = std::process::Command::new("flock");
    let mut holder =
        holder.arg(directory.path().join("parts/lock")).args(["sh", "-c", "echo held; read end"]);
    holder = holder.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut holder = holder.spawn().expect("flock");
    let mut line = String::new();
    BufReader::new(holder.stdout.take().expect("a pipe")).read_line(&mut line).expect("it says so");
    let line = refused(&["lab", "report", "mcs", "--quick", "-o", path(&directory)]);
    assert!(line.contains("another doorway is writing"), "{line}");
    drop((holder.stdin.take(), held));
    holder.wait().expect("it ends");
    prints(0, &["lab", "report", "mcs", "--quick", "-o", path(&directory)]);
}

/// Every part is what its command prints.
#[test]
fn a_part_is_what_a_command_prints() {
    let directory = report(&["burns-lamport"]);
    let file = directory.path().join("parts/lab_rmr_burns-lamport_up-to_32.json");
    let part: Value =
        serde_json::from_str(&fs::read_to_string(file).expect("a part")).expect("JSON");
    assert_eq!(
        part["result"],
        json(0, &["lab", "rmr", "burns-lamport", "--up-to", "32", "--json"])
    );
}
