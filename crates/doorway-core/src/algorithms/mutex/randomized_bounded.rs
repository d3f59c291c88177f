//! The lock of Giakkoupis and Woelfel 2014, Figure 1 (see [`randomized`](super::randomized)),
//! without sequence numbers: its registers have O(log n) bits, as the paper says is possible. A
//! second version adds starvation freedom.
//!
//! Promises what [`Randomized`](super::Randomized) promises. [`RandomizedStarvationFree`] also
//! promises starvation freedom. Both constructions are our own: the paper says that the techniques
//! for the first are "known" and alludes to "standard techniques" for the second.
//! docs/algorithms/randomized-bounded.md gives the argument, and says what each of the numbers was
//! for. In short:
//!
//! - A says on which side a process is, so a name in R needs no number: a process on the leader's
//!   side will see the leader.
//! - A process that joins w checks that w still leads *after* it has seen the backpack open (line
//!   25). So w sees the process, in whichever of its times as leader that is.
//! - A process that has announced that it joins w takes that back in A first, and then flips a bit
//!   in its place of w's backpack. So a leader that waits for the process (line 16) always sees a
//!   change.
//! - Flags tell a process of its promotion and of the hand-over of L. The process takes the flags
//!   back itself, in its own memory.

mod join;
mod last;
mod mutants;
mod turns;
mod values;

use alloc::{format, vec::Vec};
use core::ops::ControlFlow::{self, Break, Continue};

pub use self::values::{Help, Place, Said, Stat, Turn};
use self::{last::Last, turns::Turns};
use super::randomized::{ByCompareAndSwap, Elect, Election};
use crate::{
    ANY_NUMBER, Algorithm, Array, Claims, Coins, Exclusion, Grid, Homes, Layout, Primitive,
    Problem, Property, Register, RegisterKind, Registers, Rmr, Size, Unfit, others, plain_local,
};

/// The randomized lock without sequence numbers. `FAIR` adds turns; `E` elects the leaders.
#[derive(Debug)]
pub struct RandomizedBounded<const FAIR: bool = false, E = ByCompareAndSwap<u32>> {
    n: usize,
    /// A: what each process announces
    said: Array<Said>,
    sides: [Side<E>; 2],
    /// L
    lock: Last,
    /// Whether a leader has promoted a process; lives with that process
    promoted: Array<bool>,
    /// ℓ, the length of R
    length: usize,
    turns: Option<Turns>,
}

/// The randomized lock without sequence numbers, with starvation freedom.
pub type RandomizedStarvationFree = RandomizedBounded<true>;

/// The shared objects of one side.
#[derive(Debug)]
struct Side<E> {
    /// B, `[p][w]` for the paper's B[w][p]: p's place in the backpack of w; lives with w
    backpack: Grid<Place>,
    /// R
    found: Array<u32>,
    /// S
    leader: E,
}

impl<E: Sync> Side<E> {
    /// B[w][p]
    #[inline(always)]
    fn place(&self, w: u32, p: usize) -> Register<Place> {
        self.backpack.at(p, w as usize)
    }
}

/// What a process knows of its passage.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Pass {
    /// It has just entered.
    Comes,
    /// It leads a side.
    Leads {
        /// α
        side: u8,
        /// bit
        bit: bool,
    },
    /// It has been promoted by a leader.
    Promoted {
        /// α
        side: u8,
        /// w
        by: u32,
        /// What it writes to its place in the backpack of w when it leaves.
        place: Place,
    },
}

/// The result of the attempts of a process so far.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Fortune {
    /// This is the first attempt.
    Fresh,
    /// An attempt has failed.
    Unlucky,
    /// It stays on this side, since its turn has come.
    Stays(u8),
}

plain_local!(Pass, Fortune);

impl<const FAIR: bool, E: Election<u32>> Algorithm for RandomizedBounded<FAIR, E> {
    const NAME: &'static str =
        if FAIR { "randomized-starvation-free" } else { "randomized-bounded" };

    const CLAIMS: Claims = Claims {
        problem: Problem::Mutex,
        paper: "after 004 Giakkoupis, Woelfel 2014, Fig. 1",
        figure: "docs/algorithms/randomized-bounded.md",
        primitives: &[Primitive::ReadWrite, Primitive::CompareAndSwap],
        properties: if FAIR {
            &[Property::MutualExclusion, Property::DeadlockFreedom, Property::StarvationFreedom]
        } else {
            &[Property::MutualExclusion, Property::DeadlockFreedom]
        },
        refuted: &[],
        registers: RegisterKind::Atomic,
        crashes: |_| 0,
        bound: None,
        gap: |_| 1,
        values: &[],
        invariants: &[],
        abandons: false,
        rmr: Rmr { cc: "Ω(n)", dsm: "O(1) expected, amortised" },
        min_n: 2,
        max_n: None,
        mutants: if FAIR { mutants::OF_TURNS } else { mutants::MUTANTS },
    };

