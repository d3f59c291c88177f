//! The faults that make exploring an algorithm meaningless.

use std::{fmt, panic::Location};

use crate::{check::MAX_WORDS, replay::MAX_OUTCOMES};

/// The code under test did something that makes exploring it meaningless.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An iteration of the loop at this place made no access.
    IdleIteration(&'static Location<'static>),
    /// A section or passage made no access at all.
    IdleSection(&'static str),
    /// This section begins with a choice.
    ChoosesFirst(&'static str),
    /// A choice has this many outcomes: none, or too many.
    Outcomes(u32),
    /// There are too many registers, or they hold too many values: a state takes this many words.
    StateTooLarge(usize),
    /// The record and the code disagree: the code is not a function of its answers.
    Impure,
    /// Tickets grew beyond what the relabelling can hold.
    TicketRange,
    /// A register holds more different values than there are numbers for them.
    TooManyValues(String),
    /// A step brings in more than one new ticket.
    TwoTickets,
    /// A step depends on more of its tickets than the relabelling keeps: their order and the gaps
    /// below `gap`.
    TicketUse {
        /// The register that the step accesses.
        register: Option<String>,
        /// The paper's line.
        line: u32,
        /// The gap that the algorithm declares.
        gap: u32,
    },
    /// A register's type does not say which values an overlapping read may return.
    NoDomain(String),
    /// A register holds a value that an overlapping read may not return.
    OutsideDomain {
        /// The register.
        register: String,
        /// The value.
        value: String,
        /// The values that the register may hold, in words.
        domain: String,
    },
    /// Two processes wrote a register at once: safe and regular registers have one writer.
    TwoWriters(String),
    /// A local state that represents other states has met a value for which these have not been
    /// compared. A check that meets this begins again without merging local states.
    Unforeseen,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::IdleIteration(place) => {
                write!(
                    f,
                    "the loop at {place} goes round without an access: make one in each round, or break"
                )
            }
            Self::IdleSection(section) => write!(f, "the {section} makes no access"),
            Self::ChoosesFirst(section) => {
                write!(f, "the {section} begins with a choice: make an access to a register first")
            }
            Self::Outcomes(0) => write!(f, "a choice has no outcome: choose among one or more"),
            Self::Outcomes(outcomes) => {
                write!(
                    f,
                    "a choice has {outcomes} outcomes, and the lab explores at most {MAX_OUTCOMES} of one choice"
                )
            }
            Self::StateTooLarge(words) => write!(
                f,
                "a state takes {words} machine words, and the checker holds at most {MAX_WORDS}: try a smaller size"
            ),
            Self::Impure => write!(
                f,
                "a section does not follow from its answers: keep what changes in `Pass`, `Keep` or the carried value \
                 of a loop, not in a cell, an atomic or a static"
            ),
            Self::TicketRange => {
                write!(f, "more tickets are alive at once than the relabelling can hold")
            }
            Self::TwoTickets => {
                write!(f, "a step brings in two new tickets, and the relabelling can follow one")
            }
            Self::TicketUse { register, line, gap } => {
                let register =
                    register.as_ref().map_or(String::new(), |register| format!(" ({register})"));
                write!(
                    f,
                    "what line {line}{register} does depends on more than the order of tickets and gaps below {gap}, which \
                     is all that relabelled tickets keep: take {} of a ticket before another is met, declare a \
                     larger `gap` in the claims, and do not look at the number behind a ticket",
                    match gap.saturating_sub(1) {
                        0 => "no successor".into(),
                        1 => "at most one successor".into(),
                        most => format!("at most {most} successors"),
                    }
                )
            }
            Self::TooManyValues(register) => {
                write!(
                    f,
                    "{register} takes more than 2^24 values, and the checker tells no more apart; try a smaller size"
                )
            }
            Self::Unforeseen => {
                write!(f, "a merged local state has met a value for which it was not compared")
            }
            Self::NoDomain(register) => {
                write!(
                    f,
                    "{register} may hold too many values to try them all, which safe registers ask for; declare those \
                     that it takes with `Layout::domain`"
                )
            }
            Self::OutsideDomain { register, value, domain } => {
                write!(
                    f,
                    "{register} holds {value}, which is not in its domain, {domain}: a read that overlaps the write could \
                     not return it; declare all values that are written"
                )
            }
            Self::TwoWriters(register) => {
                write!(
                    f,
                    "{register} has two writers at once, and only registers with one writer can be safe or regular"
                )
            }
        }
    }
}
