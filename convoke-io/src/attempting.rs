//! Tries something on a source until it can be done: the shape of every call of a socket that takes a borrowed buffer.
//! Between two attempts it waits by an operation that owns nothing, so it can be dropped at any time and loses nothing.

use core::cell::Cell;
use core::fmt;
use core::future::Future;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::io;

use convoke_core::raw::{Frame, StopWatch};
use pin_project_lite::pin_project;

use crate::driver::{Interest, IoOperation, LifeStage, Request, Source};

/// After so many calls in a row that did not have to wait, on one thread, the next one lets others run first: a peer that
/// always has something to say does not keep a thread for itself.
pub const CALLS_IN_A_ROW: u32 = 64;

thread_local! {
    static IN_A_ROW: Cell<u32> = const { Cell::new(0) };
}

/// What waits for a source to be ready, from poll to poll: lies in the future, or, for traits with `poll_…` methods, beside
/// the source.
pub(crate) struct Waiting {
    operation: IoOperation,
    watch: StopWatch,
    yielded: bool,
}

impl Waiting {
    pub(crate) const fn new() -> Self {
        Self { operation: IoOperation::new(), watch: StopWatch::new(), yielded: false }
    }

    /// Polls `act` until it does not say that it would block.
    #[inline]
    pub(crate) fn poll<T>(
        mut self: Pin<&mut Self>,
        source: &dyn Source,
        interest: Interest,
        place: &'static Location<'static>,
        cx: &Context<'_>,
        mut act: impl FnMut(&dyn Source) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        if is_stopped() {
            self.operation.take_back_now(source);
            return Poll::Pending;
        }
        match self.operation.stage() {
            LifeStage::Idle => {
                if !self.as_mut().is_turn(cx) {
                    return Poll::Pending;
                }
            }
            LifeStage::Submitted => {
                self.operation.renew(cx.waker());
                // It may have been finished before the waker was renewed.
                if self.operation.stage() == LifeStage::Submitted {
                    self.wait(place, cx);
                    return Poll::Pending;
                }
                _ = self.operation.take_result();
            }
            LifeStage::Finished => _ = self.operation.take_result(),
        }
        loop {
            match act(source) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                result => return Poll::Ready(result),
            }
            // The result does not matter: what is wrong with the source the next attempt says.
            if self.operation().submit_waking(source, Request::Ready(interest), cx.waker()).is_none() {
                IN_A_ROW.set(0);
                self.wait(place, cx);
                return Poll::Pending;
            }
        }
    }

    /// Whether it may go on at once; if not, it is polled again when others have run.
    #[inline]
    fn is_turn(self: Pin<&mut Self>, cx: &Context<'_>) -> bool {
        // SAFETY: nothing is moved.
        let this = unsafe { self.get_unchecked_mut() };
        let calls = IN_A_ROW.get() + 1;
        IN_A_ROW.set(calls);
        if calls <= CALLS_IN_A_ROW || this.yielded {
            this.yielded = false;
            return true;
        }
        IN_A_ROW.set(0);
        this.yielded = true;
        cx.waker().wake_by_ref();
        false
    }

    fn wait(self: Pin<&mut Self>, place: &'static Location<'static>, cx: &Context<'_>) {
        // SAFETY: nothing is moved.
        let this = unsafe { self.get_unchecked_mut() };
        Frame::current(|frame| {
            if let Some(frame) = frame {
                frame.waits_at(place);
                this.watch.watch(frame, cx);
            }
        });
    }

    fn operation<'a>(self: &'a Pin<&mut Self>) -> Pin<&'a IoOperation> {
        // SAFETY: it is pinned with us.
        unsafe { self.as_ref().map_unchecked(|this| &this.operation) }
    }

    /// Before it goes: whoever has one and the source calls this.
    #[inline]
    pub(crate) fn let_go(&self, source: &dyn Source) {
        self.operation.take_back_now(source);
    }
}

/// Ends by the stopped door if a stop was asked for, by this moment. True if so: the caller returns `Pending` now.
#[inline]
pub(crate) fn is_stopped() -> bool {
    Frame::current(|frame| {
        frame.is_some_and(|frame| {
            let asked = frame.is_asked_to_stop() || frame.stop_reason().is_some();
            if asked {
                frame.set_stopped();
            }
            asked
        })
    })
}

pin_project! {
    /// See [`attempt`].
    #[must_use = "futures do nothing until they are awaited"]
    pub(crate) struct Attempting<'a, F> {
        source: &'a dyn Source,
        interest: Interest,
        act: F,
        place: &'static Location<'static>,
        #[pin]
        waiting: Waiting,
    }

    impl<F> PinnedDrop for Attempting<'_, F> {
        #[inline]
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            this.waiting.let_go(*this.source);
        }
    }
}

/// Tries `act` on the source until it can be done, and waits in between.
#[track_caller]
#[inline]
pub(crate) fn attempt<'a, T, F>(source: &'a dyn Source, interest: Interest, act: F) -> Attempting<'a, F>
where
    F: FnMut(&dyn Source) -> io::Result<T>,
{
    Attempting { source, interest, act, place: Location::caller(), waiting: Waiting::new() }
}

impl<T, F> Future for Attempting<'_, F>
where
    F: FnMut(&dyn Source) -> io::Result<T>,
{
    type Output = io::Result<T>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        let this = self.project();
        this.waiting.poll(*this.source, *this.interest, this.place, cx, this.act)
    }
}

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.operation.fmt(f)
    }
}

impl<F> fmt::Debug for Attempting<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attempting").field("interest", &self.interest).finish_non_exhaustive()
    }
}
