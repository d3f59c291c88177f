//! The file of a lock: a page of header, the process table, the names of sessions.
//!
//! ```text
//! page 0                       header: what the lock is, and the namespaces of its processes
//! then                         entries, a line of 16 words each, 32 to a page
//! after the last entry         a line for the registers that belong to no entry
//! then                         the names of sessions, 8 words each
//! ```
//!
//! The file is large enough for all entries that there can be, and sparse: memory for a chunk of
//! entries is reserved when the first of them is used. It is reserved then, and not when it is
//! first written, because a process that writes into a full file system is killed.
//!
//! A file is complete before it has a name. So no process sees half of one, and if two processes
//! create it, the second finds the file of the first. Everything in the file is checked when it is
//! opened, and every index when it is used: whatever another program writes into it, nothing
//! outside of it is touched. A file that is truncated while it is mapped cannot be caught: the
//! system kills a process that touches what is gone (SIGBUS). A waiter checks the size whenever it
//! is woken. Only a process that may write the file can truncate it.

mod new_file;

use std::{
    convert::Infallible,
    ops::Range,
    os::fd::{AsFd, BorrowedFd},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst},
};

use doorway_core::{
    Home, Layout, Value,
    engines::named_lock::{Table, Tally},
    layout::Cell,
};
use rustix::{
    fd::OwnedFd,
    fs::{FallocateFlags, Gid, Mode, OFlags},
    io::Errno,
};

use self::new_file::NewFile;
use super::{
    Directory, Error, Kind,
    directory::MOST,
    liveness::{MOST_NAMESPACES, Namespace},
    map::Map,
};

const MAGIC: u64 = u64::from_le_bytes(*b"doorway\n");
const VERSION: u32 = 7;

/// Words of the header.
const HEADER: usize = 512;
/// Words of the name of a session.
pub(super) const NAME: usize = 8;

/// Memory is reserved for this many entries at a time: a page.
pub(super) const CHUNK: usize = 4096 / (8 * entry::WORDS);

/// Words of an entry that are not the engine's.
pub(super) mod entry {
    /// Words of an entry in all.
    pub(in super::super) const WORDS: usize = doorway_core::layout::LINE;
    /// The process that keeps the entry for its child.
    pub(in super::super) const KEEPER: usize = 11;
    /// When its owner entered and when it was granted its slot, in nanoseconds of the monotonic
    /// clock; and with which ticket, or the times are older.
    pub(in super::super) const ENTERED: usize = 12;
    pub(in super::super) const SINCE: usize = 13;
    pub(in super::super) const STAMPED: usize = 14;
    /// Its owner sleeps: the word that it sleeps on.
    pub(in super::super) const ASLEEP: usize = 15;
}

/// Words of the line that belongs to no entry and that are not the engine's.
pub(super) mod global {
    /// Processes sleep until the table lock is released.
    pub(in super::super) const TABLE_LOCK_WAITERS: usize = 8;
    /// Before this time waiters do not yield.
    pub(in super::super) const NO_YIELDS_UNTIL: usize = 9;
    /// How often a yield has taken long in a row.
    pub(in super::super) const LONG_YIELDS: usize = 10;
}

/// Word offsets in the header.
mod at {
    pub(super) const MAGIC: usize = 0;
    pub(super) const VERSION: usize = 1;
    pub(super) const KIND: usize = 2;
    pub(super) const ENTRIES: usize = 3;
    /// The namespaces of its processes.
    pub(super) const NAMESPACES: usize = super::HEADER - super::MOST_NAMESPACES;
}

/// What a lock must be: created so if it is missing, checked if it exists.
pub(super) struct Wanted {
    pub(super) kind: Kind,
    pub(super) entries: usize,
    pub(super) slots: usize,
    /// The caller has asked for this number of slots.
    pub(super) exact: bool,
}

impl Wanted {
    /// Asks for a slot for every entry, or for whatever number an existing lock has.
    pub(super) fn any(kind: Kind, entries: usize) -> Self {
        Self { kind, entries, slots: entries, exact: false }
    }
}

/// An open lock.
#[derive(Debug)]
pub(super) struct File {
    map: Map,
    fd: OwnedFd,
    table: Table,
    kind: Kind,
    /// The number of this process's namespace, counted from 1; 0 until it is known. A forked
    /// process may be in another.
    namespace: AtomicUsize,
    path: PathBuf,
    directory: Directory,
}

fn words(entries: usize) -> usize {
    HEADER + (entries + 1) * entry::WORDS + entries * NAME
}

fn layout(kind: Kind, entries: usize, slots: usize) -> (Table, Layout) {
    let (sessions, home) = (kind == Kind::GroupLock, Home::Process(entries));
    let table = |layout: &mut Layout| {
        Ok::<_, Infallible>(Table::new(layout, entries, slots, sessions, home))
    };
    let Ok(built) = Layout::build(entries + 1, None, table);
    debug_assert_eq!(built.1.words(), (entries + 1) * entry::WORDS);
    built
}

