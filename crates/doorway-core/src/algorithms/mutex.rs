//! Mutual exclusion: one process at a time.

mod bakery;
mod black_white_bakery;
mod burns_lamport;
mod mcs;
pub mod randomized;
pub mod randomized_bounded;
mod tournament;
mod yang_anderson;

pub use bakery::Bakery;
pub use black_white_bakery::{BlackWhiteBakery, Color, ColoredTicket};
pub use burns_lamport::BurnsLamport;
pub use mcs::Mcs;
pub use randomized::Randomized;
pub use randomized_bounded::{RandomizedBounded, RandomizedStarvationFree};
pub use yang_anderson::YangAnderson;

use alloc::format;

use crate::{Size, Unfit};

/// Checks that there is one slot, at least one process and no session.
fn fits(name: &str, size: Size) -> Result<(), Unfit> {
    if size.n == 0 {
        return Err(Unfit(format!("{name} needs at least one process: try -n 2")));
    }
    if size.k != 1 {
        return Err(Unfit(format!("{name} is a mutex: k is 1, not {}; leave -k out", size.k)));
    }
    if size.sessions != 0 {
        return Err(Unfit(format!("{name} knows no sessions; leave --sessions out")));
    }
    Ok(())
}
