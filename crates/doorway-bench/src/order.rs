//! The judge of order. It relies on the clock, not on the lock.
//!
//! Each process stamps when it begins its doorway, when it is through, when it is inside and when
//! it is about to leave. From these stamps alone follows:
//!
//! - *order*: when q is inside, fewer than k of the processes that were through their doorways
//!   before q began its own are still not inside. That is FCFS for k = 1 and k-FCFS for more. Among
//!   sessions, only processes that exclude q count, and k is 1.
//! - *exclusion*: of processes that exclude one another, at most k are inside.
//!
//! **Stamps accuse no process wrongly.** A stamp can be late, for its process may lose the
//! processor just before it. If p was granted before q but stamps later, p holds its slot all the
//! while. So when q is inside with k such p still to stamp, k + 1 are inside at once: the lock is
//! wrong either way. The stamp of the doorway's end is late or right, that of its beginning early
//! or right. So the judge orders fewer pairs than are ordered, never more.
//!
//! **Which clock.** [`Instant`], the system's monotonic clock, between fences. It is the same on
//! all cores, and costs some 25 ns. A shared counter would be exact, but all processes would queue
//! for it, as for a lock: the counter would be what is measured. The bare time stamp counter is
//! faster, and promises less: not the same on all cores, not in the order of the program.

use std::{
    sync::atomic::{Ordering::SeqCst, fence},
    time::Instant,
};

/// The nanoseconds since the beginning of a measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// Returns the time, after all earlier and before all later operations of the program.
    #[inline]
    pub(crate) fn stamp(self) -> u64 {
        fence(SeqCst);
        let now = self.0.elapsed().as_nanos() as u64;
        fence(SeqCst);
        now
    }
}

/// The stamps of one passage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamps {
    /// The session. The lock does not exclude processes of the same session. Where there are no
    /// sessions, each process is one.
    pub session: u32,
    /// Before the doorway.
    pub began: u64,
    /// After the doorway. For a lock without one: the time that stands for it.
    pub entered: u64,
    /// In the critical section, first thing.
    pub inside: u64,
    /// In the critical section, last thing.
    pub leaving: u64,
}

/// What the judge found.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Verdict {
    /// Passages that were looked at.
    pub passages: u64,
    /// Of these, how many were inside ahead of k processes that had entered before.
    pub overtakings: u64,
    /// And how many were inside with k other processes that should have excluded them.
    pub intrusions: u64,
}

impl Verdict {
    /// Adds the numbers of another verdict.
    pub(crate) fn add(&mut self, other: Self) {
        self.passages += other.passages;
        self.overtakings += other.overtakings;
        self.intrusions += other.intrusions;
    }
}

/// Judges passages with k slots. Missing passages accuse no process.
pub fn judge(passages: &[Stamps], k: usize) -> Verdict {
    let sessions = passages.iter().map(|p| p.session as usize + 1).max().unwrap_or(0);
    Verdict {
        passages: passages.len() as u64,
        overtakings: overtakings(passages, k, sessions),
        intrusions: intrusions(passages, k, sessions),
    }
}

fn overtakings(passages: &[Stamps], k: usize, sessions: usize) -> u64 {
    let mut by_entered: Vec<&Stamps> = passages.iter().collect();
    by_entered.sort_unstable_by_key(|p| p.entered);
    let mut by_began: Vec<&Stamps> = passages.iter().collect();
    by_began.sort_unstable_by_key(|q| q.began);
    // For each session, the last process to be inside of those that were through before q began.
    // The last is enough: if a session is one process, its earlier passages are over; if it is not,
    // k is 1.
    let mut last = vec![0; sessions];
    let mut before = by_entered.into_iter().peekable();
    let mut found = 0;
    for q in by_began {
        while let Some(p) = before.next_if(|p| p.entered < q.began) {
            let last = &mut last[p.session as usize];
            *last = p.inside.max(*last);
        }
        let late = last
            .iter()
            .enumerate()
            .filter(|&(session, &last)| session != q.session as usize && last > q.inside);
        found += u64::from(late.take(k).count() == k);
    }
    found
}

