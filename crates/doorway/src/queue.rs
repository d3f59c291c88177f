//! Where the semaphore's engine ([`doorway_core::k_exclusion::parked_ticket::line`]) meets threads and tasks: the word is an
//! atomic, the line of marks stands behind a lock that only those touch who have to wait, and sleepers are woken.

use std::{
    collections::VecDeque,
    mem,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{
            AtomicU64,
            Ordering::{Relaxed, SeqCst},
        },
    },
    task::Waker,
    thread::{self, Thread},
    time::Instant,
};

pub(crate) use doorway_core::k_exclusion::parked_ticket::line::Place as Standing;
use doorway_core::{
    Memory,
    k_exclusion::parked_ticket::line::{self, Format, Line, Mark},
};

const FORMAT: Format = Format::SHIPPED;

/// The most slots that there can be, and the most tickets in line.
pub(crate) const MOST: usize = (1 << (FORMAT.free - 1)) - 1;

/// Looks at the word before a thread that may hope to go in soon lets others run.
const SPINS: u32 = 200;

/// The word and the line.
#[derive(Debug)]
pub(crate) struct Queue {
    word: AtomicU64,
    /// In the order of tickets. Whoever locks this runs nobody else's code meanwhile.
    marks: Mutex<VecDeque<(u64, Held)>>,
}

#[derive(Debug)]
enum Held {
    Sleeps(Sleeper),
    Gone(u32),
}

/// Who is to be woken.
#[derive(Debug)]
pub(crate) enum Sleeper {
    Thread(Thread),
    Task(Waker),
}

impl Sleeper {
    fn wake(self) {
        match self {
            Self::Thread(thread) => thread.unpark(),
            Self::Task(waker) => waker.wake(),
        }
    }
}

/// The time is up.
#[derive(Debug)]
pub(crate) struct Late;

/// One caller: what it puts into the line, whom it takes out, and for how long it waits.
#[derive(Debug, Default)]
struct Caller {
    sleeper: Option<Sleeper>,
    taken: Option<Sleeper>,
    until: Option<Instant>,
}

/// Nothing but loops is asked of it: the accesses are the line's.
impl Memory for Caller {
    type Halt = Late;

    fn choose(&mut self, _: u32) -> Result<u32, Late> {
        unreachable!("the engine throws no coins")
    }
    fn toss(&mut self, _: u32) -> Result<u32, Late> {
        unreachable!("the engine throws no coins")
    }
    #[inline(always)]
    fn relax(&mut self, _: u32) -> Result<(), Late> {
        Ok(())
    }
}

impl Line<Caller> for Queue {
    #[inline(always)]
    fn format(&self) -> Format {
        FORMAT
    }

    #[inline(always)]
    fn add(&self, _: &mut Caller, add: u64) -> Result<u64, Late> {
        Ok(self.word.fetch_add(add, SeqCst))
    }

    #[inline(always)]
    fn word(&self, _: &mut Caller) -> Result<u64, Late> {
        Ok(self.word.load(SeqCst))
    }

    fn leave(&self, caller: &mut Caller, ticket: u64, mark: Option<Mark>) -> Result<Option<Mark>, Late> {
        let new = mark.map(|mark| match mark {
            Mark::Gone(slots) => Held::Gone(slots),
            Mark::Sleeps(_) => {
                Held::Sleeps(caller.sleeper.take().unwrap_or_else(|| Sleeper::Thread(thread::current())))
            }
        });
        // A waker that nobody needs any more is dropped outside the lock: that may run anybody's code.
        let old = exchange(&mut self.marks(), ticket, new);
        Ok(old.map(|held| match held {
            Held::Gone(slots) => Mark::Gone(slots),
            Held::Sleeps(sleeper) => {
                caller.taken = Some(sleeper);
                Mark::Sleeps(0)
            }
        }))
    }

    /// A thread that was woken before finds out when it looks, and sleeps again.
    fn settle(&self, caller: &mut Caller, _: u32) -> Result<(), Late> {
        caller.sleeper = Some(Sleeper::Thread(thread::current()));
        Ok(())
    }

    fn sleep(&self, caller: &mut Caller, _: u32) -> Result<(), Late> {
        match caller.until {
            None => thread::park(),
            Some(until) => {
                let left = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()).ok_or(Late)?;
                thread::park_timeout(left);
            }
        }
        Ok(())
    }

    fn wake(&self, caller: &mut Caller, _: u32) -> Result<(), Late> {
        if let Some(sleeper) = caller.taken.take() {
            sleeper.wake();
        }
        Ok(())
    }
}

