//! Bounds are compared with true values: not with relabelled tickets, and from the start.

use doorway_core::{
    Algorithm, Array, Claims, Exclusion, Extended, Homes, Layout, Property, RegisterKind,
    Registers, Size, Ticket, Unfit, algorithms::mutex::Bakery,
};
use doorway_lab::{Subject, Verdict, build};

use crate::{explore, verdict};

/// The Bakery with a register beside it that holds `START` and stays so, and a bound of `BOUND`.
struct Bounded<const BOUND: u64, const START: u8> {
    bakery: Bakery,
}

impl<const BOUND: u64, const START: u8> Algorithm for Bounded<BOUND, START> {
    const NAME: &'static str = "bounded";
    const CLAIMS: Claims = Claims { bound: Some(|_| BOUND), ..Bakery::CLAIMS };

    fn new(layout: &mut Layout, size: Size) -> Result<Self, Unfit> {
        let bakery = Bakery::new(layout, size)?;
        let _: Array<u8> = layout.array("Other", 2, Homes::Nobody, START);
        Ok(Self { bakery })
    }
}

impl<M: Registers, const BOUND: u64, const START: u8> Exclusion<M> for Bounded<BOUND, START> {
    type Request = ();
    type Pass = Ticket;
    type Keep = ();

    fn keep(&self, _: usize) {}

    fn doorway(&self, m: &mut M, p: usize, (): (), (): ()) -> Result<Ticket, M::Halt> {
        self.bakery.doorway(m, p, (), ())
    }

    fn waiting(&self, m: &mut M, p: usize, pass: Ticket) -> Result<Ticket, M::Halt> {
        self.bakery.waiting(m, p, pass)
    }

    fn exit(&self, m: &mut M, p: usize, pass: Ticket) -> Result<(), M::Halt> {
        self.bakery.exit(m, p, pass)
    }
}

fn subject<const BOUND: u64, const START: u8>() -> Box<dyn Subject> {
    build::<Bounded<BOUND, START>, _, _, _>(Size::mutex(2), None, false).expect("it fits")
}

fn bounded(subject: &dyn Subject, passages: Option<u32>) -> Verdict {
    verdict(subject, Property::BoundedRegisters, passages).expect("it runs")
}

/// The Bakery's tickets grow for ever; its labels do not.
#[test]
fn relabelled_tickets_below_a_bound_decide_nothing() {
    let verdict = bounded(&*subject::<40, 0>(), None);
    assert_eq!(verdict.holds, None, "{}", verdict.scope);
    assert!(verdict.scope.contains("Ticket[0] holds tickets"), "{}", verdict.scope);
    assert!(verdict.scope.contains("--passages P"), "{}", verdict.scope);
    // True tickets are compared where passages are bounded.
    let bounded = |passages| bounded(&*subject::<3, 0>(), Some(passages)).holds;
    assert_eq!([bounded(1), bounded(2)], [Some(true), Some(false)]);
    // On safe registers they are relabelled all the same.
    let safe =
        explore(&*subject::<40, 0>(), Property::BoundedRegisters, Some(1), RegisterKind::Safe);
    let verdict = safe.expect("it runs").verdicts.remove(0);
    assert!(
        verdict.holds.is_none() && verdict.scope.contains("atomic or regular"),
        "{}",
        verdict.scope
    );
}

/// A label is never larger than its ticket.
#[test]
fn a_relabelled_ticket_above_a_bound_is_a_violation() {
    let verdict = bounded(&*subject::<1, 0>(), None);
    assert_eq!(verdict.holds, Some(false), "{}", verdict.scope);
    let trace = verdict.trace.expect("a violation has a trace");
    assert_eq!(trace.steps.last().map(|step| step.access.as_str()), Some("Ticket[0] := 2"));
}

#[test]
fn what_a_register_holds_at_the_start_is_compared() {
    for passages in [None, Some(1)] {
        let verdict = bounded(&*subject::<6, 7>(), passages);
        assert_eq!(verdict.holds, Some(false), "{}", verdict.scope);
        assert!(verdict.scope.starts_with("a run of 0 steps"), "{}", verdict.scope);
        let trace = verdict.trace.expect("a violation has a trace");
        assert!(trace.steps.is_empty());
        assert_eq!(trace.shows, "Other[0] holds 7 before the first step, and the bound is 6");
    }
    // The search goes on for other properties, past tickets above the bound.
    let subject = subject::<0, 7>();
    let report = explore(&*subject, Property::MutualExclusion, Some(2), RegisterKind::Atomic)
        .expect("it runs");
    assert!(report.complete && report.verdicts[0].holds == Some(true));
}

/// Registers of ℕ ∪ {∞} with a bound: ∞ is not a number.
struct Infinite {
    flag: Array<Extended>,
}

impl Algorithm for Infinite {
    const NAME: &'static str = "infinite";
    const CLAIMS: Claims = Claims { bound: Some(|_| 0), ..Bakery::CLAIMS };

    fn new(layout: &mut Layout, size: Size) -> Result<Self, Unfit> {
        Ok(Self { flag: layout.array("Flag", size.n, Homes::Column, Extended::INFINITY) })
    }
}

impl<M: Registers> Exclusion<M> for Infinite {
    type Request = ();
    type Pass = ();
    type Keep = ();

    fn keep(&self, _: usize) {}

    fn doorway(&self, m: &mut M, p: usize, (): (), (): ()) -> Result<(), M::Halt> {
        m.write(self.flag.at(p), Extended(Ticket::ZERO))
    }

    fn waiting(&self, m: &mut M, p: usize, (): ()) -> Result<(), M::Halt> {
        m.wait(self.flag.at(1 - p), |other| p == 0 || other == Extended::INFINITY)
    }

    fn exit(&self, m: &mut M, p: usize, (): ()) -> Result<(), M::Halt> {
        m.write(self.flag.at(p), Extended::INFINITY)
    }
}

#[test]
fn infinity_exceeds_no_bound() {
    let subject = build::<Infinite, _, _, _>(Size::mutex(2), None, false).expect("it fits");
    // Whether relabelled or not: zero and ∞ are what they are.
    for passages in [None, Some(2)] {
        let verdict = bounded(&*subject, passages);
        assert_eq!(verdict.holds, Some(true), "{}", verdict.scope);
    }
}