/// Reserves memory for these words of a file. Where the file system cannot, memory is reserved when
/// the words are written.
fn reserve(fd: &OwnedFd, words: Range<usize>) -> Result<(), Errno> {
    match rustix::fs::fallocate(
        fd,
        FallocateFlags::empty(),
        words.start as u64 * 8,
        words.len() as u64 * 8,
    ) {
        Ok(()) | Err(Errno::OPNOTSUPP) => Ok(()),
        Err(errno) => Err(errno),
    }
}

impl File {
    /// Opens a lock; creates it if it is missing.
    pub(super) fn open(directory: &Directory, name: &str, wanted: &Wanted) -> Result<Self, Error> {
        let path = directory.file(name)?;
        for _ in 0..1000 {
            match Self::attach(directory, name) {
                Ok(file) => return file.fits(wanted),
                Err(Error::Missing(_)) => Self::make(directory, &path, wanted)?,
                // A process was killed while it removed the lock.
                Err(Error::Lost(_)) => Self::clear_away(directory, name)?,
                Err(error) => return Err(error),
            }
        }
        Err(Error::Lost(path))
    }

    /// Opens an existing lock.
    pub(super) fn attach(directory: &Directory, name: &str) -> Result<Self, Error> {
        let path = directory.file(name)?;
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let foreign = |why| Error::Foreign { path: path.clone(), why };
        let at = directory.open()?;
        let fd =
            rustix::fs::openat(&at, name, flags, Mode::empty()).map_err(|errno| match errno {
                Errno::NOENT => Error::Missing(path.clone()),
                Errno::LOOP => foreign("it is a link"),
                Errno::ISDIR | Errno::NXIO => foreign("it is not a regular file"),
                errno => Error::system(&path, errno),
            })?;
        let stat = rustix::fs::fstat(&fd).map_err(|errno| Error::system(&path, errno))?;
        if let Some(why) = directory.distrusts(&stat) {
            return Err(foreign(why));
        }
        let found = stat.st_size as u64;
        let truncated = |expected: usize| Error::Truncated {
            path: path.clone(),
            found,
            expected: expected as u64 * 8,
        };
        if found < HEADER as u64 * 8 {
            return Err(truncated(HEADER));
        }
        let fail = |errno| Error::system(&path, errno);
        let map = Map::of(&fd, words(MOST).min(found as usize / 8)).map_err(fail)?;
        let word = |i: usize| map.words()[i].load(SeqCst);
        if word(at::MAGIC) != MAGIC {
            return Err(foreign("it is not the file of a lock"));
        }
        if word(at::VERSION) != u64::from(VERSION) {
            return Err(Error::Version { found: word(at::VERSION) as u32, known: VERSION, path });
        }
        let (kind, entries) = (Kind::from_word(word(at::KIND)), word(at::ENTRIES) as usize);
        let (Some(kind), 1..=MOST) = (kind, entries) else { return Err(Error::Damaged(path)) };
        if found != words(entries) as u64 * 8 {
            return Err(truncated(words(entries)));
        }
        let (table, _) = layout(kind, entries, 1);
        let file = Self {
            map,
            fd,
            table,
            kind,
            namespace: AtomicUsize::new(0),
            path,
            directory: directory.clone(),
        };
        if file.is_removed() {
            return Err(Error::Lost(file.path));
        }
        let slots = usize::from(file.tally().slots());
        if slots == 0 || slots > entries { Err(Error::Damaged(file.path)) } else { Ok(file) }
    }

    /// Returns the file if it is what the caller wants.
    fn fits(self, wanted: &Wanted) -> Result<Self, Error> {
        let found = usize::from(self.tally().slots());
        match self {
            Self { kind, path, .. } if kind != wanted.kind => {
                Err(Error::Kind { path, found: kind, asked: wanted.kind })
            }
            Self { path, .. } if wanted.exact && found != wanted.slots => {
                Err(Error::Slots { path, found, asked: wanted.slots })
            }
            file => Ok(file),
        }
    }

