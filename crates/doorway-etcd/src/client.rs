//! Requests to etcd that find their way: an endpoint that does not answer in time is left for the next, and a token that is not
//! accepted any more is fetched again.
//!
//! A request may be sent more than once, and one that seemed lost may arrive late. Whoever sends one has to word it so that this
//! does no harm.

use std::{
    future::Future,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::{
    sync::mpsc,
    time::{Instant, sleep, timeout},
};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{
    Code, Request, Response, Status, Streaming,
    metadata::{Ascii, MetadataValue},
    transport::Channel,
};

use crate::{
    Config, Error,
    proto::etcdserverpb::{
        AuthenticateRequest, LeaseGrantRequest, LeaseGrantResponse, LeaseKeepAliveRequest, LeaseKeepAliveResponse,
        LeaseRevokeRequest, LeaseRevokeResponse, RangeRequest, RangeResponse, StatusRequest, StatusResponse,
        TxnRequest, TxnResponse, WatchCreateRequest, WatchProgressRequest, WatchRequest, WatchResponse,
        auth_client::AuthClient, kv_client::KvClient, lease_client::LeaseClient, maintenance_client::MaintenanceClient,
        watch_client::WatchClient, watch_request::RequestUnion,
    },
};

/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(50);

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
        client.range(RangeRequest { count_only: true, ..crate::txn::all(crate::keys::ROOT) }).await?;
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

    /// This endpoint is no good: the next one is asked from now on, unless somebody has found that out already.
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
        let granted =
            self.ask(message, |channel, request| async move { LeaseClient::new(channel).lease_grant(request).await });
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
        self.ask(message, |channel, request| async move { LeaseClient::new(channel).lease_revoke(request).await }).await
    }

    /// What a member says of itself.
    ///
    /// # Errors
    /// When etcd does not answer, or says no.
    pub async fn member(&self) -> Result<StatusResponse, Error> {
        let rpc = |channel, request| async move { MaintenanceClient::new(channel).status(request).await };
        self.ask(StatusRequest {}, rpc).await
    }

    /// Asks one endpoint after the other, for as long as patience lasts.
    async fn ask<Q: Clone, A, F>(&self, message: Q, rpc: impl Fn(Channel, Request<Q>) -> F) -> Result<A, Error>
    where
        F: Future<Output = Result<Response<A>, Status>>,
    {
        let end = Instant::now() + self.0.config.patience;
        let mut renewed = false;
        loop {
            let (index, channel) = self.channel();
            let answer = match timeout(self.0.config.limit, rpc(channel, self.request(message.clone()))).await {
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
        let Some((name, password)) = self.0.login.clone() else { return Err(Error::Login(self.0.config.addresses())) };
        *self.0.token.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let rpc = |channel, request| async move { AuthClient::new(channel).authenticate(request).await };
        let token = match self.ask(AuthenticateRequest { name, password }, rpc).await {
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
            // Transport errors come as any of these. etcd's own of the kind: no leader, leader changed, timed out.
            Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled | Code::Unknown | Code::Internal => {
                Verdict::Elsewhere
            }
            Code::ResourceExhausted if says("too many requests") => Verdict::Elsewhere,
            _ => Verdict::No,
        }
    }

    pub(crate) fn error(&self, status: &Status) -> Error {
        let endpoints = self.0.config.addresses();
        let says = |text| status.message().contains(text);
        match self.judge(status) {
            Verdict::Elsewhere => Error::Unreachable { endpoints, why: why(status) },
            Verdict::Stale => Error::Login(endpoints),
            Verdict::No if says("invalid user ID or password") => {
                Error::Password(self.0.login.as_ref().map_or(String::new(), |(user, _)| user.clone()))
            }
            Verdict::No if says("user name is empty") => Error::Login(endpoints),
            Verdict::No if status.code() == Code::PermissionDenied => Error::Permission(crate::keys::ROOT.into()),
            Verdict::No => Error::Store(status.message().into()),
        }
    }

    /// Opens watches on one stream, with the numbers from 0 on, and waits until they watch. A stream ends with its connection: open
    /// another then.
    ///
    /// # Errors
    /// When the endpoint that is asked now does not answer, or says no. The next one is asked next.
    pub async fn watch(&self, watches: impl IntoIterator<Item = WatchCreateRequest>) -> Result<Watch, Error> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut count = 0;
        for create in watches {
            let create = WatchCreateRequest { watch_id: count, ..create };
            let _ = sender.send(WatchRequest { request_union: Some(RequestUnion::CreateRequest(create)) });
            count += 1;
        }
        let (index, channel) = self.channel();
        let request = self.request(UnboundedReceiverStream::new(receiver));
        let open = async {
            let answers =
                WatchClient::new(channel).max_decoding_message_size(usize::MAX).watch(request).await?.into_inner();
            let mut watch = Watch { client: self.clone(), index, sender, answers, early: Vec::new() };
            while count > 0 {
                let answer = watch.answer().await?;
                if answer.created && !answer.canceled {
                    count -= 1;
                } else if answer.canceled {
                    return Err(refusal(&answer));
                } else {
                    watch.early.insert(0, answer);
                }
            }
            Ok(watch)
        };
        match timeout(self.0.config.limit, open).await {
            Ok(Ok(watch)) => Ok(watch),
            Ok(Err(status)) => Err(self.broken(index, &status).await),
            Err(_) => Err(self.broken(index, &Status::deadline_exceeded("it does not answer in time")).await),
        }
    }

    /// Opens a stream that keeps a lease alive; the first request is sent already.
    pub(crate) async fn keep_alive(&self, id: i64) -> Result<KeepAlive, Error> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let _ = sender.send(LeaseKeepAliveRequest { id });
        let (index, channel) = self.channel();
        let request = self.request(UnboundedReceiverStream::new(receiver));
        match timeout(self.0.config.limit, LeaseClient::new(channel).lease_keep_alive(request)).await {
            Ok(Ok(answers)) => Ok(KeepAlive { client: self.clone(), index, id, sender, answers: answers.into_inner() }),
            Ok(Err(status)) => Err(self.broken(index, &status).await),
            Err(_) => Err(self.broken(index, &Status::deadline_exceeded("it does not answer in time")).await),
        }
    }

    /// A stream has ended or was refused: makes it so that the next may fare better.
    async fn broken(&self, index: usize, status: &Status) -> Error {
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

/// What it says, and what lies at the bottom of it.
fn why(status: &Status) -> String {
    let first: Option<&dyn std::error::Error> = std::error::Error::source(status);
    let last = std::iter::successors(first, |error| error.source()).last().map(ToString::to_string);
    match last {
        Some(last) if last != status.message() => format!("{}: {last}", status.message()),
        _ => status.message().into(),
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

/// Why a watch was not opened, or does not go on.
fn refusal(answer: &WatchResponse) -> Status {
    let why = answer.cancel_reason.clone();
    if answer.compact_revision > 0 {
        Status::out_of_range(format!("what came before revision {} is forgotten", answer.compact_revision))
    } else if why.contains("auth token") {
        Status::unauthenticated(why)
    } else if why.contains("permission denied") {
        Status::permission_denied(why)
    } else {
        Status::unavailable(why)
    }
}

/// Watches on one stream.
#[derive(Debug)]
pub struct Watch {
    client: Client,
    index: usize,
    sender: mpsc::UnboundedSender<WatchRequest>,
    answers: Streaming<WatchResponse>,
    /// What came before all watches had been opened, the last first.
    early: Vec<WatchResponse>,
}

impl Watch {
    async fn answer(&mut self) -> Result<WatchResponse, Status> {
        self.answers.message().await?.ok_or_else(|| Status::unavailable("the stream has ended"))
    }

    /// What has happened next.
    ///
    /// # Errors
    /// When the stream has ended, or etcd says no.
    pub async fn next(&mut self) -> Result<WatchResponse, Error> {
        if let Some(answer) = self.early.pop() {
            return Ok(answer);
        }
        let status = match self.answer().await {
            Ok(answer) if answer.canceled => refusal(&answer),
            Ok(answer) => return Ok(answer),
            Err(status) => status,
        };
        Err(self.client.broken(self.index, &status).await)
    }

    /// Asks for a sign of life: an answer without events, with the revision up to which all has been said.
    pub fn poke(&self) {
        let poke = RequestUnion::ProgressRequest(WatchProgressRequest {});
        let _ = self.sender.send(WatchRequest { request_union: Some(poke) });
    }

    /// Nothing comes from this endpoint: the next one is asked from now on.
    pub(crate) fn give_up(self) {
        self.client.leave(self.index);
    }
}

/// A stream that keeps a lease alive.
#[derive(Debug)]
pub(crate) struct KeepAlive {
    client: Client,
    index: usize,
    id: i64,
    sender: mpsc::UnboundedSender<LeaseKeepAliveRequest>,
    answers: Streaming<LeaseKeepAliveResponse>,
}

impl KeepAlive {
    /// Asks for more time.
    pub(crate) fn send(&self) {
        let _ = self.sender.send(LeaseKeepAliveRequest { id: self.id });
    }

    /// How long the lease lasts from when that was asked; zero if it is gone.
    pub(crate) async fn answer(&mut self) -> Result<Duration, Error> {
        let limit = self.client.0.config.limit;
        let status = match timeout(limit, self.answers.message()).await {
            Ok(Ok(Some(answer))) => return Ok(Duration::from_secs(answer.ttl.max(0).unsigned_abs())),
            Ok(Ok(None)) => Status::unavailable("the stream has ended"),
            Ok(Err(status)) => status,
            Err(_) => Status::deadline_exceeded("it does not answer in time"),
        };
        Err(self.client.broken(self.index, &status).await)
    }
}
