//! Timed waits on the native memory: a wait that ends in a timeout, and the place in line that is
//! given back.

use std::{
    sync::atomic::{AtomicU64, Ordering::SeqCst},
    thread,
    time::{Duration, Instant},
};

use doorway_core::{
    Exclusion, Size,
    algorithms::k_exclusion::{ColoredTicket, NumberedTicket, Queue, UnboundedColoredTicket},
    algorithms::mutex::{Bakery, BlackWhiteBakery, BurnsLamport, YangAnderson},
    native::{Instance, Native, Relax},
};

/// The time is up.
#[derive(Debug)]
struct TimedOut;

/// Waits until then.
struct Until(Instant);

impl Until {
    /// For how long; with no patience at all a wait ends at its first unsuccessful look.
    fn patience(patience: Duration) -> Self {
        Self(Instant::now() + patience)
    }
}

impl Relax for Until {
    type Halt = TimedOut;
    fn relax(&mut self, _: u32) -> Result<(), TimedOut> {
        if Instant::now() >= self.0 {
            return Err(TimedOut);
        }
        thread::yield_now();
        Ok(())
    }
}

/// One process of a lock, between passages or in the middle of one.
struct Process<'a, A: Exclusion<Native<'a, Until>, Request = ()>> {
    lock: &'a Instance<A>,
    p: usize,
    keep: A::Keep,
}

impl<'a, A: Exclusion<Native<'a, Until>, Request = ()>> Process<'a, A> {
    fn new(lock: &'a Instance<A>, p: usize) -> Self {
        Self { lock, p, keep: lock.algorithm().keep(p) }
    }

    /// Goes in, or returns the pass of its place in line.
    fn enter(&self, patience: Duration) -> Result<A::Pass, A::Pass> {
        let (algorithm, mut m) =
            (self.lock.algorithm(), self.lock.view(Until::patience(patience), 0));
        let pass = algorithm
            .doorway(&mut m, self.p, (), self.keep.clone())
            .expect("a doorway does not wait");
        algorithm.waiting(&mut m, self.p, pass.clone()).map_err(|TimedOut| pass)
    }

    fn exit(&mut self, pass: A::Pass) {
        let mut m = self.lock.view(Until::patience(Duration::ZERO), 0);
        self.keep =
            self.lock.algorithm().exit(&mut m, self.p, pass).expect("an exit does not wait");
    }

    /// Gives its place back; false if the algorithm has no way to.
    fn abandon(&mut self, pass: A::Pass) -> bool {
        let mut m = self.lock.view(Until::patience(Duration::ZERO), 0);
        let Some(keep) = self.lock.algorithm().abandon(&mut m, self.p, pass) else { return false };
        self.keep = keep.expect("abandoning does not wait");
        true
    }
}

/// Process 2 is inside, 0 waits and gives up, 1 comes later.
///
/// The ids matter to the one-bit mutex only: there, who waits for a smaller id has already taken
/// its bit back.
fn gives_up<'a, A: Exclusion<Native<'a, Until>, Request = ()>>(lock: &'a Instance<A>) {
    let [mut waits, mut late, mut holds] = [0, 1, 2].map(|p| Process::new(lock, p));
    let inside = holds.enter(Duration::ZERO).expect("nobody else is there");
    let place = waits.enter(Duration::from_millis(2)).expect_err("somebody is inside");
    holds.exit(inside);

    // Giving up is not enough: the place is still taken, and the one behind it waits.
    let behind = late.enter(Duration::ZERO).expect_err("somebody is before it");
    assert!(late.abandon(behind));

    assert!(waits.abandon(place));
    let inside = late.enter(Duration::ZERO).expect("the place is free");
    let place = waits.enter(Duration::ZERO).expect_err("somebody is inside");
    assert!(waits.abandon(place));
    late.exit(inside);
    let inside = waits.enter(Duration::ZERO).expect("who gave up may come back");
    waits.exit(inside);
}

