//! The second search, in which something is remembered beside the states: who was before whom, or what an invariant is about.

use doorway_core::{Invariant, Property};

use super::{
    Conclude, Numbered, TOO_MANY, Verdict,
    counterexample::{concretise, ending_in},
    enabling,
    expand::{Changes, Ghost, Rules, event},
    explore::End,
    overtaking,
    search::{Judge, Search, Searched, Then},
};
use crate::{
    fault::Fault,
    subject::{Region, Subject},
};

/// What has to be remembered to decide a property, and the event that violates it then; nothing for most.
pub(super) fn ghost(property: Property, subject: &dyn Subject) -> Option<(Ghost, u16)> {
    match property {
        Property::Fcfs => Some((Ghost::Before, event::OVERTAKES)),
        Property::KFcfs => Some((Ghost::Before, event::OVERTAKES_K)),
        Property::Fife => Some((Ghost::BeforeAlike, event::OVERTAKES)),
        Property::StrongConcurrentEntry => Some((Ghost::BeforeThroughout, 0)),
        Property::Invariant(name) => {
            let Invariant { register, line, most, .. } =
                *subject.claims().invariants.iter().find(|invariant| invariant.name == name)?;
            let register = subject.layout().named(register)?.0 as u16;
            Some((Ghost::Changes(Changes { register, line, most }), event::BREAKS))
        }
        _ => None,
    }
}

impl Conclude<'_, '_> {
    /// Makes the second search, and decides the property from it.
    pub(super) fn remembering<const W: usize>(
        &self,
        searched: &Searched<'_, '_, W>,
        graph: Option<&Numbered>,
        property: Property,
    ) -> Result<Verdict, Fault> {
        let (ghost, watch) = ghost(property, self.subject).unwrap_or((Ghost::Nothing, 0));
        let search = Search { rules: Rules { ghost, ..searched.rules }, watch, ..self.search };
        let mut decide = Decide { conclude: self, property, kept: None };
        if property != Property::Fife {
            return search.run(&mut decide);
        }
        let Some(numbered @ Numbered { graph, numbers }) = graph else {
            return Ok(self.undecided(property, TOO_MANY));
        };
        let stuck = enabling::not_enabled(graph, Region::Critical);
        let judge: Judge<'_> = &|fields, overtaken| {
            let key = searched.plan.pack::<W>(fields);
            let state = searched.store.number(numbers, &key);
            state.is_some_and(|state| stuck[state as usize] & overtaken != 0)
        };
        let kept = |fields: &[u32], overtaken: u32| {
            let state = searched.store.number(numbers, &searched.plan.pack::<W>(fields));
            state
                .is_some_and(|state| self.anybody_is_kept(searched, numbered, state, stuck[state as usize] & overtaken))
        };
        decide.kept = Some(&kept);
        Search { judge: Some(judge), ..search }.run(&mut decide)
    }
}

/// Decides a property from the second search.
struct Decide<'c, 'a, 's> {
    conclude: &'c Conclude<'a, 's>,
    property: Property,
    /// For `fife`: whether one of those overtaken in a state is truly not enabled there.
    kept: Option<Kept<'c>>,
}

/// Judges the numbers of a state and those overtaken in it.
type Kept<'c> = &'c dyn Fn(&[u32], u32) -> bool;

impl Then for Decide<'_, '_, '_> {
    type Out = Result<Verdict, Fault>;

    fn then<const W: usize>(&mut self, searched: &Searched<'_, '_, W>) -> Self::Out {
        let (conclude, property) = (self.conclude, self.property);
        Ok(match &searched.end {
            End::Fault(fault) => return Err(fault.clone()),
            End::Exhausted if property == Property::StrongConcurrentEntry => {
                match Numbered::of(searched, conclude.search.workers) {
                    Some(numbered) => conclude.progress(searched, &numbered, property),
                    None => conclude.undecided(property, TOO_MANY),
                }
            }
            End::Exhausted => conclude.holds(property),
            End::Violation(found) => {
                let trail = ending_in(searched, found);
                let overtaken = trail.last().map_or(0, |(_, step)| step.overtaken);
                if self.kept.is_some_and(|kept| !kept(&searched.plan.unpack(&found.to), overtaken)) {
                    return Ok(conclude.undecided(property, overtaking::GUESSED));
                }
                conclude.violated(property, concretise(searched, conclude.subject, &trail, property, None))
            }
            End::Cancelled => conclude.undecided(property, "the search was interrupted"),
            End::NoRoom(why) => conclude.undecided(property, &format!("no room for more states: {why}")),
            _ => conclude.undecided(
                property,
                &format!("the search for it stopped at {} states: raise --max-states", searched.store.states()),
            ),
        })
    }
}
