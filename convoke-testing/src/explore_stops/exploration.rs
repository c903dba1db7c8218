//! What came of an exploration.

use std::fmt;

use super::parts::Part;

/// The runs of a program, each asked to stop at another point. It prints as a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exploration {
    undisturbed: StopRun,
    runs: Vec<StopRun>,
    inner_runs: Vec<StopRun>,
    skipped: usize,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopRun {
    stop: Option<Stop>,
    ended: Ended,
    steps: usize,
}

/// A request to stop that one run is disturbed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stop {
    /// After how many steps.
    pub(super) point: usize,
    pub(super) from: Asked,
    /// Who is asked; `None` is the whole program.
    pub(super) part: Option<Part>,
}

/// From where a program was asked to stop. Tasks hear of it by different ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// From outside the loop that the program runs on, as another thread would.
    Outside,
    /// From the loop, as other work there would.
    Inside,
}

/// By which door a program ended.
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

    /// How many points there are at which the program was asked to stop.
    pub fn points(&self) -> usize {
        self.undisturbed.steps
    }

    /// The run without a stop.
    pub fn undisturbed(&self) -> &StopRun {
        &self.undisturbed
    }

    /// The runs in which the whole program was asked to stop, two for each point, the earliest stop first.
    pub fn runs(&self) -> &[StopRun] {
        &self.runs
    }

    /// The runs in which a part of the program was asked to stop by itself, two for each part at each point, the earliest stop
    /// first.
    pub fn inner_runs(&self) -> &[StopRun] {
        &self.inner_runs
    }

    /// How many parts, each at one point, were not asked to stop because there are too many: see
    /// [`MOST_INNER_STOPS`](super::MOST_INNER_STOPS).
    pub fn skipped(&self) -> usize {
        self.skipped
    }

    /// How many of the runs in which the whole program was asked to stop ended by this door.
    pub fn ended(&self, ended: Ended) -> usize {
        self.runs.iter().filter(|run| run.ended == ended).count()
    }
}

impl StopRun {
    pub(super) fn new(stop: Option<Stop>, ended: Ended, steps: usize) -> Self {
        Self { stop, ended, steps }
    }

    /// After how many steps it, or a part of it, was asked to stop.
    pub fn stop_after(&self) -> Option<usize> {
        self.stop.map(|stop| stop.point)
    }

    /// From where it was asked to stop.
    pub fn asked(&self) -> Option<Asked> {
        self.stop.map(|stop| stop.from)
    }

    /// The part of it that was asked to stop, if it was not the whole program.
    pub fn part(&self) -> Option<Part> {
        self.stop.and_then(|stop| stop.part)
    }

    /// By which door it ended.
    pub fn ended(&self) -> Ended {
        self.ended
    }

    /// How many steps it took in all.
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
                (None, _) => "nobody".to_owned(),
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