#[test]
fn an_abandoned_place_is_free() -> Result<(), doorway_core::Unfit> {
    gives_up(&Instance::<Bakery>::new(Size::mutex(3))?);
    gives_up(&Instance::<BurnsLamport>::new(Size::mutex(3))?);
    gives_up(&Instance::<BlackWhiteBakery>::new(Size::mutex(3))?);
    gives_up(&Instance::<Queue>::new(Size::slots(3, 1))?);
    Ok(())
}

/// Four threads that lose patience, give their places back and come again, until each has had its
/// passages.
fn impatient<'a, A: Exclusion<Native<'a, Until>, Request = ()> + Sync>(lock: &'a Instance<A>) {
    const PASSAGES: u64 = 500;
    let (inside, meetings, visits) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for p in 0..4 {
            let (inside, meetings, visits) = (&inside, &meetings, &visits);
            scope.spawn(move || {
                let mut process = Process::new(lock, p);
                let mut done = 0;
                while done < PASSAGES {
                    match process.enter(Duration::from_micros(20)) {
                        Ok(pass) => {
                            meetings.fetch_add(inside.fetch_add(1, SeqCst), SeqCst);
                            visits.fetch_add(1, SeqCst);
                            thread::yield_now();
                            inside.fetch_sub(1, SeqCst);
                            process.exit(pass);
                            done += 1;
                        }
                        Err(place) => assert!(process.abandon(place)),
                    }
                }
            });
        }
    });
    assert_eq!(meetings.into_inner(), 0, "{}: two inside at once", A::NAME);
    assert_eq!(visits.into_inner(), 4 * PASSAGES);
}

#[test]
fn the_impatient_exclude_one_another() -> Result<(), doorway_core::Unfit> {
    impatient(&Instance::<Bakery>::new(Size::mutex(4))?);
    impatient(&Instance::<BurnsLamport>::new(Size::mutex(4))?);
    impatient(&Instance::<BlackWhiteBakery>::new(Size::mutex(4))?);
    impatient(&Instance::<Queue>::new(Size::slots(4, 1))?);
    Ok(())
}

/// The tournament has no way back: who gives up learns so, and has to wait again.
#[test]
fn the_tournament_cannot_be_abandoned() -> Result<(), doorway_core::Unfit> {
    let lock = Instance::<YangAnderson>::new(Size::mutex(2))?;
    let [holds, mut waits] = [0, 1].map(|p| Process::new(&lock, p));
    holds.enter(Duration::ZERO).expect("nobody else is there");
    waits.enter(Duration::ZERO).expect_err("somebody is inside");
    assert!(!waits.abandon(()));
    Ok(())
}

/// Nor does a ticket go back: it would become valid in its turn, with nobody there to pass it on.
fn keeps_its_ticket<'a, A: Exclusion<Native<'a, Until>, Request = ()>>(lock: &'a Instance<A>) {
    let [mut holds, mut waits] = [0, 1].map(|p| Process::new(lock, p));
    let inside = holds.enter(Duration::ZERO).expect("nobody else is there");
    let place = waits.enter(Duration::ZERO).expect_err("somebody is inside");
    assert!(!waits.abandon(place.clone()), "{}", A::NAME);
    // The place is still there, and good.
    holds.exit(inside);
    let mut m = lock.view(Until::patience(Duration::ZERO), 0);
    let inside = lock.algorithm().waiting(&mut m, 1, place).expect("it is its turn");
    waits.exit(inside);
}

#[test]
fn tickets_cannot_be_abandoned() -> Result<(), doorway_core::Unfit> {
    keeps_its_ticket(&Instance::<NumberedTicket>::new(Size::slots(2, 1))?);
    keeps_its_ticket(&Instance::<UnboundedColoredTicket>::new(Size::slots(2, 1))?);
    keeps_its_ticket(&Instance::<ColoredTicket>::new(Size::slots(2, 1))?);
    Ok(())
}
