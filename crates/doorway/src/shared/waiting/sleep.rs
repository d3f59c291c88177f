//! The sleep of a waiter, and what ends it.
//!
//! | what happens | what ends the sleep |
//! |---|---|
//! | a slot is granted | the granter wakes the waiter |
//! | the process right ahead, or, at the front of the queue, a holder ends | the [watcher](super::watcher) wakes the waiter, which reclaims |
//! | the waiter right ahead leaves the queue | the leaving process wakes the waiter, which watches another process |
//! | the waiter is at the front now | the process that granted a slot to the waiter ahead wakes this waiter, which watches the holders |
//! | a process is killed before it wakes a waiter | that waiter watches it, or looks by itself once in a while |
//!
//! For the first moments ([`FIRST_LOOK`], [`FIRST_LOOK_OF_MANY`]) a waiter watches nothing: most
//! waits are short, and to begin to watch takes as long as several hand-overs.

use std::{
    sync::atomic::{
        AtomicU64,
        Ordering::{Acquire, Relaxed, SeqCst},
        fence,
    },
    time::{Duration, Instant},
};

use doorway_core::{
    Register, Registers, Ticket, Value,
    engines::named_lock::{Ends, Owner, State},
    raw,
};
use rustix::{
    fd::OwnedFd,
    io::Errno,
    process::{PidfdFlags, pidfd_open},
    thread::futex,
    time::Timespec,
};

use super::{
    super::{
        entries,
        file::{File, entry, global},
        liveness,
        map::low_half,
        memory::{Mapped, Stop},
    },
    patience::{Evidence, FEW, yield_until},
    watcher::Watcher,
};

/// After this time a waiter looks for deaths, and watches processes from then on.
const FIRST_LOOK: Duration = Duration::from_millis(50);
/// The same if more processes wait than [`MANY`].
const FIRST_LOOK_OF_MANY: Duration = Duration::from_millis(250);
const MANY: usize = 32;
/// A waiter looks again after this time, should a wake-up have been lost with a process that was
/// killed.
const LOOK: Duration = Duration::from_secs(10);
/// The same at the front of the queue, and behind an entry without an owner, which a process was
/// about to reclaim when it was killed. A process that was killed while it held the table lock, and
/// that neither held a slot nor waited, is found that way: nothing tells the waiters of its end.
const LOOK_SOON: Duration = Duration::from_millis(100);
/// How often a waiter looks if the system has no descriptor or thread left to watch with, or if it
/// has to watch a process of another PID namespace, for which there is no descriptor.
const LOOK_WITHOUT_WATCHER: Duration = Duration::from_millis(100);
/// What a waiter writes into its word before it sleeps, if it watches no process. 0 means that it
/// is awake.
const SLEEPS: u64 = 1;
/// The same if it watches processes.
const WATCHES: u64 = 2;
/// For how long the slot of a command that has ended is left to its `doorway run` to take back.
const GRACE: Duration = Duration::from_millis(20);

/// One process's wait for a slot.
#[derive(Default)]
pub(in super::super) struct Wait {
    sleeps: u32,
    since: Option<Instant>,
    first_look: Option<Duration>,
    watcher: Option<Watcher>,
    /// How long to sleep before the next look, once it watches.
    look: Option<Duration>,
    /// Another process has ended its last sleep.
    is_told: bool,
}

impl Wait {
    /// Returns whether another process has ended its last sleep.
    pub(in super::super) fn is_told(&self) -> bool {
        self.is_told
    }

    /// Returns how often the process has slept.
    pub(in super::super) fn sleeps(&self) -> u32 {
        self.sleeps
    }

