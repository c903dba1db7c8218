//! Detection of idle programs: no task was polled for the limit, none is queued, and some wait. An event from
//! outside may still come, so this is reported only if it is enabled.

use std::time::{Duration, Instant};

use super::participant::is_idle;
use super::report::{Finding, Quiet};
use crate::tree::tree;

#[derive(Debug)]
pub(super) struct IdleCheck {
    limit: Option<Duration>,
    since: Option<Instant>,
    reported: bool,
}

impl IdleCheck {
    pub(super) fn new(limit: Option<Duration>) -> Self {
        Self { limit, since: None, reported: false }
    }

    /// Checks whether the program is idle. `ran` says if a task was polled since the last check.
    pub(super) fn check(&mut self, ran: bool, now: Instant, reports: &mut Vec<Finding>) {
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
            reports.push(Finding::Quiet(Quiet { lasted, tree }));
        }
    }
}
