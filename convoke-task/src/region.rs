//! A region: a part of a task that can be asked to stop on its own, or that is shielded from the stop of the
//! task around it. Scopes, races, deadlines and clean-up are built from regions.

use core::cell::{Cell, OnceCell};
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::time::Instant;

use convoke_core::raw::{
    DropOutOfLine, Frame, FrameArc, FrameOwner, LastUse, OutOfLine, Overlay, Polled, ReasonCode, StopWatch,
    outside_a_task,
};
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

/// A part of a task that can be asked to stop on its own, or that is shielded from the stop of what is around
/// it. Its owner polls a body in it, and drops the body when the region says that it has stopped.
///
/// ```
/// use std::pin::pin;
/// use convoke::prelude::*;
/// use convoke::raw::{Polled, Region};
/// use convoke::task::forever;
///
/// // A body that is asked to stop at once, though its task is not.
/// let outcome = block_on(async {
///     let mut region = Region::new();
///     region.request_stop(StopReason::Requested);
///     let mut body = pin!(async { forever().await });
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
    /// The reason, as a number: futures hold a region each, and a reason has three words.
    asked: Cell<Option<ReasonCode>>,
    shielded: bool,
    deadline: Option<Instant>,
    stopped: Cell<bool>,
    on_demand: OutOfLine<OnDemand>,
    explored: Explored,
}

/// The parts of a region that few regions have.
struct OnDemand {
    /// Created when something inside asks for the environment.
    surroundings: OnceCell<FrameArc<Surroundings>>,
    /// Registers if the region is polled with a waker that is not its task's own.
    watch: StopWatch,
}

impl DropOutOfLine for OnDemand {
    #[cold]
    #[inline(never)]
    fn drop_out_of_line(parts: LastUse<'_, Self>) {
        parts.drop_here();
    }

    #[inline]
    fn has_something_to_drop(&mut self) -> bool {
        self.surroundings.get().is_some() || self.watch.is_registered()
    }
}

/// The state, from poll to poll, of one of several bodies in a region.
#[derive(Debug, Default)]
pub struct BodyMark {
    stopped: Cell<bool>,
    held: Cell<bool>,
}

impl BodyMark {
    /// Returns true if the body must not be dropped yet, as it said when it was polled last.
    pub fn is_held(&self) -> bool {
        self.held.get()
    }
}

impl Region {
    /// Creates a region that stops with what is around it.
    pub const fn new() -> Self {
        Self {
            asked: Cell::new(None),
            shielded: false,
            deadline: None,
            stopped: Cell::new(false),
            on_demand: OutOfLine::new(OnDemand { surroundings: OnceCell::new(), watch: StopWatch::new() }),
            explored: Explored::new(),
        }
    }

    /// Creates a region that a stop of what is around it does not reach.
    pub fn shielded() -> Self {
        Self { shielded: true, ..Self::new() }
    }

    /// Sets the deadline that is announced inside. The owner of the region requests the stop at that time.
    pub fn with_deadline(mut self, deadline: Instant) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Asks what runs inside to stop. The first reason stays. The body sees it when it is polled next.
    pub fn request_stop(&self, reason: StopReason) {
        if self.asked.get().is_none() {
            self.asked.set(Some(ReasonCode::of(reason)));
        }
        if let Some(surroundings) = self.on_demand.surroundings.get() {
            surroundings.request_stop(self.stop_reason().unwrap_or(reason));
        }
    }

    /// Returns the reason if the region was asked to stop, by its owner or from around it.
    #[inline]
    pub fn stop_reason(&self) -> Option<StopReason> {
        self.asked.get().map(ReasonCode::reason)
    }

    /// Polls a body inside. Do not poll it again after it has ended. After it was stopped, drop it before you
    /// go on.
    ///
    /// # Panics
    /// Outside a task, and if the body does.
    #[inline]
    pub fn poll<F: Future + ?Sized>(&mut self, body: Pin<&mut F>, cx: &mut Context<'_>) -> Polled<F::Output> {
        self.poll_under(None, body, cx)
    }

    /// Polls a body inside, as [`poll`](Region::poll) does, under an overlay.
    ///
    /// # Panics
    /// Outside a task, and if the body does.
    #[inline]
    pub(crate) fn poll_under<F: Future + ?Sized>(
        &mut self,
        overlay: Option<&Overlay>,
        body: Pin<&mut F>,
        cx: &mut Context<'_>,
    ) -> Polled<F::Output> {
        Frame::current(|frame| {
            let Some(outer) = frame else { outside_a_task("a future of Convoke's") };
            self.hear_now(outer, cx);
            let asked = self.asked.get().is_some();
            let _shield = self.shielded.then(|| self.explored.shield());
            let inside = Inside { region: self, outer, overlay };
            let frame = outer.inside(&inside, asked, &self.stopped);
            let polled = frame.sheltered_if(self.shielded).overlaid(overlay).poll(body, cx);
            if matches!(polled, Polled::Pending) && !self.shielded {
                self.on_demand.watch.watch(outer, cx);
            }
            polled
        })
    }

