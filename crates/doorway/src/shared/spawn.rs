//! Commands that hold a slot.

use std::{
    io,
    os::unix::process::CommandExt,
    process::{Child, Command},
};

use super::Permit;

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
}
