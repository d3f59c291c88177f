//! The semaphore of the product: tickets in one word, and a queue of sleeping waiters. The lab runs
//! the functions that the crate `doorway` runs; only the [`Line`] differs.
//!
//! After the ticket algorithm of Fischer et al. 1985 (Figure 2). The word holds how many tickets
//! have been *issued* and how many slots are *free*. The two numbers together say which tickets are
//! valid. While no process waits, one addition acquires and one addition releases. Three things are
//! not in the paper:
//!
//! - A waiter may *sleep*. It leaves a mark in the queue, looks at the word once more, and only
//!   then sleeps. A process that validates a ticket first changes the word and then looks for the
//!   mark. So one of the two sees what the other process did.
//! - A place may be *abandoned*, by a mark that says so. A process that validates such a ticket
//!   passes its slot on. Again both processes look twice, and the process that takes the mark out
//!   of the queue passes the slot on.
//! - A place may have a *weight*: that many tickets in a row. Its waiter sleeps under the last of
//!   them. If the place is abandoned, the process leaves a mark at each ticket, so that the waiters
//!   behind it need not wait until that many slots are free.

use core::{
    cmp::Ordering,
    ops::ControlFlow::{Break, Continue},
};

use crate::{Local, Memory, plain_local};

/// The layout of the two numbers in the word: `issued · 2^free + free`, shifted to the top, so that
/// additions wrap around as the numbers should. `free` is negative while processes wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Format {
    /// Bits of the number of free slots, its sign included.
    pub free: u32,
    /// Bits of the number of issued tickets. A valid ticket counts as valid as long as fewer than
    /// half of that range have become valid since.
    pub issued: u32,
}

impl Format {
    /// The format of the product: two million slots or waiting tickets, and a place may be looked
    /// at after two trillion later places.
    pub const SHIPPED: Self = Self { free: 22, issued: 42 };

    const fn shift(self) -> u32 {
        u64::BITS - self.free - self.issued
    }

    /// Returns the word with `free` free slots, after `issued` tickets.
    #[must_use]
    pub const fn word(self, issued: u64, free: i64) -> u64 {
        (issued << self.free).wrapping_add(free as u64) << self.shift()
    }

    /// Returns what to add to issue `tickets` tickets.
    #[must_use]
    pub const fn issue(self, tickets: u64) -> u64 {
        self.word(tickets, 0).wrapping_sub(self.validate(tickets))
    }

    /// Returns what to add to validate `tickets` tickets.
    #[must_use]
    pub const fn validate(self, tickets: u64) -> u64 {
        tickets << self.shift()
    }

    /// Returns how many slots are free; if negative, how many tickets wait.
    #[inline(always)]
    #[must_use]
    pub const fn free(self, word: u64) -> i64 {
        (word << self.issued) as i64 >> (u64::BITS - self.free)
    }

    /// Returns how many tickets have been issued: the number of the next ticket.
    #[inline(always)]
    #[must_use]
    pub const fn issued(self, word: u64) -> u64 {
        self.ticket((word >> self.shift()).wrapping_sub(self.free(word) as u64) >> self.free)
    }

    /// Returns the number of the first ticket that is not valid.
    #[inline(always)]
    const fn valid(self, word: u64) -> u64 {
        self.ticket(self.issued(word).wrapping_add(self.free(word) as u64))
    }

    /// Returns the number of the last ticket that is valid.
    #[inline(always)]
    pub(super) const fn last_valid(self, word: u64) -> u64 {
        self.ticket(self.valid(word).wrapping_sub(1))
    }

    /// Reduces a number to that of a ticket.
    const fn ticket(self, number: u64) -> u64 {
        number & ((1 << self.issued) - 1)
    }

    /// Returns whether a ticket is valid.
    #[inline(always)]
    #[must_use]
    pub const fn is_valid(self, word: u64, ticket: u64) -> bool {
        self.ahead(self.valid(word), ticket) > 0
    }

    /// Compares two tickets by their order, if not too many lie between them.
    #[must_use]
    pub fn order(self, a: u64, b: u64) -> Ordering {
        self.ahead(a, b).cmp(&0)
    }

    /// Returns by how much `a` is ahead of `b`, times a constant.
    const fn ahead(self, a: u64, b: u64) -> i64 {
        (a.wrapping_sub(b) << (u64::BITS - self.issued)) as i64
    }
}

