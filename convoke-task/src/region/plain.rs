//! A region without a shield and without a deadline of its own.

use core::cell::{Cell, OnceCell};
use core::fmt;
use core::future::Future;
use core::hint::cold_path;
use core::pin::Pin;
use core::task::{Context, Waker};
use std::time::Instant;

use convoke_core::raw::{
    DropOutOfLine, Frame, FrameArc, FrameOwner, LastUse, OutOfLine, Overlay, Polled, ReasonCode, StopWatch,
    outside_a_task,
};
use convoke_core::{Env, StopReason};

use super::Explored;
use crate::surroundings::Surroundings;

/// A part of a task that can be asked to stop on its own, and that stops with what is around it.
pub struct PlainRegion {
    /// The reason, as a number: futures hold a region each, and a reason has three words.
    asked: Cell<Option<ReasonCode>>,
    stopped: Cell<bool>,
    on_demand: OutOfLine<OnDemand>,
    pub(super) explored: Explored,
}

/// The parts of a region that few regions have.
struct OnDemand {
    /// Created when something inside asks for the environment.
    surroundings: OnceCell<FrameArc<Surroundings>>,
    /// Registers if the region is polled with a waker that is not its task's own.
    watch: StopWatch,
}

impl OnDemand {
    #[inline]
    fn is_there(&self) -> bool {
        self.surroundings.get().is_some() || self.watch.is_registered()
    }
}

impl DropOutOfLine for OnDemand {
    #[cold]
    #[inline(never)]
    fn drop_out_of_line(parts: LastUse<'_, Self>) {
        parts.drop_here();
    }

    #[inline]
    fn has_something_to_drop(&mut self) -> bool {
        self.is_there()
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

    /// Returns the flag of the body's frame.
    #[inline]
    pub(super) fn stopped(&self) -> &Cell<bool> {
        &self.stopped
    }

    /// Polls the body in its frame, with this waker.
    #[inline]
    pub(super) fn poll_in<F: Future + ?Sized>(
        &self,
        frame: &Frame<'_>,
        body: Pin<&mut F>,
        waker: &Waker,
    ) -> Polled<F::Output> {
        let polled = frame.poll(body, &mut Context::from_waker(waker));
        self.held.set(frame.is_held());
        polled
    }
}

/// The number of bodies that held the task when they were polled last: they must not be dropped yet.
#[derive(Debug, Default)]
pub(crate) struct Held(usize);

impl Held {
    /// Counts a body after a poll. Returns true if it holds the task now and did not before, or the other way round.
    #[inline]
    pub(crate) fn change(&mut self, was_held: bool, is_held: bool) -> bool {
        let changes = was_held != is_held;
        if changes {
            cold_path();
            self.0 = if is_held { self.0 + 1 } else { self.0 - 1 };
        }
        changes
    }

    /// Returns true if there are such bodies.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.0 > 0
    }
}

impl PlainRegion {
    /// Creates a region.
    #[inline]
    pub(crate) const fn new() -> Self {
        Self {
            asked: Cell::new(None),
            stopped: Cell::new(false),
            on_demand: OutOfLine::new(OnDemand { surroundings: OnceCell::new(), watch: StopWatch::new() }),
            explored: Explored::new(),
        }
    }

    /// Returns false if there is nothing to drop, as mostly.
    #[inline]
    pub(crate) fn has_something_to_drop(&self) -> bool {
        // An exploration has the waker of the region until it is dropped.
        Explored::IS_POSSIBLE || self.on_demand.is_there()
    }

    /// Asks what runs inside to stop. The first reason stays. The body sees it when it is polled next.
    pub(crate) fn request_stop(&self, reason: StopReason) {
        if self.asked.get().is_none() {
            self.asked.set(Some(ReasonCode::of(reason)));
        }
        if let Some(surroundings) = self.on_demand.surroundings.get() {
            surroundings.request_stop(self.stop_reason().unwrap_or(reason));
        }
    }

    /// Asks what runs inside to stop; if what is around was asked before, with that reason.
    #[inline]
    pub(crate) fn request_stop_after_around(&self, reason: StopReason) {
        // The first reason stays, and was passed on.
        if self.is_asked() || Frame::current(|frame| frame.is_some_and(|outer| self.hear(outer))) {
            return;
        }
        self.asked.set(Some(ReasonCode::of(reason)));
        if self.on_demand.surroundings.get().is_some() {
            self.request_stop(reason);
        }
    }

