//! What is claimed of an algorithm, as data. The lab's battery turns every claim into a check,
//! every refuted property into a counterexample that must be found, and every mutant into something
//! that a check must catch.

use alloc::format;
use core::{fmt, str::FromStr};

use crate::{Size, Unfit};

/// What kind of exclusion an algorithm is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Problem {
    /// One process at a time.
    Mutex,
    /// At most k at a time.
    KExclusion,
    /// Only processes of one session at a time.
    Group,
}

/// The instructions that an algorithm uses on shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Primitive {
    /// Reads and writes.
    ReadWrite,
    /// Compare-and-swap.
    CompareAndSwap,
    /// Swap.
    Swap,
    /// Fetch-and-add.
    FetchAndAdd,
    /// A whole variable read, computed and written in one step.
    Transaction,
}

/// How weak registers may be.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RegisterKind {
    /// A read that overlaps a write returns anything.
    Safe,
    /// A read that overlaps a write returns the old or the new value.
    Regular,
    /// Reads and writes take effect at once.
    Atomic,
}

impl Problem {
    /// The size at which an algorithm for this serves `n` processes: with `k` slots where there are
    /// slots, with so many sessions where there are sessions.
    pub const fn size(self, n: usize, k: usize, sessions: usize) -> Size {
        match self {
            Self::Mutex => Size::mutex(n),
            Self::KExclusion => Size::slots(n, k),
            Self::Group => Size::group(n, sessions),
        }
    }
}

macro_rules! named {
    ($type:ident: $($variant:ident = $name:literal),* $(; $open:ident)? $(,)?) => {
        impl $type {
            /// All of them, in the order in which they are listed.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The name, as on the command line.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                    $(Self::$open(name) => name,)?
                }
            }
        }
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }
        impl FromStr for $type {
            type Err = ();
            fn from_str(name: &str) -> Result<Self, ()> {
                Self::ALL.iter().copied().find(|v| v.name() == name).ok_or(())
            }
        }
    };
}

named!(Problem: Mutex = "mutex", KExclusion = "k-exclusion", Group = "group");
named!(Primitive:
    ReadWrite = "read-write",
    CompareAndSwap = "compare-and-swap",
    Swap = "swap",
    FetchAndAdd = "fetch-and-add",
    Transaction = "transaction",
);
named!(RegisterKind: Safe = "safe", Regular = "regular", Atomic = "atomic");

/// Something that can be true of every run of an algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Property {
    /// Never two in the critical section.
    MutualExclusion,
    /// Never more than k in the critical section.
    KExclusion,
    /// Never two of different sessions in the critical section.
    SessionExclusion,
    /// If somebody is in its entry section, somebody enters.
    DeadlockFreedom,
    /// Whoever is in its entry section enters.
    StarvationFreedom,
    /// A process leaves in a bounded number of its own steps.
    BoundedExit,
    /// A process leaves its doorway in a bounded number of its own steps. Part of every property
    /// about order: a doorway that waits fixes no order.
    BoundedDoorway,
    /// Who is through the doorway before another begins it, enters first; in group locks, if their
    /// sessions differ.
    Fcfs,
    /// Of k processes through the doorway before another begins it, one enters first.
    KFcfs,
    /// The order of k-FCFS, in group locks that of FCFS, for a doorway that may wait: of k
    /// processes through the doorway before another begins it, one enters first.
    OrderedEntry,
    /// Who is through the doorway before one that has entered began it, can enter in a bounded
    /// number of its own steps; in group locks, if their sessions are the same.
    Fife,
    /// Nobody becomes enabled to enter, having come later, while another is still waiting and not
    /// enabled; nor to leave.
    FifoEnabling,
    /// Nobody is kept waiting by all standing still: to enter, while fewer than k are enabled to or
    /// inside; or to leave.
    KDeadlockAvoidance,
    /// While nobody with another session is active, a process enters in a bounded number of its own
    /// steps.
    ConcurrentEntry,
    /// While nobody with another session is active, a process enters, even if nobody inside ever
    /// leaves: weaker than concurrent entry, in that it may wait for steps of those who come and
    /// go.
    ConcurrentOccupancy,
    /// Who is through the doorway before everybody active with another session began it, enters in
    /// a bounded number of its own steps.
    StrongConcurrentEntry,
    /// No register holds a number above the stated bound.
    BoundedRegisters,
    /// An [`Invariant`] that the algorithm declares, by its name on the command line: `invariant:`
    /// and its own.
    Invariant(&'static str),
}

