//! How the command is linked.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // At a place of its own choosing it would have to have 14 000 addresses written into it whenever it starts, which is a third of the pages that
    // `doorway run` touches. Where the C library is another one, cc is told what else to link, and that would not fit.
    let is = |what: &str, value: &str| std::env::var(what).is_ok_and(|found| found == value);
    if is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
