//! A contract suite for [`Executor`] that any executor can be checked with.
//!
//! ```
//! use convoke::prelude::*;
//! use convoke::testing::executor_contract::{ExecutorHarness, check};
//!
//! check(|| {
//!     let pool = ThreadPool::new(2).unwrap();
//!     ExecutorHarness::new(pool.executor(), move || drop(pool))
//! });
//! ```

mod ending;
mod random;
mod running;
mod work;
mod wrapping;

pub use wrapping::WrappedExecutor;

use core::fmt;

use convoke_core::Executor;

/// An executor under test, its promises beyond the contract, and a function that ends its context.
///
/// The suite creates many harnesses, each with its own context.
pub struct ExecutorHarness<X> {
    executor: X,
    shut_down: Box<dyn FnOnce() + Send>,
    traits: Traits,
}

#[derive(Clone, Copy, Debug, Default)]
struct Traits {
    serial: bool,
    inline: bool,
    finishes_queue: bool,
}

impl<X: Executor> ExecutorHarness<X> {
    /// Creates a harness. `shut_down` ends the context; when it returns, all posted work has been run or
    /// stopped.
    pub fn new(executor: X, shut_down: impl FnOnce() + Send + 'static) -> Self {
        Self { executor, shut_down: Box::new(shut_down), traits: Traits::default() }
    }

    /// Promises that it runs one piece of work at a time, in the order of posting.
    pub fn serial(mut self) -> Self {
        self.traits.serial = true;
        self
    }

    /// Declares that it runs work inside `post`, as [`InlineExecutor`](convoke_core::InlineExecutor) does.
    /// Then panics reach the poster, it cannot be shut down, and all executors are equal.
    pub fn inline(mut self) -> Self {
        self.traits.inline = true;
        self
    }

    /// Declares that queued work may still run after the end has begun. Without this it must complete as
    /// stopped.
    pub fn finishes_queue(mut self) -> Self {
        self.traits.finishes_queue = true;
        self
    }

    fn end(self) {
        (self.shut_down)();
    }
}

impl<X> fmt::Debug for ExecutorHarness<X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecutorHarness").field("traits", &self.traits).finish_non_exhaustive()
    }
}

/// Checks the executor against the whole contract.
///
/// # Panics
/// If it breaks the contract.
pub fn check<X: Executor>(make: impl Fn() -> ExecutorHarness<X>) {
    running::each_post_runs_once(make());
    running::post_never_runs_inline(make());
    running::a_serial_executor_keeps_the_order(make());
    running::dispatch_hands_back_or_queues(make());
    running::posts_come_from_many_threads(make());
    running::posts_come_from_inside(make());
    running::a_burst_is_run(make());
    running::a_panic_is_survived(make());
    running::schedule_completes_on_it(make());
    ending::clones_are_equal_and_others_are_not(make(), make());
    ending::an_erased_handle_is_the_same_executor(make());
    ending::the_end_stops_what_is_queued(make());
    ending::after_the_end_posts_are_stopped(make());
    for seed in 1..=4 {
        check_random(&make, seed);
    }
}

/// Runs the random part of [`check`] with one seed, to repeat a failure.
///
/// # Panics
/// If the executor breaks the contract.
pub fn check_random<X: Executor>(make: impl Fn() -> ExecutorHarness<X>, seed: u64) {
    let _named = random::PrintSeedOnPanic(seed);
    random::posts_and_dispatches_in_random_order(make(), seed);
}

/// Checks that an executor which wraps another one passes on what belongs to that one: its timers, its context, its
/// frame allocator, and the announcements of work. `wrap` wraps the executor that it is given.
///
/// ```
/// use convoke::executor::Strand;
/// use convoke::testing::executor_contract::check_wrapper;
///
/// check_wrapper(Strand::new);
/// ```
///
/// # Panics
/// If the wrapper forgets one of them.
pub fn check_wrapper<W: Executor>(wrap: impl FnOnce(WrappedExecutor) -> W) {
    let probe = WrappedExecutor::new();
    let wrapper = wrap(probe.clone());
    probe.check(&wrapper);
    probe.check(&convoke_core::ExecutorRef::new(wrapper));
}
