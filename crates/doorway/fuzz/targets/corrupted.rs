//! The file of a lock, corrupted before it is opened and while it is used.
//!
//!     cd crates/doorway && cargo +nightly fuzz run corrupted

#![no_main]

use std::cell::LazyCell;

use doorway::shared::Directory;
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

#[path = "../../tests/shared/corrupted.rs"]
mod corrupted;

std::thread_local! {
    static PLACE: LazyCell<TempDir> = LazyCell::new(|| tempfile::tempdir_in("/dev/shm").expect("there is shared memory"));
}

fuzz_target!(|input: &[u8]| {
    PLACE.with(|place| {
        let locks = Directory::at(place.path()).expect("it is ours");
        corrupted::exercise(&locks, input);
    });
});
