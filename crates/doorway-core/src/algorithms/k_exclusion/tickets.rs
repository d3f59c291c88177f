//! What the ticket algorithms of Fischer, Lynch, Burns and Borodin share: *Distributed FIFO
//! allocation of identical resources using small shared space* (YALEU/DCS/TR 421, 1985), Figure 2
//! (the basic ticket algorithm) and Figure 4 (how coloured tickets are compared).
//!
//! The figures have no line numbers. Here each transaction is a line:
//!
//! ```text
//! 1  TICKET := TAKE_NEXT_TICKET, and the first look whether IS_VALID(TICKET)
//! 2  every further look; it changes nothing
//! 3  VALIDATE_NEXT_TICKET(TICKET)
//! ```
//!
//! "Wait until C" stands for "while not C do [commit; start]" in the paper. So the first look
//! belongs to the transaction that takes the ticket. If there is room, a process goes from its
//! remainder to the critical section in one step.
//!
//! A process cannot abandon its place here. Tickets become valid one after the other, each by the
//! exit of a process that held a ticket. A ticket that no process holds would become valid in its
//! turn and never be passed on, and a slot would be lost with it.

use core::{
    fmt,
    ops::ControlFlow::{Break, Continue},
};

use crate::{
    Algorithm, Exclusion, Layout, Local, Memory, Register, Relabel, Size, Transactions, Value,
};

/// The three subroutines that Figure 2 leaves open, each a part of a transaction.
pub trait TicketSystem: Copy + fmt::Debug + Send + Sync + 'static {
    /// What the shared variable holds.
    type Shared: Value;
    /// What a process holds.
    type Ticket: Local + Copy;

    /// Returns the system with the changes of the mutant that `m` runs.
    #[must_use]
    fn changed<M: Memory>(self, m: &M) -> Self;
    /// `TAKE_NEXT_TICKET`: issues a ticket.
    fn take_next_ticket(self, shared: &mut Self::Shared) -> Self::Ticket;
    /// `IS_VALID(T)`: returns whether T is valid.
    fn is_valid(self, shared: &Self::Shared, ticket: Self::Ticket) -> bool;
    /// `VALIDATE_NEXT_TICKET(T)`: discards T and validates the first ticket that is not valid yet.
    fn validate_next_ticket(self, shared: &mut Self::Shared, ticket: Self::Ticket);
}

/// The basic ticket algorithm, Figure 2, on a ticket system.
#[derive(Debug)]
pub struct TicketAlgorithm<S: TicketSystem> {
    pub(super) system: S,
    /// The one shared variable; the paper's model calls it V.
    pub(super) shared: Register<S::Shared>,
}

impl<M: Transactions, S: TicketSystem> Exclusion<M> for TicketAlgorithm<S>
where
    Self: Algorithm,
{
    type Request = ();
    /// `TICKET`, and whether it has been seen to be valid.
    type Pass = (S::Ticket, bool);
    type Keep = ();

    fn keep(&self, _: usize) {}

    #[inline]
    fn doorway(&self, m: &mut M, _: usize, (): (), (): ()) -> Result<Self::Pass, M::Halt> {
        let system = self.system.changed(m);
        let looks = !m.mutant("enters-in-two-transactions");
        m.line(1);
        m.transact(self.shared, |mut shared| {
            let ticket = system.take_next_ticket(&mut shared);
            let valid = looks && system.is_valid(&shared, ticket);
            (shared, (ticket, valid))
        })
    }

    #[inline]
    fn waiting(
        &self,
        m: &mut M,
        _: usize,
        (ticket, valid): Self::Pass,
    ) -> Result<Self::Pass, M::Halt> {
        if !valid {
            let system = self.system.changed(m);
            m.line(2);
            m.repeat((), |m, ()| {
                let valid = m.transact(self.shared, |shared| {
                    let valid = system.is_valid(&shared, ticket);
                    (shared, valid)
                })?;
                Ok(if valid { Break(()) } else { Continue(()) })
            })?;
        }
        Ok((ticket, true))
    }

    #[inline]
    fn exit(&self, m: &mut M, _: usize, (ticket, _): Self::Pass) -> Result<(), M::Halt> {
        let system = self.system.changed(m);
        m.line(3);
        m.transact(self.shared, |mut shared| {
            system.validate_next_ticket(&mut shared, ticket);
            (shared, ())
        })
    }
}

/// A coloured ticket: its position in its block, and the colour of the block.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Colored<C> {
    /// From 0 to M - 1.
    pub value: u32,
    /// Blocks that follow one another have different colours.
    pub color: C,
}

/// As the paper writes it: `(2, 0)`.
impl<C: fmt::Debug> fmt::Debug for Colored<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}, {:?})", self.value, self.color)
    }
}

impl<C: Local> Local for Colored<C> {
    fn relabel(&self, f: Relabel<'_>) -> Self {
        Self { value: self.value, color: self.color.relabel(f) }
    }
}

