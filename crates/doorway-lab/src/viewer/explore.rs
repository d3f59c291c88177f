//! The explorer: the user builds a schedule step by step and sees its effects. Nothing is
//! remembered between two questions: each question carries the whole schedule, which is run again.
//! To go back, the page asks with a shorter schedule.

use doorway_core::RegisterKind;
use serde::{Deserialize, Serialize};

use super::{Crash, Film, Reel, page};
use crate::{
    fault::Fault,
    machine::Event,
    random::Random,
    schedule::{ScheduleError, View, scheduler},
    simulate::choose,
    subject::{Choice, Region, Subject},
    trace::{Alone, PATIENCE, Run, Trace, TraceStep, Turn, alone, from_words, in_words},
};

/// The largest number of steps of a schedule: this many can be run again at each click.
const MOST: usize = 5_000;

/// One step or crash in a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Act {
    /// The process.
    pub process: usize,
    /// The choice that the process makes, as in a trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<String>,
    /// The process makes no step but crashes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub crashes: bool,
}

/// A question: what does the machine look like after this schedule?
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The schedule.
    pub schedule: Vec<Act>,
    /// The scheduler that continues the schedule, if there is one.
    #[serde(default)]
    pub run: Option<Scheduled>,
}

/// A scheduler that decides for a number of steps.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scheduled {
    /// Its name.
    pub scheduler: String,
    /// Seed of everything random.
    pub seed: u64,
    /// The number of steps.
    pub steps: usize,
}

/// Why a schedule cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum ExploreError {
    /// The schedule is too long.
    #[error("a schedule here has at most {MOST} steps; lab simulate makes longer runs")]
    TooLong,
    /// The process does not exist, or cannot do that.
    #[error("process {0} cannot do that here")]
    Cannot(usize),
    /// The scheduler reports an error.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// The algorithm cannot be run in the lab.
    #[error("{0}")]
    Fault(Fault),
}

/// The film so far, and how it may go on.
#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    film: Film,
    live: Live,
}

#[derive(Serialize)]
struct Live {
    /// The schedule, with what schedulers have added.
    schedule: Vec<Act>,
    processes: Vec<Able>,
    schedulers: &'static [&'static str],
}

/// The next moves of a process.
#[derive(Serialize)]
struct Able {
    section: String,
    crashed: bool,
    moves: Vec<Possible>,
    /// What happens to the process if only it moves; nothing outside its entry section.
    alone: Option<String>,
}

/// One move and its effect.
#[derive(Serialize)]
struct Possible {
    choice: Option<String>,
    line: u32,
    access: String,
    to: String,
}

/// The schedulers that work for every algorithm and need no file.
const SCHEDULERS: &[&str] =
    &["round-robin", "random", "pct", "oblivious:bursts", "strong-adaptive:victim"];

/// An algorithm to explore by hand.
pub struct Explorer {
    subject: Box<dyn Subject>,
}

impl Explorer {
    /// Makes an explorer of this algorithm.
    pub fn new(subject: Box<dyn Subject>) -> Self {
        Self { subject }
    }

    /// Returns the page, with an empty schedule.
    ///
    /// # Errors
    /// When the algorithm cannot be run in the lab.
    pub fn page(&self) -> Result<String, ExploreError> {
        let script = concat!(include_str!("viewer.js"), include_str!("explore.js"));
        Ok(page(
            &format!("{}: explore", self.subject.name()),
            &self.answer(Plan::default())?,
            script,
        ))
    }

    /// Returns what is visible after a schedule, as JSON.
    ///
    /// # Errors
    /// When the schedule cannot be followed.
    pub fn answer(&self, plan: Plan) -> Result<String, ExploreError> {
        let subject = &*self.subject;
        let mut take = Take::new(subject)?;
        for act in plan.schedule {
            take.act(act)?;
        }
        if let Some(run) = plan.run {
            take.follow(&run)?;
        }
        Ok(serde_json::to_string(&take.answer()?).expect("an answer is plain data"))
    }
}

