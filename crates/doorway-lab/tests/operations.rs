//! Explores the engine of named locks with all its operations: a process may reap dead processes,
//! give its entry back, change the number of slots, drain and resume the lock, or remove it, before
//! it enters; may hand its slot over to a child and take it back; may give up its wait; and may be
//! killed at any step.
//!
//! What the library does after it finds the lock removed is part of the model: the process abandons
//! its place and goes to the lock that was made anew, here one register.
//!
//! Every holder writes itself into a register of its slot, and looks whether another living process
//! is there already. So two holders of one slot are seen even where there are not too many holders.

use std::ops::ControlFlow::{Break, Continue};

use doorway_core::{
    ANY_NUMBER, Algorithm, Array, Claims, CompareAndSwap, Exclusion, Fate, FetchAndAdd, Home,
    Homes, Layout, Local, Mutant, Primitive, Problem, Property, Register, RegisterKind, Relabel,
    Request, Rmr, Session, Setting, Size, Unfit,
    engines::named_lock::{Life, Mortal, Owner, Place, Table},
};
use doorway_lab::{Options, Progress, Report, build, check};

/// What a process does besides entering and releasing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Operation {
    /// Nothing.
    Enter,
    /// Looks for dead processes and reclaims what they had.
    Reap,
    /// Gives its entry back, as a handle does when it is dropped.
    GiveUpEntry,
    /// Makes one slot of two, or two of one.
    Resize,
    /// Closes the lock and opens it again.
    DrainAndResume,
    /// Removes the lock if it is not in use.
    Remove,
    /// Hands its slot over to a child, which ends before the process takes the slot back. As in
    /// `hand_over.rs` the process is dead while the child is not there yet, and the child while the
    /// process has not taken the slot back: others may then reclaim it.
    HandOver,
}

use Operation::{DrainAndResume, Enter, GiveUpEntry, HandOver, Reap, Remove, Resize};

/// What is explored together.
struct Model {
    /// What a process may do.
    operations: &'static [Operation],
    /// How many processes do so; the others only enter.
    actors: usize,
}

/// The models. The number of one is handed over as the number of sessions, which the engine does
/// not have here.
const MODELS: &[Model] = &[
    Model {
        operations: &[Enter, Reap, GiveUpEntry, Resize, DrainAndResume, Remove, HandOver],
        actors: 2,
    },
    Model { operations: &[Reap], actors: 1 },
    Model { operations: &[GiveUpEntry], actors: 1 },
    Model { operations: &[Resize], actors: 1 },
    Model { operations: &[DrainAndResume], actors: 1 },
    Model { operations: &[Remove], actors: 1 },
    Model { operations: &[GiveUpEntry], actors: 2 },
    Model { operations: &[HandOver], actors: 1 },
];

impl Local for Operation {
    fn relabel(&self, _: Relabel<'_>) -> Self {
        *self
    }
}

impl Request for Operation {
    fn all(size: Size) -> Vec<Self> {
        MODELS[size.sessions].operations.to_vec()
    }
}

/// What a process has.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Pass {
    /// Its place; `None` in the lock that was made anew.
    place: Option<Place>,
    life: u64,
    /// It is to hand its slot over, or has done so.
    hands_over: bool,
}

impl Local for Pass {
    fn relabel(&self, f: Relabel<'_>) -> Self {
        Self { place: self.place.map(|place| place.relabel(f)), ..*self }
    }
}

const fn mutant(
    name: &'static str,
    change: &'static str,
    property: Property,
    setting: Setting,
) -> Mutant {
    Mutant { name, change, fate: Fate::breaks_in(property, setting) }
}

const MUTANTS: &[(Mutant, usize)] = &[
    (
        mutant(
            "opens-with-an-old-ticket",
            "the fast path is opened again with the ticket that it had before",
            Property::BoundedRegisters,
            Setting::slots(3, 2).passages(1).kills(ANY_NUMBER),
        ),
        6,
    ),
    (
        mutant(
            "removes-what-is-held",
            "a lock is removed though processes hold or wait",
            Property::KExclusion,
            Setting::slots(2, 1).passages(1),
        ),
        5,
    ),
    (
        mutant(
            "reopens-what-is-removed",
            "recovery grants slots of a lock that has been removed",
            Property::KExclusion,
            Setting::slots(3, 1).passages(1).kills(ANY_NUMBER),
        ),
        5,
    ),
    (
        mutant(
            "abandons-waiters-only",
            "a process that gives up its wait keeps a slot that was granted meanwhile",
            Property::DeadlockFreedom,
            Setting::slots(2, 1).passages(2),
        ),
        1,
    ),
    (
        mutant(
            "changes-without-rebuilding",
            "the stack of free slots is left as it was when the number of slots changes",
            Property::BoundedRegisters,
            Setting::slots(2, 2).passages(2),
        ),
        3,
    ),
    (
        mutant(
            "changes-without-granting",
            "a lock that is resumed grants nothing to the processes that wait",
            Property::DeadlockFreedom,
            Setting::slots(2, 1).passages(1),
        ),
        4,
    ),
];

