//! A chart: curves over n in one figure, as SVG, on logarithmic or linear axes. Colours follow the
//! reader's light or dark mode; in print and without colours the marks tell the curves apart.

use std::fmt::Write;

/// A figure.
pub(crate) struct Chart {
    pub(crate) title: String,
    /// What the axes show.
    pub(crate) x: String,
    pub(crate) y: String,
    pub(crate) scale: Scale,
    pub(crate) curves: Vec<Curve>,
}

/// The scale of both axes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scale {
    /// Distance by logarithm.
    Log,
    /// Distance by value, from zero on.
    Linear,
}

/// The measured points of one thing.
pub(crate) struct Curve {
    pub(crate) name: String,
    /// Small text under the name.
    pub(crate) note: String,
    /// Its colour and mark: curves that belong together have the same.
    pub(crate) family: usize,
    /// Its number in its family: the first is drawn with filled marks and without a break.
    pub(crate) member: usize,
    /// By n, none of them zero.
    pub(crate) points: Vec<(usize, f64)>,
}

/// How many families a reader can tell apart.
pub(crate) const FAMILIES: usize = 8;

/// The colours of the families on a light background and on a dark one.
const COLOURS: [(&str, &str); FAMILIES] = [
    ("#0072b2", "#5ab4f0"),
    ("#c1440e", "#ff9a5c"),
    ("#00795b", "#35cf9c"),
    ("#9b3f86", "#e58fd0"),
    ("#7a5c00", "#e3c341"),
    ("#4b4fc4", "#a5a8ff"),
    ("#5b6570", "#aeb8c2"),
    ("#b3261e", "#ff8a80"),
];

const DASHES: [&str; 4] = ["none", "7 4", "2 3", "9 3 2 3"];

/// The marks of the families, by their corners around the point: octagon, square, triangle,
/// diamond, triangle upside down.
const MARKS: [&[(f64, f64)]; 5] = [
    &[
        (1.1, 0.45),
        (0.45, 1.1),
        (-0.45, 1.1),
        (-1.1, 0.45),
        (-1.1, -0.45),
        (-0.45, -1.1),
        (0.45, -1.1),
        (1.1, -0.45),
    ],
    &[(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)],
    &[(0.0, -1.3), (1.2, 0.9), (-1.2, 0.9)],
    &[(0.0, -1.4), (1.4, 0.0), (0.0, 1.4), (-1.4, 0.0)],
    &[(0.0, 1.3), (1.2, -0.9), (-1.2, -0.9)],
];

/// The positions of the axes.
const LEFT: f64 = 76.0;
const RIGHT: f64 = 620.0;
const TOP: f64 = 48.0;
const BOTTOM: f64 = 462.0;
/// Where the names in the legend begin, and the distance from one to the next.
const NAMES: f64 = RIGHT + 66.0;
const LEGEND_STEP: f64 = 40.0;
/// The greatest width of a letter, of the usual size and of the small one.
const LETTER: f64 = 7.8;
const SMALL_LETTER: f64 = 6.4;

/// The least distance between two numbers under the axis.
const LEAST_APART: f64 = 24.0;

/// Maps a value to a position.
struct Axis {
    scale: Scale,
    from: f64,
    to: f64,
    places: (f64, f64),
}

impl Axis {
    /// Creates an axis with a little room on all sides, also for a single value.
    fn around(scale: Scale, values: impl Iterator<Item = f64> + Clone, places: (f64, f64)) -> Self {
        let (least, most) =
            (values.clone().fold(f64::INFINITY, f64::min), values.fold(0.0, f64::max));
        match scale {
            Scale::Log => Self { scale, from: least / 1.3, to: most * 1.3, places },
            Scale::Linear => Self { scale, from: 0.0, to: most * 1.06, places },
        }
    }

    fn place(&self, value: f64) -> f64 {
        let part = match self.scale {
            Scale::Log => (value.ln() - self.from.ln()) / (self.to.ln() - self.from.ln()),
            Scale::Linear => (value - self.from) / (self.to - self.from),
        };
        self.places.0 + part * (self.places.1 - self.places.0)
    }

    /// Returns where lines are drawn: at 1, 2 and 5 times each power of ten, or at about five
    /// multiples of one of these.
    fn ticks(&self) -> Vec<f64> {
        let tens = (-3..=12).map(|power| 10f64.powi(power));
        let mut round = tens.flat_map(|ten| [1.0, 2.0, 5.0].map(|digit| digit * ten));
        match self.scale {
            Scale::Log => round.filter(|value| (self.from..=self.to).contains(value)).collect(),
            Scale::Linear => {
                let step = round.find(|step| self.to / step <= 6.0).unwrap_or(self.to);
                (0..=6).map(|i| f64::from(i) * step).filter(|value| *value <= self.to).collect()
            }
        }
    }
}

