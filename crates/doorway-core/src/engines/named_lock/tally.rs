//! The counts of a lock and its settings, in one word.

use core::fmt;

use crate::{Session, Value, one_word, plain_local};

/// How many processes wait and hold, how many slots are free, and what the lock allows: numbers of
/// 12 bits each, in one word.
///
/// ```text
/// 61       60       48       36       24     12        0
/// removed  drained  slots    session  inside free      waiting
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Tally(u64);

impl Tally {
    /// Bits of each number.
    pub(super) const WIDTH: u32 = 12;

    /// The largest of the numbers, and so of entries, slots and sessions.
    pub const MAX: u16 = (1 << Self::WIDTH) - 1;

    const FREE: u32 = Self::WIDTH;
    const INSIDE: u32 = 2 * Self::WIDTH;
    const SESSION: u32 = 3 * Self::WIDTH;
    const SLOTS: u32 = 4 * Self::WIDTH;
    const DRAINED: u32 = 5 * Self::WIDTH;
    const REMOVED: u32 = Self::DRAINED + 1;

    /// Returns a tally of `slots` slots, all free.
    #[must_use]
    pub const fn new(slots: u16) -> Self {
        Self(0).with_slots(slots).with_free(slots)
    }

    #[inline(always)]
    const fn number(self, shift: u32) -> u16 {
        (self.0 >> shift) as u16 & Self::MAX
    }

    #[inline(always)]
    const fn with(self, shift: u32, number: u16) -> Self {
        Self(self.0 & !((Self::MAX as u64) << shift) | ((number & Self::MAX) as u64) << shift)
    }

    /// Returns how many entries wait.
    #[inline(always)]
    #[must_use]
    pub const fn waiting(self) -> u16 {
        self.number(0)
    }

    /// Returns how many slots are free.
    #[inline(always)]
    #[must_use]
    pub const fn free(self) -> u16 {
        self.number(Self::FREE)
    }

    /// Returns how many entries hold a slot.
    #[inline(always)]
    #[must_use]
    pub const fn inside(self) -> u16 {
        self.number(Self::INSIDE)
    }

    /// Returns the session of the holders, if there are any.
    #[inline(always)]
    #[must_use]
    pub const fn session(self) -> Session {
        Session(self.number(Self::SESSION) as u32)
    }

    /// Returns how many slots there are. This is a setting: recovery keeps it.
    #[inline(always)]
    #[must_use]
    pub const fn slots(self) -> u16 {
        self.number(Self::SLOTS)
    }

    /// Returns whether the lock is drained: no slot is granted. A setting, too.
    #[inline(always)]
    #[must_use]
    pub const fn drained(self) -> bool {
        self.0 >> Self::DRAINED & 1 != 0
    }

    /// Returns whether the lock has been removed: no slot is ever granted again. A setting, too.
    #[inline(always)]
    #[must_use]
    pub const fn removed(self) -> bool {
        self.0 >> Self::REMOVED & 1 != 0
    }

    /// Returns the tally of a removed lock.
    #[must_use]
    pub const fn with_removed(self) -> Self {
        Self(self.0 | 1 << Self::REMOVED)
    }

    /// Returns the tally with this many slots.
    #[must_use]
    pub const fn with_slots(self, slots: u16) -> Self {
        self.with(Self::SLOTS, slots)
    }

    /// Returns the tally, drained or not.
    #[must_use]
    pub const fn with_drained(self, drained: bool) -> Self {
        Self(self.0 & !(1 << Self::DRAINED) | (drained as u64) << Self::DRAINED)
    }

    /// Returns the tally with this many free slots.
    pub(super) const fn with_free(self, free: u16) -> Self {
        self.with(Self::FREE, free)
    }

    /// Returns the settings alone, with nothing counted.
    pub(super) const fn settings(self) -> Self {
        Self(self.0 & (1 << Self::DRAINED | 1 << Self::REMOVED)).with_slots(self.slots())
    }

    /// Returns whether no process holds or waits, and a new process would be granted a slot.
    #[inline(always)]
    pub(super) const fn is_quiet(self) -> bool {
        self.waiting() == 0 && self.inside() == 0 && self.has_room()
    }

    /// Counts one more waiter.
    #[inline(always)]
    pub(super) const fn one_more_waits(self) -> Self {
        Self(self.0.wrapping_add(1))
    }

