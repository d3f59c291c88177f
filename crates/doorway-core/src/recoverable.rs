//! Slots that a killed process does not take with it: the engine of the crate `doorway`'s locks across processes. See [`Table`]
//! for how it works, and `docs/algorithms/recoverable.md` for why it is right.
//!
//! Promises k-exclusion, or exclusion of sessions, order (k-FCFS, FCFS) and freedom from deadlock, whoever is killed and
//! wherever: it loses nothing but itself. Who is killed while it puts things in order after another loses nothing else either.
//! Not starvation freedom: the guard goes to whoever is quick, and one who always comes too late for it never gets a ticket.
//! Tolerates no crash that cannot be noticed: who stops with the guard and is not dead stops everybody.

mod gate;
mod manage;
mod mutants;
mod recovery;
mod sessions;
mod table;
mod values;

use alloc::vec::Vec;
use core::marker::PhantomData;

pub use self::{
    manage::NotRemoved,
    sessions::Name,
    table::Table,
    values::{Gate, Life, Owner, Place, State, Tally},
};
use crate::{
    Algorithm, Claims, CompareAndSwap, Exclusion, FetchAndAdd, Homes, Layout, Local, Mortal, Primitive, Problem,
    Property, Register, RegisterKind, Registers, Relabel, Request, Rmr, Session, Setting, Size, Unfit,
};

/// The engine with k slots, which all ask for alike.
pub type Recoverable = Engine<()>;

/// The engine with sessions, and a slot for everybody.
pub type RecoverableGroup = Engine<Session>;

/// The engine on registers. Process `p` has row `p`.
#[derive(Debug)]
pub struct Engine<Q> {
    table: Table,
    /// Which session a number stands for, where there are sessions.
    names: Vec<Register<Session>>,
    request: PhantomData<fn() -> Q>,
}

/// A place in line, and who has it.
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
        let table = Table::new(layout, size.n, size.k, has_sessions);
        // All have a row. Who comes back after it was killed has to look for one. And all have asked for something before.
        (0..size.n).for_each(|p| layout.begin(table.owner(p), Some(Owner::new(p, 0))));
        names.iter().enumerate().for_each(|(p, &name)| layout.begin(name, Session((p % size.sessions) as u32 + 1)));
        Self { table, names, request: PhantomData }
    }
}

/// What is asked for. In the lab sessions are called by numbers, too.
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
    figure: "docs/algorithms/recoverable.md",
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

impl Algorithm for Recoverable {
    const NAME: &'static str = "recoverable";
    const CLAIMS: Claims = SLOTS;

    fn new(layout: &mut Layout, size: Size) -> Result<Self, Unfit> {
        crate::k_exclusion::fits::<Self>(size)?;
        Ok(Self::build(layout, size))
    }
}

impl Algorithm for RecoverableGroup {
    const NAME: &'static str = "recoverable-group";
    const CLAIMS: Claims = Claims {
        problem: Problem::Group,
        properties: &[Property::SessionExclusion, Property::OrderedEntry, Property::DeadlockFreedom],
        refuted: &[],
        mutants: mutants::OF_GROUPS,
        ..SLOTS
    };

    fn new(layout: &mut Layout, size: Size) -> Result<Self, Unfit> {
        crate::group::fits::<Self>(size)?;
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
        Life { number: 0, settled: true }
    }

    #[inline]
    fn doorway(&self, m: &mut M, p: usize, request: Q, life: Life) -> Result<Pass, M::Halt> {
        let called = Called { session: request.session(), names: &self.names };
        let me = Owner::new(p, life.number);
        let row = |m: &mut M| {
            let may = !self.table.has_sessions || self.table.stands_for(m, p, &called)?;
            Ok(may.then_some(p))
        };
        if life.settled
            && let Some((_, place)) = self.table.come(m, row)?
        {
            return Ok(Pass { place, life: life.number });
        }
        self.table.take(m, me)?;
        if !life.settled {
            self.table.settle(m, me, p..p + 1)?;
        }
        let number = self.table.number(m, p, &called)?;
        let place = self.table.join(m, p, number)?;
        self.table.give(m)?;
        Ok(Pass { place, life: life.number })
    }

    #[inline]
    fn waiting(&self, m: &mut M, p: usize, pass: Pass) -> Result<Pass, M::Halt> {
        match pass.place.slot {
            Some(_) => Ok(pass),
            None => Ok(Pass { place: self.table.wait(m, Owner::new(p, pass.life), p, pass.place)?, ..pass }),
        }
    }

    #[inline]
    fn exit(&self, m: &mut M, p: usize, Pass { place, life }: Pass) -> Result<Life, M::Halt> {
        if !(place.by_gate && self.table.go(m, p, place.ticket)?) {
            self.table.take(m, Owner::new(p, life))?;
            self.table.vacate(m, p, place.slot)?;
            self.table.give(m)?;
        }
        Ok(Life { number: life, settled: true })
    }

    fn abandon(&self, m: &mut M, p: usize, Pass { life, .. }: Pass) -> Option<Result<Life, M::Halt>> {
        let gone = self.table.abandon(m, Owner::new(p, life), p);
        Some(gone.map(|()| Life { number: life, settled: true }))
    }

    fn killed(&self, m: &mut M, p: usize) -> Option<Result<Life, M::Halt>> {
        let before = m.fetch_and_add(self.table.deaths(p), 1);
        Some(before.map(|before| Life { number: before + 1, settled: false }))
    }
}
