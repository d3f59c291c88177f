//! `doorway lab list`.

use std::process::ExitCode;

use serde_json::json;

use super::{listed, timestamps_of};
use crate::{args::lab::List, error::Failure, output::print, table::columns};

/// Runs the command.
pub(crate) fn run(args: &List) -> Result<ExitCode, Failure> {
    let text = if args.json { as_json() } else { as_text() };
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn as_json() -> String {
    let all: Vec<_> = listed()
        .map(|entrant| {
            let claims = &entrant.claims;
            let mut object = json!({
                "name": entrant.name,
                "problem": claims.problem.name(),
                "paper": claims.paper,
                "figure": claims.figure,
                "primitives": claims.primitives.iter().map(|p| p.name()).collect::<Vec<_>>(),
                "claims": claims.properties.iter().map(|p| p.name()).collect::<Vec<_>>(),
                "refuted": claims.refuted.iter().map(|(p, _)| p.name()).collect::<Vec<_>>(),
                "registers": claims.registers.name(),
                "rmr": { "cc": claims.rmr.cc, "dsm": claims.rmr.dsm },
                "bounded": claims.bound.is_some(),
                "mutants": claims.mutants.iter().map(|m| m.name).collect::<Vec<_>>(),
            });
            if entrant.variant.is_some() {
                object["timestamps"] = json!(timestamps_of(entrant));
            }
            object
        })
        .collect();
    format!("{:#}\n", json!(all))
}

fn as_text() -> String {
    let header =
        ["name", "problem", "uses", "registers", "RMR in CC", "in DSM", "bounded", "figure"];
    let mut rows = vec![header.map(String::from).to_vec()];
    for entrant in listed() {
        let claims = &entrant.claims;
        rows.push(vec![
            entrant.name.into(),
            claims.problem.name().into(),
            claims.primitives.iter().map(|p| p.name()).collect::<Vec<_>>().join(", "),
            claims.registers.name().into(),
            claims.rmr.cc.into(),
            claims.rmr.dsm.into(),
            if claims.bound.is_some() { "yes" } else { "no" }.into(),
            format!("{} ({})", claims.figure, claims.paper),
        ]);
    }
    let mut text = columns(&rows);
    for entrant in listed() {
        text.push_str(&format!("\n{}\n", entrant.name));
        let claims = &entrant.claims;
        let names =
            |list: Vec<&str>| if list.is_empty() { "–".to_string() } else { list.join(", ") };
        let mut details = vec![
            vec!["claims".into(), names(claims.properties.iter().map(|p| p.name()).collect())],
            vec![
                "does not have".into(),
                names(claims.refuted.iter().map(|(p, _)| p.name()).collect()),
            ],
            vec!["mutants".into(), names(claims.mutants.iter().map(|m| m.name).collect())],
        ];
        if entrant.variant.is_some() {
            details.push(vec!["timestamps".into(), names(timestamps_of(entrant))]);
        }
        text.push_str(&columns(&details));
    }
    text
}