/// A schedule that is being run.
struct Take<'s> {
    subject: &'s dyn Subject,
    run: Run<'s>,
    reel: Reel<'s>,
    trace: Trace,
    turns: Vec<Turn>,
    schedule: Vec<Act>,
    crashes: Vec<Crash>,
    last: Option<Event>,
}

impl<'s> Take<'s> {
    fn new(subject: &'s dyn Subject) -> Result<Self, ExploreError> {
        Ok(Self {
            subject,
            run: Run::new(subject, RegisterKind::Atomic, true).map_err(ExploreError::Fault)?,
            reel: Reel::new(subject, None),
            trace: Trace::of(subject, RegisterKind::Atomic),
            turns: Vec::new(),
            schedule: Vec::new(),
            crashes: Vec::new(),
            last: None,
        })
    }

    fn has_crashed(&self, p: usize) -> bool {
        self.crashes.iter().any(|crash| crash.process == p)
    }

    fn act(&mut self, act: Act) -> Result<(), ExploreError> {
        let process = act.process;
        let cannot = ExploreError::Cannot(process);
        if process >= self.subject.size().n || self.has_crashed(process) {
            return Err(cannot);
        }
        if act.crashes {
            // A crash is outside the remainder: a process in its remainder may stay there for ever.
            if self.run.machine.region(process) == Region::Remainder || act.choice.is_some() {
                return Err(cannot);
            }
            self.crashes.push(Crash { process, after: self.turns.len() });
            self.schedule.push(act);
            return Ok(());
        }
        if self.turns.len() >= MOST {
            return Err(ExploreError::TooLong);
        }
        let turn = match from_words(act.choice.as_deref()) {
            Some(choice) => Turn { process, choice, garbage: None },
            None => return Err(cannot),
        };
        let (event, violated) = self.run.take(turn).map_err(|fault| match fault {
            Fault::Impure => cannot,
            fault => ExploreError::Fault(fault),
        })?;
        self.reel.add(&self.run.machine, &event, &violated);
        self.trace.steps.push(TraceStep::new(&event, turn));
        self.turns.push(turn);
        self.schedule.push(act);
        self.last = Some(event);
        Ok(())
    }

    /// Lets a scheduler continue the schedule.
    fn follow(&mut self, how: &Scheduled) -> Result<(), ExploreError> {
        let no_file = |_: &str| Err(ScheduleError::Unknown(how.scheduler.clone()));
        let mut scheduler =
            scheduler::<ScheduleError>(&how.scheduler, self.subject, how.seed, no_file)?;
        let mut random = Random::new(how.seed, 2);
        let n = self.subject.size().n;
        let able: Vec<usize> = (0..n).filter(|&p| !self.has_crashed(p)).collect();
        for _ in 0..how.steps.min(MOST - self.turns.len()) {
            if able.is_empty() {
                break;
            }
            let machine = &self.run.machine;
            let regions: Vec<Region> = (0..n).map(|p| machine.region(p)).collect();
            let view = View {
                able: &able,
                last: self.last.as_ref(),
                regions: &regions,
                machine,
                meter: &self.reel.meter,
            };
            let Some(process) = scheduler.next(&view)? else { break };
            let step = machine.moves(process)[choose(machine, process, &mut random)];
            let choice = self.words(step.choice);
            self.act(Act { process, choice, crashes: false })?;
        }
        Ok(())
    }

    fn words(&self, choice: Choice) -> Option<String> {
        let session = choice
            .request()
            .map_or(doorway_core::Session::NONE, |request| self.subject.session(request));
        in_words(choice, session)
    }

    fn answer(mut self) -> Result<Answer, ExploreError> {
        let processes =
            (0..self.subject.size().n).map(|p| self.able(p)).collect::<Result<_, _>>()?;
        self.trace.crashed = self.crashes.iter().map(|crash| crash.process).collect();
        // A run that ends in a violation can be saved as a trace of that violation.
        if let Some(property) = self.reel.frames.last().and_then(|frame| frame.violates.first()) {
            self.trace.shows = format!("the last step violates {property}");
            self.trace.property = Some((*property).into());
        }
        let mut film = self.reel.cut(self.trace);
        film.crashes = self.crashes;
        Ok(Answer {
            film,
            live: Live { schedule: self.schedule, processes, schedulers: SCHEDULERS },
        })
    }

