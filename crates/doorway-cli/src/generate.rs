//! Files generated from the definitions of the command line: shell completions, manual pages.

use std::{fs, io, path::Path, process::ExitCode};

use clap::CommandFactory;

use crate::{args::Cli, error::Failure, output};

pub(crate) fn completions(shell: clap_complete::Shell) -> Result<ExitCode, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "doorway", &mut text);
    output::print(&String::from_utf8_lossy(&text))?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn man(directory: Option<&Path>) -> Result<ExitCode, Failure> {
    match directory {
        Some(directory) => {
            let failed = |error| Failure::File {
                verb: "write manual pages to",
                path: directory.into(),
                error,
            };
            fs::create_dir_all(directory)
                .and_then(|()| clap_mangen::generate_to(Cli::command(), directory))
                .map_err(failed)?;
        }
        None => output::print(&page().map_err(Failure::Output)?)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn page() -> io::Result<String> {
    let mut text = Vec::new();
    clap_mangen::Man::new(Cli::command()).render(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}