/// Puts `new` in the place of a ticket; gives back what was there.
fn exchange(marks: &mut VecDeque<(u64, Held)>, ticket: u64, new: Option<Held>) -> Option<Held> {
    match (marks.binary_search_by(|(other, _)| FORMAT.order(*other, ticket)), new) {
        (Ok(at), Some(new)) => Some(mem::replace(&mut marks[at].1, new)),
        (Ok(at), None) => marks.remove(at).map(|(_, held)| held),
        (Err(at), Some(new)) => {
            marks.insert(at, (ticket, new));
            None
        }
        (Err(_), None) => None,
    }
}

/// What cannot be late.
fn sure<T>(result: Result<T, Late>) -> T {
    match result {
        Ok(value) => value,
        Err(Late) => unreachable!("only a sleeper with a time limit is late"),
    }
}

impl Queue {
    /// # Panics
    /// If there are too many slots.
    pub(crate) const fn new(slots: usize) -> Self {
        Self::after(0, slots)
    }

    /// The same after so many tickets.
    pub(crate) const fn after(tickets: u64, slots: usize) -> Self {
        assert!(slots <= MOST, "a semaphore has two million slots at most");
        Self { word: AtomicU64::new(FORMAT.word(tickets, slots as i64)), marks: Mutex::new(VecDeque::new()) }
    }

    fn marks(&self) -> MutexGuard<'_, VecDeque<(u64, Held)>> {
        // Nothing panics while it is locked.
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline(always)]
    pub(crate) fn enter(&self, weight: u32) -> Standing {
        sure(line::enter(self, &mut Caller::default(), weight))
    }

    /// Takes slots if they are free: a place that is enabled, or none. Never before anybody in line.
    #[inline(always)]
    pub(crate) fn try_enter(&self, weight: u32) -> Option<Standing> {
        let mut word = self.word.load(Relaxed);
        loop {
            if FORMAT.free(word) < i64::from(weight) {
                return None;
            }
            let next = word.wrapping_add(FORMAT.issue(u64::from(weight)));
            match self.word.compare_exchange_weak(word, next, SeqCst, Relaxed) {
                Ok(_) => return Some(Standing { ticket: FORMAT.issued(word), weight, enabled: true }),
                Err(now) => word = now,
            }
        }
    }

    #[inline(always)]
    pub(crate) fn release(&self, slots: u32) {
        sure(line::release(self, &mut Caller::default(), slots));
    }

    #[cold]
    pub(crate) fn abandon(&self, place: Standing) {
        if place.enabled {
            self.release(place.weight);
        } else {
            sure(line::abandon(self, &mut Caller::default(), place));
        }
    }

    /// Whether the place may go in.
    pub(crate) fn is_enabled(&self, place: Standing) -> bool {
        place.enabled || FORMAT.is_valid(self.word.load(SeqCst), place.ticket)
    }

    /// Waits. With a time limit, the place keeps standing when it is over.
    #[inline(always)]
    pub(crate) fn wait(&self, place: Standing, slots: usize, until: Option<Instant>) -> Result<(), Late> {
        if place.enabled { Ok(()) } else { self.wait_in_line(place, slots, until) }
    }

    #[cold]
    fn wait_in_line(&self, place: Standing, slots: usize, until: Option<Instant>) -> Result<(), Late> {
        // Spinning pays where everybody who is before this one is running; else it keeps them from running.
        let others = self.waiters() + slots;
        if others <= cores() && (0..SPINS).any(|_| self.looks_again(place)) {
            return Ok(());
        }
        thread::yield_now();
        line::wait(self, &mut Caller { until, ..Caller::default() }, 0, place)
    }

    fn looks_again(&self, place: Standing) -> bool {
        std::hint::spin_loop();
        self.is_enabled(place)
    }

    /// Whether the place may go in; if not, the waker will be told when it may.
    pub(crate) fn poll(&self, place: Standing, waker: &Waker) -> bool {
        if self.is_enabled(place) {
            return true;
        }
        let mut caller = Caller { sleeper: Some(Sleeper::Task(waker.clone())), ..Caller::default() };
        !sure(line::lie_down(self, &mut caller, 0, place))
    }

    /// How many slots are free.
    pub(crate) fn free(&self) -> usize {
        FORMAT.free(self.word.load(SeqCst)).max(0) as usize
    }

    /// How many tickets wait.
    pub(crate) fn waiters(&self) -> usize {
        FORMAT.free(self.word.load(SeqCst)).min(0).unsigned_abs() as usize
    }
}

fn cores() -> usize {
    use std::sync::OnceLock;
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| thread::available_parallelism().map_or(1, usize::from))
}
