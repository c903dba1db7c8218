//! One frame in which several bodies are polled, one after the other, in the same poll of their owner. It is made and
//! entered once: for bodies that are ready at once, that is most of what a poll costs.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use super::flags::{ASKED, HELD, SHELTERED};
use super::{Frame, HeldBefore, Next, Polled};
use crate::stack::call_with_room;

impl Frame<'_> {
    /// Polls one of several bodies inside this frame, which is the current one: the caller is inside of
    /// [`within`](Frame::within). `around` is the frame around this one. This one is as it was made, or
    /// [renewed](Frame::renew).
    #[inline]
    pub fn poll_one_of_several<F: Future + ?Sized>(
        &self,
        around: &Frame<'_>,
        mut body: Pin<&mut F>,
        cx: &mut Context<'_>,
    ) -> Polled<F::Output> {
        let mut again = false;
        loop {
            let mut polled = Poll::Pending;
            call_with_room(&mut || polled = body.as_mut().poll(cx));
            match polled {
                Poll::Ready(value) => return Polled::Ready(value),
                Poll::Pending if !(self.has(HELD | ASKED) || self.stopped.get()) => return Polled::Pending,
                Poll::Pending => {
                    // What it tells the current frame is meant for the one around this one.
                    match around.within(|| self.after_pending(again)) {
                        Next::Again => again = true,
                        Next::Wait => return Polled::Pending,
                        Next::Stop => return Polled::Stopped,
                    }
                }
            }
        }
    }

    /// Makes this frame that of another body. The owner sets the flag *stopped* to what it was after the last poll of
    /// that body.
    #[inline]
    pub fn renew(&self) {
        self.flags.set(self.flags.get() & (SHELTERED | ASKED));
        self.cause.set(None);
    }

    /// Marks the bodies that are polled in this frame from now on as asked to stop.
    #[inline]
    pub fn ask_to_stop(&self) {
        self.set(ASKED);
    }

    /// Returns the *held* flag of this frame, for [`restore_held`](Frame::restore_held).
    #[inline]
    pub fn held(&self) -> HeldBefore {
        HeldBefore(self.flags.get())
    }

    /// Resets the *held* flag of this frame: the futures that set it since have ended in the same poll.
    #[inline]
    pub fn restore_held(&self, before: HeldBefore) {
        self.flags.set(self.flags.get() & !HELD | before.0 & HELD);
    }
}