struct Operations {
    table: Table,
    /// The process that holds each slot.
    taken: Array<Option<Owner>>,
    /// The lock that is made anew after the first one has been removed.
    fresh: Register<Option<Owner>>,
    /// Too large a number once two living processes have held the same slot.
    broken: Register<u64>,
    slots: u16,
    actors: usize,
}

/// No other register holds as much.
const BOUND: u64 = u64::MAX - 1;

impl Algorithm for Operations {
    const NAME: &'static str = "operations";
    const CLAIMS: Claims = Claims {
        problem: Problem::KExclusion,
        paper: "Doorway's own",
        figure: "docs/algorithms/named-lock.md",
        primitives: &[Primitive::ReadWrite, Primitive::CompareAndSwap],
        properties: &[],
        refuted: &[],
        registers: RegisterKind::Atomic,
        crashes: |_| 0,
        bound: Some(|_| BOUND),
        gap: |_| 2,
        values: &[],
        invariants: &[],
        abandons: true,
        rmr: Rmr { cc: "", dsm: "" },
        min_n: 1,
        max_n: None,
        mutants: &[
            MUTANTS[0].0,
            MUTANTS[1].0,
            MUTANTS[2].0,
            MUTANTS[3].0,
            MUTANTS[4].0,
            MUTANTS[5].0,
        ],
    };

    fn new(layout: &mut Layout, size: Size) -> Result<Self, Unfit> {
        let table = Table::new(layout, size.n, size.k, false, Home::Process(0));
        layout.begin(table.used(), size.n as u32);
        (0..size.n).for_each(|p| layout.begin(table.owner(p), Some(Owner::new(p, 0))));
        if size.k == 2 {
            // As after two passages at once: the slot that was released last is on top, and it is
            // not the lowest.
            layout.begin(table.free(0), 1);
            layout.begin(table.free(1), u32::MAX);
            layout.begin(table.fast_slot(), 1);
        }
        let taken = layout.array("Taken", size.k, Homes::Nobody, None);
        let fresh = layout.register("Fresh", Home::Nobody, None);
        let broken = layout.register("Broken", Home::Nobody, 0);
        Ok(Self {
            table,
            taken,
            fresh,
            broken,
            slots: size.k as u16,
            actors: MODELS[size.sessions].actors,
        })
    }
}

impl Operations {
    /// Does what comes before entering; returns whether the process still has an entry.
    fn operate<M>(
        &self,
        m: &mut M,
        me: Owner,
        p: usize,
        operation: Operation,
        has_entry: bool,
    ) -> Result<bool, M::Halt>
    where
        M: CompareAndSwap + FetchAndAdd + Mortal,
    {
        let table = &self.table;
        match operation {
            Enter | HandOver => {}
            _ if p >= self.actors => {}
            Reap => table.reap_all(m, me)?,
            GiveUpEntry if !has_entry => {}
            GiveUpEntry => {
                table.lock(m, me)?;
                table.give_back(m, p)?;
                table.unlock(m)?;
                return Ok(false);
            }
            Resize => {
                table.lock(m, me)?;
                table.change(m, |tally| {
                    tally.with_slots(if tally.slots() == 1 { self.slots } else { 1 })
                })?;
                table.unlock(m)?;
            }
            DrainAndResume => m.each(0..2, |m, round| {
                table.lock(m, me)?;
                table.change(m, |tally| tally.with_drained(round == 0))?;
                table.unlock(m)
            })?,
            Remove => {
                table.lock(m, me)?;
                let _ = table.remove(m)?;
                table.unlock(m)?;
            }
        }
        Ok(has_entry)
    }

