//! `Bound`: how much may run at a time, by count or by weight. `s.spawn_within(&bound, weight, || …)` waits for room before
//! anything is made.
//!
//! 1. Whoever waits is in the queue, and is served in that order: nobody small overtakes somebody large.
//! 2. When room is given back, or the first leaves the queue, the first that is then there is woken.

use core::fmt;
use core::future::Future;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::collections::VecDeque;
use std::sync::PoisonError;

use convoke_core::raw::sync::{Arc, Mutex, MutexGuard};
use convoke_core::raw::{Frame, StopWatch};

use super::output::ChildOutput;
use super::spawn::Scope;

/// How much may run at a time. Clones are the same bound; several scopes may share one.
#[derive(Clone)]
pub struct Bound {
    shared: Arc<Shared>,
}

struct Shared {
    size: usize,
    state: Mutex<State>,
}

struct State {
    free: usize,
    queue: VecDeque<Waiting>,
    /// Of the next who waits.
    number: u64,
}

struct Waiting {
    number: u64,
    waker: Waker,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bound {
    /// Room for this much.
    pub fn new(size: usize) -> Self {
        let state = State { free: size, queue: VecDeque::new(), number: 0 };
        Self { shared: Arc::new(Shared { size, state: Mutex::new(state) }) }
    }

    /// How much room there is now.
    pub fn free(&self) -> usize {
        self.shared.lock().free
    }

    /// Takes room for this much, when it is there and everybody before has been served.
    ///
    /// - *Completes with* a permit, which gives the room back when it is dropped. Stopped, if a stop is asked for.
    /// - *If dropped*, the place in the queue is given up.
    /// - *Panics* if the whole bound is smaller than that.
    #[track_caller]
    pub fn take(&self, weight: usize) -> Take {
        let size = self.shared.size;
        assert!(weight <= size, "{weight} do not fit into a bound of {size}, however long one waits");
        Take { bound: self.clone(), weight, number: None, place: Location::caller(), watch: StopWatch::new() }
    }
}

impl<O> Scope<O> {
    /// Starts a child when there is room for it: `make` is called, and memory taken, only then. The room is given back when the
    /// child has ended.
    ///
    /// - *Completes with* nothing in particular, when the child has been started. Stopped, if a stop is asked for before.
    /// - *If dropped*, nothing is started.
    /// - *Panics* if the weight is larger than the whole bound; if the scope has ended, or there is no memory.
    ///
    /// ```
    /// use convoke::prelude::*;
    /// use convoke::Bound;
    ///
    /// let outcome = sync_wait(task(async {
    ///     let bound = Bound::new(2);
    ///     scope(async |s| {
    ///         for n in 0..10 {
    ///             s.spawn_within(&bound, 1, || async move { println!("{n}, of two at a time") }).await;
    ///         }
    ///     })
    ///     .await;
    ///     bound.free()
    /// }));
    /// assert_eq!(outcome, Outcome::Value(2));
    /// ```
    #[track_caller]
    pub fn spawn_within<'a, M, F>(
        &'a self,
        bound: &Bound,
        weight: usize,
        make: M,
    ) -> impl Future<Output = ()> + use<'a, O, M, F>
    where
        M: FnOnce() -> F,
        F: Future<Output: ChildOutput<O> + Send> + Send + 'static,
        O: Send + 'static,
    {
        let place = Location::caller();
        let take = bound.take(weight);
        async move {
            let permit = take.await;
            let child = make();
            let child = async move {
                let _permit = permit;
                child.await
            };
            self.spawn_at(child, place);
        }
    }
}

/// Takes room: see [`Bound::take`].
#[must_use = "futures do nothing until they are awaited"]
pub struct Take {
    bound: Bound,
    weight: usize,
    /// In the queue.
    number: Option<u64>,
    place: &'static Location<'static>,
    watch: StopWatch,
}

impl Future for Take {
    type Output = Permit;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Permit> {
        let this = &mut *self;
        if Frame::current(|frame| frame.is_some_and(Frame::honour_stop)) {
            return Poll::Pending;
        }
        // Cloned without the lock: it may be anybody's.
        let waker = cx.waker().clone();
        let mut state = this.bound.shared.lock();
        let first = match this.number {
            None => state.queue.is_empty(),
            Some(number) => state.queue.front().is_some_and(|first| first.number == number),
        };
        if first && state.free >= this.weight {
            state.free -= this.weight;
            let left = if this.number.take().is_some() { state.queue.pop_front() } else { None };
            let next = if state.free > 0 { first_waker(&state) } else { None };
            drop(state);
            drop(left);
            wake(next);
            return Poll::Ready(Permit { bound: this.bound.clone(), weight: this.weight });
        }
        let before = match this.number {
            Some(number) => {
                let place = state.queue.iter_mut().find(|waiting| waiting.number == number);
                place.map(|waiting| core::mem::replace(&mut waiting.waker, waker))
            }
            None => {
                let number = state.number;
                state.number += 1;
                state.queue.push_back(Waiting { number, waker });
                this.number = Some(number);
                None
            }
        };
        drop(state);
        drop(before);
        Frame::current(|frame| {
            if let Some(frame) = frame {
                frame.waits_at(this.place);
                this.watch.watch(frame, cx);
            }
        });
        Poll::Pending
    }
}

impl Drop for Take {
    fn drop(&mut self) {
        let Some(number) = self.number else { return };
        let mut state = self.bound.shared.lock();
        let place = state.queue.iter().position(|waiting| waiting.number == number);
        let left = place.and_then(|place| state.queue.remove(place));
        let next = if place == Some(0) { first_waker(&state) } else { None };
        drop(state);
        drop(left);
        wake(next);
    }
}

/// Room that was taken: see [`Bound::take`]. It is given back when this is dropped.
#[must_use = "room is given back when the permit is dropped"]
pub struct Permit {
    bound: Bound,
    weight: usize,
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.bound.shared.lock();
        state.free += self.weight;
        let next = first_waker(&state);
        drop(state);
        wake(next);
    }
}

fn first_waker(state: &State) -> Option<Waker> {
    state.queue.front().map(|first| first.waker.clone())
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

impl fmt::Debug for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (size, free) = (self.shared.size, self.free());
        f.debug_struct("Bound").field("size", &size).field("free", &free).finish()
    }
}

impl fmt::Debug for Take {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Take").field("weight", &self.weight).field("at", &self.place).finish_non_exhaustive()
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").field("weight", &self.weight).finish_non_exhaustive()
    }
}
