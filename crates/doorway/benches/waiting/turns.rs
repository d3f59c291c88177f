//! Processes in turns with a named mutex, beside a SysV semaphore, on idle cores and on busy ones.

use std::{hint::spin_loop, time::Duration};

use doorway::shared::{Directory, Mutex};

use crate::{
    options::Bench,
    peers::{Shared, median, take_turns},
    processes::Children,
    ring::Ring,
    table::{Table, at_least, largest, smallest},
};

const WARM_UP: Duration = Duration::from_millis(100);
const MEASURED: Duration = Duration::from_millis(500);

/// The passages per second of each process, with each lock and in a ring.
struct Round {
    mutex: Vec<f64>,
    system_v: Vec<f64>,
    ring: Vec<f64>,
}

pub(crate) fn run(bench: &Bench) {
    let columns = [
        ("processes", 0),
        ("busy beside", 0),
        ("doorway/s", 0),
        ("SysV/s", 9),
        ("ratio: median", 0),
        ("worst", 6),
        ("target (median)", 0),
        ("share: median", 0),
        ("worst", 6),
        ("bare ring/SysV: median", 0),
    ];
    let what =
        format!("turns: 1 µs inside, mutex over {}; {} rounds", bench.system_v.name(), bench.runs);
    let table = Table::new(what, &columns);
    // Of the usual capacity, as most locks are.
    let locks = Directory::at(bench.locks.path()).expect("the directory is this user's");
    for &busy in &bench.busy {
        let mut spinning = Children::default();
        for _ in 0..busy {
            spinning.fork(|| {
                loop {
                    spin_loop();
                }
            });
        }
        for processes in [8, 32] {
            let mutex = locks.mutex(&format!("turns-{busy}-{processes}")).expect("the lock opens");
            let rounds: Vec<Round> =
                (0..bench.runs).map(|i| round(bench, &mutex, processes, i)).collect();
            table.row(row(processes, busy, &rounds));
        }
    }
}

/// Measures both locks and the ring; which one comes first alternates.
fn round(bench: &Bench, mutex: &Mutex, processes: usize, number: usize) -> Round {
    let turns = |lock: &dyn Shared| take_turns(lock, processes, WARM_UP, MEASURED);
    let ring = || turns(&&Ring::new(processes));
    if number.is_multiple_of(2) {
        let (mutex, ring) = (turns(mutex), ring());
        Round { mutex, ring, system_v: turns(&bench.system_v) }
    } else {
        let (system_v, ring) = (turns(&bench.system_v), ring());
        Round { mutex: turns(mutex), ring, system_v }
    }
}

fn row(processes: usize, busy: usize, rounds: &[Round]) -> Vec<String> {
    let sums = |of: fn(&Round) -> &Vec<f64>| {
        rounds.iter().map(|round| of(round).iter().sum()).collect::<Vec<f64>>()
    };
    let (mutex, system_v) = (sums(|round| &round.mutex), sums(|round| &round.system_v));
    let over_system_v = |these: &[f64]| {
        these.iter().zip(&system_v).map(|(this, system_v)| this / system_v).collect()
    };
    let (ratios, rings): (Vec<f64>, Vec<f64>) =
        (over_system_v(&mutex), over_system_v(&sums(|round| &round.ring)));
    let shares: Vec<f64> =
        rounds.iter().map(|round| largest(&round.mutex) / smallest(&round.mutex)).collect();
    let target = match (busy, processes) {
        (0, 8) => 3.0,
        (0, _) => 1.2,
        _ => 1.0,
    };
    let ratio = median(ratios.clone());
    vec![
        processes.to_string(),
        busy.to_string(),
        format!("{:.0}", median(mutex)),
        format!("{:.0}", median(system_v)),
        format!("{ratio:.2}"),
        format!("{:.2}", smallest(&ratios)),
        if busy <= 1 { at_least(target, ratio) } else { String::new() },
        format!("{:.2}", median(shares.clone())),
        format!("{:.2}", largest(&shares)),
        format!("{:.2}", median(rings)),
    ]
}
