//! The mutants of the bounded lock: the change and the fate of each.

use crate::{Fate, Mutant, Property, Setting};

const fn breaks(property: Property, passages: u32) -> Fate {
    Fate::breaks_in(property, Setting::slots(2, 1).passages(passages))
}

const fn scripted(property: Property, n: usize, script: &'static str) -> Fate {
    Fate::Scripted { property, setting: Setting::slots(n, 1).passages(2), script }
}

/// Process 1 has given up joining process 0, but still announces that it joins. Process 0, which
/// leads again, waits for it.
const OLD_PROMISE: &str = "\
0*3
0 chooses 1
0*12
1*12
0
1*2
0*3
1*2
0*10
0 chooses 1
0*13
1
again
0";

/// The same, and process 1 does not come back.
const OLD_PROMISE_KEPT: &str = "\
0*3
0 chooses 1
0*12
1*12
0
1*2
0*3
1*2
0*10
0 chooses 1
0*13
again
0";

/// Process 1 finds no leader where process 0 was, and tries on the other side. Process 0, which
/// leads again, has seen process 1 announce that it joins.
const NO_WORD: &str = "\
0*3
0 chooses 1
0*16
1*6
0*8
0 chooses 1
0
1*2
0*12
1*2
1 chooses 1
1*14
again
0
1";

/// Process 1 has seen process 0 lead with its backpack open. When process 1 joins, process 0 has
/// entered again and wants the lock, but process 2 leads.
const NOT_A_LEADER: &str = "\
0 past 12
1 past 23
1*2
0 until remainder
2 past 12
0*5
1 past 26
0 past 26
2 past 39
0 until remainder
2 until remainder
again
1";

/// Process 1 has met process 0, whose backpack is closed, and still announces that it wants to get
/// in. Process 2, which leads next, waits for it.
const STILL_WANTS: &str = "\
0 until critical
1 past 23
0 until remainder
2*3
2 chooses 1
2 past 13
2
1*5
1 chooses 1
1*14
again
1
2";

/// Process 2 leads, and finds that process 1 wants to get in. But process 1 tries the backpack of
/// process 0, and then the other side.
const OLD_LEADER: &str = "\
0 until critical
1 past 6
0 until remainder
2*3
2 chooses 1
2 past 13
2
1*6
1 chooses 1
1*14
again
1
2";

/// Process 0 makes passages for ever. Each time process 1 finds its backpack closed, although it is
/// the turn of process 1.
const NO_GUEST: &str = "\
0 until critical
1*13
0 until remainder
0 until critical
1*15
0 until remainder
0 until critical
1*13
0 until remainder
again
0 until critical
1*13
0 until remainder
0 until critical
1*13
0 until remainder";

/// Process 0 leads again and again. Each time it sees process 1 trying, but at its previous time as
/// leader, when the backpack was closed.
const OLD_ATTEMPT: &str = "\
0 until critical
1*13
0 until remainder
0 until critical
1 past 23
0 until remainder
0*5
1*5
0 past 16
0*2
1*3
again
0*4
1*10
0 until remainder
1*2
0 past 16
0*2
1*3
0*4
1*10
0 until remainder
1*2
0 past 16
0*2
1*3";

/// Process 0 makes passages for ever, and the turn of process 1 never comes.
const SAME_TURN: &str = "\
0 until critical
1*13
0 until remainder
again
0 until critical
1*13
0 until remainder
0 until critical
1*13
0 until remainder";

/// Process 1 stays in its turn, which process 0 has just ended. So no process tells it that process
/// 0 has resigned.
const ENDED_TURN: &str = "\
0 until critical
1*12
0 until remainder
0 past 38
0*2
1*6
0 until critical
1*10
0 until remainder
again
1";

/// Changes what the lock costs, and has fewer states.
const ONE_PLACE: Mutant =
    Mutant { name: "one-place", change: "R has a single place on each side", fate: Fate::Harmless };

pub(super) const MUTANTS: &[Mutant] = &[
    ONE_PLACE,
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
        fate: scripted(Property::DeadlockFreedom, 3, STILL_WANTS),
    },
    Mutant {
        name: "without-line-23",
        change: "nobody looks whether there is a new leader",
        fate: scripted(Property::DeadlockFreedom, 3, OLD_LEADER),
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
    Mutant {
        name: "looks-once",
        change: "who joins does not look whether the backpack is open before it says that it tries",
        fate: breaks(Property::DeadlockFreedom, 1),
    },
    Mutant {
        name: "trusts-the-backpack",
        change: "who joins does not look whether the leader still leads after it has seen the backpack open",
        fate: scripted(Property::DeadlockFreedom, 3, NOT_A_LEADER),
    },
    Mutant {
        name: "leaves-without-a-word",
        change: "who finds another leader does not flip its bit in the backpack of the one before",
        fate: scripted(Property::DeadlockFreedom, 2, NO_WORD),
    },
    Mutant {
        name: "takes-it-back-late",
        change: "a place in a backpack is given up before it is taken back in A",
        fate: scripted(Property::DeadlockFreedom, 2, OLD_PROMISE),
    },
    Mutant {
        name: "never-takes-it-back",
        change: "a place in a backpack is given up and not taken back in A",
        fate: scripted(Property::DeadlockFreedom, 2, OLD_PROMISE_KEPT),
    },
    Mutant {
        name: "keeps-its-bit",
        change: "places in backpacks have no bit",
        fate: breaks(Property::DeadlockFreedom, 2),
    },
];

/// The mutants of the turns, and `ONE_PLACE`.
pub(super) const OF_TURNS: &[Mutant] = &[
    ONE_PLACE,
    Mutant {
        name: "does-not-rest",
        change: "who stays tries again at once after an attempt in vain",
        fate: Fate::Harmless,
    },
    Mutant {
        name: "waits-for-no-guest",
        change: "leaders do not wait for who stays",
        fate: scripted(Property::StarvationFreedom, 2, NO_GUEST),
    },
    Mutant {
        name: "trying-is-enough",
        change: "leaders wait until who stays tries, and not until it waits",
        fate: scripted(Property::StarvationFreedom, 2, OLD_ATTEMPT),
    },
    Mutant {
        name: "turns-never-end",
        change: "it is always the turn of process 0",
        fate: scripted(Property::StarvationFreedom, 2, SAME_TURN),
    },
    Mutant {
        name: "ends-turns-at-once",
        change: "a leader that ends a turn does not look once more whether help is needed",
        fate: scripted(Property::DeadlockFreedom, 2, ENDED_TURN),
    },
    Mutant {
        name: "tells-nobody",
        change: "who stays is not told that a leader has resigned",
        fate: breaks(Property::DeadlockFreedom, 1),
    },
];
