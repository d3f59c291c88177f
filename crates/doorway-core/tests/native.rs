//! The native memory with real threads: every algorithm under contention, arenas in other people's
//! memory, padding.

mod common;

use std::{
    sync::{
        Barrier,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    thread,
};

use common::{Room, requests, sizes};
use doorway_core::{
    Algorithm, Exclusion, Home, Layout, Problem, Request, Session, Size,
    algorithms::k_exclusion::TimestampBakery,
    algorithms::mutex::Bakery,
    for_each_algorithm,
    layout::{Cell, LINE},
    native::{Backoff, Instance, Native, Relax, initialise},
    timestamps::Bounded,
};

/// `n` threads at once, with so many passages each. That it returns says that nobody is left
/// waiting.
fn contend<A>(n: usize, passages: u64)
where
    A: for<'a> Exclusion<Native<'a, Backoff>> + Sync,
{
    for size in sizes::<A>(n) {
        // An algorithm may have a limit, and then it says so.
        match Instance::<A>::new(size) {
            Ok(lock) => crowd(&lock, size, passages),
            Err(unfit) => assert!(n > 8, "{} refuses {size}: {unfit}", A::NAME),
        }
    }
}

fn crowd<A>(lock: &Instance<A>, size: Size, passages: u64)
where
    A: for<'a> Exclusion<Native<'a, Backoff>> + Sync,
{
    let (room, start) = (Room::new(size), Barrier::new(size.n));
    thread::scope(|scope| {
        for p in 0..size.n {
            let (room, start) = (&room, &start);
            scope.spawn(move || {
                process(lock, size, p, passages, start, |session| room.visit(session, 0))
            });
        }
    });
    assert_eq!(room.complaint(size.n as u64 * passages), None, "{}, {size}", A::NAME);
}

/// What one thread does: process `p`'s passages, begun together with the others.
fn process<'a, A>(
    lock: &'a Instance<A>,
    size: Size,
    p: usize,
    passages: u64,
    start: &Barrier,
    visit: impl Fn(Session),
) where
    A: Exclusion<Native<'a, Backoff>>,
{
    let mut m = lock.view(Backoff, p as u64);
    let mut keep = lock.algorithm().keep(p);
    start.wait();
    for request in requests::<A::Request>(size, p).take(passages as usize) {
        let session = request.session();
        let Ok((next, ())) = lock.passage(&mut m, p, request, keep, || visit(session));
        keep = next;
    }
}

macro_rules! contenders {
    ($($algorithm:ty),* $(,)?) => { [$(contend::<$algorithm> as fn(usize, u64)),*] };
}

#[test]
fn two_processes_contend() {
    for contend in for_each_algorithm!(contenders) {
        contend(2, 50_000);
    }
}

#[test]
fn eight_processes_contend() {
    for contend in for_each_algorithm!(contenders) {
        contend(8, 5_000);
    }
}

#[test]
fn thirty_two_processes_contend() {
    for contend in for_each_algorithm!(contenders) {
        contend(32, 300);
    }
}

/// Who looks in vain stops waiting.
struct AtOnce;

impl Relax for AtOnce {
    type Halt = ();
    fn relax(&mut self, _: u32) -> Result<(), ()> {
        Err(())
    }
}

/// Two of a session are inside together, without either having looked in vain; one of another
/// session waits for both.
fn share<A>()
where
    A: for<'a> Exclusion<Native<'a, AtOnce>>,
{
    if A::CLAIMS.problem == Problem::Group {
        let size = Size::group(3, 2);
        share_in(&Instance::<A>::new(size).expect("it fits"), size);
    }
}

fn share_in<'a, A>(lock: &'a Instance<A>, size: Size)
where
    A: Exclusion<Native<'a, AtOnce>>,
{
    let (algorithm, mut m, all) = (lock.algorithm(), lock.view(AtOnce, 0), A::Request::all(size));
    let mut place = |p: usize, request: usize| {
        algorithm
            .doorway(&mut m, p, all[request].clone(), algorithm.keep(p))
            .expect("a doorway does not wait")
    };
    let places = [place(0, 0), place(1, 0), place(2, 1)];
    let [first, second, other] = [0, 1, 2].map(|p| algorithm.waiting(&mut m, p, places[p].clone()));
    assert!(other.is_err(), "{}: two sessions are inside", A::NAME);
    for (p, inside) in [first, second].into_iter().enumerate() {
        let inside =
            inside.unwrap_or_else(|()| panic!("{}: {p} is kept out by its own session", A::NAME));
        assert!(
            algorithm.waiting(&mut m, 2, places[2].clone()).is_err(),
            "{}: {p} is still inside",
            A::NAME
        );
        algorithm.exit(&mut m, p, inside).expect("an exit does not wait");
    }
    assert!(
        algorithm.waiting(&mut m, 2, places[2].clone()).is_ok(),
        "{}: nobody else is there",
        A::NAME
    );
}

macro_rules! shares {
    ($($algorithm:ty),* $(,)?) => { [$(share::<$algorithm> as fn()),*] };
}

#[test]
fn sessions_are_shared() {
    for share in for_each_algorithm!(shares) {
        share();
    }
}

/// The room bites: with no lock around it, visits that overlap are noticed.
#[test]
fn the_room_notices_a_meeting() {
    for slots in [1, 3] {
        let room = Room::new(Size::slots(4, slots));
        room.inside.fetch_add(slots as u64 - 1, SeqCst);
        room.visit(Session::NONE, 0);
        assert_eq!((room.crowds.load(SeqCst), room.most.load(SeqCst)), (0, slots as u64));
        room.inside.fetch_add(1, SeqCst);
        room.visit(Session::NONE, 0);
        assert_eq!((room.crowds.load(SeqCst), room.most.load(SeqCst)), (1, slots as u64 + 1));
    }
    // And of sessions: there is one of session 1 inside.
    let room = Room::new(Size::group(2, 2));
    room.sessions[1].fetch_add(1, SeqCst);
    room.inside.fetch_add(1, SeqCst);
    for (session, crowds) in [(Session(1), 0), (Session(2), 1)] {
        room.visit(session, 0);
        assert_eq!((room.crowds.load(SeqCst), room.most.load(SeqCst)), (crowds, 2));
    }
}

