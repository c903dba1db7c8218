//! The handles that see a stop request: the owned token and the borrowed one.

use core::fmt;
use std::time::Instant;

use super::source::Link;
use super::state::StopState;
use super::{InPlaceStop, OwnedStopCallback, StopCallback, StopReason};
use crate::frames::FrameAllocator;
use crate::frames::frame_arc::FrameArc;
use crate::out_of_line::{DropOutOfLine, LastUse, OutOfLine};

/// A handle that sees the requests of one [`StopSource`](super::StopSource). Cheap to clone, and it keeps the source alive.
///
/// The default token belongs to no source: no stop is ever requested through it, and it costs nothing.
#[doc(alias = "CancellationToken")]
pub struct StopToken {
    pub(super) parts: OutOfLine<TokenParts>,
}

#[derive(Clone)]
pub(super) struct TokenParts {
    pub(super) state: Option<FrameArc<StopState>>,
    /// Keeps a child registered with its parent for as long as there are tokens.
    pub(super) link: Option<FrameArc<Link>>,
}

impl StopToken {
    /// Creates the token through which no stop is ever requested.
    pub const fn never() -> Self {
        Self::of(TokenParts { state: None, link: None })
    }

    #[inline]
    pub(super) const fn of(parts: TokenParts) -> Self {
        Self { parts: OutOfLine::new(parts) }
    }

    /// Borrows the token.
    #[inline]
    pub fn as_ref(&self) -> StopRef<'_> {
        match &self.parts.state {
            None => StopRef(Target::Never),
            Some(state) => StopRef(Target::Shared(state, self)),
        }
    }

    /// Returns true if a stop was requested.
    #[doc(alias = "is_cancelled")]
    #[inline]
    pub fn stop_requested(&self) -> bool {
        self.as_ref().stop_requested()
    }

    /// Returns true if a stop was requested, or can still be: while there is a [`StopSource`](super::StopSource) of this token, or
    /// of a parent. False for the token of no source, and when all sources were dropped without a request.
    pub fn stop_possible(&self) -> bool {
        self.as_ref().stop_possible()
    }

    /// Returns the reason of the stop request, or `None` if there was none.
    pub fn reason(&self) -> Option<StopReason> {
        self.as_ref().reason()
    }

    /// Returns the time at which a stop will be requested at the latest, if there is a deadline.
    pub fn deadline(&self) -> Option<Instant> {
        self.as_ref().deadline()
    }

    /// Creates a callback that owns this token. Pin it and call [`register`](OwnedStopCallback::register).
    pub fn on_stop<F: FnOnce(StopReason) + Send + 'static>(self, f: F) -> OwnedStopCallback<F> {
        OwnedStopCallback::new(self, f)
    }
}

impl DropOutOfLine for TokenParts {
    #[inline(never)]
    fn drop_out_of_line(parts: LastUse<'_, Self>) {
        parts.drop_here();
    }

    // A token without a state has no link either.
    #[inline]
    fn has_something_to_drop(&mut self) -> bool {
        self.state.is_some()
    }
}

impl Clone for StopToken {
    #[inline]
    fn clone(&self) -> Self {
        Self::of((*self.parts).clone())
    }
}

impl Default for StopToken {
    fn default() -> Self {
        Self::never()
    }
}

impl fmt::Debug for StopToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TokenParts { state, link } = &*self.parts;
        f.debug_struct("StopToken").field("state", state).field("link", link).finish()
    }
}

/// Compares by source: two tokens are equal if they are of the same one.
impl PartialEq for StopToken {
    fn eq(&self, other: &Self) -> bool {
        match (&self.parts.state, &other.parts.state) {
            (None, None) => true,
            (Some(a), Some(b)) => FrameArc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl Eq for StopToken {}

/// A borrowed [`StopToken`], as an environment hands it out. Free to copy; [`to_token`](StopRef::to_token)
/// turns it into an owned one.
#[derive(Clone, Copy, Debug)]
pub struct StopRef<'a>(pub(super) Target<'a>);

#[derive(Clone, Copy, Debug)]
pub(super) enum Target<'a> {
    Never,
    Shared(&'a StopState, &'a StopToken),
    InPlace(&'a InPlaceStop),
}

impl<'a> StopRef<'a> {
    /// Creates the token through which no stop is ever requested.
    pub const fn never() -> Self {
        Self(Target::Never)
    }

    #[inline]
    pub(super) fn state(self) -> Option<&'a StopState> {
        match self.0 {
            Target::Never => None,
            Target::Shared(state, _) => Some(state),
            Target::InPlace(stop) => Some(stop.state()),
        }
    }

    /// Returns true if a stop was requested.
    #[inline]
    pub fn stop_requested(self) -> bool {
        self.state().is_some_and(StopState::stop_requested)
    }

    /// Returns true if a stop was requested, or can still be: see [`StopToken::stop_possible`].
    pub fn stop_possible(self) -> bool {
        let (state, token) = match self.0 {
            Target::Never => return false,
            Target::InPlace(_) => return true,
            Target::Shared(state, token) => (state, token),
        };
        // The ancestors in a loop: a chain of sources may be longer than the stack is deep.
        let parent = |token: &&'a StopToken| token.parts.link.as_ref().map(|link| link.parent());
        let mut tokens = core::iter::successors(parent(&token), parent);
        state.stop_possible()
            || tokens.any(|token| token.parts.state.as_ref().is_some_and(|state| state.stop_possible()))
    }

    /// Returns the reason of the stop request, or `None` if there was none.
    pub fn reason(self) -> Option<StopReason> {
        self.state().and_then(StopState::reason)
    }

    /// Returns the time at which a stop will be requested at the latest, if there is a deadline.
    pub fn deadline(self) -> Option<Instant> {
        self.state().and_then(StopState::deadline)
    }

    /// Returns an owned token. If the source lies inside an operation, the first call creates a linked source
    /// in memory of this allocator, which stops when that source does.
    #[inline]
    pub(crate) fn to_token_in(self, allocator: &FrameAllocator) -> StopToken {
        match self.0 {
            Target::Never => StopToken::never(),
            Target::Shared(_, token) => token.clone(),
            Target::InPlace(stop) => stop.to_token(allocator),
        }
    }

    /// Creates a callback that borrows this token. Pin it and call [`register`](StopCallback::register).
    #[inline]
    pub fn on_stop<F: FnOnce(StopReason) + Send + 'static>(self, f: F) -> StopCallback<'a, F> {
        StopCallback::new(self, f)
    }
}
