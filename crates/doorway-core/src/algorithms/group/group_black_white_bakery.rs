//! The Black and White Bakery GME algorithm (BWBGME) of He, Gopalakrishnan and Gafni: *Group mutual
//! exclusion in linear time and space* (TCS 2018), Figures 4 to 6. Line numbers are those of the
//! paper's text (`docs/errata.md`).
//!
//! Promises what the Generalized Lamport's Bakery promises, with numbers of at most n + 1.
//! Invariant 1 keeps them there: `GlobalColor` is flipped at most once from when a process has read
//! its colour to the end of its passage.

use core::fmt;

use super::wait_either;
use crate::{
    Algorithm, Array, Claims, Exclusion, Fate, Home, Homes, Invariant, Layout, Mutant, Property,
    Register, Registers, Session, Setting, Size, Unfit, Value, algorithms::group::GroupBakery,
    algorithms::mutex::Color, one_word, others, plain_local,
};

/// A token: session, colour and number in one register.
///
/// The number is bounded, so it is a plain integer, which the lab does not relabel.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Token {
    /// The session that the owner requests; 0 means none.
    pub session: Session,
    /// The generation of the token; `None` is the paper's ⊥.
    pub color: Option<Color>,
    /// 0 means none.
    pub number: u32,
}

impl Token {
    pub(super) const NONE: Self = Self { session: Session::NONE, color: None, number: 0 };
}

/// As the paper writes it: `(2, Black, 1)`, `(2, ⊥, 0)`.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.color {
            Some(color) => write!(f, "({:?}, {color:?}, {})", self.session, self.number),
            None => write!(f, "({:?}, ⊥, {})", self.session, self.number),
        }
    }
}

plain_local!(Token);

impl Value for Token {
    // Number: 30 bits, colour: 2, session: 32.
    one_word!(
        |token| {
            let color = token.color.map_or(0, |color| color as u64 + 1);
            u64::from(token.number) << 34 | color << 32 | u64::from(token.session.0)
        },
        |word| Self {
            session: Session(word as u32),
            color: match word >> 32 & 3 {
                0 => None,
                1 => Some(Color::Black),
                _ => Some(Color::White),
            },
            number: (word >> 34) as u32,
        }
    );

    fn magnitude(&self) -> u64 {
        u64::from(self.number)
    }
}

/// The Black and White Bakery GME algorithm.
#[derive(Debug)]
pub struct GroupBlackWhiteBakery {
    n: usize,
    global_color: Register<Color>,
    token: Array<Token>,
    choosing: Array<bool>,
}

pub(super) const ONE_FLIP: &str = "invariant:one-flip";

impl Algorithm for GroupBlackWhiteBakery {
    const NAME: &'static str = "group-black-white-bakery";

    const CLAIMS: Claims = Claims {
        paper: "002 He, Gopalakrishnan, Gafni 2018, after Taubenfeld 2004",
        figure: "Figs. 4-6",
        properties: &[
            Property::SessionExclusion,
            Property::Fcfs,
            Property::ConcurrentEntry,
            Property::StarvationFreedom,
            Property::DeadlockFreedom,
            Property::BoundedExit,
            Property::BoundedRegisters,
            Property::Invariant(ONE_FLIP),
        ],
        invariants: &[Invariant {
            name: ONE_FLIP,
            says: "Invariant 1, Lemma 9: GlobalColor is not flipped twice from line 5 to the end of a passage",
            register: "GlobalColor",
            line: 5,
            most: 1,
        }],
        bound: Some(|size| size.n as u64 + 1),
        // The algorithm relies on this: a process with a number of 2 or more has been inside after
        // the process from which it has the number. If a process gives up its place, two sessions
        // can be inside at once (docs/algorithms/group-black-white-bakery.md).
        abandons: false,
        mutants: MUTANTS,
        ..GroupBakery::CLAIMS
    };

    fn new(layout: &mut Layout, size: Size) -> Result<Self, Unfit> {
        super::fits::<Self>(size)?;
        Ok(Self {
            n: size.n,
            global_color: layout.register("GlobalColor", Home::Nobody, Color::Black),
            token: layout.array("Token", size.n, Homes::Column, Token::NONE),
            choosing: layout.array("Choosing", size.n, Homes::Column, false),
        })
    }
}

