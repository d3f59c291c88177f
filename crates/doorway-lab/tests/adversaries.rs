//! Adversaries do what they say they do. That they see no more than they may is a matter of types:
//! see the examples that do not compile in `schedule/adversary.rs`.

use doorway_core::Size;
use doorway_lab::{
    Entrant, Kind, Region, Subject,
    schedule::{ADVERSARIES, ScheduleError, Scheduler, View},
    simulate::{Outcome, Simulation, scheduler, simulate},
};

fn subject(name: &str, n: usize) -> Box<dyn Subject> {
    Entrant::named(name)
        .expect("it is in the registry")
        .build(Size::mutex(n), None, false)
        .expect("it fits")
}

fn named(name: &str, subject: &dyn Subject, seed: u64) -> Box<dyn Scheduler> {
    scheduler::<ScheduleError>(name, subject, seed, |_| unreachable!()).expect("it exists")
}

fn run(subject: &dyn Subject, name: &str, how: &Simulation) -> Outcome {
    simulate(subject, how, &mut *named(name, subject, how.seed)).expect("it runs")
}

fn passages(passages: u64, seed: u64) -> Simulation {
    Simulation { passages, seed, crashes: 0, max_steps: 20_000_000 }
}

/// Whatever an adversary does, nothing is violated; and none of them stops anybody for ever.
#[test]
fn every_algorithm_finishes_under_every_adversary_without_violations() {
    for entrant in Entrant::all() {
        for name in ADVERSARIES {
            for (n, k) in [(2, 1), (7, 3)] {
                let subject = entrant
                    .build(entrant.claims.problem.size(n, k, 2), None, false)
                    .expect("it fits");
                let outcome = run(&*subject, name, &passages(10, 3));
                assert_eq!(outcome.violations, 0, "{} {name} {n}", entrant.name);
                assert_eq!(outcome.meter.cc.passages, 10 * n as u64, "{} {name} {n}", entrant.name);
                assert!(!outcome.stuck && !outcome.cut_off);
            }
        }
    }
}

/// A schedule of an oblivious adversary is fixed: it is the same for every algorithm, but for turns
/// that are lost.
#[test]
fn an_oblivious_schedule_does_not_depend_on_the_run() {
    struct Recorded(Box<dyn Scheduler>, Vec<usize>);
    impl Scheduler for Recorded {
        fn next(&mut self, view: &View<'_>) -> Result<Option<usize>, ScheduleError> {
            let next = self.0.next(view)?;
            self.1.extend(next);
            Ok(next)
        }
    }
    for name in ADVERSARIES {
        let schedule = |algorithm: &str| {
            let subject = subject(algorithm, 5);
            let mut recorded = Recorded(named(name, &*subject, 9), Vec::new());
            let how = Simulation { max_steps: 500, ..passages(1000, 9) };
            simulate(&*subject, &how, &mut recorded).expect("it runs");
            recorded.1
        };
        let same = schedule("bakery") == schedule("yang-anderson");
        let clever = name.contains(':') && !name.starts_with("oblivious");
        assert_eq!(same, !clever, "{name}: the random ones do not look, though some may");
    }
}

/// A scheduler that is watched at its work.
struct Watched<F> {
    scheduler: Box<dyn Scheduler>,
    watch: F,
}

impl<F: FnMut(&View<'_>, usize)> Scheduler for Watched<F> {
    fn next(&mut self, view: &View<'_>) -> Result<Option<usize>, ScheduleError> {
        let next = self.scheduler.next(view)?;
        if let Some(p) = next {
            (self.watch)(view, p);
        }
        Ok(next)
    }
}

