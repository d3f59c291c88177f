//! The domain of a register: the values that a read may return that overlaps a write of a safe
//! register. Every written value has to be among them. Otherwise such a read could not return what
//! was just written.

use doorway_core::{
    RegisterKind, Ticket,
    layout::{Cell, Erased},
};

use crate::fault::Fault;

/// What is known about the domain of a register.
pub(crate) enum Domain {
    /// The declared values.
    Declared(Vec<Box<dyn Erased>>),
    /// The values of the register's type, and these matter.
    Type,
    /// Any value: no read returns a value that was not written.
    Any,
}

impl Domain {
    pub(crate) fn of(cell: &Cell<'_>, kind: RegisterKind) -> Self {
        match cell.declared() {
            Some(values) => Self::Declared(values.iter().map(|value| value.copy()).collect()),
            None if kind == RegisterKind::Safe => Self::Type,
            None => Self::Any,
        }
    }

    /// Returns every value that an overlapping read may return, with these tickets.
    ///
    /// `None` if there are too many. `any` is some value of the register.
    pub(crate) fn values(
        &self,
        any: &dyn Erased,
        tickets: &[Ticket],
    ) -> Option<Vec<Box<dyn Erased>>> {
        match self {
            Self::Declared(values) => Some(values.iter().map(|value| value.copy()).collect()),
            Self::Type | Self::Any => any.domain(tickets),
        }
    }

    /// Checks that the register of this name may hold a value.
    pub(crate) fn admit(&self, value: &dyn Erased, register: &str) -> Result<(), Fault> {
        let among = |values: &[Box<dyn Erased>]| values.iter().any(|other| other.same(value));
        let domain = match self {
            Self::Any => return Ok(()),
            Self::Declared(values) if among(values) => return Ok(()),
            Self::Declared(values) => listed(values),
            Self::Type => {
                // An overlapping read returns values with one ticket, which is never ∞ unless the
                // type says so.
                let mut tickets = Vec::new();
                let _ = value.relabelled(&mut |ticket| {
                    tickets.extend((ticket != Ticket::INFINITY).then_some(ticket));
                    ticket
                });
                let Some(plain) = value.domain(&[]) else { return Ok(()) };
                let with =
                    |ticket: Ticket| value.domain(&[ticket]).is_some_and(|values| among(&values));
                if among(&plain) || tickets.into_iter().any(with) {
                    return Ok(());
                }
                "all values of its type with at most one ticket, which is finite".into()
            }
        };
        Err(Fault::OutsideDomain { register: register.into(), value: value.text(), domain })
    }
}

/// Returns a list of values in words, cut short if it is long.
fn listed(values: &[Box<dyn Erased>]) -> String {
    const FEW: usize = 8;
    let all: Vec<String> = values.iter().map(|value| value.text()).collect();
    match &all[..] {
        [few @ .., last] if few.len() >= FEW => {
            format!("{{{}, …, {last}}}", few[..FEW - 1].join(", "))
        }
        few => format!("{{{}}}", few.join(", ")),
    }
}
