//! Locks between processes, side by side.
//!
//!     cargo bench --package doorway --bench processes
//!
//! First alone: one process, nobody else, nanoseconds per passage. Then eight processes, one slot, a microsecond inside: passages
//! per second. Every lock runs once in each round, in another order each time; medians over the rounds, and ratios to others in
//! the same round.

mod processes {
    pub(crate) mod peers;
}

use std::{
    env,
    fs::OpenOptions,
    hint::black_box,
    path::{Path, PathBuf},
    process::{Child, Command},
    sync::atomic::{AtomicU64, Ordering::SeqCst},
    thread,
    time::{Duration, Instant},
};

use memmap2::{MmapOptions, MmapRaw};
use processes::peers::{Flock, RobustMutex, Semaphore, SystemV};

/// A lock between processes.
trait Lock: Sized {
    const NAME: &'static str;

    /// Makes it, in a file of this name.
    fn create(path: &Path);

    /// Opens it.
    fn open(path: &Path) -> Self;

    /// Leaves nothing behind but the file.
    fn remove(_: &Path) {}

    fn passage(&self, inside: impl FnOnce());
}

const PROCESSES: usize = 8;
const ROUNDS: usize = 9;
const INSIDE: Duration = Duration::from_micros(1);
const COUNTED: Duration = Duration::from_millis(300);

/// Where the run is: 0 nobody counts, 1 everybody does, 2 the end. Then for each process how far it is, and its passages.
struct Board(MmapRaw);

impl Board {
    fn open(path: &Path) -> Self {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).expect("a file");
        let bytes = (1 + PROCESSES) * 128;
        file.set_len(bytes as u64).expect("room for it");
        Self(MmapOptions::new().len(bytes).map_raw(&file).expect("a mapping"))
    }

    fn word(&self, line: usize, word: usize) -> &AtomicU64 {
        assert!(line <= PROCESSES && word < 16);
        // SAFETY: it lies in the mapping, which is page-aligned, lives as long as this, and is only used through atomics.
        unsafe { &*self.0.as_mut_ptr().add(line * 128 + word * 8).cast::<AtomicU64>() }
    }
}

fn spin(time: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < time {
        black_box(());
    }
}

/// One of the processes.
fn competes<L: Lock>(path: &Path, board: &Board, index: usize) {
    let lock = L::open(path);
    board.word(1 + index, 0).store(1, SeqCst);
    loop {
        let stage = board.word(0, 0).load(SeqCst);
        if stage == 2 {
            return;
        }
        lock.passage(|| spin(INSIDE));
        board.word(1 + index, 1).fetch_add(stage, SeqCst);
    }
}

/// Passages per second of all processes, and the most of one over the fewest.
fn crowd<L: Lock>(directory: &Path, round: usize) -> (f64, f64) {
    let path = directory.join(format!("crowd-{}-{round}", L::NAME.replace(|c: char| !c.is_alphanumeric(), "-")));
    let board_path = path.with_extension("board");
    L::create(&path);
    let board = Board::open(&board_path);
    let start = |index: usize| -> Child {
        let arguments = [path.as_os_str(), board_path.as_os_str()];
        let program = env::current_exe().expect("this program");
        Command::new(program)
            .args(["--competes", L::NAME])
            .args(arguments)
            .arg(index.to_string())
            .spawn()
            .expect("a process")
    };
    let mut children: Vec<Child> = (0..PROCESSES).map(start).collect();
    while (0..PROCESSES).any(|i| board.word(1 + i, 0).load(SeqCst) == 0) {
        thread::sleep(Duration::from_millis(1));
    }
    thread::sleep(COUNTED / 3);
    let begin = Instant::now();
    board.word(0, 0).store(1, SeqCst);
    thread::sleep(COUNTED);
    board.word(0, 0).store(2, SeqCst);
    let seconds = begin.elapsed().as_secs_f64();
    for child in &mut children {
        assert!(child.wait().expect("it ends").success());
    }
    L::remove(&path);
    let passages = || (0..PROCESSES).map(|i| board.word(1 + i, 1).load(SeqCst));
    let share = passages().max().unwrap_or(0) as f64 / passages().min().unwrap_or(0) as f64;
    (passages().sum::<u64>() as f64 / seconds, share)
}

