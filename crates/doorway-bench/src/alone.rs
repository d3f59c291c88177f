//! One uncontended process: nanoseconds per passage.
//!
//! Where the linker puts a loop changes its time by a fifth. So each loop is compiled several
//! times, at different places, and each measurement runs all copies. Where other programs want the
//! processor too, they take some of the time. So each copy runs several times, and the median
//! counts.

use std::{
    hint::black_box,
    sync::Arc,
    time::{Duration, Instant},
};

use doorway_core::{
    Exclusion, Problem, Request, Size,
    native::{Backoff, Instance, Native},
};

use crate::{
    lock::{Ask, Blocking, Lock, Sessions, Tasks},
    tasks::block_on,
    work::{Apart, How, Sample, Work},
};

const COPIES: u32 = 4;
const TIMES: u32 = 9;

/// Returns how many passages take about the time of one run of a copy, given that `passages` took
/// `time`; `None` if that is too short to say.
fn enough(passages: u32, time: Duration, all: Duration) -> Option<u32> {
    let part = (all / (COPIES * TIMES)).as_secs_f64();
    (time.as_secs_f64() >= part / 2.0)
        .then(|| ((f64::from(passages) * part / time.as_secs_f64()) as u32).max(1))
}

/// Computes the result of runs with this many passages each: the median of each copy, and the mean
/// of these.
fn sample(passages: u32, mut runs: [Vec<Duration>; COPIES as usize]) -> Sample {
    let median = |runs: &mut Vec<Duration>| {
        runs.sort_unstable();
        runs[runs.len() / 2]
    };
    let time: Duration = runs.iter_mut().map(median).sum();
    let ops_per_second = f64::from(passages * COPIES) / time.as_secs_f64();
    Sample { ops_per_second, share: (1, 1), ..Sample::default() }
}

/// Runs all copies of a loop. The copies differ in what happens inside; otherwise the compiler
/// would merge them into one.
macro_rules! copies {
    ($all:expr, |$copy:ident, $count:ident| $run:expr) => {{
        let mut count = 16_u32;
        // This warms up as well.
        let count = loop {
            const $copy: usize = 0;
            let ($count, begin) = (count, Instant::now());
            $run;
            match enough(count, begin.elapsed(), $all) {
                Some(count) => break count,
                None => count = count.saturating_mul(2),
            }
        };
        let mut runs = [const { Vec::new() }; COPIES as usize];
        for _ in 0..TIMES {
            copies!(runs, count, 0, $copy, $count, $run);
            copies!(runs, count, 1, $copy, $count, $run);
            copies!(runs, count, 2, $copy, $count, $run);
            copies!(runs, count, 3, $copy, $count, $run);
        }
        sample(count, runs)
    }};
    ($runs:ident, $n:ident, $number:literal, $copy:ident, $count:ident, $run:expr) => {{
        const $copy: usize = $number;
        let ($count, begin) = ($n, Instant::now());
        $run;
        $runs[$copy].push(begin.elapsed());
    }};
}

#[inline(never)]
fn loop_blocking<L: Blocking, const COPY: usize>(lock: &L, count: u32) {
    for _ in 0..count {
        lock.passage(|| _ = black_box(COPY));
    }
}

#[inline(never)]
fn loop_sessions<L: Sessions, const COPY: usize>(lock: &L, count: u32) {
    for _ in 0..count {
        lock.passage(black_box(Ask::Share(0)), || _ = black_box(COPY));
    }
}

async fn loop_tasks<L: Tasks, const COPY: usize>(lock: &L, count: u32) {
    for _ in 0..count {
        lock.passage(async { _ = black_box(COPY) }).await;
    }
}

/// Measures a lock for threads.
pub(crate) fn blocking<L: Blocking>(work: &Work) -> Sample {
    let lock = Apart(<L as Lock>::new(1));
    copies!(work.times.count, |COPY, count| loop_blocking::<L, COPY>(black_box(&lock.0), count))
}

/// Measures a lock with sessions.
pub(crate) fn sessions<L: Sessions>(work: &Work) -> Sample {
    let lock = Apart(<L as Lock>::new(1));
    copies!(work.times.count, |COPY, count| loop_sessions::<L, COPY>(black_box(&lock.0), count))
}

/// Measures a lock in a task.
pub(crate) fn tasks<L: Tasks>(work: &Work) -> Sample {
    let lock = Arc::new(Apart(<L as Lock>::new(1)));
    let all = work.times.count;
    let current = matches!(work.setting.how, How::Tasks { current: true, .. });
    let task = async move {
        copies!(all, |COPY, count| loop_tasks::<L, COPY>(black_box(&lock.0), count).await)
    };
    block_on(current, async { tokio::spawn(task).await.expect("passages do not panic") })
}

/// The number of processes an algorithm is made for, of which one moves.
pub(crate) const PROCESSES: usize = 8;

/// Measures an algorithm of the registry: the paper's code on native atomics, with no seat or guard
/// around it.
pub(crate) fn algorithm<A>(work: &Work) -> Sample
where
    A: for<'a> Exclusion<Native<'a, Backoff>> + Sync,
{
    let size = match A::CLAIMS.problem {
        Problem::Mutex | Problem::KExclusion => Size::mutex(PROCESSES),
        Problem::Group => Size::group(PROCESSES, 1),
    };
    let lock = Apart(Instance::<A>::new(size).expect("every algorithm serves a few"));
    let (lock, p) = (&lock.0, PROCESSES / 2);
    let mut m = lock.view(Backoff, p as u64);
    let mut keep = Some(lock.algorithm().keep(p));
    let request = A::Request::all(size).remove(0);
    copies!(work.times.count, |COPY, count| {
        for _ in 0..count {
            let kept = keep.take().expect("it is put back");
            let Ok((next, _)) =
                black_box(lock).passage(&mut m, p, request.clone(), kept, || black_box(COPY));
            keep = Some(next);
        }
    })
}
