//! Measured remote memory references: curves, fits, and every run.

use std::collections::BTreeMap;

use doorway_core::Problem;
use serde_json::Value;

use super::{Page, part::Part, plan::Study, verdicts::none};
use crate::{
    chart::{Chart, Curve, Scale, escaped},
    table::grouped,
};

/// The names of a model: in words, in JSON.
pub(super) const MODELS: [(&str, &str); 2] = [("CC", "cc"), ("DSM", "dsm")];

/// Returns the measurements of an algorithm, if there are any.
pub(super) fn measured<'p>(page: &'p Page, study: &Study) -> Option<&'p Value> {
    page.parts.get(&study.curves.command).map(|part| &part.result[0])
}

fn list<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or("?")
}

/// Returns the references per look while waiting, if a look costs any. Then there is no bound to
/// fit.
fn per_look(measured: &Value, model: &str) -> Option<f64> {
    measured["waiting"]["per_look"][model].as_f64().filter(|references| *references > 0.0)
}

/// `4.00 n − 4.0`
fn formula(growth: &Value) -> String {
    let (over, name) = match text(growth, "class") {
        "logarithmic" => (&growth["log_n"], "log₂ n"),
        "quadratic" => (&growth["n_squared"], "n²"),
        _ => (&growth["n"], "n"),
    };
    let [slope, intercept] =
        ["slope", "intercept"].map(|name| over[name].as_f64().unwrap_or(f64::NAN));
    format!("{slope:.2} {name} {} {:.1}", if intercept < 0.0 { '−' } else { '+' }, intercept.abs())
}

/// Returns the most processes that were run.
fn most(measured: &Value) -> u64 {
    let points = list(measured, "curves").iter().flat_map(|curve| list(curve, "points"));
    points.filter_map(|point| point["n"].as_u64()).max().unwrap_or(0)
}

/// Returns the classes that were fitted, with the schedulers if they do not agree.
fn classes(measured: &Value, model: &str, quantity: &str) -> String {
    let mut classes: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for curve in list(measured, "curves") {
        let class = curve["fits"][model][quantity]["class"].as_str().unwrap_or("too few sizes");
        classes.entry(class).or_default().push(text(curve, "scheduler"));
    }
    match classes.len() {
        1 => classes.into_keys().collect(),
        _ => classes
            .iter()
            .map(|(class, by)| format!("{class} ({})", by.join(", ")))
            .collect::<Vec<_>>()
            .join("; "),
    }
}

