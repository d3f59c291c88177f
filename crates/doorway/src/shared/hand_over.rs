//! Hand-over: the slot of a process becomes its child's, and is taken back when the child has
//! ended.
//!
//! The child makes the entry its own by one compare-and-swap between fork and exec, and keeps it
//! across exec: it is the same process then. The parent stays as the *keeper* of the entry: when
//! the child has ended it takes the slot back, and only if it does not, other processes reclaim the
//! slot.

use std::{
    ffi::{CString, OsStr, OsString},
    io,
    os::unix::{
        ffi::{OsStrExt, OsStringExt},
        process::CommandExt,
    },
    process::{Child, Command},
    sync::{Arc, atomic::Ordering::Relaxed},
};

use doorway_core::{
    Registers, Ticket, Value,
    engines::named_lock::{Owner, State},
};
use rustix::io::Errno;

use super::{
    Error, Lock, Permit,
    entries::Position,
    file::{File, entry},
    liveness::{self, Birthplace},
    memory::{Mapped, Quick, Stop},
    vfork,
};

/// What a child needs to make the slot of its parent its own.
#[derive(Clone, Debug)]
pub struct HandOver {
    file: Arc<File>,
    entry: usize,
    ticket: Ticket,
    /// The parent; `None` if it was forked since it acquired the slot, which is not its own then.
    from: Option<Owner>,
    birthplace: Result<Birthplace, Errno>,
}

impl HandOver {
    /// Makes the slot this process's own, by one compare-and-swap. For
    /// [`pre_exec`](std::os::unix::process::CommandExt::pre_exec): it allocates nothing and takes
    /// no lock. After `exec` the process is still the same, and keeps the slot for as long as it
    /// lives, whatever becomes of its parent.
    ///
    /// # Errors
    /// `ESTALE` when the parent has lost the slot: it has released it, or it has died and the slot
    /// was reclaimed. `EXDEV` when this process was moved to other namespaces and cannot know by
    /// which PID its parent knows it. Another error when `/proc` cannot be read. After an error do
    /// not call exec.
    pub fn adopt(&self) -> io::Result<()> {
        let (table, mut m) = (self.file.table(), Quick::new(self.file.words()));
        let holds = |m: &mut Quick<'_>| {
            let state = m.read(table.state(self.entry));
            matches!(state, Ok(State::Holding { ticket, .. }) if ticket == self.ticket)
        };
        let (true, Some(from)) = (holds(&mut m), self.from) else {
            return Err(Errno::STALE.into());
        };
        let me = self.file.identify_child(from, self.birthplace?)?;
        if !matches!(table.hand_over(&mut m, self.entry, from, me), Ok(true)) {
            return Err(Errno::STALE.into());
        }
        // The parent may have released the slot and claimed the entry again before that.
        if !holds(&mut m) {
            let _ = table.hand_over(&mut m, self.entry, me, from);
            return Err(Errno::STALE.into());
        }
        // It watches the parent, and has to watch this process.
        self.file.wake_front();
        Ok(())
    }
}

