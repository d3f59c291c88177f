//! Schedules that are written down, in a file or in a paper, and their errors.

use doorway_core::Size;

use super::{ADVERSARIES, Scheduler, View};
use crate::{
    machine::Event,
    subject::{Region, Subject},
};

/// Why a schedule cannot be followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// There is no such scheduler.
    #[error(
        "there is no scheduler {0:?} for this algorithm; there are round-robin, random, pct, {adversaries} and script:FILE, \
         002-section-4 for burns-lamport, 002-section-6 for group-black-white-bakery with -n 4 or more and 2 sessions or \
         more, and 003-section-5:I,J for queue and the tickets", adversaries = ADVERSARIES.join(", ")
    )]
    Unknown(String),
    /// There is no such schedule h(i, j).
    #[error("there is no schedule h({pair}): say 003-section-5:I,J with k ≤ J < I < n; {}", pairs(*.n, *.k))]
    Pair {
        /// The pair that was asked for.
        pair: String,
        /// The number of processes.
        n: usize,
        /// The number of slots.
        k: usize,
    },
    /// A line of the script cannot be read.
    #[error(
        "line {line} of the script: {text:?} is not `ID`, `ID*COUNT`, `ID past LINE`, `ID until REGION`, \
         `ID until REGION within COUNT`, `ID asks SESSION`, `ID chooses OUTCOME`, `ID reads VALUE` or `again`"
    )]
    Syntax {
        /// The number of the line, from 1.
        line: usize,
        /// The text of the line.
        text: String,
    },
    /// A line of the script has more steps than any script needs.
    #[error("line {line} of the script: at most {PATIENCE} steps in one line")]
    TooMany {
        /// The number of the line, from 1.
        line: usize,
    },
    /// The script has a loop in which nothing is repeated.
    #[error(
        "`again` in the script: a simulation comes to an end; follow it with `lab check --script FILE --property NAME`"
    )]
    Again,
    /// The script says what a read returns, on atomic registers.
    #[error(
        "line {line} of the script: on atomic registers a read returns what is there; follow the script with \
         `lab check --script FILE --registers safe --property NAME`"
    )]
    Reads {
        /// The number of the line, from 1.
        line: usize,
    },
    /// The script says what a read returns, but the read overlaps nothing or cannot return that.
    #[error(
        "line {line} of the script: process {process} makes no read that overlaps a write and may return that"
    )]
    NoOverlap {
        /// The number of the line, from 1.
        line: usize,
        /// The process that reads.
        process: usize,
    },
    /// A process makes a request that does not exist, or makes one in the middle of a passage.
    #[error(
        "line {line} of the script: process {process} cannot ask for that here; it asks in its remainder, for a session \
         from 1 to what --sessions says"
    )]
    NoSession {
        /// The number of the line, from 1.
        line: usize,
        /// The process that makes the request.
        process: usize,
    },
    /// The script names a process that does not exist.
    #[error("line {line} of the script: there is no process {process}; with -n {n} they are 0 to {}", n - 1)]
    Nobody {
        /// The number of the line, from 1.
        line: usize,
        /// The process that the script names.
        process: usize,
        /// The number of processes.
        n: usize,
    },
    /// The script moves a process that has finished.
    #[error(
        "line {line} of the script: process {process} has crashed or made all its passages; see --passages"
    )]
    Stuck {
        /// The number of the line, from 1.
        line: usize,
        /// The process that has finished.
        process: usize,
    },
    /// The script waits for a process that does not get there.
    #[error(
        "line {line} of the script: process {process} took {steps} steps and did not get there"
    )]
    Never {
        /// The number of the line, from 1.
        line: usize,
        /// The process that the script waits for.
        process: usize,
        /// The number of steps that the process took.
        steps: u64,
    },
}

/// A schedule written down, step by step or by the places that processes are to reach.
#[derive(Debug)]
pub struct Script {
    turns: Vec<(usize, Turns)>,
    /// The turn before which the script says `again`.
    again: Option<usize>,
    at: usize,
    /// Steps taken in the current line.
    taken: u64,
    /// Steps after which a process that has not reached its place never will.
    patience: u64,
}

#[derive(Debug, Clone, Copy)]
struct Turns {
    process: usize,
    goal: Goal,
}

#[derive(Debug, Clone, Copy)]
enum Goal {
    Steps(u64),
    /// One step with a choice: the first step of a passage asks for this session, or a choice has
    /// this outcome.
    Asks(u32),
    /// One step: a read that overlaps a write and returns this word.
    Reads(u64),
    Past(u32),
    Until(Region),
    /// Like `Until`, with this many steps at most.
    Within(Region, u64),
}

/// A process that has not reached the place named in the script after this many steps never will.
const PATIENCE: u64 = 1_000_000;

