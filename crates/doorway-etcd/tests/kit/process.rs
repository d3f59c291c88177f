//! Clients that are processes of their own, to be killed and stopped.

use std::{
    env,
    io::{BufRead, BufReader, Write},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
        mpsc::{Receiver, RecvTimeoutError, channel},
    },
    thread,
    time::Duration,
};

use doorway_etcd::Error;
use rustix::process::{Pid, Signal, kill_process};

use super::{
    cluster::dies_with_us,
    history::Mark,
    notes::{Note, What, now},
    worker::{Notes, Random, Which, Worker, config},
};

/// The process, and what it says line by line.
pub(crate) struct Process {
    child: Child,
    lines: Receiver<String>,
    who: usize,
    notes: Notes,
}

impl Process {
    /// Starts this program again as a client of the lock. It says what it does
    /// ([`Process::waits_for`]), and takes it word by word.
    pub(crate) fn start(
        endpoints: &[String],
        lock: &str,
        which: Which,
        who: usize,
        notes: &Notes,
    ) -> Self {
        let which = match which {
            Which::Mutex => "mutex".to_owned(),
            Which::Semaphore(slots) => slots.to_string(),
            Which::Group(_) => panic!("not needed so far"),
        };
        let mut command = Command::new(env::current_exe().expect("a test knows itself"));
        command
            .args(["--exact", "client_process", "--nocapture", "--test-threads", "1"])
            .env(
                "DOORWAY_TEST_CLIENT",
                [endpoints.join(","), lock.into(), which, who.to_string()].join(" "),
            )
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        dies_with_us(&mut command);
        let mut child = command.spawn().expect("it starts");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        let (said, lines) = channel();
        let Notes::Here(all) = notes.clone() else { panic!("notes are kept here") };
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                // The harness says something on the same line.
                let Some((_, line)) = line.split_once("> ") else { continue };
                match line.parse::<Note>() {
                    Ok(note) => all.lock().expect("nobody panics").push(note),
                    Err(_) => drop(said.send(line.to_owned())),
                }
            }
        });
        Self { child, lines, who, notes: notes.clone() }
    }

    /// Waits until it says this, and returns the rest of the line.
    #[track_caller]
    pub(crate) fn waits_for(&mut self, what: &str, limit: Duration) -> String {
        loop {
            match self.lines.recv_timeout(limit) {
                Ok(line) => {
                    if let Some(rest) = line.strip_prefix(what) {
                        return rest.trim().to_owned();
                    }
                }
                Err(RecvTimeoutError::Timeout) => panic!("it does not say {what} within {limit:?}"),
                Err(RecvTimeoutError::Disconnected) => panic!("it ended without saying {what}"),
            }
        }
    }

    /// Gives it the word.
    pub(crate) fn tell(&mut self, word: &str) {
        writeln!(self.child.stdin.as_mut().expect("it is piped"), "{word}").expect("it listens");
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it is our child");
    }

    /// SIGSTOP. What it has is no more its own.
    pub(crate) fn stop(&self) {
        self.signal(Signal::STOP);
        self.notes.add(self.who, What::Gone);
    }

    pub(crate) fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    /// kill -9.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it is our child");
        self.child.wait().expect("it has ended");
        self.notes.add(self.who, What::Gone);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What such a process does. Its words: `enter`, `in`, `write`, `leave`; it says when it has done
/// so, and when it is told that it has lost. Or `work`, until it is `enough`: it says how many
/// passages it made, how many failed, and how many it made in the last two seconds.
pub(crate) async fn client(arguments: &str) {
    let [endpoints, lock, which, who] = arguments.split(' ').collect::<Vec<_>>()[..] else {
        panic!("{arguments}")
    };
    let which = if which == "mutex" {
        Which::Mutex
    } else {
        Which::Semaphore(which.parse().expect("slots"))
    };
    let endpoints: Vec<String> = endpoints.split(',').map(Into::into).collect();
    let worker = Worker::open(
        config(&endpoints),
        lock,
        which,
        who.parse().expect("a number"),
        &Notes::Printed,
    );
    let worker = Arc::new(worker.await.expect("it opens"));
    let (said, mut words) = tokio::sync::mpsc::unbounded_channel();
    thread::spawn(move || {
        for word in std::io::stdin().lines().map_while(Result::ok) {
            let _ = said.send(word);
        }
    });
    println!("> ready");
    let (mut place, mut permit, mut work) = (None, None, None);
    let enough = Arc::new(AtomicBool::new(false));
    while let Some(word) = words.recv().await {
        match &word[..] {
            "enter" => {
                place = Some(worker.enter(0).await.expect("it enters"));
                println!("> entered");
            }
            "in" => match worker.go_in(place.take().expect("it has entered")).await {
                Ok(granted) => {
                    let lost = granted.lost();
                    tokio::spawn(async move {
                        lost.await;
                        println!("> lost");
                    });
                    permit = Some(granted);
                    println!("> in");
                }
                Err(error) => println!("> refused {error}"),
            },
            "write" => {
                let permit = permit.as_ref().expect("it is in");
                match worker.write(permit, Mark::Work { ticket: permit.ticket() as i64 }).await {
                    Ok(()) => println!("> wrote"),
                    Err(error) => println!("> refused {error}"),
                }
            }
            "leave" => match worker.leave(permit.take().expect("it is in")).await {
                Ok(()) => println!("> left"),
                Err(error) => println!("> refused {error}"),
            },
            "work" => work = Some(tokio::spawn(passages(worker.clone(), enough.clone()))),
            "enough" => {
                enough.store(true, SeqCst);
                let [made, failed, lately] =
                    work.take().expect("it works").await.expect("it does not panic");
                println!("> ended {made} {failed} {lately}");
            }
            other => panic!("{other}"),
        }
    }
}

async fn passages(worker: Arc<Worker>, enough: Arc<AtomicBool>) -> [usize; 3] {
    let mut random = Random(0x5eed ^ (worker.who as u64 + 1) << 32);
    let (mut made, mut failed) = (Vec::new(), 0);
    while !enough.load(SeqCst) {
        match worker.passage(&mut random).await {
            Ok(()) => made.push(now()),
            Err(Error::Lost(_) | Error::Refused { .. } | Error::Unreachable { .. }) => failed += 1,
            Err(error) => panic!("{error}"),
        }
    }
    let recently = now() - 2_000_000_000;
    [made.len(), failed, made.iter().filter(|&&at| at > recently).count()]
}
