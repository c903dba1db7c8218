//! `just_stopped()`: completes at once as stopped.

#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomData;

use super::just::{CompleteWith, JustOperation};
use crate::operation::Leaf;
use crate::{Completes, Receiver, Sender};
use convoke_core::{Never, Outcome};

/// Makes a sender that completes at once as stopped.
///
/// - *Completes with* stopped.
/// - *If dropped* before it starts, nothing happens.
/// - *Runs on* the thread that starts it.
///
/// ```
/// use convoke::sender::prelude::*;
///
/// assert_eq!(sync_wait(just_stopped::<u32>()), Outcome::Stopped);
/// ```
pub fn just_stopped<V>() -> JustStopped<V> {
    JustStopped(PhantomData)
}

/// The sender of [`just_stopped()`].
#[must_use = "a sender does nothing until it is started"]
pub struct JustStopped<V>(PhantomData<fn() -> V>);

impl<V> Clone for JustStopped<V> {
    fn clone(&self) -> Self {
        Self(PhantomData)
    }
}

impl<V> fmt::Debug for JustStopped<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JustStopped")
    }
}

// SAFETY: rules 1 to 3 of `Sender`: a leaf does one thing, in `start`: it completes the receiver, inline and
// last.
#[diagnostic::do_not_recommend]
unsafe impl<V: Send> Sender for JustStopped<V> {
    type Value = V;
    type Error = Never;
    const COMPLETES: Completes = Completes::Inline;
    type Operation<R: Receiver<V, Never>> = JustOperation<V, Never, R>;

    #[inline]
    fn connect<R: Receiver<V, Never>>(self, receiver: R) -> JustOperation<V, Never, R> {
        Leaf::new(CompleteWith { outcome: Outcome::Stopped, receiver })
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Connected, stopped_env};

    #[test]
    fn completes_as_stopped_in_any_environment() {
        assert_eq!(Connected::new(just_stopped::<u8>()).start().outcome(), Outcome::Stopped);
        assert_eq!(
            Connected::with_env(just_stopped::<u8>(), stopped_env()).start().outcome(),
            Outcome::Stopped
        );
    }

    #[test]
    fn dropping_it_unstarted_is_nothing() {
        drop(Connected::new(just_stopped::<u8>()));
    }
}
