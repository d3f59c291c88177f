//! Runs an algorithm's code on the replay memory.

use std::borrow::Cow;

use doorway_core::{
    Claims, Exclusion, Layout, Local, Request, Session, Size, Unfit, layout::Erased,
};

use super::{Choice, LocalState, Move, Moves, Section, Stepped, Subject};
use crate::{
    fault::Fault,
    item::Item,
    replay::{Access, Input, Kind, Replay},
};

/// An algorithm's code. The lab requires that it runs on the replay memory for any lifetime of that
/// memory.
struct Run<A> {
    algorithm: A,
    layout: Layout,
    size: Size,
    mutant: Option<&'static str>,
    abandons: bool,
    kills: Option<u32>,
}

impl<A, Q, P, K> Run<A>
where
    A: for<'a> Exclusion<Replay<'a>, Request = Q, Pass = P, Keep = K> + Send + Sync,
    Q: Request,
    P: Local,
    K: Local,
{
    /// Runs `p` from where it is to its next access without an answer, or to the remainder. In the
    /// remainder the returned state has no request, so `moves` tries each request.
    fn drive(&self, p: usize, m: &mut Replay<'_>, local: &LocalState) -> Result<LocalState, Fault> {
        let mut section = local.section;
        let mut held = local.held.clone();
        let mut taken = m.input.is_none();
        let mut fresh = local.fresh;
        let session = local.session;
        loop {
            let run = self.section(p, m, section, &held);
            if let Some(fault) = m.fault.take() {
                return Err(fault);
            }
            if !taken && m.input.is_none() {
                taken = true;
                // In other sections it would only distinguish states that are the same.
                fresh = section != Section::Exit;
            }
            let Some(next) = run? else {
                return Ok(LocalState {
                    section,
                    fresh,
                    session,
                    held,
                    log: std::mem::take(&mut m.log),
                });
            };
            m.finish_section();
            if let Some(fault) = m.fault.take() {
                return Err(fault);
            }
            held = next;
            section = match section {
                Section::Remainder => unreachable!("the remainder makes no access"),
                Section::Doorway => Section::Waiting,
                Section::Waiting => Section::Exit,
                Section::Exit if fresh => return Err(Fault::IdleSection("exit section")),
                Section::Exit | Section::Abandon | Section::Killed => Section::Remainder,
            };
            fresh = true;
            if section == Section::Remainder {
                return if taken {
                    Ok(LocalState { section, fresh, session: Session::NONE, held, log: Vec::new() })
                } else {
                    Err(Fault::IdleSection("passage"))
                };
            }
        }
    }

    /// Runs one section; `None` if the section stopped at an access.
    fn section(
        &self,
        p: usize,
        m: &mut Replay<'_>,
        section: Section,
        held: &Item,
    ) -> Result<Option<Item>, Fault> {
        let done = match section {
            Section::Remainder => unreachable!("the remainder has no code"),
            Section::Doorway => {
                let (request, keep) = held.get::<(Q, K)>().ok_or(Fault::Impure)?;
                self.algorithm.doorway(m, p, request, keep).map(Item::new)
            }
            Section::Waiting => {
                let pass = held.get::<P>().ok_or(Fault::Impure)?;
                self.algorithm.waiting(m, p, pass).map(Item::new)
            }
            Section::Exit => {
                let pass = held.get::<P>().ok_or(Fault::Impure)?;
                self.algorithm.exit(m, p, pass).map(Item::new)
            }
            Section::Abandon => {
                let pass = held.get::<P>().ok_or(Fault::Impure)?;
                self.algorithm.abandon(m, p, pass).ok_or(Fault::Impure)?.map(Item::new)
            }
            Section::Killed => self.algorithm.killed(m, p).ok_or(Fault::Impure)?.map(Item::new),
        };
        Ok(done.ok())
    }

    /// Returns whether the algorithm has a way to abandon a place.
    fn knows_how_to_abandon(&self, p: usize, local: &LocalState) -> bool {
        let mut m = Replay::new(&[], None, true, self.mutant);
        local.held.get::<P>().is_some_and(|pass| self.algorithm.abandon(&mut m, p, pass).is_some())
    }

    /// Returns the move that begins with this choice.
    fn first(
        &self,
        p: usize,
        local: &LocalState,
        choice: Choice,
        cut: bool,
        what: &'static str,
    ) -> Result<Move, Fault> {
        let from = self.chosen(local, choice)?;
        let mut m = Replay::new(&from.log, None, cut, self.mutant);
        self.drive(p, &mut m, &from)?;
        let access = m.pending.ok_or(if choice == Choice::Go {
            Fault::Impure
        } else {
            Fault::IdleSection(what)
        })?;
        match access.kind {
            Kind::Choose(_) if choice.gives_up() => Err(Fault::ChoosesFirst(what)),
            Kind::Choose(odds) => odds.check().map(|()| Move { choice, access }),
            _ => Ok(Move { choice, access }),
        }
    }

    /// Returns the state from which the choice makes its access.
    fn chosen<'l>(
        &self,
        local: &'l LocalState,
        choice: Choice,
    ) -> Result<Cow<'l, LocalState>, Fault> {
        Ok(Cow::Owned(match choice {
            Choice::Go | Choice::Outcome(_) => return Ok(Cow::Borrowed(local)),
            Choice::Request(r) | Choice::RequestOutcome(r, _) => {
                let request = Q::all(self.size).into_iter().nth(r as usize).ok_or(Fault::Impure)?;
                let keep = local.held.get::<K>().ok_or(Fault::Impure)?;
                let session = request.session();
                let held = Item::new((request, keep));
                LocalState {
                    section: Section::Doorway,
                    fresh: true,
                    session,
                    held,
                    log: Vec::new(),
                }
            }
            Choice::Abandon => {
                let (session, held) = (local.session, local.held.clone());
                LocalState {
                    section: Section::Abandon,
                    fresh: true,
                    session,
                    held,
                    log: Vec::new(),
                }
            }
            // The process loses all that it knew.
            Choice::Kill => {
                let (session, held) = (local.session, Item::new(()));
                LocalState { section: Section::Killed, fresh: true, session, held, log: Vec::new() }
            }
        }))
    }
}

