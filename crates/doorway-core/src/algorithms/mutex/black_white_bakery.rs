//! Taubenfeld's Black-White Bakery, as printed in He, Gopalakrishnan and Gafni: *Group mutual
//! exclusion in linear time and space* (TCS 2018), Figure 3, with the *else* branch that the figure
//! leaves out (`docs/errata.md`).
//!
//! Promises what the Bakery promises, with numbers of at most n. The bound needs the colour and the
//! number of a token in **one** register. If a process reads them one after the other, they can
//! belong to different tokens, and the bound no longer holds (mutant `split-token`).

use core::{
    fmt,
    ops::ControlFlow::{Break, Continue},
};

use crate::{
    Algorithm, Array, Claims, Exclusion, Fate, Home, Homes, Layout, Mutant, Primitive, Problem,
    Property, Register, RegisterKind, Registers, Rmr, Size, Unfit, Value, one_word, others,
    plain_local,
};

/// The colour of a token.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Color {
    /// The colour that `GlobalColor` starts with.
    Black,
    /// The other colour.
    White,
}

impl Color {
    #[inline(always)]
    pub(crate) fn opposite(self) -> Self {
        match self {
            Self::Black => Self::White,
            Self::White => Self::Black,
        }
    }
}

plain_local!(Color, ColoredTicket);

impl Value for Color {
    one_word!(|color| color as u64, |word| if word == 0 { Self::Black } else { Self::White });

    fn magnitude(&self) -> u64 {
        0
    }
}

/// A token: colour and number in one register.
///
/// The number is bounded, so it is a plain integer, which the lab does not relabel.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ColoredTicket {
    /// The generation of the token.
    pub color: Color,
    /// 0 means none.
    pub number: u32,
}

/// As the paper writes it: `(Black, 2)`.
impl fmt::Debug for ColoredTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({:?}, {})", self.color, self.number)
    }
}

impl Value for ColoredTicket {
    one_word!(|token| u64::from(token.number) << 1 | token.color as u64, |word| Self {
        color: if word & 1 == 0 { Color::Black } else { Color::White },
        number: (word >> 1) as u32,
    });

    fn magnitude(&self) -> u64 {
        u64::from(self.number)
    }
}

/// Taubenfeld's Black-White Bakery.
#[derive(Debug)]
pub struct BlackWhiteBakery {
    n: usize,
    global_color: Register<Color>,
    choosing: Array<bool>,
    token: Array<ColoredTicket>,
}

impl Algorithm for BlackWhiteBakery {
    const NAME: &'static str = "black-white-bakery";

    const CLAIMS: Claims = Claims {
        problem: Problem::Mutex,
        paper: "002 He, Gopalakrishnan, Gafni 2018, after Taubenfeld 2004",
        figure: "Fig. 3",
        primitives: &[Primitive::ReadWrite],
        properties: &[
            Property::MutualExclusion,
            Property::Fcfs,
            Property::StarvationFreedom,
            Property::DeadlockFreedom,
            Property::BoundedExit,
            Property::BoundedRegisters,
        ],
        refuted: &[],
        invariants: &[],
        registers: RegisterKind::Atomic,
        crashes: |_| 0,
        bound: Some(|size| size.n as u64),
        gap: |_| 2,
        values: &[],
        abandons: true,
        rmr: Rmr { cc: "O(n)", dsm: "unbounded" },
        min_n: 1,
        max_n: None,
        mutants: MUTANTS,
    };

    fn new(layout: &mut Layout, size: Size) -> Result<Self, Unfit> {
        super::fits(Self::NAME, size)?;
        let none = ColoredTicket { color: Color::Black, number: 0 };
        Ok(Self {
            n: size.n,
            global_color: layout.register("GlobalColor", Home::Nobody, Color::Black),
            choosing: layout.array("Choosing", size.n, Homes::Column, false),
            token: layout.array("Token", size.n, Homes::Column, none),
        })
    }
}

impl BlackWhiteBakery {
    /// Reads `Token[j]` whole. The mutant `split-token` reads the colour first and the number
    /// later.
    #[inline(always)]
    fn token<M: Registers>(&self, m: &mut M, j: usize) -> Result<ColoredTicket, M::Halt> {
        if m.mutant("split-token") {
            let color = m.scope(|m| Ok(m.read(self.token.at(j))?.color))?;
            let number = m.scope(|m| Ok(m.read(self.token.at(j))?.number))?;
            return Ok(ColoredTicket { color, number });
        }
        m.read(self.token.at(j))
    }

