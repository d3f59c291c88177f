//! The pseudocode of an algorithm, from its page in `docs/algorithms`: the first block there, with
//! the paper's line numbers in its margin. The pseudocode is written down only there.

use serde::Serialize;

/// A line of pseudocode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The text in the margin.
    pub margin: String,
    /// The line numbers in the paper, mostly one; none for a row without a number.
    pub lines: Vec<u32>,
    /// The line.
    pub text: String,
}

macro_rules! pages {
    ($($name:literal $(as $page:literal)?),* $(,)?) => {
        /// Returns the page of an algorithm.
        fn page(algorithm: &str) -> Option<&'static str> {
            match algorithm {
                $($name => Some(pages!(@ $name $($page)?)),)*
                _ => None,
            }
        }
    };
    (@ $name:literal) => { pages!(@@ $name) };
    (@ $name:literal $page:literal) => { pages!(@@ $page) };
    (@@ $page:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/algorithms/", $page, ".md"))
    };
}

pages! {
    "bakery",
    "black-white-bakery",
    "burns-lamport",
    "yang-anderson",
    "mcs",
    "randomized",
    "randomized-bounded",
    "randomized-starvation-free" as "randomized-bounded",
    "queue",
    "numbered-ticket",
    "unbounded-colored-ticket",
    "colored-ticket",
    "k-bakery",
    "k-bakery-fife",
    "k-bakery-safe",
    "timestamp-bakery",
    "group-bakery",
    "group-black-white-bakery",
    "strong-group-bakery",
    "strong-group-black-white-bakery",
    "named-lock",
    "named-group-lock" as "named-lock",
}

/// Returns the pseudocode of an algorithm; nothing if there is no page.
pub fn pseudocode(algorithm: &str) -> Vec<Row> {
    let Some(page) = page(algorithm) else { return Vec::new() };
    let block = page.lines().skip_while(|line| *line != "```text").skip(1);
    parse(&block.take_while(|line| *line != "```").collect::<Vec<_>>())
}

/// Parses lines. A margin is a list of numbers such as `14`, `28, 30` or `32-33`, and two spaces.
/// Some lines have none.
fn parse(lines: &[&str]) -> Vec<Row> {
    let margins: Vec<_> = lines.iter().map(|line| margin(line)).collect();
    let indent = |text: &str| text.len() - text.trim_start().len();
    let begins = |(line, margin): (&&str, &Option<(usize, Vec<u32>)>)| {
        margin.as_ref().map(|(end, _)| end + indent(&line[*end..]))
    };
    // The text before this column is margin, unless a margin is wider.
    let column = lines.iter().zip(&margins).filter_map(begins).min().unwrap_or(0);
    let rows = lines.iter().zip(margins).map(|(line, margin)| match margin {
        Some((end, numbers)) => Row {
            margin: line[..end].trim().into(),
            lines: numbers,
            text: line[column.max(end + 2)..].trim_end().into(),
        },
        None => {
            let text = line[column.min(indent(line))..].trim_end();
            Row { margin: String::new(), lines: Vec::new(), text: text.into() }
        }
    });
    rows.collect()
}

/// Returns where the margin of a line ends, and its numbers, if the line has a margin.
fn margin(line: &str) -> Option<(usize, Vec<u32>)> {
    let indent = line.len() - line.trim_start().len();
    let end = indent + line[indent..].find("  ")?;
    Some((end, numbers(&line[..end])?))
}

/// Returns the numbers in a margin.
fn numbers(margin: &str) -> Option<Vec<u32>> {
    let mut numbers = Vec::new();
    for part in margin.split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to): (u32, u32) = (from.trim().parse().ok()?, to.trim().parse().ok()?);
        numbers.extend(from..=to);
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use doorway_core::{Problem, RegisterKind, Size};

    use super::*;
    use crate::{Entrant, Random, machine::Machine};

    #[test]
    fn margins() {
        let row = |margin: &str, lines: &[u32], text: &str| Row {
            margin: margin.into(),
            lines: lines.into(),
            text: text.into(),
        };
        let block = [
            "    shared: x",
            " 6  for all do",
            " 7    await x",
            "28, 30  x := 1",
            "29-31  x := 1",
            "    a  b := 0",
            "",
            "M = 1  once",
        ];
        let rows = [
            row("", &[], "shared: x"),
            row("6", &[6], "for all do"),
            row("7", &[7], "  await x"),
            row("28, 30", &[28, 30], "x := 1"),
            row("29-31", &[29, 30, 31], "x := 1"),
            row("", &[], "a  b := 0"),
            row("", &[], ""),
            row("", &[], "M = 1  once"),
        ];
        assert_eq!(parse(&block), rows);
        assert_eq!(
            parse(&["29-30  a", "31       b"]),
            [row("29-30", &[29, 30], "a"), row("31", &[31], "  b")]
        );
        assert!(pseudocode("backery").is_empty());
    }

    /// Every line number that an algorithm names occurs once in the margin of its page.
    #[test]
    fn every_line_that_is_executed_is_listed() {
        let mut wrong = Vec::new();
        for entrant in Entrant::all() {
            let rows = pseudocode(entrant.name);
            let listed: BTreeSet<u32> =
                rows.iter().flat_map(|row| row.lines.iter().copied()).collect();
            let (k, sessions) = match entrant.claims.problem {
                Problem::Mutex => (1, 0),
                Problem::KExclusion => (2, 0),
                Problem::Group => (4, 2),
            };
            let subject =
                entrant.build(Size { n: 4, k, sessions }, None, false).expect("it serves four");
            let mut executed = BTreeSet::new();
            for seed in 0..8 {
                let mut random = Random::new(seed, 1);
                let mut machine =
                    Machine::new(&*subject, RegisterKind::Atomic, true).expect("it runs").silent();
                for _ in 0..2_000 {
                    let p = random.below(4) as usize;
                    let moves = machine.moves(p);
                    let choice = moves[random.below(moves.len() as u64) as usize].choice;
                    executed.insert(machine.step(p, choice, None).expect("it runs").line);
                }
            }
            assert!(executed.len() > 1, "{}", entrant.name);
            let missing: Vec<_> = executed.difference(&listed).collect();
            if !missing.is_empty() {
                wrong.push(format!("{}: {missing:?}", entrant.name));
            }
        }
        assert!(wrong.is_empty(), "not in the page's first block: {wrong:#?}");
    }
}
