//! A group bakery with FIFE and strong concurrent entry, with unbounded tokens.
//!
//! It answers what section 8 of He, Gopalakrishnan and Gafni: *Group mutual exclusion in linear
//! time and space* (TCS 2018) leaves open. It is not a published algorithm: `docs/open-problems.md`
//! says how it comes about. Lines are those of `docs/algorithms/strong-group-bakery.md`.
//!
//! Promises what the Generalized Lamport's Bakery promises. In addition, no process waits for a
//! choice that began after its own doorway. Two changes achieve this:
//!
//! - A process that chooses announces a lower bound on its token, not a bare *choosing* (lines 2
//!   and 3). A process that sees a bound above its own token need not wait for the choice.
//! - At the end of its doorway a process p notes for which choices it has to wait (line 7). A
//!   process that announces its choice later sees p's token.

use super::{GroupBakery, wait_either};
use crate::{
    Algorithm, Array, Claims, Exclusion, Fate, Homes, Layout, Mutant, Property, Registers, Session,
    Set, Setting, Size, Ticket, Unfit, others,
};

/// A group bakery with FIFE and strong concurrent entry.
#[derive(Debug)]
pub struct StrongGroupBakery {
    n: usize,
    session: Array<Session>,
    token: Array<Ticket>,
    /// 0, or a lower bound on the token that is being chosen.
    choosing: Array<Ticket>,
}

impl Algorithm for StrongGroupBakery {
    const NAME: &'static str = "strong-group-bakery";

    const CLAIMS: Claims = Claims {
        paper: "after 002 He, Gopalakrishnan, Gafni 2018, section 8",
        figure: "docs/open-problems.md",
        properties: &[
            Property::SessionExclusion,
            Property::Fcfs,
            Property::Fife,
            Property::ConcurrentEntry,
            Property::StrongConcurrentEntry,
            Property::StarvationFreedom,
            Property::DeadlockFreedom,
            Property::BoundedExit,
        ],
        refuted: &[],
        mutants: MUTANTS,
        ..GroupBakery::CLAIMS
    };

    fn new(layout: &mut Layout, size: Size) -> Result<Self, Unfit> {
        super::fits::<Self>(size)?;
        Ok(Self {
            n: size.n,
            session: layout.array("Session", size.n, Homes::Column, Session::NONE),
            token: layout.array("Token", size.n, Homes::Column, Ticket::ZERO),
            choosing: layout.array("Choosing", size.n, Homes::Column, Ticket::ZERO),
        })
    }
}

impl StrongGroupBakery {
    /// Returns one more than the largest token of the other processes, or `least` if that is more.
    #[inline(always)]
    fn next<M: Registers>(&self, m: &mut M, p: usize, least: Ticket) -> Result<Ticket, M::Halt> {
        m.fold(
            others(p, self.n),
            least,
            |m, next, j| Ok(next.max(m.read(self.token.at(j))?.succ())),
        )
    }
}

impl<M: Registers> Exclusion<M> for StrongGroupBakery {
    type Request = Session;
    /// `Session[p]`, `Token[p]`, and the processes for whose choice p has to wait.
    type Pass = (Session, Ticket, Set);
    type Keep = ();

    fn keep(&self, _: usize) {}

    #[inline]
    fn doorway(
        &self,
        m: &mut M,
        p: usize,
        mysession: Session,
        (): (),
    ) -> Result<Self::Pass, M::Halt> {
        let first = Ticket::ZERO.succ();
        m.line(1);
        m.write(self.session.at(p), mysession)?;
        let bound = if m.mutant("without-bound") {
            first
        } else {
            m.line(2);
            self.next(m, p, first)?
        };
        if !m.drops(3) {
            m.line(3);
            m.write(self.choosing.at(p), bound)?;
        }
        let mine = if m.drops(4) {
            bound
        } else {
            m.line(4);
            self.next(m, p, if m.mutant("token-below-bound") { first } else { bound })?
        };
        m.line(5);
        m.write(self.token.at(p), mine)?;
        m.line(6);
        m.write(self.choosing.at(p), Ticket::ZERO)?;
        if m.mutant("without-scan") {
            return Ok((mysession, mine, Set::others(p, self.n)));
        }
        m.line(7);
        let found = m.fold(others(p, self.n), Set::none(self.n), |m, found: Set, j| {
            let waits = m.test(self.choosing.at(j), |bound| {
                bound != Ticket::ZERO && (bound, j) < (mine, p)
            })?;
            Ok(if waits { found.with(j) } else { found })
        })?;
        Ok((mysession, mine, found))
    }

    #[inline]
    fn waiting(&self, m: &mut M, p: usize, pass: Self::Pass) -> Result<Self::Pass, M::Halt> {
        let (mysession, mine, ref found) = pass;
        let after = |j: usize| move |token: Ticket| token == Ticket::ZERO || (mine, p) < (token, j);
        m.each(others(p, self.n), |m, j| {
            let admits = |session| mysession.admits(session);
            if found.contains(j) && !m.drops(9) {
                m.line(9);
                wait_either(m, self.choosing.at(j), after(j), self.session.at(j), admits)?;
            }
            m.line(10);
            wait_either(m, self.token.at(j), after(j), self.session.at(j), admits)
        })?;
        Ok(pass)
    }

    #[inline]
    fn exit(&self, m: &mut M, p: usize, _: Self::Pass) -> Result<(), M::Halt> {
        m.line(12);
        m.write(self.token.at(p), Ticket::ZERO)?;
        m.line(13);
        m.write(self.session.at(p), Session::NONE)
    }

    fn abandon(&self, m: &mut M, p: usize, pass: Self::Pass) -> Option<Result<(), M::Halt>> {
        Some(self.exit(m, p, pass))
    }
}

const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "without-bound",
        change: "a choice is announced without a bound, as in Figure 1: a later one cannot be told from an earlier one",
        fate: Fate::breaks_in(Property::StrongConcurrentEntry, Setting::group(2, 2)),
    },
    Mutant {
        name: "without-line-3",
        change: "the choice is not announced",
        fate: Fate::breaks_in(Property::SessionExclusion, Setting::group(2, 2)),
    },
    Mutant {
        name: "without-line-4",
        change: "the bound is taken for the token: what has happened since it was found is not seen",
        fate: Fate::breaks_in(Property::SessionExclusion, Setting::group(2, 2)),
    },
    Mutant {
        name: "token-below-bound",
        change: "line 4 forgets the bound",
        fate: Fate::breaks_in(Property::SessionExclusion, Setting::group(3, 2)),
    },
    Mutant {
        name: "without-scan",
        change: "line 7 is left out: every choice with a smaller bound is waited for, whenever it was announced",
        fate: Fate::breaks_in(Property::Fife, Setting::group(3, 2)),
    },
    Mutant {
        name: "without-line-9",
        change: "nobody waits for a choice in progress",
        fate: Fate::breaks_in(Property::SessionExclusion, Setting::group(2, 2)),
    },
];
