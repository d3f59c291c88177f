//! What the proof of paper 004 counts is counted as the paper defines it, and keeps to its
//! constants.

use doorway_core::Size;
use doorway_lab::{
    Entrant, Random, Region, Subject,
    schedule::{ScheduleError, Scheduler, Script, View},
    simulate::{Lemmas, Simulation, scheduler, simulate},
};

fn subject(n: usize) -> Box<dyn Subject> {
    Entrant::named("randomized")
        .expect("it is in the registry")
        .build(Size::mutex(n), None, false)
        .expect("it fits")
}

fn run(subject: &dyn Subject, passages: u64, scheduler: &mut dyn Scheduler) -> Lemmas {
    let how = Simulation { passages, seed: 1, crashes: 0, max_steps: 1_000_000_000 };
    let outcome = simulate(subject, &how, scheduler).expect("it runs");
    assert!(outcome.violations == 0 && !outcome.stuck && !outcome.cut_off);
    let lemmas = outcome.lemmas.expect("it is the lock that they are about");
    let written: u64 = (0..subject.size().n).map(|p| outcome.lines.of(p, 5)).sum();
    assert_eq!(lemmas.writes, written, "everything in line 5 is a write to R");
    assert_eq!(lemmas.uncovered, 0, "one side at least is in a good interval at any time");
    lemmas
}

/// Line 2, the coins of lines 3 and 4, and the write of line 5.
fn writes(p: usize, side: usize, place: usize) -> String {
    format!("{p}\n{p} chooses {side}\n{p} chooses {place}\n{p}\n")
}

/// One run among six processes, cut after each of its parts: what has been counted so far.
#[test]
fn counts_by_hand() {
    let parts = [
        // Before anybody leads, both sides are in their good intervals.
        (writes(0, 0, 0), (1, 1, 0)),
        (writes(1, 1, 0), (2, 2, 0)),
        // Line 6, line 8 and all of line 9 but the last of its seven steps: 0 leads, and does not
        // have L yet.
        ("0*8\n".into(), (2, 2, 0)),
        (writes(2, 0, 1), (3, 3, 0)),
        // With that step the good interval of side 0 is over, and that of side 1 is not: 1 leads
        // there, and waits for L.
        ("0\n1 past 8\n1*20\n".into(), (3, 3, 0)),
        (writes(3, 0, 1), (4, 3, 0)),
        (writes(4, 1, 1), (5, 4, 0)),
        // The leader finds itself and 3, and waits for 3. It promotes 2 and 3, which have come in
        // time, and goes in.
        ("2 past 26\n3 past 26\n0 past 39\n2 until critical\n".into(), (5, 4, 1)),
        ("2 until remainder\n0 past 39\n3 until remainder\n0 until critical\n".into(), (5, 4, 3)),
        (writes(5, 0, 0), (6, 4, 3)),
        // Line 31, and then line 32: a phase begins, although L has not been released.
        ("0\n".into(), (6, 4, 3)),
        (writes(2, 0, 0), (7, 4, 3)),
        ("0\n".into(), (7, 4, 3)),
        (writes(3, 0, 0), (8, 5, 3)),
        // L goes over to side 1.
        ("0 until remainder\n1 past 12\n".into(), (8, 5, 3)),
        (writes(0, 1, 0), (9, 5, 3)),
    ];
    let subject = subject(6);
    let mut script = String::new();
    for (i, (part, counts)) in parts.into_iter().enumerate() {
        script.push_str(&part);
        let lemmas = run(&*subject, 2, &mut Script::parse(&script, 6).expect("a script"));
        assert_eq!(
            (lemmas.writes, lemmas.good_writes, lemmas.passages),
            counts,
            "part {i}:\n{script}"
        );
    }
}

/// How many standard deviations of a fair coin a share may be below a half.
const NOISE: f64 = 4.0;

fn keeps_to_lemma_5(lemmas: &Lemmas) -> bool {
    let deviation = 0.5 / (lemmas.writes as f64).sqrt();
    lemmas.share_of_good_writes().expect("writes") >= Lemmas::LEMMA_5 - NOISE * deviation
}

/// 3 000 passages or a few more among 2, 16 and 64 processes, seed 1, under schedulers that are no
/// stronger than the lemmas allow.
#[test]
fn half_of_the_writes_are_good_and_there_is_a_passage_for_every_36() {
    for n in [2, 16, 64] {
        let subject = subject(n);
        for name in ["random", "oblivious:bursts", "locality-aware", "locality-aware:hold-release"]
        {
            let mut scheduler = scheduler::<ScheduleError>(name, &*subject, 1, |_| unreachable!())
                .expect("it exists");
            let passages = 3_000_u64.div_ceil(n as u64);
            let lemmas = run(&*subject, passages, &mut *scheduler);
            let per_good_write = lemmas.passages_per_good_write().expect("good writes");
            println!("{n} {name}: {:?}, {per_good_write:.3}", lemmas.share_of_good_writes());
            assert_eq!(lemmas.passages, passages * n as u64);
            assert!(keeps_to_lemma_5(&lemmas), "{n} {name}: {lemmas:?}");
            assert!(per_good_write >= Lemmas::LEMMA_6, "{n} {name}: {lemmas:?}");
        }
    }
}

/// Sees the coins, and lets nobody write to the R of a side in its good interval while anybody else
/// can move. Who has L moves first, until it is inside.
struct Spoils {
    random: Random,
    /// Who has L, and on which side.
    holder: Option<(usize, char)>,
}

/// The side of the register that a process is about to touch, where that is R.
fn side_of_r(view: &View<'_>, p: usize) -> Option<char> {
    let register = view.machine.register_of(view.machine.moves(p).first()?)?;
    view.machine.layout().cell(register).name().strip_prefix('R')?.chars().next()
}

impl Scheduler for Spoils {
    fn next(&mut self, view: &View<'_>) -> Result<Option<usize>, ScheduleError> {
        if let Some(last) = view.last {
            if last.line == 32 {
                self.holder = None;
            } else if view.machine.pending(last.process).line == 12 {
                self.holder = side_of_r(view, last.process).map(|side| (last.process, side));
            }
        }
        let gets_on =
            |p: usize| !view.machine.waits_in_vain(p) && view.regions[p] != Region::Critical;
        if let Some((holder, _)) = self.holder.filter(|&(p, _)| gets_on(p)) {
            return Ok(Some(holder));
        }
        let closed = self.holder.map(|(_, side)| side);
        let is_good = |p: usize| view.machine.pending(p).line == 5 && side_of_r(view, p) != closed;
        let others =
            view.able.iter().copied().filter(|&p| gets_on(p) && !is_good(p)).collect::<Vec<_>>();
        let inside = view
            .able
            .iter()
            .copied()
            .filter(|&p| view.regions[p] == Region::Critical)
            .collect::<Vec<_>>();
        let among = [&others[..], &inside, view.able].into_iter().find(|among| !among.is_empty());
        Ok(among.map(|among| among[self.random.below(among.len() as u64) as usize]))
    }
}

/// Lemma 5 is about adversaries that do not see coins: against one that does it fails, and that is
/// noticed.
#[test]
fn who_sees_the_coins_makes_most_writes_bad() {
    let subject = subject(16);
    let lemmas = run(&*subject, 100, &mut Spoils { random: Random::new(1, 1), holder: None });
    println!("{lemmas:?}");
    assert!(!keeps_to_lemma_5(&lemmas), "{lemmas:?}");
    assert!(lemmas.share_of_good_writes().expect("writes") < 0.25, "{lemmas:?}");
}
