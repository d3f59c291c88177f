//! Streams of etcd: watches, and the stream that keeps a lease alive. A stream stays on its
//! endpoint and ends with its connection; then another has to be opened.

use std::time::Duration;

use tokio::{sync::mpsc, time::timeout};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Status, Streaming};

use crate::{
    Client, Error,
    proto::etcdserverpb::{
        LeaseKeepAliveRequest, LeaseKeepAliveResponse, WatchCancelRequest, WatchCreateRequest,
        WatchProgressRequest, WatchRequest, WatchResponse, lease_client::LeaseClient,
        watch_client::WatchClient, watch_request::RequestUnion,
    },
};

impl Client {
    /// Opens watches on one stream, with numbers from 0 on, and waits until they are active. A
    /// stream ends with its connection: open another then.
    ///
    /// # Errors
    /// When the current endpoint does not answer, or reports an error. The next request asks the
    /// next endpoint.
    pub async fn watch(
        &self,
        watches: impl IntoIterator<Item = WatchCreateRequest>,
    ) -> Result<Watch, Error> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut count = 0;
        for create in watches {
            let create = WatchCreateRequest { watch_id: count, ..create };
            let _ = sender
                .send(WatchRequest { request_union: Some(RequestUnion::CreateRequest(create)) });
            count += 1;
        }
        let (index, channel) = self.channel();
        let request = self.request(UnboundedReceiverStream::new(receiver));
        let open = async {
            let answers = WatchClient::new(channel)
                .max_decoding_message_size(usize::MAX)
                .watch(request)
                .await?
                .into_inner();
            let mut watch =
                Watch { client: self.clone(), index, sender, answers, early: Vec::new() };
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
        match timeout(self.config().limit, open).await {
            Ok(Ok(watch)) => Ok(watch),
            Ok(Err(status)) => Err(self.broken(index, &status).await),
            Err(_) => Err(self
                .broken(index, &Status::deadline_exceeded("it does not answer in time"))
                .await),
        }
    }

    /// Opens a stream that keeps a lease alive, and sends the first request.
    pub(crate) async fn keep_alive(&self, id: i64) -> Result<KeepAlive, Error> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let _ = sender.send(LeaseKeepAliveRequest { id });
        let (index, channel) = self.channel();
        let request = self.request(UnboundedReceiverStream::new(receiver));
        match timeout(self.config().limit, LeaseClient::new(channel).lease_keep_alive(request))
            .await
        {
            Ok(Ok(answers)) => Ok(KeepAlive {
                client: self.clone(),
                index,
                id,
                sender,
                answers: answers.into_inner(),
            }),
            Ok(Err(status)) => Err(self.broken(index, &status).await),
            Err(_) => Err(self
                .broken(index, &Status::deadline_exceeded("it does not answer in time"))
                .await),
        }
    }
}

/// Returns why a watch was not opened, or has ended.
fn refusal(answer: &WatchResponse) -> Status {
    let why = answer.cancel_reason.clone();
    if answer.compact_revision > 0 {
        Status::out_of_range(format!(
            "what came before revision {} is forgotten",
            answer.compact_revision
        ))
    } else if why.contains("auth token") {
        Status::unauthenticated(why)
    } else if why.contains("permission denied") {
        Status::permission_denied(why)
    } else {
        Status::unavailable(why)
    }
}

/// Adds watches to a stream, and cancels them.
#[derive(Clone, Debug)]
pub(crate) struct Sender(mpsc::UnboundedSender<WatchRequest>);

impl Sender {
    pub(crate) fn new(sender: mpsc::UnboundedSender<WatchRequest>) -> Self {
        Self(sender)
    }

    /// Opens another watch. Its number is in the message, and must be new.
    pub(crate) fn add(&self, create: WatchCreateRequest) {
        let _ =
            self.0.send(WatchRequest { request_union: Some(RequestUnion::CreateRequest(create)) });
    }

    /// Ends the watch with this number.
    pub(crate) fn cancel(&self, watch_id: i64) {
        let cancel = RequestUnion::CancelRequest(WatchCancelRequest { watch_id });
        let _ = self.0.send(WatchRequest { request_union: Some(cancel) });
    }
}

/// Watches on one stream.
#[derive(Debug)]
pub struct Watch {
    client: Client,
    index: usize,
    sender: mpsc::UnboundedSender<WatchRequest>,
    answers: Streaming<WatchResponse>,
    /// Answers that arrived before all watches were open, the last first.
    early: Vec<WatchResponse>,
}

impl Watch {
    async fn answer(&mut self) -> Result<WatchResponse, Status> {
        self.answers.message().await?.ok_or_else(|| Status::unavailable("the stream has ended"))
    }

    /// Waits for the next events.
    ///
    /// # Errors
    /// When the stream has ended, or etcd reports an error.
    pub async fn next(&mut self) -> Result<WatchResponse, Error> {
        if let Some(answer) = self.early.pop() {
            return Ok(answer);
        }
        let status = match self.answer().await {
            // etcd gives a reason, or the revision that it has compacted, unless this client has
            // cancelled the watch.
            Ok(answer)
                if answer.canceled
                    && (answer.compact_revision > 0 || !answer.cancel_reason.is_empty()) =>
            {
                refusal(&answer)
            }
            Ok(answer) => return Ok(answer),
            Err(status) => status,
        };
        Err(self.client.broken(self.index, &status).await)
    }

    pub(crate) fn sender(&self) -> Sender {
        Sender::new(self.sender.clone())
    }

    /// Asks for a progress answer: one without events, with the revision up to which all events
    /// have been sent.
    pub fn poke(&self) {
        let poke = RequestUnion::ProgressRequest(WatchProgressRequest {});
        let _ = self.sender.send(WatchRequest { request_union: Some(poke) });
    }

    /// Gives up an endpoint that sends nothing: the next one is asked from now on.
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
    /// Asks etcd to extend the lease.
    pub(crate) fn send(&self) {
        let _ = self.sender.send(LeaseKeepAliveRequest { id: self.id });
    }

    /// Returns how long the lease lasts from when the extension was asked for; zero if it is gone.
    pub(crate) async fn answer(&mut self) -> Result<Duration, Error> {
        let limit = self.client.config().limit;
        let status = match timeout(limit, self.answers.message()).await {
            Ok(Ok(Some(answer))) => {
                return Ok(Duration::from_secs(answer.ttl.max(0).unsigned_abs()));
            }
            Ok(Ok(None)) => Status::unavailable("the stream has ended"),
            Ok(Err(status)) => status,
            Err(_) => Status::deadline_exceeded("it does not answer in time"),
        };
        Err(self.client.broken(self.index, &status).await)
    }
}
