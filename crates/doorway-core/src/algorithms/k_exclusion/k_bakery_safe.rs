//! Danek's k-Bakery on safe registers: *The k-Bakery: Local-spin k-Exclusion Using Non-atomic Reads
//! and Writes* (PODC 2010), Figure 3.
//!
//! Promises what `k-bakery-fife` promises, even where a read that overlaps a write returns any
//! value. `Want` and `Capture` have two copies each, which are read in the opposite order of
//! writing. A process does not capture a process again while its last capture holds (line 44).
//! Otherwise a captured process could read each of these registers in the middle of the write.

use core::ops::ControlFlow::{Break, Continue};

use alloc::{vec, vec::Vec};

use super::KBakeryFife;
use crate::{
    Algorithm, Array, Claims, Exclusion, Extended, Fate, Grid, Homes, Layout, Local, Mutant,
    Property, RegisterKind, Registers, Relabel, Set, Setting, Size, Ticket, Unfit, Value, others,
};

/// Danek's k-Bakery on safe registers.
#[derive(Debug)]
pub struct KBakerySafe {
    n: usize,
    k: usize,
    want: Copies<Extended>,
    ticket: Array<Ticket>,
    capture: Copies<Ticket>,
}

/// Two copies of a table: `X[p][i][1]` and `X[p][i][2]`, both of which live with i.
#[derive(Debug)]
struct Copies<T: Value> {
    first: Grid<T>,
    second: Grid<T>,
}

impl<T: Value<Format = ()> + Copy> Copies<T> {
    fn new(layout: &mut Layout, names: [&str; 2], n: usize, init: T) -> Self {
        let [first, second] = names.map(|name| layout.grid(name, n, n, Homes::Column, init));
        Self { first, second }
    }

    /// Writes copy 1, then copy 2.
    #[inline(always)]
    fn write<M: Registers>(&self, m: &mut M, p: usize, i: usize, value: T) -> Result<(), M::Halt> {
        let (first, second) = if m.mutant("writes-as-read") {
            (&self.second, &self.first)
        } else {
            (&self.first, &self.second)
        };
        m.write(first.at(p, i), value)?;
        if m.mutant("one-copy") { Ok(()) } else { m.write(second.at(p, i), value) }
    }

    /// Asks copy 2 and, if copy 2 says yes, copy 1.
    #[inline(always)]
    fn test<M: Registers>(
        &self,
        m: &mut M,
        i: usize,
        p: usize,
        ask: impl Fn(T) -> bool + Sync,
    ) -> Result<bool, M::Halt> {
        let copies = if m.mutant("one-copy") {
            [&self.first, &self.first]
        } else if m.mutant("reads-as-written") {
            [&self.first, &self.second]
        } else {
            [&self.second, &self.first]
        };
        if !m.scope(|m| m.test(copies[0].at(i, p), &ask))? {
            return Ok(false);
        }
        if m.mutant("one-copy") || m.mutant("asks-copy-2-alone") {
            return Ok(true);
        }
        m.scope(|m| m.test(copies[1].at(i, p), &ask))
    }
}

/// What a process knows of its own registers.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Own {
    ticket: Ticket,
    /// `Capture[p][i][1]` for every i.
    captured: Vec<Ticket>,
}

impl Local for Own {
    fn relabel(&self, f: Relabel<'_>) -> Self {
        Self { ticket: f(self.ticket), captured: self.captured.relabel(f) }
    }
}

impl Algorithm for KBakerySafe {
    const NAME: &'static str = "k-bakery-safe";

    const CLAIMS: Claims = Claims {
        figure: "Fig. 3",
        registers: RegisterKind::Safe,
        mutants: MUTANTS,
        ..KBakeryFife::CLAIMS
    };

    fn new(layout: &mut Layout, size: Size) -> Result<Self, Unfit> {
        super::fits::<Self>(size)?;
        Ok(Self {
            n: size.n,
            k: size.k,
            want: Copies::new(layout, ["Want1", "Want2"], size.n, Extended::INFINITY),
            ticket: layout.array("Ticket", size.n, Homes::Column, Ticket::ZERO),
            capture: Copies::new(layout, ["Capture1", "Capture2"], size.n, Ticket::ZERO),
        })
    }
}

impl KBakerySafe {
    /// Lines 30, 33 and 48: tells all other processes the same.
    #[inline(always)]
    fn tell<M: Registers>(&self, m: &mut M, p: usize, what: Extended) -> Result<(), M::Halt> {
        m.each(others(p, self.n), |m, i| self.want.write(m, p, i, what))
    }

    /// Lines 37-39: returns `before` without the processes that `p` comes before.
    #[inline(always)]
    fn thin_out<M: Registers>(
        &self,
        m: &mut M,
        p: usize,
        mine: Ticket,
        before: Set,
    ) -> Result<Set, M::Halt> {
        m.line(38);
        m.fold(before.iter(), before, |m, before, i| {
            let after = self.want.test(m, i, p, |Extended(want)| (mine, p) < (want, i))?;
            Ok(if after { before.without(i) } else { before })
        })
    }

