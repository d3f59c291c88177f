//! The verdicts of the checker, property by property.

use doorway_core::{Problem, Property};
use serde_json::Value;

use super::{Page, part::Part, plan::Study};
use crate::{chart::escaped, table::grouped};

/// One verdict of one check.
pub(super) struct Verdict<'p> {
    pub(super) property: &'p str,
    pub(super) holds: Option<bool>,
    scope: &'p str,
    /// The page that shows the violation.
    trace: Option<String>,
    part: &'p Part,
    check: &'p Value,
}

/// Returns every verdict about an algorithm, in the order of the checks.
pub(super) fn verdicts<'p>(page: &'p Page, study: &'p Study) -> Vec<Verdict<'p>> {
    let parts = study.checks.iter().filter_map(|job| page.parts.get(&job.command));
    parts.flat_map(of_part).collect()
}

fn of_part(part: &Part) -> Vec<Verdict<'_>> {
    let mut pages = part.pages().map(|(name, _)| name);
    let properties = part.result["properties"].as_array().map_or(&[][..], Vec::as_slice);
    let verdict = |verdict: &'_ Value| Verdict {
        property: "",
        holds: verdict["holds"].as_bool(),
        scope: "",
        trace: verdict.get("trace").and_then(|_| pages.next()),
        part,
        check: &part.result,
    };
    let mut all: Vec<_> = properties.iter().map(verdict).collect();
    for (one, value) in all.iter_mut().zip(properties) {
        let text = |name: &str| value[name].as_str().unwrap_or("?");
        (one.property, one.scope) = (text("name"), text("scope"));
    }
    all
}

impl Verdict<'_> {
    pub(super) fn command(&self) -> &str {
        &self.part.command
    }

    fn states(&self) -> u64 {
        self.check["states"].as_u64().unwrap_or(0)
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.check[name].as_u64()
    }

    fn crashes(&self) -> u64 {
        self.number("crashes").unwrap_or(0)
    }

    /// Returns whether this is on atomic registers, and no process crashes or is killed.
    fn is_plain(&self) -> bool {
        self.check["registers"] == "atomic" && self.crashes() == 0 && self.number("kills").is_none()
    }

    /// Returns whether the algorithm claims the property here.
    pub(super) fn is_claimed(&self, study: &Study) -> bool {
        let claims = &study.entrant.claims;
        let named = claims.properties.iter().any(|property| property.name() == self.property);
        let [n, k, sessions] =
            ["n", "k", "sessions"].map(|name| self.number(name).unwrap_or(0) as usize);
        let size = doorway_core::Size { n, k, sessions };
        named && self.crashes() as usize <= (claims.crashes)(size)
    }

    /// Returns the setting in a few words.
    fn place(&self) -> String {
        let number = |name: &str| self.number(name).unwrap_or(0);
        let mut place = match number("sessions") {
            0 => format!("n = {}, k = {}", number("n"), number("k")),
            sessions => format!("n = {}, {sessions} sessions", number("n")),
        };
        place += &match self.number("passages") {
            None => ", any number of passages".into(),
            Some(1) => ", 1 passage each".into(),
            Some(passages) => format!(", {passages} passages each"),
        };
        if let Some(p) = self.number("endless") {
            place += &format!(" but any number of process {p}");
        }
        if let Some(retries) = self.number("retries") {
            place += &format!(", {retries} attempts per passage");
        }
        if self.check["registers"] != "atomic" {
            place += &format!(", {} registers", self.check["registers"].as_str().unwrap_or("?"));
        }
        if self.crashes() > 0 {
            place += &format!(", up to {} crashed", self.crashes());
        }
        if let Some(kills) = self.number("kills") {
            place += &format!(", up to {kills} killed");
        }
        place
    }

    /// Formats the verdict in a word, with a link to the page that shows it.
    fn word(&self) -> String {
        match (self.holds, &self.trace) {
            (Some(true), _) => r#"<span class="yes">holds</span>"#.into(),
            (Some(false), Some(trace)) => {
                format!(r#"<a class="no" href="{}">violated</a>"#, escaped(trace))
            }
            (Some(false), None) => r#"<span class="no">violated</span>"#.into(),
            (None, _) => r#"<span class="open">undecided</span>"#.into(),
        }
    }

    /// Formats a few words for a cell of the table of all algorithms. They link to the row with the
    /// command.
    fn cell(&self) -> String {
        let states = grouped(self.states());
        let so_far = if self.check["complete"] == true { "" } else { " so far" };
        // With passages bounded, no process can be overtaken for ever. So a property that holds
        // means less than its name says.
        let only = if self.holds == Some(true) && self.is_progress() && !self.is_endless() {
            "nobody gets stuck:<br>"
        } else {
            ""
        };
        let (word, anchor, place) = (self.word(), self.anchor(), self.place());
        format!(
            r##"{word} <a class="at" href="#{anchor}">{only}{place}<br>{states} states{so_far}</a>"##
        )
    }

    fn is_progress(&self) -> bool {
        [Property::StarvationFreedom, Property::DeadlockFreedom]
            .iter()
            .any(|it| it.name() == self.property)
    }

    /// Returns whether passages are not bounded.
    fn is_endless(&self) -> bool {
        self.number("passages").is_none()
    }

    /// Orders verdicts. A verdict that says more comes last: many processes, runs without end, many
    /// states. For progress, runs without end count first.
    fn weight(&self) -> (bool, u64, bool, u64) {
        let endless = self.is_endless();
        (self.is_progress() && endless, self.number("n").unwrap_or(0), endless, self.states())
    }

    /// Returns the anchor of its row in the page.
    fn anchor(&self) -> String {
        escaped(&format!("{}_{}", Part::stem(self.command()), self.property.replace(':', "-")))
    }

    fn row(&self, study: &Study) -> String {
        let name = if self.is_claimed(study) { "claimed" } else { "not claimed" };
        let complete = if self.check["complete"] == true { "" } else { " so far" };
        format!(
            r#"<tr id="{}" data-command="{command}" data-property="{}" data-holds="{}" data-states="{}"><td>{}<br><small>{name}</small></td><td>{}</td><td>{}</td><td class="n">{}{complete}</td><td><code>doorway {command}</code><br><small>{}</small></td></tr>
"#,
            self.anchor(),
            escaped(self.property),
            self.holds.map_or("undecided".into(), |holds| holds.to_string()),
            self.states(),
            escaped(self.property),
            self.word(),
            self.place(),
            grouped(self.states()),
            escaped(self.scope),
            command = escaped(self.command()),
        )
    }
}

