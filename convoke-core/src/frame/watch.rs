//! Hearing of a stop request where the task's own waker does not reach: behind a combinator that gives its children wakers
//! of their own, and polls only those that were woken.

use core::fmt;
use core::pin::Pin;
use core::task::{Context, Waker};

use super::Frame;
use crate::{StopReason, StopToken};

/// Kept by every future of ours that waits. Costs one word, and nothing as long as it is polled with its task's own waker.
#[derive(Default)]
pub struct StopWatch {
    registered: Option<Box<Registered>>,
}

struct Registered {
    waker: Waker,
    token: StopToken,
    _callback: Pin<Box<dyn Send>>,
}

impl StopWatch {
    /// Not watching yet.
    pub const fn new() -> Self {
        Self { registered: None }
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
        if let Some(registered) = &self.registered
            && registered.token == token
            && registered.waker.will_wake(waker)
        {
            return;
        }
        self.registered = token.stop_possible().then(|| {
            let call = waker.clone();
            let callback = Box::pin(token.clone().on_stop(move |_: StopReason| call.wake()));
            callback.as_ref().register();
            Box::new(Registered { waker: waker.clone(), token, _callback: callback })
        });
    }
}

impl Drop for StopWatch {
    /// In line, for mostly there is nothing to be dropped, and every call that can wait has one.
    #[inline]
    fn drop(&mut self) {
        if let Some(registered) = self.registered.take() {
            registered.end();
        }
    }
}

impl Registered {
    #[cold]
    fn end(self: Box<Self>) {}
}

impl fmt::Debug for StopWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StopWatch").field("registered", &self.registered.is_some()).finish()
    }
}
