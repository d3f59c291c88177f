//! The lock of Giakkoupis and Woelfel: *Randomized mutual exclusion with constant amortized RMR
//! complexity on the DSM* (FOCS 2014), Figure 1, from reads, writes and one compare-and-swap object
//! for each of two sides.
//!
//! Promises mutual exclusion and deadlock freedom for every outcome of the coins. Promises a
//! constant number of remote references per passage in the DSM model, in expectation and amortised.
//! This holds against schedulers that see only which steps are local and which are remote. Promises
//! no order and no starvation freedom.
//!
//! A process that enters throws coins for one of two *sides* and for a place in that side's array
//! R. It writes its name there and tries to become the side's leader. The leader takes L, which
//! keeps the other side out. It waits for the processes that it finds in R, and *promotes* all
//! processes in its *backpack*, one by one, before it goes in itself. A process that fails to
//! become leader tries to get into the backpack of the leader, and starts again if the backpack is
//! closed.
//!
//! The code deviates from the print (docs/errata.md). Line 32 resets S by the leader's own name.
//! Line 23 may find no leader, and then the attempt is over. A leader waits until the previous
//! leader of its side has finished the release of L (lines 9 and 33), because otherwise two leaders
//! might play L from one leaf. A process does not look into its own place of the backpack (line
//! 35).

mod election;
mod mutants;
mod values;

use alloc::{format, vec::Vec};
use core::ops::ControlFlow::{self, Break, Continue};

pub use self::{
    election::{ByCompareAndSwap, Elect, Election},
    values::{Announcement, Name, Place, Stat, Status},
};
use super::tournament::{Names, Player, Tournament};
use crate::{
    Algorithm, Array, Claims, Coins, Exclusion, Grid, Home, Homes, Layout, Local, Primitive,
    Problem, Property, Register, RegisterKind, Registers, Relabel, Rmr, Size, Ticket, Unfit,
    others,
};

/// The randomized lock of Giakkoupis and Woelfel, with leaders elected by `E`.
#[derive(Debug)]
pub struct Randomized<E = ByCompareAndSwap<Name>> {
    n: usize,
    /// A: what each process announces
    said: Array<Announcement>,
    sides: [Side<E>; 2],
    /// L
    lock: Tournament<false>,
    /// The number of the attempt with which a leader w released L, as told to the next leader p.
    /// `[w][p]` lives with p, which waits on it.
    gone: Grid<Ticket>,
    /// ℓ, the length of R
    length: usize,
}

/// The shared objects of one side.
#[derive(Debug)]
struct Side<E> {
    /// B, `[p][w]` for the paper's B[w][p]: p's place in the backpack of w; lives with w
    backpack: Grid<Place>,
    /// R
    found: Array<Name>,
    /// S
    leader: E,
    /// Bit
    bit: Register<bool>,
    /// For each parity, the leader that has not finished the release of L
    holder: Array<Option<Name>>,
    /// For each parity, the next leader of this side after that leader
    heir: Array<Option<u32>>,
}

impl<E: Sync> Side<E> {
    /// B[w][p]
    #[inline(always)]
    fn place(&self, w: usize, p: usize) -> Register<Place> {
        self.backpack.at(p, w)
    }
}

/// What a process knows of its passage.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Pass {
    /// It has just entered; this is the number of its last attempt.
    Comes(Ticket),
    /// It leads a side.
    Leads {
        /// c
        seq: Ticket,
        /// α
        side: u8,
        /// bit
        bit: bool,
    },
    /// It has been promoted by a leader.
    Promoted {
        /// c
        seq: Ticket,
        /// α
        side: u8,
        /// w
        by: u32,
    },
}

impl Local for Pass {
    fn relabel(&self, f: Relabel<'_>) -> Self {
        let mut pass = *self;
        match &mut pass {
            Self::Comes(seq) | Self::Leads { seq, .. } | Self::Promoted { seq, .. } => {
                *seq = f(*seq)
            }
        }
        pass
    }
}

impl<E: Election<Name>> Algorithm for Randomized<E> {
    const NAME: &'static str = "randomized";

