//! A trace, printed.

use doorway_lab::trace::Trace;

use crate::table::columns;

/// The steps of a trace with the paper's line numbers.
pub(crate) fn steps(trace: &Trace) -> String {
    let mut rows = vec![["step", "process", "line", "access", "then in"].map(String::from).to_vec()];
    for (i, step) in trace.steps.iter().enumerate() {
        if trace.loop_from == Some(i) {
            let crashed = match &trace.crashed[..] {
                [] => String::new(),
                crashed => format!(" ({crashed:?} take no further step)"),
            };
            rows.push(vec!["↻".into(), format!("from here on, for ever{crashed}:")]);
        }
        let choice = step.choice.as_ref().map_or(String::new(), |choice| format!("{choice}: "));
        rows.push(vec![
            (i + 1).to_string(),
            step.process.to_string(),
            step.line.to_string(),
            format!("{choice}{}", step.access),
            step.region.clone(),
        ]);
    }
    columns(&rows)
}
