//! Draws a film as one still picture, for documents. Time runs downwards. Each process has a lane
//! with its section in colour. Each step has the paper's line and the access, and a mark where a
//! property is violated.

use std::fmt::Write;

use super::Film;

const ROW: usize = 20;
const LANE: usize = 46;
/// The largest width of a letter of an access.
const LETTER: f64 = 7.3;
const TOP: usize = 74;
const LEFT: usize = 46;
/// The length of the longest line above the lanes, and the largest width of its letters.
const LINE: usize = 84;
const BOLD: f64 = 8.0;

/// The sections, and their colours on a light ground and on a dark one.
const SECTIONS: [(&str, &str, &str); 5] = [
    ("remainder", "#e3e7eb", "#2b333b"),
    ("doorway", "#8ecbf2", "#2f7db5"),
    ("waiting", "#f3bd52", "#b57d12"),
    ("critical", "#3fb98f", "#1c8a64"),
    ("exit", "#d7a3c5", "#96577f"),
];

fn class(section: &str) -> usize {
    SECTIONS.iter().position(|it| it.0 == section).unwrap_or(0)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Breaks a text into lines that are not too long.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().expect("there is a first");
        if !last.is_empty() && last.chars().count() + word.chars().count() >= LINE {
            lines.push(word.into());
        } else {
            last.push_str(if last.is_empty() { "" } else { " " });
            last.push_str(word);
        }
    }
    lines
}