impl Property {
    /// Whether it speaks of algorithms for this problem.
    pub fn suits(self, problem: Problem) -> bool {
        match self {
            Self::SessionExclusion
            | Self::ConcurrentEntry
            | Self::ConcurrentOccupancy
            | Self::StrongConcurrentEntry => problem == Problem::Group,
            Self::KExclusion | Self::KFcfs | Self::FifoEnabling | Self::KDeadlockAvoidance => {
                problem != Problem::Group
            }
            _ => true,
        }
    }
}

named!(Property:
    MutualExclusion = "mutual-exclusion",
    KExclusion = "k-exclusion",
    SessionExclusion = "session-exclusion",
    DeadlockFreedom = "deadlock-freedom",
    StarvationFreedom = "starvation-freedom",
    BoundedExit = "bounded-exit",
    BoundedDoorway = "bounded-doorway",
    Fcfs = "fcfs",
    KFcfs = "k-fcfs",
    OrderedEntry = "ordered-entry",
    Fife = "fife",
    FifoEnabling = "fifo-enabling",
    KDeadlockAvoidance = "k-deadlock-avoidance",
    ConcurrentEntry = "concurrent-entry",
    ConcurrentOccupancy = "concurrent-occupancy",
    StrongConcurrentEntry = "strong-concurrent-entry",
    BoundedRegisters = "bounded-registers";
    Invariant
);

/// Something that an algorithm says of its own registers: from when a process reads a register in a
/// line to the end of its passage, the register changes at most so many times.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Invariant {
    /// Its name on the command line, `invariant:` included.
    pub name: &'static str,
    /// What it says, and where the paper does.
    pub says: &'static str,
    /// The register, by its name.
    pub register: &'static str,
    /// The line in which the process reads it.
    pub line: u32,
    /// How many changes there may be.
    pub most: u32,
}

/// An algorithm with one thing changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mutant {
    /// Its name; `without-line-N` leaves line N out.
    pub name: &'static str,
    /// What is changed, in words.
    pub change: &'static str,
    /// What becomes of it.
    pub fate: Fate,
}

/// Any number of attempts within a passage, where one says how many are followed.
pub const ANY_NUMBER: u32 = u32::MAX;

/// Where to look for something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setting {
    /// How many processes and slots.
    pub size: Size,
    /// On which registers.
    pub registers: RegisterKind,
    /// How many passages each process makes; `None` for no bound.
    pub passages: Option<u32>,
    /// A process that makes any number of passages all the same.
    pub endless: Option<usize>,
    /// How many attempts of a passage are followed; `None` for as many as the algorithm says.
    pub retries: Option<u32>,
    /// How many processes may be killed, at any step of any passage.
    pub kills: Option<u32>,
}

impl Setting {
    /// `n` processes and `k` slots, atomic registers, any number of passages.
    pub const fn slots(n: usize, k: usize) -> Self {
        Self::sized(Size::slots(n, k))
    }

    /// `n` processes and so many sessions, atomic registers, any number of passages.
    pub const fn group(n: usize, sessions: usize) -> Self {
        Self::sized(Size::group(n, sessions))
    }

    /// This size, atomic registers, any number of passages.
    pub const fn sized(size: Size) -> Self {
        Self {
            size,
            registers: RegisterKind::Atomic,
            passages: None,
            endless: None,
            retries: None,
            kills: None,
        }
    }

    /// The same with this many passages.
    #[must_use]
    pub const fn passages(mut self, passages: u32) -> Self {
        self.passages = Some(passages);
        self
    }

    /// The same, but that process `p` makes any number of passages.
    #[must_use]
    pub const fn endless(mut self, p: usize) -> Self {
        self.endless = Some(p);
        self
    }

    /// The same with so many attempts of each passage followed.
    #[must_use]
    pub const fn retries(mut self, retries: u32) -> Self {
        self.retries = Some(retries);
        self
    }

    /// The same with at most so many processes killed, or [`ANY_NUMBER`].
    #[must_use]
    pub const fn kills(mut self, most: u32) -> Self {
        self.kills = Some(most);
        self
    }

    /// The same on other registers.
    #[must_use]
    pub const fn on(mut self, registers: RegisterKind) -> Self {
        self.registers = registers;
        self
    }
}

/// What a check says of a mutant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// The property fails, and the checker finds it there.
    Breaks {
        /// What fails.
        property: Property,
        /// Where the shortest counterexample is looked for.
        setting: Setting,
    },
    /// The property fails where there are too many states to search them all, and this schedule
    /// shows it.
    Scripted {
        /// What fails.
        property: Property,
        /// Where the schedule runs.
        setting: Setting,
        /// The schedule, as `lab simulate --scheduler script:FILE` reads it.
        script: &'static str,
    },
    /// Every claim still holds, for the reason given in the algorithm's page.
    Harmless,
}

impl Fate {
    /// Breaks `property` among `n` processes with one slot, on atomic registers.
    pub const fn breaks(property: Property, n: usize) -> Self {
        Self::breaks_at(property, n, 1)
    }

