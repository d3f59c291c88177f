//! Correct and wrong locks: the judge of order has to tell them apart, on real threads and tasks.

use std::{
    future::poll_fn,
    pin::pin,
    sync::{
        Mutex,
        atomic::{
            AtomicU64, AtomicUsize,
            Ordering::{Relaxed, SeqCst},
        },
    },
    task::Poll,
    thread,
    time::Duration,
};

use tokio::{
    sync::Semaphore,
    task::{unconstrained, yield_now},
};

use crate::{
    GROUPS, Plan, Watch, crowd,
    lock::{Ask, Blocking, Lock, Sessions, Tasks},
    tasks,
    work::{How, Sample, Setting, Spin, Times, Work},
};

/// First come, first served: the doorway draws a ticket.
struct Tickets {
    next: AtomicU64,
    serving: AtomicU64,
}

impl Lock for Tickets {
    const NAME: &'static str = "tickets";

    fn new(_: usize) -> Self {
        Self { next: AtomicU64::new(0), serving: AtomicU64::new(0) }
    }
}

impl Blocking for Tickets {
    fn passage(&self, inside: impl FnOnce()) {
        Blocking::stepwise(self, || (), inside);
    }

    fn stepwise(&self, entered: impl FnOnce(), inside: impl FnOnce()) {
        let mine = self.next.fetch_add(1, SeqCst);
        entered();
        while self.serving.load(SeqCst) != mine {
            thread::yield_now();
        }
        inside();
        self.serving.fetch_add(1, SeqCst);
    }
}

/// All sessions wait for one another, in order: strict, and correct.
impl Sessions for Tickets {
    fn passage(&self, _: Ask, inside: impl FnOnce()) {
        Blocking::passage(self, inside);
    }

    fn stepwise(&self, _: Ask, entered: impl FnOnce(), inside: impl FnOnce()) {
        Blocking::stepwise(self, entered, inside);
    }
}

/// Pretends to have a doorway, in which nothing happens. Then every second process delays, and a
/// quicker process takes the lock.
struct Pretends<L> {
    lock: L,
    came: AtomicUsize,
}

impl<L> Pretends<L> {
    fn dawdles(&self) -> bool {
        self.came.fetch_add(1, Relaxed) % 2 == 1
    }
}

impl<L: Lock> Lock for Pretends<L> {
    const NAME: &'static str = "pretends";
    const MOST_SLOTS: usize = L::MOST_SLOTS;

    fn new(k: usize) -> Self {
        Self { lock: L::new(k), came: AtomicUsize::new(0) }
    }
}

impl<L: Blocking> Blocking for Pretends<L> {
    fn passage(&self, inside: impl FnOnce()) {
        self.lock.passage(inside);
    }

    fn stepwise(&self, entered: impl FnOnce(), inside: impl FnOnce()) {
        entered();
        if self.dawdles() {
            thread::sleep(Duration::from_micros(50));
        }
        self.lock.passage(inside);
    }
}

impl<L: Tasks> Tasks for Pretends<L> {
    async fn passage(&self, inside: impl Future<Output = ()> + Send) {
        self.lock.passage(inside).await;
    }

    async fn stepwise(
        &self,
        entered: impl FnOnce() + Send,
        inside: impl Future<Output = ()> + Send,
    ) {
        entered();
        if self.dawdles() {
            for _ in 0..16 {
                yield_now().await;
            }
        }
        self.lock.passage(inside).await;
    }
}

/// Admits every process.
struct Open;

impl Lock for Open {
    const NAME: &'static str = "open";
    const MOST_SLOTS: usize = usize::MAX;

    fn new(_: usize) -> Self {
        Self
    }
}

impl Blocking for Open {
    fn passage(&self, inside: impl FnOnce()) {
        inside();
    }
}

impl Sessions for Open {
    fn passage(&self, _: Ask, inside: impl FnOnce()) {
        inside();
    }
}

/// Tokio's semaphore without its budget: its doorway is the first poll.
struct Polled(Semaphore);

impl Lock for Polled {
    const NAME: &'static str = "polled";
    const MOST_SLOTS: usize = usize::MAX;

    fn new(k: usize) -> Self {
        Self(Semaphore::new(k))
    }
}

impl Tasks for Polled {
    async fn passage(&self, inside: impl Future<Output = ()> + Send) {
        self.stepwise(|| (), inside).await;
    }

    async fn stepwise(
        &self,
        entered: impl FnOnce() + Send,
        inside: impl Future<Output = ()> + Send,
    ) {
        let mut acquire = pin!(unconstrained(self.0.acquire()));
        let permit = match poll_fn(|context| Poll::Ready(acquire.as_mut().poll(context))).await {
            Poll::Ready(permit) => {
                entered();
                permit
            }
            Poll::Pending => {
                entered();
                acquire.await
            }
        };
        inside.await;
        drop(permit);
    }
}

