//! The same line where newcomers may barge: a slot that is given back lies *open*, and whoever
//! comes by at that moment takes it, the one who has just left included. Only who finds none stands
//! in line, in order; and only the first in line waits for open slots, the others wait to be first.
//!
//! Nobody starves. The first in line that has been woken in vain *reserves* what is given back from
//! then on: newcomers find it closed until the first has gone in. How many overtake until then is
//! not bounded but by how fast a sleeper wakes.
//!
//! What stands in line is what [`mod@line`] runs, with one ticket at a time valid: that of the
//! first.

use core::ops::ControlFlow::{Break, Continue};

use super::{
    ParkedTicket,
    line::{self, Line, Mark, Place},
};
use crate::{
    Algorithm, Claims, CompareAndSwap, Exclusion, Fate, FetchAndAdd, Home, Layout, Memory, Mutant,
    Primitive, Property, Register, Setting, Size, Swap, Unfit,
};

/// Open slots, and the line beside them. The word holds twice their number, and one more while they
/// are reserved.
pub trait Open<M: Memory>: Sync {
    /// The line, for one at a time: the first.
    type Line: Line<M>;

    /// The line.
    fn line(&self) -> &Self::Line;

    /// The word.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    fn open(&self, m: &mut M) -> Result<u64, M::Halt>;

    /// Adds to the word.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    fn add(&self, m: &mut M, add: u64) -> Result<(), M::Halt>;

    /// Replaces the word, if it is still what it was; whether it was.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    fn replace(&self, m: &mut M, old: u64, new: u64) -> Result<bool, M::Halt>;
}

/// So many slots in the word.
#[must_use]
pub const fn slots(slots: u64) -> u64 {
    slots << 1
}

const RESERVED: u64 = 1;

/// Takes slots, if they lie open and are not reserved; whether it did. One look: whoever gets in
/// between is served.
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

/// The first in line takes its slots, if they are there, and ends the reservation; whether it did.
/// If somebody gets in between it reserves, so that this ends.
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
    // Nobody but the first changes this.
    if !m.mutant("never-reserves") && open.open(m)? & RESERVED == 0 {
        open.add(m, RESERVED)?;
    }
    Ok(())
}

/// The doorway: slots that lie open, or a place in line.
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

/// Who was first in line and has its slots lets the next be first.
///
/// # Errors
/// When the memory halts the process.
#[track_caller]
pub fn step_aside<M: Memory, O: Open<M>>(open: &O, m: &mut M) -> Result<(), M::Halt> {
    line::release(open.line(), m, 1)
}

/// The first in line leaves the mark of a sleeper, unless it could take its slots; whether it did.
/// From now on nobody is to overtake it if it was woken `in_vain` before.
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

/// Waits, asleep, to be first and for its slots. It is first then until it steps aside.
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

/// Gives slots back: they lie open, and the first in line is woken.
///
/// # Errors
/// When the memory halts the process.
#[inline(always)]
#[track_caller]
pub fn release<M: Memory, O: Open<M>>(open: &O, m: &mut M, weight: u32) -> Result<(), M::Halt> {
    open.add(m, slots(u64::from(weight)))?;
    let word = open.line().word(m)?;
    if open.line().format().free(word) > 0 || m.mutant("wakes-nobody") {
        return Ok(()); // nobody is first
    }
    call(open.line(), m, word)
}

#[cold]
#[track_caller]
fn call<M: Memory, L: Line<M>>(line: &L, m: &mut M, word: u64) -> Result<(), M::Halt> {
    match line.leave(m, line.format().last_valid(word), None)? {
        None => Ok(()),
        Some(Mark::Sleeps(sleeper)) => line.wake(m, sleeper),
        // The first is about to go, and leaves it to whoever took its mark to let the next be
        // first.
        Some(Mark::Gone) => line::release(line, m, 1),
    }
}

/// Leaves the line instead of going in. What it has reserved remains so: the next who comes stands
/// in line, is first, and ends that.
///
/// # Errors
/// When the memory halts the process.
#[track_caller]
pub fn abandon<M: Memory, O: Open<M>>(open: &O, m: &mut M, place: Place) -> Result<(), M::Halt> {
    line::abandon(open.line(), m, Place { weight: 1, ..place })
}

/// The engine on registers. In the lab, a place can be given up at every wait; but who has its
/// slots and is about to step aside gives up no more. So where places are given up, it steps aside
/// `LATE`, when it leaves.
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
