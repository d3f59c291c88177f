//! Programs as pseudocode, for people to read.

use std::fmt::{self, Display, Formatter, Write};

use crate::program::{Expr, Form, Items, Kind, Loop, Place, Program, Routine, Stmt};

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Const(number) => write!(f, "{number}"),
            Self::Me => f.write_str("me"),
            Self::Recent(back) => write!(f, "${back}"),
            Self::Not(a) => write!(f, "!{a}"),
            Self::Add(a, b) => write!(f, "({a} + {b}) % 3"),
            Self::Equal(a, b) => write!(f, "({a} == {b})"),
            Self::Less(a, b) => write!(f, "({a} < {b})"),
            Self::And(a, b) => write!(f, "({a} && {b})"),
            Self::Nth(n) => write!(f, "ZERO+{n}"),
            Self::Succ(a) => write!(f, "succ({a})"),
            Self::Max(a, b) => write!(f, "max({a}, {b})"),
            Self::Before(a, b) => write!(f, "before({a}, {b})"),
            Self::Same(a, b) => write!(f, "same({a}, {b})"),
        }
    }
}

impl Display for Place {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let name = match self.kind {
            Kind::Flag => "Flag",
            Kind::Count => "Count",
            Kind::Ticket => "Ticket",
        };
        write!(f, "{name}[{}]", self.index)
    }
}

impl Display for Items {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("0..n"),
            Self::Below => f.write_str("0..me"),
            Self::Above => f.write_str("me+1..n"),
            Self::Others => f.write_str("others"),
            Self::Side(e) => write!(f, "side({e})"),
            Self::UpTo(e) => write!(f, "0..{e}"),
        }
    }
}

fn block(block: &[Stmt], indent: usize, out: &mut String) -> fmt::Result {
    let margin = "  ".repeat(indent);
    for stmt in block {
        out.push_str(&margin);
        match stmt {
            Stmt::Read(place) => writeln!(out, "read {place}")?,
            Stmt::Test(place, e) => writeln!(out, "test {place}, |$0| {e}")?,
            Stmt::Write(place, e) => writeln!(out, "write {place} := {e}")?,
            Stmt::CompareAndSwap(place, old, new) => {
                writeln!(out, "compare_and_swap {place}, {old} -> {new}")?
            }
            Stmt::Swap(place, new) => writeln!(out, "swap {place} := {new}")?,
            Stmt::FetchAndAdd(index, add) => writeln!(out, "fetch_and_add Count[{index}], {add}")?,
            Stmt::Transact(place, next, answer) => {
                writeln!(out, "transact {place}, |$0| ({next}, {answer})")?
            }
            Stmt::Choose(outcomes) => writeln!(out, "choose {outcomes}")?,
            Stmt::Wait(place, until, site) => {
                writeln!(out, "wait {place}, |$0| {until}   // site {site}")?
            }
            Stmt::If(condition, yes, no) => {
                writeln!(out, "if {condition}")?;
                self::block(yes, indent + 1, out)?;
                if !no.is_empty() {
                    writeln!(out, "{margin}else")?;
                    self::block(no, indent + 1, out)?;
                }
            }
            Stmt::For(items, body) => {
                writeln!(out, "for $0 in {items}")?;
                self::block(body, indent + 1, out)?;
            }
            Stmt::Call(helper, argument) => writeln!(out, "call helper{helper}({argument})")?,
            Stmt::Loop(inner) => {
                let Loop { form, site, items, init, body, next, stop } = &**inner;
                match form {
                    Form::Each => writeln!(out, "each $0 in {items}   // site {site}")?,
                    Form::Fold => writeln!(
                        out,
                        "fold $0 in {items}, $1 = {init} then {next}   // site {site}"
                    )?,
                    Form::FoldUntil => {
                        writeln!(
                            out,
                            "fold_until $0 in {items}, $1 = {init} then {next}, stop if {stop}   // site {site}"
                        )?;
                    }
                    Form::Find => writeln!(out, "find $0 in {items} with {stop}   // site {site}")?,
                    Form::Repeat => {
                        writeln!(
                            out,
                            "repeat $1 = {init} then {next}, until {stop}   // site {site}"
                        )?;
                    }
                    Form::Scope => writeln!(out, "scope, result {next}   // site {site}")?,
                }
                self::block(body, indent + 1, out)?;
            }
        }
    }
    Ok(())
}

impl Display for Program {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { n, k, initial, tickets, gap, bound, passages, kills, crashes, workers, .. } =
            self;
        writeln!(
            f,
            "n = {n}, k = {k}, initial = {initial}, tickets = {tickets}, gap = {gap}, bound = {bound:?}, \
             passages = {passages:?}, kills = {kills}, crashes = {crashes}, workers = {workers}"
        )?;
        let sections = [
            ("doorway", Some(&self.doorway)),
            ("waiting", Some(&self.waiting)),
            ("exit", Some(&self.exit)),
        ];
        let others = [("abandon", self.abandon.as_ref()), ("killed", self.killed.as_ref())];
        let mut out = String::new();
        for (name, routine) in sections.into_iter().chain(others) {
            let Some(Routine { body, result }) = routine else { continue };
            writeln!(out, "{name}($0), result {result}")?;
            block(body, 1, &mut out)?;
        }
        for (number, Routine { body, result }) in self.helpers.iter().enumerate() {
            writeln!(out, "helper{number}($0), result {result}")?;
            block(body, 1, &mut out)?;
        }
        f.write_str(&out)
    }
}
