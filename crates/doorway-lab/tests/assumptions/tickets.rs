//! An algorithm that does more with tickets than the relabelling allows is refused.

use doorway_core::{
    Algorithm, Array, Claims, Exclusion, Homes, Layout, Property, RegisterKind, Registers, Size,
    Ticket, Unfit, Value, algorithms::mutex::Bakery, raw,
};
use doorway_lab::{Fault, Subject, build};

use crate::{explore, verdict};

/// What is asked about tickets besides their order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Trick {
    /// Nothing.
    None,
    /// Whether one's own is 0 + 7 or later.
    AtLeastSeven,
    /// Whether one's own is just 0 + 7.
    JustSeven,
    /// Whether one's own is three above the other's.
    ThreeAbove,
    /// Whether the number behind it is even, and not 0.
    Parity,
    /// The same, by its word.
    Word,
    /// The same, by its text.
    Text,
    /// The number behind it is kept as a plain one.
    Kept,
    /// The number behind it says which register is read.
    Address,
    /// A ticket seven above is taken.
    Jump,
    /// A ticket is taken from nowhere.
    Constant,
}

use Trick::{
    Address, AtLeastSeven, Constant, Jump, JustSeven, Kept, None as Nothing, Parity, Text,
    ThreeAbove, Word,
};

const ALL: [Trick; 11] = [
    Nothing,
    AtLeastSeven,
    JustSeven,
    ThreeAbove,
    Parity,
    Word,
    Text,
    Kept,
    Address,
    Jump,
    Constant,
];

fn after(ticket: Ticket, times: usize) -> Ticket {
    (0..times).fold(ticket, |ticket, _| ticket.succ())
}

/// The Bakery, whose waiting section a process skips if the trick says so.
struct Tricky<const TRICK: usize, const GAP: u32> {
    bakery: Bakery,
    ticket: Array<Ticket>,
}

impl<const TRICK: usize, const GAP: u32> Tricky<TRICK, GAP> {
    const TRICK: Trick = ALL[TRICK];

    /// Whether process `p` with this ticket goes in without waiting.
    fn skips(mine: Ticket) -> bool {
        let even = |number: u64| number > 0 && number.is_multiple_of(2);
        match Self::TRICK {
            AtLeastSeven => mine >= after(Ticket::ZERO, 7),
            JustSeven => mine == after(Ticket::ZERO, 7),
            Parity => even(raw::number(mine)),
            Word => even(mine.word() as u64),
            Text => even(format!("{mine:?}").parse().unwrap_or(1)),
            _ => false,
        }
    }
}

impl<const TRICK: usize, const GAP: u32> Algorithm for Tricky<TRICK, GAP> {
    const NAME: &'static str = "tricky";
    const CLAIMS: Claims = Claims { gap: |_| GAP, ..Bakery::CLAIMS };

    fn new(layout: &mut Layout, size: Size) -> Result<Self, Unfit> {
        let bakery = Bakery::new(layout, size)?;
        Ok(Self {
            bakery,
            ticket: layout.array("Mine", size.n.max(2), Homes::Nobody, Ticket::ZERO),
        })
    }
}

impl<M: Registers, const TRICK: usize, const GAP: u32> Exclusion<M> for Tricky<TRICK, GAP> {
    type Request = ();
    type Pass = (Ticket, u64);
    type Keep = ();

    fn keep(&self, _: usize) {}

    fn doorway(&self, m: &mut M, p: usize, (): (), (): ()) -> Result<Self::Pass, M::Halt> {
        let mine = self.bakery.doorway(m, p, (), ())?;
        m.line(50);
        Ok((
            mine,
            match Self::TRICK {
                Kept => raw::number(mine),
                Jump => {
                    m.write(self.ticket.at(p), after(mine, 7))?;
                    0
                }
                Constant => {
                    m.write(self.ticket.at(p), raw::ticket(9))?;
                    0
                }
                _ => 0,
            },
        ))
    }

