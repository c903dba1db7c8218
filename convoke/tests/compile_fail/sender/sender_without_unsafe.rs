//! A sender that is queued although it has completed: writing one takes an `unsafe impl`.

use convoke_sender::Receiver;
use convoke_sender::prelude::*;

struct Liar<X>(X);

impl<X: Executor> Sender for Liar<X> {
    type Value = ();
    type Error = Never;
    const COMPLETES: convoke_sender::Completes = convoke_sender::Completes::Inline;
    type Operation<R: Receiver<(), Never>> =
        <convoke_sender::algorithm::schedule::Schedule<X> as Sender>::Operation<R>;

    fn connect<R: Receiver<(), Never>>(self, receiver: R) -> Self::Operation<R> {
        schedule(&self.0).connect(receiver)
    }
}

fn main() {}