    /// Counts one waiter less, if there was one.
    #[inline(always)]
    pub(super) const fn one_less_waits(self) -> Self {
        if self.waiting() == 0 { self } else { Self(self.0 - 1) }
    }

    /// Counts one more holder, and records that all holders are of this session.
    #[inline(always)]
    pub(super) const fn one_more_inside(self, session: Session) -> Self {
        Self(self.0.wrapping_add(1 << Self::INSIDE)).with(Self::SESSION, session.0 as u16)
    }

    /// Counts one holder less, if there was one.
    #[inline(always)]
    pub(super) const fn one_less_inside(self) -> Self {
        if self.inside() == 0 { self } else { Self(self.0 - (1 << Self::INSIDE)) }
    }

    /// Counts one free slot less; there was one.
    #[inline(always)]
    pub(super) const fn one_less_free(self) -> Self {
        Self(self.0.wrapping_sub(1 << Self::FREE))
    }

    /// Counts one free slot more, unless all are free.
    #[inline(always)]
    pub(super) const fn one_more_free(self) -> Self {
        if self.free() >= self.slots() { self } else { Self(self.0 + (1 << Self::FREE)) }
    }

    /// Returns the top of the stack of free slots: how many slots are taken.
    #[inline(always)]
    pub(super) const fn top(self) -> u32 {
        (self.slots() as u32).saturating_sub(self.free() as u32)
    }

    /// Returns whether there is a slot that may be granted.
    #[inline(always)]
    #[must_use]
    pub const fn has_room(self) -> bool {
        self.free() > 0 && !self.drained() && !self.removed()
    }

    /// Returns whether a process of this session may be granted a slot.
    #[inline(always)]
    #[must_use]
    pub const fn admits(self, session: Session) -> bool {
        self.has_room() && (self.inside() == 0 || session.0 == self.session().0 && session.0 != 0)
    }
}

impl fmt::Debug for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} wait, {} of {} free, {} inside",
            self.waiting(),
            self.free(),
            self.slots(),
            self.inside()
        )?;
        if self.inside() > 0 {
            write!(f, " for {}", self.session().0)?;
        }
        if self.removed() {
            return f.write_str(", removed");
        }
        if self.drained() { f.write_str(", drained") } else { Ok(()) }
    }
}

plain_local!(Tally);

impl Value for Tally {
    one_word!(|tally| tally.0, |word| Self(word));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_shared_and_no_session_is_not() {
        let one = |session| Tally::new(2).one_less_free().one_more_inside(session);
        assert!(one(Session(2)).admits(Session(2)) && !one(Session(2)).admits(Session(3)));
        assert!(!one(Session::NONE).admits(Session::NONE));
        assert!(Tally::new(2).admits(Session::NONE));
        assert!(!one(Session(2)).with_drained(true).admits(Session(2)));
        assert!(
            !one(Session(2)).with_removed().admits(Session(2))
                && !Tally::new(2).with_removed().is_quiet()
        );
        let both = one(Session(2)).one_less_free().one_more_inside(Session(2));
        assert!(!both.admits(Session(2)), "there are two slots");
        assert_eq!((Tally::new(2).top(), one(Session(2)).top(), both.top()), (0, 1, 2));
    }

    #[test]
    fn numbers_keep_apart() {
        let tally =
            Tally::new(Tally::MAX).one_more_waits().one_more_inside(Session(9)).one_less_free();
        assert_eq!((tally.waiting(), tally.free(), tally.inside()), (1, Tally::MAX - 1, 1));
        assert_eq!(
            (tally.session(), tally.slots(), tally.drained()),
            (Session(9), Tally::MAX, false)
        );
        let back = tally.one_less_waits().one_less_inside().one_more_free();
        assert_eq!(
            (back.waiting(), back.free(), back.inside(), back.slots()),
            (0, Tally::MAX, 0, Tally::MAX)
        );
        assert_eq!(
            Tally::new(3).one_less_inside().one_less_waits(),
            Tally::new(3),
            "there was none"
        );
        assert_eq!(
            tally.with_drained(true).settings(),
            Tally::new(Tally::MAX).with_drained(true).with_free(0)
        );
        assert!(tally.with_removed().settings().removed() && !tally.with_removed().drained());
        assert_eq!(Tally::from_word(tally.with_drained(true).word(), ()), tally.with_drained(true));
    }
}