    const CLAIMS: Claims = Claims {
        problem: Problem::Mutex,
        paper: "004 Giakkoupis, Woelfel 2014",
        figure: "Fig. 1",
        primitives: &[Primitive::ReadWrite, Primitive::CompareAndSwap],
        properties: &[Property::MutualExclusion, Property::DeadlockFreedom],
        refuted: &[],
        registers: RegisterKind::Atomic,
        crashes: |_| 0,
        bound: None,
        gap: |_| 2,
        values: &[],
        invariants: &[],
        abandons: false,
        rmr: Rmr { cc: "Ω(n)", dsm: "O(1) expected, amortised" },
        min_n: 2,
        max_n: None,
        mutants: mutants::MUTANTS,
    };

    const ATTEMPTS: Option<u32> = Some(1);

    fn new(layout: &mut Layout, size: Size) -> Result<Self, Unfit> {
        super::fits(Self::NAME, size)?;
        if !(2..=values::MOST).contains(&size.n) {
            return Err(Unfit(format!(
                "{} is for 2 to {} processes: try -n 2",
                Self::NAME,
                values::MOST
            )));
        }
        let n = size.n;
        let length = n.ilog2() as usize + 1;
        let leaves = if layout.mutant(TWO_AT_A_LEAF) { 4 } else { 2 };
        let announcement = Announcement { seq: Ticket::ZERO, status: Status::Done };
        let place = Place { seq: Ticket::ZERO, stat: Stat::Done };
        let side = |layout: &mut Layout, s: usize| Side {
            backpack: layout.grid(&format!("B{s}ᵀ"), n, n, Homes::Column, place),
            found: layout.array(
                &format!("R{s}"),
                length,
                Homes::Nobody,
                Name::new(0, Ticket::ZERO),
            ),
            leader: E::new(layout, &format!("S{s}")),
            bit: layout.register(&format!("Bit{s}"), Home::Nobody, false),
            holder: layout.array(&format!("Holder{s}"), 2, Homes::Nobody, None),
            heir: layout.array(&format!("Heir{s}"), 2, Homes::Nobody, None),
        };
        Ok(Self {
            n,
            said: layout.array("A", n, Homes::Nobody, announcement),
            sides: [side(layout, 0), side(layout, 1)],
            lock: Tournament::new(
                layout,
                &Names { player: "L.C", last: "L.T", spin: "L.P" },
                leaves,
                n,
            ),
            gone: layout.grid("Gone", n, n, Homes::Column, Ticket::ZERO),
            length,
        })
    }
}

impl<E: Sync> Randomized<E> {
    /// Runs one round of the while-loop.
    ///
    /// Returns how the process got in, or the number of the failed attempt, after which it tries
    /// again.
    #[inline(always)]
    fn attempt<M: Coins + Registers>(
        &self,
        m: &mut M,
        p: usize,
        before: Ticket,
    ) -> Result<ControlFlow<Pass, Ticket>, M::Halt>
    where
        E: Elect<M, Name>,
    {
        let seq = before.succ();
        let me = Name::new(p, seq);
        m.line(2);
        m.write(self.said.at(p), Announcement { seq, status: Status::Want })?;
        let side = m.scope(|m| {
            m.line(3);
            let side = m.choose(2)?;
            m.line(4);
            let place = m.toss(self.length as u32 - 1)?;
            if !m.drops(5) {
                m.line(5);
                // R[λ], with λ = place + 1
                m.write(self.sides[side as usize].found.at(place as usize), me)?;
            }
            Ok(side as u8)
        })?;
        let s = &self.sides[usize::from(side)];
        m.line(6);
        match s.leader.elect(m, me)? {
            None => {
                let bit = self.lead(m, me, side)?;
                Ok(Break(Pass::Leads { seq, side, bit }))
            }
            Some(leader) => {
                let by = m.scope(|m| self.join(m, s, me, leader))?;
                Ok(by.map_or(Continue(seq), |by| Break(Pass::Promoted { seq, side, by })))
            }
        }
    }

