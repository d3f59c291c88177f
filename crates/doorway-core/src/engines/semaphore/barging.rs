//! The semaphore's queue with barging. A released slot lies *open*, and any process that enters at
//! that moment takes it, including the process that has just released it. Only a process that finds
//! no open slot joins the queue, in order. Only the first waiter waits for open slots; the later
//! waiters wait to be first.
//!
//! No process starves. A first waiter that has been woken in vain *reserves* what is released from
//! then on: new processes find it closed until the first waiter has entered. Only the speed at
//! which a sleeper wakes bounds how many processes overtake until then.
//!
//! The queue is that of [`mod@line`], with one valid ticket at a time: that of the first waiter.

use core::ops::ControlFlow::{Break, Continue};

use super::{
    ParkedTicket,
    line::{self, Line, Mark, Place},
};
use crate::{
    Algorithm, Claims, CompareAndSwap, Exclusion, Fate, FetchAndAdd, Home, Layout, Memory, Mutant,
    Primitive, Property, Register, Setting, Size, Swap, Unfit,
};

/// Open slots, and the queue beside them. The word holds twice their number, and one more while
/// they are reserved.
pub trait Open<M: Memory>: Sync {
    /// The queue, with one valid ticket at a time: that of the first waiter.
    type Line: Line<M>;

    /// Returns the queue.
    fn line(&self) -> &Self::Line;

    /// Reads the word.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    fn open(&self, m: &mut M) -> Result<u64, M::Halt>;

    /// Adds to the word.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    fn add(&self, m: &mut M, add: u64) -> Result<(), M::Halt>;

    /// Replaces the word if it is still `old`; returns whether it was.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    fn replace(&self, m: &mut M, old: u64, new: u64) -> Result<bool, M::Halt>;
}

/// Returns the word for `slots` open slots.
#[must_use]
pub const fn slots(slots: u64) -> u64 {
    slots << 1
}

const RESERVED: u64 = 1;

/// Takes slots if they lie open and are not reserved; returns whether it did. Tries once: a process
/// that gets in between is served.
///
/// # Errors
/// When the memory halts the process.
#[inline(always)]
pub fn barge<M: Memory, O: Open<M>>(open: &O, m: &mut M, weight: u32) -> Result<bool, M::Halt> {
    let (word, taken) = (open.open(m)?, slots(u64::from(weight)));
    if word < taken || word & RESERVED != 0 {
        return Ok(false);
    }
    open.replace(m, word, word - taken)
}

/// Takes the first waiter's slots if they are open, and ends the reservation; returns whether it
/// did. If another process gets in between, the first waiter reserves, so that this ends.
///
/// # Errors
/// When the memory halts the process.
#[track_caller]
pub fn take<M: Memory, O: Open<M>>(open: &O, m: &mut M, weight: u32) -> Result<bool, M::Halt> {
    m.repeat((), |m, ()| {
        let (word, taken) = (open.open(m)?, slots(u64::from(weight)));
        if word < taken {
            return Ok(Break(false));
        }
        if open.replace(m, word, (word & !RESERVED) - taken)? {
            return Ok(Break(true));
        }
        reserve(open, m)?;
        Ok(Continue(()))
    })
}

fn reserve<M: Memory, O: Open<M>>(open: &O, m: &mut M) -> Result<(), M::Halt> {
    // Only the first waiter changes this bit.
    if !m.mutant("never-reserves") && open.open(m)? & RESERVED == 0 {
        open.add(m, RESERVED)?;
    }
    Ok(())
}

/// Runs the doorway: takes open slots, or a place in the queue.
///
/// # Errors
/// When the memory halts the process.
#[inline(always)]
#[track_caller]
pub fn enter<M: Memory, O: Open<M>>(open: &O, m: &mut M, weight: u32) -> Result<Place, M::Halt> {
    if barge(open, m, weight)? {
        return Ok(Place { ticket: 0, weight, enabled: true });
    }
    let Place { ticket, .. } = line::enter(open.line(), m, 1)?;
    Ok(Place { ticket, weight, enabled: false })
}

/// Lets the next waiter be first, once the first waiter has its slots.
///
/// # Errors
/// When the memory halts the process.
#[track_caller]
pub fn step_aside<M: Memory, O: Open<M>>(open: &O, m: &mut M) -> Result<(), M::Halt> {
    line::release(open.line(), m, 1)
}

/// Leaves the first waiter's mark of a sleeper, unless it could take its slots; returns whether it
/// did. If the waiter was woken `in_vain` before, no process is to overtake it from now on.
///
/// # Errors
/// When the memory halts the process.
#[track_caller]
pub fn lie_down<M: Memory, O: Open<M>>(
    open: &O,
    m: &mut M,
    sleeper: <O::Line as Line<M>>::Sleeper,
    place: Place,
    in_vain: bool,
) -> Result<bool, M::Halt> {
    open.line().leave(m, place.ticket, Some(Mark::Sleeps(sleeper)))?;
    if in_vain {
        reserve(open, m)?;
    }
    if m.mutant("looks-once") || !take(open, m, place.weight)? {
        return Ok(true);
    }
    open.line().leave(m, place.ticket, None)?;
    Ok(false)
}

/// Waits, asleep, to be first and for the slots. The process then stays first until it steps aside.
///
/// # Errors
/// When the memory halts the process, or the wait is given up.
#[track_caller]
pub fn wait<M: Memory, O: Open<M>>(
    open: &O,
    m: &mut M,
    p: u32,
    place: Place,
) -> Result<(), M::Halt> {
    line::wait(open.line(), m, p, place)?;
    m.repeat(false, |m, in_vain| {
        if m.scope(|m| take(open, m, place.weight))? {
            return Ok(Break(()));
        }
        let lies = m.scope(|m| {
            let sleeper = open.line().settle(m, p)?;
            lie_down(open, m, sleeper, place, in_vain)
        })?;
        if !lies {
            return Ok(Break(()));
        }
        open.line().sleep(m, p)?;
        Ok(Continue(true))
    })
}

