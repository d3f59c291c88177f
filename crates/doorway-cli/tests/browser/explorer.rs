//! The page in which somebody makes up a schedule.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

use doorway_lab::trace::Trace;
use serde_json::json;

use super::chromium::Page;

/// An explorer, which ends with the test.
struct Explorer {
    child: Child,
    address: String,
}

impl Explorer {
    fn of(args: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_doorway"));
        command.args(["lab", "explore"]).args(args).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("doorway");
        let mut address = String::new();
        BufReader::new(child.stdout.take().expect("a pipe"))
            .read_line(&mut address)
            .expect("an address");
        Self { child, address: address.trim().to_owned() }
    }
}

impl Drop for Explorer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Clicks on a button of a process, and waits until so many steps have been made.
fn act(page: &mut Page, p: usize, button: &str, steps: usize) {
    page.click(&format!(".card[data-process='{p}'] {button}"));
    page.wait_for(&format!("position.textContent === 'step {steps} of {steps}'"));
}

fn section(page: &mut Page, p: usize) -> String {
    page.text(&format!(".card[data-process='{p}'] .chip"))
}

/// Process 0 goes in, and process 1 is kept out for as long as it stays.
#[test]
fn the_second_process_is_refused() {
    let explorer = Explorer::of(&["bakery", "-n", "2"]);
    let mut page = Page::new();
    for (width, height) in [(1280, 900), (390, 844)] {
        page.resize(width, height);
        page.open(&explorer.address);
        let mut steps = 0;
        while section(&mut page, 0) != "critical" {
            assert!(steps < 20, "alone, it enters");
            steps += 1;
            act(&mut page, 0, ".move", steps);
        }
        assert!(page.text("#about").contains("n = 2, k = 1"));
        assert_eq!(section(&mut page, 1), "remainder");
        for _ in 0..10 {
            steps += 1;
            act(&mut page, 1, ".move", steps);
        }
        assert_eq!(section(&mut page, 1), "waiting");
        assert!(page.text(".card[data-process='1'] .alone").contains("never enters"));
        assert_eq!(page.text("tr[data-process='0'] .chip"), "critical");
        assert_eq!(page.text("tr[data-process='1'] .chip"), "waiting");
        // Back to before process 1 came, and it is as it was.
        for back in 1..=10 {
            page.press("ArrowLeft");
            assert_eq!(page.text("#position"), format!("step {} of {steps}", steps - back));
        }
        page.wait_for(
            "document.querySelector('.card[data-process=\"1\"] .chip').textContent === 'remainder'",
        );
        // Another way to go on: what followed is forgotten.
        steps -= 9;
        act(&mut page, 0, ".move", steps);
        assert_eq!(section(&mut page, 0), "remainder");
        steps += 1;
        page.call("Input.dispatchKeyEvent", json!({ "type": "keyDown", "key": "1", "text": "1" }));
        page.wait_for(&format!("position.textContent === 'step {steps} of {steps}'"));
        assert_eq!(section(&mut page, 1), "doorway");
        // Who has crashed does not move.
        page.click(".card[data-process='1'] .crash");
        page.wait_for(
            "document.querySelector('.card[data-process=\"1\"]').textContent.includes('crashed')",
        );
        assert_eq!(
            page.eval("document.querySelectorAll('.card[data-process=\"1\"] button').length"),
            json!(0)
        );
        // Only process 0 is left for the scheduler, and it is kept out by the one that crashed.
        page.eval("document.getElementById('steps').value = 30");
        page.click("#go");
        steps += 30;
        page.wait_for(&format!("position.textContent === 'step {steps} of {steps}'"));
        assert_eq!(section(&mut page, 0), "waiting");
        // What is saved can be replayed.
        let saved = page.eval("traceText()").as_str().expect("a trace").to_owned();
        let trace = Trace::parse(&saved).expect("a trace");
        assert_eq!(trace.replay().expect("it replays").events.len(), steps);
        assert_eq!(trace.crashed, [1]);
        assert_eq!(
            page.eval("scriptText()").as_str().map(|script| script.lines().count()),
            Some(steps)
        );
        page.is_well();
    }
}

#[test]
fn sessions_are_asked_for() {
    let explorer = Explorer::of(&["group-bakery", "-n", "3", "--sessions", "2"]);
    let mut page = Page::new();
    page.resize(390, 844);
    page.open(&explorer.address);
    let labels =
        page.eval("[...document.querySelectorAll('.card[data-process=\"2\"] .move')].map((b) => b.textContent)");
    assert_eq!(labels, json!(["session 1", "session 2"]));
    act(&mut page, 2, ".move:nth-child(2)", 1);
    assert!(page.text("#now .what").contains("process 2, line 3"), "{}", page.text("#now .what"));
    assert_eq!(page.eval("scriptText()"), json!("2 asks 2\n"));
    page.is_well();
}

/// When the explorer has ended, the page says so and keeps what it has.
#[test]
fn the_page_outlives_the_explorer() {
    let explorer = Explorer::of(&["bakery"]);
    let mut page = Page::new();
    page.open(&explorer.address);
    act(&mut page, 0, ".move", 1);
    drop(explorer);
    page.click(".card[data-process='0'] .move");
    page.wait_for("!told.hidden && told.textContent.includes('doorway lab explore')");
    assert_eq!(page.text("#position"), "step 1 of 1");
}
