//! Threads that contend for a lock.

use std::{cell::Cell, thread};

use crate::{
    lock::{Ask, Blocking, Lock, Sessions},
    order::{Clock, Stamps},
    pin,
    work::{Apart, COUNT, How, STAMP, Sample, Seen, Stages, Think, Work, spin},
};

/// A lock, and what each process asks of it.
trait Subject: Sync {
    /// Returns the session that process p asks for in this passage.
    fn session(&self, p: u32, passage: u64) -> u32;

    fn passage(&self, session: u32, inside: impl FnOnce());

    fn stepwise(&self, session: u32, entered: impl FnOnce(), inside: impl FnOnce());
}

/// A lock without sessions: each process is a session of its own.
struct Slots<L>(L);

impl<L: Blocking> Subject for Slots<L> {
    fn session(&self, p: u32, _: u64) -> u32 {
        p
    }

    #[inline]
    fn passage(&self, _: u32, inside: impl FnOnce()) {
        self.0.passage(inside);
    }

    #[inline]
    fn stepwise(&self, _: u32, entered: impl FnOnce(), inside: impl FnOnce()) {
        self.0.stepwise(entered, inside);
    }
}

/// A lock with sessions: two that processes share, then one for each process that wants to be
/// alone.
struct Groups<L> {
    lock: L,
    how: How,
}

const SHARED: u32 = 2;

fn ask(session: u32) -> Ask {
    if session < SHARED { Ask::Share(session) } else { Ask::Alone(session - SHARED) }
}

impl<L: Sessions> Subject for Groups<L> {
    #[inline]
    fn session(&self, p: u32, passage: u64) -> u32 {
        match self.how {
            How::TwoSessions => p % 2,
            // Processes want to be alone in different passages.
            How::SomeAlone if (passage + u64::from(p)).is_multiple_of(16) => SHARED + p,
            _ => 0,
        }
    }

    #[inline]
    fn passage(&self, session: u32, inside: impl FnOnce()) {
        self.lock.passage(ask(session), inside);
    }

    #[inline]
    fn stepwise(&self, session: u32, entered: impl FnOnce(), inside: impl FnOnce()) {
        self.lock.stepwise(ask(session), entered, inside);
    }
}

/// Measures a lock with slots.
pub(crate) fn slots<L: Blocking>(work: &Work) -> Sample {
    crowd(&Apart(Slots(<L as Lock>::new(work.setting.k))).0, work)
}

/// Measures a lock with sessions.
pub(crate) fn sessions<L: Sessions>(work: &Work) -> Sample {
    crowd(&Apart(Groups { lock: <L as Lock>::new(work.setting.k), how: work.setting.how }).0, work)
}

fn crowd(subject: &impl Subject, work: &Work) -> Sample {
    let threads = work.setting.threads;
    let (stages, clock) = (&Stages::new(threads), Clock::start());
    let (seen, counted) = thread::scope(|scope| {
        let all: Vec<_> = (0..threads)
            .map(|p| scope.spawn(move || process(subject, p, work, stages, clock)))
            .collect();
        let counted = stages.drive(&work.times);
        (
            all.into_iter().map(|thread| thread.join().expect("passages do not panic")).collect(),
            counted,
        )
    });
    Seen::sum(seen, work.setting.k, counted)
}

fn process(subject: &impl Subject, p: usize, work: &Work, stages: &Stages, clock: Clock) -> Seen {
    if work.setting.how == How::Pinned {
        pin::to_core(p);
    }
    let mut seen = Seen::new(work.setting.threads);
    let mut think = Think::new(work, p);
    let rounds = work.spin.rounds(work.setting.inside_ns);
    let mut passage = 0;
    stages.start();
    while !stages.all_started() {
        thread::yield_now();
    }
    while let Some(stage) = stages.now() {
        let session = subject.session(p as u32, passage);
        if stage == STAMP {
            seen.note(stamped(subject, session, rounds, clock));
        } else {
            subject.passage(session, || spin(rounds));
            seen.passages += u64::from(stage == COUNT);
        }
        passage += 1;
        think.think();
    }
    seen
}

fn stamped(subject: &impl Subject, session: u32, rounds: u32, clock: Clock) -> Stamps {
    let (entered, inside, leaving) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let began = clock.stamp();
    subject.stepwise(
        session,
        || entered.set(clock.stamp()),
        || {
            inside.set(clock.stamp());
            spin(rounds);
            leaving.set(clock.stamp());
        },
    );
    Stamps { session, began, entered: entered.get(), inside: inside.get(), leaving: leaving.get() }
}