/// A mark that a process leaves in the queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Mark<S> {
    /// The process sleeps, or is about to: this sleeper is to be woken.
    Sleeps(S),
    /// The process has abandoned its place: the slot is to be passed on.
    Gone,
}

plain_local!(Mark<u32>);

/// The word, and the queue of marks, one for each waiting ticket.
pub trait Line<M: Memory>: Sync {
    /// What identifies a sleeper to wake.
    type Sleeper: Sync;

    /// Returns the format of the word.
    fn format(&self) -> Format;

    /// Adds to the word; returns the previous word.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    fn add(&self, m: &mut M, add: u64) -> Result<u64, M::Halt>;

    /// Reads the word.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    fn word(&self, m: &mut M) -> Result<u64, M::Halt>;

    /// Sets or clears the mark at the place of a ticket; returns the previous mark.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    fn leave(
        &self,
        m: &mut M,
        ticket: u64,
        mark: Option<Mark<Self::Sleeper>>,
    ) -> Result<Option<Mark<Self::Sleeper>>, M::Halt>;

    /// Returns the sleeper to wake if process `p` sleeps. An earlier wake-up is forgotten.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    fn settle(&self, m: &mut M, p: u32) -> Result<Self::Sleeper, M::Halt>;

    /// Sleeps until `p` is woken.
    ///
    /// # Errors
    /// In the lab, where a process may stop here; natively when the wait is given up.
    fn sleep(&self, m: &mut M, p: u32) -> Result<(), M::Halt>;

    /// Wakes the sleeper whose mark has just been taken out.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    fn wake(&self, m: &mut M, sleeper: Self::Sleeper) -> Result<(), M::Halt>;
}

/// A place in the queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Place {
    /// The last of the place's tickets.
    pub ticket: u64,
    /// How many tickets it has.
    pub weight: u32,
    /// Whether the place was valid at once.
    pub enabled: bool,
}

impl Local for Place {
    fn relabel(&self, _: crate::Relabel<'_>) -> Self {
        *self
    }
}

/// Runs the doorway: takes tickets, in one step.
///
/// # Errors
/// When the memory halts the process.
#[inline(always)]
pub fn enter<M: Memory, L: Line<M>>(line: &L, m: &mut M, weight: u32) -> Result<Place, M::Halt> {
    let format = line.format();
    let word = line.add(m, format.issue(u64::from(weight)))?;
    let ticket = format.ticket(format.issued(word).wrapping_add(u64::from(weight) - 1));
    Ok(Place { ticket, weight, enabled: format.free(word) >= i64::from(weight) })
}

/// Returns whether the place may enter.
///
/// # Errors
/// When the memory halts the process.
#[inline]
pub fn is_enabled<M: Memory, L: Line<M>>(
    line: &L,
    m: &mut M,
    place: Place,
) -> Result<bool, M::Halt> {
    is_valid(line, m, place.ticket)
}

#[inline(always)]
fn is_valid<M: Memory, L: Line<M>>(line: &L, m: &mut M, ticket: u64) -> Result<bool, M::Halt> {
    Ok(line.format().is_valid(line.word(m)?, ticket))
}

/// Leaves a sleeper's mark in the queue, unless the place may enter; returns whether it did.
///
/// # Errors
/// When the memory halts the process.
#[inline(always)]
pub fn lie_down<M: Memory, L: Line<M>>(
    line: &L,
    m: &mut M,
    sleeper: L::Sleeper,
    place: Place,
) -> Result<bool, M::Halt> {
    line.leave(m, place.ticket, Some(Mark::Sleeps(sleeper)))?;
    if m.mutant("looks-once") || !is_enabled(line, m, place)? {
        return Ok(true);
    }
    line.leave(m, place.ticket, None)?;
    Ok(false)
}

/// Waits, asleep.
///
/// # Errors
/// When the memory halts the process, or the wait is given up.
#[track_caller]
pub fn wait<M: Memory, L: Line<M>>(
    line: &L,
    m: &mut M,
    p: u32,
    place: Place,
) -> Result<(), M::Halt> {
    m.repeat((), |m, ()| {
        if is_enabled(line, m, place)? {
            return Ok(Break(()));
        }
        let lies = m.scope(|m| {
            let sleeper = line.settle(m, p)?;
            lie_down(line, m, sleeper, place)
        })?;
        if lies {
            line.sleep(m, p)?;
        }
        Ok(Continue(()))
    })
}