    /// Unlimited: attempts add no states, since nothing counts them.
    const ATTEMPTS: Option<u32> = Some(ANY_NUMBER);

    fn new(layout: &mut Layout, size: Size) -> Result<Self, Unfit> {
        super::fits(Self::NAME, size)?;
        if size.n < 2 {
            return Err(Unfit(format!("{} is for 2 processes or more: try -n 2", Self::NAME)));
        }
        let n = size.n;
        let length = if layout.mutant("one-place") { 1 } else { n.ilog2() as usize + 1 };
        let place = Place { stat: Stat::Done, bit: false };
        let side = |layout: &mut Layout, s: usize| Side {
            backpack: layout.grid(&format!("B{s}ᵀ"), n, n, Homes::Column, place),
            found: layout.array(&format!("R{s}"), length, Homes::Nobody, 0),
            leader: E::new(layout, &format!("S{s}")),
        };
        Ok(Self {
            n,
            said: layout.array("A", n, Homes::Nobody, Said::Done),
            sides: [side(layout, 0), side(layout, 1)],
            lock: Last::new(layout, n),
            promoted: layout.array("Promoted", n, Homes::Column, false),
            length,
            turns: FAIR.then(|| Turns::new(layout, n)),
        })
    }
}

impl<const FAIR: bool, E: Sync> RandomizedBounded<FAIR, E> {
    /// Runs one round of the while-loop. Returns how the process got in, or the result so far.
    #[inline(always)]
    fn attempt<M>(
        &self,
        m: &mut M,
        p: usize,
        fortune: Fortune,
    ) -> Result<ControlFlow<Pass, Fortune>, M::Halt>
    where
        M: Coins + Registers,
        E: Elect<M, u32>,
    {
        m.line(1);
        m.write(self.promoted.at(p), false)?;
        let (side, fortune) = m.scope(|m| self.side(m, p, fortune))?;
        m.line(2);
        m.write(self.said.at(p), Said::Wants(side))?;
        let s = &self.sides[usize::from(side)];
        m.line(4);
        let chosen = m.toss(self.length as u32 - 1)? as usize;
        m.line(5);
        m.write(s.found.at(chosen), p as u32)?;
        m.line(6);
        let pass = match s.leader.elect(m, p as u32)? {
            None => {
                m.line(7);
                self.thanks(m, p, fortune)?;
                Pass::Leads { side, bit: self.lead(m, p, side, chosen)? }
            }
            Some(leader) => {
                let pass = m.scope(|m| self.join(m, p, side, leader))?;
                let Some(pass) = pass else { return Ok(Continue(self.in_vain(m, p, fortune)?)) };
                m.line(28);
                self.thanks(m, p, fortune)?;
                pass
            }
        };
        Ok(Break(pass))
    }

    /// Line 3: returns the side of this attempt. The coin chooses it, except for a process that
    /// stays.
    #[inline(always)]
    fn side<M: Coins + Registers>(
        &self,
        m: &mut M,
        p: usize,
        fortune: Fortune,
    ) -> Result<(u8, Fortune), M::Halt> {
        m.line(3);
        let (side, fortune) = match fortune {
            Fortune::Stays(side) => (side, fortune),
            _ => {
                let side = m.choose(2)? as u8;
                match &self.turns {
                    Some(turns) if fortune == Fortune::Unlucky && turns.stays(m, p, side)? => {
                        (side, Fortune::Stays(side))
                    }
                    _ => (side, fortune),
                }
            }
        };
        if let (Some(turns), Fortune::Stays(_)) = (&self.turns, fortune) {
            turns.listen(m, p)?;
        }
        Ok((side, fortune))
    }

    /// Asks for help or waits after a failed attempt. Returns the result so far.
    #[inline(always)]
    fn in_vain<M: Registers>(
        &self,
        m: &mut M,
        p: usize,
        fortune: Fortune,
    ) -> Result<Fortune, M::Halt> {
        let Some(turns) = &self.turns else { return Ok(fortune) };
        m.line(29);
        match fortune {
            Fortune::Fresh => turns.ask(m, p)?,
            Fortune::Unlucky => {}
            Fortune::Stays(_) => {
                turns.rest(m, p)?;
                return Ok(fortune);
            }
        }
        Ok(Fortune::Unlucky)
    }

    /// Takes back the request for help of a process that leads or has been promoted.
    #[inline(always)]
    fn thanks<M: Registers>(&self, m: &mut M, p: usize, fortune: Fortune) -> Result<(), M::Halt> {
        match &self.turns {
            Some(turns) if fortune != Fortune::Fresh => {
                turns.thanks(m, p, fortune != Fortune::Unlucky)
            }
            _ => Ok(()),
        }
    }

