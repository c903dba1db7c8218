//! A waker that is called when a stop is requested, in memory of the running task.
//!
//! 1. The callback is registered before `WakeOnStop::new` returns, and removed when it is dropped.
//! 2. Between the two nothing uses the callback but the state of the token.

#![allow(unsafe_code)]

use core::task::Waker;

use super::current_allocator;
use crate::frames::frame_arc::FrameArc;
use crate::stop::{OnStop, RawCallback};
use crate::{Panic, StopReason, StopToken};

/// A registration that calls a waker when a stop is requested. One word wide.
pub(super) struct WakeOnStop {
    registered: FrameArc<Registered>,
}

/// The callback comes first: dropping it removes it from the state, which the token keeps alive.
struct Registered {
    callback: RawCallback<CallWaker>,
    token: StopToken,
    waker: Waker,
}

// SAFETY: rules 1 and 2: a shared reference gives no access to the callback, which is the only field that is not
// `Sync`.
unsafe impl Sync for Registered {}

struct CallWaker(Waker);

impl OnStop for CallWaker {
    fn on_stop(self, _: StopReason) {
        self.0.wake();
    }
}

impl WakeOnStop {
    /// Registers a waker; if a stop was requested already, it is called at once.
    pub(super) fn new(token: StopToken, waker: &Waker) -> Self {
        let callback = RawCallback::new(CallWaker(waker.clone()));
        let registered =
            FrameArc::new_in(&current_allocator(), Registered { callback, token, waker: waker.clone() });
        // SAFETY: the callback lies in the `FrameArc`, so it does not move. It is dropped before the token beside it,
        // which keeps the source alive, and owns what it calls. Nothing else registers it.
        unsafe { registered.callback.register(registered.token.as_ref()) };
        Self { registered }
    }

    /// Returns true if this waker was registered, or one that wakes the same task.
    pub(super) fn is_of(&self, waker: &Waker) -> bool {
        self.registered.waker.will_wake(waker)
    }

    /// Returns the token that it was registered with.
    pub(super) fn token(&self) -> &StopToken {
        &self.registered.token
    }

    /// Drops the registration. A foreign waker may panic when it is dropped. The panic hook has reported it; it must
    /// not unwind the future, which may be about to return its result.
    pub(super) fn unregister(self) {
        let _ = Panic::catch(|| drop(self));
    }
}
