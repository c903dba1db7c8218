//! A region: a part of a task that can be asked to stop on its own, or that is shielded from the stop of the
//! task around it. Scopes, races, deadlines and clean-up are built from regions.
//!
//! `plain` is a region without a shield and without a deadline. Most are: those of groups of branches, of scopes, of
//! generators. They are made, moved and dropped with the futures that they lie in, and so they are small.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::time::Instant;

use convoke_core::raw::{Frame, FrameOwner, Overlay, Polled, outside_a_task};
use convoke_core::{Env, StopReason};

#[cfg(feature = "testing")]
use explored::Explored;
pub use plain::BodyMark;
pub(crate) use plain::{Held, PlainRegion, Several};
#[cfg(not(feature = "testing"))]
use unexplored::Explored;

mod plain;

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
    plain: PlainRegion,
    shielded: bool,
    deadline: Option<Instant>,
}

impl Region {
    /// Creates a region that stops with what is around it.
    pub const fn new() -> Self {
        Self { plain: PlainRegion::new(), shielded: false, deadline: None }
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
        self.plain.request_stop(reason);
    }

    /// Returns the reason if the region was asked to stop, by its owner or from around it.
    #[inline]
    pub fn stop_reason(&self) -> Option<StopReason> {
        self.plain.stop_reason()
    }

    /// Returns true if the region has seen a stop request.
    #[inline]
    pub(crate) fn is_asked(&self) -> bool {
        self.plain.is_asked()
    }

    /// Returns the region without its shield and its deadline: for an owner whose region has neither.
    #[inline]
    pub(crate) fn plain(&self) -> &PlainRegion {
        &self.plain
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
            if !self.shielded {
                self.plain.hear_now(outer, cx);
            }
            let _shield = self.shielded.then(|| self.plain.explored.shield());
            let inside = Inside { region: self, outer, overlay };
            let frame = outer.inside(&inside, self.is_asked(), self.plain.stopped());
            let polled = frame.sheltered_if(self.shielded).overlaid(overlay).poll(body, cx);
            if matches!(polled, Polled::Pending) && !self.shielded {
                self.plain.watch(outer, cx);
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
        if self.shielded {
            if Frame::current(|frame| frame.is_none()) {
                outside_a_task("a future of Convoke's");
            }
            return false;
        }
        self.plain.listen(cx)
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
            let inside = Inside { region: self, outer, overlay: None };
            let frame = if own_waker {
                outer.inside_among(&inside, waker, self.is_asked(), mark.stopped())
            } else {
                outer.inside(&inside, self.is_asked(), mark.stopped())
            };
            mark.poll_in(&frame.sheltered_if(self.shielded), body, waker)
        })
    }

    /// Runs `f` inside: to drop a body, for example.
    pub fn within<R>(&self, f: impl FnOnce() -> R) -> R {
        self.within_under(None, f)
    }

    /// Runs `f` inside, under an overlay.
    pub(crate) fn within_under<R>(&self, overlay: Option<&Overlay>, f: impl FnOnce() -> R) -> R {
        Frame::current(|frame| match frame {
            Some(outer) => {
                let inside = Inside { region: self, outer, overlay };
                outer.inside(&inside, self.is_asked(), self.plain.stopped()).overlaid(overlay).within(f)
            }
            None => f(),
        })
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
        self.region.plain.env_of(self, self.overlay, self.outer)
    }

    #[inline(never)]
    fn stop_reason(&self) -> Option<StopReason> {
        if self.region.shielded {
            self.region.stop_reason()
        } else {
            self.region.plain.stop_reason_in(self.outer)
        }
    }

    #[inline(never)]
    fn deadline(&self) -> Option<Instant> {
        let outer = if self.region.shielded { None } else { self.outer.deadline() };
        match (outer, self.region.deadline) {
            (Some(outer), Some(own)) => Some(outer.min(own)),
            (outer, own) => outer.or(own),
        }
    }

    #[inline(never)]
    fn around(&self) -> Option<&Frame<'_>> {
        Some(self.outer)
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