/// Releases slots: they lie open, and the first waiter is woken.
///
/// # Errors
/// When the memory halts the process.
#[inline(always)]
#[track_caller]
pub fn release<M: Memory, O: Open<M>>(open: &O, m: &mut M, weight: u32) -> Result<(), M::Halt> {
    open.add(m, slots(u64::from(weight)))?;
    let word = open.line().word(m)?;
    if open.line().format().free(word) > 0 || m.mutant("wakes-nobody") {
        return Ok(()); // no process is first
    }
    call(open.line(), m, word)
}

#[cold]
#[track_caller]
fn call<M: Memory, L: Line<M>>(line: &L, m: &mut M, word: u64) -> Result<(), M::Halt> {
    match line.leave(m, line.format().last_valid(word), None)? {
        None => Ok(()),
        Some(Mark::Sleeps(sleeper)) => line.wake(m, sleeper),
        // The first waiter is about to leave. It relies on the process that took its mark to make
        // the next waiter first.
        Some(Mark::Gone) => line::release(line, m, 1),
    }
}

/// Leaves the queue instead of entering. Its reservation remains: the next process joins the queue,
/// is first, and ends it.
///
/// # Errors
/// When the memory halts the process.
#[track_caller]
pub fn abandon<M: Memory, O: Open<M>>(open: &O, m: &mut M, place: Place) -> Result<(), M::Halt> {
    line::abandon(open.line(), m, Place { weight: 1, ..place })
}

/// The engine on registers. In the lab, a process may abandon its place at every wait. A process
/// that has its slots and is about to step aside no longer abandons. So where places are abandoned,
/// a process steps aside `LATE`, when it leaves.
#[derive(Debug)]
pub struct BargingTicket<const LATE: bool = false> {
    open: Register<u64>,
    line: ParkedTicket,
}

impl<M: FetchAndAdd + Swap + CompareAndSwap, const LATE: bool> Open<M> for BargingTicket<LATE> {
    type Line = ParkedTicket;

    #[inline(always)]
    fn line(&self) -> &ParkedTicket {
        &self.line
    }
    #[inline(always)]
    fn open(&self, m: &mut M) -> Result<u64, M::Halt> {
        m.read(self.open)
    }
    #[inline(always)]
    fn add(&self, m: &mut M, add: u64) -> Result<(), M::Halt> {
        m.fetch_and_add(self.open, add)?;
        Ok(())
    }
    #[inline(always)]
    fn replace(&self, m: &mut M, old: u64, new: u64) -> Result<bool, M::Halt> {
        Ok(m.compare_and_swap(self.open, old, new)? == old)
    }
}

impl<const LATE: bool> Algorithm for BargingTicket<LATE> {
    const NAME: &'static str = "barging-ticket";

    const CLAIMS: Claims = Claims {
        figure: "docs/algorithms/parked-ticket.md",
        primitives: &[Primitive::FetchAndAdd, Primitive::Swap, Primitive::CompareAndSwap],
        properties: &[Property::KExclusion, Property::StarvationFreedom, Property::DeadlockFreedom],
        mutants: MUTANTS,
        ..ParkedTicket::CLAIMS
    };

    fn new(layout: &mut Layout, size: Size) -> Result<Self, Unfit> {
        crate::algorithms::k_exclusion::fits::<Self>(size)?;
        let open = layout.register("Open", Home::Nobody, slots(size.k as u64));
        Ok(Self { open, line: ParkedTicket::new(layout, Size::slots(size.n, 1))? })
    }
}

impl<M: FetchAndAdd + Swap + CompareAndSwap, const LATE: bool> Exclusion<M>
    for BargingTicket<LATE>
{
    type Request = ();
    type Pass = Place;
    type Keep = ();

    fn keep(&self, _: usize) {}

    #[inline]
    fn doorway(&self, m: &mut M, _: usize, (): (), (): ()) -> Result<Place, M::Halt> {
        enter(self, m, 1)
    }

    #[inline]
    fn waiting(&self, m: &mut M, p: usize, place: Place) -> Result<Place, M::Halt> {
        if !place.enabled {
            wait(self, m, p as u32, place)?;
            if !LATE {
                step_aside(self, m)?;
            }
        }
        Ok(place)
    }

    #[inline]
    fn exit(&self, m: &mut M, _: usize, place: Place) -> Result<(), M::Halt> {
        if LATE && !place.enabled {
            step_aside(self, m)?;
        }
        release(self, m, place.weight)
    }

    fn abandon(&self, m: &mut M, _: usize, place: Place) -> Option<Result<(), M::Halt>> {
        Some(abandon(self, m, place))
    }
}

const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "looks-once",
        change: "who is about to sleep does not look once more",
        fate: Fate::breaks_in(Property::DeadlockFreedom, Setting::slots(2, 1).passages(2)),
    },
    Mutant {
        name: "wakes-nobody",
        change: "who gives a slot back does not wake the first in line",
        fate: Fate::breaks_in(Property::DeadlockFreedom, Setting::slots(2, 1).passages(2)),
    },
    Mutant {
        name: "never-reserves",
        change: "the first in line lets itself be overtaken for ever",
        fate: Fate::breaks_in(
            Property::StarvationFreedom,
            Setting::slots(2, 1).passages(1).endless(0),
        ),
    },
];
