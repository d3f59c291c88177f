//! The directory of named locks, and how their files are created and removed.

use std::{
    env,
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use rustix::{
    fd::OwnedFd,
    fs::{AtFlags, CWD, Dir, FileType, FlockOperation, Gid, Mode, OFlags, RenameFlags, Stat},
    io::Errno,
    process::{geteuid, getuid},
    time::{ClockId, clock_gettime},
};

use super::{
    Error, GroupLock, Kind, Lock, Mutex, Semaphore,
    file::{File, Wanted},
};

/// The most entries that a lock can have, and how many it has unless the user says otherwise. That
/// many processes may hold and wait together.
pub(super) const MOST: usize = doorway_core::engines::named_lock::Tally::MAX as usize;

const NO_DIRECTORY: &str = "it is a link, or no directory";

/// Returns the directory that the environment names, if it names one.
fn chosen() -> Option<PathBuf> {
    env::var_os("DOORWAY_DIR").filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// Returns how many entries a new lock has.
fn usual_capacity() -> Result<usize, Error> {
    let Some(text) = env::var_os("DOORWAY_CAPACITY").filter(|text| !text.is_empty()) else {
        return Ok(MOST);
    };
    let entries = text
        .to_str()
        .and_then(|text| text.parse().ok())
        .filter(|entries| (1..=MOST).contains(entries));
    entries
        .ok_or_else(|| Error::Capacity { asked: text.to_string_lossy().into_owned(), most: MOST })
}

/// Returns a part of a name that no other process takes meanwhile, even in a container with the
/// same PIDs.
pub(super) fn unique() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = clock_gettime(ClockId::Realtime);
    format!(
        "doorway-{}-{}-{}{:09}",
        process::id(),
        COUNT.fetch_add(1, Relaxed),
        now.tv_sec,
        now.tv_nsec
    )
}

/// A directory with named locks, one file each.
///
/// ```
/// # let place = tempfile::tempdir()?;
/// use doorway::shared::Directory;
/// let locks = Directory::at(place.path())?;
/// let gpus = locks.semaphore("gpu", 2)?;
/// let permit = gpus.acquire()?;
/// assert!(permit.slot() < 2);
/// assert_eq!(locks.names()?, ["gpu"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Directory {
    path: PathBuf,
    capacity: usize,
    group: Option<u32>,
}

impl Directory {
    /// Opens `$DOORWAY_DIR`, else `/dev/shm/doorway-UID`, and creates it if it is missing. It is
    /// the same for a shell, for cron and for `sudo -u`.
    ///
    /// # Errors
    /// When another user could put files there, or it cannot be created.
    pub fn of_user() -> Result<Self, Error> {
        Self::at(
            chosen().unwrap_or_else(|| format!("/dev/shm/doorway-{}", getuid().as_raw()).into()),
        )
    }

    /// Opens this directory, and creates it with mode 0700 if it is missing.
    ///
    /// # Errors
    /// When another user could put files there, or it cannot be created.
    pub fn at(path: impl Into<PathBuf>) -> Result<Self, Error> {
        Self::found(path.into(), None)
    }

    /// Opens `$DOORWAY_DIR`, else `/dev/shm/doorway-group-GID`: as [`of_user`](Self::of_user), for
    /// all users of a group.
    ///
    /// # Errors
    /// When a user outside of the group could put files there, or it cannot be created.
    pub fn of_group(gid: u32) -> Result<Self, Error> {
        Self::for_group(
            chosen().unwrap_or_else(|| format!("/dev/shm/doorway-group-{gid}").into()),
            gid,
        )
    }

    /// Opens this directory for all users of a group, and creates it with mode 0770 if it is
    /// missing. Locks are created with mode 0660, and such locks are trusted, whichever user of the
    /// group created them.
    ///
    /// # Errors
    /// When a user outside of the group could put files there, or it cannot be created.
    pub fn for_group(path: impl Into<PathBuf>, gid: u32) -> Result<Self, Error> {
        Self::found(path.into(), Some(gid))
    }

