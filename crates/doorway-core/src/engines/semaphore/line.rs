//! The semaphore that ships: tickets in one word, and a line of those who sleep. What runs here in
//! the lab is what the crate `doorway` runs, function by function; only the [`Line`] differs.
//!
//! After the ticket algorithm of paper 003 (Figure 2). The word holds how many tickets have been
//! *issued* and how many slots are *free*; both together say which tickets are valid. Where nobody
//! waits, coming and going are one addition each. Three things are not in the paper:
//!
//! - Who waits may *sleep*. It leaves a mark in the line, looks at the word once more, and only
//!   then sleeps; who validates a ticket changes the word first and looks for the mark then. So one
//!   of the two sees the other.
//! - A place may be *abandoned*, by a mark that says so. Whoever validates such a ticket passes its
//!   slot on. Again both look twice, and whoever takes the mark out of the line is the one that
//!   passes it on.
//! - A place may have a *weight*: so many tickets in a row. It sleeps under the last of them.
//!   Abandoned, it leaves a mark at each, so that those behind it need not wait until there are as
//!   many slots.

use core::{
    cmp::Ordering,
    ops::ControlFlow::{Break, Continue},
};

use crate::{Local, Memory, plain_local};

/// Where the two numbers stand in the word: `issued · 2^free + free`, shifted to the top, so that
/// additions wrap around as the numbers should. `free` is negative while somebody waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Format {
    /// Bits of the number of free slots, its sign included.
    pub free: u32,
    /// Bits of the number of tickets issued. A ticket is taken for valid for as long as less than
    /// half as many more have become valid since.
    pub issued: u32,
}

impl Format {
    /// What ships: two million slots or tickets in line, and a place may be looked at after two
    /// trillion later ones.
    pub const SHIPPED: Self = Self { free: 22, issued: 42 };

    const fn shift(self) -> u32 {
        u64::BITS - self.free - self.issued
    }

    /// The word with so many slots free, after so many tickets.
    #[must_use]
    pub const fn word(self, issued: u64, free: i64) -> u64 {
        (issued << self.free).wrapping_add(free as u64) << self.shift()
    }

    /// What to add to issue so many tickets.
    #[must_use]
    pub const fn issue(self, tickets: u64) -> u64 {
        self.word(tickets, 0).wrapping_sub(self.validate(tickets))
    }

    /// What to add to validate so many.
    #[must_use]
    pub const fn validate(self, tickets: u64) -> u64 {
        tickets << self.shift()
    }

    /// How many slots are free; if less than none, how many tickets wait.
    #[inline(always)]
    #[must_use]
    pub const fn free(self, word: u64) -> i64 {
        (word << self.issued) as i64 >> (u64::BITS - self.free)
    }

    /// How many tickets have been issued: the number of the next.
    #[inline(always)]
    #[must_use]
    pub const fn issued(self, word: u64) -> u64 {
        self.ticket((word >> self.shift()).wrapping_sub(self.free(word) as u64) >> self.free)
    }

    /// The number of the first ticket that is not valid.
    #[inline(always)]
    const fn valid(self, word: u64) -> u64 {
        self.ticket(self.issued(word).wrapping_add(self.free(word) as u64))
    }

    /// The number of the last ticket that is valid.
    #[inline(always)]
    pub(super) const fn last_valid(self, word: u64) -> u64 {
        self.ticket(self.valid(word).wrapping_sub(1))
    }

    /// A number as that of a ticket.
    const fn ticket(self, number: u64) -> u64 {
        number & ((1 << self.issued) - 1)
    }

    /// Whether a ticket is valid.
    #[inline(always)]
    #[must_use]
    pub const fn is_valid(self, word: u64, ticket: u64) -> bool {
        self.ahead(self.valid(word), ticket) > 0
    }

    /// Which of two tickets comes first, if not too many lie between them.
    #[must_use]
    pub fn order(self, a: u64, b: u64) -> Ordering {
        self.ahead(a, b).cmp(&0)
    }

    /// By how much `a` is ahead of `b`, times a constant.
    const fn ahead(self, a: u64, b: u64) -> i64 {
        (a.wrapping_sub(b) << (u64::BITS - self.issued)) as i64
    }
}

/// A mark that a process leaves in the line.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Mark<S> {
    /// It sleeps, or is about to: this is whom to wake.
    Sleeps(S),
    /// It has gone: the slot is to be passed on.
    Gone,
}

plain_local!(Mark<u32>);

/// The word, and the line of marks, one for each ticket that waits.
pub trait Line<M: Memory>: Sync {
    /// Whom to wake.
    type Sleeper: Sync;

    /// How the word is made up.
    fn format(&self) -> Format;

    /// Adds to the word; gives back what it was.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    fn add(&self, m: &mut M, add: u64) -> Result<u64, M::Halt>;

    /// The word.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    fn word(&self, m: &mut M) -> Result<u64, M::Halt>;

    /// Leaves a mark at the place of a ticket, or none; gives back what was there.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    fn leave(
        &self,
        m: &mut M,
        ticket: u64,
        mark: Option<Mark<Self::Sleeper>>,
    ) -> Result<Option<Mark<Self::Sleeper>>, M::Halt>;

    /// Whom to wake if process `p` sleeps. That it was woken before is forgotten.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    fn settle(&self, m: &mut M, p: u32) -> Result<Self::Sleeper, M::Halt>;

    /// Sleeps until `p` is woken.
    ///
    /// # Errors
    /// In the lab, where a process may stop here; natively when the wait is given up.
    fn sleep(&self, m: &mut M, p: u32) -> Result<(), M::Halt>;

    /// Wakes whoever left the mark that has just been taken out.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    fn wake(&self, m: &mut M, sleeper: Self::Sleeper) -> Result<(), M::Halt>;
}

/// A place in line.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Place {
    /// The last of its tickets.
    pub ticket: u64,
    /// How many it has.
    pub weight: u32,
    /// It was valid at once.
    pub enabled: bool,
}

impl Local for Place {
    fn relabel(&self, _: crate::Relabel<'_>) -> Self {
        *self
    }
}

/// The doorway: takes tickets. One step.
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

/// A look whether the place may go in.
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

/// Leaves the mark of a sleeper in the line, unless the place may go in; whether it did.
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

/// Passes slots on: makes as many tickets valid, wakes those who sleep there, and does the same
/// again for those who have gone.
///
/// # Errors
/// When the memory halts the process.
#[inline(always)]
#[track_caller]
pub fn release<M: Memory, L: Line<M>>(line: &L, m: &mut M, slots: u32) -> Result<(), M::Halt> {
    let format = line.format();
    let word = line.add(m, format.validate(u64::from(slots)))?;
    if format.free(word) >= 0 {
        return Ok(()); // nobody waits
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

/// Wakes whoever sleeps at the tickets that have become valid; how many slots those left there who
/// have gone.
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

/// Leaves the line instead of going in.
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
        // If it is valid by now, whoever made it so may have come too early for the mark.
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

    /// The numbers do what they should wherever they start, the wrap included.
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
