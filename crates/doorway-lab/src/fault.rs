//! What makes exploring an algorithm meaningless.

use std::{fmt, panic::Location};

/// The code under test did something that makes exploring it meaningless.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An iteration of the loop at this place made no access.
    IdleIteration(&'static Location<'static>),
    /// A section or passage made no access at all.
    IdleSection(&'static str),
    /// The record and the code disagree: the code is not a function of its answers.
    Impure,
    /// Tickets grew beyond what the relabelling can hold.
    TicketRange,
    /// A register holds more different values than there are numbers for.
    TooManyValues(String),
    /// A step brings in more than one new ticket.
    TwoTickets,
    /// A register's type does not say which values an overlapping read may return.
    NoDomain(String),
    /// Two processes wrote a register at once: safe and regular registers have one writer.
    TwoWriters(String),
    /// A local state that stands for others has met a value for which they have not been compared. A check that meets this
    /// begins again without merging local states.
    Unforeseen,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::IdleIteration(place) => write!(f, "an iteration of the loop at {place} makes no access"),
            Self::IdleSection(section) => write!(f, "the {section} makes no access"),
            Self::Impure => write!(f, "a section does not follow from its answers: is a closure impure?"),
            Self::TicketRange => write!(f, "more tickets are alive at once than the relabelling can hold"),
            Self::TwoTickets => write!(f, "a step brings in two new tickets, and the relabelling can follow one"),
            Self::TooManyValues(register) => {
                write!(
                    f,
                    "{register} takes more than 2^24 values, and the checker tells no more apart; try a smaller size"
                )
            }
            Self::Unforeseen => write!(f, "a merged local state has met a value for which it was not compared"),
            Self::NoDomain(register) => {
                write!(f, "{register} may hold too many values to try them all, which safe registers ask for")
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
