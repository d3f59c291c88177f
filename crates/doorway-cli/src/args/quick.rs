//! Reads what `doorway run` is mostly told, without describing every flag to the parser first,
//! which takes a fifth of a millisecond: some run it a thousand times a minute.
//!
//! A shortcut, and no second definition: whatever it does not know, right or wrong, it leaves to
//! the parser, and what it reads, the parser would have read in the same way.

use std::ffi::OsString;

use super::named::{self, Run};

/// The words after `run`. `None` if they are for the parser.
pub(super) fn run(mut words: impl Iterator<Item = OsString>) -> Option<Run> {
    let mut name = None;
    let mut run = Run::default();
    loop {
        let word = words.next()?;
        let mut value = || {
            words
                .next()?
                .into_string()
                .ok()
                .filter(|value| !value.is_empty() && !value.starts_with('-'))
        };
        match word.to_str()? {
            "--" => break,
            "--slots" if run.slots.is_none() => run.slots = Some(value()?.parse().ok()?),
            "--dir" if run.place.dir.is_none() => run.place.dir = Some(value()?.into()),
            "--session" if run.session.is_none() => {
                run.session = Some(named::session(&value()?).ok()?)
            }
            "--timeout" if run.timeout.is_none() => {
                run.timeout = Some(named::duration(&value()?).ok()?)
            }
            "--no-wait" if !run.no_wait => run.no_wait = true,
            "--quiet" | "-q" if !run.quiet => run.quiet = true,
            text if name.is_none() && !text.starts_with('-') => name = Some(text.to_string()),
            _ => return None,
        }
    }
    run.name = name?;
    run.command = words.collect();
    let wrong = run.command.is_empty() || run.no_wait && run.timeout.is_some();
    if wrong { None } else { Some(run) }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::{super::Running, *};

    /// What it knows and what it has to leave alone, right and wrong. Between two spaces there is
    /// an empty word.
    const PIECES: &str = "a|b||-|--|-- a|-- -- b|--slots|--slots 2|--slots 0|--slots -1|--slots +3|--slots x|--slots=2|--dir|--dir /d|--dir |\
        --session|--session s|--session -s|--timeout|--timeout 1.5s|--timeout x|--no-wait|--quiet|-q|-qq|--help|--etcd e|--ttl 2s|\
        --conflict-exit-code 5|--group 0|--what";

    fn read(words: &[&str]) -> (Option<Run>, Option<Run>) {
        let parsed = Running::try_parse_from(["doorway", "run"].iter().chain(words));
        (run(words.iter().map(OsString::from)), parsed.ok().map(Running::into_run))
    }

    #[test]
    fn the_parser_reads_it_in_the_same_way() {
        let long = format!("--session {}", "s".repeat(64));
        let pieces: Vec<_> = PIECES.split('|').chain([long.as_str()]).collect();
        let (mut seed, mut read_by_both) = (1_u64, 0);
        let mut pick = || {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize
        };
        for _ in 0..300_000 {
            let words: Vec<_> = (0..2 + pick() % 5)
                .flat_map(|_| pieces[pick() % pieces.len()].split(' '))
                .collect();
            let (quick, parsed) = if run(words.iter().map(OsString::from)).is_some() {
                read(&words)
            } else {
                continue;
            };
            assert_eq!(quick, parsed, "{words:?}");
            read_by_both += 1;
        }
        assert!(read_by_both > 1000, "{read_by_both} are too few to tell");
    }

    #[test]
    fn it_reads_what_is_mostly_typed() {
        let lines = [
            "gpu --slots 2 -- true",
            "a -- sh -c x",
            "--no-wait a -q -- --",
            "a --dir /d --session s --timeout 1 -- a",
        ];
        for line in lines {
            let (quick, parsed) = read(&line.split(' ').collect::<Vec<_>>());
            assert!(quick.is_some() && quick == parsed, "{line}");
        }
    }
}
