//! What is printed, and files that are read.

use std::{
    fmt::Display,
    fs::File,
    io::{self, ErrorKind, Read, Write},
    path::Path,
};

use crate::error::Failure;

/// Prints to standard output. A reader who has seen enough and closes the pipe is no failure: the
/// exit code says what was found all the same.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::Output(error)),
        _ => Ok(()),
    }
}

/// Says something on standard error, in one line. If that is gone as well, there is nobody to tell.
pub(crate) fn say(what: impl Display) {
    let _ = writeln!(io::stderr(), "doorway: {}", one_line(&what.to_string()));
}

/// The text with line breaks and whatever else moves the cursor written out: names of files and
/// texts of traces come from anywhere.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for char in text.chars() {
        if char.is_control() { line.extend(char.escape_default()) } else { line.push(char) }
    }
    line
}

/// Larger files are none of ours.
const MAX_BYTES: u64 = 256 << 20;

/// The text in a file, up to a size: what has no end, such as a device, is an error and not a full
/// memory.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    let failed = |error| Failure::File { verb: "read", path: path.into(), error };
    let mut text = String::new();
    let read = File::open(path)
        .map_err(failed)?
        .take(MAX_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(failed)?;
    if read as u64 > MAX_BYTES {
        return Err(Failure::Usage(format!(
            "{}: more than {MAX_BYTES} bytes, which is too long",
            path.display()
        )));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_stays_a_line() {
        assert_eq!(one_line("Θ(n)\n\x1b[31m\r"), "Θ(n)\\n\\u{1b}[31m\\r");
    }
}
