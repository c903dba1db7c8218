//! Explorations that request each part of a program to stop alone: its tasks, its scopes, the branches of its
//! races.

use core::future::Future;

use super::exploration::{Exploration, StopRun};
use super::parts::Part;
use super::probe::Probe;
use super::run::run_and_list_parts;
use super::{disturb, disturbed_points, fail, replay_stop};

/// The maximum number of parts, each at one point, that are requested to stop. If a program has more, they
/// are chosen evenly over its run.
pub const MOST_INNER_STOPS: usize = 2_000;

/// Explores a program as [`explore_stops`](super::explore_stops) does, and then, for each step, requests each
/// part that exists there to stop alone: every task other than the program's own, every scope, every branch
/// or group of branches, every block with a time limit. Shielded parts are skipped, and clean-up that runs
/// inside the task that it cleans up for. In every run the program as a whole must end and keep its promises.
///
/// A task that is stopped alone just disappears. If others wait for what it would have done, the program
/// hangs, and the exploration fails.
///
/// # Panics
/// As [`explore_stops`](super::explore_stops). The message says which part was requested at which step, and
/// how to repeat that run alone: see [`replay_inner_stop`].
///
/// ```
/// use std::time::Duration;
/// use convoke::prelude::*;
/// use convoke::sync::mpsc;
/// use convoke::testing::explore_inner_stops;
///
/// let exploration = explore_inner_stops(|| async {
///     scope(async |s| {
///         let (sender, mut receiver) = mpsc::channel(1);
///         s.spawn(async move {
///             for page in 0..3 {
///                 sleep(Duration::from_secs(1)).await;
///                 if sender.send(page).await.is_err() {
///                     return;
///                 }
///             }
///         });
///         while let Some(_page) = receiver.recv().await {}
///     })
///     .await
/// });
/// assert!(exploration.inner_runs().len() > exploration.runs().len());
/// ```
#[track_caller]
pub fn explore_inner_stops<F, P>(program: F) -> Exploration
where
    F: Fn() -> P,
    P: Future<Output: Send + 'static> + Send + 'static,
{
    explore_inner_stops_with(|_| program())
}

/// Explores, as [`explore_inner_stops`], a program that makes promises, as in
/// [`explore_stops_with`](super::explore_stops_with).
///
/// # Panics
/// As [`explore_inner_stops`]; and if the program breaks a promise in one of the runs.
///
/// ```should_panic
/// use convoke::prelude::*;
/// use convoke::testing::explore_inner_stops_with;
///
/// explore_inner_stops_with(|probe| {
///     let probe = probe.clone();
///     async move {
///         scope(async |s| {
///             let worker = probe.clone();
///             probe.acquired("job");
///             s.named("worker").spawn(async move {
///                 checkpoint().await;
///                 worker.cleaned_up("job");
///             });
///         })
///         .await
///     }
/// });
/// // with a stop of task 0 from outside after step 1 […]:
/// // `job` was acquired 1 time and cleaned up 0 times
/// // requested to stop: `worker` (src/lib.rs:10:32) is queued
/// ```
#[track_caller]
pub fn explore_inner_stops_with<F, P>(program: F) -> Exploration
where
    F: Fn(&Probe) -> P,
    P: Future<Output: Send + 'static> + Send + 'static,
{
    let (undisturbed, points) = run_and_list_parts(&program).unwrap_or_else(|failure| fail(None, &failure));
    let runs = disturbed_points(undisturbed.steps()).flat_map(|point| replay_stop(point, &program)).collect();
    let all = points.into_iter().enumerate();
    let all: Vec<_> =
        all.flat_map(|(point, parts)| parts.into_iter().map(move |part| (point, part))).collect();
    let chosen = all.len().min(if cfg!(miri) { 3 } else { MOST_INNER_STOPS });
    let inner_runs = (0..chosen).flat_map(|index| {
        let (point, part) = all[index * all.len() / chosen];
        disturb(point, Some(part), &program)
    });
    let inner_runs = inner_runs.collect();
    Exploration::new(undisturbed, runs).with_inner_runs(inner_runs, all.len() - chosen)
}

/// Repeats two runs of [`explore_inner_stops_with`], in which `part` is requested to stop after `point`
/// steps: from outside and from inside.
///
/// # Panics
/// As [`explore_inner_stops_with`]; and if there is no such part.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::testing::{Ended, Part, Probe, replay_inner_stop};
///
/// let program = |_: &Probe| async {
///     scope(async |s| {
///         let answer = s.spawn_future(async {
///             checkpoint().await;
///             42
///         });
///         catch_stopped(answer).await.ok()
///     })
///     .await
/// };
/// for run in replay_inner_stop(1, Part::Task(0), program) {
///     assert_eq!(run.ended(), Ended::Value, "the waiter continued without an answer");
/// }
/// ```
#[track_caller]
pub fn replay_inner_stop<F, P>(point: usize, part: Part, program: F) -> [StopRun; 2]
where
    F: Fn(&Probe) -> P,
    P: Future<Output: Send + 'static> + Send + 'static,
{
    disturb(point, Some(part), &program)
}
