//! Explores entries that are handed over, as `doorway run` does it: a process claims any entry,
//! waits for a slot, and hands it to its child; when the child has ended it takes the slot back and
//! releases it. Here the process is killed before the child has the entry, and the child ends
//! before the process takes it back: what others see meanwhile is a dead owner, whose entry they
//! reclaim.
//!
//! There are as many entries as processes. In one model all have belonged to dead processes; in the
//! other none has been used, so that processes also claim new entries.

use std::ops::ControlFlow::{Break, Continue};

use doorway_core::{
    ANY_NUMBER, Algorithm, Claims, CompareAndSwap, Exclusion, Fate, FetchAndAdd, Home, Layout,
    Local, Mutant, Primitive, Problem, Property, RegisterKind, Relabel, Rmr, Session, Setting,
    Size, Unfit,
    engines::named_lock::{Life, Mortal, Owner, Place, State, Table},
};
use doorway_lab::{Progress, Report, build, check};

#[path = "common/options.rs"]
mod options;

use options::options;

struct HandOver(Table);

/// A place in the queue, its entry, and the process that has it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Pass {
    entry: usize,
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
        "claims-from-any-owner",
        "a process that finds the owner of an entry dead claims it, whichever process owns it by now",
        Property::StarvationFreedom,
    ),
    mutant(
        "hands-over-by-a-write",
        "an entry is handed over, whichever process owns it by now",
        Property::KExclusion,
    ),
    mutant(
        "claims-beyond-the-used",
        "a process that claims a new entry does not count it as used",
        Property::StarvationFreedom,
    ),
];

