//! The results of a bench, as a table and as JSON.

use std::collections::BTreeSet;

use doorway_bench::{Bench, Group, How, Plan, Row};
use serde_json::{Value, json};

use crate::table::{columns, grouped};

/// Returns the names of all locks, each once.
pub(super) fn locks(groups: &[&'static Group], plan: &Plan) -> BTreeSet<&'static str> {
    let benches = groups.iter().flat_map(|group| group.benches(plan));
    benches.flat_map(|bench| bench.contenders).map(|lock| lock.name).collect()
}

/// Lists the groups, and the locks in each.
pub(super) fn list(groups: &[&'static Group], plan: &Plan) -> String {
    let mut text = String::new();
    for &group in groups {
        let benches = group.benches(plan);
        let seconds: f64 = benches.iter().map(|bench| bench.seconds(plan)).sum();
        text += &format!("{}: {}\n", group.name, group.what);
        text += &format!("  tables     {}, at least {seconds:.0} s\n", benches.len());
        let locks = locks(&[group], plan).into_iter().collect::<Vec<_>>().join(", ");
        text += &format!("  locks      {locks}\n");
        let mut references: Vec<_> =
            benches.iter().flat_map(|bench| bench.references).copied().collect();
        let mut seen = BTreeSet::new();
        references.retain(|reference| seen.insert(*reference));
        text += &format!("  reference  {}\n", references.join(", "));
    }
    text
}

/// Returns the title of a table.
pub(super) fn title(bench: &Bench) -> String {
    let setting = &bench.setting;
    let mut title = format!("{}: {}", bench.group.name, setting.how);
    if setting.how != How::Process {
        title += &format!(", n = {}", setting.threads);
    }
    if setting.inside_ns > 0 {
        let think = match setting.think_ns {
            0 => "no think time".into(),
            ns => format!("{} think time", duration(ns as f64)),
        };
        let (k, inside) = (setting.k, duration(setting.inside_ns as f64));
        title += &format!(", k = {k}, {inside} inside, {think}");
    }
    title
}

/// Formats a table: ratios first.
pub(super) fn text(bench: &Bench, rows: &[Row]) -> String {
    let crowd = bench.setting.inside_ns > 0;
    let mut head: Vec<String> = bench.references.iter().map(|name| format!("× {name}")).collect();
    head.extend(["lock", "ops/s", "per op"].map(String::from));
    if crowd {
        head.extend(["share", "wait p50", "p99", "max", "order"].map(String::from));
    }
    let mut table = vec![head];
    for row in rows {
        let mut cells: Vec<String> = row.ratios.iter().map(|ratio| number(*ratio)).collect();
        cells.extend([
            row.lock.to_owned(),
            grouped(row.ops_per_second as u64),
            duration(1e9 / row.ops_per_second),
        ]);
        if crowd {
            let [p50, p99] = [500, 990].map(|share| row.waits.per_mille(share));
            cells.push(number(row.share_max_min));
            cells.extend(
                [p50, p99, row.waits.max()]
                    .map(|ns| ns.map_or("-".into(), |ns| duration(ns as f64))),
            );
            cells.push(order(row));
        }
        table.push(cells);
    }
    format!("{}\n{}", title(bench), columns(&table))
}

/// Formats the verdict of the judge of order.
fn order(row: &Row) -> String {
    let verdict = &row.verdict;
    match (verdict.intrusions, verdict.overtakings) {
        (0, 0) if row.doorway => format!("fifo, {} judged", grouped(verdict.passages)),
        (0, overtakings) if row.doorway => {
            format!("NOT FIFO: {} of {}", grouped(overtakings), grouped(verdict.passages))
        }
        (0, overtakings) => {
            format!("{:.1} % overtake", 100.0 * overtakings as f64 / verdict.passages.max(1) as f64)
        }
        (intrusions, _) => format!("TOO MANY INSIDE: {}", grouped(intrusions)),
    }
}

/// Formats a ratio.
pub(crate) fn number(ratio: f64) -> String {
    match ratio {
        _ if ratio.is_nan() => "-".into(),
        _ if ratio.is_infinite() => "∞".into(),
        _ if ratio >= 100.0 => grouped(ratio.round() as u64),
        _ if ratio < 0.1 => format!("{ratio:.4}"),
        _ => format!("{ratio:.2}"),
    }
}

/// Formats a time, to about three digits.
pub(crate) fn duration(ns: f64) -> String {
    let (value, unit) = match ns {
        _ if !ns.is_finite() => return "-".into(),
        _ if ns < 1e3 => (ns, "ns"),
        _ if ns < 1e6 => (ns / 1e3, "µs"),
        _ if ns < 1e9 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    if value < 10.0 && value.fract() != 0.0 {
        format!("{value:.1} {unit}")
    } else {
        format!("{value:.0} {unit}")
    }
}

/// Returns an object for each row, one per line.
pub(super) fn json(bench: &Bench, rows: &[Row]) -> String {
    objects(bench, rows).iter().map(|object| format!("{object}\n")).collect()
}

/// Returns an object for each row.
pub(super) fn objects(bench: &Bench, rows: &[Row]) -> Vec<Value> {
    rows.iter().map(|row| object(bench, row)).collect()
}

/// Infinite and missing numbers are null.
fn object(bench: &Bench, row: &Row) -> Value {
    let setting = &bench.setting;
    let ratios: serde_json::Map<_, _> = bench
        .references
        .iter()
        .zip(&row.ratios)
        .map(|(name, ratio)| (name.to_string(), json!(ratio)))
        .collect();
    let [p50, p99] = [500, 990].map(|share| row.waits.per_mille(share));
    json!({
        "group": bench.group.name,
        "lock": row.lock,
        "how": setting.how.to_string(),
        "threads": setting.threads,
        "k": setting.k,
        "inside_ns": setting.inside_ns,
        "think_ns": setting.think_ns,
        "ops_per_second": row.ops_per_second,
        "reference": bench.references[0],
        "ratio": row.ratios[0],
        "ratios": ratios,
        "share_max_min": row.share_max_min,
        "wait_ns": { "p50": p50, "p99": p99, "max": row.waits.max() },
        "order": {
            "doorway": row.doorway,
            "passages": row.verdict.passages,
            "overtakings": row.verdict.overtakings,
            "intrusions": row.verdict.intrusions,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short_to_read() {
        let cases = [5.43, 50.0, 1000.0, 1234.0, 12_345.0, 1.5e6, 2.34e9].map(duration);
        assert_eq!(cases, ["5.4 ns", "50 ns", "1 µs", "1.2 µs", "12 µs", "1.5 ms", "2.3 s"]);
    }

    #[test]
    fn ratios_are_short_to_read() {
        assert_eq!(
            [0.0012, 0.123, 99.0, 12_345.6, f64::INFINITY, f64::NAN].map(number),
            ["0.0012", "0.12", "99.00", "12 346", "∞", "-"]
        );
    }
}
