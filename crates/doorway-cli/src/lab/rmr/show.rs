//! The measurements, as a table and as JSON.

use doorway_core::Problem;
use doorway_lab::{
    Most,
    cost::Cost,
    rmr::{Curve, FEWEST, Fit, Growth, Measured, Passages, Point, WAITS},
};
use serde_json::{Value, json};

use super::{Exact, Found};
use crate::table::{columns, grouped};

/// A fitted quantity of a point: in words, in JSON, and its value.
type Quantity = (&'static str, &'static str, fn(&Cost) -> f64);

const QUANTITIES: [Quantity; 2] =
    [("worst", "max", |cost| cost.max as f64), ("mean", "mean", Cost::mean)];

/// A model: in words, in JSON, the cost of a point in it, and the cost of waiting.
struct Model {
    words: &'static str,
    name: &'static str,
    cost: fn(&Point) -> &Cost,
    claim: &'static str,
    /// References per look while waiting.
    per_look: Option<f64>,
}

fn models(found: &Found) -> [Model; 2] {
    let claims = found.entrant.claims.rmr;
    let per_look = found.measured.waiting.as_ref().map(|waiting| waiting.per_look());
    [
        Model {
            words: "CC",
            name: "cc",
            cost: |p| &p.cc,
            claim: claims.cc,
            per_look: per_look.map(|l| l.0),
        },
        Model {
            words: "DSM",
            name: "dsm",
            cost: |p| &p.dsm,
            claim: claims.dsm,
            per_look: per_look.map(|l| l.1),
        },
    ]
}

impl Model {
    /// Returns whether waiting longer costs more. Then a fit over n would only show how long the
    /// processes happened to wait.
    fn is_unbounded(&self) -> bool {
        self.per_look.is_some_and(|references| references > 0.0)
    }

    fn growth(&self, curve: &Curve, quantity: Quantity) -> Option<Growth> {
        if self.is_unbounded() {
            None
        } else {
            curve.growth(|point| quantity.2((self.cost)(point)))
        }
    }
}

/// Formats the tables of one algorithm.
pub(super) fn text(found: &Found) -> String {
    let (entrant, sweep, measured) = (found.entrant, &found.sweep, &found.measured);
    let variant = entrant.variant.map_or(String::new(), |variant| format!(" ({variant})"));
    let passages = passages(sweep.passages);
    let among = match entrant.claims.problem {
        Problem::Group => format!("sessions = {}", sweep.sessions),
        _ => format!("k = {}", sweep.k),
    };
    let mut text =
        format!("{}{variant}: {among}, {passages}, seed {}\n\n", entrant.name, sweep.seed);
    text.push_str(&points(found));
    for (size, unfit) in &measured.refused {
        text.push_str(&format!("  n = {}: {unfit}\n", size.n));
    }
    text.push('\n');
    text.push_str(&fits(found));
    text.push('\n');
    text.push_str(&waiting(measured));
    if !found.exact.is_empty() {
        text.push('\n');
        text.push_str(&exact(&found.exact));
    }
    text
}

/// Says in words how many passages there are at each n.
pub(super) fn passages(passages: Passages) -> String {
    match passages {
        Passages::Each(1) => "1 passage per process".into(),
        Passages::Each(passages) => format!("{passages} passages per process"),
        Passages::Total(passages) => format!("{} passages or a few more", grouped(passages)),
    }
}

fn points(found: &Found) -> String {
    let header = ["RMR per passage", "n", "k", "CC worst", "mean", "DSM worst", "mean", "steps"];
    let mut rows = vec![header.map(String::from).to_vec()];
    let any_number = found.entrant.claims.problem == Problem::Group;
    for curve in &found.measured.curves {
        for (i, point) in curve.points.iter().enumerate() {
            let steps = grouped(point.steps);
            rows.push(vec![
                if i == 0 { curve.scheduler.clone() } else { String::new() },
                point.n.to_string(),
                if any_number { "–".into() } else { point.k.to_string() },
                grouped(point.cc.max),
                format!("{:.1}", point.cc.mean()),
                grouped(point.dsm.max),
                format!("{:.1}", point.dsm.mean()),
                if point.complete { steps } else { format!("{steps}, cut off") },
            ]);
        }
    }
    columns(&rows)
}

fn fits(found: &Found) -> String {
    let mut rows = vec![
        ["fitted", "scheduler", "by", "R²", "R² over n", "class", "the paper"]
            .map(String::from)
            .to_vec(),
    ];
    for model in models(found) {
        if model.is_unbounded() {
            let row = [model.words, "all", "not fitted", "–", "–", "unbounded", model.claim];
            rows.push(row.map(String::from).to_vec());
            continue;
        }
        for curve in &found.measured.curves {
            for quantity in QUANTITIES {
                let what = format!("{} {}", model.words, quantity.0);
                let mut row = vec![what, curve.scheduler.clone()];
                match model.growth(curve, quantity) {
                    Some(growth) => {
                        let (fit, over) = growth.best();
                        row.push(formula(fit, over));
                        row.push(format!("{:.4}", fit.r2));
                        row.push(format!("{:.4}", growth.over_n.r2));
                        row.push(growth.class.to_string());
                    }
                    None => row.extend(
                        ["–", "", "", &format!("fewer than {FEWEST} sizes")].map(String::from),
                    ),
                }
                row.push(model.claim.into());
                rows.push(row);
            }
        }
    }
    columns(&rows)
}

