//! Printing, and reading files.

use std::{
    fmt::Display,
    fs::File,
    io::{self, ErrorKind, Read, Write},
    path::Path,
};

use crate::error::Failure;

/// Prints to standard output. A reader that closes the pipe early is no failure: the exit code
/// still says what was found.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::Output(error)),
        _ => Ok(()),
    }
}

/// Prints one line on standard error. If that is closed as well, the message is lost.
pub(crate) fn say(what: impl Display) {
    let _ = writeln!(io::stderr(), "doorway: {}", one_line(&what.to_string()));
}

/// Escapes line breaks and other characters that move the cursor: file names and texts of traces
/// may contain any.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for char in text.chars() {
        if char.is_control() { line.extend(char.escape_default()) } else { line.push(char) }
    }
    line
}

/// The size of the largest file that is read.
const MAX_BYTES: u64 = 256 << 20;

/// Returns the text of a file, up to a size: a file without an end, such as a device, is an error
/// and does not fill the memory.
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
