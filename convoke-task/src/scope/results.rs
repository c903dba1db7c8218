//! `s.results()`: children whose results are taken as they come, whoever is first.

use core::fmt;
use core::future::Future;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::collections::VecDeque;
use std::sync::PoisonError;

use convoke_core::raw::sync::{Arc, Mutex, MutexGuard};
use convoke_core::raw::{Frame, StopWatch, outside_a_task};

use super::spawn::Scope;
use convoke_core::raw::wake_if_any;

impl<O: Send + 'static> Scope<O> {
    /// For children whose results are taken as they come.
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
        let queue = Queue { done: VecDeque::new(), running: 0, waker: None };
        Results { scope: self.clone(), queue: Arc::new(Mutex::new(queue)) }
    }
}

/// Children of a scope whose results are taken as they come: see [`Scope::results`]. There are never more of them waiting to be
/// taken than children were started: who starts many does so within a [`Bound`](super::Bound).
pub struct Results<O, T> {
    scope: Scope<O>,
    queue: Arc<Mutex<Queue<T>>>,
}

struct Queue<T> {
    done: VecDeque<T>,
    running: usize,
    waker: Option<Waker>,
}

fn lock<T>(queue: &Mutex<Queue<T>>) -> MutexGuard<'_, Queue<T>> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<O: Send + 'static, T: Send + 'static> Results<O, T> {
    /// Starts a child on the scope's executor. An `Err` that it returns is a result like others: the scope is not stopped by
    /// it. A panic is the scope's.
    ///
    /// # Panics
    /// If the scope has ended, or there is no memory.
    #[track_caller]
    pub fn spawn<F>(&self, future: F)
    where
        F: Future<Output = T> + Send + 'static,
    {
        lock(&self.queue).running += 1;
        let counted = Counted { queue: self.queue.clone(), result: None };
        let child = async move {
            let mut counted = counted;
            counted.result = Some(future.await);
        };
        self.scope.spawn_at(child, Location::caller());
    }

    /// The next result.
    ///
    /// - *Completes with* it; or `None`, if no child is left that has not told its own. One that was stopped has none. Stopped,
    ///   if a stop is asked for.
    /// - *If dropped*, nothing is lost.
    /// - *Panics* outside a task.
    #[doc(alias = "join_next")]
    #[track_caller]
    #[expect(clippy::should_implement_trait, reason = "it is that of a stream")]
    pub fn next(&mut self) -> NextResult<'_, T> {
        NextResult { queue: &self.queue, place: Location::caller(), watch: StopWatch::new() }
    }
}

/// A child that runs. It tells its result, or that there is none, when its future is gone.
struct Counted<T> {
    queue: Arc<Mutex<Queue<T>>>,
    result: Option<T>,
}

impl<T> Drop for Counted<T> {
    fn drop(&mut self) {
        let mut queue = lock(&self.queue);
        queue.running -= 1;
        queue.done.extend(self.result.take());
        let waker = queue.waker.take();
        drop(queue);
        wake_if_any(waker);
    }
}

/// See [`Results::next`].
#[must_use = "futures do nothing until they are awaited"]
pub struct NextResult<'a, T> {
    queue: &'a Mutex<Queue<T>>,
    place: &'static Location<'static>,
    watch: StopWatch,
}

impl<T> Future for NextResult<'_, T> {
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        Frame::current(|frame| {
            let Some(frame) = frame else { outside_a_task("the next result of a scope") };
            // Also if there is one: a loop over many can be stopped.
            if frame.honour_stop() {
                return Poll::Pending;
            }
            // Cloned without the lock: it may be anybody's.
            let waker = cx.waker().clone();
            let mut queue = lock(self.queue);
            if let Some(result) = queue.done.pop_front() {
                return Poll::Ready(Some(result));
            }
            if queue.running == 0 {
                return Poll::Ready(None);
            }
            let before = queue.waker.replace(waker);
            drop(queue);
            drop(before);
            frame.waits_at(self.place);
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
        f.debug_struct("NextResult").field("at", &self.place).finish_non_exhaustive()
    }
}