/// OPPOSITECOLOR, Figure 6: returns whether an active process has the other colour.
#[inline(always)]
pub(super) fn opposite_color<M: Registers>(
    m: &mut M,
    tokens: &Array<Token>,
    (p, n): (usize, usize),
    mine: Token,
) -> Result<bool, M::Halt> {
    let opposite = mine.color.map(Color::opposite);
    m.scope(|m| {
        let found = m.find(others(p, n), |m, j| {
            m.test(tokens.at(j), |other| other.session != Session::NONE && other.color == opposite)
        })?;
        Ok(found.is_some())
    })
}

impl GroupBlackWhiteBakery {
    /// Lines 17-22 for one j: waits until j does not come before p.
    #[inline(always)]
    fn wait_for<M: Registers>(
        &self,
        m: &mut M,
        p: usize,
        mine: Token,
        j: usize,
    ) -> Result<(), M::Halt> {
        let mycolor = mine.color;
        let admits = |token: Token| mine.session.admits(token.session);
        if !m.drops(17) {
            m.line(17);
            wait_either(m, self.choosing.at(j), |choosing| !choosing, self.token.at(j), admits)?;
        }
        m.line(18);
        if m.test(self.token.at(j), |token| token.color == mycolor)? {
            m.line(19);
            let stays = m.mutant("line-19-minds-other-color");
            return m.wait(self.token.at(j), |token| {
                (mine.number, p) < (token.number, j)
                    || token.color != mycolor && !stays
                    || admits(token)
            });
        }
        m.line(21);
        let stays = m.mutant("line-21-minds-equal-color");
        let passes = |token: Token| token.color == mycolor && !stays || admits(token);
        wait_either(m, self.global_color, |color| Some(color) != mycolor, self.token.at(j), passes)
    }

    /// Lines 25-33: flips `GlobalColor` if lines 25 and 26 allow it.
    #[inline(always)]
    fn flip<M: Registers>(&self, m: &mut M, p: usize, mine: Token) -> Result<(), M::Halt> {
        let naive = m.mutant("naive");
        if mine.number == 1 && !m.drops(25) && !naive {
            return Ok(());
        }
        if !m.drops(26) && !naive {
            m.line(26);
            if opposite_color(m, &self.token, (p, self.n), mine)? {
                return Ok(());
            }
        }
        let Some(color) = mine.color else { return Ok(()) };
        m.line(if color == Color::Black { 28 } else { 30 });
        m.write(self.global_color, color.opposite())
    }

    /// Line 34: resets `Token[p]`.
    #[inline(always)]
    fn reset<M: Registers>(&self, m: &mut M, p: usize, mine: Token) -> Result<(), M::Halt> {
        m.line(34);
        let kept = m.mutant("color-not-reset") || m.mutant("naive");
        m.write(
            self.token.at(p),
            Token { color: if kept { mine.color } else { None }, ..Token::NONE },
        )
    }
}

impl<M: Registers> Exclusion<M> for GroupBlackWhiteBakery {
    type Request = Session;
    /// `Token[p]`
    type Pass = Token;
    type Keep = ();

    fn keep(&self, _: usize) {}

    #[inline]
    fn doorway(&self, m: &mut M, p: usize, mysession: Session, (): ()) -> Result<Token, M::Halt> {
        let swaps = m.mutant("swaps-lines-3-and-4");
        let announced = Token { session: mysession, ..Token::NONE };
        if !m.drops(3) && !swaps {
            m.line(3);
            m.write(self.token.at(p), announced)?;
        }
        if !m.drops(4) {
            m.line(4);
            m.write(self.choosing.at(p), true)?;
        }
        if swaps {
            m.line(3);
            m.write(self.token.at(p), announced)?;
        }
        m.line(5);
        let mycolor = m.read(self.global_color)?;
        m.line(8);
        let (any_session, any_color) = (
            m.mutant("numbers-of-any-session") || m.mutant("naive"),
            m.mutant("numbers-of-any-color"),
        );
        let max = m.fold(others(p, self.n), 0, |m, max: u32, j| {
            let other = m.read(self.token.at(j))?;
            let colored = other.color == Some(mycolor) || any_color;
            let conflicts = !mysession.admits(other.session) || any_session;
            Ok(if colored && conflicts { max.max(other.number) } else { max }) // lines 9-10
        })?;
        let mine = Token { session: mysession, color: Some(mycolor), number: max + 1 };
        m.line(14);
        m.write(self.token.at(p), mine)?;
        if !m.drops(15) {
            m.line(15);
            m.write(self.choosing.at(p), false)?;
        }
        Ok(mine)
    }

