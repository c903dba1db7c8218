//! The handle of a launched task: the one way to wait for it.

use core::fmt;
use core::panic::Location;
use core::task::{Context, Poll};

use convoke_core::raw::sync::thread;
use convoke_core::raw::{Frame, FrameArc, Runnable};
use convoke_core::{Outcome, Panic, StopReason};

use super::root::{Root, Waiter, discard};
use crate::Stopped;
use crate::own_thread::runs_only_here;
use crate::stop_handle::StopHandle;
use crate::task_waits::TaskWaits;

/// A task that was [launched](crate::launch()), with all that it awaits and spawns: the one way to wait for
/// it. In a task, `launched.await` waits, and passes a stop request on. It is a sender, too. In a task of
/// another runtime, [`poll_join`](Launched::poll_join) waits.
///
/// - *Completes with* what the launched task, or its value handler, returned. Stopped, if the task was. If it
///   panicked, the panic is resumed where it is waited for, with the task's name.
/// - *If dropped*, the launched task is asked to stop ([`StopReason::Abandoned`]) and waited for: nothing is
///   detached. If it is dropped in a task, that task waits before it ends; elsewhere the thread blocks. A
///   panic that was not reported to a handler is then written to the error stream.
/// - *Panics* if it is dropped outside a task on the one thread that could run the launched task, which then
///   cannot end.
#[must_use = "dropping it asks the launched task to stop, and blocks until it has; use `wait` to wait for it"]
pub struct Launched<T> {
    /// `None` if it was waited for, was joined, or became an operation.
    root: Option<FrameArc<Root<T>>>,
    location: &'static Location<'static>,
}

impl<T> Launched<T> {
    pub(super) fn new(root: FrameArc<Root<T>>, location: &'static Location<'static>) -> Self {
        Self { root: Some(root), location }
    }

    /// Returns the root, without asking the launched task to stop.
    pub(super) fn into_root(mut self) -> FrameArc<Root<T>> {
        self.root.take().expect(ONE_ROOT)
    }

    pub(super) fn root(&self) -> &FrameArc<Root<T>> {
        self.root.as_ref().expect(ONE_ROOT)
    }

    /// Asks the launched task to stop. It still has to be waited for.
    ///
    /// # Panics
    /// If a callback that is registered with its stop token does.
    pub fn request_stop(&self, reason: StopReason) {
        if let Some(root) = &self.root {
            root.source.request_stop(reason);
        }
    }

    /// Returns a handle that only asks the launched task to stop: it can be cloned, and go to any thread.
    #[doc(alias = "abort_handle")]
    pub fn stop_handle(&self) -> StopHandle {
        StopHandle::of_launched(self.root().source.clone())
    }

    /// Returns true if the launched task has ended and its handlers have been called. Then
    /// [`wait`](Launched::wait) does not block.
    pub fn is_finished(&self) -> bool {
        self.root.as_ref().is_none_or(|root| root.has_ended())
    }

    /// Blocks this thread until the launched task has ended.
    ///
    /// # Panics
    /// If the launched task did: the panic is resumed here. And if this is the one thread that could run it.
    #[track_caller]
    pub fn wait(self) -> Outcome<T> {
        assert!(
            self.is_finished() || !self.would_wait_for_itself(),
            "the task launched at {} runs on this thread alone, which cannot wait for it; await it in a task, or run its \
             loop until it has ended",
            self.location
        );
        let outcome = wait(&self.into_root()).0;
        outcome.resume_panic()
    }

    /// Polls for the end of the launched task, from a future that need not be in a task of Convoke's: in a task
    /// of another runtime. In a task, `launched.await` does more: it passes a stop request on.
    ///
    /// - *Completes with* what the launched task, or its value handler, returned; or with [`Stopped`], and the
    ///   reason, if it was stopped.
    /// - *If dropped*: see [`Launched`]; the thread blocks. `convoke-tokio` has a future that does not.
    /// - *Panics* if the launched task did, and after completion.
    ///
    /// ```
    /// use convoke::prelude::*;
    /// use convoke::task::forever;
    ///
    /// let pool = ThreadPool::new(1).unwrap();
    /// let mut launched = launch(&pool.executor()).start(async { forever().await });
    /// launched.request_stop(StopReason::Named("enough"));
    ///
    /// # fn block_on_another_runtime<F: Future>(future: F) -> F::Output {
    /// #     let mut future = std::pin::pin!(future);
    /// #     let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    /// #     loop {
    /// #         if let std::task::Poll::Ready(output) = future.as_mut().poll(&mut cx) {
    /// #             return output;
    /// #         }
    /// #         std::thread::yield_now();
    /// #     }
    /// # }
    /// let joined = std::future::poll_fn(|cx| launched.poll_join(cx));
    /// let stopped = block_on_another_runtime(joined).unwrap_err();
    /// assert_eq!(stopped.reason(), Some(StopReason::Named("enough")));
    /// ```
    #[doc(alias = "JoinHandle")]
    pub fn poll_join(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, Stopped>> {
        let root = self.root.as_ref().expect("a `Launched` is polled after it has completed");
        let outcome = core::task::ready!(root.poll_take(cx.waker()));
        let stopped = Stopped::new(root.source.token().reason());
        root.wait_until_unique();
        self.root = None;
        Poll::Ready(match outcome.resume_panic() {
            Outcome::Value(value) => Ok(value),
            Outcome::Error(never) => never.absurd(),
            Outcome::Stopped | Outcome::Panicked(_) => Err(stopped),
        })
    }

    /// Returns true if this is the one thread that could run the launched task.
    fn would_wait_for_itself(&self) -> bool {
        runs_only_here(self.root().env().executor())
    }
}

const ONE_ROOT: &str = "a `Launched` gives its root away when it is consumed";

/// Blocks until the launched task has ended, and its memory is released. Does not panic.
fn wait<T>(root: &FrameArc<Root<T>>) -> (Outcome<T>, bool) {
    loop {
        match root.take_or_wait(Waiter::Thread(thread::current())) {
            Ok(outcome) => {
                root.wait_until_unique();
                return outcome;
            }
            // Its runnable may be waiting to be refused further up on this stack.
            Err(_) if Runnable::stop_deferred() => {}
            Err(_) => thread::park(),
        }
    }
}

impl<T> Drop for Launched<T> {
    fn drop(&mut self) {
        let Some(root) = &self.root else { return };
        if root.has_ended() {
            let (outcome, reported) = wait(root);
            return discard(outcome, reported);
        }
        // The panic hook has reported a panic of a callback.
        let _ = Panic::catch(|| root.source.request_stop(StopReason::Abandoned));
        let in_task = Frame::current(|frame| Some(root.take_or_wait(Waiter::Task(TaskWaits::new(frame?)))));
        match in_task {
            Some(Ok((outcome, reported))) => discard(outcome, reported),
            Some(Err(_)) => {}
            None if root.has_ended() || !self.would_wait_for_itself() => {
                let (outcome, reported) = wait(root);
                discard(outcome, reported);
            }
            // It was asked to stop, and so is queued: the executor runs it, or ends it when it ends itself. A
            // second panic would abort the process.
            None if std::thread::panicking() => {}
            None => panic!(
                "the task launched at {} runs on this thread alone, and was dropped here before it has ended; wait for it in \
                 a task, or run its loop until it has ended",
                self.location
            ),
        }
    }
}

impl<T> fmt::Debug for Launched<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launched")
            .field("launched at", &self.location)
            .field("has ended", &self.root.as_ref().is_none_or(|root| root.has_ended()))
            .finish_non_exhaustive()
    }
}
