//! Rows that are given away, as `doorway run` does it: a process takes whatever row it finds, waits for a slot, and hands it to its child; when that has ended
//! it takes the slot back, and leaves. Here the first is killed before the child has the row, and the child ends before the other takes it back: what
//! others see meanwhile is a dead owner, whose row they take away from it.
//!
//! There are as many rows as processes, and all have been the dead's: nobody finds one that is free.

use std::ops::ControlFlow::{Break, Continue};

use doorway_core::{
    ANY_NUMBER, Algorithm, Claims, CompareAndSwap, Exclusion, Fate, FetchAndAdd, Layout, Local, Mortal, Mutant,
    Primitive, Problem, Property, RegisterKind, Relabel, Rmr, Session, Setting, Size, Unfit,
    recoverable::{Life, Owner, Place, State, Table},
};
use doorway_lab::{Progress, Report, build, check};

#[path = "common/options.rs"]
mod options;

use options::options;

struct Handed(Table);

/// A place in line, in which row, and who has it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Pass {
    row: usize,
    place: Place,
    life: u64,
}

impl Local for Pass {
    fn relabel(&self, f: Relabel<'_>) -> Self {
        Self { place: self.place.relabel(f), ..*self }
    }
}

const fn mutant(name: &'static str, change: &'static str, property: Property) -> Mutant {
    Mutant { name, change, fate: Fate::breaks_in(property, Setting::slots(2, 1).passages(1)) }
}

const MUTANTS: &[Mutant] = &[
    mutant(
        "moves-in-with-anybody",
        "who finds the owner of a row dead takes the row, whoever has it by now",
        Property::StarvationFreedom,
    ),
    mutant("hands-by-a-write", "a row is given away, whoever has it by now", Property::KExclusion),
];

impl Algorithm for Handed {
    const NAME: &'static str = "handed";
    const CLAIMS: Claims = Claims {
        problem: Problem::KExclusion,
        paper: "Doorway's own",
        figure: "docs/algorithms/recoverable.md",
        primitives: &[Primitive::ReadWrite, Primitive::CompareAndSwap],
        properties: &[],
        refuted: &[],
        registers: RegisterKind::Atomic,
        crashes: |_| 0,
        bound: None,
        gap: |_| 2,
        values: &[],
        invariants: &[],
        abandons: false,
        rmr: Rmr { cc: "", dsm: "" },
        min_n: 1,
        max_n: None,
        mutants: MUTANTS,
    };

    fn new(layout: &mut Layout, size: Size) -> Result<Self, Unfit> {
        let table = Table::new(layout, size.n, size.k, false);
        // Nobody has died so often.
        (0..size.n).for_each(|p| layout.begin(table.owner(p), Some(Owner::new(p, 1000))));
        Ok(Self(table))
    }
}

impl Handed {
    /// With whatever row there is.
    fn enter<M>(&self, m: &mut M, p: usize, life: u64) -> Result<Pass, M::Halt>
    where
        M: CompareAndSwap + FetchAndAdd + Mortal,
    {
        let me = Owner::new(p, life);
        m.repeat((), |m, ()| {
            self.0.take(m, me)?;
            let row = self.0.settle(m, me, 0..self.0.rows())?;
            let place = match row {
                Some(row) => Some(self.0.join(m, row, Session(1))?),
                None => None,
            };
            self.0.give(m)?;
            Ok(match (row, place) {
                (Some(row), Some(place)) => Break(Pass { row, place, life }),
                _ => Continue(()),
            })
        })
    }

    fn wait<M>(&self, m: &mut M, p: usize, pass: Pass) -> Result<Pass, M::Halt>
    where
        M: CompareAndSwap + FetchAndAdd + Mortal,
    {
        let place = match pass.place.slot {
            Some(_) => pass.place,
            None => self.0.wait(m, Owner::new(p, pass.life), pass.row, pass.place)?,
        };
        Ok(Pass { place, ..pass })
    }

