//! What goes wrong with one thing changed: most of it is caught where processes are killed, and some without.

use crate::{ANY_NUMBER, Fate, Mutant, Property, Setting};

const fn mutant(name: &'static str, change: &'static str, property: Property, setting: Setting) -> Mutant {
    Mutant { name, change, fate: Fate::breaks_in(property, setting) }
}

/// Two processes and a slot, two passages each, any of which may end by a kill.
const TWO: Setting = Setting::slots(2, 1).passages(2).kills(ANY_NUMBER);
/// Three and two slots, one passage each.
const THREE: Setting = Setting::slots(3, 2).passages(1).kills(ANY_NUMBER);

/// Three and one slot.
const ONE_OF_THREE: Setting = Setting::slots(3, 1).passages(1).kills(ANY_NUMBER);

use Property::{DeadlockFreedom, KExclusion, OrderedEntry, SessionExclusion};

pub(super) const MUTANTS: &[Mutant] = &[
    mutant(
        "waits-for-the-dead",
        "who waits for the guard does not ask whether its owner is dead",
        DeadlockFreedom,
        TWO,
    ),
    mutant("steals-from-the-living", "who waits for the guard takes it from whoever has it", KExclusion, TWO),
    mutant("steals-without-looking", "the guard is taken from a dead process by a write", KExclusion, TWO),
    mutant(
        "counts-nothing",
        "who takes the guard from a dead process does not count anew",
        DeadlockFreedom,
        ONE_OF_THREE,
    ),
    mutant("grants-nothing-it-finds", "who has counted anew does not grant what it finds free", DeadlockFreedom, THREE),
    mutant("counts-rows-of-nobody", "who counts anew counts rows that have no owner, too", DeadlockFreedom, TWO),
    mutant("forgets-who-waits", "who counts anew does not count those who wait", DeadlockFreedom, THREE),
    mutant("forgets-who-holds", "who counts anew takes all slots for free", KExclusion, TWO),
    mutant(
        "grants-the-last",
        "a slot is granted to the last row that waits",
        OrderedEntry,
        Setting::slots(3, 1).passages(1),
    ),
    mutant("moves-in-with-the-dead", "who takes the row of a dead process does not clear it", DeadlockFreedom, TWO),
    mutant("leaves-the-guard-to-others", "who looks does not look at the guard", DeadlockFreedom, TWO),
    mutant("looks-at-nobody", "who looks does not look at the rows", DeadlockFreedom, TWO),
    mutant("takes-all-for-dead", "who looks does not ask whether the owner of a row is dead", KExclusion, TWO),
    mutant("buries-without-guard", "a row is taken from the dead without the guard", KExclusion, TWO),
    mutant("evicts-anybody", "a row is cleared, whoever has it by now", DeadlockFreedom, TWO),
    mutant("leaves-without-a-word", "who leaves grants nothing", DeadlockFreedom, TWO),
    mutant("comes-by-a-write", "who finds the gate open comes in by a write", KExclusion, TWO),
    mutant("goes-by-a-write", "who came in through the gate leaves by a write", DeadlockFreedom, TWO),
    mutant("forgets-who-came", "who shuts the gate does not write into its row who came in by it", KExclusion, TWO),
    mutant("shuts-at-once", "who shuts the gate writes into the row afterwards", KExclusion, TWO),
    mutant("leaves-the-gate-ajar", "who takes the guard from a dead process does not shut the gate", KExclusion, TWO),
    mutant("opens-too-soon", "the gate is opened though somebody is inside", KExclusion, TWO),
];

/// Two processes that ask for one of two sessions.
const TWO_SESSIONS: Setting = Setting::group(2, 2).passages(2);

pub(super) const OF_GROUPS: &[Mutant] = &[
    mutant(
        "goes-in-ahead",
        "who comes goes in to those of its session though others wait",
        OrderedEntry,
        Setting::group(3, 2).passages(1),
    ),
    mutant(
        "comes-for-anything",
        "who finds the gate open does not look what its number stands for",
        SessionExclusion,
        TWO_SESSIONS,
    ),
    mutant(
        "forgets-what-for",
        "who shuts the gate takes whoever came in by it for one of the first session",
        SessionExclusion,
        TWO_SESSIONS,
    ),
    mutant(
        "numbers-anew",
        "a row's number is given another meaning though somebody has asked for it",
        SessionExclusion,
        TWO_SESSIONS,
    ),
];
