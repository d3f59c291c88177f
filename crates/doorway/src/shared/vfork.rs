//! Starts a program without copying this process first. Until `exec` the child borrows its parent's
//! memory, and the thread that starts it is suspended. `posix_spawn` does the same, but without a
//! step of ours before the program begins.

use std::{
    ffi::{CString, c_char, c_int, c_void},
    io,
    mem::MaybeUninit,
    ptr,
    sync::atomic::{AtomicBool, AtomicI32, Ordering::Relaxed},
};

use libc::{SIG_DFL, SIG_IGN, SIG_SETMASK, SIGCHLD, SIGPIPE, sigaction, sigset_t};
use rustix::{
    mm::{MapFlags, ProtFlags, mmap_anonymous, munmap},
    process::{Pid, WaitOptions, waitpid},
};

/// Room for the child's own frames and, in `execvpe`, for a path. What `execvpe` stores of the
/// arguments comes on top.
const STACK: usize = 64 << 10;

/// What the child needs, and its error.
struct Child<'a> {
    words: Vec<*const c_char>,
    environment: Vec<*const c_char>,
    first: &'a dyn Fn() -> io::Result<()>,
    /// The signals that were blocked before.
    mask: sigset_t,
    /// Why the program does not run.
    error: AtomicI32,
}

/// Starts a program, which is searched for as a shell does, after the child has run `first`, which
/// must neither allocate nor take a lock. Its standard streams, its directory and the signals that
/// it blocks and ignores are those of this process. Meanwhile this process runs `then`, before it
/// receives any signal again.
pub(super) fn start<T>(
    words: &[CString],
    environment: &[CString],
    first: &dyn Fn() -> io::Result<()>,
    then: impl FnOnce(Pid) -> T,
) -> io::Result<T> {
    let pointers =
        |texts: &[CString]| texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect();
    let (words, environment): (Vec<_>, Vec<_>) = (pointers(words), pointers(environment));
    let stack = Stack::new(STACK + size_of_val(&*words))?;
    // A handler must not run in the child, in the middle of its parent's memory.
    let mask = block_all();
    let mut child = Child { words, environment, first, mask, error: AtomicI32::new(0) };
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | SIGCHLD;
    // SAFETY: the stack is the child's alone, grows downwards and is large enough. `child` outlives
    // it: with CLONE_VFORK this thread goes on only when the child has called exec or has ended.
    let pid = unsafe { libc::clone(child_main, stack.top(), flags, (&raw mut child).cast()) };
    let failed = io::Error::last_os_error();
    let done = match (Pid::from_raw(pid).filter(|_| pid > 0), child.error.load(Relaxed)) {
        (None, _) => Err(failed),
        (Some(pid), 0) => Ok(then(pid)),
        (Some(pid), error) => {
            let _ = rustix::io::retry_on_intr(|| waitpid(Some(pid), WaitOptions::empty()));
            Err(io::Error::from_raw_os_error(error))
        }
    };
    set_mask(&mask);
    done
}

/// Runs between `clone` and `exec`. Returns only by ending the process.
extern "C" fn child_main(child: *mut c_void) -> c_int {
    // SAFETY: it is what `start` gave to `clone`, and is there until this process calls exec or
    // ends. All is read only but for an atomic.
    let child = unsafe { &*child.cast::<Child<'_>>() };
    forget_handlers();
    let error = match (child.first)() {
        Ok(()) => {
            set_mask(&child.mask);
            // SAFETY: both lists end in a null, and their texts are there as long as `child` is.
            unsafe {
                libc::execvpe(child.words[0], child.words.as_ptr(), child.environment.as_ptr())
            };
            io::Error::last_os_error()
        }
        Err(error) => error,
    };
    child.error.store(error.raw_os_error().unwrap_or(libc::EIO), Relaxed);
    // SAFETY: ends at once, without running what the parent wants to have run at its own end.
    unsafe { libc::_exit(127) }
}

/// Whether a program begins with SIGPIPE ignored.
static IGNORES_SIGPIPE: AtomicBool = AtomicBool::new(false);

/// Lets the programs that [`Permit::start`](super::Permit::start) starts ignore SIGPIPE.
///
/// Rust programs ignore SIGPIPE, whatever their caller wanted, and other programs do not expect it
/// to be ignored. So `start` resets it, as [`Command`](std::process::Command) does. Call this where
/// the caller of this process had it ignored, as `trap '' PIPE` does.
///
/// ```
/// doorway::shared::let_programs_ignore_sigpipe();
/// ```
pub fn let_programs_ignore_sigpipe() {
    IGNORES_SIGPIPE.store(true, Relaxed);
}

/// Resets each caught signal to its default action, as `exec` does. SIGPIPE too, unless programs are
/// to ignore it.
fn forget_handlers() {
    for signal in 1..=libc::SIGRTMAX() {
        let mut action = MaybeUninit::<sigaction>::zeroed();
        // SAFETY: the action is written by the first call and read by the second. All of its bits
        // may be zeros. This process has its own table of handlers, which was copied.
        unsafe {
            let action = action.as_mut_ptr();
            if libc::sigaction(signal, ptr::null(), action) != 0 {
                continue; // one that the C library keeps to itself
            }
            let caught = (*action).sa_sigaction != SIG_DFL && (*action).sa_sigaction != SIG_IGN;
            if caught || signal == SIGPIPE && !IGNORES_SIGPIPE.load(Relaxed) {
                (*action).sa_sigaction = SIG_DFL;
                libc::sigaction(signal, action, ptr::null_mut());
            }
        }
    }
}

/// Runs a function while all signals of this thread are blocked: a thread that it starts receives
/// none.
pub(super) fn without_signals<T>(run: impl FnOnce() -> T) -> T {
    let mask = block_all();
    let done = run();
    set_mask(&mask);
    done
}

fn block_all() -> sigset_t {
    let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: the first is filled before it is read, the second by the call, which cannot fail:
    // what it is told to do exists.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        before.assume_init()
    }
}

fn set_mask(mask: &sigset_t) {
    // SAFETY: it is a mask, and nothing is written.
    unsafe { libc::pthread_sigmask(SIG_SETMASK, mask, ptr::null_mut()) };
}

/// Memory for the child's stack.
struct Stack {
    start: *mut c_void,
    len: usize,
}

impl Stack {
    fn new(len: usize) -> io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the system chooses where, so nothing is replaced.
        let start = unsafe {
            mmap_anonymous(ptr::null_mut(), len, access, MapFlags::PRIVATE | MapFlags::STACK)?
        };
        Ok(Self { start, len })
    }

    /// Returns the address where the stack begins: stacks grow downwards.
    fn top(&self) -> *mut c_void {
        self.start.wrapping_byte_add(self.len & !15)
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: the child has called exec or ended, and this thread does not use it any more.
        let _ = unsafe { munmap(self.start, self.len) };
    }
}
