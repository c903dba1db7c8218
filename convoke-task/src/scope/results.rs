//! `s.results()`: children whose results are taken in the order in which they end.

use core::fmt;
use core::future::Future;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll, Waker, ready};
use std::sync::PoisonError;

use convoke_core::raw::sync::{Mutex, MutexGuard};
use convoke_core::raw::{Frame, FrameArc, StopWatch, budget, outside_a_task};

use super::builder::Child;
use super::options::{ChildWork, Name, Naming, Once, SendPlace};
use super::parent::{Options, ParentOnExecutors, Takes};
use super::spawn::Scope;
use crate::frame_queue::FrameQueue;
use crate::reserve::reserve_one;
use convoke_core::raw::wake_if_any;
use pin_project_lite::pin_project;

impl<O: Send + 'static> Scope<O> {
    /// Returns an entrance for children whose results are taken in the order in which they end.
    ///
    /// ```
    /// use convoke::prelude::*;
    ///
    /// let outcome = block_on(async {
    ///     scope(async |s| {
    ///         let mut results = s.results();
    ///         for n in [3, 1, 2] {
    ///             results.spawn(async move {
    ///                 for _ in 0..n {
    ///                     checkpoint().await;
    ///                 }
    ///                 n
    ///             });
    ///         }
    ///         let mut order = Vec::new();
    ///         while let Some(n) = results.next().await {
    ///             order.push(n);
    ///         }
    ///         order
    ///     })
    ///     .await
    /// });
    /// assert_eq!(outcome, Outcome::Value(vec![1, 2, 3]));
    /// ```
    pub fn results<T: Send + 'static>(&self) -> Results<O, T> {
        let queue = Queue { done: FrameQueue::in_task(), running: 0, waker: None };
        Results { scope: self.clone(), queue: FrameArc::in_task(Mutex::new(queue)) }
    }
}

/// Children of a scope whose results are taken in the order in which they end. Returned by [`Scope::results`].
///
/// Results wait in memory until they are taken. To limit them, give each child a [`permit`](Child::permit).
pub struct Results<O, T> {
    scope: Scope<O>,
    queue: FrameArc<Mutex<Queue<T>>>,
}

struct Queue<T> {
    done: FrameQueue<T>,
    running: usize,
    waker: Option<Waker>,
}

fn lock<T>(queue: &Mutex<Queue<T>>) -> MutexGuard<'_, Queue<T>> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<O: Send + 'static, T: Send + 'static> Results<O, T> {
    /// Starts a child on the scope's executor. An `Err` of the child is a result like others, and does not
    /// stop the scope. A panic does.
    ///
    /// # Panics
    /// If the scope has ended, or there is no memory.
    #[track_caller]
    pub fn spawn<F>(&self, future: F)
    where
        F: Future<Output = T> + Send + 'static,
    {
        self.child().spawn(future);
    }

    /// Returns a builder for one child with a name, for diagnosis and panic messages.
    pub fn named(&self, name: impl Into<std::sync::Arc<str>>) -> Child<&Self, Name> {
        self.child().name(name)
    }

    /// Returns a builder for one child with options. An `Err` of the child is a result like others, and does
    /// not stop the scope. A panic does.
    pub fn child(&self) -> Child<&Self> {
        Child::new(self)
    }

    /// Waits for the next result.
    ///
    /// - *Completes with* the result; or with `None`, if no child is running and all results were taken. A
    ///   child that was stopped has no result. Stopped, if the task is asked to stop.
    /// - *If dropped*, no result is lost.
    /// - *Runs on* the task that awaits it.
    /// - *Panics* outside a task.
    #[doc(alias = "join_next")]
    #[track_caller]
    #[expect(clippy::should_implement_trait, reason = "the name that streams use")]
    pub fn next(&mut self) -> NextResult<'_, T> {
        NextResult { queue: &self.queue, location: Location::caller(), watch: StopWatch::new() }
    }
}

impl<O, T> ParentOnExecutors for &Results<O, T> {}

impl<O, T, X> Takes<'static, X, T> for &Results<O, T>
where
    O: Send + 'static,
    T: Send + 'static,
    X: SendPlace,
{
    #[track_caller]
    fn start_child<N, R, W>(self, options: Options<N, X>, future: R::Future)
    where
        N: Naming,
        R: ChildWork<W, Future: Future<Output = T> + Send + 'static>,
    {
        lock(&self.queue).running += 1;
        let counted = Counted { queue: self.queue.clone(), result: None };
        (&self.scope).start_child::<N, Once, _>(options, ResultOf { future, counted });
    }
}

pin_project! {
    /// A child whose result goes to the queue, after its future was dropped.
    struct ResultOf<F, T> {
        #[pin]
        future: F,
        counted: Counted<T>,
    }
}

impl<F: Future> Future for ResultOf<F, F::Output> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        this.counted.result = Some(ready!(this.future.poll(cx)));
        Poll::Ready(())
    }
}

/// Guard of a running child. It delivers the result, if there is one, when it is dropped.
struct Counted<T> {
    queue: FrameArc<Mutex<Queue<T>>>,
    result: Option<T>,
}

impl<T> Drop for Counted<T> {
    fn drop(&mut self) {
        let lock = || lock(&self.queue);
        let mut queue = reserve_one(lock(), lock, |queue| queue.done.incoming());
        queue.running -= 1;
        if let Some(result) = self.result.take() {
            queue.done.push(result);
        }
        let waker = queue.waker.take();
        drop(queue);
        wake_if_any(waker);
    }
}

/// Future of [`Results::next`].
#[must_use = "futures do nothing until they are awaited"]
pub struct NextResult<'a, T> {
    queue: &'a Mutex<Queue<T>>,
    location: &'static Location<'static>,
    watch: StopWatch,
}

impl<T> Future for NextResult<'_, T> {
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        Frame::current(|frame| {
            let Some(frame) = frame else { outside_a_task("the next result of a scope") };
            // Before the queue is checked: a loop over many results that are there must be able to stop.
            if frame.honour_stop() || !budget::may_proceed(cx) {
                return Poll::Pending;
            }
            // Cloned without the lock: a clone may run foreign code.
            let waker = cx.waker().clone();
            let mut queue = lock(self.queue);
            if let Some(result) = queue.done.pop() {
                budget::spend();
                return Poll::Ready(Some(result));
            }
            if queue.running == 0 {
                budget::spend();
                return Poll::Ready(None);
            }
            let before = queue.waker.replace(waker);
            drop(queue);
            drop(before);
            frame.waits_at(self.location);
            self.watch.watch(frame, cx);
            Poll::Pending
        })
    }
}

impl<O, T> fmt::Debug for Results<O, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Results").field("running", &lock(&self.queue).running).finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for NextResult<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NextResult").field("at", &self.location).finish_non_exhaustive()
    }
}
