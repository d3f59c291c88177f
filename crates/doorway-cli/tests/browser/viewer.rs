//! The page that shows a trace.

use std::{fs, path::PathBuf, process::Command};

use doorway_core::RegisterKind;
use doorway_lab::{Choice, machine::Machine, trace::Trace};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::chromium::Page;

/// Runs doorway in a directory, to this exit code.
fn doorway(directory: &TempDir, code: i32, args: &[&str]) {
    let ran = Command::new(env!("CARGO_BIN_EXE_doorway"))
        .args(args)
        .current_dir(directory)
        .output()
        .expect("doorway");
    assert_eq!(ran.status.code(), Some(code), "{args:?}: {}", String::from_utf8_lossy(&ran.stderr));
}

/// What every register holds after each number of steps, by the machine itself.
fn values(trace: &Trace) -> Vec<Vec<(String, String)>> {
    let subject = trace.subject().expect("an algorithm");
    let mut machine = Machine::new(&*subject, RegisterKind::Atomic, false).expect("it runs");
    let held = |machine: &Machine<'_>| {
        let cells = subject.layout().cells().enumerate();
        cells.map(|(r, cell)| (cell.name(), machine.value(r).text())).collect::<Vec<_>>()
    };
    let mut all = vec![held(&machine)];
    for step in &trace.steps {
        let starts = machine.moves(step.process)[0].choice;
        assert!(matches!(starts, Choice::Go | Choice::Request(0)), "nobody has a choice in these");
        machine.step(step.process, starts, None).expect("it runs");
        all.push(held(&machine));
    }
    all
}

/// What the page says the registers hold.
fn shown(page: &mut Page) -> Vec<(String, String)> {
    let registers = page.eval(
        "[...document.querySelectorAll('.register')].map((r) => [r.dataset.register, r.querySelector('.value').textContent])",
    );
    serde_json::from_value(registers).expect("names and values")
}

/// The paper's own counterexample, step by step, forward and back.
#[test]
fn the_violation_of_fife_is_shown_step_by_step() {
    let directory = tempfile::tempdir().expect("a directory");
    let check = [
        "lab",
        "check",
        "k-bakery",
        "-n",
        "4",
        "-k",
        "2",
        "--passages",
        "1",
        "--property",
        "fife",
        "--trace",
    ];
    doorway(&directory, 1, &[&check[..], &["fife.json"]].concat());
    doorway(&directory, 0, &["lab", "replay", "fife.json", "--html", "fife.html"]);
    let trace =
        Trace::parse(&fs::read_to_string(directory.path().join("fife.json")).expect("a trace"))
            .expect("one");
    let values = values(&trace);
    let last = trace.steps.len();
    let mut page = Page::new();
    for (width, height) in [(1280, 900), (390, 844)] {
        page.resize(width, height);
        page.open_file(&directory.path().join("fife.html"));
        // Several runs are equally short, and any of them may be shown.
        assert!(trace.shows.contains("has entered before process"), "{}", trace.shows);
        assert!(page.text("#shows").starts_with(&format!("fife is violated: {}", trace.shows)));
        assert_eq!(page.text("#position"), format!("step {last} of {last}"));
        assert!(page.text(".step.violation .number").contains('✗'));
        assert!(page.text("#now .bad").contains("fife is violated"));
        page.press("Home");
        for (at, values) in values.iter().enumerate() {
            assert_eq!(page.text("#position"), format!("step {at} of {last}"));
            assert_eq!(&shown(&mut page), values, "after {at} steps");
            let current = page.text(".step.current .access");
            match at.checked_sub(1).map(|i| &trace.steps[i]) {
                None => assert_eq!(current, "the start"),
                Some(step) => {
                    assert_eq!(current, step.access);
                    assert!(
                        page.text("#now .what")
                            .contains(&format!("process {}, line {}", step.process, step.line))
                    );
                    assert_eq!(page.text(".executed .margin"), step.line.to_string());
                    let section = page.text(&format!("tr[data-process='{}'] .chip", step.process));
                    assert_eq!(section, step.region);
                }
            }
            page.press("ArrowRight");
        }
        for (at, values) in values.iter().enumerate().rev() {
            assert_eq!(page.text("#position"), format!("step {at} of {last}"));
            assert_eq!(&shown(&mut page), values, "back at {at} steps");
            page.press("ArrowLeft");
        }
        // By buttons, the slider and the diagram itself.
        page.click("#forward");
        page.click("#forward");
        page.click("#back");
        assert_eq!(page.text("#position"), format!("step 1 of {last}"));
        page.eval("slider.value = 7; slider.dispatchEvent(new Event('input'))");
        assert_eq!(shown(&mut page), values[7]);
        page.click(".step[data-step='9']");
        assert_eq!(shown(&mut page), values[9]);
        page.click("#last");
        assert_eq!(shown(&mut page), values[last]);
        // The process that has entered last stands at the critical section.
        assert_eq!(page.text("[data-line='24'] .here"), trace.steps[last - 1].process.to_string());
        page.is_well();
    }
}

