//! The claims for an algorithm, as data. The lab's battery turns every claim into a check, every
//! refuted property into a counterexample that must be found, and every mutant into something that
//! a check must catch.

use alloc::format;
use core::{fmt, str::FromStr};

use crate::{Size, Unfit};

/// The kind of exclusion that an algorithm provides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Problem {
    /// One process at a time.
    Mutex,
    /// At most k processes at a time.
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
    /// A read, a computation and a write of a whole variable, in one step.
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
    /// Returns the size at which an algorithm for this problem serves `n` processes: with `k` slots
    /// for k-exclusion, with `sessions` sessions for groups.
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
            /// All values, in the order in which they are listed.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Returns the name on the command line.
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

/// A statement that can be true of every run of an algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Property {
    /// At most one process is in the critical section.
    MutualExclusion,
    /// At most k processes are in the critical section.
    KExclusion,
    /// All processes in the critical section have the same session.
    SessionExclusion,
    /// If a process is in its entry section, some process enters.
    DeadlockFreedom,
    /// Every process in its entry section enters.
    StarvationFreedom,
    /// A process completes its exit section in a bounded number of its own steps.
    BoundedExit,
    /// A process completes its doorway in a bounded number of its own steps. Part of every property
    /// about order: a doorway that waits fixes no order.
    BoundedDoorway,
    /// If process p completes its doorway before process q begins its own, p enters before q; in
    /// group locks, if their sessions differ.
    Fcfs,
    /// Of k processes that complete the doorway before process q begins it, one enters before q.
    KFcfs,
    /// The order of k-FCFS, in group locks that of FCFS, for a doorway that may wait. Of k
    /// processes that complete the doorway before process q begins it, one enters before q.
    OrderedEntry,
    /// If process p completes its doorway before process q begins its own, and q has entered, then
    /// p can enter in a bounded number of its own steps; in group locks, if their sessions are the
    /// same.
    Fife,
    /// No process that starts later becomes enabled to enter while an earlier process still waits
    /// and is not enabled. The same holds for leaving.
    FifoEnabling,
    /// In no endless run do all processes stay where they are although a process waits to leave, or
    /// waits to enter while fewer than k processes are enabled to enter or inside.
    KDeadlockAvoidance,
    /// While no process with another session is active, a process enters in a bounded number of its
    /// own steps.
    ConcurrentEntry,
    /// While no process with another session is active, a process enters, even if no process inside
    /// ever leaves. Weaker than concurrent entry: it may wait for steps of processes that enter or
    /// leave.
    ConcurrentOccupancy,
    /// If process p completes its doorway before every active process with another session began
    /// its own, p enters in a bounded number of its own steps.
    StrongConcurrentEntry,
    /// No register holds a number above the stated bound.
    BoundedRegisters,
    /// An [`Invariant`] that the algorithm declares, by its name on the command line: `invariant:`
    /// and its own name.
    Invariant(&'static str),
}

impl Property {
    /// Returns whether the property applies to algorithms for this problem.
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

/// A statement of an algorithm about one of its registers: from when a process reads the register
/// in a line to the end of its passage, the register changes at most `most` times.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Invariant {
    /// Its name on the command line, `invariant:` included.
    pub name: &'static str,
    /// What the invariant says, and where the paper says it.
    pub says: &'static str,
    /// The register, by its name.
    pub register: &'static str,
    /// The line in which the process reads it.
    pub line: u32,
    /// How many changes are allowed.
    pub most: u32,
}

/// A copy of the algorithm with one change, to test a check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mutant {
    /// Its name; `without-line-N` leaves line N out.
    pub name: &'static str,
    /// What is changed, in words.
    pub change: &'static str,
    /// What a check says about it.
    pub fate: Fate,
}

/// No bound on the attempts within a passage that are followed.
pub const ANY_NUMBER: u32 = u32::MAX;

/// Where to look for a property.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setting {
    /// How many processes and slots.
    pub size: Size,
    /// The kind of registers.
    pub registers: RegisterKind,
    /// How many passages each process makes; `None` for no bound.
    pub passages: Option<u32>,
    /// A process that makes any number of passages nevertheless.
    pub endless: Option<usize>,
    /// How many attempts of a passage are followed; `None` for the algorithm's own number.
    pub retries: Option<u32>,
    /// How many processes may be killed, at any step of any passage.
    pub kills: Option<u32>,
}

