//! Wakes a future for a stop request if the task's own waker does not reach it: behind a combinator that
//! gives its children wakers of their own and polls only those that were woken. Point 4 of the stop bridge,
//! see `stop`.

#![allow(unsafe_code)]

use core::fmt;
use core::mem::ManuallyDrop;
use core::pin::Pin;
use core::task::{Context, Waker};

use super::Frame;
use crate::{Panic, StopReason, StopToken};

/// The stop registration of a future that waits. One word, and free as long as it is polled with its task's
/// own waker.
#[derive(Default)]
pub struct StopWatch {
    /// Dropped by `drop` and not by the compiler: it is hardly ever there, and the code that drops it is
    /// long.
    registered: ManuallyDrop<Option<Box<Registered>>>,
}

impl Drop for StopWatch {
    #[inline]
    fn drop(&mut self) {
        if self.registered.is_some() {
            self.unregister();
        }
    }
}

// SAFETY: a shared reference allows only `Debug`, which reads if there is a registration. Everything that touches
// the waker or the callback takes `&mut self`.
unsafe impl Sync for StopWatch {}

struct Registered {
    waker: Waker,
    token: StopToken,
    _callback: Pin<Box<dyn Send>>,
}

impl StopWatch {
    /// Creates one that is not registered.
    #[inline]
    pub const fn new() -> Self {
        Self { registered: ManuallyDrop::new(None) }
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
            && registered.token == token
            && registered.waker.will_wake(waker)
        {
            return;
        }
        *self.registered = token.stop_possible().then(|| {
            let call = waker.clone();
            let callback = Box::pin(token.clone().on_stop(move |_: StopReason| call.wake()));
            callback.as_ref().register();
            Box::new(Registered { waker: waker.clone(), token, _callback: callback })
        });
    }

    /// Drops the registration. A foreign waker may panic when it is dropped. The panic hook has reported it;
    /// it must not unwind the future, which may be about to return its result.
    #[cold]
    fn unregister(&mut self) {
        let registered = self.registered.take();
        let _ = Panic::catch(|| drop(registered));
    }
}

impl fmt::Debug for StopWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StopWatch").field("registered", &self.registered.is_some()).finish()
    }
}
