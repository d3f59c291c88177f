//! Limits the memory of a search, and makes the files that hold the rest.
//!
//! Only what grows with the number of states is counted: tables and levels. When they would exceed
//! the limit, they go to files instead. The files have no names, so nothing of them is left behind,
//! however the search ends. Their blocks are allocated when they are made, so that a full disk is
//! an error then and not a `SIGBUS` later.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    process,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use rustix::{
    fs::{FallocateFlags, fallocate},
    io::Errno,
};

/// The memory that a search may take.
#[derive(Debug)]
pub(crate) struct Room {
    limit: u64,
    used: AtomicU64,
    on_disk: AtomicU64,
    directory: PathBuf,
}

impl Room {
    /// Allows at most `limit` bytes of memory; the rest goes to files of this directory.
    pub(crate) fn new(limit: Option<u64>, directory: Option<&Path>) -> Arc<Self> {
        let directory = directory.map_or_else(disk, Path::to_path_buf);
        let (used, on_disk) = (AtomicU64::new(0), AtomicU64::new(0));
        Arc::new(Self { limit: limit.unwrap_or(u64::MAX), used, on_disk, directory })
    }

    /// Returns the bytes of memory that are taken.
    pub(crate) fn used(&self) -> u64 {
        self.used.load(Relaxed)
    }

    /// Returns the bytes of memory that may be taken.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// Returns the bytes that are in files.
    pub(crate) fn on_disk(&self) -> u64 {
        self.on_disk.load(Relaxed)
    }

    /// Returns the directory of the files.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Takes this many bytes of memory, if they may be taken.
    pub(crate) fn take(self: &Arc<Self>, bytes: u64) -> Option<Lease> {
        let sum = |used: u64| used.checked_add(bytes).filter(|&sum| sum <= self.limit);
        self.used.fetch_update(Relaxed, Relaxed, sum).ok()?;
        Some(Lease { room: self.clone(), bytes, disk: false })
    }

    /// Makes a file of this many bytes, all zero, that has no name.
    pub(crate) fn file(self: &Arc<Self>, bytes: u64) -> io::Result<(File, Lease)> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = format!(".doorway-{}-{}", process::id(), COUNT.fetch_add(1, Relaxed));
        let path = self.directory.join(name);
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
        fs::remove_file(&path)?;
        let mut lease = Lease { room: self.clone(), bytes: 0, disk: true };
        lease.extend_file(&file, bytes)?;
        Ok((file, lease))
    }
}

/// Bytes that stay taken until this is dropped.
#[derive(Debug)]
pub(crate) struct Lease {
    room: Arc<Room>,
    bytes: u64,
    disk: bool,
}

impl Lease {
    /// Makes the file of this lease longer, up to so many bytes.
    pub(crate) fn extend_file(&mut self, file: &File, bytes: u64) -> io::Result<()> {
        let more = bytes - self.bytes;
        match fallocate(file, FallocateFlags::empty(), self.bytes, more) {
            // Where blocks cannot be allocated ahead, writing zeros allocates them.
            Err(Errno::OPNOTSUPP) => write_zeros(file, more)?,
            result => result?,
        }
        self.room.on_disk.fetch_add(more, Relaxed);
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let taken = if self.disk { &self.room.on_disk } else { &self.room.used };
        taken.fetch_sub(self.bytes, Relaxed);
    }
}

/// Appends zeros. The position of the file is its end, because nothing else moves it.
fn write_zeros(mut file: &File, bytes: u64) -> io::Result<()> {
    let zeros = vec![0; 1 << 20];
    let mut left = bytes;
    while left > 0 {
        let piece = left.min(zeros.len() as u64);
        file.write_all(&zeros[..piece as usize])?;
        left -= piece;
    }
    Ok(())
}

/// Returns the default directory of files: `$TMPDIR`, or `/var/tmp`, which is on a disk where
/// `/tmp` may be in memory.
fn disk() -> PathBuf {
    let set =
        std::env::var_os("TMPDIR").filter(|directory| !directory.is_empty()).map(PathBuf::from);
    let lasting = || Some(PathBuf::from("/var/tmp")).filter(|path| path.is_dir());
    set.or_else(lasting).unwrap_or_else(std::env::temp_dir)
}

