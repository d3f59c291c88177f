//! Commands that hold a slot.

use std::{
    ffi::{CString, OsStr, OsString},
    io,
    os::unix::{
        ffi::{OsStrExt, OsStringExt},
        process::CommandExt,
    },
    process::{Child, Command},
};

use super::{Permit, vfork};

impl Permit<'_> {
    /// Starts a command which makes the slot its own before it begins, and keeps it for as long as it lives, whatever becomes of this
    /// process. Wait for its end, and then [take the slot back](Self::take_back).
    ///
    /// # Errors
    /// When the command cannot be started. `ESTALE` if the slot has been taken away meanwhile.
    pub fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        let hand_over = self.hand_over();
        // SAFETY: what runs between `fork` and `exec` is `adopt`, which allocates nothing, takes no lock, and changes memory that is
        // mapped for all.
        unsafe { command.pre_exec(move || hand_over.adopt()) };
        command.spawn()
    }

    /// The same for a program that is like this process in everything but its words and its environment, and faster: this process is not copied first, as
    /// [`spawn`](Self::spawn) has to do. The first word is the program, which is looked for as a shell does.
    ///
    /// This thread does what comes `then`, with the program's pid, before it hears of any signal again: the end of the program is not missed by whoever begins to listen there.
    /// Somebody has to wait for that end, as for a [`Child`]'s.
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
    /// As above, and where there is no word, or a zero in one.
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
        let environment: Vec<_> = environment.into_iter().map(variable).collect::<Result<_, _>>()?;
        let hand_over = self.hand_over();
        let first = || hand_over.adopt();
        vfork::start(&words, &environment, &first, |pid| then(pid.as_raw_nonzero().get().cast_unsigned()))
    }
}
