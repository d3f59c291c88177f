//! `cargo bench --bench locks -- ARGUMENTS` is `doorway bench ARGUMENTS`.

use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let mut args: Vec<_> = std::env::args_os().skip(1).collect();
    let before = args.len();
    args.retain(|arg| arg != "--bench");
    // `cargo test --all-targets` runs this too, unoptimised: then it only shows that it is there.
    if args.len() == before {
        args = vec!["--list".into()];
    }
    let status = Command::new(env!("CARGO_BIN_EXE_doorway")).arg("bench").args(args).status();
    let code = status.expect("doorway starts").code().and_then(|code| u8::try_from(code).ok());
    code.map_or(ExitCode::FAILURE, ExitCode::from)
}
