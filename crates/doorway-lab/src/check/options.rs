//! The options of the checker.

use std::path::PathBuf;

use doorway_core::{Property, RegisterKind};

/// What to check, and how far.
#[derive(Clone, Debug)]
pub struct Options {
    /// Passages per process; `None` for no bound.
    pub passages: Option<u32>,
    /// A process that makes any number of passages, even if the other processes have a bound.
    pub endless: Option<usize>,
    /// Attempts per passage that are followed, or [any number](doorway_core::ANY_NUMBER).
    ///
    /// `None` for as many as the algorithm says. A process that begins one more attempt takes no
    /// further step: what would come of it is not known.
    pub retries: Option<u32>,
    /// The registers that the algorithm runs on.
    pub registers: RegisterKind,
    /// The number of processes that may crash.
    pub crashes: usize,
    /// The properties to decide.
    pub properties: Vec<Property>,
    /// The largest number of states to explore.
    pub max_states: u64,
    /// The number of workers that search.
    pub workers: usize,
    /// Whether tickets are relabelled; `None` if the checker decides: yes in runs without end and
    /// on safe registers.
    pub relabel: Option<bool>,
    /// Whether bisimilar local states of a process are merged, where they can be found.
    pub minimise: bool,
    /// Whether random runs in which loops forget are first compared with runs in which nothing is
    /// forgotten. If a subject is checked many times, one comparison is enough.
    pub rehearse: bool,
    /// The bytes of memory that states and their graph may take; further states go to disk. `None`
    /// for no bound.
    pub max_memory: Option<u64>,
    /// The directory for states that do not fit in memory; `None` for `$TMPDIR`, or else
    /// `/var/tmp`.
    pub disk: Option<PathBuf>,
}

/// Any number of passages on atomic registers, no crashes, one worker, at most a million states,
/// bisimilar local states merged, and nothing to decide.
impl Default for Options {
    fn default() -> Self {
        Self {
            passages: None,
            endless: None,
            retries: None,
            registers: RegisterKind::Atomic,
            crashes: 0,
            properties: Vec::new(),
            max_states: 1_000_000,
            workers: 1,
            relabel: None,
            minimise: true,
            rehearse: true,
            max_memory: None,
            disk: None,
        }
    }
}

impl Options {
    /// Returns how many passages are made, as a phrase for a sentence.
    pub fn passages_in_words(&self) -> String {
        let Some(passages) = self.passages else { return "any number of passages".into() };
        let plural = if passages == 1 { "" } else { "s" };
        let but =
            self.endless.map_or(String::new(), |p| format!(", but any number of process {p}"));
        format!("{passages} passage{plural} per process{but}")
    }
}
