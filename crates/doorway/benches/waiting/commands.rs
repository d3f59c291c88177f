//! Hand-overs among many `doorway run` that wait for one slot.

use std::{
    env,
    ffi::OsStr,
    process::{Child, Command, Stdio},
    sync::atomic::Ordering::SeqCst,
    thread::sleep,
    time::{Duration, Instant},
};

use crate::{
    cpu,
    handover::{Rate, rounds, show},
    options::Bench,
    processes::{Children, Start, Words, until},
};

pub(crate) fn run(bench: &Bench) {
    let Some(doorway) = env::var_os("DOORWAY_BIN").filter(|path| !path.is_empty()) else {
        println!(
            "\nhandover: doorway run is left out, as $DOORWAY_BIN does not name the executable"
        );
        return;
    };
    let what = format!(
        "handover: doorway run LOCK -- true, started while the slot is held; {} rounds",
        bench.runs
    );
    show(
        what,
        &rounds(bench, |name, processes| {
            measure(bench, &doorway, &format!("run-{name}"), processes)
        }),
    );
}

/// Starts the commands while another process holds the slot. Measures from its release until all
/// commands have ended.
fn measure(bench: &Bench, doorway: &OsStr, name: &str, processes: usize) -> Rate {
    let lock = bench.locks.semaphore(name, 1).expect("the lock opens");
    let (start, holding) = (Start::new(), Words::new(1));
    // The process that starts the commands may not hold the slot: `doorway run` refuses that.
    let mut holder = Children::default();
    holder.fork(|| {
        let permit = lock.acquire().expect("it is granted");
        holding[0].store(1, SeqCst);
        start.arrive();
        drop(permit);
    });
    until("the slot is held", || holding[0].load(SeqCst) == 1);
    let mut commands: Vec<Child> = (0..processes).map(|_| command(bench, doorway, name)).collect();
    // It takes a while to read the status of many waiters, so this does it seldom.
    until("all commands are in line", || {
        sleep(Duration::from_millis(50));
        lock.status().waiting.len() == processes
    });
    let pids: Vec<i32> = commands.iter().map(|child| child.id() as i32).collect();
    let before = cpu::used(&pids) + cpu::used_by_reaped();
    let began = Instant::now();
    start.release(1);
    for child in &mut commands {
        let status = child.wait().expect("it is a child");
        assert!(status.success(), "doorway run failed: {status}");
    }
    let seconds = began.elapsed().as_secs_f64();
    (processes as f64 / seconds, (cpu::used_by_reaped() - before) / seconds * 100.0)
}

fn command(bench: &Bench, doorway: &OsStr, name: &str) -> Child {
    let mut command = Command::new(doorway);
    command.args(["run", name, "--quiet", "--dir"]).arg(bench.locks.path()).args(["--", "true"]);
    command.stdin(Stdio::null()).spawn().expect("$DOORWAY_BIN names the executable of doorway")
}
