//! Prints a trace.

use doorway_lab::trace::Trace;

use crate::table::columns;

/// Formats the steps of a trace with the paper's line numbers; empty if there are none.
pub(crate) fn steps(trace: &Trace) -> String {
    if trace.steps.is_empty() {
        return String::new();
    }
    let mut rows =
        vec![["step", "process", "line", "access", "then in"].map(String::from).to_vec()];
    for (i, step) in trace.steps.iter().enumerate() {
        // Other choices are visible in the access already.
        let request = step.choice.as_ref().filter(|choice| choice.starts_with("request"));
        let request = request.map_or(String::new(), |request| format!("{request}: "));
        rows.push(vec![
            (i + 1).to_string(),
            step.process.to_string(),
            step.line.to_string(),
            format!("{request}{}", step.access),
            step.region.clone(),
        ]);
    }
    let table = columns(&rows);
    let Some(from) = trace.loop_from else { return table };
    let crashed = match &trace.crashed[..] {
        [] => String::new(),
        [one] => format!(" ({one} has crashed)"),
        several => format!(" ({several:?} have crashed)"),
    };
    // A line of its own, across the columns: within a column it would widen that column.
    let mut lines: Vec<&str> = table.lines().collect();
    let again = format!("  ↻ from here on, again and again{crashed}:");
    lines.insert((from + 1).min(lines.len()), &again);
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(steps: &str) -> Trace {
        let text = format!(
            r#"{{"format": "doorway-trace", "version": 1, "algorithm": "bakery", "n": 2, "k": 1, "sessions": 0,
                "mutant": null, "registers": "atomic", "property": null, "shows": "", "crashed": [],
                "loop_from": null, "steps": [{steps}]}}"#
        );
        Trace::parse(&text).expect("it is a trace")
    }

    /// A register may hold too much before the first step.
    #[test]
    fn a_run_of_no_steps_has_no_table() {
        assert_eq!(steps(&trace("")), "");
        let one =
            r#"{"process": 0, "line": 3, "access": "Doorway[0] := true", "region": "doorway"}"#;
        assert_eq!(steps(&trace(one)).lines().count(), 2);
    }
}