    /// Sleeps until the state is no longer what was `seen`, or there may be a death to find.
    /// Returns whether to look for deaths.
    pub(in super::super) fn sleep(
        &mut self,
        m: &mut Mapped<'_>,
        state: Register<State>,
        seen: State,
    ) -> Result<bool, Stop> {
        self.sleeps += 1;
        let entry = state.index() / entry::WORDS;
        let state = m.words.get(state.index()).ok_or(Stop::Damaged)?;
        let changed = || state.load(Acquire) != seen.word() as u64;
        let waiting = usize::from(m.file.tally().waiting());
        if self.sleeps == 1 && waiting <= FEW && yield_until(changed, &m.file.evidence()) {
            return Ok(false);
        }
        let now = Instant::now();
        let since = *self.since.get_or_insert_with(|| m.file.entered(entry, seen, now));
        let waited = now - since;
        let first_look = *self.first_look.get_or_insert(if waiting > MANY {
            FIRST_LOOK_OF_MANY
        } else {
            FIRST_LOOK
        });
        let left = m.until.map_or(Duration::MAX, |until| until.saturating_duration_since(now));
        if waited >= first_look && left < FIRST_LOOK && self.look.is_none() {
            // There is not enough time to watch: one look has to do. A process may wait in such
            // slices only.
            self.look = Some(left);
            return self.before_look(m, entry, seen, left, changed);
        }
        let asleep = m.file.asleep(entry).ok_or(Stop::Damaged)?;
        let is_to_watch = waited >= first_look && left >= FIRST_LOOK;
        let how = if is_to_watch || self.look.is_some() { WATCHES } else { SLEEPS };
        // Said before it reads which processes to watch: a process that changes that later wakes
        // it.
        asleep.store(how, Relaxed);
        fence(SeqCst);
        if is_to_watch {
            match self.watch(m, entry, seen) {
                Ok(Some(look)) => self.look = Some(look),
                // A process has ended before it was watched.
                Ok(None) => {
                    asleep.store(0, Relaxed);
                    return if changed() {
                        Ok(false)
                    } else {
                        self.before_look(m, entry, seen, left, changed)
                    };
                }
                Err(stop) => {
                    asleep.store(0, Relaxed);
                    return Err(stop);
                }
            }
        }
        let look = self.look.unwrap_or(first_look.saturating_sub(waited));
        if !changed() {
            sleep_on(asleep, how, look.min(left));
        }
        self.is_told = asleep.swap(0, Relaxed) == 0;
        if changed() {
            return Ok(false);
        }
        if m.is_late() {
            return Err(Stop::Late);
        }
        m.file.check()?;
        self.before_look(m, entry, seen, left, changed)
    }

    /// Watches the processes whose end concerns the waiter. Returns after what time to look again;
    /// `None` if one of them has ended.
    fn watch(
        &mut self,
        m: &mut Mapped<'_>,
        entry: usize,
        seen: State,
    ) -> Result<Option<Duration>, Stop> {
        let mut pidfds = Vec::new();
        let (owners, is_to_look_soon) = watched(m, entry, seen)?;
        for (_, owner) in owners {
            match pidfd(m.file, owner) {
                Ok(Some(pidfd)) => pidfds.push(pidfd),
                Ok(None) => return Ok(None),
                Err(_) => return Ok(Some(LOOK_WITHOUT_WATCHER)),
            }
        }
        if self.watcher.is_none() {
            self.watcher = Watcher::start(m.file, entry).ok();
        }
        let Some(watcher) = &self.watcher else { return Ok(Some(LOOK_WITHOUT_WATCHER)) };
        watcher.watch(pidfds);
        Ok(Some(if is_to_look_soon { LOOK_SOON } else { LOOK }))
    }

    /// Leaves the slot of a command that has ended to its `doorway run` for a moment: if that
    /// releases it, the next holder is not told of a death. Returns whether to look for deaths.
    fn before_look(
        &self,
        m: &mut Mapped<'_>,
        entry: usize,
        seen: State,
        left: Duration,
        changed: impl Fn() -> bool,
    ) -> Result<bool, Stop> {
        let is_kept = |(entry, owner): &(usize, Owner)| {
            let keeper = m.file.keeper(*entry).filter(|keeper| keeper != owner);
            keeper.is_some_and(|keeper| !m.file.is_dead(keeper)) && m.file.is_dead(*owner)
        };
        if !watched(m, entry, seen)?.0.iter().any(is_kept) {
            return Ok(true);
        }
        let asleep = m.file.asleep(entry).ok_or(Stop::Damaged)?;
        asleep.store(SLEEPS, Relaxed);
        fence(SeqCst);
        if !changed() {
            sleep_on(asleep, SLEEPS, GRACE.min(left));
        }
        asleep.store(0, Relaxed);
        Ok(!changed())
    }
}

