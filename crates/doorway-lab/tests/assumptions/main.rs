//! What the checker takes for granted of an algorithm, it checks: each test here has an algorithm
//! that breaks an assumption, and which would be believed without the check.

mod bounds;
mod domains;
mod sizes;
mod tickets;

use doorway_core::{Property, RegisterKind};
use doorway_lab::{Fault, Options, Progress, Report, Subject, Verdict, check};

/// Checks one property in runs with so many passages; `None` for any number.
fn verdict(
    subject: &dyn Subject,
    property: Property,
    passages: Option<u32>,
) -> Result<Verdict, Fault> {
    Ok(explore(subject, property, passages, RegisterKind::Atomic)?.verdicts.remove(0))
}

fn explore(
    subject: &dyn Subject,
    property: Property,
    passages: Option<u32>,
    registers: RegisterKind,
) -> Result<Report, Fault> {
    let options = Options { passages, registers, properties: vec![property], ..Options::default() };
    check(subject, &options, &Progress::default())
}
