//! Small algorithms for k slots by transactions, in the manner of paper 003: right ones, and ones
//! that are wrong in one respect each.

use std::ops::ControlFlow::{Break, Continue};

use doorway_core::{
    Algorithm, Claims, Exclusion, Home, Layout, Local, Primitive, Problem, Register, RegisterKind,
    Relabel, Rmr, Size, Ticket, Transactions, Unfit, Value,
};
use doorway_lab::{Subject, build};

/// What kind of slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Slots {
    /// Section 1: a count of those inside. Nobody's turn is kept.
    Count,
    /// Section 2.1: a queue, whose first k are inside.
    Queue,
    /// Section 2.3: numbered tickets.
    Tickets,
    /// The same, but nobody validates a ticket that nobody holds.
    StingyTickets,
    /// Section 1: a queue, of which the head alone may go to a teller.
    Bank,
    /// A queue from which they leave in the order in which they came.
    LeavesInOrder,
    /// A queue for entering, and another for leaving.
    LeavesByQueue,
    /// A queue from which they leave in two steps, of which the second frees the slot.
    LeavesSlowly,
    /// A queue from which they leave in two steps, of which the first frees the slot.
    LeavesAtOnce,
    /// The same, and two tickets that nobody needs, of which one grows and the other is 0 and 1 in
    /// turn: inside a gap of which it is not known how wide it is.
    Scribbles,
}

const KINDS: &[Slots] = &[
    Slots::Count,
    Slots::Queue,
    Slots::Tickets,
    Slots::StingyTickets,
    Slots::Bank,
    Slots::LeavesInOrder,
    Slots::LeavesByQueue,
    Slots::LeavesSlowly,
    Slots::LeavesAtOnce,
    Slots::Scribbles,
];

/// Slots of this kind: `k` of them, for `n` processes.
pub(crate) fn slots(kind: Slots, n: usize, k: usize) -> Box<dyn Subject> {
    let sessions = KINDS.iter().position(|other| *other == kind).expect("every kind is listed");
    build::<Kit, _, _, _>(Size { n, k, sessions }, None, false).expect("they fit")
}

/// A shared variable: who is in line, who is on the way out, and how many are inside.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Room {
    line: Vec<usize>,
    out: Vec<usize>,
    inside: usize,
}

doorway_core::plain_local!(Room);

impl Room {
    fn place(&self, p: usize) -> usize {
        self.line.iter().position(|&q| q == p).expect("it is in line")
    }

    fn without(mut self, p: usize) -> Self {
        self.line.retain(|&q| q != p);
        self.out.retain(|&q| q != p);
        self
    }
}

/// The two counters of the ticket algorithms.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Counters {
    issue: Ticket,
    valid: Ticket,
}

impl Local for Counters {
    fn relabel(&self, f: Relabel<'_>) -> Self {
        Self { issue: f(self.issue), valid: f(self.valid) }
    }
}

/// Only the lab runs these, and it has no use for words.
macro_rules! wordless {
    ($($type:ty),*) => {$(
        impl Value for $type {
            type Format = ();
            fn bits((): ()) -> u32 {
                64
            }
            fn word(&self) -> u128 {
                0
            }
            fn from_word(_: u128, (): ()) -> Self {
                unreachable!("no memory here has words")
            }
        }
    )*};
}

wordless!(Room, Counters);

struct Kit {
    kind: Slots,
    k: usize,
    room: Register<Room>,
    counters: Register<Counters>,
}

impl Algorithm for Kit {
    const NAME: &'static str = "slots";
    const CLAIMS: Claims = Claims {
        problem: Problem::KExclusion,
        paper: "none",
        figure: "none",
        primitives: &[Primitive::Transaction],
        properties: &[],
        refuted: &[],
        invariants: &[],
        registers: RegisterKind::Atomic,
        crashes: |_| 0,
        bound: None,
        gap: |size| (1 + size.k.max(size.n - size.k)) as u32,
        values: &[],
        abandons: false,
        rmr: Rmr { cc: "", dsm: "" },
        min_n: 1,
        max_n: None,
        mutants: &[],
    };

    fn new(layout: &mut Layout, size: Size) -> Result<Self, Unfit> {
        let valid = (0..size.k).fold(Ticket::ZERO, |ticket, _| ticket.succ());
        Ok(Self {
            kind: KINDS[size.sessions],
            k: size.k,
            room: layout.register("Room", Home::Nobody, Room::default()),
            counters: layout.register(
                "Counters",
                Home::Nobody,
                Counters { issue: Ticket::ZERO, valid },
            ),
        })
    }
}

