//! The second search, in which something is remembered beside the states: which processes were
//! before which, or what an invariant is about.

use std::time::Instant;

use doorway_core::{Invariant, Property};

use super::{
    Verdict,
    counterexample::{concretise, ending_in},
    decide::Conclude,
    expand::{Changes, Ghost, Rules, event},
    explore::End,
    graph::Extras,
    search::{Search, Searched, Then},
};
use crate::{fault::Fault, subject::Subject};

/// Returns what has to be remembered to decide a property, and the event that then violates it;
/// `None` for most properties.
pub(super) fn ghost(property: Property, subject: &dyn Subject) -> Option<(Ghost, u16)> {
    match property {
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
    /// Makes the second search and decides the property from it.
    pub(super) fn remembering<const W: usize>(
        &self,
        searched: &Searched<'_, '_, W>,
        property: Property,
        ghost: Ghost,
        watch: u16,
    ) -> Result<Verdict, Fault> {
        let search = Search { rules: Rules { ghost, ..searched.rules }, watch, ..self.search };
        search.run(&mut Decide { conclude: self, property, started: Instant::now() })
    }
}

/// Decides a property from the second search.
struct Decide<'c, 'a, 's> {
    conclude: &'c Conclude<'a, 's>,
    property: Property,
    started: Instant,
}

impl Then for Decide<'_, '_, '_> {
    type Out = Result<Verdict, Fault>;

    fn then<const W: usize>(&mut self, searched: &Searched<'_, '_, W>) -> Self::Out {
        let (conclude, property) = (self.conclude, self.property);
        conclude.timings.note(format!("explore for {property}"), self.started.elapsed());
        Ok(match &searched.end {
            End::Fault(fault) => return Err(fault.clone()),
            End::Exhausted if property == Property::StrongConcurrentEntry => {
                match conclude.numbered(searched, Extras { unopposed: true, beginnings: false }) {
                    Some(numbered) => {
                        let kept = conclude.kept(&numbered, vec![property], false);
                        conclude.progress(searched, &numbered, &kept, property)
                    }
                    None => conclude.without_graph(searched, property),
                }
            }
            End::Exhausted => conclude.holds(property),
            End::Violation(found) => conclude.showing(property, || {
                concretise(searched, conclude.subject, &ending_in(searched, found), property, None)
            }),
            End::Cancelled => conclude.unfinished(property, "the search was interrupted"),
            End::NoRoom(why) => {
                conclude.unfinished(property, &format!("no room for more states: {why}"))
            }
            _ => conclude.unfinished(
                property,
                &format!(
                    "the search for it stopped at {} states: raise --max-states",
                    searched.store.states()
                ),
            ),
        })
    }
}
