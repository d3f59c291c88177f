//! Hand-overs per second of one mutex among 50, 200 and 1000 waiters, on one server that this
//! starts by itself:
//!
//!     cargo bench -p doorway-etcd --bench waiters [-- ROUNDS [WAITERS...]]    default: 10 rounds of 1 s, 50 200 1000
//!
//! Each waiter is a client of its own, with its own connection, lease and place. It acquires the
//! mutex, releases it at once and enters again. All clients are tasks of this process.
//!
//! The CPU time is read from `/proc/PID/stat` (user and system) of the server and of this process,
//! and is printed as a share of one core. Ends with 1 if a target is missed: the medians are within
//! a factor of 2 of each other, and the server and the clients together stay below one core.

use std::{
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use doorway_etcd::Store;
use server::{Failure, Server};

#[path = "common/server.rs"]
mod server;

/// The default of the crate: keeping 1000 leases alive is part of what is measured.
const TTL: Duration = Duration::from_secs(10);
const ROUND: Duration = Duration::from_secs(1);

/// Returns the CPU time that a process has used, in seconds.
fn cpu(pid: u32) -> Result<f64, Failure> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The second field is the command in parentheses, which may contain spaces.
    let fields: Vec<&str> =
        stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let [user, system]: [u64; 2] = [fields[11].parse()?, fields[12].parse()?];
    Ok((user + system) as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// What one round measured, or the median of several.
#[derive(Clone, Copy, Debug)]
struct Measured {
    per_second: f64,
    server: f64,
    clients: f64,
}

fn median(rounds: &[Measured], of: impl Fn(&Measured) -> f64) -> f64 {
    let mut values: Vec<f64> = rounds.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

async fn round(server: &Server, hand_overs: &AtomicU64) -> Result<Measured, Failure> {
    let (us, etcd) = (std::process::id(), server.pid());
    let before = (Instant::now(), hand_overs.load(Relaxed), cpu(etcd)?, cpu(us)?);
    tokio::time::sleep(ROUND).await;
    let seconds = before.0.elapsed().as_secs_f64();
    let count = hand_overs.load(Relaxed) - before.1;
    let (server, clients) = ((cpu(etcd)? - before.2) / seconds, (cpu(us)? - before.3) / seconds);
    Ok(Measured { per_second: count as f64 / seconds, server, clients })
}

/// Measures so many waiters, on a server of their own.
async fn measure(waiters: usize, rounds: usize) -> Result<Vec<Measured>, Failure> {
    let server = Server::start().await?;
    let (hand_overs, enough) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let mut tasks = Vec::new();
    for _ in 0..waiters {
        let store = Store::connect(server.config(TTL)).await?;
        let (hand_overs, enough) = (hand_overs.clone(), enough.clone());
        tasks.push(tokio::spawn(async move {
            let mutex = store.mutex("bench").await?;
            while !enough.load(Relaxed) {
                let permit = mutex.acquire().await?;
                hand_overs.fetch_add(1, Relaxed);
                permit.release().await?;
            }
            store.close().await?;
            Ok::<_, Failure>(())
        }));
    }
    // Until every waiter has had its turn, in mean.
    while hand_overs.load(Relaxed) < 2 * waiters as u64 {
        if let Some(failed) = tasks.iter().position(|task| task.is_finished()) {
            tasks.swap_remove(failed).await??;
        }
        tokio::time::sleep(ROUND / 10).await;
    }
    let mut measured = Vec::new();
    for _ in 0..rounds {
        measured.push(round(&server, &hand_overs).await?);
    }
    enough.store(true, Relaxed);
    for task in tasks {
        task.await??;
    }
    Ok(measured)
}

fn judge(what: &str, value: f64, met: bool, target: &str) -> bool {
    println!("{what}: {value:.2}, target {target}: {}", if met { "met" } else { "MISSED" });
    met
}

#[tokio::main]
async fn main() -> Result<ExitCode, Failure> {
    let numbers =
        std::env::args().skip(1).filter(|argument| argument != "--bench").map(|text| text.parse());
    let numbers: Vec<usize> = numbers.collect::<Result<_, _>>()?;
    let rounds = numbers.first().copied().unwrap_or(10).max(1);
    let waiters =
        numbers.get(1..).filter(|waiters| !waiters.is_empty()).unwrap_or(&[50, 200, 1000]);
    println!(
        "one mutex, {rounds} rounds of {} s; CPU as a share of one core, medians and worst",
        ROUND.as_secs()
    );
    println!(
        "{:>8} {:>12} {:>8} {:>8} {:>9} {:>10}",
        "waiters", "per second", "worst", "etcd", "clients", "worst sum"
    );
    let (mut rates, mut shares) = (Vec::new(), Vec::new());
    for &waiters in waiters {
        let measured = measure(waiters, rounds).await?;
        let rate = median(&measured, |round| round.per_second);
        let worst = measured.iter().map(|round| round.per_second).fold(f64::INFINITY, f64::min);
        let [server, clients] =
            [median(&measured, |round| round.server), median(&measured, |round| round.clients)];
        let share = measured.iter().map(|round| round.server + round.clients).fold(0.0, f64::max);
        println!(
            "{waiters:>8} {rate:>12.0} {worst:>8.0} {server:>8.2} {clients:>9.2} {share:>10.2}"
        );
        rates.push(rate);
        shares.push(median(&measured, |round| round.server + round.clients));
    }
    let (least, most) =
        rates.iter().fold((f64::INFINITY, 0.0_f64), |(l, m), &rate| (l.min(rate), m.max(rate)));
    let share = shares.iter().copied().fold(0.0, f64::max);
    let ratio = judge("fastest against slowest", most / least, most <= 2.0 * least, "at most 2");
    let share = judge("CPU of etcd and clients, in cores", share, share < 1.0, "below 1");
    Ok(if ratio && share { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
