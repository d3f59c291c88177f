//! Two programs that share a file and a lock in it, without any read-modify-write instruction on
//! what they share.
//!
//! ```sh
//! cargo run --release --example two_programs                      # starts both
//! cargo run --release --example two_programs -- FILE 0            # or each by hand, in a terminal of its own
//! cargo run --release --example two_programs -- FILE 1
//! ```
//!
//! Both add to a counter in the file, with a load and a store, each time that they are inside. If
//! two were inside at once, counts would be lost. `--without-fences` leaves out what keeps them
//! apart, and on most machines with two cores shows it. `docs/papers-as-locks.md` has the figures;
//! `scripts/no-rmw` looks at the machine code.

#![allow(missing_docs)] // nobody links to an example

use std::{
    env,
    error::Error,
    fs::{self, File},
    hint,
    path::Path,
    process::{Command, ExitCode},
    slice,
    sync::atomic::{
        AtomicU64,
        Ordering::{Acquire, Relaxed, Release},
    },
    thread,
    time::{Duration, Instant},
};

use doorway::papers::{Bakery, Fenced, Lock, Seat, Size, Word, room};
use memmap2::MmapRaw;

const USAGE: &str = "usage: two_programs [FILE SEAT] [--passages N] [--without-fences | --seq-cst]";

/// There are two programs.
const SIZE: Size = Size::mutex(2);

/// What a file begins with: "doorway2".
const MAGIC: u64 = u64::from_be_bytes(*b"doorway2");

/// The lock comes after this many words: it has pages of its own.
const HEADER: usize = 512;

/// Stores and loads that synchronise, and no fence: on x86-64 a store can then wait in its core's
/// buffer while later loads go ahead, and the bakery's doorway is open to two.
#[repr(transparent)]
struct Unfenced(AtomicU64);

impl Word for Unfenced {
    fn load(&self) -> u64 {
        self.0.load(Acquire)
    }
    fn store(&self, word: u64) {
        self.0.store(word, Release);
    }
}

/// What is shared, apart from the lock. Each word but the counter has one writer, and the counter
/// one at a time.
struct Shared<'a> {
    magic: &'a AtomicU64,
    counter: &'a AtomicU64,
    arrived: [&'a AtomicU64; 2],
    finished: [&'a AtomicU64; 2],
}

impl<'a> Shared<'a> {
    /// A line of the machine for each.
    fn new(words: &'a [AtomicU64]) -> Self {
        let at = |line: usize| &words[line * 16];
        Self { magic: at(0), counter: at(1), arrived: [at(2), at(3)], finished: [at(4), at(5)] }
    }
}

/// These have their names for `scripts/no-rmw`.
#[inline(never)]
fn passages_fenced(seat: &mut Seat<'_, Bakery, &[Fenced]>, counter: &AtomicU64, passages: u64) {
    add(seat, counter, passages);
}

#[inline(never)]
fn passages_without_fences(
    seat: &mut Seat<'_, Bakery, &[Unfenced]>,
    counter: &AtomicU64,
    passages: u64,
) {
    add(seat, counter, passages);
}

#[inline(never)]
fn passages_seq_cst(seat: &mut Seat<'_, Bakery, &[AtomicU64]>, counter: &AtomicU64, passages: u64) {
    add(seat, counter, passages);
}

#[inline(always)]
fn add<W: Word>(seat: &mut Seat<'_, Bakery, &[W]>, counter: &AtomicU64, passages: u64) {
    let mut random = seat.id() as u64;
    for _ in 0..passages {
        // Outside for a while, of no certain length: else they take turns, and never come to a
        // doorway at the same time.
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (0..random >> 61).for_each(|_| hint::spin_loop());
        let _inside = seat.lock();
        let seen = counter.load(Relaxed);
        hint::spin_loop(); // else the compiler makes one instruction of the two
        counter.store(seen + 1, Relaxed);
    }
}

/// Which words the lock is made of.
#[derive(Clone, Copy, PartialEq)]
enum Words {
    Fenced,
    Unfenced,
    SeqCst,
}

struct Options {
    /// The file and the seat; without them both programs are started.
    program: Option<(String, usize)>,
    passages: u64,
    words: Words,
}

impl Options {
    fn parse(args: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut options = Self { program: None, passages: 1_000_000, words: Words::Fenced };
        let mut args = args.into_iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--passages" => {
                    let number = args.next().ok_or("--passages wants a number")?;
                    options.passages =
                        number.parse().map_err(|_| format!("{number} is no number of passages"))?;
                }
                "--without-fences" | "--seq-cst" if options.words != Words::Fenced => {
                    return Err(format!("--without-fences or --seq-cst, not both; {USAGE}"));
                }
                "--without-fences" => options.words = Words::Unfenced,
                "--seq-cst" => options.words = Words::SeqCst,
                _ if arg.starts_with('-') || options.program.is_some() => {
                    return Err(format!("{arg}? {USAGE}"));
                }
                _ => {
                    let seat = args
                        .next()
                        .and_then(|seat| seat.parse().ok())
                        .filter(|&seat| seat < SIZE.n);
                    options.program =
                        Some((arg, seat.ok_or("after the file comes the seat, 0 or 1")?));
                }
            }
        }
        Ok(options)
    }

    fn to_args(&self) -> Vec<String> {
        let mut args = vec!["--passages".into(), self.passages.to_string()];
        match self.words {
            Words::Fenced => {}
            Words::Unfenced => args.push("--without-fences".into()),
            Words::SeqCst => args.push("--seq-cst".into()),
        }
        args
    }
}

