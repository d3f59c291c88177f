//! What is changed in the mutants of the bounded lock, and what becomes of it.

use crate::{Fate, Mutant};

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant { name: "without-line-13", change: "", fate: Fate::Harmless },
    Mutant { name: "without-line-16", change: "", fate: Fate::Harmless },
    Mutant { name: "without-line-17", change: "", fate: Fate::Harmless },
    Mutant { name: "without-line-18", change: "", fate: Fate::Harmless },
    Mutant { name: "without-line-19", change: "", fate: Fate::Harmless },
    Mutant { name: "without-line-22", change: "", fate: Fate::Harmless },
    Mutant { name: "without-line-23", change: "", fate: Fate::Harmless },
    Mutant { name: "without-line-31", change: "", fate: Fate::Harmless },
    Mutant { name: "without-line-37", change: "", fate: Fate::Harmless },
    Mutant { name: "without-line-40", change: "", fate: Fate::Harmless },
    Mutant { name: "keeps-the-flag-of-L", change: "", fate: Fate::Harmless },
    Mutant { name: "looks-once", change: "", fate: Fate::Harmless },
    Mutant { name: "trusts-the-backpack", change: "", fate: Fate::Harmless },
    Mutant { name: "leaves-without-a-word", change: "", fate: Fate::Harmless },
    Mutant { name: "takes-it-back-late", change: "", fate: Fate::Harmless },
    Mutant { name: "never-takes-it-back", change: "", fate: Fate::Harmless },
    Mutant { name: "keeps-its-bit", change: "", fate: Fate::Harmless },
];

pub(super) const OF_TURNS: &[Mutant] = &[
    Mutant { name: "does-not-rest", change: "", fate: Fate::Harmless },
    Mutant { name: "waits-for-no-guest", change: "", fate: Fate::Harmless },
    Mutant { name: "turns-never-end", change: "", fate: Fate::Harmless },
    Mutant { name: "ends-turns-at-once", change: "", fate: Fate::Harmless },
    Mutant { name: "tells-nobody", change: "", fate: Fate::Harmless },
];
