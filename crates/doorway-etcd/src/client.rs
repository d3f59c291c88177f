//! Requests to etcd. If an endpoint does not answer in time, the client asks the next one. If a
//! token is no longer accepted, the client fetches a new one.
//!
//! A request may be sent more than once, and a request that seemed lost may arrive late. So every
//! request must be worded so that this does no harm.

use std::{
    future::Future,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::time::{Instant, sleep, timeout};
use tonic::{
    Code, Request, Response, Status,
    metadata::{Ascii, MetadataValue},
    transport::Channel,
};

use crate::{
    Config, Error,
    proto::etcdserverpb::{
        AuthenticateRequest, LeaseGrantRequest, LeaseGrantResponse, LeaseRevokeRequest,
        LeaseRevokeResponse, RangeRequest, RangeResponse, StatusRequest, StatusResponse,
        TxnRequest, TxnResponse, auth_client::AuthClient, kv_client::KvClient,
        lease_client::LeaseClient, maintenance_client::MaintenanceClient,
    },
};

/// The pause between two attempts.
pub(crate) const PAUSE: Duration = Duration::from_millis(50);

/// A connection to etcd, on any endpoint that answers. Clones share it.
#[derive(Clone, Debug)]
pub struct Client(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    config: Config,
    channels: Vec<Channel>,
    /// The index of the endpoint that is asked now.
    current: AtomicUsize,
    login: Option<(String, String)>,
    token: Mutex<Option<MetadataValue<Ascii>>>,
}

impl Client {
    /// Connects, and makes a first request, so that errors show here.
    ///
    /// # Errors
    /// When no endpoint answers, a file cannot be read, or etcd rejects the user.
    pub async fn connect(config: Config) -> Result<Self, Error> {
        let channels = config.endpoints()?.iter().map(|endpoint| endpoint.connect_lazy()).collect();
        let (login, token, current) = (config.login()?, Mutex::default(), AtomicUsize::new(0));
        let client = Self(Arc::new(Inner { config, channels, current, login, token }));
        if client.0.login.is_some() {
            client.authenticate().await?;
        }
        client
            .range(RangeRequest { count_only: true, ..crate::txn::all(crate::keys::ROOT) })
            .await?;
        Ok(client)
    }

    /// Returns the configuration of the client.
    pub fn config(&self) -> &Config {
        &self.0.config
    }

    /// Returns the endpoint that is asked now, and its index.
    pub fn channel(&self) -> (usize, Channel) {
        let index = self.0.current.load(Relaxed);
        (index, self.0.channels[index].clone())
    }

    /// Leaves an endpoint that does not work: the next one is asked from now on, unless another
    /// task has switched already.
    pub(crate) fn leave(&self, index: usize) {
        let next = (index + 1) % self.0.channels.len();
        let _ = self.0.current.compare_exchange(index, next, Relaxed, Relaxed);
    }

    /// Wraps a message in a request with the metadata that etcd needs.
    pub(crate) fn request<Q>(&self, message: Q) -> Request<Q> {
        let mut request = Request::new(message);
        // A member that has lost its leader reports that, instead of keeping the client waiting.
        request.metadata_mut().insert("hasleader", MetadataValue::from_static("true"));
        if let Some(token) = self.0.token.lock().unwrap_or_else(PoisonError::into_inner).clone() {
            request.metadata_mut().insert("token", token);
        }
        request
    }

    /// Reads keys.
    ///
    /// # Errors
    /// When etcd does not answer, or reports an error.
    pub async fn range(&self, message: RangeRequest) -> Result<RangeResponse, Error> {
        self.ask(message, |channel, request| async move { kv(channel).range(request).await }).await
    }

    /// Runs a transaction. It may be sent more than once.
    ///
    /// # Errors
    /// When etcd does not answer, or reports an error.
    pub async fn txn(&self, message: TxnRequest) -> Result<TxnResponse, Error> {
        self.ask(message, |channel, request| async move { kv(channel).txn(request).await }).await
    }

    /// Creates a lease with the ID in the message, so that a repeated request creates no second
    /// one.
    ///
    /// # Errors
    /// When etcd does not answer, or reports an error.
    pub async fn grant(&self, message: LeaseGrantRequest) -> Result<LeaseGrantResponse, Error> {
        let granted = self.ask(message, |channel, request| async move {
            LeaseClient::new(channel).lease_grant(request).await
        });
        match granted.await {
            Err(Error::Store(why)) if why.contains("lease already exists") => {
                Ok(LeaseGrantResponse { id: message.id, ttl: message.ttl, ..Default::default() })
            }
            granted => granted,
        }
    }

    /// Ends a lease, and deletes all its keys.
    ///
    /// # Errors
    /// When etcd does not answer, or reports an error.
    pub async fn revoke(&self, message: LeaseRevokeRequest) -> Result<LeaseRevokeResponse, Error> {
        self.ask(message, |channel, request| async move {
            LeaseClient::new(channel).lease_revoke(request).await
        })
        .await
    }

    /// Returns the status of a member.
    ///
    /// # Errors
    /// When etcd does not answer, or reports an error.
    pub async fn member(&self) -> Result<StatusResponse, Error> {
        let rpc =
            |channel, request| async move { MaintenanceClient::new(channel).status(request).await };
        self.ask(StatusRequest {}, rpc).await
    }

    /// Asks one endpoint after another until the configured time is over.
    async fn ask<Q: Clone, A, F>(
        &self,
        message: Q,
        rpc: impl Fn(Channel, Request<Q>) -> F,
    ) -> Result<A, Error>
    where
        F: Future<Output = Result<Response<A>, Status>>,
    {
        self.ask_within(self.0.config.limit, message, rpc).await
    }

    async fn ask_within<Q: Clone, A, F>(
        &self,
        limit: Duration,
        message: Q,
        rpc: impl Fn(Channel, Request<Q>) -> F,
    ) -> Result<A, Error>
    where
        F: Future<Output = Result<Response<A>, Status>>,
    {
        let end = Instant::now() + self.0.config.patience;
        let mut renewed = false;
        loop {
            let (index, channel) = self.channel();
            let answer = match timeout(limit, rpc(channel, self.request(message.clone()))).await {
                Ok(answer) => answer.map(Response::into_inner),
                Err(_) => Err(Status::deadline_exceeded("it does not answer in time")),
            };
            let status = match answer {
                Ok(answer) => return Ok(answer),
                Err(status) => status,
            };
            match self.judge(&status) {
                Verdict::Elsewhere => self.leave(index),
                Verdict::Stale if !renewed => {
                    Box::pin(self.authenticate()).await?;
                    renewed = true;
                    continue;
                }
                _ => return Err(self.error(&status)),
            }
            if Instant::now() + PAUSE >= end {
                return Err(self.error(&status));
            }
            sleep(PAUSE).await;
        }
    }

    /// Fetches a token.
    pub(crate) async fn authenticate(&self) -> Result<(), Error> {
        let Some((name, password)) = self.0.login.clone() else {
            return Err(Error::Login(self.0.config.addresses()));
        };
        *self.0.token.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let rpc =
            |channel, request| async move { AuthClient::new(channel).authenticate(request).await };
        // etcd makes passwords slow to check, on purpose.
        let limit = 4 * self.0.config.limit;
        let token = match self.ask_within(limit, AuthenticateRequest { name, password }, rpc).await
        {
            Ok(answer) => answer.token.parse().ok(),
            // This etcd authenticates no users.
            Err(Error::Store(why)) if why.contains("authentication is not enabled") => None,
            Err(error) => return Err(error),
        };
        *self.0.token.lock().unwrap_or_else(PoisonError::into_inner) = token;
        Ok(())
    }

    pub(crate) fn judge(&self, status: &Status) -> Verdict {
        let says = |text| status.message().contains(text);
        match status.code() {
            Code::Unauthenticated => Verdict::Stale,
            Code::InvalidArgument if says("revision of auth store is old") => Verdict::Stale,
            // Transport errors come as any of these codes. So do etcd's own errors of this kind: no
            // leader, leader changed, timed out.
            Code::Unavailable
            | Code::DeadlineExceeded
            | Code::Cancelled
            | Code::Unknown
            | Code::Internal => Verdict::Elsewhere,
            Code::ResourceExhausted if says("too many requests") => Verdict::Elsewhere,
            _ => Verdict::No,
        }
    }

    pub(crate) fn error(&self, status: &Status) -> Error {
        let endpoints = self.0.config.addresses();
        let says = |text| status.message().contains(text);
        match self.judge(status) {
            Verdict::Elsewhere => {
                Error::Unreachable { endpoints, why: why(status.message(), status) }
            }
            Verdict::Stale => Error::Login(endpoints),
            Verdict::No if says("invalid user ID or password") => Error::Password(
                self.0.login.as_ref().map_or(String::new(), |(user, _)| user.clone()),
            ),
            Verdict::No if says("user name is empty") => Error::Login(endpoints),
            Verdict::No if status.code() == Code::PermissionDenied => {
                Error::Permission(crate::keys::ROOT.into())
            }
            Verdict::No => Error::Store(status.message().into()),
        }
    }

    /// Handles a stream that has ended or was refused, so that the next attempt may succeed.
    pub(crate) async fn broken(&self, index: usize, status: &Status) -> Error {
        match self.judge(status) {
            Verdict::Elsewhere => self.leave(index),
            Verdict::Stale if self.0.login.is_some() => {
                let _ = self.authenticate().await;
            }
            _ => {}
        }
        self.error(status)
    }
}

/// Creates a client for keys that reads a queue of any length as a whole.
fn kv(channel: Channel) -> KvClient<Channel> {
    KvClient::new(channel).max_decoding_message_size(usize::MAX)
}

/// Returns the message of an error, with that of its root cause.
pub(crate) fn why(says: &str, error: &(dyn std::error::Error + 'static)) -> String {
    let bottom = std::iter::successors(error.source(), |error| error.source())
        .last()
        .map(ToString::to_string);
    match bottom {
        Some(bottom) if bottom != says => format!("{says}: {bottom}"),
        _ => says.into(),
    }
}

/// What to do after an error.
pub(crate) enum Verdict {
    /// Ask another endpoint.
    Elsewhere,
    /// Fetch a new token.
    Stale,
    /// Fail: another attempt would fail as well.
    No,
}