    /// Takes a place, on the fast path or on the slow path; `None` if the lock has been removed.
    fn enter<M>(
        &self,
        m: &mut M,
        me: Owner,
        p: usize,
        has_entry: bool,
    ) -> Result<Option<Place>, M::Halt>
    where
        M: CompareAndSwap + FetchAndAdd + Mortal,
    {
        let table = &self.table;
        if has_entry && let Some((_, place)) = table.enter_fast(m, |_| Ok(Some(p)))? {
            return Ok(Some(place));
        }
        table.lock(m, me)?;
        if !has_entry && table.claim_vacant(m, me, p..p + 1)?.is_none() {
            table.claim_from_dead(m, me, p..p + 1)?;
        }
        let place = table.enter(m, p, Session(1))?;
        table.unlock(m)?;
        if place.slot.is_none() && m.read(table.tally())?.removed() {
            table.abandon(m, me, p)?;
            return Ok(None);
        }
        Ok(Some(place))
    }

    /// Waits for a slot, or for the lock that was made anew.
    fn wait<M>(&self, m: &mut M, p: usize, pass: Pass) -> Result<Pass, M::Halt>
    where
        M: CompareAndSwap + FetchAndAdd + Mortal,
    {
        let me = Owner::new(p, pass.life);
        let Some(place) = pass.place else {
            m.repeat((), |m, ()| {
                let Some(other) = m.compare_and_swap(self.fresh, None, Some(me))? else {
                    return Ok(Break(()));
                };
                if !m.is_dead(other, self.table.deaths(other.process()))? {
                    return Ok(Continue(()));
                }
                let was = m.compare_and_swap(self.fresh, Some(other), Some(me))?;
                Ok(if was == Some(other) { Break(()) } else { Continue(()) })
            })?;
            return Ok(pass);
        };
        let place = if place.slot.is_some() { place } else { self.table.wait(m, me, p, place)? };
        Ok(Pass { place: Some(place), ..pass })
    }

    /// Hands the slot over to a child. If another process has reclaimed it, the child enters, and
    /// keeps its slot: otherwise it could lose it without end.
    fn hand_over<M>(&self, m: &mut M, p: usize, pass: Pass) -> Result<Pass, M::Halt>
    where
        M: CompareAndSwap + FetchAndAdd + Mortal,
    {
        // The table lock closes the fast path, on which the entry may hold.
        self.table.lock(m, Owner::new(p, pass.life))?;
        self.table.unlock(m)?;
        let (life, is_handed_over) = self.successor(m, p, pass.life)?;
        if is_handed_over {
            return Ok(Pass { life, ..pass });
        }
        let place = self.enter(m, Owner::new(p, life), p, false)?;
        self.wait(m, p, Pass { place, life, hands_over: false })
    }

    /// Lets a process end and another one own its entry. Returns the life of that one, and whether
    /// it got the entry.
    fn successor<M>(&self, m: &mut M, p: usize, life: u64) -> Result<(u64, bool), M::Halt>
    where
        M: CompareAndSwap + FetchAndAdd + Mortal,
    {
        let next = m.fetch_and_add(self.table.deaths(p), 1)? + 1;
        let is_handed_over =
            self.table.hand_over(m, p, Owner::new(p, life), Owner::new(p, next))?;
        Ok((next, is_handed_over))
    }

    /// Notes who holds the slot, and whether a living process does already.
    fn note<M: CompareAndSwap + Mortal>(
        &self,
        m: &mut M,
        me: Owner,
        slot: u32,
    ) -> Result<(), M::Halt> {
        let taken = self.taken.at(slot as usize);
        let Some(other) = m.compare_and_swap(taken, None, Some(me))? else { return Ok(()) };
        if !m.is_dead(other, self.table.deaths(other.process()))? {
            return m.write(self.broken, BOUND + 1);
        }
        m.write(taken, Some(me))
    }
}

impl<M: CompareAndSwap + FetchAndAdd + Mortal> Exclusion<M> for Operations {
    type Request = Operation;
    type Pass = Pass;
    type Keep = Life;

    fn keep(&self, _: usize) -> Life {
        Life { number: 0, has_entry: true }
    }

    fn doorway(
        &self,
        m: &mut M,
        p: usize,
        operation: Operation,
        life: Life,
    ) -> Result<Pass, M::Halt> {
        let me = Owner::new(p, life.number);
        let has_entry = self.operate(m, me, p, operation, life.has_entry)?;
        let hands_over = operation == HandOver && p < self.actors;
        Ok(Pass { place: self.enter(m, me, p, has_entry)?, life: life.number, hands_over })
    }

