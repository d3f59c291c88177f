//! `doorway lab list`.

use super::{ALGORITHMS, has_fields, json, prints, texts};

#[test]
fn every_algorithm_is_listed_with_all_there_is_to_say() {
    let list = json(0, &["lab", "list", "--json"]);
    let list = list.as_array().expect("an array");
    let names: Vec<_> = list.iter().map(|entry| entry["name"].as_str().expect("a name")).collect();
    ALGORITHMS
        .iter()
        .for_each(|name| assert!(names.contains(name), "{name} is not among {names:?}"));
    for entry in list {
        has_fields(
            entry,
            &[
                "name",
                "problem",
                "paper",
                "figure",
                "primitives",
                "claims",
                "rmr",
                "bounded",
                "mutants",
            ],
        );
        has_fields(&entry["rmr"], &["cc", "dsm"]);
        let problem = entry["problem"].as_str().expect("a problem");
        assert!(["mutex", "k-exclusion", "group"].contains(&problem), "{problem}");
        assert!(
            !texts(&entry["primitives"]).is_empty() && !texts(&entry["claims"]).is_empty(),
            "{entry}"
        );
        assert!(entry["bounded"].is_boolean() && entry["rmr"]["cc"].is_string(), "{entry}");
        let mutants = texts(&entry["mutants"]);
        assert!(!mutants.is_empty(), "{entry}");
    }
}

/// An algorithm with several kinds of timestamps is listed once, with all of them.
#[test]
fn kinds_of_timestamps_are_listed_in_one_entry() {
    let list = json(0, &["lab", "list", "--json"]);
    for entry in list.as_array().expect("an array") {
        let same = list
            .as_array()
            .expect("an array")
            .iter()
            .filter(|other| other["name"] == entry["name"]);
        assert_eq!(same.count(), 1, "{entry}");
        if entry["name"] == "timestamp-bakery" {
            assert_eq!(texts(&entry["timestamps"]), ["abstract", "bounded"]);
        } else {
            assert!(entry["timestamps"].is_null(), "{entry}");
        }
    }
}

#[test]
fn the_text_names_them_as_well() {
    let text = prints(0, &["lab", "list"]);
    ALGORITHMS
        .iter()
        .for_each(|name| assert!(text.contains(&format!("\n{name}\n")), "{name}\n{text}"));
}

/// What is claimed can be asked for, and with nothing asked for it is what is decided.
#[test]
fn claims_are_what_check_decides() {
    for entry in json(0, &["lab", "list", "--json"]).as_array().expect("an array") {
        let name = entry["name"].as_str().expect("a name");
        let report = json(0, &["lab", "check", name, "-n", "2", "--json"]);
        let decided: Vec<_> =
            report["properties"].as_array().expect("an array").iter().map(|p| &p["name"]).collect();
        assert_eq!(
            decided,
            entry["claims"].as_array().expect("an array").iter().collect::<Vec<_>>(),
            "{name}"
        );
        let mut args = vec!["lab", "check", name, "-n", "2", "--json"];
        texts(&entry["claims"]).into_iter().for_each(|claim| args.extend(["--property", claim]));
        assert_eq!(json(0, &args)["states"], report["states"], "{name}");
    }
}
