//! The result of an exploration.

use std::fmt;

use super::parts::Part;

/// The runs of a program, each requested to stop at another point. It prints as a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exploration {
    undisturbed: StopRun,
    runs: Vec<StopRun>,
    inner_runs: Vec<StopRun>,
    skipped: usize,
}

/// One run of an exploration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopRun {
    stop: Option<Stop>,
    ended: Ended,
    steps: usize,
}

/// The stop request of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stop {
    /// The number of steps before the request.
    pub(super) point: usize,
    pub(super) from: Asked,
    /// The part that is requested; `None` is the whole program.
    pub(super) part: Option<Part>,
}

/// The origin of a stop request. It decides on which path tasks are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Outside the loop that the program runs on, as from another thread.
    Outside,
    /// Inside the loop, as from other work there.
    Inside,
}

/// The way in which a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With a value, which may be an error.
    Value,
    /// Stopped.
    Stopped,
}

impl Exploration {
    pub(super) fn new(undisturbed: StopRun, runs: Vec<StopRun>) -> Self {
        Self { undisturbed, runs, inner_runs: Vec::new(), skipped: 0 }
    }

    pub(super) fn with_inner_runs(mut self, inner_runs: Vec<StopRun>, skipped: usize) -> Self {
        self.inner_runs = inner_runs;
        self.skipped = skipped;
        self
    }

    /// Returns the number of points at which the program was requested to stop.
    pub fn points(&self) -> usize {
        self.undisturbed.steps
    }

    /// Returns the run without a stop.
    pub fn undisturbed(&self) -> &StopRun {
        &self.undisturbed
    }

    /// Returns the runs in which the whole program was requested to stop: two for each point, the earliest
    /// stop first.
    pub fn runs(&self) -> &[StopRun] {
        &self.runs
    }

    /// Returns the runs in which one part was requested to stop alone: two for each part at each point, the
    /// earliest stop first.
    pub fn inner_runs(&self) -> &[StopRun] {
        &self.inner_runs
    }

    /// Returns the number of parts, each at one point, that were skipped because there are too many: see
    /// [`MOST_INNER_STOPS`](super::MOST_INNER_STOPS).
    pub fn skipped(&self) -> usize {
        self.skipped
    }

    /// Returns the number of runs, of those in which the whole program was requested to stop, that ended in
    /// this way.
    pub fn ended(&self, ended: Ended) -> usize {
        self.runs.iter().filter(|run| run.ended == ended).count()
    }
}

impl StopRun {
    pub(super) fn new(stop: Option<Stop>, ended: Ended, steps: usize) -> Self {
        Self { stop, ended, steps }
    }

    /// Returns the number of steps before the stop request.
    pub fn stop_after(&self) -> Option<usize> {
        self.stop.map(|stop| stop.point)
    }

    /// Returns the origin of the stop request.
    pub fn asked(&self) -> Option<Asked> {
        self.stop.map(|stop| stop.from)
    }

    /// Returns the part that was requested to stop, if it was not the whole program.
    pub fn part(&self) -> Option<Part> {
        self.stop.and_then(|stop| stop.part)
    }

    /// Returns the way in which it ended.
    pub fn ended(&self) -> Ended {
        self.ended
    }

    /// Returns the total number of steps.
    pub fn steps(&self) -> usize {
        self.steps
    }
}

impl fmt::Display for Exploration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stop after  from     ended    steps  who")?;
        for run in core::iter::once(&self.undisturbed).chain(&self.runs).chain(&self.inner_runs) {
            let after = run.stop_after().map_or("-".to_owned(), |after| after.to_string());
            let from = run.asked().map_or("-".to_owned(), |from| from.to_string());
            let ended = match run.ended {
                Ended::Value => "value",
                Ended::Stopped => "stopped",
            };
            let who = match (run.stop, run.part()) {
                (None, _) => "nothing".to_owned(),
                (Some(_), None) => "the program".to_owned(),
                (Some(_), Some(part)) => part.to_string(),
            };
            write!(f, "\n{after:>10}  {from:<7}  {ended:<7}  {:>5}  {who}", run.steps)?;
        }
        Ok(())
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Outside => "outside",
            Self::Inside => "inside",
        })
    }
}
