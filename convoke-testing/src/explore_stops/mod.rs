//! Exploration of stops: a program runs many times, and is requested to stop at another of its suspension
//! points each time. This finds clean-up that works only when it is not interrupted.
//!
//! The program runs on a stage of `play/`.
//!
//! | file | contents |
//! | --- | --- |
//! | `run.rs` | one run |
//! | `inner.rs`, `parts.rs` | stops of a single part, and the parts of a program |
//! | `probe.rs` | the promises of a program |
//! | `exploration.rs` | the result |

mod exploration;
mod inner;
mod parts;
mod probe;
mod run;

pub use exploration::{Asked, Ended, Exploration, StopRun};
pub use inner::{MOST_INNER_STOPS, explore_inner_stops, explore_inner_stops_with, replay_inner_stop};
pub use parts::Part;
pub use probe::{MustDrop, Probe};

use core::future::Future;

use exploration::Stop;
use run::run;

/// Runs a program once undisturbed, and then twice for each of its steps, with a stop request at that point:
/// once from outside its loop, and once from inside.
///
/// The program runs on its own loop and clock: one task at a time, in the same order in every run. When
/// nothing is left to do, the clock jumps to the next timer. A *step* is a piece of work that is taken from
/// the queue and run (a task from one suspension to the next), or such a jump. The program must not wait for
/// other threads.
///
/// # Panics
/// If in one of the runs the program panics, hangs, or leaves a task or memory of its frame allocator behind.
/// The message says how to repeat that run alone: see [`replay_stop`].
///
/// ```
/// use std::time::Duration;
/// use convoke::prelude::*;
/// use convoke::testing::explore_stops;
///
/// let exploration = explore_stops(|| async {
///     scope(async |s| {
///         let pages = s.spawn_future(async {
///             sleep(Duration::from_secs(60)).await;
///             12
///         });
///         s.spawn(async { checkpoint().await });
///         pages.await
///     })
///     .await
/// });
/// println!("{exploration}");
/// assert_eq!(exploration.runs().len(), 2 * exploration.points());
/// ```
#[track_caller]
pub fn explore_stops<F, P>(program: F) -> Exploration
where
    F: Fn() -> P,
    P: Future<Output: Send + 'static> + Send + 'static,
{
    explore_stops_with(|_| program())
}

/// Explores a program that makes promises: that a value is dropped, or that an acquired resource is cleaned
/// up, exactly once, wherever the program is stopped. Apart from that it works as [`explore_stops`].
///
/// # Panics
/// As [`explore_stops`]; and if the program breaks a promise in one of the runs.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::testing::explore_stops_with;
///
/// explore_stops_with(|probe| {
///     let probe = probe.clone();
///     async move {
///         let _connection = probe.must_drop("connection");
///         checkpoint().await;
///     }
/// });
/// ```
///
/// A program that breaks a promise when it is stopped fails:
///
/// ```should_panic
/// use convoke::prelude::*;
/// use convoke::testing::explore_stops_with;
///
/// explore_stops_with(|probe| {
///     let probe = probe.clone();
///     async move {
///         probe.acquired("lock file");
///         checkpoint().await;
///         probe.cleaned_up("lock file");
///     }
/// });
/// // `lock file` was acquired 1 time and cleaned up 0 times
/// ```
#[track_caller]
pub fn explore_stops_with<F, P>(program: F) -> Exploration
where
    F: Fn(&Probe) -> P,
    P: Future<Output: Send + 'static> + Send + 'static,
{
    let undisturbed = run(&program, None).unwrap_or_else(|failure| fail(None, &failure));
    let runs = disturbed_points(undisturbed.steps()).flat_map(|point| replay_stop(point, &program)).collect();
    Exploration::new(undisturbed, runs)
}

/// Returns the points at which a run of `steps` steps is disturbed: every step; under Miri, where a run takes seconds, a few.
fn disturbed_points(steps: usize) -> impl Iterator<Item = usize> {
    const FEW: usize = 3;
    let every = if cfg!(miri) { steps.div_ceil(FEW).max(1) } else { 1 };
    (0..steps).step_by(every)
}

/// Repeats two runs of [`explore_stops_with`], with a stop request after `point` steps: from outside and from
/// inside.
///
/// # Panics
/// As [`explore_stops_with`].
#[track_caller]
pub fn replay_stop<F, P>(point: usize, program: F) -> [StopRun; 2]
where
    F: Fn(&Probe) -> P,
    P: Future<Output: Send + 'static> + Send + 'static,
{
    disturb(point, None, &program)
}

/// Runs the program twice with a stop request for it, or for a part of it, after `point` steps: from outside
/// and from inside.
#[track_caller]
fn disturb<F, P>(point: usize, part: Option<Part>, program: &F) -> [StopRun; 2]
where
    F: Fn(&Probe) -> P,
    P: Future<Output: Send + 'static> + Send + 'static,
{
    [Asked::Outside, Asked::Inside].map(|from| {
        let stop = Some(Stop { point, from, part });
        run(program, stop).unwrap_or_else(|failure| fail(stop, &failure))
    })
}

#[track_caller]
fn fail(stop: Option<Stop>, failure: &str) -> ! {
    match stop {
        None => panic!("without a stop: {failure}"),
        Some(Stop { point, from, part: None }) => panic!(
            "with a stop from {from} after step {point} (`replay_stop({point}, …)` runs that alone): {failure}"
        ),
        Some(Stop { point, from, part: Some(part) }) => panic!(
            "with a stop of {part} from {from} after step {point} (`replay_inner_stop({point}, Part::{part:?}, …)` runs that \
             alone): {failure}"
        ),
    }
}
