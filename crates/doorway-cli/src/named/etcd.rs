//! Locks across machines, on etcd.
//!
//! The main thread makes requests, one after another. Meanwhile a thread of its own keeps the lease
//! alive, whatever the main thread waits for.

mod calls;
mod command;
mod hosts;
mod run;

use std::io;

use doorway_etcd::{Config, Error, Kind, Status, Store};
use tokio::runtime::{Builder, Runtime};

pub(crate) use self::run::Remote;
use super::{
    Change, Locks,
    view::{View, Who, seconds},
};
use crate::{args::etcd::Etcd, error::Failure};

/// A store, and the runtime that drives it.
pub(crate) struct Cluster {
    runtime: Runtime,
    store: Store,
    endpoints: String,
}

impl Cluster {
    /// Connects, as the command line says and `more` adds.
    pub(crate) fn connect(
        args: &Etcd,
        more: impl FnOnce(Config) -> Config,
    ) -> Result<Self, Failure> {
        let mut config = Config::new(args.endpoints.iter().map(|endpoint| endpoint.trim()));
        if let Some(file) = &args.etcd_ca {
            config = config.with_ca(file);
        }
        if let (Some(certificate), Some(key)) = (&args.etcd_cert, &args.etcd_key) {
            config = config.with_identity(certificate, key);
        }
        if let Some(user) = &args.etcd_user {
            config = config.with_user(user);
        }
        if let Some(file) = &args.etcd_password_file {
            config = config.with_password_file(file);
        }
        hosts::resolve_within();
        let runtime = runtime().map_err(|error| Failure::Supervise { error })?;
        let store = runtime.block_on(Store::connect(more(config)))?;
        Ok(Self { runtime, store, endpoints: args.endpoints.join(",") })
    }

    fn wait_for<T>(&self, future: impl Future<Output = Result<T, Error>>) -> Result<T, Failure> {
        Ok(self.runtime.block_on(future)?)
    }
}

fn runtime() -> io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(1).enable_all().build()
}

impl Locks for Cluster {
    fn place(&self) -> String {
        format!("etcd at {}", self.endpoints)
    }

    fn names(&self) -> Result<Vec<String>, Failure> {
        self.wait_for(self.store.names())
    }

    fn view(&self, name: &str) -> Result<View, Failure> {
        self.wait_for(async { Ok(view(self.store.lock(name).await?.status().await?)) })
    }

    fn change(&self, name: &str, change: Change) -> Result<(), Failure> {
        self.wait_for(async {
            let lock = self.store.lock(name).await?;
            match change {
                Change::Slots(slots) => lock.set_slots(slots).await,
                Change::Drain => lock.drain().await,
                Change::Resume => lock.resume().await,
                Change::Remove => lock.remove().await,
            }
        })
    }
}

fn view(status: Status) -> View {
    let kind = match status.kind {
        Kind::Semaphore => "semaphore",
        Kind::Mutex => "mutex",
        Kind::GroupLock => "group",
    };
    let holders = status.holders.into_iter().map(|holder| Who {
        slot: Some(holder.slot),
        host: Some(holder.host),
        pid: holder.pid.cast_signed(),
        foreign: false,
        ticket: holder.ticket,
        session: holder.session,
        seconds: Some(seconds(holder.held)),
        command: holder.command,
    });
    let waiting = status.waiting.into_iter().map(|waiter| Who {
        slot: None,
        host: Some(waiter.host),
        pid: waiter.pid.cast_signed(),
        foreign: false,
        ticket: waiter.ticket,
        session: waiter.session,
        seconds: Some(seconds(waiter.waited)),
        command: waiter.command,
    });
    View {
        name: status.name,
        kind,
        slots: status.slots,
        drained: status.drained,
        holders: holders.collect(),
        waiting: waiting.collect(),
    }
}