impl Film {
    /// Returns the whole run as an SVG file. Its colours follow the reader's light or dark theme.
    pub fn svg(&self) -> String {
        let trace = &self.trace;
        let texts: Vec<String> = (0..trace.steps.len()).map(|i| self.words(i)).collect();
        let longest = texts.iter().map(|text| text.chars().count()).max().unwrap_or(0);
        let shows = match &trace.property {
            Some(property) => wrapped(&format!("{property} is violated: {}.", trace.shows)),
            None => Vec::new(),
        };
        let top = TOP + 18 * shows.len();
        let lanes = LEFT + LANE * trace.n;
        let costs = [30, 60].map(|x| lanes + 12 + (longest as f64 * LETTER) as usize + x);
        let mutant =
            trace.mutant.as_ref().map_or(String::new(), |mutant| format!(", mutant {mutant}"));
        let size = doorway_core::Size { n: trace.n, k: trace.k, sessions: trace.sessions };
        let title = format!("{}{mutant}: {size}, {} registers", trace.algorithm, trace.registers);
        let above = shows.iter().map(|line| line.chars().count()).max().unwrap_or(0) as f64 * BOLD;
        let above = above.max(title.chars().count() as f64 * 1.25 * BOLD);
        let wide = (costs[1] + 24).max(above as usize + 20).max(560);
        let high = top + ROW * trace.steps.len() + 44;
        let mut svg = head(wide, high);
        let title = escaped(&title);
        let _ = writeln!(
            svg,
            r#"<title>{title}</title><text x="12" y="24" class="title">{title}</text>"#
        );
        for (i, line) in shows.iter().enumerate() {
            let _ = writeln!(
                svg,
                r#"<text x="12" y="{}" class="bad">{}</text>"#,
                46 + 18 * i,
                escaped(line)
            );
        }
        for p in 0..trace.n {
            let _ = writeln!(
                svg,
                r#"<text x="{}" y="{}" class="soft mid">p{p}</text>"#,
                LEFT + LANE * p + LANE / 2,
                top - 8
            );
        }
        for (x, model) in costs.iter().zip(["CC", "DSM"]) {
            let _ =
                writeln!(svg, r#"<text x="{x}" y="{}" class="soft mid">{model}</text>"#, top - 8);
        }
        self.lanes(&mut svg, top);
        for (i, (words, frame)) in texts.iter().zip(&self.frames).enumerate() {
            let (y, step) = (top + ROW * i, &trace.steps[i]);
            let (middle, x) = (y + 14, LEFT + LANE * step.process);
            let bad = if self.violated(i).is_empty() { "" } else { " bad" };
            let again = if trace.loop_from.is_some_and(|from| i == from) { "↻ " } else { "" };
            let _ = writeln!(
                svg,
                r#"<text x="{}" y="{middle}" class="soft end{bad}">{again}{}</text>"#,
                LEFT - 8,
                i + 1
            );
            let _ = writeln!(
                svg,
                r#"<rect x="{}" y="{}" width="{}" height="{}" rx="5" class="s{} moves"/><text x="{}" y="{middle}" class="mid on">{}</text>"#,
                x + 3,
                y + 1,
                LANE - 6,
                ROW - 2,
                class(&step.region),
                x + LANE / 2,
                step.line
            );
            let _ = writeln!(
                svg,
                r#"<text x="{}" y="{middle}" class="mono{bad}">{}</text>"#,
                lanes + 12,
                escaped(words)
            );
            for (x, cost) in costs.iter().zip([frame.cc, frame.dsm]).filter(|(_, cost)| *cost > 0) {
                let _ = writeln!(
                    svg,
                    r#"<circle cx="{x}" cy="{}" r="{}" class="lit"/>"#,
                    y + ROW / 2,
                    3 + cost.min(2)
                );
            }
        }
        for crash in &self.crashes {
            let (x, y) = (LEFT + LANE * crash.process + LANE / 2, top + ROW * crash.after + 15);
            let _ = writeln!(svg, r#"<text x="{x}" y="{y}" class="bad mid">✕</text>"#);
        }
        self.legend(&mut svg, high - 20);
        svg + "</svg>\n"
    }

    /// Returns what a step does and what it violates.
    fn words(&self, i: usize) -> String {
        let step = &self.trace.steps[i];
        // The access already names all other choices.
        let request = step.choice.as_ref().filter(|choice| choice.starts_with("request"));
        let request = request.map_or(String::new(), |request| format!("{request}: "));
        let violated = self.violated(i).join(", ");
        let wrong = if violated.is_empty() { violated } else { format!("   ✗ {violated}") };
        format!("{request}{}{wrong}", step.access)
    }

    /// Returns what a step violates. The last step also gets the violation that only the checker
    /// sees, which is about possible next steps.
    fn violated(&self, i: usize) -> Vec<&str> {
        let (seen, trace) = (&self.frames[i].violates, &self.trace);
        let last = i + 1 == trace.steps.len() && trace.loop_from.is_none();
        let told = trace.property.as_deref().filter(|property| last && !seen.contains(property));
        seen.iter().copied().chain(told).collect()
    }

    /// Draws the sections of each process, for as long as each lasts.
    fn lanes(&self, svg: &mut String, top: usize) {
        let steps = &self.trace.steps;
        for p in 0..self.trace.n {
            let (mut since, mut section) = (0, "remainder");
            for i in 0..=steps.len() {
                let next = steps
                    .get(i)
                    .map(|step| if step.process == p { step.region.as_str() } else { section });
                if next == Some(section) {
                    continue;
                }
                if i > since {
                    let (x, y) = (LEFT + LANE * p + 10, top + ROW * since);
                    let (wide, high, class) = (LANE - 20, ROW * (i - since), class(section));
                    let _ = writeln!(
                        svg,
                        r#"<rect x="{x}" y="{y}" width="{wide}" height="{high}" class="s{class}"/>"#
                    );
                }
                (since, section) = (i, next.unwrap_or(section));
            }
        }
        if let Some(from) = self.trace.loop_from {
            let (y, end) = (top + ROW * from, top + ROW * steps.len());
            let _ = writeln!(svg, r#"<path d="M6 {y}V{end}" class="again"/>"#);
        }
    }

    fn legend(&self, svg: &mut String, y: usize) {
        for (i, (name, ..)) in SECTIONS.iter().enumerate() {
            let x = 12 + 88 * i;
            let _ = writeln!(svg, r#"<rect x="{x}" y="{y}" width="12" height="12" class="s{i}"/>"#);
            let _ =
                writeln!(svg, r#"<text x="{}" y="{}" class="soft">{name}</text>"#, x + 17, y + 11);
        }
        let x = 12 + 88 * SECTIONS.len();
        let _ = writeln!(
            svg,
            r#"<circle cx="{x}" cy="{}" r="4" class="lit"/><text x="{}" y="{}" class="soft">an RMR</text>"#,
            y + 6,
            x + 9,
            y + 11
        );
    }
}

fn head(wide: usize, high: usize) -> String {
    let colours = |dark: bool| {
        let colour = |(i, it): (usize, &(&str, &str, &str))| {
            format!(".s{i} {{ fill: {}; }} ", if dark { it.2 } else { it.1 })
        };
        SECTIONS.iter().enumerate().map(colour).collect::<String>()
    };
    format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}" role="img" font-family="system-ui, sans-serif" font-size="13">
<style>
.ground {{ fill: #fff; }} text {{ fill: #1b1f24; }} .title {{ font-size: 16px; font-weight: 600; }} .soft {{ fill: #5b6570; font-size: 12px; }}
.mid {{ text-anchor: middle; }} .end {{ text-anchor: end; }} .mono {{ font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: 12px; }}
.on {{ fill: #14181c; font-weight: 600; font-size: 12px; }} .moves {{ stroke: #1b1f24; stroke-width: 1.5; }} .lit {{ fill: #e8590c; }}
.again {{ stroke: #0b62c4; stroke-width: 4; }} {}
.bad {{ fill: #b3261e; font-weight: 600; }}
@media screen and (prefers-color-scheme: dark) {{
.ground {{ fill: #14181c; }} text {{ fill: #e6e9ec; }} .soft {{ fill: #9aa5b1; }} .on {{ fill: #fff; }} .moves {{ stroke: #e6e9ec; }} .lit {{ fill: #ffa94d; }}
.again {{ stroke: #7db8ff; }} {}
.bad {{ fill: #ff8a80; }}
}}
</style>
<rect class="ground" width="{wide}" height="{high}"/>
"#,
        colours(false),
        colours(true)
    )
}

#[cfg(test)]
mod tests {
    use doorway_core::{Property, RegisterKind, Size};

    use crate::{Entrant, Options, Progress, check, trace::Trace, viewer::Film};

    /// All steps are in the picture, in order, with their lines. Sections change where the trace
    /// says, and the violation is marked.
    #[test]
    fn a_picture_shows_the_whole_run() {
        let entrant = Entrant::named("bakery").expect("it is in the registry");
        let subject =
            entrant.build(Size::mutex(2), Some("without-line-7"), false).expect("it fits");
        let options = Options {
            passages: Some(1),
            properties: vec![Property::MutualExclusion],
            max_states: 10_000,
            ..Options::default()
        };
        let report = check(&*subject, &options, &Progress::default()).expect("it runs");
        let trace = report.verdicts[0].trace.as_ref().expect("it is violated");
        let svg = Film::of(trace).expect("it replays").svg();
        let mut rest = svg.as_str();
        for step in &trace.steps {
            for shown in [format!(">{}</text>", step.line), super::escaped(&step.access)] {
                let at =
                    rest.find(&shown).unwrap_or_else(|| panic!("no {shown} after what is before"));
                rest = &rest[at..];
            }
        }
        assert!(svg.contains("mutual-exclusion is violated: "), "{svg}");
        assert_eq!(svg.matches("✗").count(), 1, "the last step is marked, and no other");
        assert!(rest.contains("✗ mutual-exclusion"), "and it is the last one");
        let inside = trace.steps.iter().filter(|step| step.region == "critical").count();
        assert_eq!(inside, 2);
        assert_eq!(
            svg.matches("s3 moves").count(),
            inside,
            "who steps into the critical section has its colour"
        );
        assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
    }

    /// The value of a register before the first step can be the whole violation.
    #[test]
    fn a_run_of_no_steps_is_shown() {
        let entrant = Entrant::named("bakery").expect("it is in the registry");
        let subject = entrant.build(Size::mutex(2), None, false).expect("it fits");
        let trace = Trace::of(&*subject, RegisterKind::Atomic);
        assert_eq!(trace.replay().expect("it replays").events.len(), 0);
        let mut film = Film::of(&trace).expect("it replays");
        film.trace.property = Some(Property::BoundedRegisters.name().into());
        film.trace.shows = "Seven holds 7 before the first step".into();
        let (svg, page) = (film.svg(), film.page());
        assert!(
            svg.contains("bounded-registers is violated: Seven holds 7") && !svg.contains("✗"),
            "{svg}"
        );
        assert!(page.contains("bounded-registers is violated"), "{page}");
    }
}
