//! Destructors of the program that panic where an operation drops a value. The panic is the outcome, or is
//! ignored if there is another failure; every receiver is completed, and once.
use std::ops::ControlFlow;
use std::sync::Arc;

use convoke_core::testing::ByHand;
use convoke_sender::prelude::*;
use convoke_sender::testing::{Connected, Gate};

#[derive(Clone, Debug, PartialEq)]
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            Panic::new("bomb").resume();
        }
    }
}

fn bombed<V, E>() -> Outcome<V, E> {
    Outcome::Panicked(Panic::new("bomb"))
}

#[test]
fn in_the_operation_before_the_next() {
    let gate = || {
        let gate = Gate::<i32>::new();
        (gate.clone(), gate.holding(Bomb))
    };
    let (work, sender) = gate();
    let running = Connected::new(sender.let_value(|v| just(v + 1))).start();
    work.complete(Outcome::Value(1));
    assert_eq!(running.outcome(), bombed());

    let (work, sender) = gate();
    let running = Connected::new(sender.finally(just(()))).start();
    work.complete(Outcome::Value(1));
    assert_eq!(running.outcome(), bombed());

    let (work, sender) = gate();
    let running = Connected::new(sender.bulk(3, |_, _| ())).start();
    work.complete(Outcome::Stopped);
    assert_eq!(running.outcome(), bombed());

    let (work, sender) = gate();
    let by_hand = ByHand::new();
    let running = Connected::new(sender.continues_on(&by_hand)).start();
    work.complete(Outcome::Panicked(Panic::new("first")));
    by_hand.run_all();
    assert_eq!(running.outcome(), Outcome::Panicked(Panic::new("first")));

    let (work, sender) = gate();
    let running = Connected::new(sender.split()).start();
    work.complete(Outcome::Value(1));
    assert_eq!(running.outcome(), bombed());

    let (work, sender) = gate();
    let running = Connected::new(sender.boxed()).start();
    work.complete(Outcome::Value(1));
    assert_eq!(running.outcome(), bombed());

    let work = Gate::<i32>::new();
    let again = work.clone();
    let rounds = repeat_until(move || again.holding(Bomb).then(ControlFlow::<i32>::Break));
    let running = Connected::new(rounds).start();
    work.complete(Outcome::Value(1));
    assert_eq!(running.outcome(), bombed());
}

#[test]
fn in_a_closure_that_is_not_called() {
    let stopped = || Gate::<i32, i32>::new();
    let bomb = Bomb;
    let gate = stopped();
    let running = Connected::new(gate.sender().then(move |_| bomb.clone() == bomb)).start();
    gate.complete(Outcome::Stopped);
    assert_eq!(running.outcome(), bombed());

    let bomb = Bomb;
    let running = Connected::new(gate.sender().upon_error(move |_| i32::from(bomb.clone() == bomb))).start();
    gate.complete(Outcome::Value(1));
    assert_eq!(running.outcome(), bombed());

    let bomb = Bomb;
    let running = Connected::new(gate.sender().upon_stopped(move || i32::from(bomb.clone() == bomb))).start();
    gate.complete(Outcome::Value(1));
    assert_eq!(running.outcome(), bombed());

    let bomb = Bomb;
    let next = move |_| just(bomb.clone() == bomb).may_fail();
    let running = Connected::new(gate.sender().let_value(next)).start();
    gate.complete(Outcome::Error(1));
    assert_eq!(running.outcome(), bombed());
}

#[test]
fn in_an_outcome_that_is_not_needed() {
    let (first, second) = (Gate::<Bomb, Bomb>::new(), Gate::<Bomb, Bomb>::new());
    let running = Connected::new(when_any((first.deaf(), second.deaf())).into_result()).start();
    first.complete(Outcome::Error(Bomb));
    second.complete(Outcome::Error(Bomb));
    assert_eq!(running.outcome(), bombed());

    let work = Gate::<i32>::new();
    let running = Connected::new(work.deaf().stop_when(second.deaf())).start();
    second.complete(Outcome::Value(Bomb));
    work.complete(Outcome::Value(1));
    assert_eq!(running.outcome(), bombed());

    let failing = |gate: &Gate<i32, Bomb>| gate.deaf();
    let (one, other) = (Gate::new(), Gate::new());
    let running =
        Connected::new(when_all((failing(&one), failing(&other))).map_error(std::mem::forget)).start();
    one.complete(Outcome::Error(Bomb));
    other.complete(Outcome::Error(Bomb));
    assert_eq!(running.outcome(), Outcome::Error(()));

    let (one, other) = (Gate::<Bomb>::new(), Gate::<i32>::new());
    let running = Connected::new(when_all((one.deaf(), other.deaf())).then(|_| ())).start();
    one.complete(Outcome::Value(Bomb));
    other.complete(Outcome::Stopped);
    assert_eq!(running.outcome(), bombed());

    let clean_up = Gate::<()>::new();
    let running = Connected::new(just(Bomb).finally(clean_up.sender()).then(|_| ())).start();
    clean_up.complete(Outcome::Panicked(Panic::new("clean-up")));
    assert!(running.outcome().is_panicked());

    let source = StopSource::new();
    let running = Connected::stoppable(one.deaf().bulk(3, |_, _| ()).then(|_| ()), &source).start();
    source.request_stop(StopReason::Requested);
    one.complete(Outcome::Value(Bomb));
    assert_eq!(running.outcome(), bombed());

    let stored = Arc::new(std::sync::Mutex::new(None));
    let store = stored.clone();
    let sender = from_callback(move |handle: Completion<Bomb>| {
        *store.lock().unwrap() = Some(handle);
        Panic::new("function").resume()
    });
    let running = Connected::new(sender.then(|_| ())).start();
    let handle = stored.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
    handle.unwrap().value(Bomb);
    assert_eq!(running.outcome(), Outcome::Panicked(Panic::new("function")));
}
