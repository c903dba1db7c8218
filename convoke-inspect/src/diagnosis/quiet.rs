//! Nothing happens: no task was polled for long, none is queued, and some wait. Whether something will come from outside
//! cannot be known; so this is reported if one asks for it, and no verdict.

use std::time::{Duration, Instant};

use super::involved::is_idle;
use super::report::{Quiet, Report};
use crate::tree::tree;

#[derive(Debug)]
pub(super) struct Silence {
    limit: Option<Duration>,
    since: Option<Instant>,
    reported: bool,
}

impl Silence {
    pub(super) fn new(limit: Option<Duration>) -> Self {
        Self { limit, since: None, reported: false }
    }

    /// It is told whether a task has begun to run since the last look.
    pub(super) fn look(&mut self, ran: bool, now: Instant, reports: &mut Vec<Report>) {
        let Some(limit) = self.limit else { return };
        if ran {
            self.since = None;
            self.reported = false;
        }
        let since = *self.since.get_or_insert(now);
        let lasted = now.saturating_duration_since(since);
        if self.reported || lasted < limit {
            return;
        }
        let tree = tree();
        if !tree.is_empty() && tree.tasks().all(is_idle) {
            self.reported = true;
            reports.push(Report::Quiet(Quiet { lasted, tree }));
        }
    }
}