    fn able(&self, p: usize) -> Result<Able, ExploreError> {
        let machine = &self.run.machine;
        let crashed = self.has_crashed(p);
        let name = |region: Region| format!("{region:?}").to_lowercase();
        let mut moves = Vec::new();
        for step in machine.moves(p).iter().filter(|_| !crashed) {
            let (access, to) = machine.preview(p, step).map_err(ExploreError::Fault)?;
            let (choice, to) = (self.words(step.choice), name(to));
            moves.push(Possible { choice, line: step.access.line, access, to });
        }
        let tries = machine.region(p).is_entry() && !crashed;
        let alone = if tries { Some(self.alone(p)?) } else { None };
        Ok(Able { section: name(machine.region(p)), crashed, moves, alone })
    }

    /// Returns in words what happens to a process if only it moves from here on.
    fn alone(&self, p: usize) -> Result<String, ExploreError> {
        let mut run =
            Run::new(self.subject, RegisterKind::Atomic, true).map_err(ExploreError::Fault)?;
        for turn in &self.turns {
            run.take(*turn).map_err(ExploreError::Fault)?;
        }
        Ok(match alone(&mut run, p) {
            Some(Alone::Enters(1)) => "alone, it enters with its next step".into(),
            Some(Alone::Enters(steps)) => format!("alone, it enters after {steps} steps"),
            Some(Alone::GoesRound) => "alone, it never enters: somebody else has to move".into(),
            None => format!("alone, it has not entered after {PATIENCE} steps"),
        })
    }
}

#[cfg(test)]
mod tests {
    use doorway_core::{Problem, Size};
    use serde_json::{Value, json};

    use super::*;
    use crate::Entrant;

    fn bakery() -> Explorer {
        let entrant = Entrant::named("bakery").expect("it is there");
        Explorer::new(entrant.build(Size::mutex(2), None, false).expect("two"))
    }

    fn answer(plan: Value) -> Result<Value, String> {
        let plan = serde_json::from_value(plan).map_err(|error| error.to_string())?;
        let answer = bakery().answer(plan).map_err(|error| error.to_string())?;
        Ok(serde_json::from_str(&answer).expect("JSON"))
    }

    /// A saved schedule can be replayed, crashes included.
    #[test]
    fn a_schedule_is_a_trace() {
        let mut schedule = vec![json!({ "process": 0 }); 6];
        schedule.extend(vec![json!({ "process": 1 }); 4]);
        schedule.push(json!({ "process": 0, "crashes": true }));
        let seen = answer(json!({ "schedule": schedule })).expect("it can be followed");
        assert_eq!(seen["crashes"], json!([{ "process": 0, "after": 10 }]));
        assert_eq!(seen["live"]["processes"][0]["section"], "critical");
        assert_eq!(seen["live"]["processes"][0]["moves"], json!([]));
        let second = &seen["live"]["processes"][1];
        assert_eq!(second["section"], "waiting");
        assert_eq!(second["moves"][0]["line"], 7);
        assert!(
            second["alone"].as_str().is_some_and(|alone| alone.contains("never enters")),
            "{second}"
        );
        let trace = Trace::parse(&seen["trace"].to_string()).expect("a trace");
        assert_eq!(trace.replay().expect("it replays").events.len(), 10);
        // The preview of a move shows the effect of that move.
        let next = &second["moves"][0];
        schedule.push(json!({ "process": 1 }));
        let after = answer(json!({ "schedule": schedule })).expect("it can be followed");
        let step = &after["trace"]["steps"][10];
        assert_eq!(
            (&step["access"], &step["region"], &step["line"]),
            (&next["access"], &next["to"], &next["line"])
        );
    }