    /// Lines 8 to 19: leads a side. Returns the parity under which the leader holds L.
    #[inline(always)]
    fn lead<M: Registers>(&self, m: &mut M, me: Name, side: u8) -> Result<bool, M::Halt> {
        let s = &self.sides[usize::from(side)];
        let p = me.process as usize;
        m.line(8);
        let bit = m.read(s.bit)?;
        let who = Self::player(m, p, side, bit);
        self.take(m, s, me, who, bit)?;
        let found = m.fold_until(0..self.length, Vec::new(), |m, mut found, j| {
            m.line(12);
            let r = m.read(s.found.at(j))?;
            if r == me {
                return Ok(Continue(found)); // its own name: it does not wait for itself
            }
            let will_see_me = r.process != me.process && {
                m.line(13);
                m.drops(13)
                    || m.test(self.said.at(r.process as usize), |said| {
                        said.seq == r.seq
                            && [Status::Want, Status::Joins(me)].contains(&said.status)
                    })?
            };
            if !will_see_me {
                return Ok(Break(found));
            }
            found.push(r);
            Ok(Continue(found))
        })?;
        if !m.drops(16) {
            m.line(16);
            m.each(0..found.len(), |m, i| {
                m.wait(s.place(p, found[i].process as usize), |place| place.seq >= found[i].seq)
            })?;
        }
        if !m.drops(17) {
            self.promote(m, s, p)?;
        }
        if !m.drops(18) {
            m.line(18);
            m.write(self.said.at(p), Announcement { seq: me.seq, status: Status::Done })?;
        }
        if !m.drops(19) {
            self.promote(m, s, p)?;
        }
        Ok(bit)
    }

    /// Line 9: takes L. Before that, waits until the previous leader of this side, if it is not
    /// through with L yet, hands L over.
    #[inline(always)]
    fn take<M: Registers>(
        &self,
        m: &mut M,
        s: &Side<E>,
        me: Name,
        who: Player,
        bit: bool,
    ) -> Result<(), M::Halt> {
        let (mine, before) = (usize::from(bit), usize::from(!bit));
        m.line(9);
        if !m.mutant(TWO_AT_A_LEAF) {
            m.write(s.holder.at(mine), Some(me))?;
            m.write(s.heir.at(before), Some(me.process))?;
            m.scope(|m| match m.read(s.holder.at(before))? {
                Some(last) => {
                    m.wait(self.gone.at(last.process as usize, who.p), |seq| seq >= last.seq)
                }
                None => Ok(()),
            })?;
        }
        self.lock.enter(m, who)
    }

    /// Line 33: releases L, and hands it over to the next leader of this side, if there is one yet.
    /// A process may be told that has not asked this time; what it is told is true.
    #[inline(always)]
    fn release<M: Registers>(
        &self,
        m: &mut M,
        s: &Side<E>,
        me: Name,
        who: Player,
        bit: bool,
    ) -> Result<(), M::Halt> {
        let mine = usize::from(bit);
        m.line(33);
        self.lock.leave(m, who)?;
        if m.mutant(TWO_AT_A_LEAF) {
            return Ok(());
        }
        m.write(s.holder.at(mine), None)?;
        match m.read(s.heir.at(mine))? {
            Some(heir) => m.write(self.gone.at(who.p, heir as usize), me.seq),
            None => Ok(()),
        }
    }

    /// Returns the player of L. Each side has one leaf; as printed, each virtual id has one.
    #[inline(always)]
    fn player<M: Registers>(m: &M, p: usize, side: u8, bit: bool) -> Player {
        let side = usize::from(side);
        let leaf = if m.mutant(TWO_AT_A_LEAF) { 2 * side + usize::from(bit) } else { side };
        Player { leaf, p }
    }

    /// Lines 22 to 29: tries to get in with a leader. Returns that leader on success.
    #[inline(always)]
    fn join<M: Registers>(
        &self,
        m: &mut M,
        s: &Side<E>,
        me: Name,
        leader: Name,
    ) -> Result<Option<u32>, M::Halt>
    where
        E: Elect<M, Name>,
    {
        let (p, seq) = (me.process as usize, me.seq);
        let leader = m.scope(|m| {
            if !m.drops(22) {
                m.line(22);
                m.write(self.said.at(p), Announcement { seq, status: Status::Joins(leader) })?;
            }
            if m.drops(23) {
                return Ok(Some(leader));
            }
            m.line(23);
            let now = s.leader.leader(m)?;
            Ok(now.or_else(|| m.mutant("joins-who-has-gone").then_some(leader)))
        })?;
        let Some(leader) = leader else { return Ok(None) };
        let w = leader.process as usize;
        m.line(24);
        m.write(s.place(w, p), Place { seq, stat: Stat::Trying })?;
        m.line(25);
        let open = Announcement { seq: leader.seq, status: Status::Want };
        if m.test(self.said.at(w), |said| said == open)? {
            m.line(26);
            m.write(s.place(w, p), Place { seq, stat: Stat::Waiting })?;
            m.line(27);
            m.wait(s.place(p, w), |place| place == Place { seq, stat: Stat::Promoted })?;
            return Ok(Some(leader.process));
        }
        if !m.drops(29) {
            m.line(29);
            m.write(s.place(w, p), Place { seq, stat: Stat::Done })?;
        }
        Ok(None)
    }

