//! The `doorway` command.

#![deny(unsafe_code)]

mod args;
mod bench;
mod chart;
mod error;
mod generate;
mod http;
mod lab;
mod named;
mod output;
mod progress;
mod table;

use std::process::ExitCode;

use crate::{
    args::{Cli, Command},
    error::Failure,
};

fn main() -> ExitCode {
    match Cli::typed() {
        Ok(cli) => match run(cli) {
            Ok(code) => code,
            Err(failure) => {
                let code = failure.exit_code();
                output::say(failure);
                code
            }
        },
        Err(error) => error::usage(&error),
    }
}

fn run(cli: Cli) -> Result<ExitCode, Failure> {
    match cli.command {
        Command::Lab(lab) => lab::run(lab),
        Command::Bench(args) => bench::run(&args),
        Command::Run(args) => named::run(&args),
        Command::Status(args) => named::status(&args),
        Command::Top(args) => named::top(&args),
        Command::Set(args) => named::set(&args),
        Command::Drain(args) => named::drain(&args),
        Command::Resume(args) => named::resume(&args),
        Command::Rm(args) => named::remove(&args),
        Command::Completions { shell } => generate::completions(shell),
        Command::Man { dir } => generate::man(dir.as_deref()),
    }
}