    /// Breaks `property` among `n` processes with `k` slots, on atomic registers.
    pub const fn breaks_at(property: Property, n: usize, k: usize) -> Self {
        Self::breaks_in(property, Setting::slots(n, k))
    }

    /// Breaks `property` in this setting.
    pub const fn breaks_in(property: Property, setting: Setting) -> Self {
        Self::Breaks { property, setting }
    }
}

/// The classes of remote memory references per passage, as the paper states them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rmr {
    /// With coherent caches.
    pub cc: &'static str,
    /// With distributed shared memory.
    pub dsm: &'static str,
}

/// A number that a paper gives by a formula.
#[derive(Clone, Copy, Debug)]
pub struct Formula {
    /// The formula and where it stands.
    pub name: &'static str,
    /// The number; `None` where it is too large to be told.
    pub of: fn(Size) -> Option<u64>,
}

/// All that is claimed of an algorithm.
#[derive(Clone, Copy, Debug)]
pub struct Claims {
    /// What it is for.
    pub problem: Problem,
    /// The paper that it is taken from.
    pub paper: &'static str,
    /// Where in the paper.
    pub figure: &'static str,
    /// What it uses.
    pub primitives: &'static [Primitive],
    /// What holds in every run.
    pub properties: &'static [Property],
    /// What does not: the lab shows a run for each, in this setting.
    pub refuted: &'static [(Property, Setting)],
    /// What it declares of its own registers; those that hold are among the properties.
    pub invariants: &'static [Invariant],
    /// The weakest registers on which all of this holds.
    pub registers: RegisterKind,
    /// How many processes may crash while the others still do not starve.
    pub crashes: fn(Size) -> usize,
    /// The largest number in a register, if there is a bound.
    pub bound: Option<fn(Size) -> u64>,
    /// The smallest gap between two tickets that is as good as any wider one: one more than the
    /// number of successors that are taken of a ticket before another is met. 2 where each new
    /// ticket is one more than the largest.
    pub gap: fn(Size) -> u32,
    /// What the paper says of the number of values that the shared memory takes, to be shown beside
    /// those reached.
    pub values: &'static [Formula],
    /// Whether a place in line can be [abandoned](crate::Exclusion::abandon).
    pub abandons: bool,
    /// Remote references per passage.
    pub rmr: Rmr,
    /// The fewest processes for which it makes sense.
    pub min_n: usize,
    /// The most processes that it serves; `None` if there is no such limit.
    pub max_n: Option<usize>,
    /// Its mutants.
    pub mutants: &'static [Mutant],
}

impl Claims {
    /// Checks that there are not more processes than the algorithm of this name serves.
    ///
    /// # Errors
    /// When there are.
    pub fn serves(&self, name: &str, size: Size) -> Result<(), Unfit> {
        match self.max_n {
            Some(most) if size.n > most => Err(Unfit(format!(
                "{name} serves at most {most} processes, not {}: try -n {most}",
                size.n
            ))),
            _ => Ok(()),
        }
    }

    /// The property of that name, an invariant that is declared here included.
    pub fn property(&self, name: &str) -> Option<Property> {
        let declared = || self.invariants.iter().find(|invariant| invariant.name == name);
        name.parse()
            .ok()
            .or_else(|| declared().map(|invariant| Property::Invariant(invariant.name)))
    }
}

#[cfg(test)]
mod tests {
    use alloc::{collections::BTreeSet, string::ToString};
    use core::fmt::{Debug, Display};

    use super::*;

    fn parse_back<T>(all: &[T])
    where
        T: Copy + PartialEq + Debug + Display + FromStr<Err = ()>,
    {
        let names: BTreeSet<_> = all.iter().map(ToString::to_string).collect();
        assert_eq!(names.len(), all.len(), "{all:?}");
        for value in all {
            assert_eq!(value.to_string().parse(), Ok(*value));
        }
        assert_eq!("".parse::<T>(), Err(()));
        assert_eq!("no-such-name".parse::<T>(), Err(()));
    }

    #[test]
    fn names_parse_back() {
        parse_back(Problem::ALL);
        parse_back(Primitive::ALL);
        parse_back(RegisterKind::ALL);
        parse_back(Property::ALL);
    }

    #[test]
    fn names_line_up_in_tables() {
        assert_eq!(format!("{:8}|", Property::Fcfs), "fcfs    |");
    }

    /// Safe registers may do all that regular ones may, and these all that atomic ones may.
    #[test]
    fn registers_are_listed_from_weak_to_strong() {
        assert!(RegisterKind::ALL.is_sorted());
        assert!(RegisterKind::Safe < RegisterKind::Atomic);
    }
}