/// Returns the entries that a waiter watches, with their owners, and whether it has to look again
/// soon.
fn watched(
    m: &mut Mapped<'_>,
    entry: usize,
    seen: State,
) -> Result<(Vec<(usize, Owner)>, bool), Stop> {
    let State::Waiting(ticket) = seen else { return Ok((Vec::new(), true)) };
    let table = m.file.table();
    let watched = table.watched(m, entry, ticket)?;
    let mut owners = Vec::new();
    for i in watched.entries.iter() {
        owners.extend(m.read(table.owner(i))?.map(|owner| (i, owner)));
    }
    let is_to_look_soon = watched.is_front || owners.len() < watched.entries.len();
    Ok((owners, is_to_look_soon))
}

/// Returns a descriptor that is readable once the process has ended; `None` if it has.
///
/// # Errors
/// When there is none, as for a process of another PID namespace.
fn pidfd(file: &File, owner: Owner) -> Result<Option<OwnedFd>, Errno> {
    if file.is_foreign(owner) {
        return if file.is_dead(owner) { Ok(None) } else { Err(Errno::XDEV) };
    }
    let Some(pid) = liveness::pid(owner) else { return Ok(None) };
    match pidfd_open(pid, PidfdFlags::empty()) {
        // Checked once the descriptor is open: then the descriptor is for this process, and not for
        // another process with a reused PID.
        Ok(pidfd) => Ok(Some(pidfd).filter(|_| !file.is_dead(owner))),
        Err(Errno::SRCH) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Sleeps while the word has the value `how`, but no longer than `limit`.
fn sleep_on(asleep: &AtomicU64, how: u64, limit: Duration) {
    let time = Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: limit.subsec_nanos().into() };
    let _ = futex::wait(low_half(asleep), futex::Flags::empty(), how as u32, Some(&time));
}

impl File {
    /// Returns when the waiter entered.
    fn entered(&self, entry: usize, seen: State, now: Instant) -> Instant {
        let State::Waiting(ticket) = seen else { return now };
        now.checked_sub(self.waited(entry, ticket)).unwrap_or(now)
    }

    /// Returns how long the process has waited that entered with this ticket.
    fn waited(&self, entry: usize, ticket: Ticket) -> Duration {
        let word = |word: usize| {
            self.words().get(entry * entry::WORDS + word).map_or(0, |word| word.load(Relaxed))
        };
        if word(entry::STAMPED) != raw::number(ticket) {
            return Duration::ZERO;
        }
        Duration::from_nanos(entries::now().saturating_sub(word(entry::ENTERED)))
    }

    /// Ends the sleep of the waiter at the front of the queue if it watches other processes: it may
    /// have been behind another waiter, and has to watch the holders now.
    pub(in super::super) fn wake_front_that_watches(&self) {
        let front = self.front().and_then(|front| self.asleep(front));
        if let Some(asleep) = front.filter(|asleep| asleep.load(Relaxed) == WATCHES) {
            wake(asleep);
        }
    }

    /// The word that says how the waiter of this entry sleeps.
    fn asleep(&self, entry: usize) -> Option<&AtomicU64> {
        self.words().get(entry * entry::WORDS + entry::ASLEEP)
    }

    /// Ends the sleep of a waiter.
    pub(in super::super) fn wake(&self, entry: usize) {
        if let Some(asleep) = self.asleep(entry) {
            wake(asleep);
        }
    }

    /// What the processes of this lock know of yielding.
    fn evidence(&self) -> Evidence<'_> {
        let global = |word: usize| &self.words()[self.global(word)];
        Evidence {
            no_yields_until: global(global::NO_YIELDS_UNTIL),
            long_yields: global(global::LONG_YIELDS),
        }
    }

    /// Ends the sleep of the waiter at the front of the queue: it has to watch other processes now.
    pub(in super::super) fn wake_front(&self) {
        if let Some(front) = self.front() {
            self.wake(front);
        }
    }

    fn front(&self) -> Option<usize> {
        let word = self.words()[self.table().ends().index()].load(Acquire);
        Ends::from_word(u128::from(word), ()).front.entry()
    }
}

/// Ends the sleep of the waiter whose word this is, if it sleeps.
#[cold]
pub(in super::super) fn wake(asleep: &AtomicU64) {
    if asleep.swap(0, SeqCst) != 0 {
        let _ = futex::wake(low_half(asleep), futex::Flags::empty(), 1);
    }
}
