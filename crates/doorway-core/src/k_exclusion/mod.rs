//! k-exclusion: at most k processes at a time.

mod timestamp_bakery;

pub use timestamp_bakery::TimestampBakery;

use alloc::format;

use crate::{Size, Unfit};

/// There is a process and a slot, and no slot too many.
fn fits(name: &str, size: Size) -> Result<(), Unfit> {
    if size.n == 0 {
        return Err(Unfit(format!("{name} needs at least one process: try -n 2")));
    }
    if size.k == 0 || size.k > size.n {
        return Err(Unfit(format!("{name} with k = {}: k goes from 1 to n, which is {}", size.k, size.n)));
    }
    if size.sessions != 0 {
        return Err(Unfit(format!("{name} knows no sessions; leave --sessions out")));
    }
    Ok(())
}
