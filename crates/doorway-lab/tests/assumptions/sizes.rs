//! An algorithm for two processes says so.

use doorway_core::{
    Algorithm, Array, Claims, Exclusion, Home, Homes, Layout, Property, Register, RegisterKind,
    Registers, Size, Unfit, algorithms::mutex::BurnsLamport,
};
use doorway_lab::build;
use std::ops::ControlFlow::{Break, Continue};

use crate::explore;

/// Peterson's algorithm (1981).
struct Peterson {
    flag: Array<u8>,
    turn: Register<u8>,
}

impl Algorithm for Peterson {
    const NAME: &'static str = "peterson";
    const CLAIMS: Claims = Claims { min_n: 2, max_n: Some(2), ..BurnsLamport::CLAIMS };

    fn new(layout: &mut Layout, size: Size) -> Result<Self, Unfit> {
        let flag = layout.array("Flag", size.n, Homes::Column, 0);
        layout.domain("Flag", 0..=1_u8);
        Ok(Self { flag, turn: layout.register("Turn", Home::Nobody, 0) })
    }
}

impl<M: Registers> Exclusion<M> for Peterson {
    type Request = ();
    type Pass = ();
    type Keep = ();

    fn keep(&self, _: usize) {}

    fn doorway(&self, m: &mut M, p: usize, (): (), (): ()) -> Result<(), M::Halt> {
        m.line(1);
        m.write(self.flag.at(p), 1)?;
        m.line(2);
        m.write(self.turn, 1 - p as u8)
    }

    fn waiting(&self, m: &mut M, p: usize, (): ()) -> Result<(), M::Halt> {
        m.line(3);
        m.repeat((), |m, ()| {
            let done = m.test(self.flag.at(1 - p), |flag| flag == 0)?
                || m.test(self.turn, |turn| turn == p as u8)?;
            Ok(if done { Break(()) } else { Continue(()) })
        })
    }

    fn exit(&self, m: &mut M, p: usize, (): ()) -> Result<(), M::Halt> {
        m.line(4);
        m.write(self.flag.at(p), 0)
    }
}

#[test]
fn more_processes_than_an_algorithm_serves_are_refused() {
    let two = build::<Peterson, _, _, _>(Size::mutex(2), None, false).expect("it is for two");
    for property in [Property::MutualExclusion, Property::StarvationFreedom] {
        let report = explore(&*two, property, None, RegisterKind::Atomic).expect("it runs");
        assert_eq!(report.verdicts[0].holds, Some(true), "{property}");
    }
    for n in [3, 5] {
        let refused = format!("peterson serves at most 2 processes, not {n}: try -n 2");
        let lab = build::<Peterson, _, _, _>(Size::mutex(n), None, false).map(drop);
        assert_eq!(lab, Err(Unfit(refused.clone())));
        let native = doorway_core::native::Instance::<Peterson>::new(Size::mutex(n)).map(drop);
        assert_eq!(native, Err(Unfit(refused)));
    }
}