    #[test]
    fn schedulers_go_on() {
        let run = json!({ "scheduler": "random", "seed": 7, "steps": 100 });
        let seen = answer(json!({ "schedule": [{ "process": 1 }], "run": run })).expect("it runs");
        assert_eq!(seen["trace"]["steps"].as_array().map(Vec::len), Some(101));
        // The schedule in the answer leads to the same state.
        let again = answer(json!({ "schedule": seen["live"]["schedule"] })).expect("it runs");
        assert_eq!(again, seen);
        for scheduler in SCHEDULERS {
            let run = json!({ "scheduler": scheduler, "seed": 0, "steps": 9_999 });
            let seen = answer(json!({ "schedule": [], "run": run })).expect("it runs");
            assert_eq!(seen["frames"].as_array().map(Vec::len), Some(MOST), "{scheduler}");
        }
    }

    /// A process that finds a closed backpack tries again with a number that is new each time. It
    /// never comes back to where it was.
    #[test]
    fn who_tries_for_ever_is_not_followed_for_ever() {
        let entrant = Entrant::named("randomized").expect("it is there");
        let explorer = Explorer::new(entrant.build(Size::mutex(2), None, false).expect("two"));
        let seen = |schedule: &[Value]| -> Value {
            let plan = serde_json::from_value(json!({ "schedule": schedule })).expect("a plan");
            serde_json::from_str(&explorer.answer(plan).expect("it can be followed")).expect("JSON")
        };
        let mut schedule = Vec::new();
        while seen(&schedule)["live"]["processes"][0]["section"] != "critical" {
            schedule.push(json!({ "process": 0 }));
        }
        schedule.push(json!({ "process": 1 }));
        assert_eq!(
            seen(&schedule)["live"]["processes"][1]["alone"],
            "alone, it has not entered after 10000 steps"
        );
    }

    /// Every algorithm can be explored, and its saved schedule replays.
    #[test]
    fn every_algorithm_can_be_explored() {
        for entrant in Entrant::all() {
            let (k, sessions) = match entrant.claims.problem {
                Problem::Mutex => (1, 0),
                Problem::KExclusion => (2, 0),
                Problem::Group => (3, 2),
            };
            let subject =
                entrant.build(Size { n: 3, k, sessions }, None, false).expect("it serves three");
            let explorer = Explorer::new(subject);
            for steps in [0, 10, 40, 150] {
                let run = json!({ "scheduler": "random", "seed": steps, "steps": steps });
                let plan =
                    serde_json::from_value(json!({ "schedule": [], "run": run })).expect("a plan");
                let answer = explorer.answer(plan).expect("it can be followed");
                let seen: Value = serde_json::from_str(&answer).expect("JSON");
                let trace = Trace::parse(&seen["trace"].to_string()).expect("a trace");
                assert_eq!(
                    trace.replay().expect("it replays").events.len(),
                    steps,
                    "{}",
                    entrant.name
                );
            }
        }
    }

    #[test]
    fn what_cannot_be_done_is_refused() {
        let refused = |schedule: Value| {
            answer(json!({ "schedule": schedule })).expect_err("it cannot be done")
        };
        assert!(refused(json!([{ "process": 2 }])).contains("process 2 cannot do that"));
        assert!(refused(json!([{ "process": 0, "choice": "luck" }])).contains("process 0 cannot"));
        assert!(
            refused(json!([{ "process": 0, "choice": "session 1" }, { "process": 0, "choice": "session 9" }]))
                .contains("0")
        );
        assert!(
            refused(json!([{ "process": 0, "crashes": true }])).contains("process 0 cannot"),
            "in its remainder"
        );
        let dead = json!([{ "process": 0 }, { "process": 0, "crashes": true }, { "process": 0 }]);
        assert!(refused(dead).contains("process 0 cannot"));
        assert!(refused(json!(vec![json!({ "process": 0 }); MOST + 1])).contains("at most"));
        assert!(refused(json!([{ "process": 0, "luck": 1 }])).contains("luck"));
        let run = json!({ "scheduler": "script:/etc/passwd", "seed": 0, "steps": 1 });
        assert!(
            answer(json!({ "schedule": [], "run": run }))
                .expect_err("no files")
                .contains("no scheduler")
        );
    }
}
