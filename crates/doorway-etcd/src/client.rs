//! Requests to etcd that find their way: an endpoint that does not answer in time is left for the
//! next, and a token that is not accepted any more is fetched again.
//!
//! A request may be sent more than once, and one that seemed lost may arrive late. Whoever sends
//! one has to word it so that this does no harm.

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

/// Between two attempts.
pub(crate) const PAUSE: Duration = Duration::from_millis(50);

/// A connection to etcd, on whichever endpoint answers. Its copies share it.
#[derive(Clone, Debug)]
pub struct Client(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    config: Config,
    channels: Vec<Channel>,
    /// Which of them is asked now.
    current: AtomicUsize,
    login: Option<(String, String)>,
    token: Mutex<Option<MetadataValue<Ascii>>>,
}

impl Client {
    /// Connects, and asks something, so that what is wrong shows here.
    ///
    /// # Errors
    /// When no endpoint answers, a file cannot be read, or the user is not let in.
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

    /// What it was made with.
    pub fn config(&self) -> &Config {
        &self.0.config
    }

    /// The endpoint that is asked now, and its number.
    pub fn channel(&self) -> (usize, Channel) {
        let index = self.0.current.load(Relaxed);
        (index, self.0.channels[index].clone())
    }

    /// This endpoint is no good: the next one is asked from now on, unless somebody has found that
    /// out already.
    pub(crate) fn leave(&self, index: usize) {
        let next = (index + 1) % self.0.channels.len();
        let _ = self.0.current.compare_exchange(index, next, Relaxed, Relaxed);
    }

    /// A request with what it takes to be answered.
    pub(crate) fn request<Q>(&self, message: Q) -> Request<Q> {
        let mut request = Request::new(message);
        // A member that has lost its leader says so, instead of keeping one waiting.
        request.metadata_mut().insert("hasleader", MetadataValue::from_static("true"));
        if let Some(token) = self.0.token.lock().unwrap_or_else(PoisonError::into_inner).clone() {
            request.metadata_mut().insert("token", token);
        }
        request
    }

    /// Reads keys.
    ///
    /// # Errors
    /// When etcd does not answer, or says no.
    pub async fn range(&self, message: RangeRequest) -> Result<RangeResponse, Error> {
        self.ask(message, |channel, request| async move { kv(channel).range(request).await }).await
    }

    /// A transaction. It may be sent more than once.
    ///
    /// # Errors
    /// When etcd does not answer, or says no.
    pub async fn txn(&self, message: TxnRequest) -> Result<TxnResponse, Error> {
        self.ask(message, |channel, request| async move { kv(channel).txn(request).await }).await
    }

    /// A lease, with the number that the message says: so there are never two of them.
    ///
    /// # Errors
    /// When etcd does not answer, or says no.
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

    /// Ends a lease, and with it all its keys.
    ///
    /// # Errors
    /// When etcd does not answer, or says no.
    pub async fn revoke(&self, message: LeaseRevokeRequest) -> Result<LeaseRevokeResponse, Error> {
        self.ask(message, |channel, request| async move {
            LeaseClient::new(channel).lease_revoke(request).await
        })
        .await
    }

    /// What a member says of itself.
    ///
    /// # Errors
    /// When etcd does not answer, or says no.
    pub async fn member(&self) -> Result<StatusResponse, Error> {
        let rpc =
            |channel, request| async move { MaintenanceClient::new(channel).status(request).await };
        self.ask(StatusRequest {}, rpc).await
    }

    /// Asks one endpoint after the other, for as long as patience lasts.
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
        // Passwords are slow to check, on purpose.
        let limit = 4 * self.0.config.limit;
        let token = match self.ask_within(limit, AuthenticateRequest { name, password }, rpc).await
        {
            Ok(answer) => answer.token.parse().ok(),
            // It asks nobody who he is.
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
            // Transport errors come as any of these. etcd's own of the kind: no leader, leader
            // changed, timed out.
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

    /// A stream has ended or was refused: makes it so that the next may fare better.
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

/// However long the line is, it is read whole.
fn kv(channel: Channel) -> KvClient<Channel> {
    KvClient::new(channel).max_decoding_message_size(usize::MAX)
}

/// What an error says, and what lies at the bottom of it.
pub(crate) fn why(says: &str, error: &(dyn std::error::Error + 'static)) -> String {
    let bottom = std::iter::successors(error.source(), |error| error.source())
        .last()
        .map(ToString::to_string);
    match bottom {
        Some(bottom) if bottom != says => format!("{says}: {bottom}"),
        _ => says.into(),
    }
}

/// What to do about an answer that is none.
pub(crate) enum Verdict {
    /// Ask another endpoint.
    Elsewhere,
    /// Fetch a new token.
    Stale,
    /// It will not be otherwise.
    No,
}
