//! `doorway lab rmr`.

use super::{ALGORITHMS, has_fields, json, prints, refused, texts};
use serde_json::{Value, json as value};

/// What is said of the algorithm of this name.
fn of<'a>(report: &'a Value, name: &str) -> &'a Value {
    let all = report.as_array().expect("an array");
    all.iter()
        .find(|entry| entry["algorithm"] == name)
        .unwrap_or_else(|| panic!("no {name} in {report}"))
}

#[test]
fn every_algorithm_is_measured_and_every_field_is_there() {
    let report = json(0, &["lab", "rmr", "--up-to", "8", "--passages", "2", "--json"]);
    for name in ALGORITHMS {
        let entry = of(&report, name);
        let slots = if entry["problem"] == "k-exclusion" { 2 } else { 1 };
        has_fields(
            entry,
            &[
                "algorithm",
                "variant",
                "problem",
                "k",
                "passages",
                "seed",
                "paper",
                "curves",
                "refused",
                "waiting",
                "exact",
            ],
        );
        let said = (&entry["k"], &entry["passages"], &entry["exact"]);
        assert_eq!(said, (&value!(slots), &value!(2), &value!([])), "{name}");
        for curve in entry["curves"].as_array().expect("an array") {
            let points = curve["points"].as_array().expect("an array");
            assert_eq!(points.iter().map(|p| &p["n"]).collect::<Vec<_>>(), [2, 4, 8], "{name}");
            for point in points {
                has_fields(point, &["n", "k", "passages", "steps", "complete", "fitted", "rmr"]);
                let cc = &point["rmr"]["cc"];
                assert!(
                    cc["mean"].as_f64() <= cc["max"].as_f64() && cc["mean"].as_f64() > Some(0.0),
                    "{point}"
                );
            }
            assert_eq!(
                curve["fits"]["cc"]["max"],
                Value::Null,
                "three sizes are too few for a fit"
            );
        }
    }
}

/// The shapes that the papers prove, next to their claims; and what has no bound is not fitted.
#[test]
fn fits_stand_next_to_claims() {
    let args = ["lab", "rmr", "bakery", "yang-anderson", "--scheduler", "random", "--json"];
    let report = json(0, &args);
    let (bakery, tournament) = (of(&report, "bakery"), of(&report, "yang-anderson"));
    let fits = |entry: &Value| entry["curves"][0]["fits"].clone();
    let linear = &fits(bakery)["cc"]["max"];
    assert_eq!(linear["class"], "linear");
    has_fields(&linear["n"], &["slope", "intercept", "r2"]);
    assert!(
        linear["n"]["r2"].as_f64() > Some(0.99) && linear["n"]["slope"].as_f64() > Some(3.0),
        "{linear}"
    );
    assert_eq!(
        (&fits(bakery)["dsm"]["max"], &bakery["paper"]["dsm"]),
        (&Value::Null, &value!("unbounded"))
    );
    assert_eq!(fits(tournament)["dsm"]["max"]["class"], "logarithmic");
    let per_look = |entry: &Value| entry["waiting"]["per_look"].clone();
    assert_eq!(per_look(bakery), value!({ "cc": 0.0, "dsm": 1.0 }));
    assert_eq!(per_look(tournament), value!({ "cc": 0.0, "dsm": 0.0 }));
    let text = prints(0, &["lab", "rmr", "bakery", "--scheduler", "pct"]);
    let row = |begins: &str| {
        text.lines().find(|line| line.starts_with(begins)).unwrap_or_else(|| panic!("{text}"))
    };
    assert!(
        row("  CC worst  pct").contains("linear") && row("  CC worst  pct").ends_with("Θ(n)"),
        "{text}"
    );
    assert!(row("  DSM       all").contains("unbounded"), "{text}");
    let waits: Vec<_> = row("  DSM     ").split_whitespace().collect();
    assert_eq!(waits.first(), Some(&"DSM"), "{text}");
    assert!(text.lines().any(|line| line.starts_with("  DSM") && line.ends_with("1.00")), "{text}");
}

#[test]
fn the_papers_own_schedule_is_run_where_there_is_one() {
    let report = json(0, &["lab", "rmr", "burns-lamport", "--up-to", "16", "--json"]);
    let names: Vec<_> = report[0]["curves"]
        .as_array()
        .expect("an array")
        .iter()
        .map(|c| c["scheduler"].clone())
        .collect();
    assert_eq!(texts(&value!(names)), ["random", "pct", "round-robin", "002-section-4"]);
    let blocked = &report[0]["curves"][3];
    assert_eq!(blocked["fits"]["cc"]["max"]["class"], "quadratic");
}