impl<A, Q, P, K> Subject for Run<A>
where
    A: for<'a> Exclusion<Replay<'a>, Request = Q, Pass = P, Keep = K> + Send + Sync,
    Q: Request,
    P: Local,
    K: Local,
{
    fn name(&self) -> &'static str {
        A::NAME
    }
    fn variant(&self) -> Option<&'static str> {
        A::VARIANT
    }
    fn claims(&self) -> Claims {
        A::CLAIMS
    }
    fn attempts(&self) -> Option<u32> {
        A::ATTEMPTS
    }
    fn size(&self) -> Size {
        self.size
    }
    fn mutant(&self) -> Option<&'static str> {
        self.mutant
    }
    fn let_kill(&mut self, most: u32) -> bool {
        let mut m = Replay::new(&[], None, true, self.mutant);
        self.kills = self.algorithm.killed(&mut m, 0).map(|_| most);
        self.kills.is_some()
    }
    fn kills(&self) -> Option<u32> {
        self.kills
    }
    fn layout(&self) -> &Layout {
        &self.layout
    }
    fn session(&self, request: u32) -> Session {
        Q::all(self.size).get(request as usize).map_or(Session::NONE, Request::session)
    }

    fn start(&self, p: usize) -> LocalState {
        let held = Item::new(self.algorithm.keep(p));
        LocalState {
            section: Section::Remainder,
            fresh: true,
            session: Session::NONE,
            held,
            log: Vec::new(),
        }
    }

    fn moves(&self, p: usize, local: &LocalState, cut: bool) -> Result<Vec<Move>, Fault> {
        if local.section == Section::Remainder {
            let requests = 0..Q::all(self.size).len() as u32;
            let first = |r| self.first(p, local, Choice::Request(r), cut, "passage");
            let moves = requests
                .map(|r| Ok(spread(first(r)?, |outcome| Choice::RequestOutcome(r, outcome))));
            return Ok(moves.collect::<Result<Vec<_>, _>>()?.concat());
        }
        let Move { access, .. } = self.first(p, local, Choice::Go, cut, "section")?;
        Ok(self.moves_at(p, local, Some(access), cut)?.to_vec())
    }

    fn moves_at(
        &self,
        p: usize,
        local: &LocalState,
        pending: Option<Access>,
        cut: bool,
    ) -> Result<Moves, Fault> {
        let Some(access) = pending else { return self.moves(p, local, cut).map(Moves::from) };
        let go = Move { choice: Choice::Go, access };
        let abandons = self.abandons && access.waits && local.section == Section::Waiting;
        let mut moves: Vec<Move> = match access.kind {
            Kind::Choose(odds) => {
                odds.check()?;
                spread(go, Choice::Outcome)
            }
            _ if abandons || self.kills.is_some() => vec![go],
            _ => return Ok(Moves::One([go])),
        };
        if abandons && self.knows_how_to_abandon(p, local) {
            moves.push(self.first(p, local, Choice::Abandon, cut, "abandon section")?);
        }
        if self.kills.is_some() {
            moves.push(self.first(p, local, Choice::Kill, cut, "death")?);
        }
        Ok(Moves::from(moves))
    }

    fn step(
        &self,
        p: usize,
        local: &LocalState,
        choice: Choice,
        value: Option<&dyn Erased>,
        cut: bool,
    ) -> Result<Stepped, Fault> {
        let from = self.chosen(local, choice)?;
        let input = match choice.outcome() {
            Some(outcome) => Input::Outcome(outcome),
            None => Input::Value(value.ok_or(Fault::Impure)?),
        };
        let mut m = Replay::new(&from.log, Some(input), cut, self.mutant);
        let local = self.drive(p, &mut m, &from)?;
        if m.input.is_some() {
            return Err(Fault::IdleSection("passage"));
        }
        Ok(Stepped { effect: m.effect.take(), local, pending: m.pending, retries: m.retries })
    }
}

/// Returns the moves that a move stands for: one for each outcome, if it makes a choice.
fn spread(step: Move, choice: impl Fn(u32) -> Choice) -> Vec<Move> {
    match step.access.kind {
        Kind::Choose(odds) => {
            (0..odds.outcomes()).map(|o| Move { choice: choice(o), ..step }).collect()
        }
        _ => vec![step],
    }
}

/// Builds an instance of any algorithm, registered or not, to run in the lab. With `abandons`,
/// processes may give up their waits.
///
/// # Errors
/// When the algorithm does not serve that size.
pub fn build<A, Q, P, K>(
    size: Size,
    mutant: Option<&'static str>,
    abandons: bool,
) -> Result<Box<dyn Subject>, Unfit>
where
    A: for<'a> Exclusion<Replay<'a>, Request = Q, Pass = P, Keep = K> + Send + Sync + 'static,
    Q: Request,
    P: Local,
    K: Local,
{
    let (algorithm, layout) = A::laid_out(size, mutant)?;
    Ok(Box::new(Run { algorithm, layout, size, mutant, abandons, kills: None }))
}
