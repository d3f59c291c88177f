//! What it costs to wait for a named lock, and how soon a waiter is granted its slot.
//!
//!     cargo bench --package doorway --bench waiting [-- PART…] [--runs N] [--busy N]
//!
//! Without a part, all of them run, in about ten minutes:
//!
//! - `idle`: the processor time of 10, 100 and 1000 waiters while one process holds the lock
//! - `kill`: the time from the kill of a holder to the next holder being inside
//! - `handover`: hand-overs per second among 20, 200 and 1000 processes, and among as many
//!   `doorway run` if `$DOORWAY_BIN` names the executable
//! - `turns`: passages per second of 8 and 32 processes over those with a SysV semaphore
//!
//! Beside `handover` and `turns` stands a bare ring of processes that do nothing but pass a token
//! on: what the machine allows to any lock that is granted in order and whose waiters sleep.
//!
//! `--runs` is the number of runs or rounds of which the median and the worst are shown, 10 unless
//! given. `--busy` is the number of processes that spin beside `turns`; unless given, 0 and 1.
//!
//! Only the public API and the command line are used, so figures of two versions compare.

#[cfg(target_os = "linux")]
mod commands;
#[cfg(target_os = "linux")]
mod cpu;
#[cfg(target_os = "linux")]
mod handover;
#[cfg(target_os = "linux")]
mod idle;
#[cfg(target_os = "linux")]
mod kill;
#[cfg(target_os = "linux")]
mod options;
#[cfg(target_os = "linux")]
#[path = "../common/peers.rs"]
mod peers;
#[cfg(target_os = "linux")]
#[path = "../common/processes.rs"]
mod processes;
#[cfg(target_os = "linux")]
mod ring;
#[cfg(target_os = "linux")]
mod supervisor;
#[cfg(target_os = "linux")]
mod table;
#[cfg(target_os = "linux")]
mod turns;

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    options::main()
}
