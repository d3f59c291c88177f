//! Shows a trace as a page: one HTML file with everything in it, which needs no network and no
//! server.
//!
//! The page shows a [`Film`]: the trace with all that its replay knows. The page only draws. This
//! module finds out which register holds what, which process pays for which access and what is
//! violated.

mod explore;
mod pseudocode;
mod still;

use doorway_core::{Home, Property};
use serde::Serialize;

pub use self::{
    explore::{Act, ExploreError, Explorer, Plan, Scheduled},
    pseudocode::{Row, pseudocode},
};
use crate::{
    cost::Meter,
    machine::{Event, Half, Machine},
    replay::Kind,
    subject::Subject,
    trace::{Trace, TraceError},
};

const FORMAT: &str = "doorway-film";
const VERSION: u32 = 1;

/// With more registers than this, only registers that a process touches are shown.
const MANY: usize = 256;

/// A trace with all that is visible of it.
#[derive(Clone, Debug, Serialize)]
pub struct Film {
    format: &'static str,
    version: u32,
    /// The trace itself.
    pub trace: Trace,
    paper: &'static str,
    figure: &'static str,
    pseudocode: Vec<Row>,
    /// The registers that are shown.
    pub registers: Vec<Shown>,
    /// The number of registers that are not shown.
    pub left_out: usize,
    /// All steps.
    pub frames: Vec<Frame>,
    /// The crashes: which process crashes after how many steps.
    pub crashes: Vec<Crash>,
}

/// A register.
#[derive(Clone, Debug, Serialize)]
pub struct Shown {
    /// Its name.
    pub name: String,
    /// The process in whose memory the register is, if any.
    pub home: Option<usize>,
    /// What the register holds at first.
    pub init: String,
}

/// What is visible of a step, besides what the trace says.
#[derive(Clone, Debug, Serialize)]
pub struct Frame {
    /// The kind of the step: read, write, update, choose, or half a write (begin, end).
    pub kind: &'static str,
    /// The register, as an index into the shown registers.
    pub register: Option<usize>,
    /// What the register holds afterwards.
    pub value: Option<String>,
    /// References with coherent caches.
    pub cc: u64,
    /// References with distributed shared memory.
    pub dsm: u64,
    /// The line of the process's next access.
    pub next: u32,
    /// The session that the process has asked for; 0 for none.
    pub session: u32,
    /// The properties that the step violates, of those that are claimed or that the trace is about.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub violates: Vec<&'static str>,
}

/// A crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Crash {
    /// The process that crashes.
    pub process: usize,
    /// The number of steps before the crash.
    pub after: usize,
}

impl Film {
    /// Replays a trace and records what is visible.
    ///
    /// # Errors
    /// When [`Trace::replay`] fails.
    pub fn of(trace: &Trace) -> Result<Self, TraceError> {
        let subject = trace.subject()?;
        let mut reel = Reel::new(&*subject, trace.property.as_deref());
        trace.replay_watched(|machine, event, violated| reel.add(machine, event, violated))?;
        Ok(reel.cut(trace.clone()))
    }

    /// Returns the film as data.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a film is plain data")
    }

    /// Returns the film as a page that needs nothing else.
    pub fn page(&self) -> String {
        let title = match &self.trace.property {
            Some(property) => format!("{}: {property} is violated", self.trace.algorithm),
            None => format!("{}: {} steps", self.trace.algorithm, self.trace.steps.len()),
        };
        page(&title, &self.to_json(), include_str!("viewer/viewer.js"))
    }
}

/// Returns the page that shows a film.
fn page(title: &str, film: &str, script: &str) -> String {
    format!(
        include_str!("viewer/page.html"),
        title = title.replace('&', "&amp;").replace('<', "&lt;"),
        style = include_str!("viewer/viewer.css"),
        // In JSON this character only stands in texts, where it may be written like that. Otherwise
        // a text could end the element.
        film = film.replace('<', "\\u003c"),
        script = script,
    )
}

/// A film that is being made.
struct Reel<'s> {
    subject: &'s dyn Subject,
    meter: Meter,
    watched: Vec<Property>,
    frames: Vec<Frame>,
    /// The registers in the order in which they first occurred.
    registers: Vec<usize>,
    /// The position of each register in that list.
    places: rustc_hash::FxHashMap<usize, usize>,
}

impl<'s> Reel<'s> {
    fn new(subject: &'s dyn Subject, property: Option<&str>) -> Self {
        let claims = subject.claims();
        let mut watched = claims.properties.to_vec();
        watched.extend(property.and_then(|name| claims.property(name)));
        let meter = Meter::new(subject.size().n);
        let mut reel = Self {
            subject,
            meter,
            watched,
            frames: Vec::new(),
            registers: Vec::new(),
            places: Default::default(),
        };
        let registers = subject.layout().registers();
        if registers <= MANY {
            reel.registers = (0..registers).collect();
            reel.places = (0..registers).map(|register| (register, register)).collect();
        }
        reel
    }

    fn place(&mut self, register: usize) -> usize {
        *self.places.entry(register).or_insert_with(|| {
            self.registers.push(register);
            self.registers.len() - 1
        })
    }

    fn add(&mut self, machine: &Machine<'_>, event: &Event, violated: &[Property]) {
        let (cc, dsm) = self.meter.observe(event);
        let value = event.register.filter(|_| event.changed).map(|register| {
            let held = machine.value(register).text();
            if event.half == Some(Half::Begin) { format!("{held}, being written") } else { held }
        });
        let watched = violated.iter().filter(|property| self.watched.contains(property));
        let violates = watched.map(|property| property.name()).collect();
        let frame = Frame {
            kind: match (event.kind, event.half) {
                (_, Some(Half::Begin)) => "begin",
                (_, Some(Half::End)) => "end",
                (Kind::Read, None) => "read",
                (Kind::Write, None) => "write",
                (Kind::Update, None) => "update",
                (Kind::Choose(_), None) => "choose",
            },
            register: event.register.map(|register| self.place(register)),
            value,
            cc,
            dsm,
            next: machine.line(event.process),
            session: event.session.0,
            violates,
        };
        self.frames.push(frame);
    }

    fn cut(self, trace: Trace) -> Film {
        let (claims, layout) = (self.subject.claims(), self.subject.layout());
        let shown = |&register: &usize| {
            let cell = layout.cell(register);
            let home = match cell.home {
                Home::Process(p) => Some(p),
                Home::Nobody => None,
            };
            Shown { name: cell.name(), home, init: cell.init.text() }
        };
        // A process that has crashed where the loop begins has been silent since its last step.
        let last =
            |p| trace.steps.iter().rposition(|step| step.process == p).map_or(0, |last| last + 1);
        Film {
            format: FORMAT,
            version: VERSION,
            paper: claims.paper,
            figure: claims.figure,
            pseudocode: pseudocode(self.subject.name()),
            registers: self.registers.iter().map(shown).collect(),
            left_out: layout.registers() - self.registers.len(),
            frames: self.frames,
            crashes: trace
                .crashed
                .iter()
                .map(|&process| Crash { process, after: last(process) })
                .collect(),
            trace,
        }
    }
}
