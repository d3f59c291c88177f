//! Named locks for processes: `run`, `status`, `top`, `set`, `drain`, `resume`, `rm`.

mod nested;
mod run;
mod status;
mod supervise;
mod top;
mod view;
mod waiting;

use std::process::ExitCode;

use doorway::shared::{Directory, Error, Lock};

pub(crate) use self::{run::run, status::status, top::top};
use crate::{
    args::named::{Named, Place, Set},
    error::Failure,
};

/// Where the locks are.
fn directory(place: &Place) -> Result<Directory, Failure> {
    Ok(match &place.dir {
        Some(path) => Directory::at(path)?,
        None => Directory::of_user()?,
    })
}

pub(crate) fn set(args: &Set) -> Result<ExitCode, Failure> {
    with(&args.name, &args.place, |lock| lock.set_slots(args.slots))
}

pub(crate) fn drain(args: &Named) -> Result<ExitCode, Failure> {
    with(&args.name, &args.place, Lock::drain)
}

pub(crate) fn resume(args: &Named) -> Result<ExitCode, Failure> {
    with(&args.name, &args.place, Lock::resume)
}

pub(crate) fn remove(args: &Named) -> Result<ExitCode, Failure> {
    with(&args.name, &args.place, Lock::remove)
}

fn with(name: &str, place: &Place, does: impl FnOnce(&Lock) -> Result<(), Error>) -> Result<ExitCode, Failure> {
    does(&directory(place)?.lock(name)?)?;
    Ok(ExitCode::SUCCESS)
}
