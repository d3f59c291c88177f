//! What is explored in a setting of the registry's: atomic registers, no crashes but kills, both cores.

use doorway_core::{Property, RegisterKind, Setting};
use doorway_lab::Options;

pub(crate) fn options(setting: Setting, properties: &[Property], max_states: u64) -> Options {
    Options {
        passages: setting.passages,
        endless: None,
        retries: None,
        registers: RegisterKind::Atomic,
        crashes: 0,
        properties: properties.to_vec(),
        max_states,
        workers: 2,
        relabel: None,
    }
}