/// Passes slots on: makes as many tickets valid, wakes their sleepers, and passes on the slots of
/// abandoned places in the same way.
///
/// # Errors
/// When the memory halts the process.
#[inline(always)]
#[track_caller]
pub fn release<M: Memory, L: Line<M>>(line: &L, m: &mut M, slots: u32) -> Result<(), M::Halt> {
    let format = line.format();
    let word = line.add(m, format.validate(u64::from(slots)))?;
    if format.free(word) >= 0 {
        return Ok(()); // no process waits
    }
    pass_on(line, m, word, slots)
}

#[cold]
#[track_caller]
fn pass_on<M: Memory, L: Line<M>>(
    line: &L,
    m: &mut M,
    word: u64,
    slots: u32,
) -> Result<(), M::Halt> {
    m.repeat((word, slots), |m, (word, slots)| {
        let gone = m.scope(|m| called(line, m, word, slots))?;
        if gone == 0 || m.mutant("keeps-what-is-left") {
            return Ok(Break(()));
        }
        let format = line.format();
        let word = line.add(m, format.validate(u64::from(gone)))?;
        Ok(if format.free(word) >= 0 { Break(()) } else { Continue((word, gone)) })
    })
}

/// Wakes the sleepers at the tickets that have become valid; returns how many slots belong to
/// abandoned places there.
#[track_caller]
fn called<M: Memory, L: Line<M>>(
    line: &L,
    m: &mut M,
    word: u64,
    slots: u32,
) -> Result<u32, M::Halt> {
    let format = line.format();
    let (first, waiting) = (format.valid(word), format.free(word).unsigned_abs());
    m.fold(0..u64::from(slots).min(waiting) as usize, 0, |m, gone, i| {
        match line.leave(m, format.ticket(first.wrapping_add(i as u64)), None)? {
            None => Ok(gone),
            Some(Mark::Sleeps(sleeper)) => {
                if !m.mutant("wakes-nobody") {
                    line.wake(m, sleeper)?;
                }
                Ok(gone)
            }
            Some(Mark::Gone) => Ok(gone + 1),
        }
    })
}

/// Leaves the queue instead of entering.
///
/// # Errors
/// When the memory halts the process.
#[track_caller]
pub fn abandon<M: Memory, L: Line<M>>(line: &L, m: &mut M, place: Place) -> Result<(), M::Halt> {
    let format = line.format();
    let first = place.ticket.wrapping_sub(u64::from(place.weight) - 1);
    let mine = m.fold(0..place.weight as usize, 0, |m, mine, i| {
        let ticket = format.ticket(first.wrapping_add(i as u64));
        line.leave(m, ticket, Some(Mark::Gone))?;
        // If the ticket is valid by now, the process that validated it may have looked before the
        // mark was there.
        let again = is_valid(line, m, ticket)? && {
            let mark = line.leave(m, ticket, None)?;
            mark.is_some() || m.mutant("passes-on-twice")
        };
        Ok(mine + u32::from(again))
    })?;
    if mine > 0 && !m.mutant("leaves-it-to-others") { release(line, m, mine) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers count as they should from every start, the wrap included.
    #[test]
    fn words_count() {
        for format in [Format::SHIPPED, Format { free: 4, issued: 6 }] {
            let wrap = 1_u64 << format.issued;
            for start in [0, 1, wrap / 2 - 2, wrap / 2, wrap - 3, wrap - 1] {
                let mut word = format.word(start, 2);
                let mut tickets = alloc::vec::Vec::new();
                for free in [2, 1, 0, -1, -2] {
                    assert_eq!(
                        (format.free(word), format.issued(word)),
                        (free, format.ticket(start + tickets.len() as u64))
                    );
                    tickets.push(format.issued(word));
                    word = word.wrapping_add(format.issue(1));
                }
                for valid in 2..=5 {
                    for (i, &ticket) in tickets.iter().enumerate() {
                        assert_eq!(
                            format.is_valid(word, ticket),
                            i < valid,
                            "{format:?} {start} {i} of {valid}"
                        );
                    }
                    word = word.wrapping_add(format.validate(1));
                }
            }
        }
    }
}