/// Returns the style of everything in a figure.
pub(crate) fn style() -> String {
    let (mut light, mut dark) = (String::new(), String::new());
    for (family, colours) in COLOURS.iter().enumerate() {
        let _ = write!(light, " .chart .c{family} {{ stroke: {0}; fill: {0}; }}", colours.0);
        let _ = write!(dark, " .chart .c{family} {{ stroke: {0}; fill: {0}; }}", colours.1);
    }
    let dashes = DASHES.iter().enumerate().fold(String::new(), |mut css, (member, dashes)| {
        let _ = write!(css, " .m{member} {{ stroke-dasharray: {dashes}; }}");
        css
    });
    format!(
        "
.ground {{ fill: #ffffff; }} .chart text {{ fill: #1b1f24; }} .chart .faint {{ fill: #57606a; }} .grid {{ stroke: #d8dee4; }}
{light}
.chart .line {{ fill: none; stroke-width: 2; }} .mark {{ stroke-width: 1.6; }} .chart .hollow {{ fill: none; }}{dashes}
@media screen and (prefers-color-scheme: dark) {{
.ground {{ fill: #0d1117; }} .chart text {{ fill: #e6edf3; }} .chart .faint {{ fill: #9aa5b1; }} .grid {{ stroke: #2f3742; }}
{dark}
.chart .line, .chart .hollow {{ fill: none; }}
}}
"
    )
}

impl Chart {
    /// Returns the figure as a file.
    pub(crate) fn svg(&self) -> String {
        let (width, height) = self.size();
        let head = format!(
            r#"<style>{}</style><rect class="ground" width="{width:.0}" height="{height:.0}"/>"#,
            style()
        );
        self.figure((width, height), &head, true)
    }

    /// Returns the figure for a page that has the [`style`], without names beside the curves: see
    /// [`Curve::key`].
    pub(crate) fn inline(&self) -> String {
        self.figure((RIGHT + 14.0, BOTTOM + 62.0), "", false)
    }

    fn figure(&self, size: (f64, f64), head: &str, legend: bool) -> String {
        let mut svg = self.head(size, head);
        let points = || self.curves.iter().flat_map(|curve| &curve.points);
        if points().next().is_some() {
            let x = Axis::around(self.scale, points().map(|point| point.0 as f64), (LEFT, RIGHT));
            let y = Axis::around(self.scale, points().map(|point| point.1), (BOTTOM, TOP));
            self.grid(&mut svg, &x, &y);
            for curve in &self.curves {
                curve.draw(&mut svg, &x, &y);
            }
            if legend {
                self.legend(&mut svg);
            }
        }
        svg.push_str("</svg>\n");
        svg
    }

    /// Returns the size that the texts need.
    fn size(&self) -> (f64, f64) {
        let long = |text: &str, letter: f64| text.chars().count() as f64 * letter;
        let legend =
            self.curves.iter().map(|c| long(&c.name, LETTER).max(long(&c.note, SMALL_LETTER)));
        let width = legend.fold(0.0, f64::max) + NAMES;
        let height = TOP + self.curves.len() as f64 * LEGEND_STEP;
        (width.max(LEFT + long(&self.x, LETTER)) + 12.0, height.max(BOTTOM + 72.0))
    }

    fn head(&self, (width, height): (f64, f64), rest: &str) -> String {
        let [title, x, y] = [&self.title, &self.x, &self.y].map(|text| escaped(text));
        format!(
            r##"<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="0 0 {width:.0} {height:.0}" role="img" font-family="system-ui, sans-serif" font-size="13">
<title>{title}</title>
<desc>{y}, over {x}</desc>
{rest}
<text x="{LEFT}" y="28" font-size="16" font-weight="600">{title}</text>
<text class="faint" x="{LEFT}" y="{}">{x}</text>
<text class="faint" transform="translate(20 {}) rotate(-90)" text-anchor="middle">{y}</text>
"##,
            BOTTOM + 50.0,
            (TOP + BOTTOM) / 2.0,
        )
    }

    /// Draws a line for each n that was measured, and for round numbers.
    fn grid(&self, svg: &mut String, x: &Axis, y: &Axis) {
        let mut sizes: Vec<usize> =
            self.curves.iter().flat_map(|c| &c.points).map(|point| point.0).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let mut before = RIGHT + LEAST_APART;
        for n in sizes.into_iter().rev() {
            let at = x.place(n as f64);
            let _ = writeln!(svg, r#"<path class="grid" d="M{at:.1} {TOP}V{BOTTOM}"/>"#);
            if before - at >= LEAST_APART {
                let _ = writeln!(
                    svg,
                    r#"<text x="{at:.1}" y="{}" text-anchor="middle">{n}</text>"#,
                    BOTTOM + 20.0
                );
                before = at;
            }
        }
        for value in y.ticks() {
            let at = y.place(value);
            let _ = writeln!(svg, r#"<path class="grid" d="M{LEFT} {at:.1}H{RIGHT}"/>"#);
            let (left, at, value) = (LEFT - 8.0, at + 4.5, tick(value));
            let _ =
                writeln!(svg, r#"<text x="{left}" y="{at:.1}" text-anchor="end">{value}</text>"#);
        }
    }

    /// Draws the names; curves that end highest come first.
    fn legend(&self, svg: &mut String) {
        let end = |curve: &Curve| curve.points.last().map_or(0.0, |point| point.1);
        let mut curves: Vec<&Curve> =
            self.curves.iter().filter(|curve| !curve.points.is_empty()).collect();
        curves.sort_by(|a, b| end(b).total_cmp(&end(a)));
        for (i, curve) in curves.into_iter().enumerate() {
            let (x, y) = (RIGHT + 20.0, TOP + 12.0 + i as f64 * LEGEND_STEP);
            let (class, member) = curve.classes();
            let _ = writeln!(svg, r#"<path class="line {class} {member}" d="M{x} {y}h36"/>"#);
            curve.mark(svg, x + 18.0, y, None);
            let name = escaped(&curve.name);
            let _ = writeln!(svg, r#"<text x="{}" y="{}">{name}</text>"#, NAMES, y + 4.5);
            let note = escaped(&curve.note);
            let _ = writeln!(
                svg,
                r#"<text class="faint" font-size="11" x="{}" y="{}">{note}</text>"#,
                NAMES,
                y + 19.0
            );
        }
    }
}

impl Curve {
    /// Returns the curve's mark and its name, for a page.
    pub(crate) fn key(&self) -> String {
        let (class, member) = self.classes();
        let mut svg = String::from(
            r#"<span class="key"><svg class="chart" viewBox="0 0 40 18" aria-hidden="true">"#,
        );
        let _ = write!(svg, r#"<path class="line {class} {member}" d="M2 9h36"/>"#);
        self.mark(&mut svg, 20.0, 9.0, None);
        let note = if self.note.is_empty() {
            String::new()
        } else {
            format!(" <small>{}</small>", escaped(&self.note))
        };
        svg + &format!("</svg>{}{note}</span>\n", escaped(&self.name))
    }

    fn classes(&self) -> (String, String) {
        (format!("c{}", self.family % FAMILIES), format!("m{}", self.member % DASHES.len()))
    }

    fn draw(&self, svg: &mut String, x: &Axis, y: &Axis) {
        let (class, member) = self.classes();
        let places: Vec<_> =
            self.points.iter().map(|&(n, value)| (x.place(n as f64), y.place(value))).collect();
        let joined =
            places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect::<Vec<_>>().join(" ");
        let _ = writeln!(svg, r#"<polyline class="line {class} {member}" points="{joined}"/>"#);
        for ((n, value), (x, y)) in self.points.iter().zip(places) {
            self.mark(svg, x, y, Some(format!("{}, n = {n}: {value:.2}", self.name)));
        }
    }

    /// Draws a mark around a position. Marks of later members of a family are hollow and larger, so
    /// that curves that coincide are both visible.
    fn mark(&self, svg: &mut String, x: f64, y: f64, says: Option<String>) {
        let r = 4.0 + 2.5 * self.member as f64;
        let corners = MARKS[self.family % MARKS.len()];
        let shape = corners.iter().fold(String::new(), |mut shape, (dx, dy)| {
            let _ = write!(shape, "{:.1},{:.1} ", x + dx * r, y + dy * r);
            shape
        });
        let class = self.classes().0;
        let hollow = if self.member > 0 { " hollow" } else { "" };
        let title = says.map_or(String::new(), |says| format!("<title>{}</title>", escaped(&says)));
        let _ = writeln!(
            svg,
            r#"<polygon class="mark {class}{hollow}" points="{}">{title}</polygon>"#,
            shape.trim_end()
        );
    }
}

/// `0.5`, `20`, `100 000`
fn tick(value: f64) -> String {
    if value.fract() > 0.0 {
        ((value * 1e3).round() / 1e3).to_string()
    } else {
        crate::table::grouped(value as u64)
    }
}

/// Escapes a text, or the value of an attribute.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twice_as_many_are_always_as_far_apart() {
        let axis = Axis { scale: Scale::Log, from: 2.0, to: 32.0, places: (100.0, 500.0) };
        assert_eq!(
            [2.0, 4.0, 16.0, 32.0].map(|n| axis.place(n).round()),
            [100.0, 200.0, 400.0, 500.0]
        );
    }

    #[test]
    fn a_linear_axis_begins_at_zero() {
        let axis = Axis::around(Scale::Linear, [8.0, 100.0].into_iter(), (0.0, 106.0));
        assert_eq!([0.0, 50.0, 100.0].map(|n| axis.place(n).round()), [0.0, 50.0, 100.0]);
        assert_eq!(axis.ticks(), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
    }

    #[test]
    fn names_are_text() {
        assert_eq!(escaped("a<b>&\"c"), "a&lt;b&gt;&amp;&quot;c");
    }

    #[test]
    fn ticks_are_whole_from_one_on() {
        assert_eq!([0.5, 1.0, 20.0, 100_000.0].map(tick), ["0.5", "1", "20", "100 000"]);
    }

    #[test]
    fn nothing_measured_draws_nothing() {
        let chart = Chart {
            title: "t".into(),
            x: "x".into(),
            y: "y".into(),
            scale: Scale::Log,
            curves: Vec::new(),
        };
        let svg = chart.svg();
        assert!(svg.ends_with("</svg>\n") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}
