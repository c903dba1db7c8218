//! `Sequencer`: tasks that take their turns in an order which the test says.

use core::fmt;
use core::future::Future;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use convoke_core::raw::{Frame, StopWatch};

use convoke_core::raw::{discard, wake, wake_if_any};

/// Forces an order on what several tasks do: whoever comes to step 3 waits until steps 0, 1 and 2 are over. A step lasts for
/// as long as the [`Turn`] is kept. Clones are the same sequencer.
///
/// Each step is taken once. One that is never taken leaves those after it waiting, which a [`Play`](super::Play) reports.
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
    /// The step that is on, or may begin.
    next: usize,
    /// The step that is on was taken.
    taken: bool,
    /// Who waits for which step. A waker is taken out to be called: that is done without the lock.
    waiting: BTreeMap<usize, (Option<Waker>, &'static Location<'static>)>,
    /// Somebody did not wait for his turn any more, at this step: it will never be taken.
    broken: Option<(usize, &'static Location<'static>)>,
}

/// See [`Sequencer::at`].
#[must_use = "futures do nothing until they are awaited"]
pub struct At {
    sequencer: Sequencer,
    step: usize,
    place: &'static Location<'static>,
    standing: Standing,
    watch: StopWatch,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    New,
    Waits,
    Over,
}

/// A step that is on. Dropping it lets the next one begin.
pub struct Turn(Sequencer);

impl Sequencer {
    /// The first step is step 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// Waits until all steps before this one are over.
    ///
    /// - *Completes with* the [`Turn`], which lasts until it is dropped; or stopped.
    /// - *If dropped* or stopped before its turn, the sequencer is broken: the step would never be taken.
    /// - *Runs on* the task; outside a task it waits as well, and cannot be stopped.
    /// - *Panics* if somebody else has taken, or waits for, the same step, or if the sequencer is broken.
    #[track_caller]
    pub fn at(&self, step: usize) -> At {
        let place = Location::caller();
        At { sequencer: self.clone(), step, place, standing: Standing::New, watch: StopWatch::new() }
    }

    /// The step that is on, or may begin.
    pub fn step(&self) -> usize {
        self.lock().next
    }

    fn lock(&self) -> MutexGuard<'_, Steps> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Steps {
    /// What is wrong with one who comes to this step, if anything is.
    fn complaint(&self, step: usize, is_new: bool) -> Option<String> {
        if let Some((broken, place)) = self.broken.filter(|(broken, _)| *broken <= step) {
            return Some(format!("step {step} cannot come: step {broken} ({place}) was given up"));
        }
        if step < self.next || step == self.next && self.taken {
            return Some(format!("step {step} was taken before: each step is taken once"));
        }
        let other = self.waiting.get(&step).filter(|_| is_new)?;
        Some(format!("step {step} is waited for twice: here, and at {}", other.1))
    }
}

impl Future for At {
    type Output = Turn;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Turn> {
        let this = &mut *self;
        assert!(this.standing != Standing::Over, "polled after it has ended");
        if Frame::current(|frame| frame.is_some_and(Frame::honour_stop)) {
            this.give_up();
            return Poll::Pending;
        }
        // Cloned, and dropped, without the lock: it may be anybody's.
        let waker = cx.waker().clone();
        let mut steps = this.sequencer.lock();
        if let Some(complaint) = steps.complaint(this.step, this.standing == Standing::New) {
            drop(steps);
            this.standing = Standing::Over;
            panic!("a sequencer is misused at {}: {complaint}", this.place);
        }
        if steps.next == this.step {
            steps.taken = true;
            let waiting = steps.waiting.remove(&this.step);
            drop(steps);
            drop(waiting);
            this.standing = Standing::Over;
            return Poll::Ready(Turn(this.sequencer.clone()));
        }
        let before = steps.waiting.insert(this.step, (Some(waker), this.place));
        drop(steps);
        drop(before);
        this.standing = Standing::Waits;
        Frame::current(|frame| {
            if let Some(frame) = frame {
                frame.waits_at(this.place);
                this.watch.watch(frame, cx);
            }
        });
        Poll::Pending
    }
}

impl At {
    /// Its step will never be taken: those who wait for later ones are told.
    fn give_up(&mut self) {
        if core::mem::replace(&mut self.standing, Standing::Over) != Standing::Waits {
            return;
        }
        let mut steps = self.sequencer.lock();
        let own = steps.waiting.remove(&self.step);
        if steps.broken.is_none_or(|(broken, _)| self.step < broken) {
            steps.broken = Some((self.step, self.place));
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
