//! Children that are restarted when they fail.

use core::fmt;
use core::future::Future;
use core::panic::Location;

use super::failures::ChildFailure;
use super::handle::PolicyScope;
use super::rules::Policy;
use super::tally::Ledger;
use crate::schedule::{Backoff, pause};

/// Entrance for one child that is restarted when it fails. Returned by [`PolicyScope::restarting`].
#[must_use = "nothing is started yet"]
pub struct Restarting<P, V, E> {
    scope: PolicyScope<P, V, E>,
    schedule: Backoff,
    report: Option<ReportFailure<E>>,
}

/// Function that hears of failures.
type ReportFailure<E> = Box<dyn FnMut(&ChildFailure<E>) + Send>;

impl<P, V, E> Restarting<P, V, E>
where
    P: Policy<V, E> + Send + Sync + 'static,
    V: Send + 'static,
    E: Send + 'static,
{
    pub(super) fn new(scope: PolicyScope<P, V, E>, schedule: Backoff) -> Self {
        Self { scope, schedule, report: None }
    }

    /// Sets a function that hears of each failure after which the child is restarted. The last failure goes
    /// to the policy.
    pub fn report(mut self, report: impl FnMut(&ChildFailure<E>) + Send + 'static) -> Self {
        self.report = Some(Box::new(report));
        self
    }

    /// Starts a child on the scope's executor. When it fails, with an error or a panic, `make` is called
    /// again after the next pause of the schedule. When the schedule has ended, the failure goes to the
    /// policy.
    ///
    /// # Panics
    /// If the scope has ended, or there is no memory.
    ///
    /// ```
    /// use std::time::Duration;
    /// use convoke::scope::policy::Supervise;
    /// use convoke::prelude::*;
    /// use convoke::scope::scope_with;
    /// use convoke::retry::Backoff;
    ///
    /// let report = block_on(async {
    ///     scope_with(Supervise, async |s| {
    ///         let schedule = Backoff::exponential(Duration::from_millis(1)).jitter(0.5).up_to(3);
    ///         let mut runs = 0;
    ///         s.named("worker")
    ///             .restarting(schedule)
    ///             .report(|failure| println!("{failure}"))
    ///             .spawn(move || {
    ///                 runs += 1;
    ///                 async move { if runs < 3 { Err("fell over") } else { Ok(runs) } }
    ///             });
    ///     })
    ///     .await
    /// })
    /// .unwrap();
    /// assert_eq!(report.values, [3]);
    /// assert!(report.failures.is_empty());
    /// ```
    #[track_caller]
    pub fn spawn<M, F>(self, mut make: M)
    where
        M: FnMut() -> F + Send + 'static,
        F: Future<Output = Result<V, E>> + Send + 'static,
    {
        let Self { scope, schedule, mut report } = self;
        let whose = scope.entrance.whose(Location::caller());
        let (working, ledger) = (Ledger::works(&scope.ledger), scope.ledger.clone());
        scope.entrance.spawn(async move {
            let mut waits = schedule.waits();
            let mut attempt = 1_u32;
            let enough = loop {
                // `make` may panic as well.
                let running = async { make().await };
                let failure = match whose.awaited(attempt, running).await {
                    Ok(value) => break ledger.judge(Ok(value)),
                    Err(failure) => failure,
                };
                let Some(wait) = waits.next() else { break ledger.judge(Err(failure)) };
                if let Some(report) = &mut report {
                    report(&failure);
                }
                drop(failure);
                pause(wait).await;
                // Saturating: a child that fails at once can reach the limit within a day.
                attempt = attempt.saturating_add(1);
            };
            drop(working);
            enough
        });
    }
}

impl<P, V, E> fmt::Debug for Restarting<P, V, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Restarting")
            .field("scope", &self.scope)
            .field("schedule", &self.schedule)
            .finish_non_exhaustive()
    }
}
