//! Management operations: resize, drain, resume, remove.

use crate::{
    Error, Kind, Lock,
    cfg::Cfg,
    keys::MOST,
    proto::etcdserverpb::TxnRequest,
    txn::{changed, count, created, delete, get, none, put},
};

impl Lock {
    /// Changes the number of slots. A holder whose slot no longer exists keeps it until it releases
    /// it.
    ///
    /// # Errors
    /// When the lock cannot have that many, the lock has been removed, or etcd does not answer.
    pub async fn set_slots(&self, slots: usize) -> Result<(), Error> {
        let most = if self.kind() == Kind::Mutex { 1 } else { MOST };
        if slots == 0 || slots > most {
            return Err(Error::TooMany { name: self.name().into(), asked: slots, most });
        }
        self.change(|cfg| cfg.slots = Some(slots)).await
    }

    /// Stops granting slots. Current holders finish; waiters keep their place.
    ///
    /// # Errors
    /// When the lock has been removed, or etcd does not answer.
    pub async fn drain(&self) -> Result<(), Error> {
        self.change(|cfg| cfg.drained = true).await
    }

    /// Grants slots again after [`drain`](Self::drain).
    ///
    /// # Errors
    /// When the lock has been removed, or etcd does not answer.
    pub async fn resume(&self) -> Result<(), Error> {
        self.change(|cfg| cfg.drained = false).await
    }

    /// Reads, changes, and writes if no other client has changed it meanwhile. Writes nothing if
    /// the settings are the same already: a request that is sent again has no further effect.
    async fn change(&self, change: impl Fn(&mut Cfg)) -> Result<(), Error> {
        loop {
            let (mut cfg, revision) = self.cfg().await?;
            let before = cfg.clone();
            change(&mut cfg);
            if cfg == before {
                return Ok(());
            }
            let txn = TxnRequest::when([changed(self.keys.cfg(), revision)])
                .then(put(self.keys.cfg(), cfg.value()));
            if self.store.client().txn(txn).await?.succeeded {
                return Ok(());
            }
        }
    }

    /// Returns the settings of the lock now, and the revision since which they hold.
    async fn cfg(&self) -> Result<(Cfg, i64), Error> {
        let found = self.store.client().range(get(self.keys.cfg())).await?;
        match found.kvs.first() {
            Some(kv) if kv.create_revision == self.made => {
                Ok((Cfg::parse(&self.keys, &kv.value)?, kv.mod_revision))
            }
            _ => Err(Error::Removed(self.name().into())),
        }
    }

    /// Removes the lock, unless a client holds or waits. Its clients' other keys go with their
    /// leases.
    ///
    /// # Errors
    /// [`Error::Busy`] if a client holds or waits. Also when the lock has been removed already, or
    /// etcd does not answer.
    pub async fn remove(&self) -> Result<(), Error> {
        let txn = TxnRequest::when([none(self.keys.line()), created(self.keys.cfg(), self.made)])
            .then(delete(self.keys.cfg()))
            .then(delete(self.keys.last()))
            .otherwise(count(self.keys.line()))
            .otherwise(count(self.keys.slots()));
        let answer = self.store.client().txn(txn).await?;
        if answer.succeeded {
            return Ok(());
        }
        let mut counts = answer.reads().map(|range| range.count as usize);
        let (line, holders) = (counts.next().unwrap_or(0), counts.next().unwrap_or(0));
        match line {
            0 => Err(Error::Removed(self.name().into())),
            line => Err(Error::Busy {
                name: self.name().into(),
                holders,
                waiting: line.saturating_sub(holders),
            }),
        }
    }
}