    /// Returns the reason if the region was asked to stop, by its owner or from around it.
    #[inline]
    pub(crate) fn stop_reason(&self) -> Option<StopReason> {
        self.asked.get().map(ReasonCode::reason)
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

    /// Takes over a stop from around the region, and registers this waker for one. Returns true if a stop was
    /// requested since.
    ///
    /// # Panics
    /// Outside a task, and if a stop callback does.
    #[inline]
    pub(crate) fn listen(&mut self, cx: &Context<'_>) -> bool {
        Frame::current(|frame| match frame {
            Some(outer) => self.listen_in(outer, cx),
            None => outside_a_task("a future of Convoke's"),
        })
    }

    /// Listens as [`listen`](PlainRegion::listen) does, in this frame.
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

    /// Returns true if [`listen_in`](PlainRegion::listen_in) has nothing to do, and would return false.
    #[inline]
    pub(crate) fn need_not_listen(outer: &Frame<'_>, cx: &Context<'_>) -> bool {
        !Explored::IS_POSSIBLE && Self::is_calm(outer, cx)
    }

    /// Listens as [`listen`](PlainRegion::listen) does, in a task that was asked to stop, or with a waker that is not
    /// its own.
    #[inline(never)]
    fn listen_to(&mut self, outer: &Frame<'_>, cx: &Context<'_>) -> bool {
        self.watch(outer, cx);
        self.hear_now(outer, cx)
    }

    /// Registers this waker for a stop from around the region, unless it is the task's own.
    #[inline]
    pub(super) fn watch(&mut self, outer: &Frame<'_>, cx: &Context<'_>) {
        self.on_demand.watch.watch(outer, cx);
    }

    /// Takes over a stop from around the region, or from an exploration. Returns true if it is new.
    #[inline]
    pub(crate) fn hear_now(&self, outer: &Frame<'_>, cx: &Context<'_>) -> bool {
        self.hear(outer) || self.hear_exploration(cx).is_some()
    }

    /// Takes over a stop that an exploration requested for this region. Returns the reason if it is new.
    #[inline]
    pub(crate) fn hear_exploration(&self, cx: &Context<'_>) -> Option<StopReason> {
        if self.is_asked() || !self.explored.is_asked(cx) {
            return None;
        }
        self.request_stop(StopReason::Requested);
        Some(StopReason::Requested)
    }

    /// Takes over a stop from around the region. Returns true if it is new.
    #[inline]
    fn hear(&self, outer: &Frame<'_>) -> bool {
        if outer.is_asked_to_stop()
            && !self.is_asked()
            && let Some(reason) = outer.stop_reason()
        {
            self.request_stop(reason);
            return true;
        }
        false
    }

    /// Polls one of several bodies with wakers of their own. The owner of the region calls
    /// [`listen`](PlainRegion::listen) before. After a stop was requested it polls all bodies, woken or not.
    ///
    /// # Panics
    /// Outside a task, and if the body does.
    #[inline]
    pub(crate) fn poll_one<F: Future + ?Sized>(
        &self,
        body: Pin<&mut F>,
        mark: &BodyMark,
        waker: &Waker,
    ) -> Polled<F::Output> {
        Frame::current(|frame| {
            let Some(outer) = frame else { outside_a_task("a future of Convoke's") };
            let inside = Inside { region: self, outer };
            mark.poll_in(&outer.inside_among(&inside, waker, self.is_asked(), &mark.stopped), body, waker)
        })
    }

    /// Polls one of several bodies with the waker of the task.
    ///
    /// # Panics
    /// Outside a task, and if the body does.
    #[inline]
    pub(crate) fn poll_beside<F: Future + ?Sized>(
        &self,
        body: Pin<&mut F>,
        mark: &BodyMark,
        waker: &Waker,
    ) -> Polled<F::Output> {
        Frame::current(|frame| {
            let Some(outer) = frame else { outside_a_task("a future of Convoke's") };
            let inside = Inside { region: self, outer };
            mark.poll_in(&outer.inside(&inside, self.is_asked(), &mark.stopped), body, waker)
        })
    }

    /// Calls `f`, which polls several bodies one after the other, inside one frame. `stopped` is the flag of that
    /// frame, as it was after the last poll of the body that is polled first.
    #[inline]
    pub(crate) fn poll_several<R>(
        &self,
        outer: &Frame<'_>,
        stopped: &Cell<bool>,
        f: impl FnOnce(Several<'_>) -> R,
    ) -> R {
        let inside = Inside { region: self, outer };
        let frame = outer.inside(&inside, self.is_asked(), stopped);
        frame.within(|| f(Several { inside: &inside, frame: &frame, stopped }))
    }

    /// Runs `f` inside: to drop a body, for example.
    pub(crate) fn within<R>(&self, f: impl FnOnce() -> R) -> R {
        Frame::current(|frame| match frame {
            Some(outer) => {
                let inside = Inside { region: self, outer };
                outer.inside(&inside, self.is_asked(), &self.stopped).within(f)
            }
            None => f(),
        })
    }
}

/// The frame in which several bodies of a region are polled, one after the other.
// Copied, and not borrowed: then it need not lie in memory for calls that are not made.
#[derive(Clone, Copy)]
pub(crate) struct Several<'a> {
    inside: &'a Inside<'a>,
    frame: &'a Frame<'a>,
    stopped: &'a Cell<bool>,
}

impl Several<'_> {
    /// Polls one of the bodies, in a frame that is as it was made, or [renewed](Several::renew). The body is dropped
    /// in this frame, too.
    #[inline]
    pub(crate) fn poll<F: Future + ?Sized>(
        &self,
        body: Pin<&mut F>,
        cx: &mut Context<'_>,
    ) -> Polled<F::Output> {
        self.frame.poll_one_of_several(self.inside.outer, body, cx)
    }