    /// Lines 8 to 19: leads a side. Returns the parity under which the leader holds L.
    #[inline(always)]
    fn lead<M: Registers>(
        &self,
        m: &mut M,
        p: usize,
        side: u8,
        chosen: usize,
    ) -> Result<bool, M::Halt> {
        let s = &self.sides[usize::from(side)];
        let bit = self.lock.take(m, p, side)?;
        let found = m.scope(|m| self.collect(m, p, side, chosen))?;
        if !m.drops(16) {
            m.line(16);
            m.each(0..found.len(), |m, i| {
                let (r, before) = found[i];
                m.wait(s.place(p as u32, r as usize), |now| now.stat != Stat::Done || now != before)
            })?;
        }
        if let Some(turns) = &self.turns {
            m.line(16);
            if let Some(guest) = turns.guest(m, side)? {
                let enough =
                    if m.mutant("trying-is-enough") { Stat::Trying } else { Stat::Waiting };
                // `Trying` is not enough: it may belong to a failed attempt at an earlier time of
                // this leader.
                m.wait(s.place(p as u32, guest as usize), |now| now.stat >= enough)?;
            }
        }
        if !m.drops(17) {
            self.promote(m, s, p)?;
        }
        if let Some(turns) = &self.turns {
            m.line(18);
            turns.advance(m)?;
        }
        if !m.drops(18) {
            m.line(18);
            m.write(self.said.at(p), Said::Done)?;
        }
        if !m.drops(19) {
            self.promote(m, s, p)?;
        }
        Ok(bit)
    }

    /// Lines 11 to 14: returns the processes that are sure to join this leader, each with its place
    /// in the backpack as it was before that was sure.
    #[inline(always)]
    fn collect<M: Registers>(
        &self,
        m: &mut M,
        p: usize,
        side: u8,
        chosen: usize,
    ) -> Result<Vec<(u32, Place)>, M::Halt> {
        let s = &self.sides[usize::from(side)];
        m.fold_until(0..self.length, Vec::new(), |m, mut found, j| {
            m.line(12);
            let r = m.read(s.found.at(j))?;
            if r == p as u32 {
                // Its own name, just written or old.
                return Ok(if j == chosen { Continue(found) } else { Break(found) });
            }
            if found.iter().any(|&(other, _)| other == r) {
                return Ok(Break(found)); // found twice: one of the two is old
            }
            let before = m.read(s.place(p as u32, r as usize))?;
            m.line(13);
            let will_see_me = m.drops(13)
                || m.test(self.said.at(r as usize), |said| {
                    [Said::Wants(side), Said::Joins { side, w: p as u32 }].contains(&said)
                })?;
            if !will_see_me {
                return Ok(Break(found));
            }
            found.push((r, before));
            Ok(Continue(found))
        })
    }

    /// Lines 35 to 40: promotes the processes in the backpack of `p`.
    #[inline(always)]
    fn promote<M: Registers>(&self, m: &mut M, s: &Side<E>, p: usize) -> Result<(), M::Halt> {
        m.each(others(p, self.n), |m, r| {
            let theirs = s.place(p as u32, r);
            if !m.drops(37) {
                m.line(37);
                m.wait(theirs, |place| place.stat != Stat::Trying)?;
            }
            m.line(38);
            let place = m.read(theirs)?;
            if place.stat == Stat::Waiting {
                m.line(39);
                m.write(self.promoted.at(r), true)?;
                if !m.drops(40) {
                    m.line(40);
                    m.wait(theirs, |now| now != place)?;
                }
            }
            Ok(())
        })
    }
}

impl<M: Coins + Registers, const FAIR: bool, E: Elect<M, u32>> Exclusion<M>
    for RandomizedBounded<FAIR, E>
{
    type Request = ();
    type Pass = Pass;
    type Keep = ();

    fn keep(&self, _: usize) {}

    /// Does nothing: this lock never fixes a place in the queue.
    #[inline]
    fn doorway(&self, _: &mut M, _: usize, (): (), (): ()) -> Result<Pass, M::Halt> {
        Ok(Pass::Comes)
    }

    #[inline]
    fn waiting(&self, m: &mut M, p: usize, _: Pass) -> Result<Pass, M::Halt> {
        m.attempts(Fortune::Fresh, |m, fortune| self.attempt(m, p, fortune))
    }

    #[inline]
    fn exit(&self, m: &mut M, p: usize, pass: Pass) -> Result<(), M::Halt> {
        match pass {
            Pass::Comes => Ok(()), // never: such a process is not inside
            Pass::Leads { side, bit } => {
                self.lock.flip(m, side, bit)?;
                m.line(32);
                self.sides[usize::from(side)].leader.resign(m, p as u32)?;
                if let Some(turns) = &self.turns {
                    turns.tell(m, side)?;
                }
                self.lock.release(m, p, side, bit)
            }
            Pass::Promoted { side, by, place } => {
                let mine = self.sides[usize::from(side)].place(by, p);
                m.line(34);
                self.give_up(m, p, mine, place)
            }
        }
    }
}
