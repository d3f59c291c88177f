//! Whether the caller had this process ignore SIGPIPE, as `trap '' PIPE` in a shell does.
//!
//! Before `main` begins, Rust's runtime ignores SIGPIPE, whatever the caller wanted. So the question
//! is asked before that, by a function that the C library calls when the program is loaded. What
//! is ignored stays ignored for the command that `doorway run` starts.

use std::{
    mem::MaybeUninit,
    ptr,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

static WAS_IGNORED: AtomicBool = AtomicBool::new(false);

// SAFETY: the C library calls the functions of this section with arguments that they may leave out.
// This one calls nothing that needs Rust's runtime.
#[used]
#[unsafe(link_section = ".init_array")]
static NOTE: extern "C" fn() = note;

extern "C" fn note() {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: the action is valid for a write, and all of its bits may be zeros.
    let ignored = unsafe {
        libc::sigaction(libc::SIGPIPE, ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    };
    WAS_IGNORED.store(ignored, Relaxed);
}

/// Returns whether SIGPIPE was ignored when this process began.
pub(crate) fn was_ignored() -> bool {
    WAS_IGNORED.load(Relaxed)
}

/// Ignores SIGPIPE. For use between fork and exec, where Rust's library has reset it.
#[cfg(feature = "etcd")]
pub(crate) fn ignore() {
    // SAFETY: nothing is called when the signal comes.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}