    /// Its owner dies, and somebody new takes its place, if the row is still there. Says who that is.
    fn hand<M>(&self, m: &mut M, p: usize, pass: Pass) -> Result<(u64, bool), M::Halt>
    where
        M: CompareAndSwap + FetchAndAdd + Mortal,
    {
        let life = m.fetch_and_add(self.0.deaths(p), 1)? + 1;
        let handed = self.0.hand(m, pass.row, Owner::new(p, pass.life), Owner::new(p, life))?;
        Ok((life, handed))
    }
}

impl<M: CompareAndSwap + FetchAndAdd + Mortal> Exclusion<M> for Handed {
    type Request = ();
    type Pass = Pass;
    type Keep = Life;

    fn keep(&self, _: usize) -> Life {
        Life { number: 0, settled: false }
    }

    fn doorway(&self, m: &mut M, p: usize, (): (), life: Life) -> Result<Pass, M::Halt> {
        self.enter(m, p, life.number)
    }

    fn waiting(&self, m: &mut M, p: usize, pass: Pass) -> Result<Pass, M::Halt> {
        let pass = self.wait(m, p, pass)?;
        let (life, handed) = self.hand(m, p, pass)?;
        if handed {
            return Ok(Pass { life, ..pass });
        }
        // Who does not get it comes again, and keeps the slot to itself then: without end it would lose that again.
        let pass = self.enter(m, p, life)?;
        self.wait(m, p, pass)
    }

    fn exit(&self, m: &mut M, p: usize, pass: Pass) -> Result<Life, M::Halt> {
        let (life, handed) = self.hand(m, p, pass)?;
        if handed {
            self.0.take(m, Owner::new(p, life))?;
            let state = m.read(self.0.state(pass.row))?;
            if matches!(state, State::Holding { ticket, .. } if ticket == pass.place.ticket) {
                self.0.vacate(m, pass.row, pass.place.slot)?;
            }
            self.0.give(m)?;
        }
        self.killed(m, p).expect("it can be")
    }

    fn killed(&self, m: &mut M, p: usize) -> Option<Result<Life, M::Halt>> {
        let before = m.fetch_and_add(self.0.deaths(p), 1);
        Some(before.map(|before| Life { number: before + 1, settled: false }))
    }
}

fn explore(setting: Setting, mutant: Option<&'static str>, properties: &[Property]) -> Report {
    let mut subject = build::<Handed, _, _, _>(setting.size, mutant, false).expect("it fits");
    if let Some(most) = setting.kills {
        assert!(subject.let_kill(most), "deaths can be noticed");
    }
    let options = options(setting, properties, 20_000_000);
    check(&*subject, &options, &Progress::default()).expect("it runs")
}

#[test]
fn a_row_that_is_given_away_is_one_process_s() {
    for setting in [
        Setting::slots(2, 1).passages(1),
        Setting::slots(2, 1).passages(2),
        Setting::slots(2, 1).passages(1).kills(ANY_NUMBER),
    ] {
        let report = explore(setting, None, &[Property::KExclusion, Property::StarvationFreedom]);
        println!("{setting:?}: {} states, {:.1} s", report.states, report.elapsed.as_secs_f64());
        assert!(report.complete, "{setting:?}: incomplete");
        for verdict in &report.verdicts {
            assert_eq!(verdict.holds, Some(true), "{setting:?}: {} ({})", verdict.property, verdict.scope);
        }
    }
}

#[test]
fn its_mutants_are_caught() {
    for mutant in MUTANTS {
        let Fate::Breaks { property, setting } = mutant.fate else { panic!("{} is not to be caught", mutant.name) };
        let verdict = explore(setting, Some(mutant.name), &[property]).verdicts.remove(0);
        assert_eq!(verdict.holds, Some(false), "{}: {}", mutant.name, verdict.scope);
        println!("{}: {property}, {} steps", mutant.name, verdict.trace.map_or(0, |trace| trace.steps.len()));
    }
}