    /// Lines 35 to 40: promotes the processes in the backpack of `p`.
    #[inline(always)]
    fn promote<M: Registers>(&self, m: &mut M, s: &Side<E>, p: usize) -> Result<(), M::Halt> {
        m.each(others(p, self.n), |m, r| {
            let mine = s.place(p, r);
            m.line(36);
            let seq = m.scope(|m| Ok(m.read(mine)?.seq))?;
            let (trying, waiting) =
                (Place { seq, stat: Stat::Trying }, Place { seq, stat: Stat::Waiting });
            if !m.drops(37) {
                m.line(37);
                m.wait(mine, |place| place != trying)?;
            }
            m.line(38);
            if m.test(mine, |place| place == waiting)? {
                m.line(39);
                m.write(s.place(r, p), Place { seq, stat: Stat::Promoted })?;
                if !m.drops(40) {
                    m.line(40);
                    m.wait(mine, |place| place != waiting)?;
                }
            }
            Ok(())
        })
    }

    /// Returns the name by which a leader resets S: its own. The print has d for c. Lines 12 and 36
    /// have changed d: its last value is the number of the last process in the backpack.
    #[inline(always)]
    fn resigns_as<M: Registers>(&self, m: &mut M, s: &Side<E>, me: Name) -> Result<Name, M::Halt> {
        if !m.mutant("as-printed") {
            return Ok(me);
        }
        let last = m.read(s.place(me.process as usize, self.n - 1))?;
        Ok(Name { seq: last.seq, ..me })
    }
}

/// The mutant in which L is a tournament of four.
const TWO_AT_A_LEAF: &str = "tournament-of-four";

impl<M: Coins + Registers, E: Elect<M, Name>> Exclusion<M> for Randomized<E> {
    type Request = ();
    type Pass = Pass;
    /// The number of its last attempt: `A[p].seq`.
    type Keep = Ticket;

    fn keep(&self, _: usize) -> Ticket {
        Ticket::ZERO
    }

    /// Only passes `last` on: this lock never fixes a place in the queue.
    #[inline]
    fn doorway(&self, _: &mut M, _: usize, (): (), last: Ticket) -> Result<Pass, M::Halt> {
        Ok(Pass::Comes(last))
    }

    #[inline]
    fn waiting(&self, m: &mut M, p: usize, pass: Pass) -> Result<Pass, M::Halt> {
        let Pass::Comes(last) = pass else { return Ok(pass) };
        m.attempts(last, |m, last| self.attempt(m, p, last))
    }

    #[inline]
    fn exit(&self, m: &mut M, p: usize, pass: Pass) -> Result<Ticket, M::Halt> {
        match pass {
            Pass::Comes(seq) => Ok(seq), // never: such a process is not inside
            Pass::Leads { seq, side, bit } => {
                let s = &self.sides[usize::from(side)];
                let me = Name::new(p, seq);
                if !m.drops(31) {
                    m.line(31);
                    m.write(s.bit, !bit)?;
                }
                m.line(32);
                let name = self.resigns_as(m, s, me)?;
                s.leader.resign(m, name)?;
                let who = Self::player(m, p, side, bit);
                self.release(m, s, me, who, bit)?;
                Ok(seq)
            }
            Pass::Promoted { seq, side, by } => {
                let s = &self.sides[usize::from(side)];
                m.line(34);
                m.write(s.place(by as usize, p), Place { seq, stat: Stat::Done })?;
                Ok(seq)
            }
        }
    }
}
