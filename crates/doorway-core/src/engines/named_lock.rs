//! The engine of named locks: a killed process does not take its slot with it. See [`Table`] for
//! how it works, and `docs/algorithms/named-lock.md` for why it is correct.
//!
//! | file | contents |
//! |---|---|
//! | `table` | the registers, and the operations of a passage |
//! | `table_lock` | the short lock for the bookkeeping, and taking it over from a dead process |
//! | `fast_path` | acquiring and releasing by one compare-and-swap each |
//! | `queue` | the waiting entries, as a list |
//! | `entries` | claiming an entry, handing it over, giving it back |
//! | `recovery` | watching for deaths, reclaiming, rebuilding |
//! | `manage` | resize, drain, resume, remove |
//! | `sessions` | numbers for the names of sessions |
//!
//! Promises k-exclusion, or exclusion of sessions, entry in the order of the queue, and freedom
//! from deadlock, whichever process is killed at whichever step, also during recovery. Does not
//! promise starvation freedom: a process that always comes too late for the table lock never gets a
//! ticket. Tolerates no process that stops with the table lock and is not dead.

mod entries;
mod fast_path;
mod manage;
mod mortal;
mod mutants;
mod queue;
mod recovery;
mod sessions;
mod table;
mod table_lock;
mod tally;
mod values;

use alloc::vec::Vec;
use core::marker::PhantomData;

pub use self::{
    manage::NotRemoved,
    mortal::Mortal,
    recovery::Watched,
    sessions::Name,
    table::Table,
    tally::Tally,
    values::{Ends, FastPath, Life, Link, Owner, Place, State},
};
use crate::{
    Algorithm, Claims, CompareAndSwap, Exclusion, FetchAndAdd, Home, Homes, Layout, Local,
    Primitive, Problem, Property, Register, RegisterKind, Registers, Relabel, Request, Rmr,
    Session, Setting, Size, Unfit,
};

/// The engine with k slots.
pub type NamedLock = Engine<()>;

/// The engine with sessions, and a slot for every process.
pub type NamedGroupLock = Engine<Session>;

/// The engine on registers. Process `p` has entry `p`.
#[derive(Debug)]
pub struct Engine<Q> {
    table: Table,
    /// The session that each number stands for, in a lock with sessions.
    names: Vec<Register<Session>>,
    request: PhantomData<fn() -> Q>,
}

/// A place in the queue or a slot, and the process that has it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Pass {
    place: Place,
    life: u64,
}

impl Local for Pass {
    fn relabel(&self, f: Relabel<'_>) -> Self {
        Self { place: self.place.relabel(f), life: self.life }
    }
}

impl<Q> Engine<Q> {
    fn build(layout: &mut Layout, size: Size) -> Self {
        let has_sessions = size.sessions > 0;
        let mut names = Vec::new();
        if has_sessions {
            let array = layout.array("Name", size.n, Homes::Column, Session::NONE);
            names.extend((0..size.n).map(|p| array.at(p)));
        }
        let table = Table::new(layout, size.n, size.k, has_sessions, Home::Process(0));
        // Every process owns an entry, and has requested a session before. A process that returns
        // after a kill has to claim an entry.
        layout.begin(table.used(), size.n as u32);
        (0..size.n).for_each(|p| layout.begin(table.owner(p), Some(Owner::new(p, 0))));
        names
            .iter()
            .enumerate()
            .for_each(|(p, &name)| layout.begin(name, Session((p % size.sessions) as u32 + 1)));
        Self { table, names, request: PhantomData }
    }
}

/// The requested session. In the lab the names of sessions are numbers, too.
struct Called<'a> {
    session: Session,
    names: &'a [Register<Session>],
}

impl<M: Registers> Name<M> for Called<'_> {
    #[inline]
    fn is(&self, m: &mut M, number: Session) -> Result<bool, M::Halt> {
        m.test(self.names[number.0 as usize - 1], |session| session == self.session)
    }

    #[inline]
    fn set(&self, m: &mut M, number: Session) -> Result<(), M::Halt> {
        m.write(self.names[number.0 as usize - 1], self.session)
    }
}

