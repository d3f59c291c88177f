//! `doorway status`: which process holds which slot, which wait in which order, since when.

use std::process::ExitCode;

use super::{Locks, locks, view::View};
use crate::{args::named::Status, error::Failure, output};

/// Returns the locks that the user asked for. A lock that cannot be read does not hide the others.
pub(crate) fn views(
    locks: &dyn Locks,
    name: Option<&str>,
) -> Result<(Vec<View>, Vec<Failure>), Failure> {
    let names = match name {
        Some(name) => return Ok((vec![locks.view(name)?], Vec::new())),
        None => locks.names()?,
    };
    let (mut views, mut failures) = (Vec::new(), Vec::new());
    for name in names {
        match locks.view(&name) {
            Ok(view) => views.push(view),
            Err(failure) if failure.is_missing() => {} // it has just been removed
            Err(failure) => failures.push(failure),
        }
    }
    Ok((views, failures))
}

pub(crate) fn status(args: &Status) -> Result<ExitCode, Failure> {
    let locks = locks(&args.place)?;
    let (views, failures) = views(&*locks, args.name.as_deref())?;
    failures.iter().for_each(output::say);
    if args.json {
        let json = if args.name.is_some() {
            serde_json::to_string(&views[0])
        } else {
            serde_json::to_string(&views)
        };
        output::print(&(json.expect("plain data") + "\n"))?;
    } else if views.is_empty() && failures.is_empty() {
        output::print(&format!("no locks in {}\n", locks.place()))?;
    } else {
        output::print(&views.iter().map(View::text).collect::<Vec<_>>().join("\n"))?;
    }
    Ok(ExitCode::from(u8::from(!failures.is_empty())))
}
