//! A timestamp system alone, as something that the lab can run: each passage is one operation,
//! asked for on arrival.

use doorway_core::{
    Algorithm, Array, Claims, Exclusion, Homes, Layout, Primitive, Problem, RegisterKind,
    Registers, Request, Rmr, Size, Unfit,
    digits::{Digits, Format},
    plain_local,
    timestamps::{LabelScan, Timestamps},
};
use doorway_lab::{Kind, Subject, build};

/// An operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Op {
    Label,
    Scan,
}

plain_local!(Op);

impl Request for Op {
    fn all(_: Size) -> Vec<Self> {
        vec![Self::Label, Self::Scan]
    }
}

/// The operation is the doorway, nothing is waited for, and the exit section writes down what a
/// Scan returned: nobody reads that but the test.
pub(crate) struct Clock<C> {
    pub(crate) timestamps: C,
    result: Array<Digits>,
}

fn line(n: usize) -> Format {
    Format::up_to(n - 1, n)
}

impl<C: Timestamps> Algorithm for Clock<C> {
    const NAME: &'static str = "clock";
    const CLAIMS: Claims = Claims {
        problem: Problem::KExclusion,
        paper: "none",
        figure: "none",
        primitives: &[Primitive::ReadWrite],
        properties: &[],
        refuted: &[],
        invariants: &[],
        registers: RegisterKind::Atomic,
        crashes: |_| 0,
        bound: None,
        gap: |_| 2,
        values: &[],
        abandons: false,
        rmr: Rmr { cc: "", dsm: "" },
        min_n: 1,
        max_n: None,
        mutants: &[],
    };

    fn new(layout: &mut Layout, size: Size) -> Result<Self, Unfit> {
        let n = size.n;
        Ok(Self {
            timestamps: C::new(layout, n),
            result: layout.formatted_array(
                "Result",
                n,
                Homes::Column,
                Digits::new(line(n), 0),
                line(n),
            ),
        })
    }
}

impl<M: Registers, C: LabelScan<M>> Exclusion<M> for Clock<C> {
    type Request = Op;
    type Pass = (C::Mirrors, Digits);
    type Keep = C::Mirrors;

    fn keep(&self, p: usize) -> C::Mirrors {
        self.timestamps.mirrors(p)
    }

    fn doorway(
        &self,
        m: &mut M,
        p: usize,
        op: Op,
        mirrors: C::Mirrors,
    ) -> Result<Self::Pass, M::Halt> {
        match op {
            Op::Label => Ok((
                self.timestamps.label(m, p, mirrors)?,
                Digits::new(self.result.at(p).format(), 0),
            )),
            Op::Scan => {
                let (ranks, mirrors) = self.timestamps.scan(m, p, mirrors)?;
                Ok((mirrors, ranks))
            }
        }
    }

    fn waiting(&self, _: &mut M, _: usize, pass: Self::Pass) -> Result<Self::Pass, M::Halt> {
        Ok(pass)
    }

    fn exit(
        &self,
        m: &mut M,
        p: usize,
        (mirrors, ranks): Self::Pass,
    ) -> Result<C::Mirrors, M::Halt> {
        m.write(self.result.at(p), ranks)?;
        Ok(mirrors)
    }
}

/// Which timestamp system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum System {
    Abstract,
    Bounded,
}

pub(crate) const BOTH: [System; 2] = [System::Abstract, System::Bounded];

impl System {
    /// An instance for the lab.
    pub(crate) fn subject(self, n: usize, mutant: Option<&'static str>) -> Box<dyn Subject> {
        use doorway_core::timestamps::{Abstract, Bounded};
        let size = Size::slots(n, 1);
        match self {
            Self::Abstract => build::<Clock<Abstract>, _, _, _>(size, mutant, false),
            Self::Bounded => build::<Clock<Bounded>, _, _, _>(size, mutant, false),
        }
        .expect("it fits")
    }
}

/// What a register is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// `T[q]`
    Shown(usize),
    /// `M[p]`
    Label(usize),
    /// `S[p][q]`
    Saved(usize, usize),
    /// The line of the abstract system.
    Line,
    /// What a Scan returned.
    Result,
    /// What says nothing about whose label is taken: `A[p]`.
    Other,
}

/// The role of the register of this name.
pub(crate) fn role(name: &str) -> Role {
    let (array, indices) = name.split_once('[').unwrap_or((name, ""));
    let at: Vec<usize> = indices.split(['[', ']']).filter_map(|index| index.parse().ok()).collect();
    match (array, &at[..]) {
        ("T", &[q]) => Role::Shown(q),
        ("M", &[p]) => Role::Label(p),
        ("S", &[p, q]) => Role::Saved(p, q),
        ("A", &[_]) => Role::Other,
        ("Line", []) => Role::Line,
        ("Result", &[_]) => Role::Result,
        _ => panic!("what is {name} for?"),
    }
}

/// What an access of process `p` means for whose labels are where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Meaning {
    Nothing,
    /// Takes the current label of this process.
    TakesCurrent(usize),
    /// Takes the saved label of this process instead.
    TakesSaved(usize),
    /// Saves its label for this scanner.
    Saves(usize),
    /// Its new label is there.
    Labels,
    /// Takes the current labels of all.
    TakesAll,
}

/// The meaning of an access in an operation. A saved label is taken if the colour beside it is the
/// one that the scanner shows; before it has looked at the current label, a scanner looks at that
/// colour only to choose its own.
pub(crate) fn meaning(
    role: Role,
    kind: Kind,
    op: Op,
    took_current: impl Fn(usize) -> bool,
    fresh: bool,
) -> Meaning {
    match (role, kind) {
        (Role::Label(p), Kind::Read) => Meaning::TakesCurrent(p),
        (Role::Saved(p, _), Kind::Read) if took_current(p) && fresh => Meaning::TakesSaved(p),
        (Role::Saved(_, q), Kind::Write) => Meaning::Saves(q),
        (Role::Label(_), Kind::Write) => Meaning::Labels,
        (Role::Line, Kind::Update) if op == Op::Label => Meaning::Labels,
        (Role::Line, Kind::Update) => Meaning::TakesAll,
        _ => Meaning::Nothing,
    }
}

/// Whether the colour beside a saved label is the one that its scanner shows to process `p`.
pub(crate) fn is_fresh(saved: &Digits, shown: &Digits, p: usize) -> bool {
    saved.get(saved.len() - 1) == shown.get(p)
}
