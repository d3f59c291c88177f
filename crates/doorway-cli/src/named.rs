//! Named locks for processes: `run`, `status`, `top`, `set`, `drain`, `resume`, `rm`. The locks are
//! in a directory of this machine or on etcd. The commands do the same with both, by way of
//! [`Locks`] and [`run::Asked`].

#[cfg(feature = "etcd")]
mod etcd;
mod local;
mod nested;
mod run;
#[expect(unsafe_code, reason = "runs before main")]
mod sigpipe;
mod status;
mod supervise;
mod top;
mod view;
mod waiting;

use std::process::ExitCode;

use self::view::View;
pub(crate) use self::{run::run, status::status, top::top};
use crate::{
    args::named::{Named, Place, Set},
    error::Failure,
};

/// A place that has locks: a directory or an etcd cluster.
pub(crate) trait Locks {
    /// Returns the name of the place, for messages.
    fn place(&self) -> String;

    /// Returns the names of the locks there, in order.
    fn names(&self) -> Result<Vec<String>, Failure>;

    fn view(&self, name: &str) -> Result<View, Failure>;

    fn change(&self, name: &str, change: Change) -> Result<(), Failure>;
}

/// A change to a lock.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    Slots(usize),
    Drain,
    Resume,
    Remove,
}

/// Returns the place of the locks.
fn locks(place: &Place) -> Result<Box<dyn Locks>, Failure> {
    #[cfg(feature = "etcd")]
    if !place.etcd.endpoints.is_empty() {
        return Ok(Box::new(etcd::Cluster::connect(&place.etcd, |config| config)?));
    }
    Ok(Box::new(local::directory(place)?))
}

pub(crate) fn set(args: &Set) -> Result<ExitCode, Failure> {
    change(&args.name, &args.place, Change::Slots(args.slots))
}

pub(crate) fn drain(args: &Named) -> Result<ExitCode, Failure> {
    change(&args.name, &args.place, Change::Drain)
}

pub(crate) fn resume(args: &Named) -> Result<ExitCode, Failure> {
    change(&args.name, &args.place, Change::Resume)
}

pub(crate) fn remove(args: &Named) -> Result<ExitCode, Failure> {
    change(&args.name, &args.place, Change::Remove)
}

fn change(name: &str, place: &Place, change: Change) -> Result<ExitCode, Failure> {
    locks(place)?.change(name, change)?;
    Ok(ExitCode::SUCCESS)
}
