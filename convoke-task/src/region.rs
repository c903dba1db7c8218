//! A region of a task that can be asked to stop by itself, or is shielded from the stop of what is around it. Scopes, races,
//! deadlines and clean-up are made of it.

use core::cell::{Cell, OnceCell};
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::time::Instant;

use convoke_core::raw::{Frame, FrameOwner, Polled, StopWatch, outside_a_task};
use convoke_core::{Env, StopReason};

use crate::surroundings::Surroundings;
#[cfg(feature = "testing")]
use explored::Explored;
#[cfg(not(feature = "testing"))]
use unexplored::Explored;

#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod explored;
#[cfg(not(feature = "testing"))]
mod unexplored;

/// See the head of this file. Whoever has one polls a body in it, and drops the body when the region says that it has stopped.
///
/// ```
/// use std::pin::pin;
/// use convoke::prelude::*;
/// use convoke::sender::prelude::*;
/// use convoke::raw::{Polled, Region};
///
/// // A body that is asked to stop at once, without its task being asked.
/// let outcome = block_on(async {
///     let mut region = Region::new();
///     region.request_stop(StopReason::Requested);
///     let mut body = pin!(async { never::<()>().await });
///     std::future::poll_fn(|cx| match region.poll(body.as_mut(), cx) {
///         Polled::Stopped => std::task::Poll::Ready("stopped"),
///         Polled::Ready(()) => std::task::Poll::Ready("ended"),
///         Polled::Pending => std::task::Poll::Pending,
///     })
///     .await
/// });
/// assert_eq!(outcome, Outcome::Value("stopped"));
/// ```
pub struct Region {
    asked: Cell<Option<StopReason>>,
    shielded: bool,
    deadline: Option<Instant>,
    /// Made when somebody inside asks for the environment.
    surroundings: OnceCell<Box<Surroundings>>,
    stopped: Cell<bool>,
    watch: StopWatch,
    explored: Explored,
}

/// What is kept, from poll to poll, for one of several bodies in a region.
#[derive(Debug, Default)]
pub struct BodyMark {
    stopped: Cell<bool>,
    held: Cell<bool>,
}

impl BodyMark {
    /// Whether it must not be dropped yet, as it said when it was polled last.
    pub fn is_held(&self) -> bool {
        self.held.get()
    }
}

impl Region {
    /// A region that stops with what is around it.
    pub const fn new() -> Self {
        Self {
            asked: Cell::new(None),
            shielded: false,
            deadline: None,
            surroundings: OnceCell::new(),
            stopped: Cell::new(false),
            watch: StopWatch::new(),
            explored: Explored::new(),
        }
    }

    /// A region that a stop of what is around it does not reach.
    pub fn shielded() -> Self {
        Self { shielded: true, ..Self::new() }
    }

    /// The same, announcing inside that it will be asked to stop at this time at the latest. Whoever has the region does that.
    pub fn with_deadline(mut self, deadline: Instant) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Asks what runs inside to stop. The first reason stays. It is heard when the body is polled next.
    pub fn request_stop(&self, reason: StopReason) {
        if self.asked.get().is_none() {
            self.asked.set(Some(reason));
        }
        if let (Some(surroundings), Some(reason)) = (self.surroundings.get(), self.asked.get()) {
            surroundings.request_stop(reason);
        }
    }

    /// Why it was asked to stop, by its owner or from around it, if it was.
    pub fn stop_reason(&self) -> Option<StopReason> {
        self.asked.get()
    }

    /// Polls a body inside. It is not to be polled again when it has ended; when it was stopped, it is to be dropped first.
    ///
    /// # Panics
    /// Outside all tasks; and as the body does.
    #[inline]
    pub fn poll<F: Future + ?Sized>(&mut self, body: Pin<&mut F>, cx: &mut Context<'_>) -> Polled<F::Output> {
        Frame::current(|frame| {
            let Some(outer) = frame else { outside_a_task("a future of Convoke's") };
            self.hear_now(outer, cx);
            let asked = self.asked.get().is_some();
            let _shield = self.shielded.then(|| self.explored.shield());
            let polled = outer.inside(&Inside { region: self, outer }, asked, &self.stopped).poll(body, cx);
            if matches!(polled, Polled::Pending) && !self.shielded {
                self.watch.watch(outer, cx);
            }
            polled
        })
    }

    /// Before several bodies are polled: hears of a stop around the region, and sees to it that this waker does. True if a
    /// stop was asked for since: then all bodies are to be polled.
    ///
    /// # Panics
    /// Outside all tasks; and as the callbacks of a stop do.
    pub fn listen(&mut self, cx: &Context<'_>) -> bool {
        Frame::current(|frame| {
            let Some(outer) = frame else { outside_a_task("a future of Convoke's") };
            if !self.shielded {
                self.watch.watch(outer, cx);
            }
            self.hear_now(outer, cx)
        })
    }

