//! The file of a lock before it has its name: it gets the name once it is complete.

use std::{ffi::OsStr, os::fd::AsRawFd};

use rustix::{
    fd::OwnedFd,
    fs::{AtFlags, CWD, Mode, OFlags},
    io::Errno,
};

use super::super::directory::unique;

/// A file that does not have its name yet.
pub(super) struct NewFile<'a> {
    at: &'a OwnedFd,
    pub(super) fd: OwnedFd,
    /// Its name meanwhile. `None` if it has none: such a file disappears with its descriptor.
    hidden: Option<String>,
}

impl<'a> NewFile<'a> {
    const FLAGS: OFlags = OFlags::RDWR.union(OFlags::CLOEXEC);

    /// Creates a file without a name.
    ///
    /// # Errors
    /// When the file system has no such files, among others.
    pub(super) fn unnamed(at: &'a OwnedFd, mode: Mode) -> Result<Self, Errno> {
        let fd = rustix::fs::openat(at, ".", Self::FLAGS | OFlags::TMPFILE, mode)?;
        Ok(Self { at, fd, hidden: None })
    }

    /// Creates a hidden file. A process that is killed before it drops this leaves the file behind.
    pub(super) fn named(at: &'a OwnedFd, mode: Mode) -> Result<Self, Errno> {
        let (new, hidden) = (OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW, unique());
        let hidden = format!(".{hidden}");
        let fd = rustix::fs::openat(at, &hidden, Self::FLAGS | new, mode)?;
        Ok(Self { at, fd, hidden: Some(hidden) })
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// `EEXIST` if another file has that name.
    pub(super) fn link(&self, name: &OsStr) -> Result<(), Errno> {
        match &self.hidden {
            Some(hidden) => rustix::fs::linkat(self.at, hidden, self.at, name, AtFlags::empty()),
            None => {
                let old = format!("/proc/self/fd/{}", self.fd.as_raw_fd());
                rustix::fs::linkat(CWD, old, self.at, name, AtFlags::SYMLINK_FOLLOW)
            }
        }
    }
}

impl Drop for NewFile<'_> {
    fn drop(&mut self) {
        if let Some(hidden) = &self.hidden {
            let _ = rustix::fs::unlinkat(self.at, hidden, AtFlags::empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where files must have names, an error must not leave one behind.
    #[test]
    fn a_new_file_that_gets_no_name_is_removed() {
        let place = tempfile::tempdir().expect("it is made");
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let at = rustix::fs::openat(CWD, place.path(), flags, Mode::empty()).expect("it is there");
        let names = || std::fs::read_dir(place.path()).expect("it is there").count();
        let new = NewFile::named(&at, Mode::RUSR | Mode::WUSR).expect("it is made");
        assert_eq!(names(), 1);
        drop(new);
        assert_eq!(names(), 0);
        let new = NewFile::named(&at, Mode::RUSR | Mode::WUSR).expect("it is made");
        new.link(OsStr::new("lock")).expect("there is none of that name");
        assert_eq!(new.link(OsStr::new("lock")), Err(Errno::EXIST));
        drop(new);
        assert_eq!(names(), 1, "only the one with a name");
    }
}
