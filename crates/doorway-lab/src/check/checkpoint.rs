//! Checkpoints: the states found so far in a file, from which the same search goes on.
//!
//! The file holds the request, the lessons that gave every number its meaning (see
//! [`lessons`](super::lessons)), and the states level by level, including the unfinished level. The
//! level before the unfinished one is expanded again, so that the final report does not depend on
//! where the search was interrupted.
//!
//! The content of the file is checked as far as possible without searching again. The file must be
//! whole and belong to this search and this program, and every state in it must consist of numbers
//! that have a meaning. The checksum finds damage; it does not detect a file that was made up to
//! deceive.

mod file;

use std::{
    fs,
    io::{self, ErrorKind},
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use self::file::{Head, Input, Output};
use super::{
    keys::{List, Part},
    lessons::Lesson,
    minimise::quietly,
    pack::{Plan, Widths},
    room::Room,
    search::{Saved, Search, stride},
    space::Space,
    store::{Level, size},
    watch::Progress,
};

/// The file in which a search is kept, and how often it is saved.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// The path of the file.
    pub path: PathBuf,
    /// The program that searches: another program may run other code under the same name.
    pub program: String,
    /// The part of the request beyond [`Options`](super::Options) and the subject.
    pub more: String,
    /// The search time between two saves.
    pub every: Duration,
}

/// Why a checkpoint cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The file cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// The file cannot be written.
    #[error("cannot write {}: {error}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// The file is not a kept search.
    #[error("{} is not a search that doorway has kept: name another file", .0.display())]
    Foreign(PathBuf),
    /// Another version has written the file.
    #[error("{} was kept in format {version}, and this doorway knows format {}: name another file, or remove it", path.display(), file::VERSION)]
    Version {
        /// The file.
        path: PathBuf,
        /// The format of the file.
        version: u64,
    },
    /// The file is not as it was written.
    #[error("{} is damaged ({why}): remove it to search from the beginning", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The mismatch.
        why: &'static str,
    },
    /// Another doorway has kept the file.
    #[error("{} was kept by another doorway ({theirs}): use that one, or remove the file", path.display())]
    Program {
        /// The file.
        path: PathBuf,
        /// The program that kept it.
        theirs: String,
    },
    /// The file keeps another search.
    #[error("{} keeps another search ({theirs}); this is {ours}: name another file, or remove it", path.display())]
    Asked {
        /// The file.
        path: PathBuf,
        /// The search in the file.
        theirs: String,
        /// The requested search.
        ours: String,
    },
}

/// Keeps one search.
pub(crate) struct Keeper {
    checkpoint: Checkpoint,
    /// The request, in words.
    asked: String,
    /// Whether deciding from the finished search takes time.
    decides: bool,
    started: Instant,
    /// The time that the search had taken before it was interrupted.
    before: Duration,
    /// The time of the next save, in milliseconds after the start.
    due: AtomicU64,
}

/// Saving takes at most one part in this many of the time.
const SHARE: u32 = 20;
/// The least search time between two saves, however often the search is saved.
const PAUSE: Duration = Duration::from_millis(20);

impl Keeper {
    pub(crate) fn new(checkpoint: &Checkpoint, asked: String, decides: bool) -> Self {
        let due = AtomicU64::new(checkpoint.every.max(PAUSE).as_millis() as u64);
        let checkpoint = checkpoint.clone();
        Self { checkpoint, asked, decides, started: Instant::now(), before: Duration::ZERO, due }
    }

    /// Returns the time that the search had taken before it was interrupted.
    pub(crate) fn before(&self) -> Duration {
        self.before
    }

    /// Returns whether it is time to save.
    pub(crate) fn is_due(&self) -> bool {
        self.started.elapsed().as_millis() as u64 >= self.due.load(Relaxed)
    }

    /// Returns whether the finished search is to be saved, too.
    pub(crate) fn is_worth_finishing(&self) -> bool {
        self.decides
    }

    /// Removes the file: everything has been decided.
    pub(crate) fn remove(&self) {
        let _ = fs::remove_file(&self.checkpoint.path);
    }