/// A lock in memory that somebody else owns, here a static, with old values in it.
#[test]
fn an_arena_may_be_anybodys_memory() {
    const OLD: u64 = 0xdead_beef;
    const PASSAGES: u64 = 1_000;
    static ARENA: [AtomicU64; 5 * LINE] = [const { AtomicU64::new(OLD) }; 5 * LINE];

    let size = Size::mutex(4);
    let (bakery, layout) =
        Layout::build(size.n, None, |layout| Bakery::new(layout, size)).expect("four processes");
    assert!(layout.words() < ARENA.len());
    initialise(&ARENA, &[], &layout);

    let (room, start) = (Room::new(size), Barrier::new(size.n));
    thread::scope(|scope| {
        for p in 0..size.n {
            let (bakery, room, start) = (&bakery, &room, &start);
            scope.spawn(move || {
                // Each process makes its own view; that is all there is to joining.
                let mut m = Native::new(&ARENA, Backoff, 0);
                start.wait();
                for _ in 0..PASSAGES {
                    let Ok(pass) = bakery.doorway(&mut m, p, (), ());
                    let Ok(pass) = bakery.waiting(&mut m, p, pass);
                    room.visit(Session::NONE, 0);
                    let Ok(()) = bakery.exit(&mut m, p, pass);
                }
            });
        }
    });
    assert_eq!(room.complaint(size.n as u64 * PASSAGES), None);
    for (index, word) in ARENA.iter().enumerate() {
        let register = layout.cells().any(|cell| cell.index == index);
        assert_eq!(word.load(SeqCst), if register { 0 } else { OLD }, "word {index}");
    }
}

#[test]
#[should_panic(expected = "index out of bounds")]
fn an_arena_that_is_too_small_is_refused() {
    let size = Size::mutex(4);
    let (_, layout) =
        Layout::build(size.n, None, |layout| Bakery::new(layout, size)).expect("four processes");
    let words: Vec<AtomicU64> = (0..layout.words() - LINE).map(|_| AtomicU64::new(0)).collect();
    initialise(&words, &[], &layout);
}

/// Every register is in the arena, and has its line to itself or shares it with others of the same
/// process.
fn padded<A: Algorithm>(n: usize) {
    let size = sizes::<A>(n)[0];
    let Ok((_, layout)) = Layout::build(n, None, |layout| A::new(layout, size)) else {
        assert!(n < A::CLAIMS.min_n, "{} refuses n = {n}", A::NAME);
        return;
    };
    for wide in [false, true] {
        let (length, line) =
            if wide { (layout.doubles(), LINE / 2) } else { (layout.words(), LINE) };
        let cells: Vec<Cell<'_>> = layout.cells().filter(|cell| cell.is_wide() == wide).collect();
        padded_arena(&format!("{} n = {n}", A::NAME), length, line, &cells);
    }
}

fn padded_arena(what: &str, length: usize, per_line: usize, cells: &[Cell<'_>]) {
    let mut lines = vec![None; length / per_line];
    let mut taken = vec![false; length];
    for cell in cells {
        let (name, line) = (format!("{what}: {}", cell.name()), &mut lines[cell.index / per_line]);
        assert!(!taken[cell.index], "{name} is in a word that is taken");
        taken[cell.index] = true;
        assert!(*line != Some(Home::Nobody), "{name} is in the line of a register of nobody's");
        assert!(line.is_none_or(|home| home == cell.home), "{name} is in the line of {line:?}");
        *line = Some(cell.home);
    }
}

macro_rules! paddings {
    ($($algorithm:ty),* $(,)?) => { [$(padded::<$algorithm> as fn(usize)),*] };
}

#[test]
fn registers_of_different_homes_share_no_line() {
    for padded in for_each_algorithm!(paddings) {
        for n in [1, 2, 3, 8, 32, 100] {
            padded(n);
        }
    }
}

/// Bounded timestamps take three bits for each process: up to 21 in a word, up to 42 in a double
/// word, and no more.
#[test]
fn timestamps_fit_up_to_forty_two_processes() {
    for (n, wide) in [(21, false), (22, true), (42, true)] {
        let size = Size::slots(n, 2);
        let built = Layout::build(n, None, |layout| TimestampBakery::<Bounded>::new(layout, size));
        let (_, layout) = built.expect("the lab runs any n");
        assert_eq!(layout.doubles() > 0, wide, "n = {n}");
        assert!(Instance::<TimestampBakery<Bounded>>::new(size).is_ok(), "n = {n}");
    }
    let unfit = Instance::<TimestampBakery<Bounded>>::new(Size::slots(43, 2))
        .err()
        .map(|unfit| unfit.to_string());
    assert_eq!(
        unfit.as_deref(),
        Some(
            "timestamp-bakery with n = 43, k = 2: S[42][42] takes 129 bits, and no machine word has more than 128; \
             the lab can run it"
        )
    );
}

/// Wide labels on real threads: more processes than a word has room for.
#[test]
fn forty_processes_contend_on_wide_timestamps() {
    let size = Size::slots(40, 3);
    let lock = Instance::<TimestampBakery<Bounded>>::new(size).expect("it fits");
    crowd(&lock, size, 30);
}
