//! `doorway lab explore`, without a browser: what is served, and to whom.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, Stdio},
};

use serde_json::Value;

use super::{command, refused};

/// An explorer, which ends with the test.
struct Explorer {
    child: Child,
    host: String,
}

impl Explorer {
    fn new() -> Self {
        let mut child = command(&["lab", "explore", "bakery"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("doorway");
        let mut address = String::new();
        BufReader::new(child.stdout.take().expect("a pipe"))
            .read_line(&mut address)
            .expect("an address");
        let host = address
            .trim()
            .strip_prefix("http://")
            .and_then(|rest| rest.strip_suffix('/'))
            .expect("an address");
        assert!(host.starts_with("127.0.0.1:"), "{host}");
        Self { host: host.into(), child }
    }

    /// What comes back for these bytes: the status, and the body.
    fn send(&self, bytes: &[u8]) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.host).expect("it listens");
        // It may have refused before everything was sent.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8(answer).expect("text");
        let (head, body) =
            answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head in {answer:?}"));
        (
            head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status"),
            body.into(),
        )
    }

    fn get(&self, path: &str, headers: &str) -> (u16, String) {
        self.send(format!("GET {path} HTTP/1.1\r\n{headers}\r\n").as_bytes())
    }

    fn post(&self, headers: &str, body: &str) -> (u16, String) {
        let length = body.len();
        let host = &self.host;
        self.send(
            format!("POST /explore HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n{headers}\r\n{body}")
                .as_bytes(),
        )
    }
}

impl Drop for Explorer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const JSON: &str = "Content-Type: application/json\r\n";

#[test]
fn the_page_and_schedules_are_served() {
    let explorer = Explorer::new();
    let (status, page) = explorer.get("/", &format!("Host: {}\r\n", explorer.host));
    assert_eq!(status, 200);
    assert!(page.contains("<title>bakery: explore</title>"));
    let (status, answer) = explorer.post(JSON, r#"{"schedule": [{"process": 1}]}"#);
    let answer: Value = serde_json::from_str(&answer).expect("JSON");
    assert_eq!(
        (status, &answer["trace"]["steps"][0]["access"]),
        (200, &"Doorway[1] := true".into())
    );
    let origin = format!("{JSON}Origin: http://{}\r\n", explorer.host);
    assert_eq!(explorer.post(&origin, r#"{"schedule": []}"#).0, 200);
}

/// A page from elsewhere, or a name that points here, gets nothing.
#[test]
fn strangers_are_refused() {
    let explorer = Explorer::new();
    let port = explorer.host.rsplit(':').next().expect("a port");
    for host in [
        "",
        "Host: evil.example\r\n",
        "Host: 127.0.0.1\r\n",
        &format!("Host: evil.example:{port}\r\n"),
    ] {
        assert_eq!(explorer.get("/", host).0, 403, "{host}");
    }
    assert_eq!(explorer.get("/", &format!("Host: localhost:{port}\r\n")).0, 200);
    for origin in
        ["https://evil.example", "null", "http://127.0.0.1:1", &format!("https://127.0.0.1:{port}")]
    {
        let headers = format!("{JSON}Origin: {origin}\r\n");
        assert_eq!(explorer.post(&headers, r#"{"schedule": []}"#).0, 403, "{origin}");
    }
    assert_eq!(explorer.post("Content-Type: text/plain\r\n", r#"{"schedule": []}"#).0, 415);
}

#[test]
fn what_makes_no_sense_is_refused_and_the_rest_goes_on() {
    let explorer = Explorer::new();
    let host = format!("Host: {}\r\n", explorer.host);
    assert_eq!(explorer.get("/etc/passwd", &host).0, 404);
    assert_eq!(explorer.get("/explore", &host).0, 405);
    assert_eq!(explorer.post(JSON, "{").0, 400);
    assert_eq!(explorer.post(JSON, r#"{"schedule": 3}"#).0, 400);
    assert_eq!(explorer.post(JSON, r#"{"schedule": [], "luck": 1}"#).0, 400);
    let (status, answer) = explorer.post(JSON, r#"{"schedule": [{"process": 9}]}"#);
    assert_eq!((status, &*answer), (422, r#"{"error":"process 9 cannot do that here"}"#));
    assert_eq!(explorer.send(b"luck\r\n\r\n").0, 400);
    assert_eq!(explorer.send(b"GET / HTTP/2\r\n\r\n").0, 400);
    let long = format!("GET / HTTP/1.1\r\nX: {}\r\n", "x".repeat(20_000));
    assert_eq!(explorer.send(long.as_bytes()).0, 400);
    let large = format!("POST /explore HTTP/1.1\r\n{host}{JSON}Content-Length: 99999999\r\n\r\n");
    assert_eq!(explorer.send(large.as_bytes()).0, 413);
    let pieces =
        format!("POST /explore HTTP/1.1\r\n{host}{JSON}Transfer-Encoding: chunked\r\n\r\n");
    assert_eq!(explorer.send(pieces.as_bytes()).0, 400);
    assert_eq!(explorer.get("/", &host).0, 200, "it still answers");
}

#[test]
fn sizes_that_cannot_be_shown_are_refused() {
    assert!(refused(&["lab", "explore", "bakery", "-n", "17"]).contains("at most 16 processes"));
    assert!(refused(&["lab", "explore", "backery"]).contains("there are bakery, "));
    assert!(refused(&["lab", "explore", "bakery", "-k", "2"]).contains("k is 1"));
}
