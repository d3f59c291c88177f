//! Identifies processes, and decides whether a process is dead.
//!
//! A process is identified by its PID and a *life*: the number of its namespace in the file of the
//! lock, and 32 bits made of its start time (field 22 of `/proc/PID/stat`) and the boot ID. A
//! reused PID has another life, and so has a process of another boot.
//!
//! A process is declared dead only on evidence that cannot be transient. In its own namespace that
//! evidence is the kernel's:
//!
//! | state of the process | what the kernel shows | verdict |
//! |---|---|---|
//! | running, sleeping, stopped, traced | `stat` has the same start time and state R, S, D, T or t | alive |
//! | reaped | `kill` fails with `ESRCH` | dead |
//! | PID reused | `stat` has another start time | dead |
//! | zombie: all threads have ended | `stat` has state Z, and a pidfd is readable | dead |
//! | first thread has ended, others run | `stat` has state Z, and no pidfd is readable | alive |
//! | exec from another thread in progress | `stat` has state Z or X for an instant, and no pidfd is readable | alive |
//! | hidden (`hidepid`), or `/proc` not mounted | `kill` finds it, and `stat` cannot be read | alive |
//! | the caller has no file descriptor left | `kill` finds it, and nothing can be opened | alive |
//!
//! PIDs mean nothing in another PID namespace, and start times nothing in another time namespace.
//! There the evidence is a [witness]: a lock on a byte of the file that the kernel releases when
//! the process ends.
//!
//! | state of the process in another namespace | what the kernel shows | verdict |
//! |---|---|---|
//! | it lives, or a process that it forked and that has not called exec | its byte is locked | alive |
//! | a command of `doorway run`: it or its wrapper lives | its byte is locked | alive |
//! | it has ended | its byte is free | dead |
//! | it has no witness: see [`witnessed`] | nothing | alive; processes of its own namespace find its death |
//! | its namespace is not in the file | nothing | dead: the owner is not a process, but damage |
//!
//! "Alive" where nothing is known costs time, never exclusion: a dead process then keeps its slot
//! until its PID is free or the evidence can be had. A process that cannot identify *itself* gets
//! an error and does not enter.

mod namespace;
mod proc;
#[expect(unsafe_code, reason = "locks on bytes of a file, which rustix does not have")]
mod witness;

use std::os::fd::{AsFd, OwnedFd};

use doorway_core::{Registers, engines::named_lock::Owner};
use rustix::{
    io::Errno,
    process::{Pid, getpid, test_kill_process},
};

pub(super) use self::{
    namespace::{MOST as MOST_NAMESPACES, Namespace},
    witness::watch as watch_witness,
};
use super::{Error, file::File, memory::Quick};

/// Bits of the namespace in a life.
const NAMESPACE: u32 = 9;
/// The bit of a life that says that the process has a witness.
const WITNESSED: u64 = 1 << NAMESPACE;
/// Where the start time and boot ID are in a life.
const HASH: u32 = NAMESPACE + 1;
/// Bits of these.
const HASH_BITS: u32 = u64::BITS - Owner::PROCESS - HASH;

/// Returns the identity of a process of this namespace that began at this time, without a witness.
fn identity(namespace: Namespace, pid: Pid, start: u64) -> Result<Owner, Errno> {
    let mixed = (start ^ proc::boot()?).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let life = mixed >> (u64::BITS - HASH_BITS) << HASH | namespace.0 as u64;
    Ok(Owner::new(pid.as_raw_nonzero().get() as usize - 1, life))
}

/// Returns the identity of this process.
///
/// # Errors
/// When `/proc` does not tell its start time or the boot ID: with a guess in their place, other
/// processes would take this one for dead. `EXDEV` when `/proc` is that of another PID namespace:
/// there the PIDs of this one mean other processes.
fn myself(namespace: Namespace) -> Result<Owner, Errno> {
    let seen = proc::read_stat(c"/proc/self/stat")?;
    if seen.pid != getpid() {
        return Err(Errno::XDEV);
    }
    identity(namespace, seen.pid, seen.start)
}

/// Returns the same process, marked as one with a witness.
///
/// Without a witness are: a command that was started before the lock had been used in a container,
/// and a command that has closed the descriptor of its witness.
fn witnessed(owner: Owner) -> Owner {
    Owner::new(owner.process(), owner.life() | WITNESSED)
}

/// Returns the same process, marked as one without a witness.
fn unwitnessed(owner: Owner) -> Owner {
    Owner::new(owner.process(), owner.life() & !WITNESSED)
}

fn is_witnessed(owner: Owner) -> bool {
    owner.life() & WITNESSED != 0
}