    /// Lines 40-42: returns whether a process has captured `p`. Stops at the first such process.
    #[inline(always)]
    fn captured<M: Registers>(&self, m: &mut M, p: usize, mine: Ticket) -> Result<bool, M::Halt> {
        m.line(41);
        Ok(m.find(others(p, self.n), |m, i| self.capture.test(m, i, p, |by| mine < by))?.is_some())
    }

    /// Lines 43-45: captures every process that the last capture does not hold any more.
    #[inline(always)]
    fn capture<M: Registers>(&self, m: &mut M, p: usize, own: Own) -> Result<Own, M::Halt> {
        m.fold(others(p, self.n), own, |m, mut own, i| {
            let loose = if m.drops(44) {
                true
            } else {
                m.line(44);
                let last = own.captured[i];
                m.test(self.ticket.at(i), |ticket| last <= ticket)?
            };
            if loose {
                m.line(45);
                self.capture.write(m, p, i, own.ticket)?;
                own.captured[i] = own.ticket;
            }
            Ok(own)
        })
    }
}

impl<M: Registers> Exclusion<M> for KBakerySafe {
    type Request = ();
    type Pass = Own;
    type Keep = Own;

    fn keep(&self, _: usize) -> Own {
        Own { ticket: Ticket::ZERO, captured: vec![Ticket::ZERO; self.n] }
    }

    #[inline]
    fn doorway(&self, m: &mut M, p: usize, (): (), mut own: Own) -> Result<Own, M::Halt> {
        if !m.drops(30) {
            m.line(30);
            self.tell(m, p, Extended(own.ticket))?;
        }
        m.line(31);
        let max = m.fold(others(p, self.n), own.ticket, |m, max, i| {
            Ok(max.max(m.read(self.ticket.at(i))?))
        })?;
        own.ticket = max.succ();
        m.write(self.ticket.at(p), own.ticket)?;
        Ok(own)
    }

    #[inline]
    fn waiting(&self, m: &mut M, p: usize, own: Own) -> Result<Own, M::Halt> {
        let mine = own.ticket;
        m.line(33);
        self.tell(m, p, Extended(mine))?;
        m.repeat(Set::others(p, self.n), |m, before| {
            if before.len() < self.k {
                return Ok(Break(())); // line 36
            }
            let before = self.thin_out(m, p, mine, before)?;
            Ok(if self.captured(m, p, mine)? { Break(()) } else { Continue(before) })
        })?;
        self.capture(m, p, own)
    }

    #[inline]
    fn exit(&self, m: &mut M, p: usize, own: Own) -> Result<Own, M::Halt> {
        m.line(48);
        self.tell(m, p, Extended::INFINITY)?;
        Ok(own)
    }

    /// As in the k-Bakery: a process that gives up announces it, and has captured no process.
    fn abandon(&self, m: &mut M, p: usize, own: Own) -> Option<Result<Own, M::Halt>> {
        Some(self.exit(m, p, own))
    }
}

/// One round of the run below.
macro_rules! round {
    () => {
        "\
1*3              # line 30: in the middle of Want[1][0][2]
0 reads 0        # line 38: 1 seems to come first
2*3              # line 30: in the middle of Want[2][0][2]
0 reads 0        # line 38: 2 seems to come first
1*25             # chooses, waits, and is in the middle of Capture[1][0][2]
0 reads 0        # line 41: seems not to be captured by 1
1 until remainder
2*25             # chooses, waits, and is in the middle of Capture[2][0][2]
0 reads 0        # line 41: seems not to be captured by 2
2 until remainder
"
    };
}

/// Why line 44 is needed. Processes 1 and 2 go in and out for ever. Process 0 came before both. It
/// looks at each of their registers just while it is being written, and reads 0 each time. After
/// two rounds their tickets are so far from the ticket of process 0 that all further rounds are
/// alike.
const OVERTAKEN_WITHOUT_END: &str = concat!(
    "0 until waiting  # ticket 1\n",
    "0*8              # line 33\n",
    round!(),
    round!(),
    "again            # for ever\n",
    round!(),
);

const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "one-copy",
        change: "Want and Capture have one copy each, as in Figure 2",
        fate: Fate::breaks_in(Property::KExclusion, Setting::slots(2, 1).on(RegisterKind::Safe)),
    },
    Mutant {
        name: "reads-as-written",
        change: "the two copies are read in the order in which they are written",
        fate: Fate::breaks_in(Property::KExclusion, Setting::slots(2, 1).on(RegisterKind::Safe)),
    },
    Mutant {
        name: "writes-as-read",
        change: "the two copies are written in the order in which they are read",
        fate: Fate::breaks_in(Property::KExclusion, Setting::slots(2, 1).on(RegisterKind::Safe)),
    },
    Mutant {
        name: "asks-copy-2-alone",
        change: "copy 1 is not asked",
        fate: Fate::breaks_in(Property::KExclusion, Setting::slots(2, 1).on(RegisterKind::Safe)),
    },
    Mutant {
        name: "without-line-30",
        change: "the doorway is not announced by the old ticket",
        fate: Fate::breaks(Property::KExclusion, 2),
    },
    Mutant {
        name: "without-line-44",
        change: "everybody is captured again in every passage",
        fate: Fate::Scripted {
            property: Property::StarvationFreedom,
            setting: Setting::slots(3, 2).on(RegisterKind::Safe),
            script: OVERTAKEN_WITHOUT_END,
        },
    },
];
