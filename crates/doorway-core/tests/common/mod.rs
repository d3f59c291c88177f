//! What locks are for, as a test sees it.

use std::{
    sync::atomic::{
        AtomicU64,
        Ordering::{Relaxed, SeqCst},
    },
    thread,
};

use doorway_core::{Algorithm, Problem, Session, Size};

/// What the lock is for. It notes what goes wrong instead of panicking: a process that panics
/// inside leaves the others waiting for ever, and the test with them.
pub(crate) struct Room {
    /// How many may be inside at once.
    pub(crate) slots: u64,
    pub(crate) inside: AtomicU64,
    /// How many of them have asked for which session.
    pub(crate) sessions: Vec<AtomicU64>,
    /// How often somebody came in or left and there were too many, or others of another session.
    pub(crate) crowds: AtomicU64,
    /// The most that were inside at once.
    pub(crate) most: AtomicU64,
    /// With one slot counted by a read and a write apart, so that a meeting also loses a visit.
    pub(crate) visits: AtomicU64,
}

impl Room {
    pub(crate) fn new(size: Size) -> Self {
        let zero = || AtomicU64::new(0);
        let sessions = (0..=size.sessions).map(|_| zero()).collect();
        Self {
            slots: size.k as u64,
            inside: zero(),
            sessions,
            crowds: zero(),
            most: zero(),
            visits: zero(),
        }
    }

    /// How many have to have been inside at once for nobody to say that the lock keeps out whom it
    /// need not: all slots are used, or two of one session are there together.
    pub(crate) fn wanted(&self) -> u64 {
        if self.has_sessions() { self.slots.min(2) } else { self.slots }
    }

    fn has_sessions(&self) -> bool {
        self.sessions.len() > 1
    }

    /// Goes in and out. Every eighth time it lets the others run, who run into a lock that is
    /// taken, also where there are fewer cores than processes; with `linger` until there is nobody
    /// missing, or for so many times.
    pub(crate) fn visit(&self, session: Session, linger: u32) {
        self.sessions[session.0 as usize].fetch_add(1, SeqCst);
        let now = self.inside.fetch_add(1, SeqCst) + 1;
        let mut mixed = self.others(session) > 0;
        let visits = self.visits.load(Relaxed);
        if visits.is_multiple_of(8) {
            thread::yield_now();
            // Those who are not inside may all be waiting for another session: then nobody will
            // come.
            let linger = if self.has_sessions() { linger.min(50) } else { linger };
            for _ in 0..linger {
                if self.inside.load(SeqCst) >= self.wanted() {
                    break;
                }
                thread::yield_now();
            }
        }
        if self.slots == 1 && !self.has_sessions() {
            self.visits.store(visits + 1, Relaxed);
        } else {
            self.visits.fetch_add(1, Relaxed);
        }
        mixed |= self.others(session) > 0;
        let most = now.max(self.inside.fetch_sub(1, SeqCst));
        self.sessions[session.0 as usize].fetch_sub(1, SeqCst);
        self.most.fetch_max(most, Relaxed);
        self.crowds.fetch_add(u64::from(most > self.slots || mixed), Relaxed);
    }

    /// How many are inside who have asked for something else.
    fn others(&self, session: Session) -> u64 {
        let others =
            self.sessions.iter().enumerate().filter(|(other, _)| *other != session.0 as usize);
        others.map(|(_, inside)| inside.load(SeqCst)).sum()
    }

    /// What went wrong in a room that was visited so often.
    pub(crate) fn complaint(&self, visits: u64) -> Option<String> {
        let (crowds, noted) = (self.crowds.load(SeqCst), self.visits.load(SeqCst));
        if crowds > 0 {
            let what = if self.has_sessions() { "of different sessions" } else { "too many" };
            return Some(format!("up to {} inside, {crowds} times {what}", self.most.load(SeqCst)));
        }
        (noted != visits)
            .then(|| format!("{visits} passages, but {noted} visits: two were inside at once"))
    }
}

/// The sizes with which an algorithm is tried among `n`.
pub(crate) fn sizes<A: Algorithm>(n: usize) -> Vec<Size> {
    let mut sizes: Vec<Size> = match A::CLAIMS.problem {
        Problem::Mutex => vec![Size::mutex(n)],
        Problem::KExclusion => {
            [1, n / 2, n - 1].into_iter().filter(|&k| k > 0).map(|k| Size::slots(n, k)).collect()
        }
        Problem::Group => [1, 2, 5].map(|sessions| Size::group(n, sessions)).to_vec(),
    };
    sizes.dedup();
    sizes
}

/// What process `p` asks for in each of its passages, one after the other: all there is, each
/// process in an order of its own.
pub(crate) fn requests<R: doorway_core::Request>(size: Size, p: usize) -> impl Iterator<Item = R> {
    let all = R::all(size);
    let mut state = p as u64;
    std::iter::repeat_with(move || {
        // Knuth's generator (1998); the upper bits are the random ones.
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        all[(state >> 33) as usize % all.len()].clone()
    })
}