/// What somebody can do something about, in one line.
type Problem = Box<dyn Error>;

fn main() -> ExitCode {
    let options = match Options::parse(env::args().skip(1)) {
        Ok(options) => options,
        Err(problem) => {
            eprintln!("two_programs: {problem}");
            return ExitCode::from(2);
        }
    };
    let exact = match &options.program {
        Some((file, seat)) => program(Path::new(file), *seat, &options),
        None => start_both(&options),
    };
    match exact {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(problem) => {
            eprintln!("two_programs: {problem}");
            ExitCode::from(2)
        }
    }
}

/// Starts this program twice; whether both found every count.
fn start_both(options: &Options) -> Result<bool, Problem> {
    let directory = env::temp_dir().join(format!("two-programs-{}", std::process::id()));
    fs::create_dir(&directory)?;
    let start = |seat: usize| {
        let mut command = Command::new(env::current_exe()?);
        command.arg(directory.join("shared")).arg(seat.to_string()).args(options.to_args()).spawn()
    };
    let both = [start(0), start(1)].map(|child| child.and_then(|mut child| child.wait()));
    fs::remove_dir_all(&directory)?;
    let [first, second] = both;
    Ok(first?.success() & second?.success())
}

/// One of the programs: maps the file, takes its seat, adds; whether the counter is what both have
/// added.
fn program(path: &Path, seat: usize, options: &Options) -> Result<bool, Problem> {
    let words = HEADER + room::<Bakery>(SIZE)?.0;
    if seat == 0 {
        create(path, words)?;
    }
    let map = attach(path, words)?;
    let shared = Shared::new(view::<AtomicU64>(&map, 0, HEADER));
    if shared.magic.load(Acquire) != MAGIC {
        return Err(
            format!("{} is no file of two_programs; choose another name", path.display()).into()
        );
    }
    if shared.arrived[seat].load(Acquire) != 0 {
        return Err(format!(
            "seat {seat} of {} has been taken; take the other, or remove it",
            path.display()
        )
        .into());
    }
    shared.arrived[seat].store(1, Release);
    until(|| shared.arrived[1 - seat].load(Acquire) != 0, "the other program");

    let (arena, begin) = ((HEADER, words - HEADER), Instant::now());
    match options.words {
        Words::Fenced => {
            let lock = Lock::<Bakery, _>::join(SIZE, view::<Fenced>(&map, arena.0, arena.1))?;
            passages_fenced(&mut lock.claim(seat)?, shared.counter, options.passages);
        }
        Words::Unfenced => {
            let lock = Lock::<Bakery, _>::join(SIZE, view::<Unfenced>(&map, arena.0, arena.1))?;
            passages_without_fences(&mut lock.claim(seat)?, shared.counter, options.passages);
        }
        Words::SeqCst => {
            let lock = Lock::<Bakery, _>::join(SIZE, view::<AtomicU64>(&map, arena.0, arena.1))?;
            passages_seq_cst(&mut lock.claim(seat)?, shared.counter, options.passages);
        }
    }
    let seconds = begin.elapsed().as_secs_f64();

    // One more than its passages, so that none is still a number that is not 0.
    shared.finished[seat].store(options.passages + 1, Release);
    until(|| shared.finished[1 - seat].load(Acquire) != 0, "the other program to finish");
    let both: u64 = shared.finished.iter().map(|finished| finished.load(Acquire) - 1).sum();
    let counted = shared.counter.load(Relaxed);
    let passages = options.passages;
    println!(
        "seat {seat}: {passages} passages in {seconds:.2} s; {counted} of {both} counted, {} lost",
        both - counted
    );
    Ok(counted == both)
}