    fn waiting(&self, m: &mut M, p: usize, pass: Pass) -> Result<Pass, M::Halt> {
        let pass = self.wait(m, p, pass)?;
        let pass = if pass.hands_over && pass.place.is_some() {
            self.hand_over(m, p, pass)?
        } else {
            pass
        };
        if let Some(place) = pass.place {
            self.note(m, Owner::new(p, pass.life), place.slot.expect("it has been granted"))?;
        }
        Ok(pass)
    }

    fn exit(&self, m: &mut M, p: usize, pass: Pass) -> Result<Life, M::Halt> {
        let life = Life { number: pass.life, has_entry: true };
        let Some(place) = pass.place else {
            m.write(self.fresh, None)?;
            return Ok(life);
        };
        let slot = place.slot.expect("it has been granted");
        m.write(self.taken.at(slot as usize), None)?;
        let life = if pass.hands_over {
            match self.successor(m, p, pass.life)? {
                (number, true) => Life { number, ..life },
                // Another process has reclaimed the slot.
                (number, false) => return Ok(Life { number, has_entry: false }),
            }
        } else {
            life
        };
        if !(place.fast && self.table.release_fast(m, p, place.ticket)?) {
            self.table.release(m, Owner::new(p, life.number), p, place.slot)?;
        }
        Ok(life)
    }

    fn abandon(&self, m: &mut M, p: usize, pass: Pass) -> Option<Result<Life, M::Halt>> {
        let gone = match pass.place {
            Some(_) => self.table.abandon(m, Owner::new(p, pass.life), p),
            // There is no queue.
            None => m.read(self.fresh).map(drop),
        };
        Some(gone.map(|()| Life { number: pass.life, has_entry: true }))
    }

    fn killed(&self, m: &mut M, p: usize) -> Option<Result<Life, M::Halt>> {
        let before = m.fetch_and_add(self.table.deaths(p), 1);
        Some(before.map(|before| Life { number: before + 1, has_entry: false }))
    }
}

const PROPERTIES: [Property; 2] = [Property::KExclusion, Property::BoundedRegisters];

fn explore(
    model: usize,
    setting: Setting,
    mutant: Option<&'static str>,
    properties: &[Property],
) -> Report {
    let size = Size { sessions: model, ..setting.size };
    // Any wait may be given up: with three processes there would be too many states.
    let mut subject = build::<Operations, _, _, _>(size, mutant, size.n < 3).expect("it fits");
    if let Some(most) = setting.kills {
        assert!(subject.let_kill(most), "deaths can be noticed");
    }
    let options = Options {
        passages: setting.passages,
        properties: properties.to_vec(),
        max_states: 400_000_000,
        workers: 2,
        ..Options::default()
    };
    check(&*subject, &options, &Progress::default()).expect("it runs")
}

fn all_hold(model: usize, setting: Setting) {
    let report = explore(model, setting, None, &PROPERTIES);
    let Model { operations, actors } = MODELS[model];
    let Setting { size: Size { n, k, .. }, .. } = setting;
    let what = format!("{operations:?} by {actors}, n = {n}, k = {k}, one passage, any kills");
    println!("{what}: {} states, {:.1} s", report.states, report.elapsed.as_secs_f64());
    assert!(report.complete, "{what}: incomplete");
    for verdict in &report.verdicts {
        assert_eq!(verdict.holds, Some(true), "{what}: {} ({})", verdict.property, verdict.scope);
    }
}

#[test]
fn two_processes_with_all_operations_mixed() {
    all_hold(0, Setting::slots(2, 1).passages(1).kills(ANY_NUMBER));
    all_hold(0, Setting::slots(2, 2).passages(1).kills(ANY_NUMBER));
}

/// Takes minutes: `cargo test --release -p doorway-lab --test operations -- --ignored --nocapture`.
#[test]
#[ignore = "takes minutes"]
fn three_processes_with_each_operation() {
    for model in [1, 2, 3, 4, 5, 7] {
        all_hold(model, Setting::slots(3, 2).passages(1).kills(ANY_NUMBER));
    }
}

#[test]
fn mutants_are_caught() {
    for (mutant, model) in MUTANTS {
        let Fate::Breaks { property, setting } = mutant.fate else {
            panic!("{} is not to be caught", mutant.name)
        };
        let verdict = explore(*model, setting, Some(mutant.name), &[property]).verdicts.remove(0);
        assert_eq!(verdict.holds, Some(false), "{}: {}", mutant.name, verdict.scope);
        println!(
            "{}: {property}, {} steps",
            mutant.name,
            verdict.trace.map_or(0, |trace| trace.steps.len())
        );
    }
}
