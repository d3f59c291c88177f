//! The options for a setting of the registry: atomic registers, no crashes but kills, both cores.

use doorway_core::{Property, Setting};
use doorway_lab::Options;

pub(crate) fn options(setting: Setting, properties: &[Property], max_states: u64) -> Options {
    Options {
        passages: setting.passages,
        properties: properties.to_vec(),
        max_states,
        workers: 2,
        ..Options::default()
    }
}