    /// Prepares for polling several bodies: takes over a stop from around the region, and registers this
    /// waker for one. Returns true if a stop was requested since: then poll all bodies.
    ///
    /// # Panics
    /// Outside a task, and if a stop callback does.
    #[inline]
    pub fn listen(&mut self, cx: &Context<'_>) -> bool {
        Frame::current(|frame| match frame {
            Some(outer) => self.listen_in(outer, cx),
            None => outside_a_task("a future of Convoke's"),
        })
    }

    /// Prepares as [`listen`](Region::listen) does, in this frame.
    #[inline]
    pub(crate) fn listen_in(&mut self, outer: &Frame<'_>, cx: &Context<'_>) -> bool {
        if Self::is_calm(outer, cx) {
            return self.hear_exploration(cx).is_some();
        }
        self.listen_to(outer, cx)
    }

    /// Returns true if there is no stop request around, and the waker is the task's own.
    #[inline]
    fn is_calm(outer: &Frame<'_>, cx: &Context<'_>) -> bool {
        outer.is_own_waker(cx.waker()) && !outer.is_asked_to_stop()
    }

    /// Returns true if [`listen_in`](Region::listen_in) has nothing to do, and would return false.
    #[inline]
    pub(crate) fn need_not_listen(outer: &Frame<'_>, cx: &Context<'_>) -> bool {
        !Explored::IS_POSSIBLE && Self::is_calm(outer, cx)
    }

    /// Prepares as [`listen`](Region::listen) does, in a task that was asked to stop, or with a waker that is not
    /// its own.
    #[inline(never)]
    fn listen_to(&mut self, outer: &Frame<'_>, cx: &Context<'_>) -> bool {
        if !self.shielded {
            self.on_demand.watch.watch(outer, cx);
        }
        self.hear_now(outer, cx)
    }

    /// Asks what runs inside to stop; if what is around was asked before, with that reason.
    pub(crate) fn request_stop_after_around(&self, reason: StopReason) {
        Frame::current(|frame| frame.is_some_and(|outer| self.hear(outer)));
        self.request_stop(reason);
    }

    /// Polls one of several bodies. The owner of the region calls [`listen`](Region::listen) before. After a
    /// stop was requested it polls all bodies, woken or not, if they have wakers of their own.
    ///
    /// # Panics
    /// Outside a task, and if the body does.
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
            let inside = Inside { region: self, outer, overlay: None };
            let frame = if own_waker {
                outer.inside_among(&inside, waker, asked, &mark.stopped)
            } else {
                outer.inside(&inside, asked, &mark.stopped)
            };
            let frame = frame.sheltered_if(self.shielded);
            let polled = frame.poll(body, &mut Context::from_waker(waker));
            mark.held.set(frame.is_held());
            polled
        })
    }

    /// Calls `f`, which polls several bodies one after the other, inside one frame.
    #[inline]
    pub(crate) fn poll_several<R>(&self, outer: &Frame<'_>, f: impl FnOnce(&Several<'_>) -> R) -> R {
        let stopped = Cell::new(false);
        let inside = Inside { region: self, outer, overlay: None };
        let frame = outer.inside(&inside, self.is_asked(), &stopped).sheltered_if(self.shielded);
        frame.within(|| f(&Several { region: self, outer, frame: &frame }))
    }

    /// Takes over a stop from around the region, or from an exploration. Returns true if it is new.
    #[inline]
    pub(crate) fn hear_now(&self, outer: &Frame<'_>, cx: &Context<'_>) -> bool {
        self.hear(outer) || self.hear_exploration(cx).is_some()
    }

    /// Takes over a stop that an exploration requested for this region. Returns the reason if it is new.
    #[inline]
    pub(crate) fn hear_exploration(&self, cx: &Context<'_>) -> Option<StopReason> {
        if self.shielded || self.asked.get().is_some() || !self.explored.is_asked(cx) {
            return None;
        }
        self.request_stop(StopReason::Requested);
        Some(StopReason::Requested)
    }

    /// Takes over a stop from around the region. Returns true if it is new.
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
        self.within_under(None, f)
    }

    /// Runs `f` inside, under an overlay.
    pub(crate) fn within_under<R>(&self, overlay: Option<&Overlay>, f: impl FnOnce() -> R) -> R {
        Frame::current(|frame| match frame {
            Some(outer) => {
                let asked = self.asked.get().is_some();
                let inside = Inside { region: self, outer, overlay };
                outer.inside(&inside, asked, &self.stopped).overlaid(overlay).within(f)
            }
            None => f(),
        })
    }
}