impl Permit<'_> {
    /// Returns what a child needs to make the slot its own: see [`HandOver::adopt`].
    pub fn hand_over(&self) -> HandOver {
        let (lock, entry) = (self.lock, self.position.entry());
        lock.file.set_keeper(entry, lock.known());
        // Should the file be damaged, the child will find that it is not given the entry.
        let _ = lock.part_with(entry);
        let (file, ticket) = (lock.file.clone(), self.position.ticket);
        HandOver { file, entry, ticket, from: lock.known(), birthplace: Birthplace::here() }
    }

    /// Takes the slot back from a child to which it was [handed over](Self::hand_over), and which
    /// has ended. Then the child's end does not count as a death with the slot. Returns `false`
    /// if there was nothing to take back: another process may have reclaimed the slot before.
    ///
    /// Without this, dropping the permit leaves the slot to the child for as long as the child
    /// lives, and another process reclaims it then.
    ///
    /// # Errors
    /// When the file is damaged.
    pub fn take_back(&self) -> Result<bool, Error> {
        self.lock.take_back(&self.position).map_err(|stop| self.lock.error(stop))
    }

    /// Starts a command that makes the slot its own before it begins, and keeps it for as long as
    /// it lives, whatever becomes of this process. Wait for its end, and then [take the slot
    /// back](Self::take_back).
    ///
    /// # Errors
    /// When the command cannot be started. `ESTALE` if the slot has been taken away meanwhile.
    pub fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        let hand_over = self.hand_over();
        // SAFETY: what runs between `fork` and `exec` is `adopt`, which allocates nothing, takes no
        // lock, and changes memory that is mapped for all.
        unsafe { command.pre_exec(move || hand_over.adopt()) };
        let child = command.spawn()?;
        self.watch_witness();
        Ok(child)
    }

    /// Starts a program without copying this process first, which is faster than
    /// [`spawn`](Self::spawn). Otherwise the same: only the program's words and environment differ
    /// from this process's. The first word is the program, which is searched for as a shell does.
    ///
    /// This thread calls `then` with the program's PID before it receives any signal again: a
    /// handler that `then` installs does not miss the end of the program. The caller has to wait
    /// for that end, as for a [`Child`]'s.
    ///
    /// ```
    /// # let place = tempfile::tempdir()?;
    /// use doorway::shared::Directory;
    /// use rustix::process::{Pid, WaitOptions, waitpid};
    ///
    /// let gpus = Directory::at(place.path())?.semaphore("gpu", 2)?;
    /// let permit = gpus.acquire()?;
    /// let pid = permit.start(["sleep", "0.1"], std::env::vars_os(), |pid| pid)?;
    /// assert_eq!(gpus.status().holders[0].pid, pid as i32);
    /// waitpid(Pid::from_raw(pid as i32), WaitOptions::empty())?;
    /// assert!(permit.take_back()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`spawn`](Self::spawn) returns, and when there is no word, or a zero in one.
    pub fn start<W: AsRef<OsStr>, T>(
        &self,
        words: impl IntoIterator<Item = W>,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
        then: impl FnOnce(u32) -> T,
    ) -> io::Result<T> {
        let words = words.into_iter().map(|word| CString::new(word.as_ref().as_bytes()));
        let words: Vec<_> = words.collect::<Result<_, _>>()?;
        if words.is_empty() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let variable = |(name, value): (OsString, OsString)| {
            let mut text = name.into_vec();
            text.push(b'=');
            text.extend(value.into_vec());
            CString::new(text)
        };
        let environment: Vec<_> =
            environment.into_iter().map(variable).collect::<Result<_, _>>()?;
        let hand_over = self.hand_over();
        let first = || hand_over.adopt();
        let done = vfork::start(&words, &environment, &first, |pid| {
            then(pid.as_raw_nonzero().get().cast_unsigned())
        })?;
        self.watch_witness();
        Ok(done)
    }

    /// Watches the witness of the child to which the slot was handed over.
    fn watch_witness(&self) {
        let (file, entry) = (&self.lock.file, self.position.entry());
        if let Ok(Some(child)) = Quick::new(file.words()).read(file.table().owner(entry)) {
            liveness::watch_witness(file, entry, child);
        }
    }
}

impl Lock {
    /// Releases the slot of an entry that was handed to a child, if the child is dead. Otherwise it
    /// stays.
    pub(super) fn release_for_child(&self, me: Owner, position: &Position) -> Result<(), Stop> {
        let (table, entry, m) =
            (self.file.table(), position.entry(), &mut Mapped::new(&self.file, None));
        let Some(other) = m.read(table.owner(entry))? else { return Ok(()) };
        if self.still_holds(m, position)? && other != me && self.file.is_dead(other) {
            table.reap(m, me, entry, other)?;
        }
        self.file.release_witness(other);
        Ok(())
    }

    /// Takes an entry back from a dead child. Returns whether the child still had it.
    fn take_back(&self, position: &Position) -> Result<bool, Stop> {
        let me = self.me()?;
        let mut m = Mapped::new(&self.file, None);
        match m.read(self.file.table().owner(position.entry()))? {
            Some(other) if other == me => Ok(true),
            Some(other) if self.file.is_dead(other) && self.still_holds(&mut m, position)? => {
                let taken = self.file.table().hand_over(&mut m, position.entry(), other, me)?;
                self.file.release_witness(other);
                Ok(taken)
            }
            _ => Ok(false),
        }
    }
}

impl File {
    /// Returns the process that keeps an entry for the child that it was handed to.
    pub(super) fn keeper(&self, entry: usize) -> Option<Owner> {
        let word = self.words().get(entry * entry::WORDS + entry::KEEPER)?.load(Relaxed);
        Option::<Owner>::from_word(u128::from(word), ())
    }

    /// Notes that process, or that there is none.
    pub(super) fn set_keeper(&self, entry: usize, keeper: Option<Owner>) {
        if let Some(word) = self.words().get(entry * entry::WORDS + entry::KEEPER) {
            word.store(keeper.word() as u64, Relaxed);
        }
    }
}
