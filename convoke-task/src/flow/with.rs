//! `env::with()`: runs a future in a changed environment.

use core::fmt;
use core::future::{Future, IntoFuture};
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::sync::Arc;

use convoke_core::env::{Changes, Local};
use convoke_core::raw::{AdoptedFuture, Frame, Overlay, outside_a_task};
use convoke_core::{Executor, FrameAllocator, StopToken};
use pin_project_lite::pin_project;

use super::until_token::{Ended, UntilToken};
use crate::child_env::ChildInEnv;
use crate::child_task::task;
use crate::region::pass_on_stop;

/// Returns a builder for running a future in a changed environment; [`run`](With::run) returns the future. What
/// is not set stays as it is, and all that the future starts inherits the changes.
///
/// Use this if a part of a task gets another allocator, deadline or local value. Use the options of a
/// [child](crate::scope::Child) for a whole task.
///
/// Without an executor and without a name the future is a part of the task that awaits it: it may borrow, and
/// need not be `Send`.
///
/// ```
/// use convoke::env::{self, Local, current};
/// use convoke::prelude::*;
///
/// static REQUEST: Local<u32> = Local::inherited("request");
///
/// async fn handle(log: &mut Vec<Option<u32>>) {
///     log.push(current::local(&REQUEST));
/// }
///
/// let disconnected = StopSource::new();
/// let outcome = block_on(async move {
///     let mut log = Vec::new();
///     env::with()
///         .local(&REQUEST, 7)
///         .stop_token(disconnected.token())
///         .run(handle(&mut log))
///         .await;
///     handle(&mut log).await;
///     log
/// });
/// assert_eq!(outcome, Outcome::Value(vec![Some(7), None]));
/// ```
///
/// With [`executor`](With::executor) or [`name`](With::name) the future becomes a task of its own, which must be
/// `Send` and `'static`:
///
/// ```
/// use convoke::env;
/// use convoke::prelude::*;
///
/// let pool = ThreadPool::new(1).unwrap();
/// let executor = pool.executor();
/// let outcome = block_on(async move {
///     env::with().executor(&executor).name("sum").run(async { (1..=4).sum::<u32>() }).await
/// });
/// assert_eq!(outcome, Outcome::Value(10));
/// ```
pub fn with() -> With {
    With { changes: Changes::new(), token: None, place: InThisTask(()) }
}

/// The builder of [`with()`]. `P` says where the future runs: [`InThisTask`] or [`InOwnTask`].
#[must_use = "nothing runs before the future of `run` is awaited"]
pub struct With<P = InThisTask> {
    changes: Changes,
    token: Option<StopToken>,
    place: P,
}

/// The place of a future that is a part of the task that awaits it.
#[derive(Debug)]
pub struct InThisTask(());

/// The place of a future that becomes a task of its own.
#[derive(Debug)]
pub struct InOwnTask {
    name: Option<Arc<str>>,
}

impl<P> With<P> {
    /// Sets a stop token: the future is asked to stop when its source is. It is still asked to stop when the task
    /// is, too; put the whole into a [`shield`](crate::shield()) if it must not. The token's deadline is announced
    /// inside.
    pub fn stop_token(mut self, token: StopToken) -> Self {
        self.token = Some(token);
        self
    }

    /// Sets the allocator of all frames that the future starts. What it awaits in this task, a sender or a
    /// transfer, lies in memory of the task.
    pub fn allocator(mut self, frames: FrameAllocator) -> Self {
        self.changes = self.changes.allocator(frames);
        self
    }

    /// Sets a value in the environment of the future.
    pub fn local<T: Send + Sync + 'static>(mut self, key: &'static Local<T>, value: T) -> Self {
        self.changes = self.changes.local(key, value);
        self
    }
}

impl With<InThisTask> {
    /// Sets the executor that the future runs on. It becomes a task of its own.
    pub fn executor<X: Executor>(self, executor: &X) -> With<InOwnTask> {
        self.in_own_task(None).executor(executor)
    }

    /// Sets the name, for inspection. The future becomes a task of its own. To name one that borrows, start it as a
    /// child of a [`local_scope`](crate::local_scope()).
    pub fn name(self, name: impl Into<Arc<str>>) -> With<InOwnTask> {
        self.in_own_task(Some(name.into()))
    }

    fn in_own_task(self, name: Option<Arc<str>>) -> With<InOwnTask> {
        With { changes: self.changes, token: self.token, place: InOwnTask { name } }
    }

    /// Returns the future, to be awaited.
    ///
    /// - *Completes with* what `future` returns. Stopped, if it was stopped: also for the stop token's request.
    /// - *If dropped*, `future` is dropped.
    /// - *Runs on* the task that awaits it.
    /// - *Panics* with the panic of `future`; and outside a task.
    pub fn run<F: IntoFuture>(self, future: F) -> InEnv<F::IntoFuture> {
        InEnv { body: UntilToken::new(future.into_future(), self.token), changes: Some(self.changes) }
    }
}

impl With<InOwnTask> {
    /// Sets the executor that the future runs on.
    pub fn executor<X: Executor>(mut self, executor: &X) -> Self {
        self.changes = self.changes.executor(executor.clone());
        self
    }

    /// Sets the name, for inspection.
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.place.name = Some(name.into());
        self
    }

    /// Returns the future, to be awaited.
    ///
    /// - *Completes with* what `future` returns, on the executor of the task that awaits it. Stopped, if it was
    ///   stopped: also for the stop token's request.
    /// - *If dropped*, `future` is asked to stop, and the task waits for it before it ends.
    /// - *Runs on* the executor that was set, or that of the task that awaits it.
    /// - *Panics* with the panic of `future`; and outside a task.
    #[track_caller]
    pub fn run<F>(self, future: F) -> RunInEnv<F>
    where
        F: Future<Output: Send> + Send + 'static, // To borrow, leave out `name` and `executor`.
    {
        let body = InEnv { body: UntilToken::new(future, self.token), changes: None };
        let mut task = task(body);
        if let Some(name) = self.place.name {
            task = task.named(name);
        }
        AdoptedFuture::new(ChildInEnv::new(task, self.changes))
    }
}

/// The future of [`with()`] for a task of its own.
pub type RunInEnv<F> = AdoptedFuture<ChildInEnv<InEnv<F>>>;

pin_project! {
    /// The future of [`with()`] in the task that awaits it.
    #[must_use = "futures do nothing until they are awaited"]
    pub struct InEnv<F> {
        #[pin]
        body: UntilToken<F>,
        // Set until the first poll, for a part of a task.
        changes: Option<Changes>,
    }
}

impl<F: Future> Future for InEnv<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        match ready!(this.body.poll(cx, || this.changes.take().map(overlay))) {
            Ended::Value(value) => Poll::Ready(value),
            Ended::ByToken(reason) => {
                Frame::current(|frame| frame.map(|frame| frame.stop_with(reason)));
                Poll::Pending
            }
            Ended::Stopped => pass_on_stop(),
        }
    }
}

/// Returns the current frame's environment with these changes.
fn overlay(changes: Changes) -> Overlay {
    Frame::current(|frame| {
        let Some(frame) = frame else { outside_a_task("a future in a changed environment") };
        Overlay::new(frame.operation_owner().env(), frame.overlay(), changes)
    })
}

impl<P: fmt::Debug> fmt::Debug for With<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("With")
            .field("changes", &self.changes)
            .field("stop", &self.token)
            .field("place", &self.place)
            .finish()
    }
}

impl<F> fmt::Debug for InEnv<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InEnv").field("changes", &self.changes).finish_non_exhaustive()
    }
}
