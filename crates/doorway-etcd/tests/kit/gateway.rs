//! etcd's own JSON gateway, over a plain socket: what the tests ask the store without going through
//! the crate that they test.
//!
//! HTTP/1.0, so that an answer is what comes until the connection is closed, and a stream one JSON
//! value per line.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use super::history::{Change, Event};

/// One endpoint, and as whom to speak.
#[derive(Clone, Debug)]
pub(crate) struct Gateway {
    address: SocketAddr,
    token: Option<String>,
}

/// Keys and values are bytes, which the gateway wants in base64.
pub(crate) fn bytes(text: &str) -> String {
    BASE64_STANDARD.encode(text)
}

fn text(value: &Value) -> String {
    let bytes = BASE64_STANDARD
        .decode(value.as_str().unwrap_or_default())
        .expect("the gateway speaks base64");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// 64-bit numbers are strings, and zero is left out.
fn number(value: &Value) -> i64 {
    value.as_str().map_or(0, |digits| digits.parse().expect("a number"))
}

impl Gateway {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self { address, token: None }
    }

    /// Speaks as this user from now on.
    pub(crate) fn log_in(&mut self, user: &str, password: &str) -> Result<(), String> {
        self.token = None;
        let answer =
            self.post("/v3/auth/authenticate", &json!({"name": user, "password": password}))?;
        self.token = Some(answer["token"].as_str().ok_or("no token")?.to_owned());
        Ok(())
    }

    fn send(&self, path: &str, body: &Value) -> std::io::Result<BufReader<TcpStream>> {
        let limit = Duration::from_secs(3);
        let mut stream = TcpStream::connect_timeout(&self.address, limit)?;
        stream.set_read_timeout(Some(limit))?;
        let body = body.to_string();
        let token = self
            .token
            .as_ref()
            .map(|token| format!("Authorization: {token}\r\n"))
            .unwrap_or_default();
        let length = body.len();
        write!(stream, "POST {path} HTTP/1.0\r\n{token}Content-Length: {length}\r\n\r\n{body}")?;
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        while reader.read_line(&mut line)? > 2 {
            line.clear();
        }
        Ok(reader)
    }

    /// How many transactions of gRPC clients the node has carried out.
    pub(crate) fn transactions(&self) -> u64 {
        self.metric("grpc_server_handled_total{grpc_code=\"OK\",grpc_method=\"Txn\"")
    }

    /// How many events the node has sent to watches, its own among them.
    pub(crate) fn events_sent(&self) -> u64 {
        self.metric("etcd_debugging_mvcc_events_total")
    }

    fn metric(&self, name: &str) -> u64 {
        let mut stream = TcpStream::connect(self.address).expect("it listens");
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").expect("it listens");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        let line = answer.lines().find(|line| line.starts_with(name)).expect("it counts");
        line.rsplit(' ').next().and_then(|count| count.parse().ok()).expect("a number")
    }

    /// One question, one answer.
    pub(crate) fn post(&self, path: &str, body: &Value) -> Result<Value, String> {
        let mut answer = String::new();
        self.send(path, body)
            .and_then(|mut reader| reader.read_to_string(&mut answer))
            .map_err(|e| e.to_string())?;
        let value: Value = serde_json::from_str(&answer).map_err(|e| format!("{e}: {answer}"))?;
        if value.get("error").is_some() { Err(value["error"].to_string()) } else { Ok(value) }
    }

    pub(crate) fn put(&self, key: &str, value: &str) -> Result<i64, String> {
        let answer = self.post("/v3/kv/put", &json!({"key": bytes(key), "value": bytes(value)}))?;
        Ok(number(&answer["header"]["revision"]))
    }

    /// How long a lease lasts if nobody keeps it alive.
    pub(crate) fn seconds_left(&self, lease: i64) -> Result<i64, String> {
        let answer = self.post("/v3/lease/timetolive", &json!({"ID": lease.to_string()}))?;
        Ok(number(&answer["TTL"]))
    }

    /// The keys that begin so, in the order in which they were created, with their values.
    pub(crate) fn keys(&self, prefix: &str) -> Result<Vec<(String, String)>, String> {
        let question = json!({
            "key": bytes(prefix), "range_end": bytes(&after(prefix)), "sort_target": "CREATE", "sort_order": "ASCEND",
        });
        let answer = self.post("/v3/kv/range", &question)?;
        Ok(answer["kvs"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|kv| (text(&kv["key"]), text(&kv["value"])))
            .collect())
    }

    /// All that ever happened to keys that begin so, up to now: read from revision 1, in no need of
    /// what anybody has recorded.
    pub(crate) fn history(&self, prefix: &str) -> Result<Vec<Event>, String> {
        // The last page of what is to be read.
        let marker = format!("{prefix}\u{7f}end of history");
        let end = self.put(&marker, "")?;
        let question = json!({"create_request": {
            "key": bytes(prefix), "range_end": bytes(&after(prefix)), "start_revision": "1",
        }});
        let mut events = Vec::new();
        for line in self.send("/v3/watch", &question).map_err(|e| e.to_string())?.lines() {
            let value: Value = serde_json::from_str(&line.map_err(|e| e.to_string())?)
                .map_err(|e| e.to_string())?;
            let result = &value["result"];
            if result.is_null() || result["canceled"] == true {
                return Err(value.to_string());
            }
            for event in result["events"].as_array().into_iter().flatten() {
                let kv = &event["kv"];
                let (revision, key) = (number(&kv["mod_revision"]), text(&kv["key"]));
                if key == marker {
                    if revision == end {
                        return Ok(events);
                    }
                    continue;
                }
                let change = if event["type"] == "DELETE" {
                    Change::Delete
                } else {
                    Change::Put {
                        value: text(&kv["value"]),
                        created: number(&kv["create_revision"]),
                        version: number(&kv["version"]),
                        lease: number(&kv["lease"]),
                    }
                };
                events.push(Event { revision, key, change });
            }
        }
        Err("the watch ended before the history did".into())
    }
}

/// The first key that does not begin so.
pub(crate) fn after(prefix: &str) -> String {
    let mut end = prefix.to_owned();
    let last = end.pop().expect("not everything");
    end.push(char::from_u32(last as u32 + 1).expect("plain letters"));
    end
}
