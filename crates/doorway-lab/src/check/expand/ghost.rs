//! What a second search remembers beside the states: which processes were before which, or how
//! often a register has changed.

use super::{Expander, Step, event};
use crate::{
    check::pack::{Key, bits_for},
    subject::{Region, conflict},
};

/// What is remembered of each process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ghost {
    /// Nothing.
    Nothing,
    /// The processes that keep it out, were through their doorway when it began, and have not
    /// entered since. This is remembered until its passage is over.
    BeforeThroughout,
    /// How often a register has changed since the process has read it in this passage.
    Changes(Changes),
}

/// What an invariant says of a register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Changes {
    pub(crate) register: u16,
    /// The line in which a process reads it.
    pub(crate) line: u32,
    /// The largest number of changes allowed after that.
    pub(crate) most: u32,
}

impl Ghost {
    /// Returns the bits that this takes, for each of `n` processes.
    pub(crate) fn bits(self, n: usize) -> u32 {
        match self {
            Self::Nothing => 0,
            Self::BeforeThroughout => n as u32,
            // One value if the process has not looked, and one for each number of changes since it
            // looked.
            Self::Changes(changes) => bits_for(changes.most as usize + 2),
        }
    }
}

impl<const W: usize> Expander<'_, '_, W> {
    /// Updates what is remembered after a step, and notes what the step violates.
    pub(super) fn remember(&mut self, step: &mut Step<W>) {
        match self.rules.ghost {
            Ghost::Nothing => {}
            Ghost::Changes(changes) => self.count_changes(step, changes.most),
            Ghost::BeforeThroughout => self.keep_order(step),
        }
    }

    fn keep_order(&mut self, step: &mut Step<W>) {
        let (p, n) = (step.p, self.plan.locals.len());
        if step.events & event::BEGINS != 0 {
            let (conflicting, _) = self.waiting_beside(&step.key, p);
            self.plan.ghosts[p].set(&mut step.key, conflicting);
        }
        if step.events & (event::ENTERS | event::ABANDONS) != 0 {
            for q in 0..n {
                let before = self.plan.ghosts[q].get(&step.key);
                self.plan.ghosts[q].set(&mut step.key, before & !(1 << p));
            }
        }
        if step.events & event::LEAVES != 0 {
            self.plan.ghosts[p].set(&mut step.key, 0);
        }
    }

    /// Returns the other processes that are through their doorway and not yet in: first those that
    /// keep `p` out, then those that have asked for the same.
    pub(crate) fn waiting_beside(&mut self, key: &Key<W>, p: usize) -> (u32, u32) {
        let mine = self.session(key, p);
        let (mut conflicting, mut alike) = (0, 0);
        for q in (0..self.plan.locals.len()).filter(|&q| q != p) {
            if self.region(key, q) == Region::Waiting {
                let theirs = self.session(key, q);
                conflicting |= u32::from(conflict(mine, theirs)) << q;
                alike |= u32::from(mine == theirs) << q;
            }
        }
        (conflicting, alike)
    }

    fn count_changes(&mut self, step: &mut Step<W>, most: u32) {
        if step.events & event::CHANGES != 0 {
            for ghost in &self.plan.ghosts {
                let seen = ghost.get(&step.key);
                if seen > most {
                    step.events |= event::BREAKS;
                } else if seen > 0 {
                    ghost.set(&mut step.key, seen + 1);
                }
            }
        }
        if step.events & event::LOOKS != 0 {
            self.plan.ghosts[step.p].set(&mut step.key, 1);
        }
        if step.events & event::LEAVES != 0 {
            self.plan.ghosts[step.p].set(&mut step.key, 0);
        }
    }

    /// Returns the processes that no active process keeps out.
    ///
    /// If [`Ghost::BeforeThroughout`] is remembered, returns the processes that were through their
    /// doorway before every active process that keeps them out began.
    pub(crate) fn unopposed(&mut self, key: &Key<W>) -> u16 {
        let n = self.plan.locals.len();
        let ordered = self.rules.ghost == Ghost::BeforeThroughout;
        let mut set = 0;
        for p in 0..n {
            let entry = match self.region(key, p) {
                Region::Doorway => !ordered,
                Region::Waiting => true,
                _ => false,
            };
            let mine = self.session(key, p);
            let free = entry
                && (0..n).all(|q| {
                    q == p
                        || self.region(key, q) == Region::Remainder
                        || !conflict(mine, self.session(key, q))
                        || ordered && self.plan.ghosts[q].get(key) >> p & 1 == 1
                });
            set |= u16::from(free) << p;
        }
        set
    }
}