impl Setting {
    /// Returns `n` processes and `k` slots, atomic registers, any number of passages.
    pub const fn slots(n: usize, k: usize) -> Self {
        Self::sized(Size::slots(n, k))
    }

    /// Returns `n` processes and `sessions` sessions, atomic registers, any number of passages.
    pub const fn group(n: usize, sessions: usize) -> Self {
        Self::sized(Size::group(n, sessions))
    }

    /// Returns this size, atomic registers, any number of passages.
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

    /// Returns the setting with this many passages.
    #[must_use]
    pub const fn passages(mut self, passages: u32) -> Self {
        self.passages = Some(passages);
        self
    }

    /// Returns the setting in which process `p` makes any number of passages.
    #[must_use]
    pub const fn endless(mut self, p: usize) -> Self {
        self.endless = Some(p);
        self
    }

    /// Returns the setting with this many attempts of each passage followed.
    #[must_use]
    pub const fn retries(mut self, retries: u32) -> Self {
        self.retries = Some(retries);
        self
    }

    /// Returns the setting with at most this many processes killed, or [`ANY_NUMBER`].
    #[must_use]
    pub const fn kills(mut self, most: u32) -> Self {
        self.kills = Some(most);
        self
    }

    /// Returns the setting on other registers.
    #[must_use]
    pub const fn on(mut self, registers: RegisterKind) -> Self {
        self.registers = registers;
        self
    }
}

/// What a check says about a mutant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// The property fails, and the checker finds this in the setting.
    Breaks {
        /// What fails.
        property: Property,
        /// Where the checker looks for the shortest counterexample.
        setting: Setting,
    },
    /// The property fails in a setting with too many states to search them all. This schedule shows
    /// the failure.
    Scripted {
        /// What fails.
        property: Property,
        /// Where the schedule runs.
        setting: Setting,
        /// The schedule, as `lab simulate --scheduler script:FILE` reads it.
        script: &'static str,
    },
    /// Every claim still holds, for the reason given on the algorithm's page.
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

/// A number for which a paper gives a formula.
#[derive(Clone, Copy, Debug)]
pub struct Formula {
    /// The formula and its place in the paper.
    pub name: &'static str,
    /// The number; `None` if it is too large.
    pub of: fn(Size) -> Option<u64>,
}

/// All claims for an algorithm.
#[derive(Clone, Copy, Debug)]
pub struct Claims {
    /// The problem that it solves.
    pub problem: Problem,
    /// The paper that it is taken from.
    pub paper: &'static str,
    /// The figure or section of the paper.
    pub figure: &'static str,
    /// The primitives that it uses.
    pub primitives: &'static [Primitive],
    /// The properties that hold in every run.
    pub properties: &'static [Property],
    /// The properties that do not hold: the lab shows a violating run for each, in this setting.
    pub refuted: &'static [(Property, Setting)],
    /// The invariants on its own registers. Those that hold are among the properties.
    pub invariants: &'static [Invariant],
    /// The weakest registers on which all of this holds.
    pub registers: RegisterKind,
    /// How many processes may crash without starvation of the live processes.
    pub crashes: fn(Size) -> usize,
    /// The largest number in a register, if there is a bound.
    pub bound: Option<fn(Size) -> u64>,
    /// The smallest gap between two tickets that is as good as any wider gap: one more than the
    /// number of successors taken of a ticket before another ticket is met. 2 if each new ticket is
    /// one more than the largest.
    pub gap: fn(Size) -> u32,
    /// What the paper says about the number of values that the shared memory takes, shown beside
    /// the number reached.
    pub values: &'static [Formula],
    /// Whether a process can [abandon](crate::Exclusion::abandon) its place in the queue.
    pub abandons: bool,
    /// Remote memory references per passage.
    pub rmr: Rmr,
    /// The fewest processes for which the algorithm makes sense.
    pub min_n: usize,
    /// The most processes that it serves; `None` if there is no limit.
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

    /// Returns the property of that name, including the invariants declared here.
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

    /// Safe registers may do all that regular registers may, and regular registers all that
    /// atomic registers may.
    #[test]
    fn registers_are_listed_from_weak_to_strong() {
        assert!(RegisterKind::ALL.is_sorted());
        assert!(RegisterKind::Safe < RegisterKind::Atomic);
    }
}