#[test]
fn references_loops_and_crashes_are_shown() {
    let directory = tempfile::tempdir().expect("a directory");
    let args = [
        "lab",
        "check",
        "bakery",
        "--crashes",
        "1",
        "--property",
        "deadlock-freedom",
        "--trace",
        "dead.html",
    ];
    doorway(&directory, 1, &args);
    let mut page = Page::new();
    page.resize(1280, 900);
    page.open_file(&directory.path().join("dead.html"));
    let film: Value = serde_json::from_str(&page.text("#film")).expect("JSON");
    let loop_from = film["trace"]["loop_from"].as_u64().expect("a loop");
    assert!(page.text(&format!(".step[data-step='{}'] .number", loop_from + 1)).contains('↻'));
    let loops = page.eval("document.querySelectorAll('.step.loop').length");
    assert_eq!(loops, json!(film["frames"].as_array().expect("frames").len() as u64 - loop_from));
    let crashed = film["trace"]["crashed"][0].as_u64().expect("a crash");
    assert!(page.text(&format!("tr[data-process='{crashed}']")).contains("crashed"));
    assert_eq!(page.text(".cross"), "✕");
    let mut seen = Vec::new();
    for (model, column) in [("cc", 0), ("dsm", 1)] {
        let frames = film["frames"].as_array().expect("frames").iter();
        let references: Vec<bool> = frames.map(|frame| frame[model] == json!(1)).collect();
        let lit = page.eval(&format!(
            "[...document.querySelectorAll('.step')].slice(1).map((s) => s.querySelectorAll('.cost')[{column}].classList.contains('lit'))"
        ));
        assert_eq!(lit, json!(references), "{model}");
        seen.extend(references);
    }
    assert!(seen.contains(&true) && seen.contains(&false));
    page.is_well();
}

/// A schedule of 5 000 steps, as a page.
fn long(directory: &TempDir) -> PathBuf {
    let passages: String =
        (0..625).map(|_| "0*4\n1*4\n0 until remainder\n1 until remainder\n").collect();
    fs::write(directory.path().join("long.script"), passages).expect("written");
    let args = [
        "lab",
        "check",
        "bakery",
        "--script",
        "long.script",
        "--property",
        "fcfs",
        "--trace",
        "long.html",
    ];
    doorway(directory, 3, &args);
    directory.path().join("long.html")
}

#[test]
fn a_long_trace_opens_and_scrolls() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = long(&directory);
    let mut page = Page::new();
    for (width, height) in [(1280, 900), (390, 844)] {
        page.resize(width, height);
        page.open_file(&file);
        let steps = page.eval("run.length").as_u64().expect("a number");
        assert!(steps >= 5_000, "{steps}");
        // What is out of sight is not drawn; that is what makes it fast. How fast is printed, not
        // judged.
        assert!(page.eval("document.querySelectorAll('.step').length").as_u64() < Some(100));
        let opened = page.eval("Math.round(performance.now())");
        println!("{steps} steps at {width} px: there after {opened} ms");
        page.press("End");
        assert_eq!(page.text(".step.current .number"), steps.to_string());
        page.press("PageUp");
        assert_eq!(page.text(".step.current .number"), (steps - 10).to_string());
        page.eval("document.getElementById('scroll').scrollTop = 2500 * 24");
        page.wait_for("document.querySelector('[data-step=\"2500\"]')");
        // A little up and down, where most rows stay: each is there once, in order.
        for top in [2490, 2512, 2480, 2499] {
            page.eval(&format!("document.getElementById('scroll').scrollTop = {top} * 24"));
            page.wait_for(&format!(
                "document.getElementById('rows').firstChild.dataset.step == {top} - 10"
            ));
            let steps = page
                .eval("[...document.querySelectorAll('.step')].map((s) => Number(s.dataset.step))");
            let steps: Vec<u64> = serde_json::from_value(steps).expect("numbers");
            assert!(steps.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{steps:?}");
        }
        assert!(page.eval("document.querySelectorAll('.step').length").as_u64() < Some(100));
        page.is_well();
    }
}

