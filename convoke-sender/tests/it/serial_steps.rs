//! Steps of a serial operation that start work in a loop, though they have no rendezvous for it.

#![allow(unsafe_code)]

use core::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use convoke::env::Env;
use convoke::raw::{Absent, Serial, SerialTurn, Steps};
use convoke::sender::prelude::*;
use convoke::sender::{CountingScope, OutcomeOf, Receiver, Sender, sync_wait};

/// Runs a sender once.
struct Once<S>(S);

// SAFETY: `Serial` keeps rules 1 and 2: it completes its receiver once, after the work has ended, and does not
// use itself afterwards. Rule 3: `COMPLETES` promises nothing.
unsafe impl<S: Sender> Sender for Once<S> {
    type Value = S::Value;
    type Error = S::Error;
    type Operation<R: Receiver<S::Value, S::Error>> = Serial<OnceSteps<S, R>>;

    fn connect<R: Receiver<S::Value, S::Error>>(self, receiver: R) -> Self::Operation<R> {
        Serial::new(OnceSteps(Some(self.0), PhantomData), (), receiver)
    }
}

struct OnceSteps<S, R>(Option<S>, PhantomData<R>);

impl<S: Sender, R: Receiver<S::Value, S::Error>> Steps for OnceSteps<S, R> {
    type Work = S;
    type Value = S::Value;
    type Error = S::Error;
    type Receiver = R;
    type Next = Absent<S::Value, S::Error>;
    type Shared = ();

    fn start(mut turn: SerialTurn<Self>) {
        let work = turn.parts().0.take().expect("it starts once");
        assert!(turn.run_in_loop(work).is_none(), "there is no rendezvous at which the turn could be left");
    }

    fn ended(turn: SerialTurn<Self>, outcome: OutcomeOf<S>) {
        turn.complete(outcome);
    }
}

/// The scope frees the operation when it completes, which is before `run_in_loop` returns. Miri sees an access after that.
#[test]
fn a_loop_without_a_rendezvous_does_not_touch_the_operation_after_its_end() {
    let ran = Arc::new(AtomicUsize::new(0));
    let scope = CountingScope::new();
    for number in [1, 20] {
        let ran = ran.clone();
        let work = Once(just(number)).then(move |number| _ = ran.fetch_add(number, Ordering::Relaxed));
        assert!(scope.spawn(work, &Env::new()).is_ok());
    }
    assert!(sync_wait(scope.join()).is_value());
    assert_eq!(ran.load(Ordering::Relaxed), 21);
}
