//! The result of an exploration.

use core::fmt;

use crate::sim::{Ending, SimReport};

/// The runs of a program, each disturbed at another point. It prints as a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimExploration {
    pub(super) host: String,
    pub(super) undisturbed: SimReport,
    pub(super) runs: Vec<ExploredRun>,
}

/// One of the disturbed runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExploredRun {
    pub(super) point: usize,
    pub(super) what: String,
    pub(super) report: SimReport,
}

impl SimExploration {
    /// Returns the report of the run without a disturbance.
    pub fn undisturbed(&self) -> &SimReport {
        &self.undisturbed
    }

    /// Returns the disturbed runs, in the order of their points.
    pub fn runs(&self) -> &[ExploredRun] {
        &self.runs
    }

    /// Returns the number of disturbed runs in which the ending of the disturbed host satisfies `is`.
    pub fn ended(&self, is: impl Fn(&Ending) -> bool) -> usize {
        let endings = self.runs.iter().filter_map(|run| run.report.host(&self.host));
        endings.filter(|host| is(host.ending())).count()
    }
}

impl ExploredRun {
    /// Returns the step or operation at which it was disturbed.
    pub fn point(&self) -> usize {
        self.point
    }

    /// Returns the name of the disturbance.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Returns the report of the run.
    pub fn report(&self) -> &SimReport {
        &self.report
    }
}

impl fmt::Display for SimExploration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "   at  what        steps  {}", self.host)?;
        let undisturbed = ("-".to_owned(), "-", &self.undisturbed);
        let runs = self.runs.iter().map(|run| (run.point.to_string(), &*run.what, &run.report));
        for (at, what, report) in core::iter::once(undisturbed).chain(runs) {
            let ending = report.host(&self.host).map_or(&Ending::Idle, |host| host.ending());
            write!(f, "\n{at:>5}  {what:<10}  {:>5}  {ending}", report.steps())?;
        }
        Ok(())
    }
}
