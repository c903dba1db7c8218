//! The handle that makes a stop request, and the link of a child source to its parent.

#![allow(unsafe_code)]

use core::fmt;
use std::time::Instant;

use super::state::{Onward, StopState};
use super::token::TokenParts;
use super::{RawCallback, StopReason, StopToken};
use crate::frames::FrameAllocator;
use crate::frames::frame_arc::FrameArc;
use crate::out_of_line::{DropOutOfLine, LastUse, OutOfLine};

/// The maker of a stop request. Its tokens see the request, and callbacks that are registered with them run.
///
/// A request is made once, with a reason. Dropping the source requests nothing. Clones are handles to the
/// same source.
///
/// ```
/// use convoke::{StopReason, StopSource};
///
/// let server = StopSource::new();
/// let connection = server.token().child();
///
/// connection.request_stop(StopReason::Named("client left"));
/// assert!(!server.token().stop_requested());
///
/// let other = server.token().child();
/// server.request_stop(StopReason::Shutdown);
/// assert_eq!(other.token().reason(), Some(StopReason::Shutdown));
/// assert_eq!(connection.token().reason(), Some(StopReason::Named("client left")));
/// ```
#[doc(alias = "CancellationToken")]
pub struct StopSource {
    token: OutOfLine<SourceToken>,
}

/// The token of a source. It counts the source until it is dropped.
struct SourceToken(StopToken);

impl SourceToken {
    fn state(&self) -> &FrameArc<StopState> {
        self.0.parts.state.as_ref().expect("every source is created with a state")
    }
}

impl Drop for SourceToken {
    fn drop(&mut self) {
        self.state().source_dropped();
    }
}

impl DropOutOfLine for SourceToken {
    #[inline(never)]
    fn drop_out_of_line(token: LastUse<'_, Self>) {
        token.drop_here();
    }
}

impl StopSource {
    /// Requests a stop and runs the callbacks on this thread. Returns true if this was the first request.
    ///
    /// # Panics
    /// If a callback panics, after all others have run.
    #[doc(alias = "cancel")]
    pub fn request_stop(&self, reason: StopReason) -> bool {
        self.state().request_stop(reason)
    }

    /// Returns a token that sees the requests of this source.
    pub fn token(&self) -> StopToken {
        self.token.0.clone()
    }

    /// Returns true if a stop was requested.
    pub fn stop_requested(&self) -> bool {
        self.token.0.stop_requested()
    }

    /// Creates a source without a parent, in memory of this allocator.
    pub fn new_in(allocator: &FrameAllocator, deadline: Option<Instant>) -> Self {
        let state = FrameArc::new_in(allocator, StopState::new(deadline));
        Self {
            token: OutOfLine::new(SourceToken(StopToken::of(TokenParts { state: Some(state), link: None }))),
        }
    }

    /// Creates a source that stops when `parent` does, in memory of this allocator. The earlier one of both deadlines
    /// counts.
    pub(crate) fn linked_in(
        allocator: &FrameAllocator,
        parent: &StopToken,
        deadline: Option<Instant>,
    ) -> Self {
        let deadline = match (parent.deadline(), deadline) {
            (Some(inherited), Some(own)) => Some(inherited.min(own)),
            (inherited, own) => inherited.or(own),
        };
        let mut source = Self::new_in(allocator, deadline);
        if parent.stop_possible() {
            source.token.0.parts.link = Some(Link::new(allocator, source.state().clone(), parent.clone()));
        }
        source
    }

    fn state(&self) -> &FrameArc<StopState> {
        self.token.state()
    }
}

impl fmt::Debug for StopSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StopSource").field("token", &self.token.0).finish()
    }
}

impl Clone for StopSource {
    fn clone(&self) -> Self {
        self.state().source_added();
        Self { token: OutOfLine::new(SourceToken(self.token())) }
    }
}

/// The registration of a child with its parent. Its callback owns the child's state, because the last token
/// of the child may be dropped inside the callbacks that the request runs.
///
/// 1. The callback is registered before the link is shared, and removed by the thread that drops the last
///    reference.
/// 2. Between the two nothing uses the callback but the parent's state.
pub(super) struct Link {
    callback: RawCallback<Forward>,
    parent: StopToken,
}

// SAFETY: rules 1 and 2: a shared link gives no access to the callback, which is the only field that is not
// `Sync`.
unsafe impl Sync for Link {}

/// Passes a request on to the state that it owns.
pub(super) struct Forward(pub(super) FrameArc<StopState>);

impl super::callback::OnStop for Forward {
    fn on_stop(self, reason: StopReason) {
        self.0.request_stop(reason);
    }

    fn pass_on(self, _: StopReason) -> Option<Onward> {
        Some(Onward::counted(self.0))
    }
}

impl Link {
    fn new(allocator: &FrameAllocator, child: FrameArc<StopState>, parent: StopToken) -> FrameArc<Self> {
        let link = FrameArc::new_in(allocator, Self { callback: RawCallback::new(Forward(child)), parent });
        // SAFETY: the callback lies in the `FrameArc`, so it does not move. `unlink` removes it while the parent
        // token beside it, which keeps the source alive, still exists.
        unsafe { link.callback.register(link.parent.as_ref()) };
        link
    }

    /// Returns the token of the parent.
    pub(super) fn parent(&self) -> &StopToken {
        &self.parent
    }

    /// Removes the callback and returns the parent token.
    fn unlink(&mut self) -> StopToken {
        // SAFETY: rule 1: `register` has returned before the link was shared, and `&mut self` shows that this
        // is the last reference. The parent token keeps the source alive until the line below.
        unsafe { self.callback.remove() };
        core::mem::take(&mut self.parent)
    }
}

/// Drops the links of its ancestors in a loop: a chain of sources may be longer than the stack is deep.
impl Drop for Link {
    fn drop(&mut self) {
        let mut token = self.unlink();
        // Two threads that drop the last two tokens of a source at once may both find it shared. The later
        // one then gets here once more, a level deeper, and goes on with the loop.
        while let Some(mut link) = token.parts.link.take()
            && let Some(last) = FrameArc::get_mut(&mut link)
        {
            token = last.unlink();
        }
    }
}

/// Leaves out the parent, which may have a parent too.
impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("callback", &self.callback).finish_non_exhaustive()
    }
}
