//! Bounded runs of a context: until a time, without waiting, or for a turn inside another event loop.

use std::time::{Duration, Instant};

use convoke_exec::LoopTurn;
use convoke_exec::raw::Sleeper;

use super::{ForgetStops, IoContext};

impl IoContext {
    /// Runs work on this thread until there is [none left](IoContext::run), until [`stop`](IoContext::stop), or until the
    /// clock of the context reaches `until`. Returns the number of work items that ran.
    ///
    /// An item that has begun is not interrupted. The clock is read before each item.
    ///
    /// # Panics
    /// As [`run`](IoContext::run).
    #[track_caller]
    pub fn run_until(&self, until: Instant) -> usize {
        self.run_bounded(usize::MAX, Some(until))
    }

    /// Runs work on this thread for `duration` at most: see [`run_until`](IoContext::run_until). Returns the number of
    /// work items that ran.
    ///
    /// ```
    /// use std::time::Duration;
    /// use convoke::prelude::*;
    ///
    /// let context = convoke::driver::io_context().unwrap();
    /// let hour = async { sleep(Duration::from_secs(3600)).await };
    /// let launched = launch(&context.executor()).start(hour);
    /// assert_eq!(context.run_for(Duration::from_millis(1)), 1, "it began to sleep");
    /// launched.request_stop(StopReason::Requested);
    /// context.run();
    /// assert_eq!(launched.wait(), Outcome::Stopped);
    /// ```
    ///
    /// # Panics
    /// As [`run`](IoContext::run).
    #[track_caller]
    pub fn run_for(&self, duration: Duration) -> usize {
        // The end of time is never reached.
        self.run_bounded(usize::MAX, self.shared.now().checked_add(duration))
    }

    /// Runs until one work item has run, until there is [no work left](IoContext::run), until
    /// [`stop`](IoContext::stop), or for `duration`. Returns true if an item has run.
    ///
    /// # Panics
    /// As [`run`](IoContext::run).
    #[track_caller]
    pub fn run_one_for(&self, duration: Duration) -> bool {
        self.run_bounded(1, self.shared.now().checked_add(duration)) == 1
    }

    /// Runs the work that is ready, and what comes of it, and polls the driver; does not wait. Returns the number of
    /// work items that ran.
    ///
    /// # Panics
    /// As [`run`](IoContext::run).
    pub fn run_ready(&self) -> usize {
        self.run_ready_at_most(usize::MAX)
    }

    /// Runs at most `most` work items that are ready, after polling the driver; does not wait. Returns the number of
    /// items that ran.
    ///
    /// # Panics
    /// As [`run`](IoContext::run).
    pub fn run_ready_at_most(&self, most: usize) -> usize {
        let _stops_end_here = ForgetStops(&self.shared);
        self.run_loop.rouse();
        self.shared.check();
        self.run_loop.run_ready_at_most(most)
    }

    /// Runs at most `most` work items that are ready, and polls the driver, without waiting: for a context inside a
    /// foreign event loop, such as that of a user interface, whose own events must not wait for long.
    ///
    /// Begin the next turn soon if the returned value has more, and else when the
    /// [descriptor](IoContext::descriptor) is readable, or at the time of the next timer.
    ///
    /// ```
    /// use convoke::prelude::*;
    ///
    /// let context = convoke::driver::io_context().unwrap();
    /// let busy = launch(&context.executor()).start(async {
    ///     for _ in 0..100 {
    ///         checkpoint().await;
    ///     }
    /// });
    /// let mut turns = 1;
    /// while context.turn(16).has_more {
    ///     turns += 1; // The events of the user interface are handled here.
    /// }
    /// assert!(turns > 5 && busy.is_finished());
    /// busy.wait().unwrap();
    /// ```
    ///
    /// # Panics
    /// As [`run`](IoContext::run).
    pub fn turn(&self, most: usize) -> LoopTurn {
        let _stops_end_here = ForgetStops(&self.shared);
        self.run_loop.turn_with(most, || self.shared.check())
    }

    /// Returns true if [`stop`](IoContext::stop) was called, and no call that runs the context has returned since. A
    /// stop ends one call, so a context need not be restarted.
    pub fn is_stopped(&self) -> bool {
        self.shared.is_stopped()
    }
}
