//! Broken versions of the engine. Most are caught in settings with kills, some without.

use crate::{ANY_NUMBER, Fate, Mutant, Property, Setting};

const fn mutant(
    name: &'static str,
    change: &'static str,
    property: Property,
    setting: Setting,
) -> Mutant {
    Mutant { name, change, fate: Fate::breaks_in(property, setting) }
}

/// Two processes and one slot, two passages each. A kill may end any passage.
const TWO: Setting = Setting::slots(2, 1).passages(2).kills(ANY_NUMBER);
/// Three processes and two slots, one passage each.
const THREE: Setting = Setting::slots(3, 2).passages(1).kills(ANY_NUMBER);
/// Three processes and one slot.
const ONE_OF_THREE: Setting = Setting::slots(3, 1).passages(1).kills(ANY_NUMBER);

use Property::{DeadlockFreedom, KExclusion, OrderedEntry, SessionExclusion, StarvationFreedom};

pub(super) const MUTANTS: &[Mutant] = &[
    mutant(
        "waits-for-the-dead",
        "a process that waits for the table lock does not ask whether its owner is dead",
        DeadlockFreedom,
        TWO,
    ),
    mutant(
        "steals-from-the-living",
        "a process that waits for the table lock takes it from any owner",
        KExclusion,
        TWO,
    ),
    mutant(
        "steals-by-a-write",
        "the table lock is taken from a dead process by a write",
        KExclusion,
        TWO,
    ),
    mutant(
        "rebuilds-nothing",
        "a process that takes the table lock from a dead one does not rebuild",
        DeadlockFreedom,
        ONE_OF_THREE,
    ),
    mutant(
        "recovers-without-granting",
        "recovery does not grant the slots that it finds free",
        DeadlockFreedom,
        THREE,
    ),
    mutant(
        "counts-entries-without-owner",
        "recovery counts entries that have no owner, too",
        DeadlockFreedom,
        TWO,
    ),
    mutant(
        "forgets-waiters",
        "recovery leaves the waiters out of the queue",
        DeadlockFreedom,
        THREE,
    ),
    mutant("forgets-holders", "recovery takes all slots for free", KExclusion, TWO),
    mutant(
        "rebuilds-without-order",
        "recovery queues the waiters in the order of their entries",
        OrderedEntry,
        ONE_OF_THREE,
    ),
    mutant(
        "grants-the-last",
        "a slot is granted to the back of the queue",
        OrderedEntry,
        Setting::slots(3, 1).passages(1),
    ),
    mutant(
        "claims-without-clearing",
        "a process that claims the entry of a dead one does not clear it",
        DeadlockFreedom,
        TWO,
    ),
    mutant(
        "leaves-the-table-lock-to-the-dead",
        "a waiter does not watch the owner of the table lock",
        DeadlockFreedom,
        TWO,
    ),
    mutant(
        "watches-waiters-only",
        "the front of the queue does not watch the holders",
        DeadlockFreedom,
        TWO,
    ),
    mutant(
        "watches-holders-only",
        "a waiter behind another one does not watch that",
        StarvationFreedom,
        ONE_OF_THREE,
    ),
    mutant(
        "takes-all-for-dead",
        "a waiter does not ask whether the owner of an entry is dead",
        KExclusion,
        TWO,
    ),
    mutant(
        "reaps-without-table-lock",
        "an entry is reclaimed without the table lock",
        KExclusion,
        TWO,
    ),
    mutant(
        "reclaims-from-any-owner",
        "an entry is reclaimed from whichever process owns it by now",
        DeadlockFreedom,
        TWO,
    ),
    mutant(
        "releases-without-granting",
        "a process that releases grants nothing",
        DeadlockFreedom,
        TWO,
    ),
    mutant("enters-by-a-write", "the fast path is entered by a write", KExclusion, TWO),
    mutant(
        "releases-by-a-write",
        "a slot of the fast path is released by a write",
        DeadlockFreedom,
        TWO,
    ),
    mutant(
        "forgets-the-holder",
        "closing the fast path does not write its holder down",
        KExclusion,
        TWO,
    ),
    mutant(
        "closes-before-writing-down",
        "the fast path is closed before its holder is written down",
        KExclusion,
        TWO,
    ),
    mutant("leaves-the-fast-path-open", "recovery does not close the fast path", KExclusion, TWO),
    mutant(
        "opens-too-soon",
        "the fast path is opened although a process holds a slot",
        KExclusion,
        TWO,
    ),
];

/// Two processes that each ask for one of two sessions.
const TWO_SESSIONS: Setting = Setting::group(2, 2).passages(2);

pub(super) const OF_GROUPS: &[Mutant] = &[
    mutant(
        "overtakes-its-session",
        "a newcomer joins the holders of its session although others wait",
        OrderedEntry,
        Setting::group(3, 2).passages(1),
    ),
    mutant(
        "enters-for-any-session",
        "the fast path is entered whatever the number of the entry stands for",
        SessionExclusion,
        TWO_SESSIONS,
    ),
    mutant(
        "forgets-the-session",
        "closing the fast path takes its holder for one of the first session",
        SessionExclusion,
        TWO_SESSIONS,
    ),
    mutant(
        "takes-its-own-number",
        "the number of an entry is given another meaning although a process has asked for it",
        SessionExclusion,
        TWO_SESSIONS,
    ),
];