fn work(k: usize, how: How) -> Work {
    let ms = Duration::from_millis;
    let times = Times { warm_up: ms(1), count: ms(5), stamp: ms(10) };
    let setting = Setting { threads: 4, k, inside_ns: 1000, think_ns: 100, how };
    Work { setting, times, spin: Spin::of_this_machine() }
}

/// Measures until something is found, or enough attempts have been made.
fn until(found: impl Fn(&Sample) -> bool, measure: impl Fn() -> Sample) -> bool {
    (0..300).any(|_| found(&measure()))
}

/// Measures until there is something to judge: where other programs want the processor too, there
/// may be nothing for a while.
fn seen(measure: impl Fn() -> Sample) -> Sample {
    (0..300).map(|_| measure()).find(|sample| sample.verdict.passages > 0).expect("somebody passes")
}

fn is_right(measure: impl Fn() -> Sample) {
    let sample = seen(measure);
    assert!(sample.doorway, "{sample:?}");
    assert_eq!((sample.verdict.overtakings, sample.verdict.intrusions), (0, 0), "{sample:?}");
}

#[test]
fn tickets_are_in_order() {
    is_right(|| crowd::slots::<Tickets>(&work(1, How::Threads)));
    is_right(|| crowd::sessions::<Tickets>(&work(1, How::TwoSessions)));
    is_right(|| crowd::sessions::<Tickets>(&work(1, How::SomeAlone)));
}

#[test]
fn tokio_is_in_order_once_its_budget_is_out_of_the_way() {
    for k in [1, 2] {
        is_right(|| tasks::tasks::<Polled>(&work(k, How::Tasks { current: false, awaits: true })));
    }
}

#[test]
fn a_mutex_that_is_not_fair_is_found_overtaking() {
    let overtakes = |sample: &Sample| {
        assert_eq!(sample.verdict.intrusions, 0, "{sample:?}");
        sample.doorway && sample.verdict.overtakings > 0
    };
    assert!(until(overtakes, || crowd::slots::<Pretends<Mutex<()>>>(&work(1, How::Threads))));
    assert!(until(overtakes, || {
        tasks::tasks::<Pretends<async_lock::Mutex<()>>>(&work(
            1,
            How::Tasks { current: false, awaits: true },
        ))
    }));
}

#[test]
fn a_semaphore_that_is_not_fair_is_found_overtaking() {
    let overtakes = |sample: &Sample| sample.verdict.overtakings > 0;
    assert!(until(overtakes, || crowd::slots::<Pretends<async_lock::Semaphore>>(&work(
        2,
        How::Threads
    ))));
}

#[test]
fn an_open_door_is_found() {
    let intrudes = |sample: &Sample| sample.verdict.intrusions > 0;
    assert!(until(intrudes, || crowd::slots::<Open>(&work(1, How::Threads))));
    assert!(until(intrudes, || crowd::sessions::<Open>(&work(1, How::TwoSessions))));
    // Sharing is what one session is for.
    assert!(!intrudes(&crowd::sessions::<Open>(&work(1, How::OneSession))));
}

#[test]
fn peers_without_a_doorway_are_not_judged_by_it() {
    assert!(!seen(|| crowd::slots::<Mutex<()>>(&work(1, How::Threads))).doorway);
}

#[test]
fn every_group_has_a_row_for_every_lock() {
    let plan =
        Plan { rounds: 1, seconds: 0.0005, quick: true, threads: Some(vec![3]), locks: Vec::new() };
    for group in &GROUPS {
        for bench in group.benches(&plan) {
            let watch = Watch::default();
            let rows = bench.run(&plan, &watch);
            let about = format!("{} {:?}", group.name, bench.setting);
            assert_eq!(watch.done.load(Relaxed), bench.measurements(&plan), "{about}");
            let names: Vec<_> = bench.contenders.iter().map(|lock| lock.name).collect();
            assert_eq!(rows.iter().map(|row| row.lock).collect::<Vec<_>>(), names, "{about}");
            assert!(bench.references.iter().all(|reference| names.contains(reference)), "{about}");
            for (row, own) in rows.iter().filter_map(|row| {
                Some((row, bench.references.iter().position(|reference| *reference == row.lock)?))
            }) {
                // A measurement as short as this may see nothing.
                assert!(row.ratios[own] == 1.0 || row.ops_per_second == 0.0, "{about}: {row:?}");
            }
            for row in rows {
                assert!(!row.is_wrong(), "{about}: {row:?}");
                assert_eq!(row.ratios.len(), bench.references.len(), "{about}: {row:?}");
                assert!(row.share_max_min >= 1.0, "{about}: {row:?}");
            }
        }
    }
}