impl Script {
    /// Parses a script: one line per turn or run of turns, `#` begins a comment.
    ///
    /// # Errors
    /// At the first line that is none of `ID`, `ID*COUNT`, `ID past LINE`, `ID until REGION`,
    /// `ID until REGION within COUNT`, `ID asks SESSION`, `ID chooses OUTCOME`, `ID reads VALUE`,
    /// `again`.
    pub fn parse(text: &str, n: usize) -> Result<Self, ScheduleError> {
        let mut turns = Vec::new();
        let mut again = None;
        for (i, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or("").trim();
            if line.is_empty() {
                continue;
            }
            if line == "again" {
                again = Some(turns.len());
                continue;
            }
            let turn = parse_line(line)
                .ok_or_else(|| ScheduleError::Syntax { line: i + 1, text: line.into() })?;
            if matches!(turn.goal, Goal::Steps(count) | Goal::Within(_, count) if count > PATIENCE)
            {
                return Err(ScheduleError::TooMany { line: i + 1 });
            }
            if turn.process >= n {
                return Err(ScheduleError::Nobody { line: i + 1, process: turn.process, n });
            }
            turns.push((i + 1, turn));
        }
        Ok(Self { turns, again, at: 0, taken: 0, patience: PATIENCE })
    }

    /// Returns the same script with another patience.
    ///
    /// A run that forgets nothing needs it: there, every failed look makes all further steps more
    /// expensive.
    #[must_use]
    pub fn with_patience(mut self, patience: u64) -> Self {
        self.patience = patience;
        self
    }

    /// Returns the same script for a simulation. Registers are atomic, so the script may not say
    /// what a read returns. The script must end.
    ///
    /// # Errors
    /// If the script says what a read returns, or does not end.
    pub fn for_simulation(self) -> Result<Self, ScheduleError> {
        if self.again.is_some() {
            return Err(ScheduleError::Again);
        }
        match self.turns.iter().find(|(_, turns)| matches!(turns.goal, Goal::Reads(_))) {
            Some(&(line, _)) => Err(ScheduleError::Reads { line }),
            None => Ok(self),
        }
    }

    /// Returns what the current step reads, if the script says so, and the line that says so.
    ///
    /// The current step is the step that [`follow`](Self::follow) has asked for.
    pub fn reads(&self) -> Option<(u64, usize)> {
        match self.turns.get(self.at)? {
            &(line, Turns { goal: Goal::Reads(word), .. }) => Some((word, line)),
            _ => None,
        }
    }

    /// Returns whether the step that [`follow`](Self::follow) has asked for is the first step of
    /// the loop.
    pub fn begins_loop(&self) -> bool {
        self.again == Some(self.at) && self.taken == 1
    }
}

fn parse_line(line: &str) -> Option<Turns> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (process, goal) = match words[..] {
        [one] => match one.split_once('*') {
            Some((process, count)) => (process, Goal::Steps(count.parse().ok()?)),
            None => (one, Goal::Steps(1)),
        },
        [process, "asks" | "chooses", session] => (process, Goal::Asks(session.parse().ok()?)),
        [process, "reads", "∞"] => (process, Goal::Reads(u64::MAX)),
        [process, "reads", word] => (process, Goal::Reads(word.parse().ok()?)),
        [process, "past", line] => (process, Goal::Past(line.parse().ok()?)),
        [process, "until", name] => (process, Goal::Until(region(name)?)),
        [process, "until", name, "within", count] => {
            (process, Goal::Within(region(name)?, count.parse().ok()?))
        }
        _ => return None,
    };
    Some(Turns { process: process.parse().ok()?, goal })
}

fn region(name: &str) -> Option<Region> {
    Some(match name {
        "remainder" => Region::Remainder,
        "doorway" => Region::Doorway,
        "waiting" => Region::Waiting,
        "critical" => Region::Critical,
        "exit" => Region::Exit,
        _ => return None,
    })
}

impl Script {
    /// Returns the process that moves next, given the able processes, the last step and all
    /// regions.
    ///
    /// # Errors
    /// When the script asks for something that cannot be done.
    pub fn follow(
        &mut self,
        able: &[usize],
        last: Option<&Event>,
        regions: &[Region],
    ) -> Result<Option<usize>, ScheduleError> {
        while let Some(&(line, Turns { process, goal })) = self.turns.get(self.at) {
            let reached = match goal {
                Goal::Steps(count) => self.taken >= count,
                Goal::Reads(_) | Goal::Asks(_) => self.taken >= 1,
                Goal::Past(line) => {
                    self.taken > 0
                        && last.is_some_and(|last| last.process == process && last.line == line)
                }
                Goal::Until(region) => self.taken > 0 && regions[process] == region,
                Goal::Within(region, count) => {
                    self.taken >= count || self.taken > 0 && regions[process] == region
                }
            };
            if reached {
                self.at += 1;
                self.taken = 0;
                continue;
            }
            if !able.contains(&process) {
                return Err(ScheduleError::Stuck { line, process });
            }
            if self.taken >= self.patience && !matches!(goal, Goal::Steps(_)) {
                return Err(ScheduleError::Never { line, process, steps: self.taken });
            }
            self.taken += 1;
            return Ok(Some(process));
        }
        Ok(None)
    }
}

