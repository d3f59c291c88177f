//! The `doorway` command.

#![forbid(unsafe_code)]

mod args;
mod bench;
mod chart;
mod error;
mod http;
mod lab;
mod output;
mod progress;
mod table;

use std::process::ExitCode;

use clap::Parser;

use crate::{
    args::{Cli, Command},
    error::Failure,
};

fn main() -> ExitCode {
    match Cli::try_parse() {
        Ok(cli) => match run(cli) {
            Ok(code) => code,
            Err(failure) => {
                output::say(failure);
                ExitCode::from(2)
            }
        },
        Err(error) => error::usage(&error),
    }
}

fn run(cli: Cli) -> Result<ExitCode, Failure> {
    match cli.command {
        Command::Lab(lab) => lab::run(lab),
        Command::Bench(args) => bench::run(&args),
    }
}
