//! Registers of numbers say which ones they hold, and hold no others.

use doorway_core::{
    Algorithm, Array, Claims, Exclusion, Extended, Homes, Layout, Property, RegisterKind,
    Registers, Size, Ticket, Unfit, algorithms::mutex::BurnsLamport, others,
};
use doorway_lab::{Fault, Subject, build};

use crate::explore;

/// Szymanski's algorithm (1988), with flags from 0 to 4 that are declared as 0 to `LARGEST`, or not
/// at all. They begin as `START`, and the exit section sets them to `END`.
struct Szymanski<const LARGEST: u8, const START: u8, const END: u8> {
    n: usize,
    flag: Array<u8>,
}

const UNDECLARED: u8 = u8::MAX;

impl<const LARGEST: u8, const START: u8, const END: u8> Algorithm
    for Szymanski<LARGEST, START, END>
{
    const NAME: &'static str = "szymanski";
    const CLAIMS: Claims = Claims { bound: Some(|_| 4), ..BurnsLamport::CLAIMS };

    fn new(layout: &mut Layout, size: Size) -> Result<Self, Unfit> {
        let flag = layout.array("Flag", size.n, Homes::Column, START);
        if LARGEST != UNDECLARED {
            layout.domain("Flag", 0..=LARGEST);
        }
        Ok(Self { n: size.n, flag })
    }
}

impl<M: Registers, const LARGEST: u8, const START: u8, const END: u8> Exclusion<M>
    for Szymanski<LARGEST, START, END>
{
    type Request = ();
    type Pass = ();
    type Keep = ();

    fn keep(&self, _: usize) {}

    fn doorway(&self, m: &mut M, p: usize, (): (), (): ()) -> Result<(), M::Halt> {
        m.line(1);
        m.write(self.flag.at(p), 1)
    }

    fn waiting(&self, m: &mut M, p: usize, (): ()) -> Result<(), M::Halt> {
        m.line(2);
        m.each(others(p, self.n), |m, i| m.wait(self.flag.at(i), |flag| flag < 3))?;
        m.line(3);
        m.write(self.flag.at(p), 3)?;
        m.line(4);
        let first = m.find(others(p, self.n), |m, i| m.test(self.flag.at(i), |flag| flag == 1))?;
        if let Some(i) = first {
            m.line(5);
            m.write(self.flag.at(p), 2)?;
            m.wait(self.flag.at(i), |flag| flag == 4)?;
        }
        m.line(6);
        m.write(self.flag.at(p), 4)?;
        m.line(7);
        m.each(0..p, |m, i| m.wait(self.flag.at(i), |flag| flag < 2))
    }

    fn exit(&self, m: &mut M, p: usize, (): ()) -> Result<(), M::Halt> {
        m.line(8);
        m.each(p + 1..self.n, |m, i| m.wait(self.flag.at(i), |flag| !(2..4).contains(&flag)))?;
        m.line(9);
        m.write(self.flag.at(p), END)
    }
}

fn szymanski<const LARGEST: u8, const START: u8, const END: u8>() -> Box<dyn Subject> {
    build::<Szymanski<LARGEST, START, END>, _, _, _>(Size::mutex(2), None, false).expect("it fits")
}

/// Whether mutual exclusion holds on such registers.
fn exclusion(subject: &dyn Subject, registers: RegisterKind) -> Result<Option<bool>, Fault> {
    Ok(explore(subject, Property::MutualExclusion, None, registers)?.verdicts[0].holds)
}

/// An overlapping read returns each of the declared values, and no other. Szymanski's flags have to
/// be atomic: already where a read returns the new value and the next one the old, two go in.
#[test]
fn a_declared_domain_is_what_overlapping_reads_return() {
    let subject = szymanski::<4, 0, 0>();
    let [atomic, regular, safe] = [RegisterKind::Atomic, RegisterKind::Regular, RegisterKind::Safe]
        .map(|registers| exclusion(&*subject, registers).expect("it runs"));
    assert_eq!([atomic, regular, safe], [Some(true), Some(false), Some(false)]);
    let trace =
        explore(&*subject, Property::MutualExclusion, None, RegisterKind::Safe).expect("it runs");
    let trace = trace.verdicts[0].trace.as_ref().expect("a violation has a trace");
    let returned: Vec<u64> = trace.steps.iter().filter_map(|step| step.garbage).collect();
    assert!(!returned.is_empty() && returned.iter().all(|&value| value <= 4), "{returned:?}");
}

/// Without a declared domain there are too many values to try.
#[test]
fn safe_registers_ask_for_a_domain() {
    let fault = exclusion(&*szymanski::<UNDECLARED, 0, 0>(), RegisterKind::Safe)
        .expect_err("it declares nothing");
    assert!(
        matches!(&fault, Fault::NoDomain(register) if register == "Flag[0]" || register == "Flag[1]"),
        "{fault}"
    );
    assert!(fault.to_string().contains("Layout::domain"), "{fault}");
}