/// Returns the bytes of memory that this process could still take, if the system says.
///
/// That is how much it could take before anything is swapped out or killed: what the machine has
/// available, or what is left in the process's control group.
pub fn available_memory() -> Option<u64> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok();
    let machine = meminfo.as_deref().and_then(available_in);
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    machine.into_iter().chain(left_in_groups(&groups, Path::new("/sys/fs/cgroup"))).min()
}

fn available_in(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Returns what is left in a control group and in all groups around it, for either version of
/// control groups.
fn left_in_groups(groups: &str, root: &Path) -> Option<u64> {
    let mut least = None;
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':');
        let (_, Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let (base, limit, usage) = match controllers {
            "" => (root.to_path_buf(), "memory.max", "memory.current"),
            _ if controllers.split(',').any(|name| name == "memory") => {
                (root.join("memory"), "memory.limit_in_bytes", "memory.usage_in_bytes")
            }
            _ => continue,
        };
        for group in Path::new(path).ancestors() {
            let group = base.join(group.strip_prefix("/").unwrap_or(group));
            let number =
                |name: &str| fs::read_to_string(group.join(name)).ok()?.trim().parse::<u64>().ok();
            if let (Some(limit), Some(usage)) = (number(limit), number(usage)) {
                // Cached files count as used, and are given up when memory is asked for.
                let stat = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
                let cached = stat
                    .lines()
                    .find_map(|line| line.strip_prefix("inactive_file ")?.trim().parse().ok());
                let left = limit.saturating_sub(usage.saturating_sub(cached.unwrap_or(0)));
                least = Some(least.map_or(left, |least: u64| least.min(left)));
            }
        }
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_taken_and_given_back() {
        let room = Room::new(Some(100), None);
        let first = room.take(60).expect("it fits");
        assert!(room.take(41).is_none() && room.take(u64::MAX).is_none());
        let second = room.take(40).expect("it fits");
        assert_eq!(room.used(), 100);
        drop((first, second));
        assert_eq!(room.used(), 0);
    }

    #[test]
    fn files_have_no_names_and_are_counted() {
        let directory = std::env::temp_dir().join(format!("doorway-room-{}", process::id()));
        fs::create_dir(&directory).expect("it can be made");
        let room = Room::new(Some(0), Some(&directory));
        let (file, mut lease) = room.file(5000).expect("there is a disk");
        lease.extend_file(&file, 9000).expect("there is a disk");
        assert_eq!((room.on_disk(), file.metadata().expect("it is open").len()), (9000, 9000));
        assert_eq!(fs::read_dir(&directory).expect("it is there").count(), 0);
        drop(lease);
        assert_eq!(room.on_disk(), 0);
        fs::remove_dir(&directory).expect("it is empty");
    }

    #[test]
    fn the_least_of_all_limits_counts() {
        assert_eq!(available_in("MemTotal:  9 kB\nMemAvailable:     7 kB\n"), Some(7 * 1024));
        let root = std::env::temp_dir().join(format!("doorway-groups-{}", process::id()));
        let put = |name: &str, text: &str| {
            let path = root.join(name);
            fs::create_dir_all(path.parent().expect("it is in a directory"))
                .expect("it can be made");
            fs::write(path, text).expect("it can be written");
        };
        put("a/memory.max", "1000\n");
        put("a/memory.current", "300\n");
        put("a/memory.stat", "anon 1\ninactive_file 100\n");
        put("a/b/memory.max", "max\n");
        put("a/b/memory.current", "200\n");
        assert_eq!(left_in_groups("0::/a/b\n", &root), Some(800));
        assert_eq!(left_in_groups("0::/c\n", &root), None);
        put("memory/d/memory.limit_in_bytes", "50\n");
        put("memory/d/memory.usage_in_bytes", "60\n");
        assert_eq!(left_in_groups("4:cpu:/d\n5:memory:/d\n0::/a\n", &root), Some(0));
        fs::remove_dir_all(&root).expect("it is there");
    }
}
