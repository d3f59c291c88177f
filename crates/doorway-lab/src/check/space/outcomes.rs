//! Lists what has been learned of a process, to be written down.

use super::{Outcome, Space};

impl Space<'_> {
    /// Returns what is known of move `index` of local state `local` of process `p`: the outcome for
    /// each value of its register that the search has met there, in order.
    pub(crate) fn outcomes_of(&self, p: usize, local: u32, index: u32) -> Vec<(u32, Outcome)> {
        let values = match self.known(p, local).moves[index as usize].register {
            Some(r) => self.registers[r as usize].len() as u32,
            None => 1,
        };
        let outcomes = &self.processes[p].outcomes;
        (0..values)
            .filter_map(|value| Some((value, *outcomes.get(&(local, index, value))?)))
            .collect()
    }
}