#[test]
fn what_is_outside_of_a_declared_domain_is_refused() {
    for registers in [RegisterKind::Atomic, RegisterKind::Regular, RegisterKind::Safe] {
        let outside = |subject: Box<dyn Subject>| {
            exclusion(&*subject, registers).expect_err("a value is outside")
        };
        let fault = |value: &str, domain: &str| Fault::OutsideDomain {
            register: "Flag[0]".into(),
            value: value.into(),
            domain: domain.into(),
        };
        // Written, …
        assert_eq!(
            outside(szymanski::<3, 0, 0>()),
            fault("4", "{0, 1, 2, 3}"),
            "on {registers} registers"
        );
        assert_eq!(
            outside(szymanski::<4, 0, 5>()),
            fault("5", "{0, 1, 2, 3, 4}"),
            "on {registers} registers"
        );
        // … and at the start.
        assert_eq!(
            outside(szymanski::<4, 7, 0>()),
            fault("7", "{0, 1, 2, 3, 4}"),
            "on {registers} registers"
        );
    }
}

#[test]
#[should_panic(expected = "there is no register Flags")]
fn a_domain_is_of_registers_that_there_are() {
    let _ = Layout::build(2, None, |layout| {
        layout.domain("Flags", [false]);
        Ok::<_, Unfit>(())
    });
}

#[test]
#[should_panic(expected = "another type")]
fn a_domain_is_of_the_type_of_its_registers() {
    let _ = Layout::build(2, None, |layout| {
        let _: Array<u8> = layout.array("Flag", 2, Homes::Column, 0);
        layout.domain("Flag", 0..=4_u64);
        Ok::<_, Unfit>(())
    });
}

#[test]
#[should_panic(expected = "tickets have no domain")]
fn tickets_have_no_domain_to_be_declared() {
    let _ = Layout::build(2, None, |layout| {
        let _: Array<Ticket> = layout.array("Ticket", 2, Homes::Column, Ticket::ZERO);
        layout.domain("Ticket", [Ticket::ZERO]);
        Ok::<_, Unfit>(())
    });
}

/// Flags of ℕ ∪ {∞}, or of ℕ, that begin as and return to ∞.
struct Flags<T: doorway_core::Value> {
    flag: Array<T>,
}

/// What a flag holds that is up, and one that is down.
trait Flag: doorway_core::Value<Format = ()> {
    const UP: Self;
    const DOWN: Self;
}

impl Flag for Extended {
    const UP: Self = Extended(Ticket::ZERO);
    const DOWN: Self = Extended::INFINITY;
}

impl Flag for Ticket {
    const UP: Self = Ticket::ZERO;
    const DOWN: Self = Ticket::INFINITY;
}

impl<T: Flag> Algorithm for Flags<T> {
    const NAME: &'static str = "flags";
    const CLAIMS: Claims = Claims { bound: None, ..BurnsLamport::CLAIMS };

    fn new(layout: &mut Layout, size: Size) -> Result<Self, Unfit> {
        Ok(Self { flag: layout.array("Flag", size.n, Homes::Column, T::DOWN) })
    }
}

impl<M: Registers, T: Flag> Exclusion<M> for Flags<T> {
    type Request = ();
    type Pass = ();
    type Keep = ();

    fn keep(&self, _: usize) {}

    fn doorway(&self, m: &mut M, p: usize, (): (), (): ()) -> Result<(), M::Halt> {
        m.write(self.flag.at(p), T::UP)
    }

    /// Process 0 goes in only if it sees a flag that is neither up nor down, which no process
    /// writes.
    fn waiting(&self, m: &mut M, p: usize, (): ()) -> Result<(), M::Halt> {
        m.wait(self.flag.at(1 - p), |other| {
            if p == 0 { other != T::UP && other != T::DOWN } else { other == T::DOWN }
        })?;
        m.write(self.flag.at(p), T::UP)
    }

    fn exit(&self, m: &mut M, p: usize, (): ()) -> Result<(), M::Halt> {
        m.write(self.flag.at(p), T::DOWN)
    }
}

/// A register that begins with ∞ shows no ticket, and yet an overlapping read returns one.
#[test]
fn overlapping_reads_return_tickets_where_none_was_written() {
    let extended = build::<Flags<Extended>, _, _, _>(Size::mutex(2), None, false).expect("it fits");
    assert_eq!(exclusion(&*extended, RegisterKind::Regular), Ok(Some(true)));
    assert_eq!(exclusion(&*extended, RegisterKind::Safe), Ok(Some(false)));
}

/// No overlapping read of a register of ℕ returns ∞, so that it must not be written to one.
#[test]
fn a_register_of_tickets_does_not_hold_infinity() {
    let tickets = build::<Flags<Ticket>, _, _, _>(Size::mutex(2), None, false).expect("it fits");
    let fault = exclusion(&*tickets, RegisterKind::Safe).expect_err("∞ is not in ℕ");
    assert!(matches!(&fault, Fault::OutsideDomain { value, .. } if value == "∞"), "{fault}");
    assert!(exclusion(&*tickets, RegisterKind::Atomic).is_ok());
}
