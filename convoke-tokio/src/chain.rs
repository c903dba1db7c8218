//! A chain inside one tokio task: the loop that runs it, its root task, and its place among the chains of the
//! runtime.
//!
//! 1. `poll_ended` runs the chain. It completes when the root task has ended, and with it all that it started.
//! 2. A chain whose future is dropped before is asked to stop, and polled by another tokio task, the *reaper*.
//! 3. If nothing polls it any more, because the runtime has ended, its loop is closed: work that is queued is
//!    stopped, work that waits is stopped when it is woken, and clean-up that is cut short is reported.

use core::panic::Location;
use core::task::{Context, Poll};
use std::sync::Arc;

use convoke_core::raw::{contain, report_panic};
use convoke_core::{StopReason, StopToken};
use convoke_task::cleanup::ProblemKind;
use convoke_task::launch::{Launch, Launched};
use convoke_task::raw::report_problem;
use convoke_task::{Stopped, launch};
use tokio::runtime::Id;

use crate::chains::Registered;
use crate::pump::{Pump, StepLoop};

/// The options of a chain.
#[derive(Clone)]
pub(crate) struct Options {
    pub(crate) name: Option<Arc<str>>,
    pub(crate) token: StopToken,
    pub(crate) location: &'static Location<'static>,
}

impl Options {
    #[track_caller]
    pub(crate) fn here() -> Self {
        Self { name: None, token: StopToken::default(), location: Location::caller() }
    }

    /// Returns the builder of the root task.
    fn launch<L: StepLoop>(&self, run_loop: &L) -> Launch {
        let launch = launch(&run_loop.executor()).stop_token(self.token.clone()).location(self.location);
        match &self.name {
            Some(name) => launch.name(name.clone()),
            None => launch,
        }
    }
}

/// A chain, and the loop that runs it. Dropped before the root task has ended, it closes the loop: rule 3.
pub(crate) struct Chain<L: StepLoop, T> {
    /// `None` when the chain has ended, or is dropped.
    pump: Option<Pump<L>>,
    launched: Option<Launched<T>>,
    location: &'static Location<'static>,
    /// Last: the runtime counts the chain until its memory is released.
    _registered: Registered,
}

impl<L: StepLoop, T> Chain<L, T> {
    /// Starts a chain: `start` launches its root task on the loop.
    pub(crate) fn start(
        pump: Pump<L>,
        runtime: Id,
        options: &Options,
        start: impl FnOnce(&L, Launch) -> Launched<T>,
    ) -> Self {
        let launched = start(&pump.run_loop, options.launch(&pump.run_loop));
        let registered =
            Registered::new(runtime, launched.stop_handle(), options.name.clone(), options.location);
        Self {
            pump: Some(pump),
            launched: Some(launched),
            location: options.location,
            _registered: registered,
        }
    }

    /// Returns true if the root task has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.launched.as_ref().is_none_or(Launched::is_finished)
    }

    /// Asks the chain to stop.
    pub(crate) fn request_stop(&self, reason: StopReason) {
        if let Some(launched) = &self.launched {
            // A stop callback of the program may panic; the chain must be awaited all the same.
            contain(report_panic, || launched.request_stop(reason));
        }
    }

    /// Runs the chain. Completes when it has ended. Dropping the chain then reports a panic.
    pub(crate) fn poll_ended(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let (Some(pump), Some(launched)) = (&mut self.pump, &self.launched) else { return Poll::Ready(()) };
        pump.poll(cx, || launched.is_finished())
    }

    /// Runs the chain. Completes with what it returns, and then its loop can be taken.
    ///
    /// # Panics
    /// If the chain did.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, Stopped>> {
        core::task::ready!(self.poll_ended(cx));
        let Some(launched) = &mut self.launched else { panic!("polled after it has ended") };
        let ended = launched.poll_join(cx);
        if ended.is_ready() {
            self.launched = None;
        }
        ended
    }

    /// Takes the loop of a chain that has ended.
    pub(crate) fn take_pump(&mut self) -> Option<Pump<L>> {
        if self.launched.is_none() { self.pump.take() } else { None }
    }
}

impl<L: StepLoop, T> Drop for Chain<L, T> {
    fn drop(&mut self) {
        let Some(launched) = self.launched.take() else { return };
        if launched.is_finished() {
            return;
        }
        // Rule 3. A task that is asked is queued, and so is stopped with the loop.
        contain(report_panic, || launched.request_stop(StopReason::Shutdown));
        contain(report_panic, || drop(self.pump.take()));
        if !launched.is_finished() {
            // It waits for something that has not woken it: a future of another crate, or a thread. Whatever wakes
            // it stops it. Dropping the `Launched` would block this thread, which tokio is shutting down.
            report_problem("a chain inside tokio", self.location, ProblemKind::CutShort);
            core::mem::forget(launched);
        }
    }
}
