//! What is changed in the mutants of the randomized lock, and what becomes of it.

use crate::{Fate, Mutant, Property, Setting};

/// Two processes, so many passages.
const fn two(property: Property, passages: u32) -> Fate {
    Fate::breaks_in(property, Setting::slots(2, 1).passages(passages))
}

/// Three processes, one passage.
const fn three(property: Property) -> Fate {
    Fate::breaks_in(property, Setting::slots(3, 1).passages(1))
}

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant { name: "as-printed", change: "S is reset by (p, d)", fate: two(Property::DeadlockFreedom, 1) },
    Mutant {
        name: "tournament-of-four",
        change: "L is a tournament of four, and nobody waits until the one before is through with it",
        fate: Fate::Harmless,
    },
    Mutant { name: "without-line-5", change: "", fate: Fate::Harmless },
    Mutant { name: "without-line-13", change: "", fate: three(Property::DeadlockFreedom) },
    Mutant { name: "without-line-16", change: "", fate: Fate::Harmless },
    Mutant { name: "without-line-17", change: "", fate: Fate::Harmless },
    Mutant { name: "without-line-18", change: "", fate: Fate::Harmless },
    Mutant { name: "without-line-19", change: "", fate: Fate::Harmless },
    Mutant { name: "without-line-22", change: "", fate: Fate::Harmless },
    Mutant { name: "without-line-23", change: "", fate: Fate::Harmless },
    Mutant { name: "joins-who-has-gone", change: "", fate: Fate::Harmless },
    Mutant { name: "without-line-29", change: "", fate: Fate::Harmless },
    Mutant { name: "without-line-31", change: "", fate: Fate::Harmless },
    Mutant { name: "without-line-37", change: "", fate: Fate::Harmless },
    Mutant { name: "without-line-40", change: "", fate: two(Property::MutualExclusion, 1) },
];