const SLOTS: Claims = Claims {
    problem: Problem::KExclusion,
    paper: "Doorway's own",
    figure: "docs/algorithms/named-lock.md",
    primitives: &[Primitive::ReadWrite, Primitive::CompareAndSwap],
    properties: &[Property::KExclusion, Property::OrderedEntry, Property::DeadlockFreedom],
    // Its doorway takes the table lock, and waits for it.
    refuted: &[
        (Property::KFcfs, Setting::slots(2, 1)),
        (Property::BoundedDoorway, Setting::slots(2, 1)),
        (Property::StarvationFreedom, Setting::slots(2, 1)),
        (Property::BoundedExit, Setting::slots(2, 1)),
    ],
    registers: RegisterKind::Atomic,
    crashes: |_| 0,
    bound: None,
    gap: |_| 2,
    values: &[],
    invariants: &[],
    abandons: true,
    rmr: Rmr { cc: "unbounded", dsm: "unbounded" },
    min_n: 1,
    max_n: None,
    mutants: mutants::MUTANTS,
};

impl Algorithm for NamedLock {
    const NAME: &'static str = "named-lock";
    const CLAIMS: Claims = SLOTS;

    fn new(layout: &mut Layout, size: Size) -> Result<Self, Unfit> {
        crate::algorithms::k_exclusion::fits::<Self>(size)?;
        Ok(Self::build(layout, size))
    }
}

impl Algorithm for NamedGroupLock {
    const NAME: &'static str = "named-group-lock";
    const CLAIMS: Claims = Claims {
        problem: Problem::Group,
        properties: &[
            Property::SessionExclusion,
            Property::OrderedEntry,
            Property::DeadlockFreedom,
        ],
        refuted: &[],
        mutants: mutants::OF_GROUPS,
        ..SLOTS
    };

    fn new(layout: &mut Layout, size: Size) -> Result<Self, Unfit> {
        crate::algorithms::group::fits::<Self>(size)?;
        Ok(Self::build(layout, size))
    }
}

impl<Q, M> Exclusion<M> for Engine<Q>
where
    Q: Request,
    M: CompareAndSwap + FetchAndAdd + Mortal,
    Self: Algorithm,
{
    type Request = Q;
    type Pass = Pass;
    type Keep = Life;

    fn keep(&self, _: usize) -> Life {
        Life { number: 0, has_entry: true }
    }

    #[inline]
    fn doorway(&self, m: &mut M, p: usize, request: Q, life: Life) -> Result<Pass, M::Halt> {
        let table = &self.table;
        let called = Called { session: request.session(), names: &self.names };
        let me = Owner::new(p, life.number);
        let entry = |m: &mut M| {
            let may = !table.has_sessions || table.stands_for(m, p, &called)?;
            Ok(may.then_some(p))
        };
        if life.has_entry
            && let Some((_, place)) = table.enter_fast(m, entry)?
        {
            return Ok(Pass { place, life: life.number });
        }
        table.lock(m, me)?;
        if !life.has_entry && table.claim_vacant(m, me, p..p + 1)?.is_none() {
            table.claim_from_dead(m, me, p..p + 1)?;
        }
        let number = table.number(m, p, &called)?;
        let place = table.enter(m, p, number)?;
        table.unlock(m)?;
        Ok(Pass { place, life: life.number })
    }

    #[inline]
    fn waiting(&self, m: &mut M, p: usize, pass: Pass) -> Result<Pass, M::Halt> {
        match pass.place.slot {
            Some(_) => Ok(pass),
            None => Ok(Pass {
                place: self.table.wait(m, Owner::new(p, pass.life), p, pass.place)?,
                ..pass
            }),
        }
    }

    #[inline]
    fn exit(&self, m: &mut M, p: usize, Pass { place, life }: Pass) -> Result<Life, M::Halt> {
        if !(place.fast && self.table.release_fast(m, p, place.ticket)?) {
            self.table.release(m, Owner::new(p, life), p, place.slot)?;
        }
        Ok(Life { number: life, has_entry: true })
    }

    fn abandon(
        &self,
        m: &mut M,
        p: usize,
        Pass { life, .. }: Pass,
    ) -> Option<Result<Life, M::Halt>> {
        let gone = self.table.abandon(m, Owner::new(p, life), p);
        Some(gone.map(|()| Life { number: life, has_entry: true }))
    }

    fn killed(&self, m: &mut M, p: usize) -> Option<Result<Life, M::Halt>> {
        let before = m.fetch_and_add(self.table.deaths(p), 1);
        Some(before.map(|before| Life { number: before + 1, has_entry: false }))
    }
}
