//! A bounded timestamp system from reads and writes alone, with O(n) of them per operation.
//!
//! **A reconstruction**, not the published text. It is in the spirit of Dwork, Herlihy, Plotkin and
//! Waarts, *Time-lapse snapshots* (SIAM J. Comput. 28, 1999), which Zehavi 2014 cites for its
//! timestamp system. Labels have nested components in 1..=5 (after Dolev and Shavit; Gawlick, Lynch
//! and Shavit). Processes read them with a weak snapshot, which may return a label that was
//! replaced during the snapshot. All that is known of this system comes from exploration and tests:
//! `docs/timestamps.md`.
//!
//! | register | writer | readers | content |
//! |---|---|---|---|
//! | `T[q]` | q | all | the colour that scanner q shows to each updater |
//! | `A[p]` | p | all | the colour that updater p announces to each scanner |
//! | `M[p]` | p | all | p's label |
//! | `S[p][q]` | p | q | p's label before an update that a snapshot of q overlaps, and the colour that the update answers |
//!
//! The order of the accesses *is* the algorithm: some mutants below change nothing but this order.
//! A Scan makes 4(n-1) reads and one write. A Label makes 6(n-1) reads and at most n+2 writes. Both
//! are wait-free. A colour has 2 bits and a component has 3, so all registers fit in machine words
//! for n ≤ 21 and in double words for n ≤ 42.

use alloc::{vec, vec::Vec};

use super::{
    LabelScan, Timestamps,
    label::{self, LARGEST, later, ranks},
};
use crate::{
    Array, Grid, Homes, Layout, Memory, Primitive, Registers,
    digits::{Digits, Format},
    others, plain_local,
};

/// Label and Scan from reads and writes, with labels that do not grow.
#[derive(Debug)]
pub struct Bounded {
    n: usize,
    shown: Array<Digits>,
    announced: Array<Digits>,
    label: Array<Digits>,
    saved: Grid<Digits>,
    /// The value with which a component starts.
    lowest: u32,
}

/// What a process remembers of its own registers.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Mirrors {
    /// `T[p]`
    shown: Digits,
    /// The colour in each `S[p][q]`.
    answered: Digits,
    /// `M[p]`
    label: Digits,
}

plain_local!(Mirrors);

const COLOURS: u32 = 4;

fn colours(n: usize) -> Format {
    Format::up_to(COLOURS as usize - 1, n)
}

/// Returns a label followed by a colour.
fn with_colour(label: &Digits, colour: u32) -> Digits {
    let mut both = Digits::new(Format::up_to(LARGEST, label.len() + 1), colour);
    label.iter().enumerate().for_each(|(h, component)| both.set(h, component));
    both
}

fn colour_of(saved: &Digits) -> u32 {
    saved.get(saved.len() - 1)
}

/// Returns the label that is in front of the colour.
fn label_of(saved: &Digits) -> Digits {
    let mut label = Digits::new(label::format(saved.len()), 0);
    (0..saved.len() - 1).for_each(|h| label.set(h, saved.get(h)));
    label
}

impl Timestamps for Bounded {
    const NAME: &'static str = "bounded";
    const PRIMITIVES: &'static [Primitive] = &[Primitive::ReadWrite];
    const BOUND: fn(usize) -> u64 = |n| if n == 1 { 0 } else { LARGEST as u64 };

    type Mirrors = Mirrors;

    fn new(layout: &mut Layout, n: usize) -> Self {
        let lowest = if layout.mutant("no-low-nodes") { 3 } else { 1 };
        let first = Digits::new(label::format(n), lowest);
        let saved = with_colour(&first, 0);
        let none = Digits::new(colours(n), 0);
        Self {
            n,
            shown: layout.formatted_array("T", n, Homes::Column, none.clone(), colours(n)),
            announced: layout.formatted_array("A", n, Homes::Column, none, colours(n)),
            label: layout.formatted_array("M", n, Homes::Column, first, label::format(n)),
            // Lives with its reader: in the DSM model a scanner then reads its own memory.
            saved: layout.formatted_grid(
                "S",
                (n, n),
                Homes::Column,
                saved,
                Format::up_to(LARGEST, n),
            ),
            lowest,
        }
    }

