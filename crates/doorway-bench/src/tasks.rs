//! Tasks that contend for a lock, on tokio's runtimes.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
};

use tokio::{
    runtime::{Builder, Runtime},
    task::{consume_budget, yield_now},
};

use crate::{
    lock::{Lock, Tasks},
    order::{Clock, Stamps},
    work::{Apart, COUNT, How, STAMP, Sample, Seen, Stages, Think, Work, spin},
};

/// Runs a future on a runtime of this kind.
pub(crate) fn block_on<T>(current: bool, future: impl Future<Output = T>) -> T {
    // The threads of the runtime are started once, not once for each measurement.
    static WORKERS: OnceLock<Runtime> = OnceLock::new();
    const STARTS: &str = "a runtime starts";
    if current {
        Builder::new_current_thread().build().expect(STARTS).block_on(future)
    } else {
        let workers = || {
            let cores = thread::available_parallelism().map_or(1, usize::from);
            Builder::new_multi_thread().worker_threads(cores).build().expect(STARTS)
        };
        WORKERS.get_or_init(workers).block_on(future)
    }
}

/// Measures a lock for tasks.
pub(crate) fn tasks<L: Tasks>(work: &Work) -> Sample {
    let How::Tasks { current, awaits } = work.setting.how else {
        unreachable!("only asked about tasks")
    };
    let (n, k) = (work.setting.threads, work.setting.k);
    let (lock, stages) = (Arc::new(Apart(<L as Lock>::new(k))), Arc::new(Stages::new(n)));
    let clock = Clock::start();
    let (seen, counted) = thread::scope(|scope| {
        let driver = scope.spawn(|| stages.drive(&work.times));
        let seen = block_on(current, async {
            let process =
                |p| tokio::spawn(process(lock.clone(), p, *work, awaits, stages.clone(), clock));
            let all: Vec<_> = (0..n).map(process).collect();
            let mut seen = Vec::new();
            for task in all {
                seen.push(task.await.expect("passages do not panic"));
            }
            seen
        });
        (seen, driver.join().expect("stages do not panic"))
    });
    Seen::sum(seen, k, counted)
}

async fn process<L: Tasks>(
    lock: Arc<Apart<L>>,
    p: usize,
    work: Work,
    awaits: bool,
    stages: Arc<Stages>,
    clock: Clock,
) -> Seen {
    let lock = &lock.0;
    let mut seen = Seen::new(work.setting.threads);
    let mut think = Think::new(&work, p);
    let rounds = work.spin.rounds(work.setting.inside_ns);
    let inside = || async move {
        spin(rounds);
        if awaits {
            yield_now().await;
        }
    };
    stages.start();
    while !stages.all_started() {
        yield_now().await;
    }
    while let Some(stage) = stages.now() {
        if stage == STAMP {
            let [entered, went_in, leaving] = [const { AtomicU64::new(0) }; 3];
            let began = clock.stamp();
            let visit = async {
                went_in.store(clock.stamp(), Relaxed);
                inside().await;
                leaving.store(clock.stamp(), Relaxed);
            };
            lock.stepwise(|| entered.store(clock.stamp(), Relaxed), visit).await;
            let [entered, inside, leaving] = [entered, went_in, leaving].map(AtomicU64::into_inner);
            seen.note(Stamps { session: p as u32, began, entered, inside, leaving });
        } else {
            lock.passage(inside()).await;
            seen.passages += u64::from(stage == COUNT);
        }
        think.think();
        // A task that never has to wait would keep a worker for ever, and other tasks would not
        // even begin.
        consume_budget().await;
    }
    seen
}
