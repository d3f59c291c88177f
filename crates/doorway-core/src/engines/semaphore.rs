//! The engine of the crate `doorway`'s semaphore: tickets in one word, with sleeping waiters and
//! places that can be abandoned. After the ticket algorithm of Fischer et al. 1985, Figure 2. See
//! [`mod@line`] for how it works.
//!
//! Promises k-exclusion, k-FCFS and freedom from starvation: tickets become valid in the order in
//! which they were issued. Tolerates no crash: a process that stops between making a ticket valid
//! and waking the ticket's waiter leaves a sleeper behind. For the same reason there is no FIFO
//! enabling with several slots: a sleeper may be woken while an earlier sleeper is still about to
//! be woken.
//!
//! Here the word is narrower than in the product, so that the checker sees its numbers wrap around.

pub mod barging;
pub mod line;

use alloc::format;

use self::line::{Format, Line, Mark, Place};
use crate::{
    Algorithm, Array, Claims, Exclusion, Fate, FetchAndAdd, Home, Homes, Layout, Mutant, Primitive,
    Property, Register, Setting, Size, Swap, Ticket, Unfit, Value,
    algorithms::k_exclusion::{Queue, fits},
};

/// The engine on registers.
#[derive(Debug)]
pub struct ParkedTicket {
    format: Format,
    word: Register<u64>,
    marks: Array<Option<Mark<u32>>>,
    woken: Array<bool>,
}

impl Value for Option<Mark<u32>> {
    crate::one_word!(
        |mark| match mark {
            None => 0,
            Some(Mark::Sleeps(p)) => u64::from(p) << 2 | 1,
            Some(Mark::Gone) => 2,
        },
        |word| match word & 3 {
            0 => None,
            1 => Some(Mark::Sleeps((word >> 2) as u32)),
            _ => Some(Mark::Gone),
        }
    );

    fn domain(_: &[Ticket]) -> Option<alloc::vec::Vec<Self>> {
        None
    }
}

impl<M: FetchAndAdd + Swap> Line<M> for ParkedTicket {
    type Sleeper = u32;

    #[inline(always)]
    fn format(&self) -> Format {
        self.format
    }
    #[inline(always)]
    fn add(&self, m: &mut M, add: u64) -> Result<u64, M::Halt> {
        m.fetch_and_add(self.word, add)
    }
    #[inline(always)]
    fn word(&self, m: &mut M) -> Result<u64, M::Halt> {
        m.read(self.word)
    }
    #[inline(always)]
    fn leave(
        &self,
        m: &mut M,
        ticket: u64,
        mark: Option<Mark<u32>>,
    ) -> Result<Option<Mark<u32>>, M::Halt> {
        m.swap(self.marks.at(ticket as usize), mark)
    }
    #[inline(always)]
    fn settle(&self, m: &mut M, p: u32) -> Result<u32, M::Halt> {
        m.write(self.woken.at(p as usize), false)?;
        Ok(p)
    }
    #[inline(always)]
    fn sleep(&self, m: &mut M, p: u32) -> Result<(), M::Halt> {
        m.wait(self.woken.at(p as usize), |woken| woken)
    }
    #[inline(always)]
    fn wake(&self, m: &mut M, p: u32) -> Result<(), M::Halt> {
        m.write(self.woken.at(p as usize), true)
    }
}

impl Algorithm for ParkedTicket {
    const NAME: &'static str = "parked-ticket";

    const CLAIMS: Claims = Claims {
        paper: "after 003 Fischer, Lynch, Burns, Borodin 1985, Fig. 2",
        figure: "docs/algorithms/parked-ticket.md",
        primitives: &[Primitive::FetchAndAdd, Primitive::Swap],
        properties: &[
            Property::KExclusion,
            Property::KFcfs,
            Property::StarvationFreedom,
            Property::DeadlockFreedom,
            Property::BoundedExit,
        ],
        crashes: |_| 0,
        bound: None,
        gap: |_| 1,
        abandons: true,
        mutants: MUTANTS,
        ..Queue::CLAIMS
    };

    fn new(layout: &mut Layout, size: Size) -> Result<Self, Unfit> {
        fits::<Self>(size)?;
        // Room for all processes, and for some abandoned places. With one slot this room is enough
        // forever, and small enough that the numbers wrap around. With more slots, a ticket may
        // have been valid for as long as other processes make passages.
        let free = (size.n + size.k + 1).next_power_of_two().ilog2() + 1;
        let format = Format { free, issued: if size.k == 1 { free } else { free + 2 } };
        if free > 16 {
            return Err(Unfit(format!(
                "{} is for up to 16 000 processes here: try -n 2",
                Self::NAME
            )));
        }
        let woken = layout.array("Woken", size.n, Homes::Column, false);
        let word = layout.register(
            "V",
            Home::Nobody,
            format.word((1 << format.issued) - 1, size.k as i64),
        );
        let marks = layout.array("Line", 1 << format.issued, Homes::Nobody, None);
        Ok(Self { format, word, marks, woken })
    }
}

impl<M: FetchAndAdd + Swap> Exclusion<M> for ParkedTicket {
    type Request = ();
    type Pass = Place;
    type Keep = ();

    fn keep(&self, _: usize) {}

    #[inline]
    fn doorway(&self, m: &mut M, _: usize, (): (), (): ()) -> Result<Place, M::Halt> {
        line::enter(self, m, 1)
    }

    #[inline]
    fn waiting(&self, m: &mut M, p: usize, place: Place) -> Result<Place, M::Halt> {
        if !place.enabled {
            line::wait(self, m, p as u32, place)?;
        }
        Ok(place)
    }

    #[inline]
    fn exit(&self, m: &mut M, _: usize, place: Place) -> Result<(), M::Halt> {
        line::release(self, m, place.weight)
    }

    fn abandon(&self, m: &mut M, _: usize, place: Place) -> Option<Result<(), M::Halt>> {
        Some(line::abandon(self, m, place))
    }
}

/// The last three concern abandoned places; checks that abandon places catch them.
const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "looks-once",
        change: "who is about to sleep does not look once more",
        fate: Fate::breaks(Property::DeadlockFreedom, 2),
    },
    Mutant {
        name: "wakes-nobody",
        change: "who makes a ticket valid does not wake its holder",
        fate: Fate::breaks(Property::DeadlockFreedom, 2),
    },
    Mutant {
        name: "keeps-what-is-left",
        change: "the slots of those who have gone are not passed on",
        fate: ABANDONED,
    },
    Mutant {
        name: "leaves-it-to-others",
        change: "who goes when its ticket is valid already passes nothing on",
        fate: ABANDONED,
    },
    Mutant {
        name: "passes-on-twice",
        change: "who goes passes its slots on, even if somebody else has done so",
        fate: Fate::breaks_in(Property::KExclusion, Setting::slots(3, 1).passages(2)),
    },
];

const ABANDONED: Fate =
    Fate::breaks_in(Property::DeadlockFreedom, Setting::slots(2, 1).passages(2));