    fn mirrors(&self, _: usize) -> Mirrors {
        let none = Digits::new(colours(self.n), 0);
        Mirrors {
            shown: none.clone(),
            answered: none,
            label: Digits::new(label::format(self.n), self.lowest),
        }
    }
}

impl Bounded {
    /// Returns the colours that `q` is to show: a new colour to each process.
    #[inline]
    fn colours<M: Registers>(
        &self,
        m: &mut M,
        q: usize,
        shown: &Digits,
    ) -> Result<Digits, M::Halt> {
        let n = self.n;
        let first = Digits::new(colours(n), 0);
        if m.mutant("answers-before-announcements") {
            let answered = m.fold(others(q, n), first, |m, mut seen, p| {
                seen.set(p, colour_of(&m.read(self.saved.at(p, q))?));
                Ok(seen)
            })?;
            return m.fold(others(q, n), answered, |m, mut seen, p| {
                let announced = m.read(self.announced.at(p))?.get(q);
                seen.set(p, colour(m, announced, seen.get(p), shown.get(p)));
                Ok(seen)
            });
        }
        let announced = m.fold(others(q, n), first, |m, mut seen, p| {
            seen.set(p, m.read(self.announced.at(p))?.get(q));
            Ok(seen)
        })?;
        m.fold(others(q, n), announced, |m, mut seen, p| {
            let answered = colour_of(&m.read(self.saved.at(p, q))?);
            seen.set(p, colour(m, seen.get(p), answered, shown.get(p)));
            Ok(seen)
        })
    }

    /// Returns the labels of all processes, and the colours that `q` showed for them.
    ///
    /// Each label was current at some time during the call, or was replaced during it.
    #[inline]
    fn snapshot<M: Registers>(
        &self,
        m: &mut M,
        q: usize,
        mirrors: &Mirrors,
    ) -> Result<(Vec<Digits>, Digits), M::Halt> {
        let shown = m.scope(|m| self.colours(m, q, &mirrors.shown))?;
        m.write(self.shown.at(q), shown.clone())?;
        let labels =
            m.fold(others(q, self.n), vec![mirrors.label.clone(); self.n], |m, mut labels, p| {
                labels[p] = m.scope(|m| {
                    let current = m.read(self.label.at(p))?;
                    if m.mutant("plain-collect") {
                        return Ok(current);
                    }
                    let saved = m.read(self.saved.at(p, q))?;
                    Ok(if colour_of(&saved) == shown.get(p) { label_of(&saved) } else { current })
                })?;
                Ok(labels)
            })?;
        Ok((labels, shown))
    }

    /// Returns a label for `p` later than all that it sees, and the colours that it showed for
    /// that.
    #[inline]
    fn choose<M: Registers>(
        &self,
        m: &mut M,
        p: usize,
        mirrors: &Mirrors,
    ) -> Result<(Digits, Digits), M::Halt> {
        m.scope(|m| {
            let (labels, shown) = self.snapshot(m, p, mirrors)?;
            let ranks = ranks(&labels);
            let last = ranks.iter().position(|rank| rank as usize == self.n - 1).unwrap_or(p);
            let low = m.mutant("low-threshold");
            let crowd =
                |h, component| if low && component < 3 { self.n - h - 1 } else { self.n - h };
            Ok((later(p, &labels, last, self.lowest, crowd), shown))
        })
    }

    /// Returns the colours that the other processes show to `p`.
    #[inline]
    fn looked_at<M: Registers>(&self, m: &mut M, p: usize) -> Result<Digits, M::Halt> {
        m.fold(others(p, self.n), Digits::new(colours(self.n), 0), |m, mut seen, q| {
            seen.set(q, m.read(self.shown.at(q))?.get(p));
            Ok(seen)
        })
    }

