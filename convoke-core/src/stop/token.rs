//! Seeing a stop request: the owned token and the borrowed one.

use std::time::Instant;

use super::source::Link;
use super::state::StopState;
use super::{InPlaceStop, OwnedStopCallback, StopCallback, StopReason, StopSource};
use crate::sync::Arc;

/// Sees the requests of one [`StopSource`]. Cheap to clone, may be kept for as long as one likes.
///
/// The default token is that of nobody: no stop will ever be requested through it, and it costs nothing.
#[doc(alias = "CancellationToken")]
#[derive(Clone, Debug, Default)]
pub struct StopToken {
    pub(super) state: Option<Arc<StopState>>,
    /// Keeps a child listening to its parent for as long as there are tokens.
    pub(super) link: Option<Arc<Link>>,
}

impl StopToken {
    /// The token through which no stop is ever requested.
    pub const fn never() -> Self {
        Self { state: None, link: None }
    }

    /// The same token, borrowed.
    #[inline]
    pub fn as_ref(&self) -> StopRef<'_> {
        match &self.state {
            None => StopRef(Target::Never),
            Some(state) => StopRef(Target::Shared(state, self)),
        }
    }

    /// Whether a stop was requested.
    #[doc(alias = "is_cancelled")]
    #[inline]
    pub fn stop_requested(&self) -> bool {
        self.as_ref().stop_requested()
    }

    /// Whether a stop can ever be requested.
    pub fn stop_possible(&self) -> bool {
        self.as_ref().stop_possible()
    }

    /// Why a stop was requested, if it was.
    pub fn reason(&self) -> Option<StopReason> {
        self.as_ref().reason()
    }

    /// When a stop will be requested at the latest, if that is known.
    pub fn deadline(&self) -> Option<Instant> {
        self.as_ref().deadline()
    }

    /// A new source that stops when this token's does, but not the other way round.
    pub fn child(&self) -> StopSource {
        StopSource::child_of(self)
    }

    /// A callback that keeps its token. See [`StopCallback`].
    pub fn on_stop<F: FnOnce(StopReason) + Send + 'static>(self, f: F) -> OwnedStopCallback<F> {
        OwnedStopCallback::new(self, f)
    }
}

/// Two tokens are equal if they are of the same source.
impl PartialEq for StopToken {
    fn eq(&self, other: &Self) -> bool {
        match (&self.state, &other.state) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl Eq for StopToken {}

/// A borrowed [`StopToken`]: what an environment hands out. Free to copy; to keep it, ask for
/// [`to_token`](StopRef::to_token).
#[derive(Clone, Copy, Debug)]
pub struct StopRef<'a>(pub(super) Target<'a>);

#[derive(Clone, Copy, Debug)]
pub(super) enum Target<'a> {
    Never,
    Shared(&'a StopState, &'a StopToken),
    InPlace(&'a InPlaceStop),
}

impl<'a> StopRef<'a> {
    /// The token through which no stop is ever requested.
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

    /// Whether a stop was requested.
    #[inline]
    pub fn stop_requested(self) -> bool {
        self.state().is_some_and(StopState::stop_requested)
    }

    /// Whether a stop can ever be requested.
    #[inline]
    pub fn stop_possible(self) -> bool {
        self.state().is_some()
    }

    /// Why a stop was requested, if it was.
    pub fn reason(self) -> Option<StopReason> {
        self.state().and_then(StopState::reason)
    }

    /// When a stop will be requested at the latest, if that is known.
    pub fn deadline(self) -> Option<Instant> {
        self.state().and_then(StopState::deadline)
    }

    /// A token to keep. If the source lives inside an operation, the first call makes a linked copy of it on
    /// the heap, which stops when that source does.
    pub fn to_token(self) -> StopToken {
        match self.0 {
            Target::Never => StopToken::never(),
            Target::Shared(_, token) => token.clone(),
            Target::InPlace(stop) => stop.to_token(),
        }
    }

    /// A callback that borrows its token. See [`StopCallback`].
    #[inline]
    pub fn on_stop<F: FnOnce(StopReason) + Send + 'static>(self, f: F) -> StopCallback<'a, F> {
        StopCallback::new(self, f)
    }
}
