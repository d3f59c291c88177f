//! k-exclusion: at most k processes at a time.

mod k_bakery;
mod k_bakery_fife;
mod k_bakery_safe;

pub use k_bakery::KBakery;
pub use k_bakery_fife::KBakeryFife;
pub use k_bakery_safe::KBakerySafe;

use alloc::format;

use crate::{Size, Unfit};

/// There are enough processes and a slot, and no slot too many.
fn fits(name: &str, least: usize, size: Size) -> Result<(), Unfit> {
    if size.n < least {
        let processes = if least == 1 { "one process" } else { "two processes" };
        return Err(Unfit(format!("{name} needs at least {processes}: try -n 2")));
    }
    if size.k == 0 || size.k > size.n {
        return Err(Unfit(format!("{name} with k = {}: k goes from 1 to n, which is {}", size.k, size.n)));
    }
    if size.sessions != 0 {
        return Err(Unfit(format!("{name} knows no sessions; leave --sessions out")));
    }
    Ok(())
}
