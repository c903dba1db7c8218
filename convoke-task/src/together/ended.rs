//! The end of one of several bodies in a task. The body is dropped before its outcome is reported.

use convoke_core::raw::Polled;
use convoke_core::{Outcome, Panic};

use crate::region::PlainRegion;

/// Returns the outcome of a body that was polled, if it has ended, after dropping the body. A panic of the
/// body, or of its destructor, is an outcome.
#[inline]
pub(crate) fn ended<T>(
    polled: Result<Polled<T>, Panic>,
    region: &PlainRegion,
    drop_body: impl FnOnce(),
) -> Option<Outcome<T>> {
    let outcome = match polled {
        Ok(Polled::Pending) => return None,
        Ok(Polled::Ready(value)) => Outcome::Value(value),
        Ok(Polled::Stopped) => Outcome::Stopped,
        Err(panic) => Outcome::Panicked(panic),
    };
    Some(match Panic::catch(|| region.within(drop_body)) {
        Ok(()) => outcome,
        Err(panic) => outcome.or_panic(panic),
    })
}
