//! What came of an exploration.

use core::fmt;

use crate::sim::{Ending, Report};

/// The runs of a program, each disturbed at another point. It prints as a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exploration {
    pub(super) host: String,
    pub(super) undisturbed: Report,
    pub(super) runs: Vec<ExploredRun>,
}

/// One of the disturbed runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExploredRun {
    pub(super) point: usize,
    pub(super) what: String,
    pub(super) report: Report,
}

impl Exploration {
    /// The run without a disturbance.
    pub fn undisturbed(&self) -> &Report {
        &self.undisturbed
    }

    /// The others, in the order of their points.
    pub fn runs(&self) -> &[ExploredRun] {
        &self.runs
    }

    /// How many of the disturbed runs ended like this for the host that was disturbed.
    pub fn ended(&self, is: impl Fn(&Ending) -> bool) -> usize {
        let endings = self.runs.iter().filter_map(|run| run.report.host(&self.host));
        endings.filter(|host| is(host.ending())).count()
    }
}

impl ExploredRun {
    /// At which step, or operation.
    pub fn point(&self) -> usize {
        self.point
    }

    /// What was done there.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// What came of it.
    pub fn report(&self) -> &Report {
        &self.report
    }
}

impl fmt::Display for Exploration {
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
