//! Makes traces from schedules that are written down.

use doorway_core::{Property, RegisterKind};

use super::{Run, Trace, TraceStep, Turn};
use crate::{
    schedule::{ScheduleError, Scheduler, Script, requested},
    simulate::SimulateError,
    subject::{Choice, Region, Subject},
};

/// A process that has not reached the place named in the script after this many steps never will.
const PATIENCE: u64 = 5_000;

impl Trace {
    /// Runs a script and records what happens as a trace for the violation of `property`.
    ///
    /// [`replay`](Self::replay) says whether the trace shows that violation. The turns after
    /// `again` are repeated for ever. A process that does not move there and is not in its
    /// remainder has crashed.
    ///
    /// # Errors
    /// When the text is not a script, or cannot be followed.
    pub fn scripted(
        subject: &dyn Subject,
        registers: RegisterKind,
        property: Property,
        text: &str,
    ) -> Result<Self, SimulateError> {
        let n = subject.size().n;
        let mut script = Script::parse(text, n)?.with_patience(PATIENCE);
        let mut run = Run::new(subject, registers, false).map_err(SimulateError::Fault)?;
        let mut trace = Self::of(subject, registers);
        let (able, mut regions) = ((0..n).collect::<Vec<_>>(), vec![Region::Remainder; n]);
        let mut last = None;
        while let Some(process) = script.follow(&able, last.as_ref(), &regions)? {
            if script.begins_loop() {
                trace.loop_from = Some(trace.steps.len());
            }
            let reads = script.reads();
            let asked = requested(script.asks(), process, &run.machine, subject)?;
            let choice = asked.map_or(Choice::Go, |(_, choice)| choice);
            let turn = Turn { process, choice, garbage: reads.map(|(word, _)| word) };
            let (event, _) = run.take(turn).map_err(|fault| match reads {
                Some((_, line)) => ScheduleError::NoOverlap { line, process }.into(),
                None => SimulateError::Fault(fault),
            })?;
            trace.steps.push(TraceStep::new(&event, turn));
            regions[process] = event.to;
            last = Some(event);
        }
        if let Some(from) = trace.loop_from {
            let moves = |p: usize| trace.steps[from..].iter().any(|step| step.process == p);
            trace.crashed =
                (0..n).filter(|&p| !moves(p) && regions[p] != Region::Remainder).collect();
        }
        trace.property = Some(property.name().into());
        trace.shows = "what the script is about".into();
        Ok(trace)
    }
}
