//! The least that strict turns cost: processes in a fixed ring, which pass a token on.
//!
//! No queue, no count of slots, no recovery: a passage is one store, a call that sleeps and a call
//! that wakes. No lock that is granted in order and whose waiters sleep does less, so the ratio of
//! the ring to SysV is what such a lock can reach on the machine at hand.

use std::{
    cell::Cell,
    sync::atomic::{
        AtomicU64,
        Ordering::{Relaxed, SeqCst},
    },
};

use crate::{peers::Shared, processes::Words};

/// What the word of a process says: it does not have the token and is awake, it has the token, it
/// sleeps until it has, or it has left the ring.
const AWAKE: u64 = 0;
const TOKEN: u64 = 1;
const ASLEEP: u64 = 2;
const LEFT: u64 = 3;

/// A token that goes around among so many processes.
pub(crate) struct Ring {
    processes: usize,
    /// The word of each process, and the number of processes that have taken their seats.
    words: Words,
    /// The seat of this process, which it takes in its first passage.
    seat: Cell<Option<usize>>,
}

impl Ring {
    pub(crate) fn new(processes: usize) -> Self {
        let words = Words::new(processes + 1);
        words[0].store(TOKEN, SeqCst);
        Self { processes, words, seat: Cell::new(None) }
    }

    fn seat(&self) -> usize {
        let take = || self.words[self.processes].fetch_add(1, Relaxed) as usize;
        let seat = self.seat.get().unwrap_or_else(take);
        self.seat.set(Some(seat));
        seat
    }

    /// Passes the token on to the next process that has not left.
    fn pass_on(&self, seat: usize) {
        for next in (seat + 1..seat + self.processes).map(|next| &self.words[next % self.processes])
        {
            match next.fetch_update(SeqCst, SeqCst, |word| (word != LEFT).then_some(TOKEN)) {
                Ok(ASLEEP) => return futex(next, libc::FUTEX_WAKE, 1),
                Ok(_) => return,
                Err(_) => {}
            }
        }
    }
}

impl Shared for &Ring {
    fn name(&self) -> &'static str {
        "ring of sleeping processes"
    }

    fn passage(&self, inside: &mut dyn FnMut()) {
        let seat = self.seat();
        let own = &self.words[seat];
        while own.load(SeqCst) != TOKEN {
            if own.compare_exchange(AWAKE, ASLEEP, SeqCst, SeqCst) != Err(TOKEN) {
                futex(own, libc::FUTEX_WAIT, ASLEEP);
            }
        }
        own.store(AWAKE, SeqCst);
        inside();
        self.pass_on(seat);
    }

    fn leave(&self) {
        let seat = self.seat();
        if self.words[seat].swap(LEFT, SeqCst) == TOKEN {
            self.pass_on(seat);
        }
    }
}

/// Sleeps on the low half of a word, or wakes the process that does.
fn futex(word: &AtomicU64, operation: i32, value: u64) {
    let low = word.as_ptr().cast::<u32>().wrapping_add(usize::from(cfg!(target_endian = "big")));
    let none = std::ptr::null::<libc::timespec>();
    // SAFETY: the word is mapped, and no time limit is passed.
    unsafe { libc::syscall(libc::SYS_futex, low, operation, value as u32, none) };
}
