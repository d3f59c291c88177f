//! What stands between a client and a node: it can be cut, and it remembers what the client has
//! sent.
//!
//! Cut, it keeps connections open and passes nothing on, which is how a network that has gone looks
//! from a process: nothing comes, and nothing says that nothing will. Mended, it passes on what has
//! piled up.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
    task::JoinHandle,
};

pub(crate) struct Proxy {
    address: SocketAddr,
    node: SocketAddr,
    cut: watch::Sender<bool>,
    /// How often all connections were broken.
    severed: watch::Sender<u64>,
    sent: Arc<Mutex<Vec<Vec<u8>>>>,
    accepts: JoinHandle<()>,
}

impl Proxy {
    pub(crate) async fn to(node: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("there are free ports");
        let address = listener.local_addr().expect("it is bound");
        let ((cut, is_cut), (severed, is_severed)) = (watch::channel(false), watch::channel(0));
        let sent = Arc::new(Mutex::new(Vec::new()));
        let heard = sent.clone();
        let accepts = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let passes = connection(client, node, is_cut.clone(), heard.clone());
                let mut is_severed = is_severed.clone();
                is_severed.mark_unchanged();
                tokio::spawn(async move {
                    tokio::select! {
                        () = passes => {}
                        _ = is_severed.changed() => {}
                    }
                });
            }
        });
        Self { address, node, cut, severed, sent, accepts }
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn cut(&self) {
        self.cut.send_replace(true);
    }

    pub(crate) fn mend(&self) {
        self.cut.send_replace(false);
    }

    /// Breaks the connections that there are. What had piled up is lost.
    pub(crate) fn sever(&self) {
        self.severed.send_modify(|count| *count += 1);
    }

    /// Sends the node once more what the client has sent it on each of its connections so far, each
    /// on a new one: late duplicates of all requests, in one go. Waits until the node has answered
    /// and says no more. How many bytes it sent, and how many came back.
    pub(crate) async fn repeat_everything(&self) -> io::Result<(usize, usize)> {
        let connections = self.sent.lock().expect("nobody panics").clone();
        let (mut sent, mut answered) = (0, 0);
        for bytes in connections {
            let mut stream = TcpStream::connect(self.node).await?;
            stream.write_all(&bytes).await?;
            sent += bytes.len();
            let mut buffer = [0; 1 << 16];
            let quiet = std::time::Duration::from_millis(300);
            while let Ok(Ok(count @ 1..)) =
                tokio::time::timeout(quiet, stream.read(&mut buffer)).await
            {
                answered += count;
            }
        }
        Ok((sent, answered))
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepts.abort();
    }
}

async fn connection(
    client: TcpStream,
    node: SocketAddr,
    mut is_cut: watch::Receiver<bool>,
    heard: Arc<Mutex<Vec<Vec<u8>>>>,
) {
    // A proxy that is cut takes connections, as a listening socket does, and that is all.
    if is_cut.wait_for(|cut| !cut).await.is_err() {
        return;
    }
    let Ok(node) = TcpStream::connect(node).await else { return };
    for stream in [&client, &node] {
        let _ = stream.set_nodelay(true);
    }
    let ((from_client, to_client), (from_node, to_node)) = (client.into_split(), node.into_split());
    let number = {
        let mut heard = heard.lock().expect("nobody panics");
        heard.push(Vec::new());
        heard.len() - 1
    };
    let hear =
        move |bytes: &[u8]| heard.lock().expect("nobody panics")[number].extend_from_slice(bytes);
    tokio::select! {
        () = pass_on(from_client, to_node, is_cut.clone(), hear) => {}
        () = pass_on(from_node, to_client, is_cut, |_| {}) => {}
    }
}

async fn pass_on(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut is_cut: watch::Receiver<bool>,
    hear: impl Fn(&[u8]),
) {
    let mut buffer = [0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        hear(&buffer[..count]);
        if is_cut.wait_for(|cut| !cut).await.is_err()
            || to.write_all(&buffer[..count]).await.is_err()
        {
            return;
        }
    }
}
