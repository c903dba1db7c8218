//! `Sequencer`: tasks that take turns in an order that the test decides.

use core::fmt;
use core::future::Future;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use convoke_core::raw::{Frame, StopWatch};

use convoke_core::raw::{discard, wake, wake_if_any};

/// Forces an order on what several tasks do: a task at step 3 waits until steps 0, 1 and 2 are over. A step
/// lasts until its [`Turn`] is dropped. Clones share the sequencer.
///
/// Each step is taken once. If a step is never taken, tasks at later steps wait forever, which
/// [`Play`](super::Play) reports as a hang.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::testing::{self, Sequencer, Trace};
///
/// let trace = Trace::new();
/// let written = trace.clone();
/// testing::run(async move {
///     scope(async |s| {
///         let sequencer = Sequencer::new();
///         let (steps, trace) = (sequencer.clone(), written.clone());
///         s.spawn(async move {
///             let _turn = steps.at(1).await;
///             trace.note("second");
///         });
///         sequencer.at(0).await;
///         written.note("first");
///         sequencer.at(2).await;
///         written.note("third");
///     })
///     .await
/// });
/// trace.assert_eq("
///     0s test: first
///     0s second
///     0s test: third
/// ");
/// ```
#[derive(Clone, Default)]
pub struct Sequencer(Arc<Mutex<Steps>>);

#[derive(Default)]
struct Steps {
    /// The current step, or the next if none is taken.
    next: usize,
    /// True if the current step was taken.
    taken: bool,
    /// Waiters by step. A waker is taken out before it is called, because that happens without the lock.
    waiting: BTreeMap<usize, (Option<Waker>, &'static Location<'static>)>,
    /// The first step whose waiter was dropped or stopped: it will never be taken.
    broken: Option<(usize, &'static Location<'static>)>,
}

/// A future that completes at a step: see [`Sequencer::at`].
#[must_use = "futures do nothing until they are awaited"]
pub struct At {
    sequencer: Sequencer,
    step: usize,
    location: &'static Location<'static>,
    state: WaitState,
    watch: StopWatch,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum WaitState {
    New,
    Waits,
    Over,
}

/// A step in progress. Dropping it starts the next one.
pub struct Turn(Sequencer);

impl Sequencer {
    /// Creates a sequencer whose first step is step 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// Waits until all steps before this one are over.
    ///
    /// - *Completes with* the [`Turn`], which lasts until it is dropped; or stopped.
    /// - *If dropped* or stopped before its turn, the sequencer is broken: the step can never be taken.
    /// - *Runs on* the calling task. Outside a task it waits as well, but cannot be stopped.
    /// - *Panics* if another task has taken the same step or waits for it, or if the sequencer is broken.
    #[track_caller]
    pub fn at(&self, step: usize) -> At {
        let location = Location::caller();
        At { sequencer: self.clone(), step, location, state: WaitState::New, watch: StopWatch::new() }
    }

    /// Returns the current step, or the next if none is taken.
    pub fn step(&self) -> usize {
        self.lock().next
    }

    fn lock(&self) -> MutexGuard<'_, Steps> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Steps {
    /// Returns an error message if this step cannot be taken or waited for.
    fn complaint(&self, step: usize, is_new: bool) -> Option<String> {
        if let Some((broken, location)) = self.broken.filter(|(broken, _)| *broken <= step) {
            return Some(format!(
                "step {step} cannot start: the waiter of step {broken} ({location}) was dropped or stopped"
            ));
        }
        if step < self.next || step == self.next && self.taken {
            return Some(format!("step {step} was already taken: each step is taken once"));
        }
        let other = self.waiting.get(&step).filter(|_| is_new)?;
        Some(format!("step {step} has two waiters: here, and at {}", other.1))
    }
}

impl Future for At {
    type Output = Turn;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Turn> {
        let this = &mut *self;
        assert!(this.state != WaitState::Over, "polled after completion");
        if Frame::current(|frame| frame.is_some_and(Frame::honour_stop)) {
            this.give_up();
            return Poll::Pending;
        }
        // Cloned and dropped without the lock: a waker may run any code.
        let waker = cx.waker().clone();
        let mut steps = this.sequencer.lock();
        if let Some(complaint) = steps.complaint(this.step, this.state == WaitState::New) {
            drop(steps);
            this.state = WaitState::Over;
            panic!("`Sequencer::at` at {}: {complaint}", this.location);
        }
        if steps.next == this.step {
            steps.taken = true;
            let waiting = steps.waiting.remove(&this.step);
            drop(steps);
            drop(waiting);
            this.state = WaitState::Over;
            return Poll::Ready(Turn(this.sequencer.clone()));
        }
        let before = steps.waiting.insert(this.step, (Some(waker), this.location));
        drop(steps);
        drop(before);
        this.state = WaitState::Waits;
        Frame::current(|frame| {
            if let Some(frame) = frame {
                frame.waits_at(this.location);
                this.watch.watch(frame, cx);
            }
        });
        Poll::Pending
    }
}

impl At {
    /// Marks its step as never taken, and wakes the waiters of later steps, which then panic.
    fn give_up(&mut self) {
        if core::mem::replace(&mut self.state, WaitState::Over) != WaitState::Waits {
            return;
        }
        let mut steps = self.sequencer.lock();
        let own = steps.waiting.remove(&self.step);
        if steps.broken.is_none_or(|(broken, _)| self.step < broken) {
            steps.broken = Some((self.step, self.location));
        }
        let later: Vec<_> =
            steps.waiting.range_mut(self.step..).filter_map(|(_, (waker, _))| waker.take()).collect();
        drop(steps);
        later.into_iter().for_each(wake);
        own.and_then(|(waker, _)| waker).into_iter().for_each(discard);
    }
}

impl Drop for At {
    fn drop(&mut self) {
        self.give_up();
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut steps = self.0.lock();
        steps.next += 1;
        steps.taken = false;
        let next = steps.next;
        let waker = steps.waiting.get_mut(&next).and_then(|(waker, _)| waker.take());
        drop(steps);
        wake_if_any(waker);
    }
}

impl fmt::Debug for Sequencer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sequencer").field("step", &self.step()).finish()
    }
}

impl fmt::Debug for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("At").field("step", &self.step).finish_non_exhaustive()
    }
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Turn").field(&self.0.step()).finish()
    }
}