    fn found(path: PathBuf, group: Option<u32>) -> Result<Self, Error> {
        let directory = Self { path, capacity: usual_capacity()?, group };
        let fail = |errno| Error::system(&directory.path, errno);
        let stat = match rustix::fs::lstat(&directory.path) {
            Err(Errno::NOENT) => {
                match directory.make() {
                    Ok(()) | Err(Errno::EXIST) => {} // another process has made it meanwhile
                    Err(errno) => return Err(fail(errno)),
                }
                rustix::fs::lstat(&directory.path)
            }
            found => found,
        };
        directory.trust(&stat.map_err(fail)?)?;
        Ok(directory)
    }

    /// Creates the directory. The directory of a group is created under another name first, so that
    /// it belongs to the group before it has its own name.
    fn make(&self) -> Result<(), Errno> {
        let Some(gid) = self.group else { return rustix::fs::mkdir(&self.path, Mode::RWXU) };
        let hidden = self.path.with_file_name(format!(".{}", unique()));
        rustix::fs::mkdir(&hidden, Mode::RWXU)?;
        let made = rustix::fs::chown(&hidden, None, Some(Gid::from_raw(gid)))
            .and_then(|()| rustix::fs::chmod(&hidden, Mode::RWXU | Mode::RWXG))
            .and_then(|()| {
                rustix::fs::renameat_with(CWD, &hidden, CWD, &self.path, RenameFlags::NOREPLACE)
            });
        if made.is_err() {
            let _ = rustix::fs::rmdir(&hidden);
        }
        made
    }