/// The ticket issued last and the ticket validated last.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pointers<C> {
    /// `ISSUE`
    pub issue: Colored<C>,
    /// `VALID`
    pub valid: Colored<C>,
}

impl<C: fmt::Debug> fmt::Debug for Pointers<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ISSUE {:?}, VALID {:?}", self.issue, self.valid)
    }
}

impl<C: Local> Local for Pointers<C> {
    fn relabel(&self, f: Relabel<'_>) -> Self {
        Self { issue: self.issue.relabel(f), valid: self.valid.relabel(f) }
    }
}

/// Blocks of M tickets, and Figure 4: which pointer leads, which tickets are valid.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blocks {
    /// M
    size: u32,
    /// k > N - k. In this case `VALID` is in front when the pointers are max(k, N - k) apart.
    more_slots: bool,
    // What mutants change in Figure 4.
    strictly_less: bool,
    leads_by_more: bool,
    ties_to_valid: bool,
    ties_to_issue: bool,
    wrong_leader: bool,
}

impl Blocks {
    /// M = 1 + max(k, N - k).
    pub(super) fn new(layout: &Layout, size: Size) -> Self {
        let (slots, others) = (size.k, size.n - size.k);
        let far = slots.max(others) as u32;
        let small = ["blocks-of-max", "ties-to-valid", "ties-to-issue"]
            .iter()
            .any(|name| layout.mutant(name));
        let small = small || layout.mutant("footnote-2") && slots != others;
        let size = match small {
            true => far,
            false if layout.mutant("blocks-too-small") => (far - 1).max(1),
            false => 1 + far,
        };
        Self {
            size,
            more_slots: slots > others,
            strictly_less: false,
            leads_by_more: false,
            ties_to_valid: false,
            ties_to_issue: false,
            wrong_leader: false,
        }
    }

    /// Returns Figure 4 with the changes of the mutant that `m` runs.
    #[inline(always)]
    pub(super) fn changed<M: Memory>(self, m: &M) -> Self {
        let (footnote, both) = (m.mutant("footnote-2"), m.mutant("leads-or-equal"));
        Self {
            strictly_less: m.mutant("strictly-less"),
            leads_by_more: m.mutant("leads-by-more"),
            ties_to_valid: both || m.mutant("ties-to-valid") || footnote && self.more_slots,
            ties_to_issue: both || m.mutant("ties-to-issue") || footnote && !self.more_slots,
            wrong_leader: m.mutant("wrong-leader"),
            ..self
        }
    }

    /// The largest value of a ticket, M - 1.
    #[inline(always)]
    pub(super) fn last(self) -> u32 {
        self.size - 1
    }

    /// ψ(i): the value of the numbered ticket i, and the number of blocks before its own.
    pub(super) fn place(self, i: usize) -> (u32, usize) {
        let size = self.size as usize;
        ((i % size) as u32, i / size)
    }

    /// `LEADS(ISSUE, VALID)`
    #[inline(always)]
    pub(super) fn issue_leads<C: Copy + Eq>(self, Pointers { issue, valid }: Pointers<C>) -> bool {
        self.leads(issue, valid, self.ties_to_issue)
    }

    /// `LEADS(VALID, ISSUE)`
    #[inline(always)]
    pub(super) fn valid_leads<C: Copy + Eq>(self, Pointers { issue, valid }: Pointers<C>) -> bool {
        self.leads(valid, issue, self.ties_to_valid)
    }

    /// `LEADS(A, B)`. At a tie (equal values, different colours) A does not lead, except in
    /// mutants.
    #[inline(always)]
    fn leads<C: Copy + Eq>(self, a: Colored<C>, b: Colored<C>, at_tie: bool) -> bool {
        if a.color == b.color {
            a.value > b.value || a.value == b.value && !self.leads_by_more
        } else {
            a.value < b.value || a.value == b.value && at_tie
        }
    }

    /// `IS_VALID(T)`
    #[inline(always)]
    pub(super) fn is_valid<C: Copy + Eq>(self, pointers: Pointers<C>, ticket: Colored<C>) -> bool {
        if ticket.color == pointers.valid.color {
            ticket.value < pointers.valid.value
                || ticket.value == pointers.valid.value && !self.strictly_less
        } else if ticket.color == pointers.issue.color {
            if self.wrong_leader { self.issue_leads(pointers) } else { self.valid_leads(pointers) }
        } else {
            true
        }
    }

    /// Moves a pointer on by one. At the end of a block, `color` returns the colour of the next
    /// block.
    #[inline(always)]
    pub(super) fn advance<C>(self, pointer: &mut Colored<C>, color: impl FnOnce() -> C) {
        if pointer.value < self.last() {
            pointer.value += 1;
        } else {
            pointer.color = color();
            pointer.value = 0;
        }
    }
}