    /// Returns the path of the file while it is written.
    fn part(&self) -> PathBuf {
        let mut name = self.checkpoint.path.clone().into_os_string();
        name.push(format!(".{}.part", std::process::id()));
        name.into()
    }

    /// Checks now whether a file could be written later.
    fn try_to_write(&self) -> Result<(), CheckpointError> {
        let part = self.part();
        let written = fs::File::create(&part).and_then(|_| fs::remove_file(&part));
        written
            .map_err(|error| CheckpointError::Write { path: self.checkpoint.path.clone(), error })
    }

    /// Writes the states of all levels, including the parts of the last level that are not in it
    /// yet. The file appears at once or not at all.
    pub(crate) fn save<const W: usize>(
        &self,
        space: &Mutex<Space<'_>>,
        plan: &Plan,
        levels: &[Level<W>],
        parts: &[&Part<W>],
        transitions: u64,
    ) -> io::Result<u64> {
        let began = self.started.elapsed();
        let mut sizes: Vec<u64> = levels.iter().map(|level| size(level) as u64).collect();
        if !parts.is_empty() {
            sizes.push(parts.iter().map(|part| part.len() as u64).sum());
        }
        let states = sizes.iter().sum();
        let mut lessons = Vec::new();
        for lesson in space.lock().expect("no worker panics").lessons.iter().flatten() {
            lesson.encode(&mut lessons);
        }
        let head = Head {
            program: self.checkpoint.program.clone(),
            asked: self.asked.clone(),
            elapsed: self.before + began,
            transitions,
            lessons,
            bits: plan.fields().map(|field| u64::from(field.bits())).collect(),
            stride: W as u64,
            sizes,
        };
        let part = self.part();
        let written = (|| {
            let mut output = Output::create(&part, &head)?;
            let all = levels.iter().flatten().chain(parts.iter().copied());
            all.into_iter().try_for_each(|keys| output.words(keys.as_flattened()))?;
            output.finish()?;
            fs::rename(&part, &self.checkpoint.path)
        })();
        if written.is_err() {
            let _ = fs::remove_file(&part);
        }
        let pause = self.checkpoint.every.max((self.started.elapsed() - began) * SHARE).max(PAUSE);
        self.due.store((self.started.elapsed() + pause).as_millis() as u64, Relaxed);
        written.map(|()| states)
    }

    /// Notes the result of a save.
    pub(crate) fn tell(&self, progress: &Progress, kept: io::Result<u64>) {
        match kept {
            Ok(states) => progress.kept.store(states, Relaxed),
            Err(error) => {
                progress.tell(format!("cannot write {}: {error}", self.checkpoint.path.display()))
            }
        }
    }

    /// Reads the search that was kept, if there is one.
    pub(crate) fn load(
        &mut self,
        search: &Search<'_, '_>,
    ) -> Result<Option<Saved>, CheckpointError> {
        self.try_to_write()?;
        let path = &self.checkpoint.path;
        let mut input = match Input::open(path) {
            Err(CheckpointError::Read { error, .. }) if error.kind() == ErrorKind::NotFound => {
                return Ok(None);
            }
            input => input?,
        };
        let head = input.head()?;
        let path = path.clone();
        if head.program != self.checkpoint.program {
            return Err(CheckpointError::Program { path, theirs: head.program });
        }
        if head.asked != self.asked {
            return Err(CheckpointError::Asked {
                path,
                theirs: head.asked,
                ours: self.asked.clone(),
            });
        }
        let damaged = |why| CheckpointError::Damaged { path: path.clone(), why };
        let mut space = search.space.lock().expect("no worker panics");
        let mut words = &head.lessons[..];
        while !words.is_empty() {
            // The code of the algorithm may panic on a made-up lesson.
            let learned = Lesson::decode(&mut words)
                .and_then(|lesson| quietly(|| space.learn_again(&lesson)).flatten());
            learned
                .ok_or_else(|| damaged("what was learned of the algorithm cannot be learned"))?;
        }
        drop(space);
        let plan = plan_of(&head.bits, &search.widths())
            .ok_or_else(|| damaged("its states have another form"))?;
        let limits = limits(search, &plan);
        let stride = stride(plan.words).ok_or_else(|| damaged("its states have another form"))?;
        if head.stride != stride as u64 || !(head.sizes.len() >= 2 && head.sizes[0] == 1) {
            return Err(damaged("its states have another form"));
        }
        let mut levels = Vec::new();
        for &size in &head.sizes {
            let admits = |key: &[u64]| plan.admits(key, &limits);
            levels.push(vec![read_level(&mut input, size, stride, admits, search.room)?]);
        }
        self.before = head.elapsed;
        let states: u64 = head.sizes.iter().sum();
        search.progress.resumed.store(states, Relaxed);
        Ok(Some(Saved { plan, narrow: false, levels, stride, transitions: head.transitions }))
    }
}

