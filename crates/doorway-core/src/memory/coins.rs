//! Random choices.

use super::Memory;

/// Coins, for randomized algorithms.
pub trait Coins: Memory {
    /// Returns one of `0..outcomes`: at random natively, every possible one in the checker.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    fn choose(&mut self, outcomes: u32) -> Result<u32, Self::Halt>;

    /// Returns how many of `most` fair coins fall on heads before the first falls on tails: 0 with
    /// probability 1/2, 1 with 1/4 and so on, `most` as often as `most - 1`. The checker explores
    /// every number.
    ///
    /// In the lab this is one step whatever the result, like every choice. If each coin were a
    /// step, a scheduler could tell how the coins fell.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    fn toss(&mut self, most: u32) -> Result<u32, Self::Halt>;
}