    /// Creates locks for this many processes that hold and wait together. Without this or
    /// `$DOORWAY_CAPACITY` it is 4095, which is also the most. Existing locks keep their capacity.
    #[must_use]
    pub fn with_capacity(mut self, entries: usize) -> Self {
        self.capacity = entries.clamp(1, MOST);
        self
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a semaphore with this many slots, and creates it if it is missing.
    ///
    /// # Errors
    /// When something else has that name, or the lock cannot be created.
    pub fn semaphore(&self, name: &str, slots: usize) -> Result<Semaphore, Error> {
        Ok(Semaphore::new(self.lock_of(name, Kind::Semaphore, slots)?))
    }

    /// Opens a mutex, and creates it if it is missing.
    ///
    /// # Errors
    /// When something else has that name, or the lock cannot be created.
    pub fn mutex(&self, name: &str) -> Result<Mutex, Error> {
        Ok(Mutex::new(self.lock_of(name, Kind::Mutex, 1)?))
    }

    /// Opens a group lock, and creates it if it is missing. `slots` processes of one session may
    /// hold together; `None` means any number.
    ///
    /// # Errors
    /// When something else has that name, or the lock cannot be created.
    pub fn group_lock(&self, name: &str, slots: Option<usize>) -> Result<GroupLock, Error> {
        let lock = match slots {
            Some(slots) => self.lock_of(name, Kind::GroupLock, slots)?,
            None => {
                Lock::new(File::open(self, name, &Wanted::any(Kind::GroupLock, self.capacity))?)?
            }
        };
        Ok(GroupLock::new(lock))
    }

    /// Opens an existing lock of any kind, to look at it or to manage it.
    ///
    /// # Errors
    /// When there is no such lock, or it cannot be opened.
    pub fn lock(&self, name: &str) -> Result<Lock, Error> {
        Lock::new(File::attach(self, name)?)
    }

    /// Returns the names of the locks, in order.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn names(&self) -> Result<Vec<String>, Error> {
        let fail = |errno| Error::system(&self.path, errno);
        let mut names = Vec::new();
        for entry in Dir::read_from(self.open()?).map_err(fail)? {
            let name =
                String::from_utf8_lossy(entry.map_err(fail)?.file_name().to_bytes()).into_owned();
            if !name.starts_with('.') {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    fn lock_of(&self, name: &str, kind: Kind, slots: usize) -> Result<Lock, Error> {
        let entries = self.capacity.max((4 * slots).min(MOST));
        if slots == 0 || slots > MOST {
            return Err(Error::TooMany { path: self.path.join(name), asked: slots, most: MOST });
        }
        Lock::new(File::open(self, name, &Wanted { kind, entries, slots, exact: true })?)
    }

    /// Opens the directory, if it may be trusted.
    pub(super) fn open(&self) -> Result<OwnedFd, Error> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = rustix::fs::openat(CWD, &self.path, flags, Mode::empty()).map_err(
            |errno| match errno {
                Errno::LOOP | Errno::NOTDIR => self.wrong(NO_DIRECTORY),
                errno => Error::system(&self.path, errno),
            },
        )?;
        let stat =
            rustix::fs::fstat(&directory).map_err(|errno| Error::system(&self.path, errno))?;
        self.trust(&stat)?;
        Ok(directory)
    }

    fn wrong(&self, why: &'static str) -> Error {
        Error::Directory { path: self.path.clone(), why }
    }

    /// Checks that no other user can put files there.
    fn trust(&self, stat: &Stat) -> Result<(), Error> {
        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
            return Err(self.wrong(NO_DIRECTORY));
        }
        let (mode, sticky) = (stat.st_mode & 0o777, stat.st_mode & 0o1000 != 0);
        let mine = stat.st_uid == geteuid().as_raw() || stat.st_uid == 0;
        let groups = self.group.is_some_and(|gid| stat.st_gid == gid);
        if !mine && !groups {
            let group = self.group.map(|_| "it belongs to somebody else, and not to the group");
            return Err(self.wrong(group.unwrap_or("it belongs to somebody else")));
        }
        if mode & 0o002 != 0 && !sticky || mode & 0o020 != 0 && !sticky && !groups {
            return Err(self.wrong("others may write into it"));
        }
        // A file that any user makes there may belong to the group, as in a directory with the
        // setgid bit.
        if mode & 0o002 != 0 && groups {
            return Err(self.wrong("users outside of the group may write into it"));
        }
        Ok(())
    }

    /// Returns the path of a lock's file.
    pub(super) fn file(&self, name: &str) -> Result<PathBuf, Error> {
        let fits = (1..=200).contains(&name.len())
            && !name.starts_with('.')
            && !name.contains(['/', '\0']);
        if fits { Ok(self.path.join(name)) } else { Err(Error::Name(name.into())) }
    }

    /// Returns what is wrong with a file, if anything is.
    pub(super) fn distrusts(&self, stat: &Stat) -> Option<&'static str> {
        let mode = stat.st_mode & 0o7777;
        if stat.st_mode & 0o170_000 != 0o100_000 {
            return Some("it is not a regular file");
        }
        match self.group {
            None if stat.st_uid != geteuid().as_raw() => Some("it belongs to somebody else"),
            None if mode & 0o077 != 0 => Some("others may open it"),
            Some(gid) if stat.st_gid != gid => Some("it does not belong to the group"),
            Some(_) if mode & 0o007 != 0 => Some("others may open it"),
            _ => None,
        }
    }

    /// Returns the mode of new files, and their group.
    pub(super) fn access(&self) -> (Mode, Option<u32>) {
        match self.group {
            None => (Mode::RUSR | Mode::WUSR, None),
            Some(gid) => (Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::WGRP, Some(gid)),
        }
    }

    /// Runs while no other process removes files here. The kernel releases that lock when a process
    /// dies.
    pub(super) fn alone<T>(
        &self,
        directory: &OwnedFd,
        run: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        let fail = |errno| Error::system(&self.path, errno);
        rustix::io::retry_on_intr(|| rustix::fs::flock(directory, FlockOperation::LockExclusive))
            .map_err(fail)?;
        let done = run();
        rustix::fs::flock(directory, FlockOperation::Unlock).map_err(fail)?;
        done
    }

    /// Removes a file here.
    pub(super) fn unlink(&self, directory: &OwnedFd, path: &Path) -> Result<(), Error> {
        let name = path.file_name().unwrap_or_else(|| OsStr::from_bytes(b""));
        match rustix::fs::unlinkat(directory, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(Error::system(path, errno)),
        }
    }
}