/// Reads the keys of one level and checks that each is a valid key.
fn read_level(
    input: &mut Input,
    size: u64,
    stride: usize,
    admits: impl Fn(&[u64]) -> bool,
    room: &Arc<Room>,
) -> Result<List, CheckpointError> {
    const PIECE: usize = 1 << 12;
    let mut list = List::default();
    let mut left = size as usize;
    let mut words = vec![0; PIECE * stride];
    while left > 0 {
        let piece = &mut words[..left.min(PIECE) * stride];
        input.read(piece)?;
        if !piece.chunks_exact(stride).all(&admits) {
            return Err(input.damaged("a state is none of this algorithm"));
        }
        // The whole list at once, because a list that grows has to be moved; but not more than the
        // file can hold.
        let more = if list.words().is_empty() { left * stride } else { piece.len() };
        list.reserve(more, room).map_err(|error| input.failed(error))?;
        list.append(piece);
        left -= left.min(PIECE);
    }
    list.seal();
    Ok(list)
}

/// Returns the plan with fields of these bits, if what has been learned and what is requested fits
/// it.
fn plan_of(bits: &[u64], least: &Widths) -> Option<Plan> {
    let bits: Vec<u32> = bits
        .iter()
        .map(|&bits| u32::try_from(bits).ok().filter(|&bits| bits < 32))
        .collect::<Option<_>>()?;
    let (registers, rest) = bits.split_at_checked(least.registers.len())?;
    let (locals, _) = rest.split_at_checked(least.locals.len())?;
    let enough =
        |bits: &[u32], least: &[u32]| bits.iter().zip(least).all(|(bits, least)| bits >= least);
    if !enough(registers, &least.registers) || !enough(locals, &least.locals) {
        return None;
    }
    let plan =
        Plan::new(&Widths { registers: registers.into(), locals: locals.into(), ..least.clone() });
    plan.fields().map(|field| field.bits()).eq(bits).then_some(plan)
}

/// Returns the limits below which the numbers in the fields of a plan must be.
fn limits(search: &Search<'_, '_>, plan: &Plan) -> Vec<u64> {
    let space = search.space.lock().expect("no worker panics");
    let registers = space.registers.iter().map(|values| values.len() as u64);
    let locals = (0..plan.locals.len()).map(|p| space.count(p) as u64);
    let known: Vec<u64> = registers.chain(locals).collect();
    let most = |counted: bool, most: u32| if counted { u64::from(most) + 1 } else { 1 };
    let passages = plan.passages.iter().map(|_| most(search.rules.bounded, search.passages));
    let retries = search.rules.retries.map_or(1, |retries| most(true, retries));
    let kills = search.rules.kills.map_or(1, |kills| most(true, kills));
    let rest: Vec<u64> =
        passages.chain(plan.retries.iter().map(|_| retries)).chain([kills]).collect();
    // The kept search remembers nothing beside its states.
    let nothing = plan.ghosts.iter().chain(&plan.copies).map(|_| 1);
    known.into_iter().chain(rest).chain(nothing).collect()
}
