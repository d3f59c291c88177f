//! Small algorithms whose processes remember something that is dead, or that seems to be.

use std::ops::ControlFlow::{Break, Continue};

use doorway_core::{
    Algorithm, Array, Claims, Coins, Exclusion, Home, Homes, Invariant, Layout, Primitive, Problem,
    Register, RegisterKind, Registers, Rmr, Size, Unfit,
};
use doorway_lab::{Subject, build};

/// What is remembered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Dead {
    /// A process waits for what never comes and counts its rounds modulo 3. The count is dead.
    Rounds,
    /// A choice decides nothing but the line in which a register is read next.
    Lines,
    /// A choice decides nothing but whether a loop is one of attempts.
    Attempts,
    /// A choice decides nothing but what a process does if it reads a number above the declared
    /// bound.
    Bound,
    /// The same, and no register ever holds such a number.
    Safely,
    /// A choice decides nothing, and the process panics if its own flag is down, which it never is.
    Panics,
}

const KINDS: [Dead; 6] =
    [Dead::Rounds, Dead::Lines, Dead::Attempts, Dead::Bound, Dead::Safely, Dead::Panics];

/// The largest number that is declared.
pub(crate) const BOUND: u64 = 2;

/// The algorithm of this kind, for two processes.
pub(crate) fn dead(kind: Dead) -> Box<dyn Subject> {
    let sessions = KINDS.iter().position(|other| *other == kind).expect("every kind is listed");
    build::<Forgetful, _, _, _>(Size { n: 2, k: 1, sessions }, None, false).expect("it fits")
}

struct Forgetful {
    kind: Dead,
    flag: Array<bool>,
    word: Register<u64>,
}

impl Algorithm for Forgetful {
    const NAME: &'static str = "forgetful";
    const ATTEMPTS: Option<u32> = Some(1);
    const CLAIMS: Claims = Claims {
        problem: Problem::Mutex,
        paper: "none",
        figure: "none",
        primitives: &[Primitive::ReadWrite],
        properties: &[],
        refuted: &[],
        invariants: &[Invariant {
            name: "invariant:word-stays",
            says: "the word does not change once it has been read in line 3",
            register: "Word",
            line: 3,
            most: 0,
        }],
        registers: RegisterKind::Atomic,
        crashes: |_| 0,
        bound: Some(|_| BOUND),
        gap: |_| 2,
        values: &[],
        abandons: false,
        rmr: Rmr { cc: "", dsm: "" },
        min_n: 1,
        max_n: None,
        mutants: &[],
    };

    fn new(layout: &mut Layout, size: Size) -> Result<Self, Unfit> {
        Ok(Self {
            kind: KINDS[size.sessions],
            flag: layout.array("Flag", size.n, Homes::Nobody, false),
            word: layout.register("Word", Home::Nobody, 0),
        })
    }
}

impl Forgetful {
    /// Waits until the other process's flag is down, in a loop of its own for each of the two.
    fn wait<M: Registers>(&self, m: &mut M, p: usize, attempts: bool) -> Result<(), M::Halt> {
        let down =
            |m: &mut M| Ok(if m.read(self.flag.at(1 - p))? { Continue(()) } else { Break(()) });
        if attempts { m.attempts((), |m, ()| down(m)) } else { m.repeat((), |m, ()| down(m)) }
    }
}

impl<M: Coins + Registers> Exclusion<M> for Forgetful {
    type Request = ();
    type Pass = ();
    type Keep = ();

    fn keep(&self, _: usize) {}

    fn doorway(&self, m: &mut M, p: usize, (): (), (): ()) -> Result<(), M::Halt> {
        m.line(1);
        m.write(self.flag.at(p), true)
    }

    fn waiting(&self, m: &mut M, p: usize, (): ()) -> Result<(), M::Halt> {
        match self.kind {
            Dead::Rounds => m.repeat(0, |m, round: u64| {
                m.line(2);
                let never = m.read(self.word)? > 0;
                Ok(if never { Break(()) } else { Continue((round + 1) % 3) })
            }),
            // One process reads the word while the other changes it.
            Dead::Lines if p == 0 => m.scope(|m| {
                let line = 2 + m.choose(2)?;
                m.line(line);
                m.read(self.word).map(|_| ())
            }),
            Dead::Lines => m.write(self.word, 1),
            Dead::Attempts => {
                let attempts = m.choose(2)? == 1;
                self.wait(m, p, attempts)
            }
            // What process 1 writes is one more than what it has read.
            Dead::Bound | Dead::Safely if p == 1 => m.scope(|m| {
                let word = m.read(self.word)?;
                let most = if self.kind == Dead::Bound { BOUND + 1 } else { BOUND };
                m.write(self.word, (word + 1).min(most))
            }),
            Dead::Bound | Dead::Safely => m.scope(|m| {
                let bold = m.choose(2)? == 1;
                let large = m.read(self.word)? > BOUND;
                if large && bold {
                    return Ok(());
                }
                // Process 1 goes in whatever it finds, so process 0 never may.
                m.repeat((), |m, ()| {
                    Ok(if m.read(self.word)? > 2 * BOUND { Break(()) } else { Continue(()) })
                })
            }),
            Dead::Panics => m.scope(|m| {
                m.choose(2)?;
                assert!(m.read(self.flag.at(p))?, "this flag is up");
                m.wait(self.flag.at(1 - p), |up| !up)
            }),
        }
    }

    fn exit(&self, m: &mut M, p: usize, (): ()) -> Result<(), M::Halt> {
        m.line(4);
        m.write(self.flag.at(p), false)
    }
}
