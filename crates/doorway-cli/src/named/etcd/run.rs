//! `doorway run --etcd`.

use std::{io, process::Command, time::Duration};

use doorway_etcd::{
    Error, GroupLock, Lock, NotYet, Permit, Place, Semaphore, keys::ROOT, txn::get,
};
use rustix::{io::Errno, process::Pid};
use signal_hook::low_level::emulate_default_handler;
use tokio::{task::JoinHandle, time::timeout};

use super::{
    Cluster,
    calls::Calls,
    command::{self, Stop},
    view,
};
use crate::{
    args::{etcd::Etcd, named::Run},
    error::Failure,
    named::{
        run::{Asked, Held},
        supervise::Watch,
        view::{View, Who},
    },
    output,
};

/// How long the process tries to give back at its end what would be freed later anyway.
const GOODBYE: Duration = Duration::from_secs(2);

/// A lock on etcd, of the kind that the user asked for.
pub(crate) struct Remote {
    cluster: Cluster,
    lock: Kind,
    /// Identifies the cluster.
    id: u64,
    stop: Stop,
}

enum Kind {
    Slots(Semaphore),
    Sessions(GroupLock, String),
}

impl Remote {
    pub(crate) fn open(etcd: &Etcd, args: &Run) -> Result<Self, Failure> {
        let words: Vec<_> = args.command.iter().map(|word| word.to_string_lossy()).collect();
        let cluster = Cluster::connect(etcd, |config| {
            let config = config.with_command(words.join(" "));
            args.lease.ttl.into_iter().fold(config, |config, ttl| config.with_ttl(ttl))
        })?;
        let (lock, id) = cluster.wait_for(async {
            let store = &cluster.store;
            let lock = match &args.session {
                None => Kind::Slots(store.semaphore(&args.name, args.slots.unwrap_or(1)).await?),
                Some(session) => {
                    Kind::Sessions(store.group_lock(&args.name, args.slots).await?, session.clone())
                }
            };
            Ok((
                lock,
                store.client().range(get(ROOT)).await?.header.map_or(0, |header| header.cluster_id),
            ))
        })?;
        Ok(Self {
            cluster,
            lock,
            id,
            stop: Stop { signal: args.lease.lost_signal, grace: args.lease.lost_grace },
        })
    }

    fn lock(&self) -> &Lock {
        match &self.lock {
            Kind::Slots(lock) => lock,
            Kind::Sessions(lock, _) => lock,
        }
    }

    fn calls(&self) -> Result<Calls, Failure> {
        let _inside = self.cluster.runtime.enter();
        Calls::new().map_err(|error| Failure::Supervise { error })
    }

    /// Waits for a future, unless a signal ends this process, which then leaves nothing behind.
    fn unless_called<T>(&self, calls: &mut Calls, future: impl Future<Output = T>) -> T {
        let called = self.cluster.runtime.block_on(async {
            tokio::select! {
                done = future => Ok(done),
                signal = calls.next() => Err(signal),
            }
        });
        called.unwrap_or_else(|signal| self.end_by(signal))
    }

    /// Ends this process as the signal would have, but leaves nothing behind in the store.
    fn end_by(&self, signal: i32) -> ! {
        self.close();
        let _ = emulate_default_handler(signal);
        unreachable!("each of those signals ends a process")
    }

    fn close(&self) {
        // If that fails, the lease ends by itself.
        let _ = self
            .cluster
            .runtime
            .block_on(async { timeout(GOODBYE, self.cluster.store.close()).await });
    }
}

/// Runs at every exit: no client is to wait for what is not used any more.
impl Drop for Remote {
    fn drop(&mut self) {
        self.close();
    }
}

/// A place in the queue.
pub(crate) struct Waiting {
    place: Place,
    calls: Calls,
}

impl Asked for Remote {
    type Place<'a> = Waiting;
    type Permit<'a> = Holding<'a>;

    fn id(&self) -> String {
        format!("etcd:{:x}/{}", self.id, self.lock().name())
    }

