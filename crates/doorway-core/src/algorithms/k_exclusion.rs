//! k-exclusion: at most k processes at a time.
//!
//! ```
//! use doorway_core::{Size, algorithms::k_exclusion::ColoredTicket, native::{Instance, Spin}};
//! let slots = Instance::<ColoredTicket>::new(Size::slots(4, 2))?;
//! let mut m = slots.view(Spin, 0);
//! let Ok(((), inside)) = slots.passage(&mut m, 0, (), (), || "at most two of four");
//! assert_eq!(inside, "at most two of four");
//! # Ok::<(), doorway_core::Unfit>(())
//! ```

mod colored_ticket;
mod k_bakery;
mod k_bakery_fife;
mod k_bakery_safe;
mod numbered_ticket;
mod quant;
mod queue;
mod tickets;
mod timestamp_bakery;
mod unbounded_colored_ticket;

pub use colored_ticket::ColoredTicket;
pub use k_bakery::KBakery;
pub use k_bakery_fife::KBakeryFife;
pub use k_bakery_safe::KBakerySafe;
pub use numbered_ticket::{NumberedTicket, Numbers};
pub use quant::Counted;
pub use queue::{Line, Queue};
pub use tickets::{Colored, Pointers, TicketAlgorithm, TicketSystem};
pub use timestamp_bakery::TimestampBakery;
pub use unbounded_colored_ticket::UnboundedColoredTicket;

use alloc::format;

use crate::{Algorithm, Size, Unfit};

/// Checks that there are enough processes, at least one slot, and at most n slots.
pub(crate) fn fits<A: Algorithm>(size: Size) -> Result<(), Unfit> {
    let name = A::NAME;
    if size.n < A::CLAIMS.min_n {
        let processes = if A::CLAIMS.min_n == 1 { "one process" } else { "two processes" };
        return Err(Unfit(format!("{name} needs at least {processes}: try -n 2")));
    }
    if size.k == 0 || size.k > size.n {
        return Err(Unfit(format!(
            "{name} with k = {}: k goes from 1 to n, which is {}",
            size.k, size.n
        )));
    }
    if size.sessions != 0 {
        return Err(Unfit(format!("{name} knows no sessions; leave --sessions out")));
    }
    Ok(())
}
