//! `doorway status`: who holds which slot, who waits in which order, since when.

use std::process::ExitCode;

use doorway::shared::{Directory, Error};

use super::{directory, view::View};
use crate::{args::named::Status, error::Failure, output};

/// The locks that were asked for. One that cannot be read is no reason not to show the others.
pub(crate) fn views(locks: &Directory, name: Option<&str>) -> Result<(Vec<View>, Vec<Error>), Failure> {
    let names = match name {
        Some(name) => return Ok((vec![View::of(&locks.lock(name)?.status())], Vec::new())),
        None => locks.names()?,
    };
    let (mut views, mut errors) = (Vec::new(), Vec::new());
    for name in names {
        match locks.lock(&name) {
            Ok(lock) => views.push(View::of(&lock.status())),
            Err(Error::Missing(_)) => {} // it has just been removed
            Err(error) => errors.push(error),
        }
    }
    Ok((views, errors))
}

pub(crate) fn status(args: &Status) -> Result<ExitCode, Failure> {
    let locks = directory(&args.place)?;
    let (views, errors) = views(&locks, args.name.as_deref())?;
    errors.iter().for_each(output::say);
    if args.json {
        let json = if args.name.is_some() { serde_json::to_string(&views[0]) } else { serde_json::to_string(&views) };
        output::print(&(json.expect("plain data") + "\n"))?;
    } else if views.is_empty() && errors.is_empty() {
        output::print(&format!("no locks in {}\n", locks.path().display()))?;
    } else {
        output::print(&views.iter().map(View::text).collect::<Vec<_>>().join("\n"))?;
    }
    Ok(ExitCode::from(u8::from(!errors.is_empty())))
}