/// `3.1 n + 12.4`
fn formula(fit: Fit, over: &str) -> String {
    let sign = if fit.intercept < 0.0 { '−' } else { '+' };
    format!("{:.2} {over} {sign} {:.1}", fit.slope, fit.intercept.abs())
}

fn waiting(measured: &Measured) -> String {
    let Some(waiting) = &measured.waiting else { return "  nobody could be kept waiting\n".into() };
    let mut header = vec!["RMR while kept waiting".to_string()];
    header.extend(WAITS.map(|steps| format!("{} steps", grouped(steps))));
    header.push("per look".into());
    let row = |name: &str, per_look: f64, of: &dyn Fn(usize) -> u64| {
        let mut row = vec![name.to_string()];
        row.extend((0..WAITS.len()).map(|i| grouped(of(i))));
        row.push(format!("{per_look:.2}"));
        row
    };
    let (cc, dsm) = waiting.per_look();
    columns(&[
        header,
        row("CC", cc, &|i| waiting.costs[i].cc),
        row("DSM", dsm, &|i| waiting.costs[i].dsm),
    ])
}

fn exact(all: &[Exact]) -> String {
    let mut rows =
        vec![["the most over all runs", "CC", "DSM", "explored"].map(String::from).to_vec()];
    for Exact { size, maxima } in all {
        let why = |most: &Most| match most {
            Most::Unknown(why) => Some(why.clone()),
            _ => None,
        };
        let instance = size.to_string();
        let reach = maxima.scope.replace(&format!("{instance}, "), "");
        let explored = match why(&maxima.cc).or(why(&maxima.dsm)) {
            Some(why) => format!("not all, {why}: {reach}"),
            None => format!("all of up to {} states: {reach}", grouped(maxima.states)),
        };
        rows.push(vec![instance, maxima.cc.to_string(), maxima.dsm.to_string(), explored]);
    }
    columns(&rows)
}

/// Returns all algorithms, as an array.
pub(super) fn json(all: &[Found]) -> Value {
    all.iter().map(object).collect()
}

fn object(found: &Found) -> Value {
    let (entrant, sweep, measured) = (found.entrant, &found.sweep, &found.measured);
    let cost = |cost: &Cost| json!({ "mean": cost.mean(), "max": cost.max });
    let models = models(found);
    let curves: Vec<_> = measured
        .curves
        .iter()
        .map(|curve| {
            let points: Vec<_> = curve
                .points
                .iter()
                .map(|p| {
                    json!({
                        "n": p.n, "k": p.k, "passages": p.cc.passages, "steps": p.steps, "complete": p.complete,
                        "fitted": p.fitted, "rmr": { "cc": cost(&p.cc), "dsm": cost(&p.dsm) },
                    })
                })
                .collect();
            let mut fits = json!({});
            for model in &models {
                for quantity in QUANTITIES {
                    fits[model.name][quantity.1] = model.growth(curve, quantity).map_or(Value::Null, growth);
                }
            }
            json!({ "scheduler": curve.scheduler, "points": points, "fits": fits })
        })
        .collect();
    let refused: Vec<_> = measured
        .refused
        .iter()
        .map(|(size, unfit)| json!({ "n": size.n, "k": size.k, "sessions": size.sessions, "why": unfit.to_string() }))
        .collect();
    let waiting = measured.waiting.as_ref().map(|waiting| {
        let (cc, dsm) = waiting.per_look();
        let costs: Vec<_> = waiting
            .costs
            .iter()
            .map(|c| json!({ "steps": c.steps, "cc": c.cc, "dsm": c.dsm }))
            .collect();
        json!({ "costs": costs, "per_look": { "cc": cc, "dsm": dsm } })
    });
    json!({
        "algorithm": entrant.name,
        "variant": entrant.variant,
        "problem": entrant.claims.problem.name(),
        "k": if entrant.claims.problem == Problem::KExclusion { sweep.k } else { 1 },
        "sessions": if entrant.claims.problem == Problem::Group { sweep.sessions } else { 0 },
        "passages": match sweep.passages { Passages::Each(passages) => Some(passages), Passages::Total(_) => None },
        "total": match sweep.passages { Passages::Total(passages) => Some(passages), Passages::Each(_) => None },
        "seed": sweep.seed,
        "paper": { "cc": entrant.claims.rmr.cc, "dsm": entrant.claims.rmr.dsm },
        "curves": curves,
        "refused": refused,
        "waiting": waiting,
        "exact": found.exact.iter().map(exact_object).collect::<Vec<_>>(),
    })
}

fn growth(growth: Growth) -> Value {
    let fit = |fit: Fit| json!({ "slope": fit.slope, "intercept": fit.intercept, "r2": fit.r2 });
    json!({
        "class": growth.class.to_string(),
        "n": fit(growth.over_n),
        "log_n": fit(growth.over_log),
        "n_squared": fit(growth.over_square),
    })
}

/// `most` is a number or null; `bound` says in a word what that means.
fn exact_object(Exact { size, maxima }: &Exact) -> Value {
    let most = |most: &Most| match most {
        Most::Exactly(references) => json!({ "bound": "exact", "most": references }),
        Most::AtMost(references) => json!({ "bound": "at-most", "most": references }),
        Most::Unbounded => json!({ "bound": "unbounded", "most": null }),
        Most::Unknown(why) => json!({ "bound": "unknown", "most": null, "why": why }),
    };
    json!({
        "n": size.n, "k": size.k, "sessions": size.sessions, "cc": most(&maxima.cc), "dsm": most(&maxima.dsm),
        "states": maxima.states, "scope": maxima.scope,
    })
}