    /// Asks what runs inside to stop, unless what is around was asked before: then that reason is the one.
    pub(crate) fn request_stop_after_around(&self, reason: StopReason) {
        Frame::current(|frame| frame.is_some_and(|outer| self.hear(outer)));
        self.request_stop(reason);
    }

    /// Polls one of several bodies. Whoever has the region has called [`listen`](Region::listen), and polls all bodies after a
    /// stop was asked for, woken or not, if their wakers are their own.
    ///
    /// # Panics
    /// Outside all tasks; and as the body does.
    #[inline]
    pub fn poll_one<F: Future + ?Sized>(
        &self,
        body: Pin<&mut F>,
        mark: &BodyMark,
        waker: &Waker,
        own_waker: bool,
    ) -> Polled<F::Output> {
        Frame::current(|frame| {
            let Some(outer) = frame else { outside_a_task("a future of Convoke's") };
            let asked = self.asked.get().is_some();
            let inside = Inside { region: self, outer };
            let frame = if own_waker {
                outer.inside_among(&inside, waker, asked, &mark.stopped)
            } else {
                outer.inside(&inside, asked, &mark.stopped)
            };
            let polled = frame.poll(body, &mut Context::from_waker(waker));
            mark.held.set(frame.is_held());
            polled
        })
    }

    /// A stop from around it is one of its own, and so is one from an exploration. True if it is news.
    #[inline]
    pub(crate) fn hear_now(&self, outer: &Frame<'_>, cx: &Context<'_>) -> bool {
        self.hear(outer) || self.hear_exploration(cx).is_some()
    }

    /// A stop that an exploration has asked this region for, and is heard now.
    #[inline]
    pub(crate) fn hear_exploration(&self, cx: &Context<'_>) -> Option<StopReason> {
        if self.shielded || self.asked.get().is_some() || !self.explored.is_asked(cx) {
            return None;
        }
        self.request_stop(StopReason::Requested);
        Some(StopReason::Requested)
    }

    /// A stop from around it is one of its own. True if it is news.
    #[inline]
    fn hear(&self, outer: &Frame<'_>) -> bool {
        if outer.is_asked_to_stop()
            && !self.shielded
            && self.asked.get().is_none()
            && let Some(reason) = outer.stop_reason()
        {
            self.request_stop(reason);
            return true;
        }
        false
    }

    /// Runs `f` inside: to drop a body, for example.
    pub fn within<R>(&self, f: impl FnOnce() -> R) -> R {
        Frame::current(|frame| match frame {
            Some(outer) => {
                let asked = self.asked.get().is_some();
                outer.inside(&Inside { region: self, outer }, asked, &self.stopped).within(f)
            }
            None => f(),
        })
    }
}

/// The owner of the frame, for the time of a poll.
struct Inside<'a> {
    region: &'a Region,
    outer: &'a Frame<'a>,
}

impl FrameOwner for Inside<'_> {
    fn env(&self) -> &Env {
        self.region.env_in(self.outer)
    }

    #[inline]
    fn stop_reason(&self) -> Option<StopReason> {
        self.region.stop_reason_in(self.outer)
    }

    fn deadline(&self) -> Option<Instant> {
        self.region.deadline_in(self.outer)
    }

    fn around(&self) -> Option<&Frame<'_>> {
        Some(self.outer)
    }
}

/// What the owner of a frame answers that is this region, in this frame.
impl Region {
    pub(crate) fn env_in(&self, outer: &Frame<'_>) -> &Env {
        let make = || Box::new(Surroundings::new(outer.env(), self.deadline_in(outer)));
        let surroundings = self.surroundings.get_or_init(make);
        if let Some(reason) = self.stop_reason_in(outer) {
            surroundings.request_stop(reason);
        }
        surroundings.env()
    }

    #[inline]
    pub(crate) fn stop_reason_in(&self, outer: &Frame<'_>) -> Option<StopReason> {
        match self.asked.get() {
            None if !self.shielded => outer.stop_reason(),
            asked => asked,
        }
    }

    pub(crate) fn deadline_in(&self, outer: &Frame<'_>) -> Option<Instant> {
        let outer = if self.shielded { None } else { outer.deadline() };
        match (outer, self.deadline) {
            (Some(outer), Some(own)) => Some(outer.min(own)),
            (outer, own) => outer.or(own),
        }
    }

    /// Whether it was asked to stop, as far as it has heard.
    #[inline]
    pub(crate) fn is_asked(&self) -> bool {
        self.asked.get().is_some()
    }

    /// The bit of a frame that this region is the owner of.
    #[inline]
    pub(crate) fn stopped(&self) -> &Cell<bool> {
        &self.stopped
    }
}

impl Default for Region {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Region")
            .field("asked", &self.asked.get())
            .field("shielded", &self.shielded)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

/// What was inside has ended by the stopped door and is gone: so does whoever awaits it.
pub(crate) fn pass_on_stop<T>() -> Poll<T> {
    Frame::current(|frame| match frame {
        Some(frame) => frame.set_stopped(),
        None => outside_a_task("a future of Convoke's"),
    });
    Poll::Pending
}
