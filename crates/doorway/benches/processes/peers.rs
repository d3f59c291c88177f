//! What processes share today: a robust mutex and a semaphore of pthreads in shared memory, flock(2), and a semaphore of System V
//! with `SEM_UNDO`.

use std::{
    cell::UnsafeCell,
    fs::{File, OpenOptions},
    io, mem,
    os::fd::AsRawFd,
    path::Path,
    ptr,
};

use memmap2::{MmapOptions, MmapRaw};

use crate::Lock;

/// Something of pthreads in a mapped file.
struct Mapped<T>(MmapRaw, std::marker::PhantomData<UnsafeCell<T>>);

impl<T> Mapped<T> {
    fn open(path: &Path) -> Self {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).expect("a file");
        file.set_len(mem::size_of::<T>() as u64).expect("room for it");
        Self(MmapOptions::new().len(mem::size_of::<T>()).map_raw(&file).expect("a mapping"), std::marker::PhantomData)
    }

    fn get(&self) -> *mut T {
        self.0.as_mut_ptr().cast()
    }
}

fn done(code: i32) {
    assert_eq!(code, 0, "{}", io::Error::last_os_error());
}

/// `pthread_mutex_t`, shared and robust.
pub(crate) struct RobustMutex(Mapped<libc::pthread_mutex_t>);

impl Lock for RobustMutex {
    const NAME: &'static str = "pthread robust mutex";

    fn create(path: &Path) {
        let mutex = Mapped::<libc::pthread_mutex_t>::open(path);
        let mut attributes = mem::MaybeUninit::uninit();
        // SAFETY: the attributes are initialised before they are used, the mutex lies in the mapping, which is large enough and
        // page-aligned, and nobody else has it yet.
        unsafe {
            done(libc::pthread_mutexattr_init(attributes.as_mut_ptr()));
            done(libc::pthread_mutexattr_setpshared(attributes.as_mut_ptr(), libc::PTHREAD_PROCESS_SHARED));
            done(libc::pthread_mutexattr_setrobust(attributes.as_mut_ptr(), libc::PTHREAD_MUTEX_ROBUST));
            done(libc::pthread_mutex_init(mutex.get(), attributes.as_ptr()));
            done(libc::pthread_mutexattr_destroy(attributes.as_mut_ptr()));
        }
    }

    fn open(path: &Path) -> Self {
        Self(Mapped::open(path))
    }

    #[inline]
    fn passage(&self, inside: impl FnOnce()) {
        // SAFETY: it was initialised by `create`, and the mapping lives as long as this.
        done(unsafe { libc::pthread_mutex_lock(self.0.get()) });
        inside();
        // SAFETY: as above, and this thread has it.
        done(unsafe { libc::pthread_mutex_unlock(self.0.get()) });
    }
}

/// `sem_t`, shared. Whoever is killed keeps its slot, and newcomers overtake.
pub(crate) struct Semaphore(Mapped<libc::sem_t>);

impl Lock for Semaphore {
    const NAME: &'static str = "sem_t";

    fn create(path: &Path) {
        let semaphore = Mapped::<libc::sem_t>::open(path);
        // SAFETY: it lies in the mapping, and nobody else has it yet.
        done(unsafe { libc::sem_init(semaphore.get(), 1, 1) });
    }

    fn open(path: &Path) -> Self {
        Self(Mapped::open(path))
    }

    #[inline]
    fn passage(&self, inside: impl FnOnce()) {
        // SAFETY: it was initialised by `create`, and the mapping lives as long as this.
        while unsafe { libc::sem_wait(self.0.get()) } != 0 {} // a signal
        inside();
        // SAFETY: as above.
        done(unsafe { libc::sem_post(self.0.get()) });
    }
}

/// flock(2).
pub(crate) struct Flock(File);

impl Lock for Flock {
    const NAME: &'static str = "flock(2)";

    fn create(path: &Path) {
        File::create(path).expect("a file");
    }

    fn open(path: &Path) -> Self {
        Self(File::open(path).expect("a file"))
    }

    #[inline]
    fn passage(&self, inside: impl FnOnce()) {
        // SAFETY: the file is open.
        done(unsafe { libc::flock(self.0.as_raw_fd(), libc::LOCK_EX) });
        inside();
        // SAFETY: the file is open.
        done(unsafe { libc::flock(self.0.as_raw_fd(), libc::LOCK_UN) });
    }
}

/// A semaphore of System V whose operations are undone when a process dies.
pub(crate) struct SystemV(i32);

impl SystemV {
    fn operate(&self, by: i16) {
        let mut operation = libc::sembuf { sem_num: 0, sem_op: by, sem_flg: libc::SEM_UNDO as i16 };
        // SAFETY: there is one operation.
        while unsafe { libc::semop(self.0, ptr::from_mut(&mut operation), 1) } != 0 {} // a signal
    }
}

/// Its number is kept in a file, as others have a name.
impl Lock for SystemV {
    const NAME: &'static str = "System V, SEM_UNDO";

    fn create(path: &Path) {
        // SAFETY: a new set of one semaphore, and its value set.
        let id = unsafe { libc::semget(libc::IPC_PRIVATE, 1, 0o600) };
        assert!(id >= 0, "{}", io::Error::last_os_error());
        // SAFETY: as above.
        done(unsafe { libc::semctl(id, 0, libc::SETVAL, 1) });
        std::fs::write(path, id.to_string()).expect("a file");
    }

    fn open(path: &Path) -> Self {
        Self(std::fs::read_to_string(path).expect("a file").parse().expect("a number"))
    }

    fn remove(path: &Path) {
        // SAFETY: nobody uses it any more.
        done(unsafe { libc::semctl(Self::open(path).0, 0, libc::IPC_RMID) });
    }

    #[inline]
    fn passage(&self, inside: impl FnOnce()) {
        self.operate(-1);
        inside();
        self.operate(1);
    }
}
