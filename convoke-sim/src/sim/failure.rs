//! What was wrong with a run, and how to see it again.

use core::fmt;
use core::time::Duration;

use crate::world::{PRINTS, TraceLine};

/// So much of the trace is printed: the last lines, and as many of the events before.
const LAST_LINES: usize = 20;

/// Why a run has failed. It prints with the seed that makes the same run again.
#[derive(Clone, PartialEq, Eq)]
pub struct Failure {
    pub(crate) seed: u64,
    pub(crate) at: Duration,
    pub(crate) what: String,
    pub(crate) tasks: String,
    pub(crate) trace: Vec<TraceLine>,
    /// What replays it, if that is more than the seed.
    pub(crate) replay: Option<String>,
}

impl Failure {
    /// The seed of the run.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// How much time had passed in it.
    pub fn at(&self) -> Duration {
        self.at
    }

    /// What was wrong.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// The tasks that were there, and what they waited for, as a tree.
    pub fn tasks(&self) -> &str {
        &self.tasks
    }

    /// What had happened on the network: the last [`TRACE_LINES`](crate::TRACE_LINES) lines.
    pub fn trace(&self) -> &[TraceLine] {
        &self.trace
    }

    /// The last lines, and of those before them the last that tell what was done to whom.
    fn print_trace(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before, last) = self.trace.split_at(self.trace.len().saturating_sub(LAST_LINES));
        let mut events: Vec<_> = before.iter().filter(|line| line.is_event()).collect();
        events.drain(..events.len().saturating_sub(LAST_LINES));
        match before.len() - events.len() {
            _ if last.is_empty() => return Ok(()),
            0 => write!(f, "\nwhat happened:")?,
            more => write!(f, "\nwhat happened ({more} lines more are printed by `{PRINTS}=1`):")?,
        }
        events.iter().try_for_each(|line| write!(f, "\n{line}"))?;
        if before.len() > events.len() {
            write!(f, "\n              …")?;
        }
        last.iter().try_for_each(|line| write!(f, "\n{line}"))
    }

    pub(crate) fn replayed_by(mut self, replay: String) -> Self {
        self.replay = Some(replay);
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "after {:?} of simulated time: {}", self.at, self.what)?;
        if !self.tasks.is_empty() {
            write!(f, "\nthe tasks at that moment:\n{}", self.tasks)?;
        }
        self.print_trace(f)?;
        match &self.replay {
            Some(replay) => write!(f, "\nthis was seed {}; `{replay}` runs it again", self.seed),
            None => write!(f, "\nthis was seed {0}; `Sim::new({0})` runs it again", self.seed),
        }
    }
}

/// As it prints: an `unwrap` then says all of it.
impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Failure {}