    fn waiting(&self, m: &mut M, p: usize, pass: Self::Pass) -> Result<Self::Pass, M::Halt> {
        m.line(51);
        if Self::skips(pass.0) {
            return Ok(pass);
        }
        if Self::TRICK == ThreeAbove {
            m.write(self.ticket.at(p), pass.0)?;
            let other = m.read(self.ticket.at(1 - p))?;
            if pass.0 == after(other, 3) {
                return Ok(pass);
            }
        }
        if Self::TRICK == Address {
            m.read(self.ticket.at(raw::number(pass.0) as usize / 2 % 2))?;
        }
        self.bakery.waiting(m, p, pass.0)?;
        Ok(pass)
    }

    fn exit(&self, m: &mut M, p: usize, pass: Self::Pass) -> Result<(), M::Halt> {
        self.bakery.exit(m, p, pass.0)
    }
}

fn tricky<const TRICK: usize, const GAP: u32>() -> Box<dyn Subject> {
    build::<Tricky<TRICK, GAP>, _, _, _>(Size::mutex(2), None, false).expect("it fits")
}

/// A property that no trick breaks, so that the search goes on to the end.
const UNHARMED: Property = Property::BoundedExit;

fn refused(subject: &dyn Subject, what: Trick) -> Fault {
    let fault = verdict(subject, UNHARMED, None).err();
    match fault {
        Some(fault @ Fault::TicketUse { .. }) => fault,
        other => panic!("{what:?}: {other:?}"),
    }
}

/// Each of them would be believed. Of `AtLeastSeven`, even mutual exclusion would "hold" in runs
/// without end.
#[test]
fn every_trick_is_refused() {
    let all = [
        tricky::<1, 2>(),
        tricky::<2, 2>(),
        tricky::<3, 2>(),
        tricky::<4, 2>(),
        tricky::<5, 2>(),
        tricky::<6, 2>(),
        tricky::<7, 2>(),
        tricky::<8, 2>(),
        tricky::<9, 2>(),
        tricky::<10, 2>(),
    ];
    for (subject, &trick) in all.iter().zip(&ALL[1..]) {
        refused(&**subject, trick);
    }
    // On safe registers, too, where a read may return any ticket.
    for subject in &all[..6] {
        let fault = explore(&**subject, UNHARMED, None, RegisterKind::Safe).err();
        assert!(matches!(fault, Some(Fault::TicketUse { .. })), "{fault:?}");
    }
}

/// That they are wrong shows where tickets are not relabelled.
#[test]
fn what_is_refused_is_indeed_wrong() {
    let holds = |subject: &dyn Subject, passages| {
        verdict(subject, Property::MutualExclusion, Some(passages))
            .expect("tickets are what they are")
            .holds
    };
    assert_eq!(holds(&*tricky::<1, 2>(), 7), Some(false));
    assert_eq!(holds(&*tricky::<4, 2>(), 2), Some(false));
}

#[test]
fn the_message_says_what_to_write() {
    let words = refused(&*tricky::<1, 2>(), AtLeastSeven).to_string();
    for part in ["line ", "at most one successor", "larger `gap`", "the number behind a ticket"] {
        assert!(words.contains(part), "{words}");
    }
}

/// What keeps to the rules is not refused, whatever the gap; with one too small it is.
#[test]
fn the_rules_suffice() {
    for subject in [tricky::<0, 2>(), tricky::<0, 3>(), tricky::<0, 5>()] {
        let verdict =
            verdict(&*subject, Property::MutualExclusion, None).expect("it keeps to the rules");
        assert_eq!(verdict.holds, Some(true), "{}", verdict.scope);
    }
    // The Bakery takes one successor.
    refused(&*tricky::<0, 1>(), Nothing);
}

/// With the gap that it takes, a comparison with a successor further on is decided like any other.
#[test]
fn a_larger_gap_decides_what_a_small_one_cannot() {
    for (subject, passages) in [(tricky::<1, 8>(), 7), (tricky::<3, 4>(), 4)] {
        let unbounded =
            verdict(&*subject, Property::MutualExclusion, None).expect("its gap is large enough");
        let bounded =
            verdict(&*subject, Property::MutualExclusion, Some(passages)).expect("it runs");
        assert_eq!(unbounded.holds, bounded.holds, "{}", unbounded.scope);
    }
}
