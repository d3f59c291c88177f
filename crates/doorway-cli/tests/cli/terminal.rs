//! On a real terminal, that of tmux: job control, what one who waits sees, and `doorway top`.

use std::{
    fs,
    process::Command,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    thread,
    time::Duration,
};

use super::locks::{Locks, kill, soon};

/// A shell on a terminal, with the locks of a test.
struct Terminal {
    server: String,
}

impl Terminal {
    fn new(locks: &Locks) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let server = format!("doorway-{}-{}", std::process::id(), COUNT.fetch_add(1, Relaxed));
        let terminal = Self { server };
        let start = ["-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "60"];
        let shell = ["env", "-u", "DOORWAY_HELD", "PS1=ready> ", "bash", "--norc", "--noprofile"];
        let mut command = terminal.tmux(&start);
        command
            .arg("env")
            .arg(format!("DOORWAY_DIR={}", locks.directory.path().display()))
            .args(shell);
        assert!(
            command
                .env_remove("TMUX")
                .status()
                .expect("there is a tmux: scripts/need tmux")
                .success()
        );
        terminal.shows("ready>");
        terminal
    }

    /// In a tongue in which it can show all that is printed.
    fn tmux(&self, args: &[&str]) -> Command {
        let mut command = Command::new("tmux");
        command.args(["-u", "-L", &self.server]).args(args);
        command
    }

    /// Presses keys, by their names.
    fn press(&self, keys: &[&str]) {
        let pressed =
            self.tmux(&["send-keys", "-t", "0"]).args(keys).status().expect("there is a tmux");
        assert!(pressed.success());
    }

    fn types(&self, line: &str) {
        assert!(
            self.tmux(&["send-keys", "-t", "0", "-l", line])
                .status()
                .expect("there is a tmux")
                .success()
        );
        self.press(&["Enter"]);
    }

    /// `doorway` with these arguments.
    fn runs(&self, args: &str) {
        self.types(&format!("clear; {} {args}", env!("CARGO_BIN_EXE_doorway")));
    }

    fn screen(&self) -> String {
        let output =
            self.tmux(&["capture-pane", "-p", "-t", "0"]).output().expect("there is a tmux");
        String::from_utf8(output.stdout).expect("it is text")
    }

    /// Waits until this is to be seen, in a line which it returns.
    fn shows(&self, what: &str) -> String {
        self.shows_line(what, |line| line.contains(what))
    }

    /// The same at the end of a line: what is typed is to be seen as well.
    fn prints(&self, what: &str) {
        self.shows_line(what, |line| line.ends_with(what));
    }

