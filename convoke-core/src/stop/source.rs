//! Making a stop request.

#![allow(unsafe_code)]

use core::fmt;
use std::time::Instant;

use super::state::{Onward, StopState};
use super::{RawCallback, StopReason, StopToken};
use crate::sync::Arc;

/// Requests a stop, once, with a reason. Tokens of it see the request; callbacks registered with them are run.
///
/// Dropping the source requests nothing. It may be cloned; all clones are the same source.
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
#[derive(Clone, Debug)]
pub struct StopSource {
    token: StopToken,
}

impl StopSource {
    /// A source of its own, without a deadline.
    pub fn new() -> Self {
        Self::with_deadline_option(None)
    }

    /// A source that will be asked to stop at this time. The source does not look at a clock: whoever owns one
    /// makes the request; the deadline lets everybody below know of it.
    pub fn with_deadline(deadline: Instant) -> Self {
        Self::with_deadline_option(Some(deadline))
    }

    /// A source that stops when `parent` does. It inherits the parent's deadline.
    pub fn child_of(parent: &StopToken) -> Self {
        Self::linked(parent, None)
    }

    /// A source that stops when `parent` does and has a deadline; the nearer one counts.
    pub fn child_with_deadline(parent: &StopToken, deadline: Instant) -> Self {
        Self::linked(parent, Some(deadline))
    }

    /// Requests a stop and runs the callbacks on this thread. Says whether this was the first request.
    ///
    /// # Panics
    /// If a callback panics: after all the others have run.
    #[doc(alias = "cancel")]
    pub fn request_stop(&self, reason: StopReason) -> bool {
        self.state().request_stop(reason)
    }

    /// A token that sees this source.
    pub fn token(&self) -> StopToken {
        self.token.clone()
    }

    /// Whether a stop was requested.
    pub fn stop_requested(&self) -> bool {
        self.token.stop_requested()
    }

    fn with_deadline_option(deadline: Option<Instant>) -> Self {
        Self { token: StopToken { state: Some(Arc::new(StopState::new(deadline))), link: None } }
    }

    fn linked(parent: &StopToken, deadline: Option<Instant>) -> Self {
        let deadline = match (parent.deadline(), deadline) {
            (Some(inherited), Some(own)) => Some(inherited.min(own)),
            (inherited, own) => inherited.or(own),
        };
        let mut source = Self::with_deadline_option(deadline);
        if parent.stop_possible() {
            source.token.link = Some(Link::new(source.state().clone(), parent.clone()));
        }
        source
    }

    fn state(&self) -> &Arc<StopState> {
        self.token.state.as_ref().expect("a source has a state from its making")
    }
}

impl Default for StopSource {
    fn default() -> Self {
        Self::new()
    }
}

/// A child's place in its parent's list. The forwarding callback owns the child's state: the last token of the
/// child may go away inside the callbacks that the request runs.
pub(super) struct Link {
    callback: RawCallback<Forward>,
    parent: StopToken,
}

// SAFETY: a shared link is only kept; its callback is registered before it is shared and removed when the last
// reference is dropped.
unsafe impl Sync for Link {}

/// Passes a request on to the state it owns.
pub(super) struct Forward(pub(super) Arc<StopState>);

impl super::callback::OnStop for Forward {
    fn on_stop(self, reason: StopReason) {
        self.0.request_stop(reason);
    }

    fn pass_on(self, _: StopReason) -> Option<Onward> {
        Some(Onward::counted(self.0))
    }
}

impl Link {
    fn new(child: Arc<StopState>, parent: StopToken) -> Arc<Self> {
        let link = Arc::new(Self { callback: RawCallback::new(Forward(child)), parent });
        // SAFETY: the callback lives in the `Arc` and so does not move; `unlink` removes it before the parent token
        // beside it goes.
        unsafe { link.callback.register(link.parent.as_ref()) };
        link
    }

    /// Removes the callback and hands out the parent token.
    fn unlink(&mut self) -> StopToken {
        // SAFETY: `register` returned before anybody had this link, and the parent is still here. We are the owner:
        // the link is dropped.
        unsafe { self.callback.remove() };
        core::mem::take(&mut self.parent)
    }
}

/// Drops the parents above it in a loop: a chain of sources may be longer than a stack is deep.
impl Drop for Link {
    fn drop(&mut self) {
        let mut token = self.unlink();
        // Two threads that drop the last two tokens of a source at once may both find it shared. Then the later one
        // gets here once more, a level deeper, and goes on with the loop.
        while let Some(mut link) = token.link.take()
            && let Some(last) = Arc::get_mut(&mut link)
        {
            token = last.unlink();
        }
    }
}

/// Says nothing of the parent, which has a parent too.
impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("callback", &self.callback).finish_non_exhaustive()
    }
}
