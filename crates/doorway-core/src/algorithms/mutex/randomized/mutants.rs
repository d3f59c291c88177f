//! The mutants of the randomized lock: the change and the fate of each.

use crate::{ANY_NUMBER, Fate, Mutant, Property, Setting};

/// Returns a setting of two processes and so many passages.
const fn two(passages: u32) -> Setting {
    Setting::slots(2, 1).passages(passages)
}

const fn breaks(property: Property, passages: u32) -> Fate {
    Fate::breaks_in(property, two(passages))
}

/// Process 0 has finished the release of L but for its last two accesses when process 1 has taken L
/// and resigned. Process 2 then plays from the leaf of process 0, which tells it to go although
/// process 1 is still there. Process 1 takes back the name of process 2 instead of its own, and
/// process 3 finds no rival.
const FOUR: &str = "\
0 until critical
0 past 32
0*3
1 until critical
1 past 32
2*13
0 until remainder
2*29
1
3
3 chooses 1
3 until critical";

/// Process 2 has been promoted and has left, and still announces that it wants to get in. Process 1
/// waits for it.
const STILL_WANTS: &str = "\
0*2
0 chooses 1
0 past 12
2*2
2 chooses 1
2*7
0 past 39
2 until remainder
0 until remainder
1 past 13
again
1";

/// Process 1 fails to become leader, since process 0 leads. Then process 2 leads, and finds that
/// process 1 wants to get in. But process 1 tries the backpack of process 0, tries again on the
/// other side, leads there, and waits for L, which process 2 holds.
const OLD_LEADER: &str = "\
0 until critical
1 past 6
0 until remainder
2*2
2 chooses 1
2 past 13
2*2
1*5
1 chooses 1
1*14
again
1
2";

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "as-printed",
        change: "line 32 resets S by (p, d)",
        fate: Fate::breaks_in(Property::DeadlockFreedom, two(1).retries(ANY_NUMBER)),
    },
    Mutant {
        name: "tournament-of-four",
        change: "L is Yang and Anderson's lock for four virtual ids, and no leader waits for the one before",
        fate: Fate::Scripted {
            property: Property::MutualExclusion,
            setting: Setting::slots(4, 1).passages(1),
            script: FOUR,
        },
    },
    Mutant { name: "without-line-5", change: "nobody writes to R", fate: Fate::Harmless },
    Mutant {
        name: "without-line-13",
        change: "the leader waits for everybody whose name it finds, seen or not",
        fate: breaks(Property::DeadlockFreedom, 1),
    },
    Mutant { name: "without-line-16", change: "the leader waits for nobody", fate: Fate::Harmless },
    Mutant { name: "without-line-17", change: "there is no first promotion", fate: Fate::Harmless },
    Mutant {
        name: "without-line-18",
        change: "backpacks are not closed",
        fate: breaks(Property::DeadlockFreedom, 1),
    },
    Mutant {
        name: "without-line-19",
        change: "there is no second promotion",
        fate: breaks(Property::DeadlockFreedom, 1),
    },
    Mutant {
        name: "without-line-22",
        change: "who tries to get into a backpack does not say so",
        fate: Fate::Scripted {
            property: Property::DeadlockFreedom,
            setting: Setting::slots(3, 1).passages(1),
            script: STILL_WANTS,
        },
    },
    Mutant {
        name: "without-line-23",
        change: "nobody looks whether there is a new leader",
        fate: Fate::Scripted {
            property: Property::DeadlockFreedom,
            setting: Setting::slots(3, 1).passages(1),
            script: OLD_LEADER,
        },
    },
    Mutant {
        name: "joins-who-has-gone",
        change: "who finds no leader in line 23 tries the backpack of the one before",
        fate: Fate::Harmless,
    },
    Mutant {
        name: "without-line-29",
        change: "who gives up does not say so",
        fate: Fate::breaks_in(Property::DeadlockFreedom, two(1).retries(2)),
    },
    Mutant {
        name: "without-line-31",
        change: "the bit is not flipped, and no leader waits for the one before",
        fate: breaks(Property::MutualExclusion, 2),
    },
    Mutant {
        name: "without-line-37",
        change: "the leader does not wait for who has not decided yet",
        fate: breaks(Property::DeadlockFreedom, 1),
    },
    Mutant {
        name: "without-line-40",
        change: "the leader does not wait until those whom it promotes are out again",
        fate: breaks(Property::MutualExclusion, 1),
    },
];
