//! The mean in DSM over n: the measurements of several algorithms in one figure, and in one table.

use std::{collections::BTreeSet, ffi::OsStr, fs, path::Path};

use doorway_lab::{Entrant, rmr};

use super::{Found, show::passages};
use crate::{
    chart::{Chart, Curve, FAMILIES, Scale},
    error::Failure,
    table::columns,
};

/// Checks that a figure of these can be written there. It runs before any measurement, which may
/// take an hour.
pub(super) fn check(path: &Path, entrants: &[&Entrant]) -> Result<(), Failure> {
    if !path
        .extension()
        .and_then(OsStr::to_str)
        .is_some_and(|extension| extension.eq_ignore_ascii_case("svg"))
    {
        let path = path.display();
        return Err(Failure::Usage(format!(
            "--plot {path}: a figure is an SVG file; try --plot mean.svg"
        )));
    }
    if entrants.len() > FAMILIES {
        let all = entrants.len();
        return Err(Failure::Usage(format!(
            "--plot: {all} curves cannot be told apart; name {FAMILIES} algorithms or fewer"
        )));
    }
    let open = fs::OpenOptions::new().write(true).create(true).truncate(false).open(path);
    open.map(|_| ()).map_err(|error| failed(path, error))
}

fn failed(path: &Path, error: std::io::Error) -> Failure {
    Failure::File { verb: "write", path: path.into(), error }
}

/// Writes the figure of the results so far.
pub(super) fn write(path: &Path, all: &[Found]) -> Result<(), Failure> {
    fs::write(path, chart(all).svg()).map_err(|error| failed(path, error))
}

/// Returns the points to show: of runs that came to their end.
fn means(curve: &rmr::Curve) -> Vec<(usize, f64)> {
    let complete = curve.points.iter().filter(|point| point.complete && point.dsm.mean() > 0.0);
    complete.map(|point| (point.n, point.dsm.mean())).collect()
}

fn chart(all: &[Found]) -> Chart {
    let schedulers: BTreeSet<_> =
        all.iter().flat_map(|found| &found.sweep.schedulers).cloned().collect();
    let schedulers = schedulers.into_iter().collect::<Vec<_>>().join(", ");
    let (passages, seed) = all
        .first()
        .map_or((String::new(), 0), |found| (passages(found.sweep.passages), found.sweep.seed));
    let curve = |family: usize, found: &Found, member: usize, curve: &rmr::Curve| Curve {
        name: format!("{}, {}", found.entrant.name, curve.scheduler),
        note: format!("as claimed: {}", found.entrant.claims.rmr.dsm),
        family,
        member,
        points: means(curve),
    };
    let curves = all.iter().enumerate().flat_map(|(family, found)| {
        found
            .measured
            .curves
            .iter()
            .enumerate()
            .map(move |(member, it)| curve(family, found, member, it))
    });
    Chart {
        title: "Remote memory references per passage".into(),
        x: format!(
            "processes n; each point is one run of {passages}, seed {seed}, scheduler {schedulers}"
        ),
        y: "references per passage in DSM, mean over the run".into(),
        scale: Scale::Log,
        curves: curves.collect(),
    }
}

/// Formats the drawn points as numbers.
pub(super) fn table(all: &[Found]) -> String {
    let curves = || {
        all.iter().flat_map(|found| {
            found.measured.curves.iter().map(move |curve| (found, means(curve), curve))
        })
    };
    let sizes: BTreeSet<usize> = curves().flat_map(|(_, means, _)| means).map(|(n, _)| n).collect();
    let mut rows = vec![vec!["DSM, mean".into(), "scheduler".into()]];
    rows[0].extend(sizes.iter().map(|n| format!("n = {n}")));
    for (found, means, curve) in curves() {
        let mut row = vec![found.entrant.name.into(), curve.scheduler.clone()];
        let at = |n: &usize| {
            means
                .iter()
                .find(|mean| mean.0 == *n)
                .map_or("–".into(), |mean| format!("{:.2}", mean.1))
        };
        row.extend(sizes.iter().map(at));
        rows.push(row);
    }
    columns(&rows)
}