/// Returns the PID of an owner, in the namespace of that.
pub(super) fn pid(owner: Owner) -> Option<Pid> {
    i32::try_from(owner.process().wrapping_add(1)).ok().and_then(Pid::from_raw)
}

/// Returns whether a process of this namespace is dead; see the first table above.
fn has_ended(other: Owner) -> bool {
    // An owner without a PID is none.
    let Some(pid) = pid(other) else { return true };
    if test_kill_process(pid) == Err(Errno::SRCH) {
        return true;
    }
    let Ok(seen) = proc::stat_of(pid) else { return false };
    let Ok(found) = identity(Namespace::of(other), pid, seen.start) else { return false };
    found != unwitnessed(other) || seen.ended && proc::has_ended(pid)
}

/// Where a process is born, for a child that is to be known in the namespace of its parent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Birthplace {
    namespaces: [u64; 2],
    /// The device of `/proc`, which numbers processes as its PID namespace does.
    proc: u64,
}

impl Birthplace {
    /// Returns that of the children of this process.
    pub(super) fn here() -> Result<Self, Errno> {
        Ok(Self { namespaces: proc::namespaces()?, proc: proc::device()? })
    }

    /// Returns the identity of this process. Its parent is of this namespace, and may have moved
    /// its children to other namespaces. For use between fork and exec: allocates nothing.
    ///
    /// # Errors
    /// As [`myself`]; `EXDEV` when this process has another `/proc` or counts time from another
    /// start, so that it cannot know the numbers by which its parent's namespaces know it.
    fn child(&self, namespace: Namespace) -> Result<Owner, Errno> {
        let mine = proc::namespaces()?;
        if mine != self.namespaces
            && (mine[1] != self.namespaces[1] || proc::device()? != self.proc)
        {
            return Err(Errno::XDEV);
        }
        let seen = proc::read_stat(c"/proc/self/stat")?;
        identity(namespace, seen.pid, seen.start)
    }
}

impl File {
    /// Establishes the identity of this process and its witness. A process that was forked since
    /// the file was opened may be in another namespace, and gets a witness of its own. One thread
    /// at a time.
    pub(super) fn identify(&self) -> Result<Owner, Error> {
        match self.try_to_identify() {
            Ok(Some(me)) => Ok(me),
            Ok(None) => Err(Error::Namespaces(self.path().into())),
            Err(Errno::XDEV) => Err(Error::Namespace(self.path().into())),
            Err(errno) => Err(Error::identity(self.path(), errno)),
        }
    }

    /// The same; `None` if there is no number left for the namespace of this process.
    fn try_to_identify(&self) -> Result<Option<Owner>, Errno> {
        let forked = self.namespace().map(|_| witness::reopen_for_fork(self.fd())).transpose()?;
        let fd = forked.as_ref().map_or(self.fd(), OwnedFd::as_fd);
        let mine = Namespace::pack(proc::namespaces()?)?;
        let namespace = Namespace::register(self.namespaces(), fd, mine, |number| {
            self.has_unwitnessed(number)
        })?;
        let Some(namespace) = namespace else { return Ok(None) };
        let me = witnessed(myself(namespace)?);
        witness::hold(fd, me)?;
        if let Some(own) = &forked {
            witness::replace(self.fd(), own)?;
        }
        self.set_namespace(namespace);
        Ok(Some(me))
    }

    /// Returns whether an entry belongs to a process of this namespace that has no witness.
    fn has_unwitnessed(&self, number: Namespace) -> bool {
        let (table, m) = (self.table(), &mut Quick::new(self.words()));
        let used = m.read(table.used()).map_or(table.entries(), |used| used as usize);
        (0..used.min(table.entries())).any(|entry| match m.read(table.owner(entry)) {
            Ok(owner) => {
                owner.is_some_and(|owner| Namespace::of(owner) == number && !is_witnessed(owner))
            }
            Err(_) => true,
        })
    }

    /// Returns the identity under which a child of `parent` keeps a slot across exec, and gives it
    /// a witness if processes of other namespaces may want one. For use between fork and exec:
    /// allocates nothing.
    ///
    /// # Errors
    /// As [`Birthplace::child`].
    pub(super) fn identify_child(
        &self,
        parent: Owner,
        birthplace: Birthplace,
    ) -> Result<Owner, Errno> {
        let me = witnessed(birthplace.child(Namespace::of(parent))?);
        let is_wanted = is_witnessed(parent) && Namespace::are_several(self.namespaces());
        let is_held = is_wanted
            && witness::hold(self.fd(), me).is_ok()
            && witness::hold_across_exec(self.fd(), me).is_ok();
        Ok(if is_held { me } else { unwitnessed(me) })
    }

