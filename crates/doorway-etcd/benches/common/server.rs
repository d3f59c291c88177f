//! An etcd server for one benchmark: one node on free loopback ports, killed by its PID at the end.

use std::{
    error::Error,
    net::TcpListener,
    process::{Child, Command, Stdio},
    time::Duration,
};

use doorway_etcd::{Client, Config};

pub(crate) type Failure = Box<dyn Error + Send + Sync>;

/// A running server. Dropping it kills the process and deletes its data.
pub(crate) struct Server {
    child: Child,
    endpoint: String,
    _data: tempfile::TempDir,
}

impl Server {
    /// Starts etcd, and waits until it answers.
    pub(crate) async fn start() -> Result<Self, Failure> {
        let data = tempfile::tempdir()?;
        let listeners = [TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?];
        let [client, peer] =
            listeners.map(|listener| listener.local_addr().map(|at| format!("http://{at}")));
        let (client, peer) = (client?, peer?);
        let child = Command::new("etcd")
            .arg("--data-dir")
            .arg(data.path())
            .args(["--name", "bench", "--initial-cluster", &format!("bench={peer}")])
            .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("etcd: {error}; install Debian's etcd-server"))?;
        let server = Self { child, endpoint: client, _data: data };
        Client::connect(
            server.config(Duration::from_secs(10)).with_patience(Duration::from_secs(30)),
        )
        .await?;
        Ok(server)
    }

    /// Returns the settings of a client whose lease lasts this long.
    pub(crate) fn config(&self, ttl: Duration) -> Config {
        Config::new([self.endpoint.clone()]).with_ttl(ttl).with_limit(Duration::from_secs(5))
    }

    /// Returns the PID of the server.
    #[allow(dead_code, reason = "only one of the benchmarks measures the CPU time of the server")]
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
