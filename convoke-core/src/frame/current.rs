//! The current frame of a thread: that of the future which is polled on it. It is set for the time of a poll, and restored,
//! like a stack.

#![allow(unsafe_code)]

use core::ptr;

use super::Frame;
use crate::this_thread::ThisThread;

/// Restores the current frame, also if the body panics. The frame stays borrowed while this exists.
pub(super) struct RestoreFrame(*const ());

impl Drop for RestoreFrame {
    #[inline]
    fn drop(&mut self) {
        ThisThread::with(|thread| thread.current_frame.set(self.0));
    }
}

impl Frame<'_> {
    /// Runs `f` with this frame as the current one.
    #[inline]
    pub fn within<R>(&self, f: impl FnOnce() -> R) -> R {
        let _restore = self.enter();
        f()
    }

    /// Makes this frame the current one until the result is dropped. For callers in `frame`: `current` relies on that
    /// being done in order, before this frame ends.
    #[inline]
    pub(super) fn enter(&self) -> RestoreFrame {
        let frame = ptr::from_ref(self).cast::<()>();
        RestoreFrame(ThisThread::replace_current_frame(frame))
    }

    /// Calls `f` with the current frame, or with `None` outside of all tasks.
    #[inline]
    pub fn current<R>(f: impl FnOnce(Option<&Frame<'_>>) -> R) -> R {
        let frame = ThisThread::current_frame().cast::<Frame<'_>>();
        // SAFETY: `within` or `poll`, of this type or of `KeptFrame`, set the pointer and is further up on this stack.
        // It borrows the frame until it restores the pointer, and the reference does not leave `f`.
        f(unsafe { frame.as_ref() })
    }
}
