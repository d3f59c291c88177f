//! Compares relabelled runs without end with plain runs of bounded passages: the same states, up to
//! tickets.

mod graphs;

use std::{collections::HashSet, sync::Mutex};

use doorway_core::{RegisterKind, Size, Ticket, raw};

use super::{
    Progress,
    expand::{Ghost, Rules},
    explore::End,
    room::Room,
    search::{Search, Searched, Then},
    space::Space,
};
use crate::{entrant::Entrant, item::Whole, subject::LocalState};

/// A state in a form that can be compared: the values of the registers, the local states, and the
/// registers being written, with tickets narrowed.
type Shape = (Vec<Whole>, Vec<LocalState>, Vec<Option<u16>>);

/// The Bakery takes one successor at a time.
const GAP: u64 = 2;

/// Collects the shapes of all states of a search.
struct Shapes;

impl Then for Shapes {
    type Out = HashSet<Shape>;

    fn then<const W: usize>(&mut self, searched: &Searched<'_, '_, W>) -> HashSet<Shape> {
        assert!(matches!(searched.end, End::Exhausted), "{:?}", searched.end);
        let space = searched.space.lock().expect("no worker panics");
        let (registers, n) = (searched.plan.registers.len(), searched.plan.locals.len());
        searched
            .store
            .keys()
            .map(|key| {
                let numbers = searched.plan.unpack(key);
                let values: Vec<_> =
                    (0..registers).map(|r| space.registers[r].value(numbers[r])).collect();
                let locals: Vec<_> =
                    (0..n).map(|p| space.state(p, numbers[registers + p])).collect();
                let mut tickets = Vec::new();
                let mut note = |ticket: Ticket| {
                    tickets.push(ticket);
                    ticket
                };
                values.iter().for_each(|value| drop(value.relabelled(&mut note)));
                locals.iter().for_each(|local| local.tickets(&mut note));
                tickets.push(Ticket::ZERO);
                tickets.sort_unstable();
                tickets.dedup();
                let gaps = tickets
                    .windows(2)
                    .map(|pair| (raw::number(pair[1]) - raw::number(pair[0])).min(GAP));
                let labels: Vec<u64> = [0]
                    .into_iter()
                    .chain(gaps)
                    .scan(0, |sum, gap| {
                        *sum += gap;
                        Some(*sum)
                    })
                    .collect();
                let mut narrow = |ticket: Ticket| {
                    let rank = tickets.binary_search(&ticket).expect("it has been noted");
                    raw::ticket(labels[rank])
                };
                (
                    values.iter().map(|value| Whole(value.relabelled(&mut narrow))).collect(),
                    locals.iter().map(|local| local.relabel(&mut narrow)).collect(),
                    (0..n).map(|p| space.known(p, numbers[registers + p]).writing).collect(),
                )
            })
            .collect()
    }
}

fn shapes(n: usize, passages: Option<u32>, kind: RegisterKind) -> HashSet<Shape> {
    let subject =
        Entrant::named("bakery").and_then(|bakery| bakery.build(Size::mutex(n), None, false).ok());
    let subject = subject.expect("there is a bakery");
    let space = Mutex::new(
        Space::new(&*subject, kind, passages.is_none().then_some(GAP as u32)).expect("it runs"),
    );
    let rules = Rules {
        endless: None,
        kills: None,
        retries: None,
        k: 1,
        bounded: passages.is_some(),
        kind,
        relabel: passages.is_none(),
        gap: GAP as u32,
        ghost: Ghost::Nothing,
        bound: None,
        charge: None,
    };
    let search = Search {
        space: &space,
        rules,
        passages: passages.unwrap_or(0),
        watch: 0,
        max_states: 10_000_000,
        workers: 2,
        progress: &Progress::default(),
        room: &Room::new(None, None),
        keeper: None,
    };
    search.run(&mut Shapes)
}

/// No true state is missing from the relabelled ones. So a property that holds of the relabelled
/// states holds of the true ones. The converse is not needed, because every counterexample is run
/// again with true tickets. It nearly holds too: with two processes every relabelled state is a
/// true one. With three processes all but a few are; in these few a gap is taken to be wider than
/// it can be.
#[test]
fn bounded_and_unbounded_runs_reach_the_same_states() {
    for (n, enough, untrue) in [(2, 3, 0), (3, 4, 18)] {
        let unbounded = shapes(n, None, RegisterKind::Atomic);
        let mut found = 0;
        for passages in 1..=enough {
            let bounded = shapes(n, Some(passages), RegisterKind::Atomic);
            assert!(
                bounded.is_subset(&unbounded),
                "n = {n}, {passages} passages: a true state is missing"
            );
            assert!(bounded.len() > found, "n = {n}, {passages} passages: nothing new");
            found = bounded.len();
            println!("n = {n}, {passages} passages: {found} of {}", unbounded.len());
        }
        assert!(
            unbounded.len() - found <= untrue,
            "n = {n}: {found} of {} states are true",
            unbounded.len()
        );
    }
}

/// On regular registers a read may return a ticket that is still being written, and bring it in
/// before the write ends.
#[test]
fn no_true_state_is_missing_on_regular_registers() {
    let unbounded = shapes(3, None, RegisterKind::Regular);
    let bounded = shapes(3, Some(2), RegisterKind::Regular);
    let missing = bounded.difference(&unbounded).count();
    assert_eq!(missing, 0, "of {} true states", bounded.len());
}