fn watch(algorithm: &str, n: usize, name: &str, watch: impl FnMut(&View<'_>, usize)) -> Outcome {
    let subject = subject(algorithm, n);
    let mut watched = Watched { scheduler: named(name, &*subject, 4), watch };
    simulate(&*subject, &passages(30, 4), &mut watched).expect("it runs")
}

#[test]
fn nobody_releases_before_all_others_wait() {
    let mut released = 0;
    watch("yang-anderson", 8, "locality-aware:hold-release", |view, p| {
        if view.regions[p] == Region::Critical {
            released += 1;
            let others = view.able.iter().filter(|&&q| q != p);
            others
                .for_each(|&q| assert!(view.machine.waits_in_vain(q), "process {q} does not wait"));
        }
    });
    assert_eq!(released, 8 * 30);
    // A scheduler that does not hold anybody back is found out.
    let mut early = 0;
    watch("yang-anderson", 8, "locality-aware", |view, p| {
        let all_wait = view.able.iter().all(|&q| q == p || view.machine.waits_in_vain(q));
        early += usize::from(view.regions[p] == Region::Critical && !all_wait);
    });
    assert!(early > 100, "{early}");
}

#[test]
fn remote_writes_are_held_back_while_anybody_does_anything_else() {
    let (mut writes, mut before) = (0, false);
    watch("yang-anderson", 8, "locality-aware:hold-writes", |view, p| {
        let is_write = |q: usize| {
            view.machine.pending(q).kind == Kind::Write && view.machine.pending(q).remote
        };
        // They come all at once; what matters is when they begin.
        let begins = is_write(p) && !before;
        before = is_write(p);
        if begins {
            writes += 1;
            for &q in view.able {
                assert!(is_write(q) || view.machine.waits_in_vain(q), "process {q} could go on");
            }
        }
    });
    assert!(writes > 8 * 30, "{writes}: for each passage one, or more");
}

/// The victim's dearest passage costs more than it does by chance, in the mean of ten runs.
#[test]
fn the_victim_pays() {
    for n in [8, 16] {
        let subject = subject("burns-lamport", n);
        let dearest = |name: &str| {
            let of_the_last = |seed| {
                run(&*subject, name, &passages(20, seed)).meter.by_process[n - 1].0.max as f64
            };
            (0..10).map(of_the_last).sum::<f64>() / 10.0
        };
        let (chance, victim) = (dearest("random"), dearest("strong-adaptive:victim"));
        println!("n = {n}: {chance} by chance, {victim} as a victim");
        assert!(victim > 1.3 * chance, "n = {n}: {victim} against {chance}");
    }
}

/// Attempts per passage of paper 004's lock, and the mean in DSM: 2 000 passages or a few more.
fn attempts(n: usize, name: &str) -> (f64, f64) {
    let subject = subject("randomized", n);
    let how = Simulation { max_steps: 1_000_000_000, ..passages(2_000_u64.div_ceil(n as u64), 4) };
    let outcome = run(&*subject, name, &how);
    assert!(outcome.violations == 0 && !outcome.cut_off && !outcome.stuck, "{n} {name}");
    let attempts: u64 = (0..n).map(|p| outcome.lines.of(p, 5)).sum();
    let dsm = outcome.meter.dsm;
    let figures = (attempts as f64 / dsm.passages as f64, dsm.mean());
    println!("n = {n}, {name}: {:.3} attempts per passage, {:.2} references", figures.0, figures.1);
    figures
}

/// Who sees kinds and places of steps makes others try again and again; but they pay a constant for
/// that.
#[test]
fn backpacks_are_closed_before_others_get_in() {
    for n in [16, 64] {
        let (chance, closed) =
            (attempts(n, "locality-aware"), attempts(n, "locality-aware:backpack"));
        assert!(
            closed.0 > 1.4 * chance.0 && closed.1 > 1.3 * chance.1,
            "n = {n}: {closed:?} against {chance:?}"
        );
    }
    let [few, many] = [16, 256].map(|n| attempts(n, "locality-aware:backpack").1);
    assert!(many < 1.25 * few, "{many} among 256, {few} among 16");
}

/// Who sees where they are about to write makes nearly everybody try again for each who passes: the
/// mean grows with n.
#[test]
fn nobody_gets_in_if_the_coins_are_seen() {
    let [few, more] = [8, 32].map(|n| attempts(n, "strong-adaptive:backpack"));
    assert!(more.0 > 3.0 * few.0 && more.1 > 3.0 * few.1, "{few:?} among 8, {more:?} among 32");
}

/// It moves for nothing only if nobody else gets anywhere.
#[test]
fn the_victim_moves_when_it_pays() {
    let (mut pays, mut forced, mut free) = (0, 0, 0);
    watch("burns-lamport", 8, "strong-adaptive:victim", |view, p| {
        if p != 7 {
            return;
        }
        let pending = view.machine.pending(p);
        let slot = pending.slot.expect("there are no choices");
        let others_wait = view.able.iter().all(|&q| q == p || view.machine.waits_in_vain(q));
        match (view.meter.would_cost(slot, p, pending.kind), others_wait) {
            (1, _) => pays += 1,
            (_, true) => forced += 1,
            (_, false) => free += 1,
        }
    });
    println!("{pays} steps are paid for, {forced} are all that is left");
    assert!(pays > 300 && free == 0, "{free} steps are neither paid for nor all that is left");
}