#[test]
fn exact_maxima_are_shown_with_how_far_they_reach() {
    let args = ["lab", "rmr", "bakery", "--up-to", "2", "--scheduler", "random", "--exact"];
    let report = json(0, &[&args[..], &["--json"]].concat());
    let exact = &report[0]["exact"];
    for (at, n, most) in [(0, 2, 9), (1, 3, 13)] {
        let entry = &exact[at];
        assert_eq!(
            (&entry["n"], &entry["cc"]),
            (&value!(n), &value!({ "bound": "exact", "most": most })),
            "{entry}"
        );
        assert_eq!(entry["dsm"], value!({ "bound": "unbounded", "most": null }));
        assert!(
            entry["states"].as_u64() > Some(100) && entry["scope"].as_str().is_some(),
            "{entry}"
        );
    }
    let text = prints(0, &args);
    assert!(
        text.contains("  n = 2, k = 1            9   unbounded  all of up to 302 states"),
        "{text}"
    );
    let cut = prints(0, &[&args[..], &["--max-states", "100"]].concat());
    assert!(
        cut.contains("n = 3, k = 1            unknown  unknown")
            && cut.contains("not all, more than"),
        "{cut}"
    );
}

#[test]
fn a_measurement_follows_from_its_seed() {
    let with = |seed| prints(0, &["lab", "rmr", "bakery", "--up-to", "8", "--seed", seed]);
    assert_eq!(with("3"), with("3"));
    assert_ne!(with("3"), with("4"));
}

/// Adversaries are not among the schedulers that are run without being asked for, and passages may
/// be shared out.
#[test]
fn adversaries_are_measured_if_asked_for() {
    let args = ["lab", "rmr", "yang-anderson", "--up-to", "16", "--total", "100"];
    let adversaries =
        ["--scheduler", "locality-aware:hold-release", "--scheduler", "strong-adaptive:victim"];
    let report = json(0, &[&args[..], &adversaries, &["--json"]].concat());
    assert_eq!((&report[0]["passages"], &report[0]["total"]), (&Value::Null, &value!(100)));
    for (curve, name) in report[0]["curves"].as_array().expect("an array").iter().zip([1, 3]) {
        assert_eq!(curve["scheduler"], adversaries[name]);
        let passages: Vec<_> =
            curve["points"].as_array().expect("an array").iter().map(|p| &p["passages"]).collect();
        assert_eq!(passages, [100, 100, 104, 112], "as many of each process");
    }
    let text = prints(0, &[&args[..], &["--scheduler", "oblivious"]].concat());
    assert!(
        text.starts_with("yang-anderson: k = 1, 100 passages or a few more, seed 0\n"),
        "{text}"
    );
}

#[test]
fn a_run_that_is_cut_off_says_so() {
    let text = prints(
        0,
        &["lab", "rmr", "bakery", "--up-to", "4", "--scheduler", "random", "--max-steps", "100"],
    );
    assert!(text.contains("100, cut off"), "{text}");
}

/// The places of a curve, and what its marks say.
fn drawn(svg: &str) -> (Vec<usize>, Vec<&str>) {
    let between = |line: &'static str, from: &'static str, to: char| {
        let lines = svg.lines().filter(move |text| text.starts_with(line));
        lines.filter_map(move |text| Some(text.split_once(from)?.1.split_once(to)?.0))
    };
    let places =
        between("<polyline ", "points=\"", '"').map(|points| points.split_whitespace().count());
    (places.collect(), between("<polygon ", "<title>", '<').collect())
}

