//! The engine of the crate `doorway`'s group lock: sessions in one word, with a queue of sleeping
//! waiters and places that can be abandoned. It provides what He et al. 2018 ask of a group lock,
//! with compare-and-swap instead of reads and writes. See [`mod@hall`] for how it works.
//!
//! Promises session exclusion, ordered entry between sessions, concurrent occupancy and freedom
//! from starvation. Does not promise that exit, and entry without a conflict, take a bounded number
//! of steps: some processes wait until no other process has the queue, for a few steps of the
//! process that has it. Tolerates no crash.
//!
//! `BATCHING` is how often a waiter may be passed; above 0 there is no such order. `ALONE` gives
//! each process a session of its own, whatever it asks for.

pub mod hall;
mod line;

use core::ops::{Deref, DerefMut};

use self::hall::{Hall, Inside, Line, OWN};
use crate::{
    Algorithm, Array, Claims, CompareAndSwap, Exclusion, Fate, FetchAndAdd, Home, Homes, Layout,
    Mutant, Primitive, Property, Register, Session, Setting, Size, Swap, Ticket, Unfit, Value,
    algorithms::group::{GroupBakery, fits},
    one_word, plain_local,
};

/// The engine on registers.
#[derive(Debug)]
pub struct ParkedSessions<const BATCHING: u32 = 0, const ALONE: bool = false> {
    inside: Register<u64>,
    line: Register<Line<u32>>,
    /// Tickets issued for taking the queue, and the ticket whose turn it is. Here processes take
    /// the queue in this order; natively the system's lock decides the order.
    comes: Register<u64>,
    turn: Register<u64>,
    /// One ticket. Tickets are counted in the topmost bits of a word, so that they wrap around.
    one: u64,
    stands: Array<Standing>,
    woken: Array<bool>,
}

/// What a waiter says about itself, and is told.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Standing {
    /// The waiter is awake.
    Waits,
    /// The waiter sleeps, or is about to.
    Sleeps,
    /// The waiter may enter.
    In,
}

plain_local!(Standing);

impl Value for Standing {
    one_word!(|standing| standing as u64, |word| match word {
        0 => Self::Waits,
        1 => Self::Sleeps,
        _ => Self::In,
    });
}

/// For the lab only: natively the queue is no register.
impl Value for Line<u32> {
    type Format = ();

    fn bits((): ()) -> u32 {
        u32::MAX
    }
    fn word(&self) -> u128 {
        unreachable!("natively the line is no register")
    }
    fn from_word(_: u128, (): ()) -> Self {
        unreachable!("natively the line is no register")
    }
    fn domain(_: &[Ticket]) -> Option<alloc::vec::Vec<Self>> {
        None
    }
    fn magnitude(&self) -> u64 {
        self.len() as u64
    }
}

/// The queue, taken by a process.
#[derive(Debug)]
pub struct Taken(Line<u32>);

impl Deref for Taken {
    type Target = Line<u32>;

    fn deref(&self) -> &Line<u32> {
        &self.0
    }
}

impl DerefMut for Taken {
    fn deref_mut(&mut self) -> &mut Line<u32> {
        &mut self.0
    }
}

impl<M, const BATCHING: u32, const ALONE: bool> Hall<M> for ParkedSessions<BATCHING, ALONE>
where
    M: CompareAndSwap + FetchAndAdd + Swap,
{
    type Name = u32;
    type Taken<'a> = Taken;

    fn tries(&self) -> u32 {
        1
    }
    fn batching(&self) -> u32 {
        BATCHING
    }
    fn inside(&self, m: &mut M) -> Result<Inside, M::Halt> {
        m.read(self.inside).map(Inside)
    }
    fn change(&self, m: &mut M, old: Inside, new: Inside) -> Result<bool, M::Halt> {
        Ok(m.compare_and_swap(self.inside, old.0, new.0)? == old.0)
    }
    fn add(&self, m: &mut M, add: u64) -> Result<Inside, M::Halt> {
        m.fetch_and_add(self.inside, add).map(Inside)
    }
    fn take(&self, m: &mut M) -> Result<Taken, M::Halt> {
        let mine = m.fetch_and_add(self.comes, self.one)?;
        m.wait(self.turn, |turn| turn == mine)?;
        m.read(self.line).map(Taken)
    }
    fn put(&self, m: &mut M, line: Taken) -> Result<(), M::Halt> {
        m.write(self.line, line.0)?;
        m.fetch_and_add(self.turn, self.one).map(drop)
    }
    fn stand(&self, m: &mut M, p: u32) -> Result<u32, M::Halt> {
        m.write(self.stands.at(p as usize), Standing::Waits)?;
        Ok(p)
    }
    fn same(&self, p: &u32) -> u32 {
        *p
    }
    fn lie_down(&self, m: &mut M, &p: &u32) -> Result<bool, M::Halt> {
        let stands = self.stands.at(p as usize);
        if m.mutant("lies-down-blindly") {
            return m.write(stands, Standing::Sleeps).map(|()| false);
        }
        Ok(m.compare_and_swap(stands, Standing::Waits, Standing::Sleeps)? == Standing::In)
    }
    fn tell(&self, m: &mut M, &p: &u32) -> Result<bool, M::Halt> {
        Ok(m.swap(self.stands.at(p as usize), Standing::In)? == Standing::Sleeps)
    }
    fn settle(&self, m: &mut M, &p: &u32) -> Result<(), M::Halt> {
        m.write(self.woken.at(p as usize), false)
    }
    fn sleep(&self, m: &mut M, &p: &u32) -> Result<(), M::Halt> {
        m.wait(self.woken.at(p as usize), |woken| woken)
    }
    fn wake(&self, m: &mut M, &p: &u32) -> Result<(), M::Halt> {
        m.write(self.woken.at(p as usize), true)
    }
}