    fn view(&self) -> Result<View, Failure> {
        self.cluster.wait_for(async { Ok(view(self.lock().status().await?)) })
    }

    fn holders(&self) -> Result<Vec<Who>, Failure> {
        Ok(self.view()?.holders)
    }

    fn try_enter(&self) -> Result<Option<Holding<'_>>, Failure> {
        let mut calls = self.calls()?;
        let permit = self.unless_called(&mut calls, async {
            match &self.lock {
                Kind::Slots(lock) => lock.try_acquire().await,
                Kind::Sessions(lock, session) => lock.try_acquire(session).await,
            }
        })?;
        Ok(permit.map(|permit| Holding { lock: self, permit, calls, guard: None }))
    }

    /// Ignores the limit: how long etcd is asked is up to its client, and an etcd that does not
    /// answer is an error.
    fn enter(&self, _: Option<Duration>) -> Result<Option<Waiting>, Failure> {
        let mut calls = self.calls()?;
        let session = match &self.lock {
            Kind::Slots(_) => None,
            Kind::Sessions(_, session) => Some(session.as_str()),
        };
        let place = self.unless_called(&mut calls, self.lock().enter(session))?;
        Ok(Some(Waiting { place, calls }))
    }

    fn leave(waiting: Waiting) {
        drop(waiting);
    }

    fn ahead(waiting: &Waiting) -> usize {
        waiting.place.ahead()
    }

    fn wait(
        &self,
        waiting: Waiting,
        limit: Duration,
    ) -> Result<Result<Holding<'_>, Waiting>, Failure> {
        let Waiting { place, mut calls } = waiting;
        match self.unless_called(&mut calls, place.wait_timeout(limit)) {
            Ok(permit) => Ok(Ok(Holding { lock: self, permit, calls, guard: None })),
            Err(NotYet::Late(place)) => Ok(Err(Waiting { place, calls })),
            Err(NotYet::Failed(error)) => Err(error.into()),
        }
    }
}

/// A slot, and the means to stop the command when the slot is lost.
pub(crate) struct Holding<'a> {
    lock: &'a Remote,
    permit: Permit,
    calls: Calls,
    guard: Option<JoinHandle<()>>,
}

impl Held for Holding<'_> {
    fn slot(&self) -> usize {
        self.permit.slot()
    }

    fn ticket(&self) -> u64 {
        self.permit.ticket()
    }

    fn spawn(&mut self, command: &mut Command) -> Result<io::Result<(Pid, Watch)>, Failure> {
        // From now on signals are forwarded to the command. Earlier signals are for this process.
        if let Some(signal) = self.calls.came() {
            self.lock.end_by(signal);
        }
        let cannot = |error| Failure::Supervise { error };
        if self.permit.is_lost() {
            return Ok(Err(Errno::STALE.into()));
        }
        let watch = Watch::before_command().map_err(cannot)?;
        let mut child = match command::spawn(command) {
            Ok(child) => child,
            Err(error) => return Ok(Err(error)),
        };
        let handle = command::handle(&child).inspect_err(|_| _ = child.kill()).map_err(cannot)?;
        let (lost, stop, name) =
            (self.permit.lost(), self.lock.stop, self.lock.lock().name().to_string());
        self.guard = Some(self.lock.cluster.runtime.spawn(async move {
            lost.await;
            output::say(format_args!("{name} is lost: the command is stopped"));
            stop.stop(handle).await;
        }));
        Ok(Ok((Pid::from_child(&child), watch)))
    }

    fn give_back(self) -> Result<(), Failure> {
        if let Some(guard) = self.guard {
            guard.abort();
            let _ = self.lock.cluster.runtime.block_on(guard);
        }
        if self.permit.is_lost() {
            return Err(Error::Lost(self.lock.lock().name().into()).into());
        }
        // The next waiter gets the slot with this, and not only when it learns of the lease's end.
        let release = async { timeout(GOODBYE, self.permit.release()).await };
        let _ = self.lock.cluster.runtime.block_on(release);
        Ok(())
    }
}