    fn shows_line(&self, what: &str, is_it: impl Fn(&str) -> bool) -> String {
        for _ in 0..3000 {
            if let Some(line) = self.screen().lines().find(|line| is_it(line)) {
                return line.to_owned();
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("no {what:?} in\n{}", self.screen());
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.tmux(&["kill-server"]).status();
    }
}

/// Ctrl-Z, `fg`, Ctrl-C.
#[test]
fn job_control_works() {
    let locks = Locks::new();
    let terminal = Terminal::new(&locks);
    terminal.runs("run gpu -- sh -c 'echo begun; exec sleep 1000'; echo code $?");
    terminal.prints("begun");
    terminal.press(&["C-z"]);
    terminal.shows("Stopped");
    // Who is stopped is not dead.
    assert_eq!(locks.ran(&["run", "gpu", "--no-wait", "--", "true"]).code, Some(75));
    let pid = locks.status("gpu")["holders"][0]["pid"].as_i64().expect("somebody holds it");
    let stands_still =
        || fs::read_to_string(format!("/proc/{pid}/stat")).expect("it is there").contains(") T ");
    assert!(stands_still());
    terminal.types("fg; echo code $?");
    soon("it goes on", || !stands_still());
    terminal.press(&["C-c"]);
    terminal.prints("code 130");
    locks.prints(&["run", "gpu", "--no-wait", "--", "true"]);
}

/// Says so whenever it hears an interrupt, until half a second after the twelfth.
const LISTENER: &str = "\
import os, signal, sys, time
told, tells = os.pipe()
os.set_blocking(told, False)
os.set_blocking(tells, False)
signal.signal(signal.SIGINT, lambda *_: None)
signal.set_wakeup_fd(tells)
print('begun', sys.argv[1], flush=True)
heard, end = 0, None
while not end or time.monotonic() < end:
    time.sleep(0.02)
    try: news = os.read(told, 100)
    except BlockingIOError: continue
    for _ in news:
        heard += 1
        print('heard', sys.argv[1], heard, flush=True)
    if heard >= 12: end = end or time.monotonic() + 0.5
print('done', sys.argv[1])
";

/// The terminal tells all who are in front, the command included; anybody else tells the wrapper,
/// and that one the command. Twelve times, since two signals of a kind are one if the first has not
/// been heard yet.
#[test]
fn a_signal_reaches_the_command_once() {
    let locks = Locks::new();
    let terminal = Terminal::new(&locks);
    fs::write(locks.path(".listener.py"), LISTENER).expect("it can be written");
    terminal.types(&format!("cd {}", locks.directory.path().display()));
    let heard = || terminal.screen().lines().filter(|line| line.contains("heard")).count();
    for (name, background) in [("one", ""), ("two", " &")] {
        terminal.runs(&format!("run gpu -- python3 .listener.py {name}{background}"));
        terminal.prints(&format!("begun {name}"));
        for i in 1..=12 {
            match name {
                "one" => terminal.press(&["C-c"]),
                _ => terminal.types("kill -INT $!"),
            }
            terminal.prints(&format!("heard {name} {i}"));
        }
        terminal.prints(&format!("done {name}"));
        assert_eq!(heard(), 12, "{}", terminal.screen());
    }
}

#[test]
fn who_waits_sees_its_place_and_who_holds() {
    let locks = Locks::new();
    let holder = locks.holder(&["gpu"], "exec sleep 1000");
    let waiting = |count: usize| {
        soon("they wait", || {
            locks.status("gpu")["waiting"].as_array().is_some_and(|line| line.len() == count)
        });
    };
    let mut first = locks.command(&["run", "gpu", "--", "true"]).spawn().expect("it starts");
    waiting(1);
    let terminal = Terminal::new(&locks);
    terminal.runs("run gpu -- sh -c 'echo inside; exec sleep 1000'");
    let line = terminal.shows("1 ahead of you");
    assert!(
        line.starts_with(&format!("1 ahead of you · slot 0: pid {} sleep 1000, ", holder.pid)),
        "{line}"
    );
    first.kill().expect("it is ours");
    first.wait().expect("it has ended");
    terminal.shows("you are next · slot 0:");
    // What is not for people who look at it is not shown: in the background, in a pipe, or when
    // they do not want it.
    let other = Terminal::new(&locks);
    for args in ["run gpu --quiet -- true", "run gpu -- true &", "run gpu -- true 2>&1 | cat"] {
        other.runs(args);
        waiting(2);
        thread::sleep(Duration::from_millis(700));
        assert!(!other.screen().contains("ahead of you"), "{args}: {}", other.screen());
        other.press(&["C-c"]);
        other.types("kill %1");
        waiting(1);
    }
    // The line goes away with the wait.
    kill(holder.pid, "-TERM");
    holder.ends();
    terminal.prints("inside");
    assert!(!terminal.screen().contains("you are next"), "{}", terminal.screen());
}

#[test]
fn top_shows_slots_holders_and_the_line() {
    let locks = Locks::new();
    let holder = locks.holder(&["gpu", "--slots", "2"], "exec sleep 1000");
    let terminal = Terminal::new(&locks);
    terminal.runs("top");
    terminal.shows("semaphore, 2 slots, 1 inside, 0 waiting");
    let line = terminal.shows("● slot 0");
    assert!(
        line.contains(&holder.pid.to_string()) && line.trim_end().ends_with("sleep 1000"),
        "{line}"
    );
    terminal.shows("○ slot 1");
    // And so it does when things change.
    let other = locks.holder(&["gpu", "--slots", "2"], "exec sleep 2000");
    terminal.shows("● slot 1");
    let mut waiting: Vec<_> = (0..2)
        .map(|i| {
            let child = locks
                .command(&["run", "gpu", "--slots", "2", "--", "true"])
                .spawn()
                .expect("it starts");
            let pid = terminal.shows(&format!("{i} ahead"));
            assert!(pid.contains(&child.id().to_string()), "{pid}");
            child
        })
        .collect();
    waiting[0].kill().expect("it is ours");
    terminal.shows("2 inside, 1 waiting");
    assert!(terminal.shows("0 ahead").contains(&waiting[1].id().to_string()));
    terminal.press(&["q"]);
    // The screen is as it was before.
    terminal.shows("ready>");
    assert!(!terminal.screen().contains("● slot"), "{}", terminal.screen());
    for holder in [holder, other] {
        kill(holder.pid, "-TERM");
        holder.ends();
    }
    waiting.iter_mut().for_each(|child| drop(child.wait()));
}