fn intrusions(passages: &[Stamps], k: usize, sessions: usize) -> u64 {
    // At the same nanosecond, leaving goes first. A passage that took no time met no process.
    let mut events: Vec<(u64, bool, u32)> = passages
        .iter()
        .filter(|p| p.inside < p.leaving)
        .flat_map(|p| [(p.inside, true, p.session), (p.leaving, false, p.session)])
        .collect();
    events.sort_unstable();
    let (mut all, mut of) = (0_usize, vec![0_usize; sessions]);
    let mut found = 0;
    for (_, comes, session) in events {
        let of = &mut of[session as usize];
        if comes {
            found += u64::from(all - *of >= k);
            all += 1;
            *of += 1;
        } else {
            all -= 1;
            *of -= 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The arguments are passages: session, beginning, end of the doorway, inside and leaving.
    fn found<const N: usize>(k: usize, passages: [(u32, u64, u64, u64, u64); N]) -> (u64, u64) {
        let stamps = |(session, began, entered, inside, leaving)| Stamps {
            session,
            began,
            entered,
            inside,
            leaving,
        };
        let verdict = judge(&passages.map(stamps), k);
        assert_eq!(verdict.passages, N as u64);
        (verdict.overtakings, verdict.intrusions)
    }

    #[test]
    fn one_after_the_other_is_right() {
        assert_eq!(found(1, []), (0, 0));
        assert_eq!(found(1, [(0, 0, 1, 2, 5), (1, 2, 3, 6, 8), (0, 6, 7, 9, 10)]), (0, 0));
    }

    #[test]
    fn going_in_ahead_of_one_who_came_before_is_found() {
        assert_eq!(found(1, [(0, 0, 1, 9, 10), (1, 2, 3, 4, 5)]), (1, 0));
        // Two passages, ahead of the same one.
        assert_eq!(found(1, [(0, 0, 1, 9, 10), (1, 2, 3, 4, 5), (2, 3, 4, 6, 7)]), (2, 0));
        // The overtaking process need not have left before the other was inside, if too many are
        // inside.
        assert_eq!(found(1, [(0, 0, 1, 6, 10), (1, 2, 3, 4, 8)]), (1, 1));
        // By a process that enters again: only its second passage began after that doorway.
        assert_eq!(found(1, [(0, 0, 3, 20, 21), (1, 1, 2, 4, 5), (1, 6, 7, 8, 9)]), (1, 0));
        // By a process whose victim has made a correct passage since.
        assert_eq!(found(1, [(0, 0, 1, 9, 10), (1, 2, 3, 4, 5), (0, 11, 12, 13, 14)]), (1, 0));
    }

    #[test]
    fn doorways_that_overlap_have_no_order() {
        assert_eq!(found(1, [(0, 0, 3, 9, 10), (1, 2, 3, 4, 5)]), (0, 0));
        // The very same nanosecond is no order either.
        assert_eq!(found(1, [(0, 0, 2, 9, 10), (1, 2, 3, 4, 5)]), (0, 0));
    }

    #[test]
    fn with_two_slots_one_may_be_late_and_two_may_not() {
        assert_eq!(found(2, [(0, 0, 1, 9, 10), (1, 2, 3, 4, 5)]), (0, 0));
        assert_eq!(found(2, [(0, 0, 1, 9, 10), (1, 0, 1, 8, 10), (2, 2, 3, 4, 5)]), (1, 0));
        assert_eq!(found(3, [(0, 0, 1, 9, 10), (1, 0, 1, 8, 10), (2, 2, 3, 4, 5)]), (0, 0));
        // One of the two did not enter before the third.
        assert_eq!(found(2, [(0, 0, 1, 9, 10), (1, 0, 2, 8, 10), (2, 2, 3, 4, 5)]), (0, 0));
    }

    #[test]
    fn a_slot_too_few_is_found() {
        assert_eq!(found(1, [(0, 0, 1, 2, 5), (1, 0, 1, 4, 6)]), (0, 1));
        assert_eq!(found(2, [(0, 0, 1, 2, 5), (1, 0, 1, 4, 6)]), (0, 0));
        assert_eq!(found(2, [(0, 0, 1, 2, 5), (1, 0, 1, 4, 6), (2, 0, 1, 3, 7)]), (0, 1));
        // One process leaves as another is inside; and a passage without an extent.
        assert_eq!(found(1, [(0, 0, 1, 2, 5), (1, 0, 1, 5, 6), (2, 0, 1, 4, 4)]), (0, 0));
    }

    #[test]
    fn those_of_one_session_share_and_need_no_order() {
        assert_eq!(found(1, [(0, 0, 1, 9, 20), (0, 2, 3, 4, 15)]), (0, 0));
        // Another session has to wait for the first, whatever processes of its own session do.
        assert_eq!(found(1, [(0, 0, 1, 9, 20), (1, 2, 3, 4, 5), (1, 0, 1, 2, 5)]), (1, 0));
        assert_eq!(found(1, [(0, 0, 1, 2, 9), (0, 2, 3, 4, 6), (1, 3, 4, 8, 12)]), (0, 1));
        // The passage that waits for the first is not forgotten when another of its session is
        // inside.
        assert_eq!(found(1, [(0, 0, 1, 20, 21), (0, 1, 2, 3, 5), (1, 4, 5, 10, 12)]), (1, 0));
    }
}