impl Kit {
    /// Tries until it works.
    fn until<M: Transactions, T: Value>(
        m: &mut M,
        variable: Register<T>,
        try_it: impl Fn(T) -> (T, bool) + Sync,
    ) -> Result<(), M::Halt> {
        m.repeat((), |m, ()| {
            Ok(if m.transact(variable, &try_it)? { Break(()) } else { Continue(()) })
        })
    }
}

impl<M: Transactions> Exclusion<M> for Kit {
    type Request = ();
    /// The ticket, if it takes one, and whether it may go in at once.
    type Pass = (Ticket, bool);
    type Keep = ();

    fn keep(&self, _: usize) {}

    fn doorway(&self, m: &mut M, p: usize, (): (), (): ()) -> Result<(Ticket, bool), M::Halt> {
        let ready = match self.kind {
            Slots::Count => false,
            Slots::Tickets | Slots::StingyTickets => {
                return m.transact(self.counters, |now| {
                    let issue = now.issue.succ();
                    (Counters { issue, ..now }, (issue, issue <= now.valid))
                });
            }
            Slots::Bank => m.transact(self.room, |mut room| {
                room.line.push(p);
                (room, false)
            })?,
            _ => m.transact(self.room, |mut room| {
                room.line.push(p);
                let ready = room.line.len() <= self.k;
                (room, ready)
            })?,
        };
        Ok((Ticket::ZERO, ready))
    }

    fn waiting(
        &self,
        m: &mut M,
        p: usize,
        (mine, ready): (Ticket, bool),
    ) -> Result<(Ticket, bool), M::Halt> {
        let goes_in = |mut room: Room| {
            room.inside += 1;
            (room, true)
        };
        match self.kind {
            _ if ready => {}
            Slots::Count => Self::until(m, self.room, |room| match room.inside < self.k {
                true => goes_in(room),
                false => (room, false),
            })?,
            Slots::Tickets | Slots::StingyTickets => {
                Self::until(m, self.counters, |now| (now, mine <= now.valid))?
            }
            Slots::Bank => {
                Self::until(m, self.room, |room| match room.line[0] == p && room.inside < self.k {
                    true => goes_in(room.without(p)),
                    false => (room, false),
                })?
            }
            _ => Self::until(m, self.room, |room| {
                let ready = room.place(p) < self.k;
                (room, ready)
            })?,
        }
        Ok((mine, true))
    }

    fn exit(&self, m: &mut M, p: usize, _: (Ticket, bool)) -> Result<(), M::Halt> {
        match self.kind {
            Slots::Count | Slots::Bank => {
                m.transact(self.room, |room| (Room { inside: room.inside - 1, ..room }, ()))
            }
            Slots::Tickets => {
                m.transact(self.counters, |now| (Counters { valid: now.valid.succ(), ..now }, ()))
            }
            Slots::StingyTickets => m.transact(self.counters, |now| {
                let valid = if now.valid < now.issue { now.valid.succ() } else { now.valid };
                (Counters { valid, ..now }, ())
            }),
            Slots::Queue => m.transact(self.room, |room| (room.without(p), ())),
            Slots::LeavesInOrder => Self::until(m, self.room, |room| match room.place(p) == 0 {
                true => (room.without(p), true),
                false => (room, false),
            }),
            Slots::LeavesByQueue => {
                m.transact(self.room, |mut room| {
                    room.out.push(p);
                    (room, ())
                })?;
                Self::until(m, self.room, |room| match room.out[0] == p {
                    true => (room.without(p), true),
                    false => (room, false),
                })
            }
            Slots::LeavesSlowly => {
                m.transact(self.room, |room| (room, ()))?;
                m.transact(self.room, |room| (room.without(p), ()))
            }
            Slots::LeavesAtOnce => {
                m.transact(self.room, |room| (room.without(p), ()))?;
                m.transact(self.room, |room| (room, ()))
            }
            Slots::Scribbles => {
                m.transact(self.room, |room| (room.without(p), ()))?;
                m.transact(self.counters, |now| (Counters { issue: now.issue.succ(), ..now }, ()))?;
                m.transact(self.counters, |now| {
                    let valid =
                        if now.valid == Ticket::ZERO { Ticket::ZERO.succ() } else { Ticket::ZERO };
                    (Counters { valid, ..now }, ())
                })
            }
        }
    }
}