    #[inline]
    fn waiting(&self, m: &mut M, p: usize, mine: Token) -> Result<Token, M::Halt> {
        m.each(others(p, self.n), |m, j| self.wait_for(m, p, mine, j))?;
        Ok(mine)
    }

    #[inline]
    fn exit(&self, m: &mut M, p: usize, mine: Token) -> Result<(), M::Halt> {
        if m.mutant("resets-before-flip") {
            self.reset(m, p, mine)?;
            return self.flip(m, p, mine);
        }
        if !m.mutant("never-flips") {
            self.flip(m, p, mine)?;
        }
        self.reset(m, p, mine)
    }
}

const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "naive",
        change: "section 6's first try: Figure 3 with the sessions looked at in every wait",
        fate: Fate::breaks_in(Property::SessionExclusion, Setting::group(3, 2).passages(2)),
    },
    Mutant {
        name: "without-line-3",
        change: "nobody knows which session a choice in progress is for",
        fate: Fate::breaks_in(Property::SessionExclusion, Setting::group(2, 2)),
    },
    Mutant {
        name: "without-line-4",
        change: "choosing is not announced",
        fate: Fate::breaks_in(Property::SessionExclusion, Setting::group(2, 2)),
    },
    Mutant {
        name: "swaps-lines-3-and-4",
        change: "choosing is announced before the session",
        fate: Fate::Harmless,
    },
    Mutant {
        name: "numbers-of-any-session",
        change: "line 9 counts tokens of one's own session, too",
        fate: Fate::breaks_in(Property::SessionExclusion, Setting::group(3, 2).passages(2)),
    },
    Mutant {
        name: "numbers-of-any-color",
        change: "line 9 counts tokens of both colours",
        fate: Fate::breaks_in(Property::BoundedRegisters, Setting::group(2, 2)),
    },
    Mutant {
        name: "without-line-15",
        change: "choosing stays announced for ever",
        fate: Fate::breaks_in(Property::DeadlockFreedom, Setting::group(2, 2).passages(2)),
    },
    Mutant {
        name: "without-line-17",
        change: "nobody waits for a choice in progress",
        fate: Fate::breaks_in(Property::SessionExclusion, Setting::group(2, 2)),
    },
    Mutant {
        name: "line-19-minds-other-color",
        change: "a token that changed its colour is still waited for by its number",
        fate: Fate::breaks_in(Property::DeadlockFreedom, Setting::group(2, 2).passages(3)),
    },
    Mutant {
        name: "line-21-minds-equal-color",
        change: "a token that took my colour is still waited for by its colour",
        fate: Fate::breaks_in(Property::DeadlockFreedom, Setting::group(2, 2).passages(3)),
    },
    Mutant {
        name: "without-line-25",
        change: "who has number 1 flips GlobalColor, too",
        fate: Fate::breaks_in(Property::SessionExclusion, Setting::group(3, 2).passages(2)),
    },
    Mutant {
        name: "without-line-26",
        change: "GlobalColor is flipped whoever else is active",
        fate: Fate::Harmless,
    },
    Mutant { name: "color-not-reset", change: "line 34 keeps the colour", fate: Fate::Harmless },
    Mutant {
        name: "resets-before-flip",
        change: "line 34 comes before lines 25 to 33",
        fate: Fate::breaks_in(Property::SessionExclusion, Setting::group(3, 2)),
    },
    Mutant {
        name: "never-flips",
        change: "GlobalColor is never changed: a bakery with bounded hopes",
        fate: Fate::breaks_in(Property::BoundedRegisters, Setting::group(2, 2)),
    },
];
