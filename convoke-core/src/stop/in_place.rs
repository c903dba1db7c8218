//! A stop source inside an operation: no allocation, no reference count. Tokens of it are borrowed; who wants one
//! to keep gets a linked source on the heap, made when it is first asked for.

#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomPinned;
use std::time::Instant;

use super::source::Forward;
use super::state::StopState;
use super::token::Target;
use super::{RawCallback, StopReason, StopRef, StopSource, StopToken};
use crate::sync::Mutex;

/// A stop source that lives in its owner and must not move once it is in use.
///
/// Its owner sees to two things: it is not dropped while a callback is registered with it, and not while
/// [`request_stop`](InPlaceStop::request_stop) runs. (The piece that does this for operations with
/// children is [`Children`](crate::raw::Children).)
pub struct InPlaceStop {
    state: StopState,
    shadow: Mutex<Option<Box<Shadow>>>,
    /// Keeps `&mut self` from being exclusive in the eyes of the compiler: the list of `state` leads to `shadow` and
    /// back, so that dropping the one writes the other through a pointer.
    _pinned: PhantomPinned,
}

/// The linked source on the heap. The callback is before the source: dropping it takes it out of our list.
struct Shadow {
    callback: RawCallback<Forward>,
    source: StopSource,
}

impl InPlaceStop {
    /// A source with its owner's deadline.
    pub fn new(deadline: Option<Instant>) -> Self {
        Self { state: StopState::new(deadline), shadow: Mutex::new(None), _pinned: PhantomPinned }
    }

    /// The token of this source.
    ///
    /// # Safety
    /// The source does not move from here on: the linked source that the token may make points back here.
    #[inline]
    pub unsafe fn token(&self) -> StopRef<'_> {
        StopRef(Target::InPlace(self))
    }

    /// Requests a stop and runs the callbacks on this thread. Says whether this was the first request.
    pub fn request_stop(&self, reason: StopReason) -> bool {
        self.state.request_stop(reason)
    }

    pub(crate) fn state(&self) -> &StopState {
        &self.state
    }

    pub(super) fn to_token(&self) -> StopToken {
        let mut shadow = self.shadow.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(shadow) = &*shadow {
            return shadow.source.token();
        }
        let source = match self.state.deadline() {
            Some(deadline) => StopSource::with_deadline(deadline),
            None => StopSource::new(),
        };
        let token = source.token();
        let forward = Forward(token.state.clone().expect("a source has a state from its making"));
        let shadow = shadow.insert(Box::new(Shadow { callback: RawCallback::new(forward), source }));
        // SAFETY: the callback is in a box that stays until we are dropped, and goes before our state does: see
        // `Drop`. The lock makes this the only registration. If a stop was requested already it forwards at
        // once, to a source that nobody has seen yet.
        unsafe { shadow.callback.register(StopRef(Target::InPlace(self))) };
        token
    }
}

impl Drop for InPlaceStop {
    fn drop(&mut self) {
        // While the state is still whole; field order alone would drop the state first. Without the lock: nobody
        // else is here.
        drop(self.shadow.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner()).take());
    }
}

impl fmt::Debug for InPlaceStop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InPlaceStop").field(&self.state).finish()
    }
}
