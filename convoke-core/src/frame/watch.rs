//! Hearing of a stop request where the task's own waker does not reach: behind a combinator that gives its children wakers
//! of their own, and polls only those that were woken.

use core::fmt;
use core::mem::ManuallyDrop;
use core::pin::Pin;
use core::task::{Context, Waker};

use super::Frame;
use crate::{Panic, StopReason, StopToken};

/// Kept by every future of ours that waits. Costs one word, and nothing as long as it is polled with its task's own waker.
#[derive(Default)]
pub struct StopWatch {
    /// Dropped by `drop`, and not by itself: it hardly ever is there, and the code that unregisters is long.
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

struct Registered {
    waker: Waker,
    token: StopToken,
    _callback: Pin<Box<dyn Send>>,
}

impl StopWatch {
    /// Not watching yet.
    #[inline]
    pub const fn new() -> Self {
        Self { registered: ManuallyDrop::new(None) }
    }

    /// The caller is about to wait: if its waker is not the task's own, that waker is called when a stop is asked for.
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

    /// By the destructor. A foreign waker may panic when it is dropped, and must not unwind the future around, which may be about
    /// to return what it has waited for; the panic hook has told of it.
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
