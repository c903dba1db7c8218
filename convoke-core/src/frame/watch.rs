//! Wakes a future for a stop request if the task's own waker does not reach it: behind a combinator that
//! gives its children wakers of their own and polls only those that were woken. Point 4 of the stop bridge,
//! see `stop`.

#![allow(unsafe_code)]

use core::fmt;
use core::mem::ManuallyDrop;
use core::task::{Context, Waker};

use super::Frame;
use super::wake_on_stop::WakeOnStop;

/// The stop registration of a future that waits. One word, and free as long as it is polled with its task's
/// own waker.
#[derive(Default)]
pub struct StopWatch {
    /// Dropped by `drop` and not by the compiler: it is hardly ever there, and the code that drops it is
    /// long.
    registered: ManuallyDrop<Option<WakeOnStop>>,
}

impl Drop for StopWatch {
    #[inline]
    fn drop(&mut self) {
        if self.is_registered() {
            self.unregister();
        }
    }
}

// SAFETY: a shared reference allows only `Debug`, which reads if there is a registration. Everything that touches
// the waker or the callback takes `&mut self`.
unsafe impl Sync for StopWatch {}

impl StopWatch {
    /// Creates one that is not registered.
    #[inline]
    pub const fn new() -> Self {
        Self { registered: ManuallyDrop::new(None) }
    }

    /// Returns true if a waker is registered: if there is something to drop.
    #[inline]
    pub fn is_registered(&self) -> bool {
        self.registered.is_some()
    }

    /// Registers the waker of a future that is about to wait, unless it is the task's own: it is then called
    /// when a stop is requested.
    #[inline]
    pub fn watch(&mut self, frame: &Frame<'_>, cx: &Context<'_>) {
        if !frame.is_own_waker(cx.waker()) {
            self.register(frame, cx.waker());
        }
    }

    #[cold]
    fn register(&mut self, frame: &Frame<'_>, waker: &Waker) {
        let token = frame.env().stop_token();
        if let Some(registered) = &*self.registered
            && *registered.token() == token
            && registered.is_of(waker)
        {
            return;
        }
        let new = token.stop_possible().then(|| WakeOnStop::new(token, waker));
        let before = core::mem::replace(&mut *self.registered, new);
        drop(before);
    }

    /// Drops the registration.
    #[cold]
    fn unregister(&mut self) {
        if let Some(registered) = self.registered.take() {
            registered.unregister();
        }
    }
}

impl fmt::Debug for StopWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StopWatch").field("registered", &self.registered.is_some()).finish()
    }
}
