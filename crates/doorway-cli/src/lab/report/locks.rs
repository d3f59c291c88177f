//! Measured locks, algorithms measured natively, and how many values the shared memory takes.

use serde_json::Value;

use super::{Page, part::Part, plan::Study, verdicts::none};
use crate::{
    bench::{duration, number},
    chart::escaped,
    table::grouped,
};

/// Formats the nanoseconds per passage of an algorithm, natively.
pub(super) fn native(page: &Page, study: &Study) -> String {
    let Some(part) = page.parts.get(&page.plan.native.command) else { return none() };
    let name = study
        .entrant
        .variant
        .map_or(study.entrant.name.into(), |v| format!("{} ({v})", study.entrant.name));
    let row = part.result.as_array().and_then(|rows| rows.iter().find(|row| row["lock"] == *name));
    let Some(row) = row else { return none() };
    let time = duration(1e9 / float(row, "ops_per_second"));
    let ratio = number(1.0 / float(row, "ratio"));
    let anchor = Part::stem(&part.command);
    format!(
        r##"{time}<br>{ratio} × std <a class="at" href="#{anchor}">{}</a>"##,
        escaped(row["how"].as_str().unwrap_or("?"))
    )
}

/// Reads a number. Infinite and missing numbers are null.
fn float(row: &Value, name: &str) -> f64 {
    row[name].as_f64().unwrap_or(f64::NAN)
}

/// Returns the tables of one bench, one for each setting.
pub(super) fn bench(part: &Part) -> String {
    let rows = part.result.as_array().map_or(&[][..], Vec::as_slice);
    let command = escaped(&part.command);
    let mut html =
        format!("<p id=\"{}\"><code>doorway {command}</code></p>\n", Part::stem(&part.command));
    let setting = |row: &Value| {
        ["how", "threads", "k", "inside_ns", "think_ns"].map(|name| row[name].clone())
    };
    for table in rows.chunk_by(|a, b| setting(a) == setting(b)) {
        html += &one_table(table);
    }
    html
}

fn one_table(rows: &[Value]) -> String {
    let first = &rows[0];
    let crowd = first["inside_ns"] != 0;
    let how = escaped(first["how"].as_str().unwrap_or("?"));
    let group = escaped(first["group"].as_str().unwrap_or("?"));
    let mut title = format!("{group}: {how}");
    if crowd {
        title += &format!(", n = {}", first["threads"]);
        let [inside, think] = ["inside_ns", "think_ns"].map(|name| duration(float(first, name)));
        title += &format!(", k = {}, {inside} inside, {think} think time", first["k"]);
    }
    let references: Vec<&String> =
        first["ratios"].as_object().map_or(Vec::new(), |ratios| ratios.keys().collect());
    let mut html =
        format!("<div class=\"wide\"><table><caption>{title}</caption><thead><tr><th>lock</th>");
    references.iter().for_each(|name| html += &format!("<th>× {}</th>", escaped(name)));
    html += "<th>passages/s</th><th>each</th>";
    if crowd {
        html += "<th>share</th><th>wait p50</th><th>p99</th><th>max</th><th>order</th>";
    }
    html += "</tr></thead><tbody>\n";
    for row in rows {
        let lock = row["lock"].as_str().unwrap_or("?");
        let ours = if lock.starts_with("doorway") { " class=\"ours\"" } else { "" };
        html += &format!("<tr{ours}><td>{}</td>", escaped(lock));
        for name in &references {
            html += &format!("<td class=\"n\">{}</td>", number(float(&row["ratios"], name)));
        }
        let ops = float(row, "ops_per_second");
        html += &format!(
            "<td class=\"n\">{}</td><td class=\"n\">{}</td>",
            grouped(ops as u64),
            duration(1e9 / ops)
        );
        if crowd {
            html += &format!(
                "<td class=\"n\">{}</td>",
                number(row["share_max_min"].as_f64().unwrap_or(f64::INFINITY))
            );
            for name in ["p50", "p99", "max"] {
                html += &format!("<td class=\"n\">{}</td>", duration(float(&row["wait_ns"], name)));
            }
            html += &format!("<td>{}</td>", order(&row["order"]));
        }
        html += "</tr>\n";
    }
    html + "</tbody></table></div>\n"
}

fn order(order: &Value) -> String {
    let number = |name: &str| order[name].as_u64().unwrap_or(0);
    let (passages, overtakings) = (number("passages"), number("overtakings"));
    match (is_wrong(order), order["doorway"] == true) {
        (true, _) => "<span class=\"no\">WRONG</span>".into(),
        (false, true) => format!("fifo, {} judged", grouped(passages)),
        (false, false) => {
            format!("{:.1} % overtake", 100.0 * overtakings as f64 / passages.max(1) as f64)
        }
    }
}

fn is_wrong(order: &Value) -> bool {
    let some = |name: &str| order[name].as_u64().unwrap_or(0) > 0;
    some("intrusions") || order["doorway"] == true && some("overtakings")
}

/// Returns whether a lock let too many in, or let a process overtake that must not.
pub(super) fn wrong(part: &Part) -> bool {
    part.result.as_array().is_some_and(|rows| rows.iter().any(|row| is_wrong(&row["order"])))
}

/// Formats the values of the shared memory that were reached, beside what the paper says.
pub(super) fn values(page: &Page, study: &Study) -> String {
    let parts: Vec<&Part> =
        study.values.iter().filter_map(|job| page.parts.get(&job.command)).collect();
    let mut html = format!(
        "<h3>{}</h3>\n<div class=\"wide\"><table><thead><tr><th>n</th><th>k</th><th>values reached</th>",
        study.entrant.name
    );
    study
        .entrant
        .claims
        .values
        .iter()
        .for_each(|formula| html += &format!("<th>{}</th>", escaped(formula.name)));
    html += "<th>states</th><th>command</th></tr></thead><tbody>\n";
    for part in parts {
        let check = &part.result;
        let grouped = |value: &Value| value.as_u64().map_or("more than 2⁶⁴".into(), grouped);
        let so_far = if check["complete"] == true { "" } else { " so far" };
        let command = escaped(&part.command);
        html += &format!(
            r#"<tr data-command="{command}" data-values="{}"><td class="n">{}</td><td class="n">{}</td><td class="n"><b>{}</b>{so_far}</td>"#,
            check["bounds"]["shared_values"],
            check["n"],
            check["k"],
            grouped(&check["bounds"]["shared_values"])
        );
        let formulas = check["bounds"]["paper"].as_array().map_or(&[][..], Vec::as_slice);
        formulas.iter().for_each(|formula| {
            html += &format!("<td class=\"n\">{}</td>", grouped(&formula["value"]))
        });
        html += &format!(
            "<td class=\"n\">{}</td><td><code>doorway {command}</code></td></tr>\n",
            grouped(&check["states"])
        );
    }
    html + "</tbody></table></div>\n"
}