    /// Lines 9-14 for one j: waits until j's token does not come before `mine`.
    #[inline(always)]
    fn wait_for<M: Registers>(
        &self,
        m: &mut M,
        p: usize,
        mine: ColoredTicket,
        j: usize,
    ) -> Result<(), M::Halt> {
        m.line(9);
        let same = m.scope(|m| Ok(self.token(m, j)?.color == mine.color))?;
        if same {
            m.line(10);
            return m.repeat((), |m, ()| {
                let other = self.token(m, j)?;
                let after = (mine.number, p) < (other.number, j);
                let passed = other.color != mine.color && !m.mutant("without-line-12");
                Ok(if after || passed || other.number == 0 { Break(()) } else { Continue(()) })
            });
        }
        if m.mutant("as-printed") {
            return Ok(());
        }
        m.line(14); // not printed: else
        m.repeat((), |m, ()| {
            if m.scope(|m| Ok(m.read(self.global_color)? != mine.color))? {
                return Ok(Break(()));
            }
            let other = self.token(m, j)?;
            let joined = other.color == mine.color && !m.mutant("else-without-equal-colors");
            Ok(if other.number == 0 || joined { Break(()) } else { Continue(()) })
        })
    }
}

impl<M: Registers> Exclusion<M> for BlackWhiteBakery {
    type Request = ();
    /// `Token[p]`
    type Pass = ColoredTicket;
    type Keep = ();

    fn keep(&self, _: usize) {}

    #[inline]
    fn doorway(&self, m: &mut M, p: usize, (): (), (): ()) -> Result<ColoredTicket, M::Halt> {
        if !m.drops(3) {
            m.line(3);
            m.write(self.choosing.at(p), true)?;
        }
        m.line(4);
        let color = m.read(self.global_color)?;
        if !m.mutant("color-not-announced") {
            m.write(self.token.at(p), ColoredTicket { color, number: 0 })?;
        }
        m.line(5);
        let any = m.mutant("numbers-of-any-color");
        let max = m.fold(others(p, self.n), 0, |m, max: u32, j| {
            let other = self.token(m, j)?;
            Ok(if any || other.color == color { max.max(other.number) } else { max })
        })?;
        let mine = ColoredTicket { color, number: max + 1 };
        m.write(self.token.at(p), mine)?;
        m.line(6);
        m.write(self.choosing.at(p), false)?;
        Ok(mine)
    }

    #[inline]
    fn waiting(&self, m: &mut M, p: usize, mine: ColoredTicket) -> Result<ColoredTicket, M::Halt> {
        m.each(others(p, self.n), |m, j| {
            if !m.drops(8) {
                m.line(8);
                m.wait(self.choosing.at(j), |choosing| !choosing)?;
            }
            self.wait_for(m, p, mine, j)
        })?;
        Ok(mine)
    }

    #[inline]
    fn exit(&self, m: &mut M, p: usize, mine: ColoredTicket) -> Result<(), M::Halt> {
        if m.mutant("swaps-exit") {
            m.write(self.token.at(p), ColoredTicket { number: 0, ..mine })?;
            return m.write(self.global_color, mine.color.opposite());
        }
        if !m.mutant("never-flips") {
            m.line(if mine.color == Color::Black { 18 } else { 20 });
            m.write(self.global_color, mine.color.opposite())?;
        }
        m.line(22);
        m.write(self.token.at(p), ColoredTicket { number: 0, ..mine })
    }

    fn abandon(&self, m: &mut M, p: usize, mine: ColoredTicket) -> Option<Result<(), M::Halt>> {
        m.line(22);
        Some(m.write(self.token.at(p), ColoredTicket { number: 0, ..mine }))
    }
}

const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "as-printed",
        change: "Figure 3 prints no else branch: tokens of different colours do not wait for one another",
        fate: Fate::breaks(Property::MutualExclusion, 2),
    },
    Mutant {
        name: "split-token",
        change: "colour and number are read one after the other",
        fate: Fate::breaks(Property::BoundedRegisters, 2),
    },
    Mutant {
        name: "without-line-3",
        change: "choosing is not announced",
        fate: Fate::breaks(Property::MutualExclusion, 2),
    },
    Mutant {
        name: "without-line-8",
        change: "nobody waits for a choice in progress",
        fate: Fate::breaks(Property::MutualExclusion, 2),
    },
    Mutant {
        name: "without-line-12",
        change: "a token that changed its colour is still waited for by its number",
        fate: Fate::breaks(Property::DeadlockFreedom, 2),
    },
    Mutant {
        name: "else-without-equal-colors",
        change: "in the else branch, a token that took my colour is still waited for",
        fate: Fate::breaks(Property::DeadlockFreedom, 2),
    },
    Mutant {
        name: "never-flips",
        change: "GlobalColor is never changed: a Bakery with bounded hopes",
        fate: Fate::breaks(Property::BoundedRegisters, 2),
    },
    Mutant {
        name: "numbers-of-any-color",
        change: "line 5 counts tokens of both colours",
        fate: Fate::breaks(Property::BoundedRegisters, 2),
    },
    Mutant {
        name: "swaps-exit",
        change: "the number is dropped before the colour is flipped",
        fate: Fate::breaks(Property::BoundedRegisters, 3),
    },
    Mutant {
        name: "color-not-announced",
        change: "line 4 keeps the colour to itself until line 5 writes the whole token",
        fate: Fate::Harmless,
    },
];
