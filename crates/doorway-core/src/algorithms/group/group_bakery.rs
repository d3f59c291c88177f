//! The Generalized Lamport's Bakery (GLB) of He, Gopalakrishnan and Gafni: *Group mutual exclusion
//! in linear time and space* (TCS 2018), Figure 1.
//!
//! Promises session exclusion, FCFS between sessions, concurrent entry, starvation freedom and a
//! bounded exit, from reads and writes alone. Tokens grow without bound. A process that is
//! overtaken by a process of its own session may still have to wait (no FIFE). A process that is
//! ahead of all others may have to wait for a process in its doorway (no strong concurrent entry).

use super::wait_either;
use crate::{
    Algorithm, Array, Claims, Exclusion, Fate, Homes, Layout, Mutant, Primitive, Problem, Property,
    RegisterKind, Registers, Rmr, Session, Setting, Size, Ticket, Unfit, others,
};

/// The Generalized Lamport's Bakery.
#[derive(Debug)]
pub struct GroupBakery {
    n: usize,
    session: Array<Session>,
    token: Array<Ticket>,
    choosing: Array<bool>,
}

impl Algorithm for GroupBakery {
    const NAME: &'static str = "group-bakery";

    const CLAIMS: Claims = Claims {
        problem: Problem::Group,
        paper: "002 He, Gopalakrishnan, Gafni 2018, after Lamport 1974",
        figure: "Fig. 1",
        primitives: &[Primitive::ReadWrite],
        properties: &[
            Property::SessionExclusion,
            Property::Fcfs,
            Property::ConcurrentEntry,
            Property::StarvationFreedom,
            Property::DeadlockFreedom,
            Property::BoundedExit,
        ],
        refuted: &[
            (Property::Fife, Setting::group(2, 2)),
            (Property::StrongConcurrentEntry, Setting::group(2, 2)),
        ],
        invariants: &[],
        registers: RegisterKind::Atomic,
        crashes: |_| 0,
        bound: None,
        gap: |_| 2,
        values: &[],
        abandons: true,
        rmr: Rmr { cc: "O(n)", dsm: "unbounded" },
        min_n: 1,
        max_n: None,
        mutants: MUTANTS,
    };

    fn new(layout: &mut Layout, size: Size) -> Result<Self, Unfit> {
        super::fits::<Self>(size)?;
        Ok(Self {
            n: size.n,
            session: layout.array("Session", size.n, Homes::Column, Session::NONE),
            token: layout.array("Token", size.n, Homes::Column, Ticket::ZERO),
            choosing: layout.array("Choosing", size.n, Homes::Column, false),
        })
    }
}

impl<M: Registers> Exclusion<M> for GroupBakery {
    type Request = Session;
    /// `Session[p]`, `Token[p]`
    type Pass = (Session, Ticket);
    type Keep = ();

    fn keep(&self, _: usize) {}

    #[inline]
    fn doorway(
        &self,
        m: &mut M,
        p: usize,
        mysession: Session,
        (): (),
    ) -> Result<(Session, Ticket), M::Halt> {
        let swaps = m.mutant("swaps-lines-3-and-4");
        if swaps {
            m.line(4);
            m.write(self.session.at(p), mysession)?;
        }
        if !m.drops(3) {
            m.line(3);
            m.write(self.choosing.at(p), true)?;
        }
        if !swaps && !m.mutant("session-after-token") {
            m.line(4);
            m.write(self.session.at(p), mysession)?;
        }
        m.line(5);
        let conflicting = m.mutant("numbers-of-other-sessions");
        let max = m.fold(others(p, self.n), Ticket::ZERO, |m, max, j| {
            let minds =
                !conflicting || !m.test(self.session.at(j), |session| mysession.admits(session))?;
            Ok(if minds { max.max(m.read(self.token.at(j))?) } else { max })
        })?;
        let mine =
            if m.mutant("token-not-larger") && max != Ticket::ZERO { max } else { max.succ() };
        m.write(self.token.at(p), mine)?;
        if m.mutant("session-after-token") {
            m.line(4);
            m.write(self.session.at(p), mysession)?;
        }
        if !m.drops(6) {
            m.line(6);
            m.write(self.choosing.at(p), false)?;
        }
        Ok((mysession, mine))
    }