impl<const BATCHING: u32, const ALONE: bool> Algorithm for ParkedSessions<BATCHING, ALONE> {
    const NAME: &'static str = "parked-sessions";

    const CLAIMS: Claims = Claims {
        paper: "after 002 He, Gopalakrishnan, Gafni 2018",
        figure: "docs/algorithms/parked-sessions.md",
        primitives: &[Primitive::CompareAndSwap, Primitive::FetchAndAdd, Primitive::Swap],
        properties: &[
            Property::SessionExclusion,
            Property::OrderedEntry,
            Property::ConcurrentOccupancy,
            Property::StarvationFreedom,
            Property::DeadlockFreedom,
        ],
        // Its doorway and its exit section take the queue, and wait for it.
        refuted: &[
            (Property::Fcfs, Setting::group(2, 2)),
            (Property::BoundedDoorway, Setting::group(2, 2)),
            (Property::BoundedExit, Setting::group(2, 2)),
            (Property::ConcurrentEntry, Setting::group(2, 2)),
        ],
        gap: |_| 1,
        mutants: MUTANTS,
        ..GroupBakery::CLAIMS
    };

    fn new(layout: &mut Layout, size: Size) -> Result<Self, Unfit> {
        fits::<Self>(size)?;
        Ok(Self {
            stands: layout.array("Stands", size.n, Homes::Column, Standing::Waits),
            woken: layout.array("Woken", size.n, Homes::Column, false),
            inside: layout.register("Inside", Home::Nobody, Inside::NOBODY.0),
            line: layout.register("Line", Home::Nobody, Line::EMPTY),
            comes: layout.register("Comes", Home::Nobody, 0),
            turn: layout.register("Turn", Home::Nobody, 0),
            one: 1 << (u64::BITS - (size.n + 1).next_power_of_two().ilog2()),
        })
    }
}

impl<M, const BATCHING: u32, const ALONE: bool> Exclusion<M> for ParkedSessions<BATCHING, ALONE>
where
    M: CompareAndSwap + FetchAndAdd + Swap,
{
    type Request = Session;
    /// Where the process will be told that it may enter, if it has to wait.
    type Pass = Option<u32>;
    type Keep = ();

    fn keep(&self, _: usize) {}

    fn doorway(
        &self,
        m: &mut M,
        p: usize,
        session: Session,
        (): (),
    ) -> Result<Option<u32>, M::Halt> {
        hall::enter(self, m, p as u32, if ALONE { OWN } else { session })
    }

    fn waiting(&self, m: &mut M, _: usize, place: Option<u32>) -> Result<Option<u32>, M::Halt> {
        if let Some(name) = place {
            hall::wait(self, m, &name)?;
        }
        Ok(place)
    }

    fn exit(&self, m: &mut M, _: usize, _: Option<u32>) -> Result<(), M::Halt> {
        hall::release(self, m)
    }

    fn abandon(&self, m: &mut M, _: usize, place: Option<u32>) -> Option<Result<(), M::Halt>> {
        Some(match place {
            Some(name) => hall::abandon(self, m, &name),
            None => hall::release(self, m),
        })
    }
}

/// Checks with a bounded number of passages also abandon places.
const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "does-not-mind-the-line",
        change: "who finds its own session on goes in, whoever waits",
        fate: Fate::breaks_in(Property::OrderedEntry, Setting::group(3, 2).passages(1)),
    },
    Mutant {
        name: "lets-in-one-at-a-time",
        change: "of those who may go in, only the first is let in",
        fate: Fate::breaks_in(Property::ConcurrentOccupancy, Setting::group(3, 2).passages(1)),
    },
    Mutant {
        name: "leaves-them-waiting",
        change: "the last to leave does not let the next in",
        fate: Fate::breaks_in(Property::DeadlockFreedom, Setting::group(2, 2)),
    },
    Mutant {
        name: "wakes-nobody",
        change: "who sleeps is told that it may go in, but not woken",
        fate: Fate::breaks_in(Property::DeadlockFreedom, Setting::group(2, 2)),
    },
    Mutant {
        name: "lies-down-blindly",
        change: "who lies down does not see that it has been told",
        fate: Fate::breaks_in(Property::DeadlockFreedom, Setting::group(2, 2)),
    },
    Mutant {
        name: "goes-silently",
        change: "who leaves the line does not let those in who stood behind it",
        fate: Fate::breaks_in(Property::ConcurrentOccupancy, Setting::group(3, 2).passages(1)),
    },
    Mutant {
        name: "keeps-its-share",
        change: "who leaves after it has been let in stays counted",
        fate: Fate::breaks_in(Property::DeadlockFreedom, Setting::group(2, 2).passages(2)),
    },
];
