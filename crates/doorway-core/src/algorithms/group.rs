//! Group mutual exclusion: any number at a time, as long as all ask for the same session.
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

/// There is a process, something to ask for, and no limit on how many may be inside.
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

/// Waits until one register or the other holds what is asked for, looking at the one and then at
/// the other.
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