/// Formats the cell of an algorithm and a property. A violation counts for more than a property
/// that holds elsewhere.
pub(super) fn cell(all: &[Verdict<'_>], property: Property) -> String {
    let plain =
        || all.iter().filter(|verdict| verdict.property == property.name() && verdict.is_plain());
    let violated = plain().find(|verdict| verdict.holds == Some(false));
    let holds = || {
        plain().filter(|verdict| verdict.holds == Some(true)).max_by_key(|verdict| verdict.weight())
    };
    let best = violated.or_else(holds).or_else(|| plain().max_by_key(|verdict| verdict.weight()));
    best.map_or_else(none, Verdict::cell)
}

/// Formats a cell for which no command was run.
pub(super) fn none() -> String {
    r#"<span class="none">–</span>"#.into()
}

/// Returns how many crashes are tolerated, and what one more does, for the number of processes that
/// was tried.
pub(super) fn crashes(all: &[Verdict<'_>]) -> String {
    let tried: Vec<_> = all.iter().filter(|verdict| verdict.crashes() > 0).collect();
    let Some(n) = tried.iter().filter_map(|verdict| verdict.number("n")).max() else {
        return none();
    };
    let mut html = String::new();
    if tried.iter().all(|verdict| verdict.holds == Some(false)) {
        html += "<b>0</b>, and ";
    }
    for verdict in tried.into_iter().filter(|verdict| verdict.number("n") == Some(n)) {
        let (anchor, place) = (verdict.anchor(), verdict.place());
        let (most, word) = (verdict.crashes(), verdict.word());
        html += &format!(
            r##"<b>{most}</b>: {} {word} <a class="at" href="#{anchor}">{place}</a>"##,
            verdict.property
        );
    }
    html
}

/// Returns the weakest registers on which every claim was found to hold.
pub(super) fn registers(all: &[Verdict<'_>]) -> String {
    let on = |kind: &'static str| {
        move |verdict: &&Verdict<'_>| verdict.check["registers"] == kind && verdict.crashes() == 0
    };
    for kind in ["safe", "regular"] {
        let mut of_kind = all.iter().filter(on(kind)).peekable();
        if let Some(first) = of_kind.peek() {
            let (anchor, place) = (first.anchor(), first.place());
            if of_kind.all(|verdict| verdict.holds == Some(true)) {
                return format!(r##"{kind} <a class="at" href="#{anchor}">{place}</a>"##);
            }
        }
    }
    "atomic <small>weaker ones not tried</small>".into()
}

/// Returns whether numbers have a bound, and how much all registers together take where they were
/// counted.
pub(super) fn space(all: &[Verdict<'_>], study: &Study) -> (String, String) {
    let counted =
        |verdict: &&Verdict<'_>| verdict.is_plain() && verdict.check["bounds"]["bits"].is_u64();
    let largest =
        all.iter().filter(counted).max_by_key(|verdict| (verdict.is_endless(), verdict.weight()));
    let bits = largest.map_or_else(none, |verdict| {
        let so_far = if verdict.check["complete"] == true { "" } else { " so far" };
        let (anchor, bits) = (verdict.anchor(), &verdict.check["bounds"]["bits"]);
        let grows = if study.entrant.claims.bound.is_none() { "grows; " } else { "" };
        format!(
            r##"{grows}{bits} bits{so_far} <a class="at" href="#{anchor}">{}</a>"##,
            verdict.place()
        )
    });
    let bounded = match study.entrant.claims.bound {
        None => "no <small>none is claimed</small>".into(),
        Some(_) => cell(all, Property::BoundedRegisters),
    };
    (bounded, bits)
}

/// Returns a table of every verdict about an algorithm, with its command.
pub(super) fn table(all: &[Verdict<'_>], study: &Study) -> String {
    let rows: String = all.iter().map(|verdict| verdict.row(study)).collect();
    format!(
        "<div class=\"wide\"><table><thead><tr><th>property</th><th></th><th>where</th><th>states</th><th>command, and what it \
         says</th></tr></thead><tbody>\n{rows}</tbody></table></div>\n"
    )
}

/// Returns the name of a problem.
pub(super) fn title(problem: Problem) -> &'static str {
    match problem {
        Problem::Mutex => "Mutual exclusion",
        Problem::KExclusion => "k-exclusion",
        Problem::Group => "Groups",
    }
}
