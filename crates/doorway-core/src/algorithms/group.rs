//! Group mutual exclusion: any number of processes at a time, if all request the same session.
//!
//! ```
//! use doorway_core::{Session, Size, algorithms::group::GroupBakery, native::{Instance, Spin}};
//! let room = Instance::<GroupBakery>::new(Size::group(4, 2))?;
//! let mut m = room.view(Spin, 0);
//! let Ok(((), inside)) = room.passage(&mut m, 0, Session(1), (), || "with others of session 1");
//! assert_eq!(inside, "with others of session 1");
//! # Ok::<(), doorway_core::Unfit>(())
//! ```

mod group_bakery;
mod group_black_white_bakery;
mod strong_group_bakery;
mod strong_group_black_white_bakery;

pub use group_bakery::GroupBakery;
pub use group_black_white_bakery::{GroupBlackWhiteBakery, Token};
use group_black_white_bakery::{ONE_FLIP, opposite_color};
pub use strong_group_bakery::StrongGroupBakery;
pub use strong_group_black_white_bakery::StrongGroupBlackWhiteBakery;

use alloc::format;
use core::ops::ControlFlow::{Break, Continue};

use crate::{Algorithm, Register, Registers, Size, Unfit, Value};

/// Checks that there is a process, a session to request, and no limit on the processes inside.
pub(crate) fn fits<A: Algorithm>(size: Size) -> Result<(), Unfit> {
    let name = A::NAME;
    if size.n == 0 {
        return Err(Unfit(format!("{name} needs at least one process: try -n 2")));
    }
    if size.k != size.n {
        return Err(Unfit(format!("{name} lets any number of one session in; leave -k out")));
    }
    if size.sessions == 0 || size.sessions > u32::MAX as usize {
        return Err(Unfit(format!("{name} needs something to ask for: try --sessions 2")));
    }
    Ok(())
}

/// Waits until one of two registers meets its condition. Tests `one`, then `other`, in turn.
#[inline(always)]
#[track_caller]
fn wait_either<M, A, B>(
    m: &mut M,
    one: Register<A>,
    either: impl Fn(A) -> bool + Sync,
    other: Register<B>,
    or: impl Fn(B) -> bool + Sync,
) -> Result<(), M::Halt>
where
    M: Registers,
    A: Value,
    B: Value,
{
    m.repeat((), |m, ()| {
        let done = m.test(one, &either)? || m.test(other, &or)?;
        Ok(if done { Break(()) } else { Continue(()) })
    })
}