/// The frame in which several bodies of a region are polled, one after the other.
pub(crate) struct Several<'a> {
    region: &'a Region,
    outer: &'a Frame<'a>,
    frame: &'a Frame<'a>,
}

impl Several<'_> {
    /// Polls one of the bodies. `stopped` is its flag, from poll to poll. The body is dropped in this frame, too.
    #[inline]
    pub(crate) fn poll<F: Future + ?Sized>(
        &self,
        body: Pin<&mut F>,
        stopped: &Cell<bool>,
        cx: &mut Context<'_>,
    ) -> Polled<F::Output> {
        self.frame.poll_one_of_several(self.outer, stopped, body, cx)
    }

    /// Runs `f`, which is not a part of a body and may ask the bodies to stop, around the region.
    pub(crate) fn outside(&self, f: impl FnOnce(&Region)) {
        self.outer.within(|| f(self.region));
        if self.region.is_asked() {
            self.frame.ask_to_stop();
        }
    }
}

/// The owner of the frame, for the time of a poll.
struct Inside<'a> {
    region: &'a Region,
    outer: &'a Frame<'a>,
    overlay: Option<&'a Overlay>,
}

// Called through the table of the trait only. `inline(never)` keeps rustc from compiling the short ones again in each
// codegen unit that polls in a region.
impl FrameOwner for Inside<'_> {
    #[inline(never)]
    fn env(&self) -> &Env {
        self.region.env_under(self.overlay, self.outer, self.region.stop_reason_in(self.outer))
    }

    #[inline(never)]
    fn stop_reason(&self) -> Option<StopReason> {
        self.region.stop_reason_in(self.outer)
    }

    #[inline(never)]
    fn deadline(&self) -> Option<Instant> {
        self.region.deadline_in(self.outer)
    }

    #[inline(never)]
    fn around(&self) -> Option<&Frame<'_>> {
        Some(self.outer)
    }
}

/// The answers of a frame that this region owns.
impl Region {
    /// Returns the environment inside. Its stop token is asked to stop if there is a reason.
    pub(crate) fn env_with(&self, outer: &Frame<'_>, reason: Option<StopReason>) -> &Env {
        self.env_under(None, outer, reason)
    }

    fn env_under(&self, overlay: Option<&Overlay>, outer: &Frame<'_>, reason: Option<StopReason>) -> &Env {
        let make = || {
            let deadline = self.deadline_in(outer);
            FrameArc::in_task(match overlay {
                None => Surroundings::new(outer.env(), deadline),
                Some(overlay) => Surroundings::new(&outer.env().overlaid(overlay), deadline),
            })
        };
        let surroundings = self.on_demand.surroundings.get().unwrap_or_else(|| {
            // Made before it is stored: the allocator is code of the program, and may come here too. Then that counts.
            let new = make();
            self.on_demand.surroundings.get_or_init(|| new)
        });
        if let Some(reason) = reason {
            surroundings.request_stop(reason);
        }
        surroundings.env()
    }

    #[inline]
    pub(crate) fn stop_reason_in(&self, outer: &Frame<'_>) -> Option<StopReason> {
        match self.asked.get() {
            None if !self.shielded => outer.stop_reason(),
            asked => asked.map(ReasonCode::reason),
        }
    }

    pub(crate) fn deadline_in(&self, outer: &Frame<'_>) -> Option<Instant> {
        let outer = if self.shielded { None } else { outer.deadline() };
        match (outer, self.deadline) {
            (Some(outer), Some(own)) => Some(outer.min(own)),
            (outer, own) => outer.or(own),
        }
    }

    /// Returns true if the region has seen a stop request.
    #[inline]
    pub(crate) fn is_asked(&self) -> bool {
        self.asked.get().is_some()
    }

    /// Returns the flag of the frame that this region owns.
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
            .field("asked", &self.stop_reason())
            .field("shielded", &self.shielded)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

/// Ends the awaiting function as stopped, because what was inside it did and is gone.
pub(crate) fn pass_on_stop<T>() -> Poll<T> {
    Frame::current(|frame| match frame {
        Some(frame) => frame.set_stopped(),
        None => outside_a_task("a future of Convoke's"),
    });
    Poll::Pending
}