/// Formats a cell: the classes that were fitted, beside the paper's.
pub(super) fn cell(page: &Page, study: &Study, (_, model): (&str, &str)) -> String {
    let Some(measured) = measured(page, study) else { return none() };
    let found = match per_look(measured, model) {
        Some(references) => format!("unbounded: {references:.2} per look while waiting"),
        None => format!(
            "worst: {}<br>mean: {}",
            classes(measured, model, "max"),
            classes(measured, model, "mean")
        ),
    };
    let paper = escaped(text(&measured["paper"], model));
    let anchor = Part::stem(&study.curves.command);
    let most = most(measured);
    format!(r##"{found}<br>paper: {paper} <a class="at" href="#{anchor}">n = 2 to {most}</a>"##)
}

/// Returns the curves of one algorithm in one model: worst and mean under each scheduler.
fn curves(measured: &Value, model: &str) -> Vec<Curve> {
    let mut all = Vec::new();
    for (family, curve) in list(measured, "curves").iter().enumerate() {
        for (member, (words, name)) in [("worst", "max"), ("mean", "mean")].into_iter().enumerate()
        {
            all.push(Curve {
                name: format!("{}, {words}", text(curve, "scheduler")),
                note: String::new(),
                family,
                member,
                points: points(curve, model, name),
            });
        }
    }
    all
}

/// Returns the points of runs that came to their end: `(n, references)`.
fn points(curve: &Value, model: &str, name: &str) -> Vec<(usize, f64)> {
    let complete = list(curve, "points").iter().filter(|point| point["complete"] == true);
    let point =
        |point: &Value| Some((point["n"].as_u64()? as usize, point["rmr"][model][name].as_f64()?));
    complete.filter_map(point).filter(|point| point.1 > 0.0).collect()
}

/// Returns the figures of one algorithm, its fits and its runs.
pub(super) fn section(page: &Page, study: &Study) -> String {
    let Some(measured) = measured(page, study) else { return "<p>Not measured yet.</p>\n".into() };
    let command = escaped(&study.curves.command);
    let mut html = format!(
        "<p id=\"{}\"><code>doorway {command}</code></p>\n",
        Part::stem(&study.curves.command)
    );
    html += "<div class=\"figures\">\n";
    for (words, model) in MODELS {
        for scale in [Scale::Linear, Scale::Log] {
            let axes = if scale == Scale::Log { "logarithmic" } else { "linear" };
            let chart = Chart {
                title: format!("{}: references in {words}", study.entrant.name),
                x: format!("processes n, {axes} axes"),
                y: format!("references per passage in {words}"),
                scale,
                curves: curves(measured, model),
            };
            html += &format!("<figure>{}</figure>\n", chart.inline());
        }
    }
    let keys: String = curves(measured, "cc").iter().map(Curve::key).collect();
    html += &format!("</div>\n<p class=\"keys\">{keys}</p>\n");
    html + &fits(measured) + &runs(measured, study)
}

fn fits(measured: &Value) -> String {
    let mut rows = String::new();
    for (words, model) in MODELS {
        let paper = escaped(text(&measured["paper"], model));
        if let Some(references) = per_look(measured, model) {
            rows += &format!(
                "<tr><td>{words}</td><td>all</td><td>not fitted: {references:.2} references per look while waiting</td>\
                 <td>unbounded</td><td></td><td>{paper}</td></tr>\n"
            );
            continue;
        }
        for curve in list(measured, "curves") {
            for (quantity, name) in [("worst", "max"), ("mean", "mean")] {
                let growth = &curve["fits"][model][name];
                let (by, class, r2) = match growth {
                    Value::Null => ("–".into(), "fewer than 4 sizes", String::new()),
                    _ => {
                        let best = match text(growth, "class") {
                            "logarithmic" => "log_n",
                            "quadratic" => "n_squared",
                            _ => "n",
                        };
                        (
                            formula(growth),
                            text(growth, "class"),
                            format!("{:.4}", growth[best]["r2"].as_f64().unwrap_or(0.0)),
                        )
                    }
                };
                rows += &format!(
                    "<tr><td>{words} {quantity}</td><td>{}</td><td>{by}</td><td>{class}</td><td class=\"n\">{r2}</td><td>{paper}</td></tr>\n",
                    escaped(text(curve, "scheduler"))
                );
            }
        }
    }
    format!(
        "<div class=\"wide\"><table><thead><tr><th>fitted</th><th>scheduler</th><th>by</th><th>class</th><th>R²</th><th>the \
         paper</th></tr></thead><tbody>\n{rows}</tbody></table></div>\n"
    )
}

/// Lists every run, with the command that makes it alone.
fn runs(measured: &Value, study: &Study) -> String {
    let mut rows = String::new();
    for curve in list(measured, "curves") {
        for point in list(curve, "points") {
            let number = |name: &str| point[name].as_u64().unwrap_or(0);
            let among = match study.entrant.claims.problem {
                Problem::Mutex => String::new(),
                Problem::KExclusion => format!(" -k {}", number("k")),
                Problem::Group => format!(" --sessions {}", measured["sessions"]),
            };
            let (n, scheduler) = (number("n"), text(curve, "scheduler"));
            let passages = measured["passages"].as_u64().unwrap_or(0);
            let command = format!(
                "lab simulate {}{} -n {n}{among} --scheduler {scheduler} --passages {passages}",
                study.entrant.name,
                measured["variant"]
                    .as_str()
                    .map_or(String::new(), |variant| format!(" --timestamps {variant}")),
            );
            let steps = grouped(number("steps"));
            let cost = |model: &str| {
                let mean = point["rmr"][model]["mean"].as_f64().unwrap_or(f64::NAN);
                let worst = point["rmr"][model]["max"].as_u64().unwrap_or(0);
                format!("<td class=\"n\">{}</td><td class=\"n\">{mean:.2}</td>", grouped(worst))
            };
            rows += &format!(
                r#"<tr data-command="{command}" data-cc-mean="{}" data-dsm-mean="{}"><td>{scheduler}</td><td class="n">{n}</td>{}{}<td class="n">{steps}{}</td><td><code>doorway {command}</code></td></tr>
"#,
                point["rmr"]["cc"]["mean"],
                point["rmr"]["dsm"]["mean"],
                cost("cc"),
                cost("dsm"),
                if point["complete"] == true { "" } else { ", cut off" },
            );
        }
    }
    format!(
        "<div class=\"wide\"><table><thead><tr><th>scheduler</th><th>n</th><th>CC worst</th><th>mean</th><th>DSM worst</th><th>mean</th>\
         <th>steps</th><th>command</th></tr></thead><tbody>\n{rows}</tbody></table></div>\n"
    )
}

/// Draws all algorithms for a problem in one figure per model: means under `random`.
pub(super) fn overview(page: &Page, studies: &[&Study]) -> String {
    let mut html = String::from("<div class=\"figures\">\n");
    let mut keys = Vec::new();
    for (words, model) in MODELS {
        let mut all = Vec::new();
        for (family, study) in studies.iter().enumerate() {
            let random = measured(page, study).map(|measured| list(measured, "curves"));
            let random =
                random.and_then(|all| all.iter().find(|curve| curve["scheduler"] == "random"));
            let Some(curve) = random else { continue };
            let note = format!(
                "paper, {words}: {}",
                if model == "cc" {
                    study.entrant.claims.rmr.cc
                } else {
                    study.entrant.claims.rmr.dsm
                }
            );
            let points = points(curve, model, "mean");
            // If there are more algorithms than colours, later ones differ only by their marks,
            // which are hollow from then on.
            let member = family / crate::chart::FAMILIES;
            all.push(Curve { name: study.entrant.name.into(), note, family, member, points });
        }
        let y = format!("references per passage in {words}, mean");
        let title = format!("References in {words}, scheduler random");
        if model == "cc" {
            keys = all.iter().map(Curve::key).collect();
        } else {
            for (key, curve) in keys.iter_mut().zip(&all) {
                *key = key.replace(
                    "</small>",
                    &format!("; {}</small>", escaped(curve.note.trim_start_matches("paper, "))),
                );
            }
        }
        let mut chart = Chart {
            title,
            x: "processes n, linear axes".into(),
            y,
            scale: Scale::Linear,
            curves: all,
        };
        html += &format!("<figure>{}</figure>\n", chart.inline());
        (chart.x, chart.scale) = ("processes n, logarithmic axes".into(), Scale::Log);
        html += &format!("<figure>{}</figure>\n", chart.inline());
    }
    html + &format!("</div>\n<p class=\"keys\">{}</p>\n", keys.concat())
}
