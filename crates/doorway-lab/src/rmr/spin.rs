//! The cost of waiting: a process is kept waiting while holders stay inside. An algorithm that
//! spins locally pays nothing for any number of looks. Other algorithms pay for each look, so that
//! their passages have no bound.

use doorway_core::RegisterKind;

use crate::{
    cost::Meter,
    fault::Fault,
    machine::Machine,
    random::Random,
    simulate::choose,
    subject::{Region, Subject},
};

/// The references of a passage in which a process has waited for so many of its own steps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpinCost {
    /// The process that waits.
    pub process: usize,
    /// The steps that the process has taken.
    pub steps: u64,
    /// Its references with coherent caches.
    pub cc: u64,
    /// Its references with distributed shared memory.
    pub dsm: u64,
}

/// A process that has not entered alone after this many steps never will.
const PATIENCE: u64 = 1 << 20;

/// Returns what waiting `steps` steps costs a process while holders stay inside.
///
/// First k processes enter one after the other and stay; then another process takes `steps` steps.
/// In group locks one process enters, and a process of another session waits. Several processes are
/// tried as the waiting process; the result is that of the process with the highest cost in DSM.
/// `None` if a holder does not enter, or if the waiting process leaves its entry section.
///
/// # Errors
/// When the algorithm cannot be run in the lab.
///
/// ```
/// use doorway_core::Size;
/// use doorway_lab::{Entrant, rmr::spin_cost};
/// let dsm = |name: &str, steps| {
///     let subject = Entrant::named(name).unwrap().build(Size::mutex(2), None, false).unwrap();
///     spin_cost(&*subject, steps).unwrap().unwrap().dsm
/// };
/// assert_eq!(dsm("yang-anderson", 10_000), dsm("yang-anderson", 100));
/// assert!(dsm("bakery", 10_000) > 9_000);
/// ```
pub fn spin_cost(subject: &dyn Subject, steps: u64) -> Result<Option<SpinCost>, Fault> {
    let n = subject.size().n;
    // Where a process waits depends on its id: the first, the second and the last wait at different
    // places.
    let mut dearest: Option<SpinCost> = None;
    for process in [0, 1, n.saturating_sub(1)] {
        let Some(cost) = kept_waiting(subject, process, steps)? else { return Ok(None) };
        if dearest.is_none_or(|d| (cost.dsm, cost.cc) > (d.dsm, d.cc)) {
            dearest = Some(cost);
        }
    }
    Ok(dearest)
}

fn kept_waiting(
    subject: &dyn Subject,
    process: usize,
    steps: u64,
) -> Result<Option<SpinCost>, Fault> {
    let size = subject.size();
    let holders = if size.sessions == 0 { size.k } else { 1 };
    if process >= size.n || holders >= size.n {
        return Ok(None);
    }
    let mut machine = Machine::new(subject, RegisterKind::Atomic, true)?.silent();
    let mut meter = Meter::new(size.n);
    let mut random = Random::new(0, 2);
    let mut step = |p: usize| -> Result<(Region, (u64, u64)), Fault> {
        let index = match machine.moves(p) {
            // The waiting process asks for another session than the holder.
            moves if machine.region(p) == Region::Remainder && p == process => moves.len() - 1,
            _ if machine.region(p) == Region::Remainder => 0,
            _ => choose(&machine, p, &mut random),
        };
        machine.advance(p, index)?;
        let event = machine.last();
        Ok((event.to, meter.observe(event)))
    };
    for holder in (0..size.n).filter(|&p| p != process).take(holders) {
        let mut inside = false;
        for _ in 0..PATIENCE {
            inside = step(holder)?.0 == Region::Critical;
            if inside {
                break;
            }
        }
        if !inside {
            return Ok(None);
        }
    }
    let mut cost = SpinCost { process, steps, cc: 0, dsm: 0 };
    for _ in 0..steps {
        let (region, (cc, dsm)) = step(process)?;
        if !region.is_entry() {
            return Ok(None);
        }
        cost.cc += cc;
        cost.dsm += dsm;
    }
    Ok(Some(cost))
}
