//! One etcd or several, of our own: on free loopback ports, with their data in shared memory, gone
//! when the test is, however it ends.
//!
//! Settings are etcd's own but for that, so that elections and leases take as long as they do
//! elsewhere.

use std::{
    fs::File,
    io::ErrorKind,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};
use serde_json::json;
use tempfile::TempDir;

use super::gateway::Gateway;

/// The files of a server that is spoken to in TLS, on a port of its own besides the plain one.
#[derive(Clone, Debug)]
pub(crate) struct Tls {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    /// Who signed the certificates of the clients; without it they need none.
    pub(crate) clients: Option<PathBuf>,
}

/// Nodes that know each other.
pub(crate) struct Cluster {
    nodes: Vec<Node>,
    _place: TempDir,
}

struct Node {
    arguments: Vec<String>,
    client: SocketAddr,
    secure: SocketAddr,
    log: PathBuf,
    /// None after a kill.
    process: Option<Child>,
}

/// Ports that are free now. All are taken before one is let go, so no two are the same.
fn free_ports(count: usize) -> Vec<SocketAddr> {
    let taken: Vec<_> = (0..count)
        .map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there are free ports"))
        .collect();
    taken.iter().map(|listener| listener.local_addr().expect("it is bound")).collect()
}

impl Cluster {
    /// So many nodes, ready to serve.
    pub(crate) fn start(count: usize) -> Self {
        Self::start_with(count, None)
    }

    /// The same, which can be spoken to in TLS as well.
    pub(crate) fn start_with(count: usize, tls: Option<&Tls>) -> Self {
        // Somebody else may take a port between our look and etcd's.
        for _ in 0..5 {
            if let Some(cluster) = Self::try_start(count, tls) {
                return cluster;
            }
        }
        panic!("etcd does not start: is there no free port on 127.0.0.1?");
    }

    fn try_start(count: usize, tls: Option<&Tls>) -> Option<Self> {
        let shared = Path::new("/dev/shm");
        let place =
            if shared.is_dir() { tempfile::tempdir_in(shared) } else { tempfile::tempdir() };
        let place = place.expect("there is room for a few files");
        let ports = free_ports(3 * count);
        let all = (0..count)
            .map(|i| format!("n{i}=http://{}", ports[3 * i]))
            .collect::<Vec<_>>()
            .join(",");
        let mut cluster = Self { nodes: Vec::new(), _place: place };
        for i in 0..count {
            let [peer, client, secure] = [ports[3 * i], ports[3 * i + 1], ports[3 * i + 2]];
            let [peer_url, mut client_urls] =
                [format!("http://{peer}"), format!("http://{client}")];
            let mut arguments = Vec::new();
            let mut option = |name: &str, value: &str| arguments.push(format!("--{name}={value}"));
            if let Some(Tls { certificate, key, clients }) = tls {
                client_urls += &format!(",https://{secure}");
                option("cert-file", &certificate.display().to_string());
                option("key-file", &key.display().to_string());
                if let Some(authority) = clients {
                    option("client-cert-auth", "true");
                    option("trusted-ca-file", &authority.display().to_string());
                }
            }
            let directory = cluster._place.path().join(format!("n{i}"));
            option("name", &format!("n{i}"));
            option("data-dir", &directory.display().to_string());
            option("listen-peer-urls", &peer_url);
            option("initial-advertise-peer-urls", &peer_url);
            option("listen-client-urls", &client_urls);
            option("advertise-client-urls", &client_urls);
            option("initial-cluster", &all);
            option("initial-cluster-token", &cluster._place.path().display().to_string());
            option("logger", "zap");
            let log = cluster._place.path().join(format!("n{i}.log"));
            cluster.nodes.push(Node { arguments, client, secure, log, process: None });
        }
        for node in &mut cluster.nodes {
            node.start();
        }
        cluster.ready().then_some(cluster)
    }

