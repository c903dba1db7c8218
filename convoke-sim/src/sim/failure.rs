//! The failure of a run, and how to repeat it.

use core::fmt;
use core::time::Duration;

use crate::world::{PRINTS, RecordedTrace, TraceLine};

/// The number of trace lines that are printed: the last ones, and as many of the events before them.
const LAST_LINES: usize = 20;
/// The number of breaks (connections that broke, and faults) before the last lines that are printed.
const LAST_BREAKS: usize = 100;

/// The reason why a run has failed. It prints with the seed that repeats it.
#[derive(Clone, PartialEq, Eq)]
pub struct SimFailure {
    pub(crate) seed: u64,
    pub(crate) at: Duration,
    pub(crate) what: String,
    pub(crate) tasks: String,
    pub(crate) trace: RecordedTrace,
    /// Number of lines of the trace, with those that were dropped.
    pub(crate) lines: u64,
    /// The command that repeats it, if that takes more than the seed.
    pub(crate) replay: Option<String>,
}

impl SimFailure {
    /// Returns the seed of the run.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the simulated time of the failure.
    pub fn at(&self) -> Duration {
        self.at
    }

    /// Returns the description of the failure.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Returns the tree of the tasks at the time of the failure, and what each waited for.
    pub fn tasks(&self) -> &str {
        &self.tasks
    }

    /// Returns the last [`TRACE_LINES`](crate::TRACE_LINES) lines of the trace, and before them the last
    /// [`TRACE_EVENTS`](crate::TRACE_EVENTS) events and [breaks](TraceLine::is_break) of the older ones.
    pub fn trace(&self) -> &[TraceLine] {
        self.trace.lines()
    }

    /// Prints the last lines, and before them the last breaks and events of the older ones.
    fn print_trace(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.trace();
        let (before, last) = lines.split_at(lines.len().saturating_sub(LAST_LINES));
        let (mut breaks, mut events) = (0, 0);
        let mut shown: Vec<_> = before
            .iter()
            .rev()
            .filter(|line| match line.is_break() {
                true => counts_to(&mut breaks, LAST_BREAKS),
                false => line.is_event() && counts_to(&mut events, LAST_LINES),
            })
            .collect();
        shown.reverse();
        match self.lines - (shown.len() + last.len()) as u64 {
            _ if last.is_empty() => return Ok(()),
            0 => write!(f, "\nwhat happened:")?,
            more => write!(f, "\nwhat happened ({more} more lines with `{PRINTS}=1`):")?,
        }
        if let Some(hidden) = breaks.checked_sub(LAST_BREAKS).filter(|hidden| *hidden > 0) {
            write!(f, "\n              … {hidden} earlier broken connections and faults …")?;
        }
        shown.iter().try_for_each(|line| write!(f, "\n{line}"))?;
        if before.len() > shown.len() {
            write!(f, "\n              …")?;
        }
        last.iter().try_for_each(|line| write!(f, "\n{line}"))
    }

    pub(crate) fn replayed_by(mut self, replay: String) -> Self {
        self.replay = Some(replay);
        self
    }
}

/// Counts one more. Returns true if the new count is at most `most`.
fn counts_to(count: &mut usize, most: usize) -> bool {
    *count += 1;
    *count <= most
}

impl fmt::Display for SimFailure {
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

/// Prints like `Display`, so that an `unwrap` shows the whole message.
impl fmt::Debug for SimFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for SimFailure {}
