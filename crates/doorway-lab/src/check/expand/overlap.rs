//! Reads that overlap a write, on registers that are not atomic, with every value that they may
//! return.

use doorway_core::{RegisterKind, raw};

use super::{Expander, Garbage, Interrupt, Sink, Step, event, hot::HotMove};
use crate::{
    check::{pack::Key, relabel::positions, space::Effect},
    fault::Fault,
};

impl<const W: usize> Expander<'_, '_, W> {
    /// Returns whether this move reads a register that another process is writing.
    pub(super) fn overlaps(
        &mut self,
        key: &Key<W>,
        p: usize,
        step: HotMove,
    ) -> Result<bool, Interrupt> {
        if !matches!(step.effect, Effect::Read | Effect::Begin) {
            return Ok(false);
        }
        for q in 0..self.plan.locals.len() {
            let local = self.plan.locals[q].get(key);
            if q != p && self.local(q, local).writing == step.register {
                if step.effect == Effect::Begin {
                    let space = self.lock();
                    let name = space.registers[step.register as usize].name.clone();
                    return Err(Interrupt::Fault(Fault::TwoWriters(name)));
                }
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Handles a read that overlaps a write: every value that it may return.
    pub(super) fn read_overlapping(
        &mut self,
        key: &Key<W>,
        p: usize,
        local: u32,
        index: u32,
        sink: &mut impl Sink<W>,
    ) -> Result<(), Interrupt> {
        let step = self.hot[p].moves[index as usize];
        if self.rules.kind == RegisterKind::Regular {
            let old = step.field.get(key);
            let new = self.being_written(key, step)?;
            self.answer(key, p, local, index, old, Some(Garbage::Value(old)), sink)?;
            if new != old {
                self.answer(key, p, local, index, new, Some(Garbage::Value(new)), sink)?;
            }
            return Ok(());
        }
        if !self.rules.relabel {
            let values = self.lock().finite_domain(step.register)?;
            for value in values {
                self.answer(key, p, local, index, value, Some(Garbage::Value(value)), sink)?;
            }
            return Ok(());
        }
        let plain = self.lock().domain(step.register, &[])?;
        for &value in &plain {
            self.answer(key, p, local, index, value, Some(Garbage::Value(value)), sink)?;
        }
        let was = self.local(p, local).first;
        let labels = self.labels(key);
        for position in positions(labels, self.rules.gap) {
            let ticket = raw::ticket(u64::from(position.label));
            let values = self.lock().domain(step.register, &[ticket])?;
            // Values without tickets come first, and have been returned.
            if values.len() == plain.len() {
                break;
            }
            let widened = if position.extra > 0 {
                let (id, map) = self.map(labels, position.split, position.extra, false);
                self.rename(key, id, &map)?
            } else {
                *key
            };
            let local = self.plan.locals[p].get(&widened);
            let own = index - was + self.local(p, local).first;
            for &value in &values[plain.len()..] {
                self.answer(
                    &widened,
                    p,
                    local,
                    own,
                    value,
                    Some(Garbage::Position(position)),
                    sink,
                )?;
            }
        }
        Ok(())
    }

    /// Returns the value that is being written to the register that this move reads.
    fn being_written(&mut self, key: &Key<W>, step: HotMove) -> Result<u32, Interrupt> {
        for q in 0..self.plan.locals.len() {
            let local = self.plan.locals[q].get(key);
            let writer = self.local(q, local);
            if writer.writing == step.register {
                let cell = self.cell(q, local, writer.first, step.field.get(key))?;
                return Ok(cell.value());
            }
        }
        Ok(step.field.get(key))
    }

    /// Makes the step in which a read returns `value`, whatever the register holds.
    #[expect(
        clippy::too_many_arguments,
        reason = "one place calls it, and a struct would only rename the arguments"
    )]
    fn answer(
        &mut self,
        key: &Key<W>,
        p: usize,
        local: u32,
        index: u32,
        value: u32,
        garbage: Option<Garbage>,
        sink: &mut impl Sink<W>,
    ) -> Result<(), Interrupt> {
        let cell = self.cell(p, local, index, value)?;
        let mut next = *key;
        self.plan.locals[p].set(&mut next, cell.next());
        let first = self.local(p, local).first;
        let guesses = match garbage {
            Some(Garbage::Position(position)) if position.split > 0 => event::GUESSES,
            _ => 0,
        };
        let events = cell.events() | guesses;
        let made = Step { p, index: index - first, garbage, events, overtaken: 0, key: next };
        if self.rules.relabel {
            if self.rules.kind == RegisterKind::Regular {
                // The value being written may be a new ticket, which the read brings in before the
                // write ends.
                let was = self.labels(key);
                return self.relabel_step(was, made, sink);
            }
            // The position already determines how wide the gaps around a new ticket are.
            let labels = self.labels(&made.key);
            self.narrow(made, labels, 0, 0, sink)
        } else {
            self.finish(made, sink);
            Ok(())
        }
    }
}
