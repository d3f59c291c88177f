//! Timestamp systems on real threads: on the memory that ships, and on one that also says whose
//! label is read.

use std::{
    convert::Infallible,
    sync::{
        Barrier,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    thread,
};

use doorway_core::{
    Algorithm, Layout, Memory, Register, Registers, Size, Value,
    digits::{Digits, Format},
    native::{AtomicU128, Instance, Native, Spin},
    timestamps::{Bounded, LabelScan, Timestamps},
};
use doorway_lab::{Kind, Random};

use super::{
    clock::{Clock, Meaning, Op, Role, is_fresh, meaning, role},
    history::{History, Label, Scan},
};

/// What one thread did.
#[derive(Default)]
struct Log {
    labels: Vec<Label>,
    scans: Vec<Scan>,
}

fn gathered(n: usize, logs: Vec<Log>) -> History {
    let mut history = History { n, ..History::default() };
    for log in logs {
        history.labels.extend(log.labels);
        history.scans.extend(log.scans);
    }
    history
}

fn ranks(ranks: &Digits) -> Vec<usize> {
    ranks.iter().map(|rank| rank as usize).collect()
}

/// So many operations of each of `n` threads on the native memory; who took which label is not
/// known.
pub(crate) fn on_native<C>(n: usize, operations: u32, seed: u64) -> History
where
    C: for<'a> LabelScan<Native<'a, Spin>> + Timestamps + Sync,
{
    let instance = Instance::<Clock<C>>::new(Size::slots(n, 1)).expect("it fits");
    let (time, start) = (AtomicU64::new(1), Barrier::new(n));
    let tick = || time.fetch_add(1, SeqCst);
    let process = |p: usize| {
        let timestamps = &instance.algorithm().timestamps;
        let (mut m, mut mirrors) = (instance.view(Spin, 0), timestamps.mirrors(p));
        let (mut random, mut log, mut number) = (Random::new(seed, p as u64), Log::default(), 0);
        start.wait();
        for _ in 0..operations {
            let begin = tick();
            if random.below(2) == 0 {
                let Ok(next) = timestamps.label(&mut m, p, mirrors);
                mirrors = next;
                number += 1;
                log.labels.push(Label { process: p, begin, end: tick(), number });
            } else {
                let Ok((line, next)) = timestamps.scan(&mut m, p, mirrors);
                mirrors = next;
                log.scans.push(Scan {
                    process: p,
                    begin,
                    end: tick(),
                    ranks: ranks(&line),
                    labels: Vec::new(),
                });
            }
            if random.below(4) == 0 {
                thread::yield_now();
            }
        }
        log
    };
    gathered(n, together(n, process))
}

fn together<T: Send>(n: usize, process: impl Fn(usize) -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let threads: Vec<_> = (0..n)
            .map(|p| (p, &process))
            .map(|(p, process)| scope.spawn(move || process(p)))
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no thread panics")).collect()
    })
}

/// Registers with a number beside each label: the low half of a double word is the register, the
/// high half says which Label of its process it stems from. Both are read and written in one
/// access, so the number is right whatever happens.
struct Numbered {
    n: usize,
    words: Vec<AtomicU128>,
    roles: Vec<Role>,
}

/// One process's view of them, with what it has taken in this operation.
struct View<'a> {
    memory: &'a Numbered,
    op: Op,
    shown: Digits,
    /// The number of its own current label.
    number: u32,
    taken: Vec<Option<u32>>,
    random: Random,
}

impl View<'_> {
    /// Anything can happen between two accesses, and with few cores it has to be helped.
    fn pause(&mut self) {
        if self.random.below(16) == 0 {
            thread::yield_now();
        }
    }
}

impl Memory for View<'_> {
    type Halt = Infallible;

    fn relax(&mut self, _: u32) -> Result<(), Infallible> {
        unreachable!("nobody waits")
    }
}

impl Registers for View<'_> {
    fn read<T: Value>(&mut self, register: Register<T>) -> Result<T, Infallible> {
        self.pause();
        let both = self.memory.words[register.index()].load(SeqCst);
        let (word, number) = (both & u128::from(u64::MAX), (both >> 64) as u32);
        let role = self.memory.roles[register.index()];
        let fresh = match role {
            Role::Saved(p, _) => {
                is_fresh(&Digits::from_word(word, Format::up_to(5, self.memory.n)), &self.shown, p)
            }
            _ => false,
        };
        match meaning(role, Kind::Read, self.op, |p| self.taken[p].is_some(), fresh) {
            Meaning::TakesCurrent(p) | Meaning::TakesSaved(p) => self.taken[p] = Some(number),
            _ => {}
        }
        Ok(T::from_word(word, register.format()))
    }

    fn write<T: Value>(&mut self, register: Register<T>, value: T) -> Result<(), Infallible> {
        self.pause();
        let role = self.memory.roles[register.index()];
        match role {
            Role::Shown(_) => {
                self.shown = Digits::from_word(value.word(), Format::up_to(3, self.memory.n))
            }
            Role::Label(_) => self.number += 1,
            _ => {}
        }
        let number = u128::from(self.number) << 64;
        self.memory.words[register.index()].store(number | value.word(), SeqCst);
        Ok(())
    }
}

/// So many operations of each of `n` threads, with it known who took which label.
pub(crate) fn on_numbered(n: usize, operations: u32, seed: u64) -> History {
    let size = Size::slots(n, 1);
    let (clock, layout) =
        Layout::build(n, None, |layout| Clock::<Bounded>::new(layout, size)).expect("it fits");
    assert_eq!(layout.doubles(), 0, "a register takes half of a double word");
    let words: Vec<_> = (0..layout.words()).map(|_| AtomicU128::new(0)).collect();
    let mut roles = vec![Role::Other; layout.words()];
    for cell in layout.cells() {
        words[cell.index].store(cell.init.word(), SeqCst);
        roles[cell.index] = role(&cell.name());
    }
    let memory = Numbered { n, words, roles };
    let (time, start) = (AtomicU64::new(1), Barrier::new(n));
    let tick = || time.fetch_add(1, SeqCst);
    let process = |p: usize| {
        let (mut choices, mut log, mut mirrors) =
            (Random::new(seed, p as u64), Log::default(), clock.timestamps.mirrors(p));
        let mut m = View {
            memory: &memory,
            op: Op::Label,
            shown: Digits::new(Format::up_to(3, n), 0),
            number: 0,
            taken: Vec::new(),
            random: Random::new(seed, (p + n) as u64),
        };
        start.wait();
        for _ in 0..operations {
            m.op = if choices.below(2) == 0 { Op::Label } else { Op::Scan };
            m.taken = vec![None; n];
            let begin = tick();
            if m.op == Op::Label {
                let Ok(next) = clock.timestamps.label(&mut m, p, mirrors);
                mirrors = next;
                log.labels.push(Label { process: p, begin, end: tick(), number: m.number });
            } else {
                let Ok((line, next)) = clock.timestamps.scan(&mut m, p, mirrors);
                mirrors = next;
                let end = tick();
                m.taken[p] = Some(m.number);
                let labels =
                    m.taken.iter().map(|taken| taken.expect("all are looked at")).collect();
                log.scans.push(Scan { process: p, begin, end, ranks: ranks(&line), labels });
            }
        }
        log
    };
    gathered(n, together(n, process))
}