/// A curve for each algorithm and scheduler, a point for each n, and the numbers are those of the
/// JSON.
#[test]
fn what_was_measured_is_drawn() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("mean.svg");
    let file = path.to_str().expect("a name");
    let args = [
        "lab",
        "rmr",
        "bakery",
        "mcs",
        "--up-to",
        "16",
        "--up-to",
        "bakery=4",
        "--scheduler",
        "oblivious",
    ];
    let more = ["--scheduler", "mcs=locality-aware", "--total", "50", "--plot", file];
    let report = json(0, &[&args[..], &more, &["--json"]].concat());
    let svg = std::fs::read_to_string(&path).expect("it is written");
    let (places, says) = drawn(&svg);
    assert_eq!(places, [2, 4, 4], "{svg}");
    let mut expected = Vec::new();
    for entry in report.as_array().expect("an array") {
        for curve in entry["curves"].as_array().expect("an array") {
            let name = format!(
                "{}, {}",
                texts(&value!([entry["algorithm"]]))[0],
                texts(&value!([curve["scheduler"]]))[0]
            );
            for point in curve["points"].as_array().expect("an array") {
                let mean = point["rmr"]["dsm"]["mean"].as_f64().expect("a number");
                expected.push(format!("{name}, n = {}: {mean:.2}", point["n"]));
            }
        }
    }
    assert_eq!(says, expected);
    for text in
        ["references per passage in DSM", "50 passages or a few more", "locality-aware, oblivious"]
    {
        assert!(svg.contains(text), "{text}: {svg}");
    }
    let text = prints(0, &[&args[..], &more].concat());
    let row = text.lines().last().expect("a line").split_whitespace().collect::<Vec<_>>();
    let last = expected.last().and_then(|text| text.rsplit(' ').next()).expect("a number");
    assert_eq!(
        (row[..2].to_vec(), row.last()),
        (vec!["mcs", "locality-aware"], Some(&last)),
        "{text}"
    );
}

#[test]
fn a_run_that_was_cut_off_is_not_drawn() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("mean.SVG");
    let file = path.to_str().expect("a name");
    let cut = ["--up-to", "8", "--scheduler", "random", "--max-steps", "300", "--plot", file];
    let report = json(0, &[&["lab", "rmr", "bakery", "--json"][..], &cut].concat());
    let points = report[0]["curves"][0]["points"].as_array().expect("an array");
    let complete = points.iter().filter(|point| point["complete"] == true).count();
    assert!((1..points.len()).contains(&complete), "{report}");
    assert_eq!(drawn(&std::fs::read_to_string(&path).expect("it is written")).0, [complete]);
}

/// Before anything is measured.
#[test]
fn a_figure_that_cannot_be_written_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = |name: &str| dir.path().join(name).to_str().expect("a name").to_owned();
    std::fs::create_dir(at("dir.svg")).expect("a directory");
    for (path, complaint) in [
        (at("mean.png"), "a figure is an SVG file; try --plot mean.svg"),
        (at("svg"), "a figure is an SVG file"),
        (at("none/mean.svg"), "cannot write"),
        (at("dir.svg"), "cannot write"),
    ] {
        let line = refused(&["lab", "rmr", "bakery", "--plot", &path]);
        assert!(line.contains(complaint), "{path}: {line}");
    }
    let line = refused(&["lab", "rmr", "--plot", &at("all.svg")]);
    assert!(line.contains("name 8 algorithms or fewer"), "{line}");
    assert!(!dir.path().join("all.svg").exists());
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (args, complaint) in [
        (&["backery"][..], "there are bakery, "),
        (&["bakery", "backery"], "there are bakery, "),
        (&["--up-to", "1"], "try --up-to 64"),
        (&["--up-to", "0"], "try --up-to 64"),
        (&["--up-to", "4097"], "at most 4096 processes"),
        (&["--up-to", "many"], "'many'"),
        (&["bakery", "--up-to", "bakery=many"], "'bakery=many'"),
        (&["bakery", "--up-to", "bakery=1"], "try --up-to 64"),
        (&["bakery", "--up-to", "mcs=8"], "mcs is not measured here"),
        (&["bakery", "--scheduler", "mcs=random"], "mcs is not measured here"),
        (&["bakery", "--scheduler", "bakery=luck"], "there is no scheduler \"luck\" for bakery"),
        (&["--passages", "0"], "try --passages 1"),
        (&["--total", "0"], "try --total 100000"),
        (&["--total", "10", "--passages", "10"], "--passages"),
        (&["--scheduler", "oblivious:luck"], "oblivious, oblivious:bursts, "),
        (&["--scheduler", "luck"], "there is no scheduler \"luck\" for bakery; there are random, "),
        (
            &["bakery", "--scheduler", "002-section-4"],
            "there is no scheduler \"002-section-4\" for bakery",
        ),
        (&["--scheduler", "script:file"], "a script is for one n"),
        (&["-k", "0"], "try -k 1"),
        (&["-k", "64"], "nobody would have to wait; try -k 32"),
        (&["-k", "18446744073709551615"], "nobody would have to wait; try -k 32"),
        (&["bakery", "-k", "2"], "bakery has one slot; leave -k out"),
        (&["--seed", "-1"], "'-1'"),
        (&["--max-states", "x", "--exact"], "'x'"),
    ] {
        let line = refused(&[&["lab", "rmr"], args].concat());
        assert!(line.contains(complaint), "{args:?}: {line}");
    }
}