impl Scheduler for Script {
    fn next(&mut self, view: &View<'_>) -> Result<Option<usize>, ScheduleError> {
        self.follow(view.able, view.last, view.regions)
    }

    fn asks(&self) -> Option<(u32, usize)> {
        match self.turns.get(self.at)? {
            &(line, Turns { goal: Goal::Asks(session), .. }) => Some((session, line)),
            _ => None,
        }
    }
}

/// The name of the schedule of He et al. 2018, section 4.
pub const SECTION_4: &str = "002-section-4";

/// Returns the schedule of He et al. 2018, section 4. It makes Burns-Lamport's last process compete
/// N(N-1)/2 times in one passage. The paper's P_1 … P_N are 0 … n-1 here.
pub fn section_4(n: usize) -> String {
    let last = n - 1;
    let mut script = String::new();
    for lowest in 0..last {
        script.push_str(&format!("{last} past 1 # event 1: P_N sets its bit\n"));
        for m in (lowest..last).rev() {
            script.push_str(&format!("{m} past 1 # events 2, 4, 8: a smaller one sets its bit\n"));
            if m + 1 < last {
                script.push_str(&format!(
                    "{} past 4 # events 5, 9: the one above it gives way\n",
                    m + 1
                ));
                script.push_str(&format!("{last} past 1 # events 6, 10: P_N competes again\n"));
            }
            script.push_str(&format!("{last} past 4 # events 3, 7, 11, 15: P_N is blocked\n"));
        }
        script.push_str(&format!(
            "{lowest} until critical # event 16\n{lowest} until remainder # event 17\n"
        ));
    }
    script.push_str(&format!("{last} until critical # alone at last\n{last} until remainder\n"));
    script
}

/// The name of the schedule of He et al. 2018, section 6.
pub const SECTION_6: &str = "002-section-6";

/// The schedule of He et al. 2018, section 6. With it, the naive generalisation of the Black-White
/// Bakery lets two sessions in. The paper's P_i, P_j, P_k, P_l are 0 to 3 here, S and S' are 1 and
/// 2, and its white is black.
pub const SECTION_6_SCRIPT: &str = "\
0 asks 1
0 until critical # P_i enters
1 asks 1
1 until critical # P_j enters, of the same session and colour
0 until remainder # P_i leaves: GlobalColor is flipped
2 asks 1
2 until critical # P_k enters, of the same session and the other colour
3 asks 2
3 until waiting
3 until critical within 100 # P_l waits for P_j
2 until remainder # P_k leaves: is GlobalColor flipped again?
3 until critical within 100 # then P_l goes in beside P_j
1 until remainder
3 until remainder
";

/// The name of the schedules of Fischer et al. 1985, section 5.2; `:I,J` follows.
pub const SECTION_5: &str = "003-section-5";

/// Returns the schedule h(i, j) of Fischer et al. 1985, section 5.2, for k ≤ j < i ≤ n - 1.
///
/// No two of these schedules may leave the same value in the shared variable, hence the lower bound
/// C(n - k, 2) on the number of values. The paper's P_1 … P_N are 0 … n-1 here; `i` and `j` are the
/// paper's.
pub fn section_5(n: usize, k: usize, i: usize, j: usize) -> String {
    let mut script = String::new();
    (0..k).for_each(|p| script.push_str(&format!("{p} until critical # 1: P_1 … P_k enter\n")));
    (k..n).for_each(|p| script.push_str(&format!("{p} # 1: the others come to wait\n")));
    script.push_str("0 until remainder # 2: P_1 leaves\n");
    (k..i).for_each(|p| {
        script.push_str(&format!("{p} until remainder # 3: P_k+1 … P_i go through\n"))
    });
    (k..j).for_each(|p| script.push_str(&format!("{p} # 4: P_k+1 … P_j come again\n")));
    script
}

/// Returns the script that `003-section-5:I,J` names, if this algorithm has it. Only the algorithms
/// of the paper have it: the schedule requires that processes enter and leave by single steps.
pub(crate) fn section_5_for(
    name: &str,
    subject: &dyn Subject,
) -> Option<Result<String, ScheduleError>> {
    let pair =
        name.strip_prefix(SECTION_5).filter(|_| subject.claims().paper.starts_with("003 "))?;
    let pair = if pair.is_empty() { pair } else { pair.strip_prefix(':')? };
    let Size { n, k, .. } = subject.size();
    let numbers = pair.split_once(',').and_then(|(i, j)| Some((i.parse().ok()?, j.parse().ok()?)));
    Some(match numbers {
        Some((i, j)) if k <= j && j < i && i < n => Ok(section_5(n, k, i, j)),
        _ => Err(ScheduleError::Pair { pair: pair.into(), n, k }),
    })
}

/// Returns an example of a pair, if there is one.
fn pairs(n: usize, k: usize) -> String {
    if k + 2 <= n {
        format!("with -n {n} -k {k} try 003-section-5:{},{k}", n - 1)
    } else {
        format!("with -k {k} there is none below -n {}", k + 2)
    }
}