/// Makes the file under another name, and gives it its own when all is in it: nobody sees it half
/// done.
fn create(path: &Path, words: usize) -> Result<(), Problem> {
    let draft = path.with_extension(format!("draft-{}", std::process::id()));
    let made = (|| -> Result<(), Problem> {
        let file = File::options().read(true).write(true).create_new(true).open(&draft)?;
        file.set_len((words * size_of::<u64>()) as u64)?; // zeros
        let map = MmapRaw::map_raw(&file)?;
        Lock::<Bakery, _>::lay_out(SIZE, view::<Fenced>(&map, HEADER, words - HEADER))?;
        Shared::new(view(&map, 0, HEADER)).magic.store(MAGIC, Release);
        // Unlike a rename this fails if there is one already.
        fs::hard_link(&draft, path).map_err(|error| {
            format!("cannot create {}: {error}; remove it first", path.display())
        })?;
        Ok(())
    })();
    // What went wrong before is worth more than that this did.
    let removed = fs::remove_file(&draft);
    made?;
    Ok(removed?)
}

/// Maps the file as soon as it is there.
fn attach(path: &Path, words: usize) -> Result<MmapRaw, Problem> {
    until(|| path.exists(), &format!("seat 0 to create {}", path.display()));
    let file = File::options().read(true).write(true).open(path)?;
    if file.metadata()?.len() != (words * size_of::<u64>()) as u64 {
        return Err(
            format!("{} is no file of two_programs; choose another name", path.display()).into()
        );
    }
    Ok(MmapRaw::map_raw(&file)?)
}

/// So many words of the mapping.
///
/// `W` is [`AtomicU64`] or a transparent wrapper of it.
fn view<W>(map: &MmapRaw, first: usize, len: usize) -> &[W] {
    const {
        assert!(
            size_of::<W>() == size_of::<AtomicU64>() && align_of::<W>() == align_of::<AtomicU64>()
        )
    }
    assert!((first + len) * size_of::<W>() <= map.len(), "the mapping is too small");
    // SAFETY: it is in the mapping, which lives as long as what is returned, and aligned, as a
    // mapping starts a page. Any bits are an atomic word. Everybody, in this program and the other,
    // accesses it by atomic loads and stores alone. That nobody truncates the file meanwhile is for
    // whoever names it to see to; the programs do not.
    unsafe { slice::from_raw_parts(map.as_ptr().cast::<W>().add(first), len) }
}

/// Waits, and says for what if it takes long.
fn until(done: impl Fn() -> bool, what: &str) {
    let begin = Instant::now();
    let mut said = false;
    while !done() {
        thread::yield_now();
        if !said && begin.elapsed() > Duration::from_secs(1) {
            eprintln!("two_programs: waits for {what}");
            said = true;
        }
    }
}
