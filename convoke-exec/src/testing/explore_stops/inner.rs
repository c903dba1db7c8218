//! Explorations in which not only the whole program is asked to stop, but each part of it by itself: its tasks, its scopes, the
//! branches of its races.

use core::future::Future;

use super::exploration::{Exploration, StopRun};
use super::parts::Part;
use super::probe::Probe;
use super::run::run_and_look;
use super::{disturb, disturbed_points, fail, replay_stop};

/// So many parts are asked to stop at the most, each at one point. If a program has more, they are chosen evenly from its
/// beginning to its end.
pub const MOST_INNER_STOPS: usize = 2_000;

/// What [`explore_stops`](super::explore_stops) does; and then, for each step, each part of the program that is there is asked to
/// stop by itself: every task but the program's own, every scope, every branch or group of branches, everything that has a
/// limit of time. What is shielded is not asked, nor what cleans up inside of the task that it cleans up for. However that
/// goes on, the program as a whole must come to its end, and what it has promised must be kept.
///
/// A task that stops by itself is merely gone: a program in which others wait for what it would have done hangs then, and is
/// told so.
///
/// # Panics
/// As [`explore_stops`](super::explore_stops). The message says which part was asked at which step, and how to replay that run
/// alone: see [`replay_inner_stop`].
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

/// The same with a program that makes promises, as in [`explore_stops_with`](super::explore_stops_with).
///
/// # Panics
/// As [`explore_inner_stops`]; and if in one of the runs the program does not keep a promise.
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
/// // with a stop of task 0 from outside after step 1 […]: `job` was acquired 1 time and cleaned up 0 times
/// // asked to stop was `worker` (src/lib.rs:10:32) is queued
/// ```
#[track_caller]
pub fn explore_inner_stops_with<F, P>(program: F) -> Exploration
where
    F: Fn(&Probe) -> P,
    P: Future<Output: Send + 'static> + Send + 'static,
{
    let (undisturbed, points) = run_and_look(&program).unwrap_or_else(|failure| fail(None, &failure));
    let runs = disturbed_points(undisturbed.steps()).flat_map(|point| replay_stop(point, &program)).collect();
    let all = points.into_iter().enumerate();
    let all: Vec<_> =
        all.flat_map(|(point, parts)| parts.into_iter().map(move |part| (point, part))).collect();
    let chosen = all.len().min(if cfg!(miri) { 6 } else { MOST_INNER_STOPS });
    let inner_runs = (0..chosen).flat_map(|index| {
        let (point, part) = all[index * all.len() / chosen];
        disturb(point, Some(part), &program)
    });
    let inner_runs = inner_runs.collect();
    Exploration::new(undisturbed, runs).with_inner_runs(inner_runs, all.len() - chosen)
}

/// Two runs of [`explore_inner_stops_with`] alone, in which this part is asked to stop after so many steps: from outside and
/// from inside.
///
/// # Panics
/// As there; and if there is no such part.
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
///     assert_eq!(run.ended(), Ended::Value, "the one who waited went on without an answer");
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