impl Algorithm for HandOver {
    const NAME: &'static str = "hand-over";
    const CLAIMS: Claims = Claims {
        problem: Problem::KExclusion,
        paper: "Doorway's own",
        figure: "docs/algorithms/named-lock.md",
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

    /// The number of sessions, which the engine does not have here, says which model it is.
    fn new(layout: &mut Layout, size: Size) -> Result<Self, Unfit> {
        let table = Table::new(layout, size.n, size.k, false, Home::Process(0));
        if size.sessions == USED {
            layout.begin(table.used(), size.n as u32);
            // No process dies so often.
            (0..size.n).for_each(|p| layout.begin(table.owner(p), Some(Owner::new(p, 1000))));
        }
        Ok(Self(table))
    }
}

/// No entry has been used.
const UNUSED: usize = 0;
/// All entries belong to dead processes.
const USED: usize = 1;

impl HandOver {
    /// Enters with any entry: one without an owner, a new one, or one of a dead process.
    fn enter<M>(&self, m: &mut M, p: usize, life: u64) -> Result<Pass, M::Halt>
    where
        M: CompareAndSwap + FetchAndAdd + Mortal,
    {
        let (table, me) = (&self.0, Owner::new(p, life));
        m.repeat((), |m, ()| {
            table.lock(m, me)?;
            let used = m.read(table.used())? as usize;
            let mut entry = table.claim_vacant(m, me, 0..used)?;
            if entry.is_none() {
                entry = table.claim_new(m, me)?;
            }
            if entry.is_none() {
                entry = table.claim_from_dead(m, me, 0..used)?;
            }
            let place = match entry {
                Some(entry) => Some(table.enter(m, entry, Session(1))?),
                None => None,
            };
            table.unlock(m)?;
            Ok(match (entry, place) {
                (Some(entry), Some(place)) => Break(Pass { entry, place, life }),
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
            None => self.0.wait(m, Owner::new(p, pass.life), pass.entry, pass.place)?,
        };
        Ok(Pass { place, ..pass })
    }

    /// The owner dies, and a new process takes its place, if the entry is still there. Returns
    /// which.
    fn hand_over<M>(&self, m: &mut M, p: usize, pass: Pass) -> Result<(u64, bool), M::Halt>
    where
        M: CompareAndSwap + FetchAndAdd + Mortal,
    {
        let life = m.fetch_and_add(self.0.deaths(p), 1)? + 1;
        let handed =
            self.0.hand_over(m, pass.entry, Owner::new(p, pass.life), Owner::new(p, life))?;
        Ok((life, handed))
    }
}

impl<M: CompareAndSwap + FetchAndAdd + Mortal> Exclusion<M> for HandOver {
    type Request = ();
    type Pass = Pass;
    type Keep = Life;

    fn keep(&self, _: usize) -> Life {
        Life { number: 0, has_entry: false }
    }

    fn doorway(&self, m: &mut M, p: usize, (): (), life: Life) -> Result<Pass, M::Halt> {
        self.enter(m, p, life.number)
    }

    fn waiting(&self, m: &mut M, p: usize, pass: Pass) -> Result<Pass, M::Halt> {
        let pass = self.wait(m, p, pass)?;
        let (life, handed) = self.hand_over(m, p, pass)?;
        if handed {
            return Ok(Pass { life, ..pass });
        }
        // A process that does not get the entry enters again, and keeps the slot to itself then:
        // otherwise it could lose the slot again without end.
        let pass = self.enter(m, p, life)?;
        self.wait(m, p, pass)
    }

    fn exit(&self, m: &mut M, p: usize, pass: Pass) -> Result<Life, M::Halt> {
        let (life, handed) = self.hand_over(m, p, pass)?;
        if handed {
            self.0.lock(m, Owner::new(p, life))?;
            let state = m.read(self.0.state(pass.entry))?;
            if matches!(state, State::Holding { ticket, .. } if ticket == pass.place.ticket) {
                self.0.leave(m, pass.entry, pass.place.slot)?;
            }
            self.0.unlock(m)?;
        }
        self.killed(m, p).expect("it can be")
    }

    fn killed(&self, m: &mut M, p: usize) -> Option<Result<Life, M::Halt>> {
        let before = m.fetch_and_add(self.0.deaths(p), 1);
        Some(before.map(|before| Life { number: before + 1, has_entry: false }))
    }
}

fn explore(
    model: usize,
    setting: Setting,
    mutant: Option<&'static str>,
    properties: &[Property],
) -> Report {
    let size = Size { sessions: model, ..setting.size };
    let mut subject = build::<HandOver, _, _, _>(size, mutant, false).expect("it fits");
    if let Some(most) = setting.kills {
        assert!(subject.let_kill(most), "deaths can be noticed");
    }
    let options = options(setting, properties, 20_000_000);
    check(&*subject, &options, &Progress::default()).expect("it runs")
}

#[test]
fn an_entry_that_is_handed_over_belongs_to_one_process() {
    for (model, setting) in [
        (USED, Setting::slots(2, 1).passages(1)),
        (USED, Setting::slots(2, 1).passages(2)),
        (USED, Setting::slots(2, 1).passages(1).kills(ANY_NUMBER)),
        (UNUSED, Setting::slots(2, 1).passages(1).kills(ANY_NUMBER)),
        (UNUSED, Setting::slots(2, 2).passages(1).kills(ANY_NUMBER)),
    ] {
        let report =
            explore(model, setting, None, &[Property::KExclusion, Property::StarvationFreedom]);
        println!(
            "model {model}, {setting:?}: {} states, {:.1} s",
            report.states,
            report.elapsed.as_secs_f64()
        );
        assert!(report.complete, "{setting:?}: incomplete");
        for verdict in &report.verdicts {
            assert_eq!(
                verdict.holds,
                Some(true),
                "{setting:?}: {} ({})",
                verdict.property,
                verdict.scope
            );
        }
    }
}

#[test]
fn its_mutants_are_caught() {
    for mutant in MUTANTS {
        let Fate::Breaks { property, setting } = mutant.fate else {
            panic!("{} is not to be caught", mutant.name)
        };
        let model = if mutant.name == "claims-beyond-the-used" { UNUSED } else { USED };
        let verdict = explore(model, setting, Some(mutant.name), &[property]).verdicts.remove(0);
        assert_eq!(verdict.holds, Some(false), "{}: {}", mutant.name, verdict.scope);
        println!(
            "{}: {property}, {} steps",
            mutant.name,
            verdict.trace.map_or(0, |trace| trace.steps.len())
        );
    }
}