    /// Makes the frame that of the next body. `stopped` is the flag of that body's frame, as it was after its last
    /// poll.
    #[inline]
    pub(crate) fn renew(&self, stopped: bool) {
        self.frame.renew();
        self.stopped.set(stopped);
    }

    /// Returns the flag of the frame: true if a future in the body has stopped.
    #[inline]
    pub(crate) fn has_stopped(&self) -> bool {
        self.stopped.get()
    }

    /// Runs `f`, which is not a part of a body and may ask the bodies to stop, around the region.
    pub(crate) fn outside(&self, f: impl FnOnce(&PlainRegion)) {
        let Inside { region, outer } = *self.inside;
        outer.within(|| f(region));
        if region.is_asked() {
            self.frame.ask_to_stop();
        }
    }
}

/// The owner of the frame, for the time of a poll.
struct Inside<'a> {
    region: &'a PlainRegion,
    outer: &'a Frame<'a>,
}

// Called through the table of the trait only, as those of a region with a shield.
impl FrameOwner for Inside<'_> {
    #[inline(never)]
    fn env(&self) -> &Env {
        self.region.env_of(self, None, self.outer)
    }

    #[inline(never)]
    fn stop_reason(&self) -> Option<StopReason> {
        self.region.stop_reason_in(self.outer)
    }

    #[inline(never)]
    fn deadline(&self) -> Option<Instant> {
        self.outer.deadline()
    }

    #[inline(never)]
    fn around(&self) -> Option<&Frame<'_>> {
        Some(self.outer)
    }
}

/// The answers of a frame that this region owns.
impl PlainRegion {
    /// Returns the environment inside, under an overlay, for the owner of the frame. Its stop token announces the
    /// deadline of the owner, and is asked to stop if the owner has a reason.
    pub(crate) fn env_of(
        &self,
        owner: &dyn FrameOwner,
        overlay: Option<&Overlay>,
        outer: &Frame<'_>,
    ) -> &Env {
        let make = || {
            let deadline = owner.deadline();
            FrameArc::in_task(match overlay {
                None => Surroundings::new(outer.env(), deadline),
                Some(overlay) => Surroundings::new(&outer.env().overlaid(overlay), deadline),
            })
        };
        let reason = owner.stop_reason();
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
        match self.stop_reason() {
            None => outer.stop_reason(),
            asked => asked,
        }
    }
}

impl fmt::Debug for PlainRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlainRegion").field("asked", &self.stop_reason()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Several<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Several").finish_non_exhaustive()
    }
}
