//! A trace, printed.

use doorway_lab::trace::Trace;

use crate::table::columns;

/// The steps of a trace with the paper's line numbers.
pub(crate) fn steps(trace: &Trace) -> String {
    let mut rows = vec![["step", "process", "line", "access", "then in"].map(String::from).to_vec()];
    for (i, step) in trace.steps.iter().enumerate() {
        // What else is chosen is in the access already.
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
    // A line of its own, across the columns: in one of them it would push the others aside.
    let mut lines: Vec<&str> = table.lines().collect();
    let again = format!("  ↻ from here on, again and again{crashed}:");
    lines.insert((from + 1).min(lines.len()), &again);
    lines.join("\n") + "\n"
}
