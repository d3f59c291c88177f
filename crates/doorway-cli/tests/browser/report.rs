//! The page of a report.

use std::{fs, process::Command};

use serde_json::json;

use super::chromium::Page;

#[test]
fn a_report_is_readable_on_wide_and_narrow_screens_and_in_the_dark() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut report = Command::new(env!("CARGO_BIN_EXE_doorway"));
    report.args(["lab", "report", "k-bakery", "bakery", "--quick", "-o"]).arg(directory.path());
    let ran = report.output().expect("doorway");
    assert_eq!(ran.status.code(), Some(0), "{}", String::from_utf8_lossy(&ran.stderr));
    let file = directory.path().join("index.html");
    // All algorithms together are about ten times as much, and are to stay under 3 MB.
    let bytes = fs::metadata(&file).expect("a page").len();
    println!("two algorithms: {bytes} bytes");
    assert!(bytes < 300_000, "{bytes} bytes");
    let mut page = Page::new();
    for dark in [false, true] {
        let scheme = if dark { "dark" } else { "light" };
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        page.call("Emulation.setEmulatedMedia", json!({ "features": features }));
        for (width, height) in [(1280, 900), (390, 844)] {
            page.resize(width, height);
            page.open_file(&file);
            page.is_well();
            // Text and ground are apart, in tables and in figures.
            for (element, property) in [("body", "color"), ("figure text", "fill"), ("td", "color")]
            {
                let light = page.eval(&format!(
                    "getComputedStyle(document.querySelector('{element}')).{property}.match(/\\d+/g).slice(0, 3).reduce((a, b) => a + Number(b), 0)"
                ));
                assert_eq!(light.as_u64() > Some(384), dark, "{element} at {width} px: {light}");
            }
            let ground = page.eval(
                "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).reduce((a, b) => a + Number(b), 0)",
            );
            assert_eq!(ground.as_u64() < Some(384), dark, "{ground}");
            // Two overviews and two algorithms, in two models on two kinds of axes.
            assert_eq!(page.eval("document.querySelectorAll('figure svg').length"), json!(16));
            let broken = page.eval("[...document.querySelectorAll('figure svg polyline')].filter((line) => !/^[\\d., ]+$/.test(line.getAttribute('points'))).length");
            assert_eq!(broken, json!(0));
        }
    }
    // From a cell to the command, and from the violation to its run.
    page.resize(1280, 900);
    page.open_file(&file);
    let fife = "(() => {
        const row = [...document.querySelectorAll('.all tr')].find((row) => row.textContent.startsWith('k-bakery'));
        const names = [...row.closest('table').rows[0].cells].map((cell) => cell.textContent);
        return row.cells[names.indexOf('fife')];
    })()";
    assert!(
        page.eval(&format!("{fife}.textContent"))
            .as_str()
            .is_some_and(|text| text.starts_with("violated n = 4, k = 2, 1 passage each"))
    );
    page.eval(&format!("{fife}.querySelector('.at').click()"));
    page.wait_for("document.querySelector('tr:target')");
    assert!(
        page.text("tr:target code")
            .starts_with("doorway lab check k-bakery -n 4 -k 2 --passages 1")
    );
    let trace = page
        .eval("document.querySelector('tr:target a.no').href")
        .as_str()
        .expect("a link")
        .to_owned();
    page.is_well();
    page.open(&trace);
    let shows = page.text("#shows");
    assert!(
        shows.starts_with("fife is violated: process ")
            && shows.contains(" has entered before process "),
        "{shows}"
    );
    page.is_well();
}
