//! A stop source inside an operation: no allocation, no reference count. Its tokens are borrowed. An owned
//! token is that of a linked source in memory of a frame allocator, which is created when it is first asked
//! for.
//!
//! Rules for the owner of an [`InPlaceStop`]:
//! 1. It does not move from the first call of `token` on.
//! 2. It is not dropped while a callback of others is registered with it, or while `request_stop` runs.

#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomPinned;
use std::time::Instant;

use super::source::Forward;
use super::state::StopState;
use super::token::Target;
use super::{RawCallback, StopReason, StopRef, StopSource, StopToken};
use crate::frames::FrameAllocator;
use crate::frames::frame_box::FrameBox;
use crate::sync::{Mutex, MutexGuard};

/// A stop source that lies in its owner and does not move once it is in use.
///
/// Its owner does not drop it while a callback is registered with it, nor while
/// [`request_stop`](InPlaceStop::request_stop) runs. (`Children` in `convoke::raw` does this for operations
/// with children.)
pub struct InPlaceStop {
    state: StopState,
    linked: Mutex<Option<FrameBox<Linked>>>,
    /// Makes the type not `Unpin`, so that `&mut self` is not exclusive for the compiler: dropping `linked`
    /// writes to the list in `state` through a pointer, and the other way round.
    _pinned: PhantomPinned,
}

/// The linked source. The callback comes first: dropping it removes it from the list of the
/// `InPlaceStop`.
struct Linked {
    callback: RawCallback<Forward>,
    source: StopSource,
}

impl InPlaceStop {
    /// Creates a source that announces its owner's deadline.
    pub fn new(deadline: Option<Instant>) -> Self {
        Self { state: StopState::new(deadline), linked: Mutex::new(None), _pinned: PhantomPinned }
    }

    /// Returns the token of this source.
    ///
    /// # Safety
    /// The source does not move from here on: the linked source that the token may create points back to it.
    #[inline]
    pub unsafe fn token(&self) -> StopRef<'_> {
        StopRef(Target::InPlace(self))
    }

    /// Requests a stop and runs the callbacks on this thread. Returns true if this was the first request.
    pub fn request_stop(&self, reason: StopReason) -> bool {
        self.state.request_stop(reason)
    }

    pub(crate) fn state(&self) -> &StopState {
        &self.state
    }

    // Not inlined: most tokens are not in place.
    #[inline(never)]
    pub(super) fn to_token(&self, allocator: &FrameAllocator) -> StopToken {
        if let Some(linked) = &*self.lock() {
            return linked.source.token();
        }
        // Without the lock: the allocator is code of the program, and may ask for this token.
        let source = StopSource::new_in(allocator, self.state.deadline());
        let token = source.token();
        let forward = Forward(token.parts.state.clone().expect("every source is created with a state"));
        let new = FrameBox::new_in(allocator.clone(), Linked { callback: RawCallback::new(forward), source });
        // Dropped before `new`, if that is not needed.
        let mut linked = self.lock();
        if let Some(first) = &*linked {
            return first.source.token();
        }
        let linked = linked.insert(new);
        // SAFETY: rule 1: we do not move, as the `StopRef` that calls this came from `token`. The callback
        // lies in a box that `drop` below destroys before the state, and the mutex makes this the only
        // registration. If a stop was requested already, it forwards at once, to a source that has no other
        // handles yet.
        unsafe { linked.callback.register(StopRef(Target::InPlace(self))) };
        token
    }

    fn lock(&self) -> MutexGuard<'_, Option<FrameBox<Linked>>> {
        self.linked.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Drop for InPlaceStop {
    fn drop(&mut self) {
        // Before the state: in the order of the fields the state would be dropped first. Needs no lock, as
        // `&mut self` is exclusive between threads.
        drop(self.linked.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner()).take());
    }
}

impl fmt::Debug for InPlaceStop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InPlaceStop").field(&self.state).finish()
    }
}
