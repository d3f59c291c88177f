//! Writes `src/generated` from `proto`. To be run when `proto` has changed; its test says when that
//! was forgotten:
//!
//!     cargo run -p doorway-etcd --example generate
//!     cargo test -p doorway-etcd --example generate
//!
//! What is generated is committed, so that whoever builds Doorway needs neither `protoc` nor a
//! build script.

use std::{error::Error, path::Path};

const CRATE: &str = env!("CARGO_MANIFEST_DIR");

fn generate(to: &Path) -> Result<(), Box<dyn Error>> {
    let proto = Path::new(CRATE).join("proto");
    let files = protox::compile(
        ["kv.proto", "rpc.proto", "lock.proto"].map(|file| proto.join(file)),
        [&proto],
    )?;
    tonic_prost_build::configure()
        .build_server(false)
        .build_transport(false)
        .out_dir(to)
        .compile_fds(files)?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    generate(&Path::new(CRATE).join("src/generated"))
}

#[test]
fn what_is_committed_is_what_is_generated() {
    let fresh = tempfile::tempdir().expect("a directory");
    generate(fresh.path()).expect("it is generated");
    let committed = Path::new(CRATE).join("src/generated");
    let names = |directory: &Path| {
        let entries = std::fs::read_dir(directory).expect("a directory");
        let mut names: Vec<_> = entries.map(|entry| entry.expect("an entry").file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names(&committed), names(fresh.path()));
    for name in names(&committed) {
        let read =
            |directory: &Path| std::fs::read_to_string(directory.join(&name)).expect("a file");
        assert!(
            read(&committed) == read(fresh.path()),
            "{name:?} is stale: run the example `generate`"
        );
    }
}