/// Passages per second of one process.
fn alone<L: Lock>(directory: &Path, round: usize) -> (f64, f64) {
    const COUNT: u32 = 20_000;
    let path = directory.join(format!("alone-{}-{round}", L::NAME.replace(|c: char| !c.is_alphanumeric(), "-")));
    L::create(&path);
    let lock = L::open(&path);
    let run = || {
        let begin = Instant::now();
        (0..COUNT).for_each(|_| lock.passage(|| black_box(())));
        begin.elapsed()
    };
    run();
    let mut times: Vec<Duration> = (0..9).map(|_| run()).collect();
    times.sort_unstable();
    drop(lock);
    L::remove(&path);
    (f64::from(COUNT) / times[times.len() / 2].as_secs_f64(), 1.0)
}

/// A lock in both benches.
struct Contender {
    name: &'static str,
    alone: fn(&Path, usize) -> (f64, f64),
    crowd: fn(&Path, usize) -> (f64, f64),
    competes: fn(&Path, &Board, usize),
}

fn contender<L: Lock>() -> Contender {
    Contender { name: L::NAME, alone: alone::<L>, crowd: crowd::<L>, competes: competes::<L> }
}

fn contenders() -> Vec<Contender> {
    vec![contender::<RobustMutex>(), contender::<Semaphore>(), contender::<Flock>(), contender::<SystemV>()]
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn table(title: &str, measure: impl Fn(&Contender, usize) -> (f64, f64), shares: bool) {
    let locks = contenders();
    let mut samples = vec![Vec::new(); locks.len()];
    for round in 0..=ROUNDS {
        for i in 0..locks.len() {
            let i =
                if round % 2 == 0 { (i + round) % locks.len() } else { locks.len() - 1 - (i + round) % locks.len() };
            let sample = measure(&locks[i], round);
            if round > 0 {
                samples[i].push(sample); // the first warms up
            }
        }
    }
    println!("{title}");
    print!("  {:<24}{:>12}{:>12}", "", "passages/s", "per passage");
    locks.iter().for_each(|lock| print!("{:>24}", format!("× {}", lock.name)));
    println!("{}", if shares { "  most / fewest" } else { "" });
    for (i, lock) in locks.iter().enumerate() {
        let speed = median(samples[i].iter().map(|(speed, _)| *speed).collect());
        print!("  {:<24}{speed:>12.0}{:>9.1} ns", lock.name, 1e9 / speed);
        for other in &samples {
            print!(
                "{:>24.2}",
                median(samples[i].iter().zip(other).map(|((mine, _), (theirs, _))| mine / theirs).collect())
            );
        }
        let share = median(samples[i].iter().map(|(_, share)| *share).collect());
        println!("{}", if shares { format!("{share:>14.2}") } else { String::new() });
    }
    println!();
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let [flag, name, path, board, index] = &arguments[..]
        && flag == "--competes"
    {
        let locks = contenders();
        let lock = locks.iter().find(|lock| lock.name == name).expect("a lock of that name");
        return (lock.competes)(Path::new(path), &Board::open(Path::new(board)), index.parse().expect("a number"));
    }
    let shared = PathBuf::from("/dev/shm");
    let directory = tempfile::tempdir_in(if shared.is_dir() { shared } else { env::temp_dir() }).expect("a directory");
    table("alone: one process, nobody else", |lock, round| (lock.alone)(directory.path(), round), false);
    table("crowd: 8 processes, one slot, 1 µs inside", |lock, round| (lock.crowd)(directory.path(), round), true);
}
