//! What came of an exploration.

use std::fmt;

/// The runs of a program, each asked to stop at another point. It prints as a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exploration {
    undisturbed: StopRun,
    runs: Vec<StopRun>,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopRun {
    stop_after: Option<usize>,
    asked: Option<Asked>,
    ended: Ended,
    steps: usize,
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
        Self { undisturbed, runs }
    }

    /// How many points there are at which the program was asked to stop.
    pub fn points(&self) -> usize {
        self.undisturbed.steps
    }

    /// The run without a stop.
    pub fn undisturbed(&self) -> &StopRun {
        &self.undisturbed
    }

    /// The runs with a stop, two for each point, the earliest stop first.
    pub fn runs(&self) -> &[StopRun] {
        &self.runs
    }

    /// How many of the runs with a stop ended by this door.
    pub fn ended(&self, ended: Ended) -> usize {
        self.runs.iter().filter(|run| run.ended == ended).count()
    }
}

impl StopRun {
    pub(super) fn new(stop: Option<(usize, Asked)>, ended: Ended, steps: usize) -> Self {
        Self { stop_after: stop.map(|(point, _)| point), asked: stop.map(|(_, asked)| asked), ended, steps }
    }

    /// After how many steps it was asked to stop.
    pub fn stop_after(&self) -> Option<usize> {
        self.stop_after
    }

    /// From where it was asked to stop.
    pub fn asked(&self) -> Option<Asked> {
        self.asked
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
        write!(f, "stop after  from     ended    steps")?;
        for run in core::iter::once(&self.undisturbed).chain(&self.runs) {
            let after = run.stop_after.map_or("-".to_owned(), |after| after.to_string());
            let from = match run.asked {
                None => "-",
                Some(Asked::Outside) => "outside",
                Some(Asked::Inside) => "inside",
            };
            let ended = match run.ended {
                Ended::Value => "value",
                Ended::Stopped => "stopped",
            };
            write!(f, "\n{after:>10}  {from:<7}  {ended:<7}  {:>5}", run.steps)?;
        }
        Ok(())
    }
}