#[test]
fn on_paper_there_is_every_step() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = long(&directory);
    let mut page = Page::new();
    page.open_file(&file);
    page.eval("dispatchEvent(new Event('beforeprint'))");
    assert_eq!(
        page.eval("document.querySelectorAll('.step').length === run.length + 1"),
        json!(true)
    );
    page.eval("dispatchEvent(new Event('afterprint'))");
    assert!(page.eval("document.querySelectorAll('.step').length").as_u64() < Some(100));
}

/// Whatever is in the page instead of a film, it says so.
#[test]
fn damaged_and_foreign_data_give_a_message() {
    let directory = tempfile::tempdir().expect("a directory");
    let args = [
        "lab",
        "check",
        "bakery",
        "--crashes",
        "1",
        "--property",
        "deadlock-freedom",
        "--trace",
        "dead.html",
    ];
    doorway(&directory, 1, &args);
    let whole = fs::read_to_string(directory.path().join("dead.html")).expect("a page");
    let begin = whole.find("id=\"film\">").expect("a film") + "id=\"film\">".len();
    let end = begin + whole[begin..].find("</script>").expect("its end");
    let film: Value = serde_json::from_str(&whole[begin..end]).expect("JSON");
    let changed = |change: fn(&mut Value)| {
        let mut film = film.clone();
        change(&mut film);
        film.to_string()
    };
    let damaged = [
        String::new(),
        "{".into(),
        whole[begin..begin + (end - begin) / 2].into(),
        "null".into(),
        "[]".into(),
        "3".into(),
        "\"doorway-film\"".into(),
        "{\"format\": \"doorway-trace\", \"version\": 1}".into(),
        changed(|film| film["version"] = json!(2)),
        changed(|film| film["trace"] = Value::Null),
        changed(|film| film["trace"]["n"] = json!(1)),
        changed(|film| film["trace"]["n"] = json!(1e300)),
        changed(|film| film["trace"]["steps"] = json!([])),
        changed(|film| film["trace"]["steps"][2]["region"] = json!("luck")),
        changed(|film| film["trace"]["steps"][2]["process"] = json!(-1)),
        changed(|film| film["trace"]["loop_from"] = json!(99)),
        changed(|film| film["frames"][1] = Value::Null),
        changed(|film| film["frames"][1]["register"] = json!(99)),
        changed(|film| film["frames"][1]["value"] = json!({})),
        changed(|film| film["registers"][0] = json!("x")),
        changed(|film| film["pseudocode"] = json!([{}])),
        changed(|film| film["crashes"] = json!([{ "process": 7, "after": 0 }])),
    ];
    let mut page = Page::new();
    let file = directory.path().join("damaged.html");
    for data in damaged {
        fs::write(&file, format!("{}{data}{}", &whole[..begin], &whole[end..])).expect("written");
        page.open_file(&file);
        let message = page.text("#message:not([hidden])");
        assert!(message.contains("doorway lab replay FILE --html OUT"), "{data}: {message}");
        assert_eq!(page.eval("main.hidden"), json!(true), "{data}");
        page.is_well();
    }
    // What is whole is shown, and texts are only texts.
    let text =
        changed(|film| film["trace"]["shows"] = json!("</script><img src=x onerror=alert(1)>"));
    let text = text.replace('<', "\\u003c");
    fs::write(&file, format!("{}{text}{}", &whole[..begin], &whole[end..])).expect("written");
    page.open_file(&file);
    assert!(page.text("#shows").contains("<img src=x"));
    assert_eq!(page.eval("document.querySelectorAll('img').length"), json!(0));
    page.is_well();
}
