//! Bounded runs of a loop: until a time, for a number of pieces, or for a turn inside another event loop.

use std::time::{Duration, Instant};

use super::{Moment, RunLoop};
use convoke_core::raw::sync::atomic::Ordering;

/// End of one turn of a loop that is embedded in another event loop: see [`RunLoop::turn`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[must_use = "a loop with more to run, or with a timer, needs another turn"]
pub struct LoopTurn {
    /// Number of pieces of work that ran.
    pub ran: usize,
    /// True if work is left: the bound was reached. Begin another turn soon; no post announces it.
    pub has_more: bool,
    /// Time of the earliest timer. Begin another turn then, if none has begun before.
    pub next_timer: Option<Instant>,
}

impl RunLoop {
    /// Runs work on this thread, and sleeps when there is none, until the clock of the loop reaches `until`, or
    /// until [`finish`](RunLoop::finish) was called and the queue is empty. Returns the number of pieces that ran.
    ///
    /// A piece that has begun is not interrupted. The clock is read before each piece.
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// use convoke::executor::RunLoop;
    /// use convoke::prelude::*;
    ///
    /// let run_loop = RunLoop::new();
    /// let nap = async { sleep(Duration::from_millis(1)).await };
    /// let launched = launch(&run_loop.executor()).start(nap);
    /// let until = Instant::now() + Duration::from_millis(20);
    /// assert_eq!(run_loop.run_until(until), 2, "it began to sleep, and went on");
    /// assert!(Instant::now() >= until && launched.is_finished());
    /// launched.wait().unwrap();
    /// ```
    ///
    /// # Panics
    /// As [`run`](RunLoop::run).
    #[track_caller]
    pub fn run_until(&self, until: Instant) -> usize {
        let mut ran = 0;
        self.run_while_until(until, |moment| match moment {
            Moment::Next => {
                ran += 1;
                true
            }
            // `Next` was counted, but there was no piece to run.
            Moment::Idle => {
                ran -= 1;
                !self.is_finished()
            }
        });
        ran
    }

    /// Runs work on this thread for `duration`, or until [`finish`](RunLoop::finish) was called and the queue is
    /// empty. Returns the number of pieces that ran. See [`run_until`](RunLoop::run_until).
    ///
    /// # Panics
    /// As [`run`](RunLoop::run).
    #[track_caller]
    pub fn run_for(&self, duration: Duration) -> usize {
        match self.executor.shared.now().checked_add(duration) {
            Some(until) => self.run_until(until),
            // The end of time is never reached.
            None => self.run(),
        }
    }

    /// Runs work, and sleeps when there is none, until the clock of the loop reaches `until`, and while `goes_on`
    /// returns true: see [`run_while`](RunLoop::run_while).
    ///
    /// # Panics
    /// As [`run`](RunLoop::run).
    #[track_caller]
    pub fn run_while_until(&self, until: Instant, goes_on: impl FnMut(Moment) -> bool) {
        self.runner.run_while(&self.executor.shared, Some(until), goes_on);
    }

    /// Runs the queued work, and what that work queues, without waiting. Returns the number of pieces.
    pub fn run_ready(&self) -> usize {
        self.run_ready_at_most(usize::MAX)
    }

    /// Runs one piece of queued work, without waiting. Returns true if there was one.
    pub fn run_one(&self) -> bool {
        self.run_ready_at_most(1) == 1
    }

    /// Runs at most `most` pieces of queued work, without waiting. Returns the number of pieces. If it is less than
    /// `most`, nothing is queued any more.
    ///
    /// # Panics
    /// As [`run`](RunLoop::run).
    pub fn run_ready_at_most(&self, most: usize) -> usize {
        self.runner.run_ready(&self.executor.shared, most)
    }

    /// Runs at most `most` pieces of queued work, without waiting, and prepares the loop to be left alone: for a
    /// loop inside another event loop, whose own events must not wait for long. From then on a post wakes the
    /// [sleeper](crate::raw::Sleeper) of the loop, which makes the other event loop begin a turn.
    ///
    /// ```
    /// use convoke::executor::RunLoop;
    /// use convoke::prelude::*;
    ///
    /// let run_loop = RunLoop::new();
    /// let launched = launch(&run_loop.executor()).start(async {
    ///     for _ in 0..10 {
    ///         checkpoint().await;
    ///     }
    /// });
    /// let mut turns = 1;
    /// while run_loop.turn(4).has_more {
    ///     turns += 1; // The events of the other loop are handled here.
    /// }
    /// assert_eq!((turns, launched.is_finished()), (3, true));
    /// launched.wait().unwrap();
    /// ```
    ///
    /// # Panics
    /// As [`run`](RunLoop::run).
    pub fn turn(&self, most: usize) -> LoopTurn {
        self.turn_with(most, || ())
    }

    /// Runs a [`turn`](RunLoop::turn) that begins with `check`, which may post work.
    #[doc(hidden)]
    pub fn turn_with(&self, most: usize, check: impl Fn()) -> LoopTurn {
        let mut ran = 0;
        loop {
            self.rouse();
            check();
            ran += self.run_ready_at_most(most - ran);
            if self.doze() {
                return LoopTurn { ran, has_more: false, next_timer: self.next_timer() };
            }
            // Work that was posted since `rouse` was not announced: it runs in this turn, or there is another one.
            if ran == most {
                self.rouse();
                return LoopTurn { ran, has_more: true, next_timer: self.next_timer() };
            }
        }
    }

    /// Returns true if [`finish`](RunLoop::finish) was called. A loop that is finished can still be run, for a time
    /// or for a future; only [`run`](RunLoop::run) does not wait any more.
    pub fn is_finished(&self) -> bool {
        self.executor.shared.finished.load(Ordering::Acquire)
    }
}