    /// Gives up this process's share in the witness of a child, which the child keeps alone from
    /// then on.
    pub(super) fn release_witness(&self, child: Owner) {
        if is_witnessed(child) {
            witness::release(self.fd(), child);
        }
    }

    /// Returns whether a process is dead; see the tables of this module.
    pub(super) fn is_dead(&self, other: Owner) -> bool {
        let namespace = Namespace::of(other);
        if pid(other).is_none() || !namespace.is_registered(self.namespaces()) {
            return true;
        }
        match self.namespace() {
            Some(mine) if mine == namespace => has_ended(other),
            // Asked of no process's own witness: that would be a lock of the one that asks.
            Some(_) => is_witnessed(other) && witness::is_free(self.fd(), other),
            None => false,
        }
    }

    /// Returns whether a process is of another namespace, where its PID means another process or
    /// none.
    pub(super) fn is_foreign(&self, other: Owner) -> bool {
        self.namespace() != Some(Namespace::of(other))
    }
}

#[cfg(test)]
mod tests {
    use std::{
        env,
        os::unix::process::CommandExt,
        process::{Command, Stdio},
        thread,
    };

    use super::*;

    /// The namespace of this process.
    const HERE: Namespace = Namespace(7);

    /// The identity of another process.
    fn known(pid: Pid) -> Owner {
        identity(HERE, pid, proc::stat_of(pid).expect("it is there").start)
            .expect("/proc is mounted")
    }

    #[test]
    fn this_process_is_alive_and_another_one_with_its_pid_is_not() {
        let me = myself(HERE).expect("/proc is mounted");
        assert!(!has_ended(me));
        assert!(!has_ended(witnessed(me)), "a witness makes no other process of it");
        assert_eq!(pid(me), Some(getpid()));
        assert!(has_ended(Owner::new(me.process(), me.life() ^ 1 << HASH)), "another life");
    }

    #[test]
    fn a_zombie_is_dead_and_a_stopped_process_is_alive() {
        let mut child =
            Command::new("sleep").arg("60").stdout(Stdio::null()).spawn().expect("sleep is there");
        let pid = Pid::from_child(&child);
        let owner = known(pid);
        assert!(!has_ended(owner));
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).expect("it is ours");
        assert!(!has_ended(owner), "stopped");
        child.kill().expect("it is ours");
        // Not reaped: a zombie as soon as it has ended.
        while !has_ended(owner) {
            std::thread::yield_now();
        }
        child.wait().expect("it has ended");
        assert!(has_ended(owner), "gone");
    }

    /// Its first thread has ended, and another goes on.
    #[test]
    fn a_process_without_its_first_thread_is_alive() {
        let script = "import threading, time, ctypes\n\
                      threading.Thread(target=time.sleep, args=(60,)).start()\n\
                      print('on', flush=True)\n\
                      ctypes.CDLL(None).pthread_exit(None)";
        let child = Command::new("python3").args(["-c", script]).stdout(Stdio::piped()).spawn();
        let mut child = child.expect("it starts: scripts/need python3");
        let mut line = String::new();
        std::io::BufRead::read_line(
            &mut std::io::BufReader::new(child.stdout.take().expect("piped")),
            &mut line,
        )
        .expect("it says something");
        let pid = Pid::from_child(&child);
        let owner = known(pid);
        while !proc::stat_of(pid).expect("it is there").ended {
            assert!(child.try_wait().expect("it is ours").is_none());
            std::thread::yield_now();
        }
        assert!(!has_ended(owner));
        child.kill().expect("it is ours");
        child.wait().expect("it has ended");
        assert!(has_ended(owner));
    }

    /// While a thread that is not the first one calls exec, `/proc` shows the end of the first one
    /// for an instant.
    #[test]
    fn a_process_that_execs_from_another_thread_is_alive() {
        const HELPER: &str = "DOORWAY_TEST_EXECS";
        let name = "shared::liveness::tests::a_process_that_execs_from_another_thread_is_alive";
        let mut again = Command::new(env::current_exe().expect("it has a path"));
        again.args(["--exact", name, "--nocapture"]).env(HELPER, "1").stdout(Stdio::null());
        if env::var_os(HELPER).is_some() {
            let error = thread::spawn(move || again.exec()).join();
            panic!("it does not exec: {error:?}");
        }
        let mut child = again.spawn().expect("it starts");
        let owner = known(Pid::from_child(&child));
        let times_dead = (0..300_000).filter(|_| has_ended(owner)).count();
        assert!(child.try_wait().expect("it is ours").is_none(), "it goes on for ever");
        child.kill().expect("it is ours");
        child.wait().expect("it has ended");
        assert_eq!(times_dead, 0);
    }
}
