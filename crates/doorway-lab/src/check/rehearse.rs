//! The rehearsal before a check: random runs of processes that forget, beside runs of processes
//! that forget nothing.
//!
//! The checker assumes that a section follows from its answers alone, so that what a loop forgets
//! cannot matter. Types keep variables and cells out of the closures; an atomic, a mutex or a
//! static gets past them. Such a section behaves differently when it is run again from a shorter
//! record, which shows as a difference between the two runs.

use doorway_core::RegisterKind;

use crate::{fault::Fault, machine::Machine, random::Random, subject::Subject};

/// The number of random runs.
const RUNS: u64 = 8;
/// The number of bursts in a run; a burst is steps by one process.
const BURSTS: u64 = 12;
/// The largest number of steps of a burst.
const BURST: u64 = 12;

/// Compares random runs with and without forgetting, step by step.
///
/// # Errors
/// When the runs differ: [`Fault::Impure`]. When the algorithm cannot be run in the lab.
pub(crate) fn rehearse(subject: &dyn Subject, registers: RegisterKind) -> Result<(), Fault> {
    let n = subject.size().n as u64;
    for run in 0..RUNS {
        let mut random = Random::new(run, 0);
        let mut forgetful = Machine::new(subject, registers, true)?.wordless();
        let mut faithful = Machine::new(subject, registers, false)?.wordless();
        for _ in 0..BURSTS {
            let p = random.below(n) as usize;
            for _ in 0..=random.below(BURST) {
                let moves = forgetful.moves(p);
                let choice = moves[random.below(moves.len() as u64) as usize].choice;
                let (step, expected) =
                    (forgetful.step(p, choice, None)?, faithful.step(p, choice, None)?);
                // Without words in the events, the written values are compared.
                let written =
                    step.register.is_none_or(|r| forgetful.value(r).same(faithful.value(r)));
                if !step.is_same(&expected) || !written {
                    return Err(Fault::Impure);
                }
            }
        }
    }
    Ok(())
}
