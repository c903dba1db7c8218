//! A program is run again and again, asked to stop at another of the points at which it lets others run each time: clean-up that
//! only works when nothing comes in between is found here.
//!
//! It runs on a stage of `play/`; `run.rs` is one run, `inner.rs` asks the parts of a program that `parts.rs` finds, `probe.rs` what the program promises, `exploration.rs` the report.

mod exploration;
mod inner;
mod parts;
mod probe;
mod regions;
mod run;

pub use exploration::{Asked, Ended, Exploration, StopRun};
pub use inner::{MOST_INNER_STOPS, explore_inner_stops, explore_inner_stops_with, replay_inner_stop};
pub use parts::Part;
pub use probe::{MustDrop, Probe};
pub(crate) use regions::Explored;

use core::future::Future;

use exploration::Stop;
use run::run;

/// Runs a program as it is, and then, for each step of it, with a request to stop at that point: once from outside the loop it
/// runs on, and once from there.
///
/// The program runs on a loop and a clock of its own: one task at a time, in the same order every time, and if nothing
/// is to be done, the clock jumps to the next timer. A *step* is a piece of work that is taken from the queue and run (a
/// task from one suspension to the next), or such a jump. The program must do all its work there: what it waits
/// for may not come from other threads.
///
/// # Panics
/// If in one of the runs the program panics, or hangs, or leaves a task or other memory of its frame allocator behind. The
/// message says how to replay that run alone: see [`replay_stop`].
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

/// The same, with a program that makes promises: that something it has made is dropped, or that what it has acquired is
/// cleaned up, once, wherever it is stopped.
///
/// # Panics
/// As [`explore_stops`]; and if in one of the runs the program does not keep a promise.
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
/// A program that does not keep its promise when it is stopped in between is told so:
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

/// Where a run of so many steps is disturbed: at each of them; under Miri, where a run takes seconds, at a few.
fn disturbed_points(steps: usize) -> impl Iterator<Item = usize> {
    const FEW: usize = 6;
    let every = if cfg!(miri) { steps.div_ceil(FEW).max(1) } else { 1 };
    (0..steps).step_by(every)
}

/// Two runs of [`explore_stops_with`] alone, asked to stop after so many steps: from outside and from inside.
///
/// # Panics
/// As there.
#[track_caller]
pub fn replay_stop<F, P>(point: usize, program: F) -> [StopRun; 2]
where
    F: Fn(&Probe) -> P,
    P: Future<Output: Send + 'static> + Send + 'static,
{
    disturb(point, None, &program)
}

/// Asks the program, or a part of it, to stop after so many steps: from outside and from inside.
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