    /// Creates a lock, unless another process does so first.
    fn make(directory: &Directory, path: &Path, wanted: &Wanted) -> Result<(), Error> {
        let fail = |errno| Error::system(path, errno);
        let at = directory.open()?;
        let (mode, group) = directory.access();
        let (name, entries) = (path.file_name().unwrap_or_default(), wanted.entries);
        let new =
            NewFile::unnamed(&at, mode).or_else(|_| NewFile::named(&at, mode)).map_err(fail)?;
        let fd = &new.fd;
        if let Some(gid) = group {
            rustix::fs::fchown(fd, None, Some(Gid::from_raw(gid))).map_err(fail)?;
        }
        rustix::fs::fchmod(fd, mode).map_err(fail)?;
        rustix::fs::ftruncate(fd, words(entries) as u64 * 8).map_err(fail)?;
        let (table, layout) = layout(wanted.kind, entries, wanted.slots);
        reserve(fd, 0..HEADER + entry::WORDS).map_err(fail)?;
        reserve(fd, HEADER + entries * entry::WORDS..HEADER + (entries + 1) * entry::WORDS)
            .map_err(fail)?;
        let map = Map::of(fd, words(entries)).map_err(fail)?;
        // New entries are zeros, and the file begins as zeros.
        let global = |cell: &Cell<'_>| cell.index >= table.table_lock().index();
        layout.cells().filter(global).for_each(|cell| {
            map.words()[HEADER + cell.index].store(cell.init.word() as u64, SeqCst);
        });
        let set = |i: usize, word: u64| map.words()[i].store(word, SeqCst);
        set(at::VERSION, u64::from(VERSION));
        set(at::KIND, wanted.kind as u64);
        set(at::ENTRIES, entries as u64);
        set(at::MAGIC, MAGIC);
        match new.link(name) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(errno) => Err(fail(errno)),
        }
    }

    /// Removes the name of a lock that is already marked as removed. No other process removes files
    /// meanwhile, so the name is that lock's.
    fn clear_away(directory: &Directory, name: &str) -> Result<(), Error> {
        let at = directory.open()?;
        directory.alone(&at, || match Self::attach(directory, name) {
            Err(Error::Lost(path)) => directory.unlink(&at, &path),
            _ => Ok(()),
        })
    }

    /// Removes the file's name if `last` allows it, with the lock marked as removed.
    pub(super) fn remove(&self, last: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
        let at = self.directory.open()?;
        self.directory.alone(&at, || {
            last()?;
            if self.has_its_name()? { self.directory.unlink(&at, &self.path) } else { Ok(()) }
        })
    }

    /// Returns whether the file with this name is still this one.
    fn has_its_name(&self) -> Result<bool, Error> {
        let fail = |errno| Error::system(&self.path, errno);
        let mine = rustix::fs::fstat(&self.fd).map_err(fail)?;
        match rustix::fs::lstat(&self.path) {
            Ok(named) => Ok((named.st_dev, named.st_ino) == (mine.st_dev, mine.st_ino)),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(fail(errno)),
        }
    }

    /// Checks that the file is still there, whole.
    pub(super) fn check(&self) -> Result<(), Error> {
        let stat = rustix::fs::fstat(&self.fd).map_err(|errno| Error::system(&self.path, errno))?;
        let (found, expected) = (stat.st_size as u64, words(self.table.entries()) as u64 * 8);
        if stat.st_nlink == 0 {
            Err(Error::Lost(self.path.clone()))
        } else if found != expected {
            Err(Error::Truncated { path: self.path.clone(), found, expected })
        } else if self.is_removed() {
            Err(Error::Lost(self.path.clone()))
        } else {
            Ok(())
        }
    }

    pub(super) fn is_removed(&self) -> bool {
        self.tally().removed()
    }

    /// Returns the words of the table.
    #[inline(always)]
    pub(super) fn words(&self) -> &[AtomicU64] {
        &self.map.words()[HEADER..]
    }

    /// Returns the words of a session's name, counted from 1.
    #[inline(always)]
    pub(super) fn name(&self, session: usize) -> Option<&[AtomicU64]> {
        let first = self.names() + session.checked_sub(1)? * NAME;
        self.words().get(first..first + NAME)
    }

    /// Returns where the names of sessions begin.
    #[inline(always)]
    fn names(&self) -> usize {
        (self.table.entries() + 1) * entry::WORDS
    }

    /// Returns the index of a word that belongs to no entry.
    #[inline(always)]
    pub(super) fn global(&self, word: usize) -> usize {
        self.table.entries() * entry::WORDS + word
    }

    /// Reserves memory for the chunk of entries that begins with this one, and for their names.
    ///
    /// # Errors
    /// When the file system is full.
    pub(super) fn reserve(&self, first: usize) -> Result<(), Error> {
        let fail = |errno| Error::system(&self.path, errno);
        let last = (first + CHUNK).min(self.table.entries());
        reserve(&self.fd, HEADER + first * entry::WORDS..HEADER + last * entry::WORDS)
            .map_err(fail)?;
        if self.kind == Kind::GroupLock {
            let names = HEADER + self.names();
            reserve(&self.fd, names + first * NAME..names + last * NAME).map_err(fail)?;
        }
        Ok(())
    }

    pub(super) fn tally(&self) -> Tally {
        Tally::from_word(u128::from(self.words()[self.table.tally().index()].load(SeqCst)), ())
    }

    #[inline(always)]
    pub(super) fn table(&self) -> &Table {
        &self.table
    }

    /// Returns the namespaces of the lock's processes.
    pub(super) fn namespaces(&self) -> &[AtomicU64] {
        &self.map.words()[at::NAMESPACES..HEADER]
    }

    /// Returns the namespace of this process, once it is [identified](Self::identify).
    pub(super) fn namespace(&self) -> Option<Namespace> {
        self.namespace.load(SeqCst).checked_sub(1).map(Namespace)
    }

    pub(super) fn set_namespace(&self, Namespace(number): Namespace) {
        self.namespace.store(number + 1, SeqCst);
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    pub(super) fn kind(&self) -> Kind {
        self.kind
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}
