//! How the command is linked: so that it starts soon, for `doorway run` starts as often as the
//! commands that it runs.
//!
//! Of the time that it takes until `main` is reached, a third goes by in looking for shared
//! libraries and in writing addresses into the executable. So it has a place of its own in memory,
//! and with the feature `static` the C library within it, where that is there as an archive
//! (`libc6-dev` on Debian, `glibc-static` on Fedora). Where it is not, or the target is another
//! one, the command is linked as any other.

use std::{
    env, fs,
    io::Result,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// What rustc asks the linker for, as shared libraries.
const SHARED: [&str; 7] = ["gcc_s", "util", "rt", "pthread", "m", "dl", "c"];

/// Where all of it is to be found.
const ARCHIVES: &str =
    "GROUP ( libgcc_eh.a libgcc.a libutil.a librt.a libpthread.a libm.a libdl.a libc.a )\n";

fn main() -> Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(static_c_library)");
    let is = |what: &str, value: &str| env::var(what).is_ok_and(|found| found == value);
    if !is("CARGO_CFG_TARGET_OS", "linux") || !is("CARGO_CFG_TARGET_ENV", "gnu") {
        return Ok(());
    }
    println!("cargo::rustc-link-arg-bins=-no-pie");
    // A linker of somebody's own choosing may understand other things.
    let usual = env::var("HOST") == env::var("TARGET") && env::var_os("RUSTC_LINKER").is_none();
    if env::var_os("CARGO_FEATURE_STATIC").is_none() || !usual {
        return Ok(());
    }
    let place = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    // rustc has no word for it that would hold for one executable. But where the linker looks for a
    // shared library it may find a file that says what to take: most systems' own libc.so is one.
    // These say the archives.
    for name in SHARED {
        fs::write(place.join(format!("lib{name}.so")), ARCHIVES)?;
    }
    if links(&place)? {
        println!("cargo::rustc-link-arg-bins=-static");
        println!("cargo::rustc-link-arg-bins=-L{}", place.display());
        println!("cargo::rustc-cfg=static_c_library");
    }
    Ok(())
}

/// Whether a program can be linked in this way here, and runs.
fn links(place: &Path) -> Result<bool> {
    let (source, program) = (place.join("probe.c"), place.join("probe"));
    fs::write(
        &source,
        "#include <math.h>\nint main(int n, char **words) { return pow(n, 0.5) != 1; }\n",
    )?;
    let mut cc = Command::new("cc");
    cc.arg(&source).arg("-o").arg(&program).args(["-Wl,--as-needed", "-Wl,-Bdynamic"]);
    cc.args(SHARED.map(|name| format!("-l{name}"))).args([
        "-nodefaultlibs",
        "-pie",
        "-no-pie",
        "-static",
    ]);
    cc.arg(format!("-L{}", place.display()));
    let succeeds = |command: &mut Command| {
        command.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    };
    Ok(succeeds(&mut cc) && succeeds(&mut Command::new(program)))
}
