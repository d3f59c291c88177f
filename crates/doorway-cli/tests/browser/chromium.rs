//! Chromium without a window, driven over a pipe: its DevTools protocol, JSON messages with a zero
//! byte after each. There is no port that somebody else could have, and Chromium ends when the pipe
//! is closed.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tempfile::TempDir;

/// A page in a Chromium of its own.
pub struct Page {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    messages: u64,
    session: Option<String>,
    /// What the page has complained of.
    complaints: Vec<String>,
    /// Pages that have been loaded.
    loaded: u64,
    _profile: TempDir,
}

impl Page {
    /// An empty page.
    pub fn new() -> Self {
        let profile = tempfile::tempdir().expect("a directory");
        // The shell puts the pipes where Chromium looks for them, and becomes Chromium.
        let mut child = Command::new("sh")
            .arg("-c")
            .arg("exec chromium \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1")
            .arg("chromium")
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
            ])
            .args([
                "--disable-background-networking",
                "--disable-component-update",
                "--remote-debugging-pipe",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let to = child.stdin.take();
        let from = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut page = Self {
            child,
            to,
            from,
            messages: 0,
            session: None,
            complaints: Vec::new(),
            loaded: 0,
            _profile: profile,
        };
        let target = page.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attached = page.call(
            "Target.attachToTarget",
            json!({ "targetId": target["targetId"], "flatten": true }),
        );
        page.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log"] {
            page.call(&format!("{domain}.enable"), json!({}));
        }
        page
    }

    /// Asks Chromium for something.
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.messages += 1;
        let id = self.messages;
        let mut message = json!({ "id": id, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let to = self.to.as_mut().expect("Chromium listens");
        let sent = to.write_all(format!("{message}\0").as_bytes()).and_then(|()| to.flush());
        sent.expect("Chromium runs; if it is missing, scripts/need chromium installs it");
        loop {
            let message = self.receive();
            if message["id"] == json!(id) {
                assert_eq!(message["error"], Value::Null, "{method}");
                return message["result"].clone();
            }
        }
    }

    /// The next message, of whatever kind.
    fn receive(&mut self) -> Value {
        let mut bytes = Vec::new();
        self.from.read_until(0, &mut bytes).expect("Chromium answers");
        assert_eq!(
            bytes.pop(),
            Some(0),
            "Chromium has ended; if it is missing, scripts/need chromium installs it"
        );
        let message: Value = serde_json::from_slice(&bytes).expect("JSON");
        match message["method"].as_str() {
            Some("Page.loadEventFired") => self.loaded += 1,
            Some("Runtime.exceptionThrown") => self.complaints.push(message["params"].to_string()),
            Some("Runtime.consoleAPICalled") => {
                if matches!(
                    message["params"]["type"].as_str(),
                    Some("error" | "warning" | "assert")
                ) {
                    self.complaints.push(message["params"].to_string());
                }
            }
            Some("Log.entryAdded") => {
                if matches!(message["params"]["entry"]["level"].as_str(), Some("error" | "warning"))
                {
                    self.complaints.push(message["params"].to_string());
                }
            }
            _ => {}
        }
        message
    }

    /// Makes the window that large.
    pub fn resize(&mut self, width: u32, height: u32) {
        let mobile = width < 600;
        let metrics =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile });
        self.call("Emulation.setDeviceMetricsOverride", metrics);
    }

    /// Opens a file or an address, and waits until it is there.
    pub fn open(&mut self, url: &str) {
        let before = self.loaded;
        let answer = self.call("Page.navigate", json!({ "url": url }));
        assert_eq!(answer["errorText"], Value::Null, "{url}");
        while self.loaded == before {
            self.receive();
        }
    }

    /// Opens a file.
    pub fn open_file(&mut self, file: &Path) {
        self.open(&format!("file://{}", file.display()));
    }

    /// What an expression is in the page.
    pub fn eval(&mut self, expression: &str) -> Value {
        let parameters =
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.call("Runtime.evaluate", parameters);
        assert_eq!(answer["exceptionDetails"], Value::Null, "{expression}");
        answer["result"]["value"].clone()
    }

    /// The text in the first element that a selector finds.
    pub fn text(&mut self, selector: &str) -> String {
        let text = self.eval(&format!("document.querySelector({})?.textContent", json!(selector)));
        text.as_str().unwrap_or_else(|| panic!("there is no {selector}")).to_owned()
    }

    /// Clicks on the first element that a selector finds, in its middle, as a mouse does.
    pub fn click(&mut self, selector: &str) {
        let place = self.eval(&format!(
            "(() => {{ const e = document.querySelector({}); e.scrollIntoView({{ block: 'center' }}); \
             const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; }})()",
            json!(selector)
        ));
        for kind in ["mousePressed", "mouseReleased"] {
            let click = json!({ "type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", click);
        }
    }

    /// Presses a key.
    pub fn press(&mut self, key: &str) {
        let code = match key {
            "PageUp" => 33,
            "PageDown" => 34,
            "End" => 35,
            "Home" => 36,
            "ArrowLeft" => 37,
            "ArrowUp" => 38,
            "ArrowRight" => 39,
            "ArrowDown" => 40,
            _ => panic!("what is the code of {key}?"),
        };
        for kind in ["keyDown", "keyUp"] {
            let event =
                json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code });
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// Waits until an expression is true in the page.
    pub fn wait_for(&mut self, expression: &str) {
        let began = Instant::now();
        while self.eval(&format!("Boolean({expression})")) != json!(true) {
            // Not how fast it has to be, but when to stop waiting for what will never come.
            assert!(began.elapsed() < Duration::from_secs(60), "{expression} does not come true");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The page is as wide as its window, whatever is in it, and has not complained of anything.
    pub fn is_well(&mut self) {
        let [wide, window] = ["scrollWidth", "clientWidth"]
            .map(|width| self.eval(&format!("document.documentElement.{width}")));
        assert_eq!(wide, window, "the page is wider than its window");
        assert_eq!(self.complaints, [] as [&str; 0]);
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // Without its pipe it ends; should it not, it is made to.
        drop(self.to.take());
        let began = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && began.elapsed() < Duration::from_secs(5)
        {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
