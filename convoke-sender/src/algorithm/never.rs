//! `never()`: completes only when it is stopped.

#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomData;
use core::pin::Pin;

use crate::operation::{Completion, Listening, Pending, Starting, Until};
use crate::{Receiver, Sender};
use convoke_core::raw::OnStop;
use convoke_core::stop::StopReason;
use convoke_core::{Never, Outcome};

/// Makes a sender that completes only when a stop is requested. In an environment that cannot stop it never
/// completes.
///
/// - *Completes with* stopped; never with a value, never with an error.
/// - *If dropped* before it starts, nothing happens.
/// - *Runs on* the thread that requests the stop.
///
/// ```
/// use convoke::sender::prelude::*;
///
/// let first = when_any((never::<u32>(), just(7)));
/// assert_eq!(sync_wait(first), Outcome::Value(7));
/// ```
pub fn never<V>() -> NeverSender<V> {
    NeverSender(PhantomData)
}

/// The sender of [`never()`].
#[must_use = "a sender does nothing until it is started"]
pub struct NeverSender<V>(PhantomData<fn() -> V>);

impl<V> fmt::Debug for NeverSender<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("never()")
    }
}

// SAFETY: rules 1 and 2 of `Sender`: `Pending` completes the receiver last, when `start` has registered the
// callback and that has run. Rule 3: `COMPLETES` is the default, `Anywhere`.
#[diagnostic::do_not_recommend]
unsafe impl<V> Sender for NeverSender<V> {
    type Value = V;
    type Error = Never;
    type Operation<R: Receiver<V, Never>> = Pending<NeverWait<V, R>>;

    fn connect<R: Receiver<V, Never>>(self, receiver: R) -> Self::Operation<R> {
        Pending::new(NeverWait(PhantomData), receiver)
    }
}

/// The wait of [`never()`]: for a stop request.
#[derive(Debug)]
pub struct NeverWait<V, R>(PhantomData<fn(R) -> V>);

/// The stop callback: it ends the wait.
#[derive(Debug)]
pub struct Stop(Completion<()>);

impl OnStop for Stop {
    fn on_stop(self, _: StopReason) {
        self.0.stopped();
    }
}

impl<V, R: Receiver<V, Never>> Until for NeverWait<V, R> {
    type Given = ();
    type GivenError = Never;
    type Value = V;
    type Error = Never;
    type Receiver = R;
    type Listening = Listening<Stop>;

    fn begin(self: Pin<&Self>, start: &Starting<'_, Self>, completion: Completion<()>) {
        start.listen(Stop(completion));
    }

    fn finish(self: Pin<&mut Self>, _: Outcome<()>) -> Outcome<V, Never> {
        Outcome::Stopped
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Connected, stopped_env};

    #[test]
    fn completes_as_stopped_before_and_after_the_start() {
        assert_eq!(Connected::with_env(never::<i32>(), stopped_env()).start().outcome(), Outcome::Stopped);
        let source = StopSource::new();
        let running = Connected::stoppable(never::<i32>(), &source).start();
        assert!(!running.is_complete());
        source.request_stop(StopReason::Requested);
        assert_eq!(running.outcome(), Outcome::Stopped);
    }

    #[test]
    fn dropping_it_unstarted_is_nothing() {
        drop(Connected::new(never::<i32>()));
    }
}