    /// Waits until every node that runs can serve. False if one has ended instead.
    fn ready(&mut self) -> bool {
        let started = Instant::now();
        for node in &mut self.nodes {
            while let Some(process) = &mut node.process {
                if let Some(status) = process.try_wait().expect("it is our child") {
                    let log = std::fs::read_to_string(&node.log).unwrap_or_default();
                    let last = log.lines().last().unwrap_or_default();
                    eprintln!("etcd has ended ({status}), its last words: {last}");
                    return false;
                }
                // A read that the majority has to agree to, or a question who we are.
                let Err(why) = Gateway::new(node.client).keys("/") else { break };
                if why.contains("user name is empty") {
                    break;
                }
                assert!(
                    started.elapsed() < Duration::from_secs(60),
                    "etcd is not ready after a minute: {why}"
                );
                thread::sleep(Duration::from_millis(20));
            }
        }
        true
    }

    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        self.nodes.iter().map(|node| node.client).collect()
    }

    pub(crate) fn endpoints(&self) -> Vec<String> {
        self.nodes.iter().map(|node| format!("http://{}", node.client)).collect()
    }

    /// Those that speak TLS.
    pub(crate) fn secure_endpoints(&self) -> Vec<String> {
        self.nodes.iter().map(|node| format!("https://localhost:{}", node.secure.port())).collect()
    }

    /// To the first node that runs.
    pub(crate) fn gateway(&self) -> Gateway {
        let node = self.nodes.iter().find(|node| node.process.is_some()).expect("one runs");
        Gateway::new(node.client)
    }

    /// The number of the node that leads, once there is one that a majority of those who answer
    /// names.
    pub(crate) fn leader(&self) -> usize {
        let started = Instant::now();
        loop {
            let status = |node: &Node| {
                Gateway::new(node.client).post("/v3/maintenance/status", &json!({})).ok()
            };
            let answers: Vec<_> = self
                .nodes
                .iter()
                .map(|node| node.process.as_ref().and_then(|_| status(node)))
                .collect();
            let leads = |i: &usize| {
                let Some(answer) = &answers[*i] else { return false };
                let member = &answer["header"]["member_id"];
                let votes =
                    answers.iter().flatten().filter(|answer| answer["leader"] == *member).count();
                2 * votes > self.nodes.len()
            };
            if let Some(leader) = (0..self.nodes.len()).find(leads) {
                return leader;
            }
            assert!(started.elapsed() < Duration::from_secs(30), "no leader after 30 s");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// kill -9.
    pub(crate) fn kill(&mut self, i: usize) {
        self.nodes[i].kill();
    }

    /// Starts a killed node again, on what it has on disk, and waits until it serves.
    pub(crate) fn restart(&mut self, i: usize) {
        self.nodes[i].start();
        assert!(self.ready(), "it has run before");
    }

    /// SIGSTOP: it is there, and does nothing.
    pub(crate) fn stop(&self, i: usize) {
        self.nodes[i].signal(Signal::STOP);
    }

    /// SIGCONT.
    pub(crate) fn go_on(&self, i: usize) {
        self.nodes[i].signal(Signal::CONT);
    }
}

impl Node {
    /// To be called where the test runs: etcd dies with the *thread* that started it.
    fn start(&mut self) {
        let log = File::options()
            .create(true)
            .append(true)
            .open(&self.log)
            .expect("there is room for a log");
        let mut command = Command::new("etcd");
        command.args(&self.arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        // What the machine's own etcd is told is nothing to ours.
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"ETCD") {
                command.env_remove(name);
            }
        }
        if cfg!(target_arch = "aarch64") {
            command.env("ETCD_UNSUPPORTED_ARCH", "arm64");
        }
        dies_with_us(&mut command);
        self.process = Some(command.spawn().unwrap_or_else(|error| match error.kind() {
            ErrorKind::NotFound => panic!("these tests need etcd: apt-get install etcd-server"),
            _ => panic!("etcd does not start: {error}"),
        }));
    }

    fn signal(&self, signal: Signal) {
        let process = self.process.as_ref().expect("it runs");
        kill_process(Pid::from_child(process), signal).expect("it is our child");
    }

    fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The kernel kills it when the thread that starts it ends, however that ends.
pub(crate) fn dies_with_us(command: &mut Command) {
    let die = || Ok(set_parent_process_death_signal(Some(Signal::KILL))?);
    // SAFETY: one system call, which allocates nothing and takes no lock.
    unsafe { command.pre_exec(die) };
}
