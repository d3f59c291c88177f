//! Random runs, written down step by step.

use std::fmt::Write;

use doorway_core::{ANY_NUMBER, Primitive, RegisterKind, layout::Erased};
use doorway_lab::{
    Entrant, Kind, Random, Subject,
    machine::{Half, Machine},
};

/// How many times a process is chosen to make a few steps.
const STEPS: usize = 24;

/// Runs of one algorithm: on atomic registers with waits given up and processes killed where that
/// can be, and on weaker registers where it only reads and writes.
pub(crate) fn of(entrant: &Entrant) -> String {
    let size = entrant.claims.problem.size(entrant.claims.min_n.max(3), 1, 2);
    let size = if entrant.build(size, None, false).is_ok() { size } else { super::size(entrant) };
    let mut text = String::new();
    for registers in [RegisterKind::Atomic, RegisterKind::Regular, RegisterKind::Safe] {
        if registers != RegisterKind::Atomic && *entrant.claims.primitives != [Primitive::ReadWrite]
        {
            continue;
        }
        let mut subject =
            entrant.build(size, None, entrant.claims.abandons).expect("the size is served");
        subject.let_kill(ANY_NUMBER);
        let variant = entrant.variant.map_or(String::new(), |variant| format!(" ({variant})"));
        let count = subject.layout().registers();
        writeln!(text, "{}{variant}, {size}, {count} {registers} registers", entrant.name)
            .expect("it is a string");
        let cut = run(&*subject, registers, true);
        assert_eq!(
            cut,
            run(&*subject, registers, false),
            "{} runs alike if its loops forget",
            entrant.name
        );
        text += &cut;
    }
    text
}

fn run(subject: &dyn Subject, registers: RegisterKind, cut: bool) -> String {
    let mut machine = Machine::new(subject, registers, cut).expect("the algorithm can be run");
    let mut random = Random::new(7, 1);
    let mut below = |bound: usize| random.below(bound as u64) as usize;
    let mut text = String::new();
    let mut writes = vec![false; machine.processes()];
    for _ in 0..STEPS {
        // A process makes a few steps in a row, or no passage would come to its end; and mostly the
        // first move.
        let p = below(machine.processes());
        for _ in 0..=below(4) {
            let moves = machine.moves(p);
            let step = moves[if below(6) == 0 { below(moves.len()) } else { 0 }];
            // A read that overlaps a write returns what was there before.
            let reads = step.access.kind == Kind::Read && !writes[p];
            let overlaps = |register: &usize| reads && machine.in_flux(*register, p);
            let register = machine.register_of(&step).filter(overlaps);
            let old: Option<Box<dyn Erased>> =
                register.map(|register| machine.value(register).copy());
            let event =
                machine.step(p, step.choice, old.as_deref()).expect("the algorithm can be run");
            writes[p] = event.half == Some(Half::Begin);
            let remote = if event.remote { "remote" } else { "local" };
            let changed = if event.changed { ", changed" } else { "" };
            write!(text, "  {p} {}: {}, {remote}{changed}", event.line, event.access)
                .expect("it is a string");
            let gives_up = if event.abandons { ", out of line" } else { "" };
            writeln!(text, ", {:?}, {} inside{gives_up}", event.to, machine.inside())
                .expect("it is a string");
        }
    }
    text
}