    /// Saves `p`'s label for each scanner that began a snapshot since `p` last did this. Skips a
    /// scanner that has begun another snapshot meanwhile.
    #[inline]
    fn hand_over<M: Registers>(
        &self,
        m: &mut M,
        p: usize,
        seen: &Digits,
        mirrors: Mirrors,
    ) -> Result<Mirrors, M::Halt> {
        if !m.mutant("no-announcement") {
            m.write(self.announced.at(p), seen.clone())?;
        }
        m.fold(others(p, self.n), mirrors, |m, mut mirrors, q| {
            let colour = seen.get(q);
            let still = m.test(self.shown.at(q), |shown| shown.get(p) == colour)?
                || m.mutant("no-second-look");
            if still && colour != mirrors.answered.get(q) {
                m.write(self.saved.at(p, q), with_colour(&mirrors.label, colour))?;
                mirrors.answered.set(q, colour);
            }
            Ok(mirrors)
        })
    }
}

/// Returns a colour that is none of the three given ones.
#[inline]
fn colour<M: Memory>(m: &M, announced: u32, answered: u32, shown: u32) -> u32 {
    // One of the four colours is always left.
    let other_than = |colours: u32, taken: &[u32]| {
        (0..colours).find(|colour| !taken.contains(colour)).unwrap_or(announced)
    };
    if m.mutant("one-bit-handshake") {
        return other_than(2, &[answered]);
    }
    if m.mutant("colour-shown-before") {
        return other_than(COLOURS, &[announced, answered]);
    }
    if m.mutant("colour-answered-before") {
        return other_than(COLOURS, &[announced, shown]);
    }
    if m.mutant("three-colours") {
        return other_than(3, &[announced, answered, shown]);
    }
    other_than(COLOURS, &[announced, answered, shown])
}

impl<M: Registers> LabelScan<M> for Bounded {
    #[inline]
    fn label(&self, m: &mut M, p: usize, mirrors: Mirrors) -> Result<Mirrors, M::Halt> {
        // The handshake comes after the snapshot: the label saved for a scanner must not be older
        // than the label that it replaces.
        let early =
            if m.mutant("handshake-before-snapshot") { Some(self.looked_at(m, p)?) } else { None };
        let (label, shown) = self.choose(m, p, &mirrors)?;
        let mirrors = m.scope(|m| {
            let seen = match &early {
                Some(seen) => seen.clone(),
                None => self.looked_at(m, p)?,
            };
            self.hand_over(m, p, &seen, Mirrors { shown: shown.clone(), ..mirrors.clone() })
        })?;
        // Written even if the label is the same: readers must be able to tell that the operation is
        // over.
        m.write(self.label.at(p), label.clone())?;
        Ok(Mirrors { label, ..mirrors })
    }

    #[inline]
    fn scan(&self, m: &mut M, p: usize, mirrors: Mirrors) -> Result<(Digits, Mirrors), M::Halt> {
        let (ranks, shown) = m.scope(|m| {
            let (labels, shown) = self.snapshot(m, p, &mirrors)?;
            Ok((ranks(&labels), shown))
        })?;
        Ok((ranks, Mirrors { shown, ..mirrors }))
    }
}

/// The mutants: the name and the change of each.
///
/// A test of the timestamp system catches every mutant.
pub const MUTANTS: &[(&str, &str)] = &[
    ("one-bit-handshake", "a scanner shows the other of two colours"),
    ("no-announcement", "an updater does not say which colours it is about to answer"),
    ("no-second-look", "an updater answers a colour without looking whether it is still shown"),
    ("colour-shown-before", "a scanner may show the colour that it showed last time"),
    ("colour-answered-before", "a scanner may show the colour that was answered last"),
    (
        "three-colours",
        "there are three colours; where all are taken, the one that is announced is shown",
    ),
    ("answers-before-announcements", "a scanner reads what was answered before what is announced"),
    ("handshake-before-snapshot", "an updater looks for scanners before it looks at the labels"),
    ("plain-collect", "a scanner takes every label as it finds it"),
    ("no-low-nodes", "components go round in 3 → 4 → 5 → 3 from the start"),
    ("low-threshold", "a level is left at 1 and 2 when one process fewer shares it"),
];
