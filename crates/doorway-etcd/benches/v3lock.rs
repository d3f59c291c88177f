//! Doorway's mutex on etcd against etcd's own lock service (v3lock), on one server that this starts
//! by itself:
//!
//!     cargo bench -p doorway-etcd [-- ROUNDS [SECONDS]]    default: 5 rounds of 3 s for each
//!
//! 8 clients, each with its own connection and lease, take one lock in turn and give it back at
//! once. A round is so many seconds of the one, then of the other; the first round does not count.
//! The time of a hand-off is from when a holder begins to give the lock back to when the next has
//! it. Ends with 1 if a target is missed: 3 times the acquisitions per second, a quarter of the
//! hand-off's p99.

use std::{
    process::ExitCode,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use doorway_etcd::{
    Client, Store,
    proto::{
        etcdserverpb::LeaseGrantRequest,
        v3lockpb::{LockRequest, UnlockRequest, lock_client::LockClient},
    },
};

use server::{Failure, Server};

#[path = "common/server.rs"]
mod server;

const CLIENTS: usize = 8;
/// Longer than a round, so that v3lock's leases need not be kept alive.
const TTL: Duration = Duration::from_secs(600);

/// What happened in some seconds.
#[derive(Default)]
struct Measured {
    per_second: f64,
    /// In milliseconds, from the least.
    hand_offs: Vec<f64>,
}

impl Measured {
    fn percentile(&self, share: f64) -> f64 {
        let last = self.hand_offs.len().saturating_sub(1);
        self.hand_offs.get((last as f64 * share).round() as usize).copied().unwrap_or(f64::NAN)
    }
}

/// When the lock was begun to be given back last, and what the hand-offs took.
#[derive(Default)]
struct Clock(Mutex<(Option<Instant>, Vec<f64>)>);

impl Clock {
    fn taken(&self) {
        let mut clock = self.0.lock().expect("nobody panics");
        if let Some(given) = clock.0.take() {
            clock.1.push(given.elapsed().as_secs_f64() * 1e3);
        }
    }

    fn giving(&self) {
        self.0.lock().expect("nobody panics").0 = Some(Instant::now());
    }
}

async fn measure<F>(
    seconds: Duration,
    mut client: impl FnMut(Arc<Clock>, Instant) -> F,
) -> Result<Measured, Failure>
where
    F: Future<Output = Result<(), Failure>> + Send + 'static,
{
    let (clock, start) = (Arc::<Clock>::default(), Instant::now());
    let clients: Vec<_> =
        (0..CLIENTS).map(|_| tokio::spawn(client(clock.clone(), start + seconds))).collect();
    for client in clients {
        client.await??;
    }
    let mut hand_offs = std::mem::take(&mut clock.0.lock().expect("nobody panics").1);
    hand_offs.sort_by(f64::total_cmp);
    Ok(Measured { per_second: hand_offs.len() as f64 / start.elapsed().as_secs_f64(), hand_offs })
}

async fn ours(stores: &[Store], seconds: Duration) -> Result<Measured, Failure> {
    let mut stores = stores.iter();
    measure(seconds, |clock, end| {
        let store = stores.next().expect("one for each").clone();
        async move {
            let mutex = store.mutex("bench").await?;
            while Instant::now() < end {
                let permit = mutex.acquire().await?;
                clock.taken();
                clock.giving();
                permit.release().await?;
            }
            Ok(())
        }
    })
    .await
}

async fn theirs(clients: &[(Client, i64)], seconds: Duration) -> Result<Measured, Failure> {
    let mut clients = clients.iter();
    measure(seconds, |clock, end| {
        let (client, lease) = clients.next().expect("one for each").clone();
        async move {
            let mut locks = LockClient::new(client.channel().1);
            while Instant::now() < end {
                let key = locks
                    .lock(LockRequest { name: b"bench".into(), lease })
                    .await?
                    .into_inner()
                    .key;
                clock.taken();
                clock.giving();
                locks.unlock(UnlockRequest { key }).await?;
            }
            Ok(())
        }
    })
    .await
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn judge(what: &str, ratio: f64, met: bool, target: &str) -> bool {
    println!("{what}: {ratio:.2} times, target {target}: {}", if met { "met" } else { "MISSED" });
    met
}

#[tokio::main]
async fn main() -> Result<ExitCode, Failure> {
    let mut numbers = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let rounds: usize = numbers.next().map_or(Ok(5), |text| text.parse())?;
    let seconds = Duration::from_secs(numbers.next().map_or(Ok(3), |text| text.parse())?);
    let server = Server::start().await?;
    let (mut stores, mut clients) = (Vec::new(), Vec::new());
    for id in 1..=CLIENTS as i64 {
        stores.push(Store::connect(server.config(TTL)).await?);
        let client = Client::connect(server.config(TTL)).await?;
        client.grant(LeaseGrantRequest { id, ttl: TTL.as_secs() as i64 }).await?;
        clients.push((client, id));
    }
    println!("{CLIENTS} clients, one lock, {rounds} rounds of {} s each", seconds.as_secs());
    println!("{:>6} {:>10} {:>12} {:>9} {:>9}", "round", "lock", "per second", "p50 ms", "p99 ms");
    let (mut rates, mut waits) = (Vec::new(), Vec::new());
    for round in 0..=rounds {
        let pair = [ours(&stores, seconds).await?, theirs(&clients, seconds).await?];
        for (name, measured) in ["doorway", "v3lock"].iter().zip(&pair) {
            let [p50, p99] = [0.5, 0.99].map(|share| measured.percentile(share));
            let round = if round == 0 { "warm".into() } else { round.to_string() };
            println!("{round:>6} {name:>10} {:>12.0} {p50:>9.2} {p99:>9.2}", measured.per_second);
        }
        if round > 0 {
            rates.push(pair[0].per_second / pair[1].per_second);
            waits.push(pair[0].percentile(0.99) / pair[1].percentile(0.99));
        }
    }
    let (rate, wait) = (median(rates), median(waits));
    let rate = judge("acquisitions per second against v3lock", rate, rate >= 3.0, "at least 3");
    let wait = judge("p99 of a hand-off against v3lock", wait, wait <= 0.25, "at most 0.25");
    Ok(if rate && wait { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
