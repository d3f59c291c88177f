//! As much of HTTP/1.1 as a page on this machine needs, with limits. A request that another web
//! page makes a browser send here is refused: it names another host, or comes from another origin.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    thread,
    time::Duration,
};

/// The most bytes of the lines of a head together.
const MAX_HEAD: u64 = 16 << 10;
/// The most bytes of a body.
const MAX_BODY: usize = 1 << 20;
/// A client that sends nothing for this long is disconnected.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most connections at once.
const MAX_CONNECTIONS: usize = 16;

/// A request that may be answered.
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) body: String,
}

/// A response: its status, its content type, and its body.
pub(crate) struct Response {
    pub(crate) status: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) body: String,
}

impl Response {
    /// Creates a refusal, as JSON.
    pub(crate) fn error(status: &'static str, error: &str) -> Self {
        Self {
            status,
            kind: "application/json",
            body: serde_json::json!({ "error": error }).to_string(),
        }
    }
}

/// A server on the loopback interface of this machine, at a free port.
pub(crate) struct Server {
    listener: TcpListener,
    port: u16,
}

impl Server {
    pub(crate) fn new() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        Ok(Self { listener, port })
    }

    /// Returns the address of its page.
    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    /// Answers requests, for ever.
    pub(crate) fn serve(&self, answer: impl Fn(Request) -> Response + Sync) {
        let connections = AtomicUsize::new(0);
        thread::scope(|scope| {
            for stream in self.listener.incoming() {
                let Ok(stream) = stream else {
                    // Too many files are open, for example. That passes.
                    thread::sleep(Duration::from_millis(50));
                    continue;
                };
                if connections.fetch_add(1, Relaxed) >= MAX_CONNECTIONS {
                    connections.fetch_sub(1, Relaxed);
                    continue;
                }
                let (answer, connections) = (&answer, &connections);
                scope.spawn(move || {
                    // A client that is gone needs no answer.
                    let _ = self.converse(&stream, answer);
                    connections.fetch_sub(1, Relaxed);
                });
            }
        });
    }

    /// Handles one request.
    fn converse(&self, stream: &TcpStream, answer: impl Fn(Request) -> Response) -> io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let response = match self.read(&mut BufReader::new(stream))? {
            Ok(request) => answer(request),
            Err(refusal) => refusal,
        };
        let Response { status, kind, body } = response;
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
             X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n",
            body.len()
        );
        let mut stream = stream;
        stream.write_all(head.as_bytes())?;
        stream.write_all(body.as_bytes())?;
        stream.flush()
    }

    fn read(&self, from: &mut impl BufRead) -> io::Result<Result<Request, Response>> {
        let mut head = from.take(MAX_HEAD);
        let mut line = |text: &mut String| -> io::Result<bool> {
            text.clear();
            head.read_line(text)?;
            Ok(text.ends_with('\n'))
        };
        let bad = |why| Ok(Err(Response::error("400 Bad Request", why)));
        let mut text = String::new();
        if !line(&mut text)? {
            return bad("no line, or one that is too long");
        }
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        let [method, path, version] = &words[..] else { return bad("not HTTP") };
        if version != "HTTP/1.1" && version != "HTTP/1.0" {
            return bad("not HTTP/1");
        }
        let (mut host, mut origin, mut kind, mut length) = (None, None, String::new(), 0);
        loop {
            if !line(&mut text)? {
                return bad("the head has no end, or is too long");
            }
            let text = text.trim_end();
            if text.is_empty() {
                break;
            }
            let Some((name, value)) = text.split_once(':') else {
                return bad("a header without a name");
            };
            let value = value.trim();
            match &*name.to_ascii_lowercase() {
                "host" => host = Some(value.to_owned()),
                "origin" => origin = Some(value.to_owned()),
                "content-type" => kind = value.to_ascii_lowercase(),
                "transfer-encoding" => return bad("a body in pieces"),
                "content-length" => match value.parse() {
                    Ok(number) => length = number,
                    Err(_) => return bad("a length that is no number"),
                },
                _ => {}
            }
        }
        let hosts = [format!("127.0.0.1:{}", self.port), format!("localhost:{}", self.port)];
        let forbidden = |why| Ok(Err(Response::error("403 Forbidden", why)));
        // A name of another owner that resolves to this machine is not ours.
        if !host.is_some_and(|host| hosts.contains(&host)) {
            return forbidden("this is served to 127.0.0.1 alone");
        }
        let is_ours = |origin: String| hosts.iter().any(|host| origin == format!("http://{host}"));
        if !origin.is_none_or(is_ours) {
            return forbidden("another page may not ask here");
        }
        if length > MAX_BODY {
            return Ok(Err(Response::error("413 Content Too Large", "too much to read")));
        }
        // A browser sends no JSON to another origin without asking that origin first.
        if method == "POST" && !kind.starts_with("application/json") {
            return Ok(Err(Response::error("415 Unsupported Media Type", "send JSON")));
        }
        let mut body = vec![0; length];
        from.read_exact(&mut body)?;
        match String::from_utf8(body) {
            Ok(body) => Ok(Ok(Request { method: method.clone(), path: path.clone(), body })),
            Err(_) => bad("not UTF-8"),
        }
    }
}