    #[inline]
    fn waiting(
        &self,
        m: &mut M,
        p: usize,
        pass: (Session, Ticket),
    ) -> Result<(Session, Ticket), M::Halt> {
        let (mysession, mine) = pass;
        let ids = !m.mutant("compares-without-ids");
        m.each(others(p, self.n), |m, j| {
            if !m.drops(8) {
                m.line(8);
                let whoever = m.mutant("line-8-minds-own-session");
                let admitted =
                    |session| mysession.admits(session) && !(whoever && session != Session::NONE);
                wait_either(
                    m,
                    self.choosing.at(j),
                    |choosing| !choosing,
                    self.session.at(j),
                    admitted,
                )?;
            }
            m.line(9);
            let whoever = m.mutant("line-9-minds-own-session");
            let admitted =
                |session| mysession.admits(session) && !(whoever && session != Session::NONE);
            let after = |token| {
                token == Ticket::ZERO || if ids { (mine, p) < (token, j) } else { mine <= token }
            };
            wait_either(m, self.token.at(j), after, self.session.at(j), admitted)
        })?;
        Ok(pass)
    }

    #[inline]
    fn exit(&self, m: &mut M, p: usize, _: (Session, Ticket)) -> Result<(), M::Halt> {
        let swaps = m.mutant("swaps-lines-12-and-13");
        if swaps {
            m.line(13);
            m.write(self.session.at(p), Session::NONE)?;
        }
        if !m.drops(12) {
            m.line(12);
            m.write(self.token.at(p), Ticket::ZERO)?;
        }
        if !swaps && !m.drops(13) {
            m.line(13);
            m.write(self.session.at(p), Session::NONE)?;
        }
        Ok(())
    }

    fn abandon(&self, m: &mut M, p: usize, pass: (Session, Ticket)) -> Option<Result<(), M::Halt>> {
        Some(self.exit(m, p, pass))
    }
}

const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "without-line-3",
        change: "choosing is not announced",
        fate: Fate::breaks_in(Property::SessionExclusion, Setting::group(2, 2)),
    },
    Mutant {
        name: "session-after-token",
        change: "line 4 comes after line 5: the session is announced too late",
        fate: Fate::breaks_in(Property::SessionExclusion, Setting::group(2, 2)),
    },
    Mutant {
        name: "swaps-lines-3-and-4",
        change: "the session is announced before choosing",
        fate: Fate::Harmless,
    },
    Mutant {
        name: "token-not-larger",
        change: "line 5 takes the largest token itself, not one more",
        fate: Fate::breaks_in(Property::Fcfs, Setting::group(2, 2)),
    },
    Mutant {
        name: "numbers-of-other-sessions",
        change: "line 5 takes one more than the largest token of other sessions, as Figure 5 does",
        fate: Fate::Harmless,
    },
    Mutant {
        name: "without-line-6",
        change: "choosing stays announced for ever",
        fate: Fate::breaks_in(Property::DeadlockFreedom, Setting::group(2, 2)),
    },
    Mutant {
        name: "without-line-8",
        change: "nobody waits for a choice in progress",
        fate: Fate::breaks_in(Property::SessionExclusion, Setting::group(2, 2)),
    },
    Mutant {
        name: "line-8-minds-own-session",
        change: "line 8 waits for a choice in progress even of one's own session",
        fate: Fate::breaks_in(Property::ConcurrentEntry, Setting::group(2, 1)),
    },
    Mutant {
        name: "line-9-minds-own-session",
        change: "line 9 waits for smaller tokens even of one's own session: a mutex",
        fate: Fate::breaks_in(Property::ConcurrentEntry, Setting::group(2, 1)),
    },
    Mutant {
        name: "compares-without-ids",
        change: "equal tokens do not wait for one another",
        fate: Fate::breaks_in(Property::SessionExclusion, Setting::group(2, 2)),
    },
    Mutant { name: "without-line-12", change: "the token is not reset", fate: Fate::Harmless },
    Mutant {
        name: "without-line-13",
        change: "the session is not reset: the next choice begins in the name of the last session",
        fate: Fate::breaks_in(Property::ConcurrentEntry, Setting::group(2, 2)),
    },
    Mutant {
        name: "swaps-lines-12-and-13",
        change: "the session is reset before the token",
        fate: Fate::Harmless,
    },
];
