//! Every order in which algorithms with several children, or several threads, can be completed and stopped.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use convoke_core::raw::Runnable;
use convoke_sender::prelude::*;
use convoke_sender::testing::{Connected, Gate};
use loom::thread;

type Door = Gate<u8, &'static str>;

/// Runs the model and returns the outcomes that were reached.
fn reached<V: std::fmt::Debug, E: std::fmt::Debug>(
    model: impl Fn() -> Outcome<V, E> + Send + Sync + 'static,
) -> BTreeSet<String> {
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let note = seen.clone();
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(2);
    builder.check(move || {
        let outcome = model();
        note.lock().unwrap().insert(format!("{outcome:?}"));
    });
    Mutex::into_inner(Arc::into_inner(seen).expect("the model is over")).unwrap()
}

fn set<const N: usize>(outcomes: [&str; N]) -> BTreeSet<String> {
    outcomes.map(str::to_owned).into()
}

#[test]
fn when_all_between_a_value_an_error_and_a_stop() {
    let reached = reached(|| {
        let (first, second, source) = (Door::new(), Door::new(), StopSource::new());
        let running = Connected::stoppable(when_all((first.sender(), second.sender())), &source).start();
        let failing = thread::spawn(move || first.complete(Outcome::Error("e")));
        let stopping = thread::spawn(move || source.request_stop(StopReason::Requested));
        second.complete(Outcome::Value(2));
        failing.join().unwrap();
        stopping.join().unwrap();
        running.outcome()
    });
    assert_eq!(reached, set([r#"Error("e")"#, "Stopped"]));
}

#[test]
fn when_any_between_two_values() {
    let reached = reached(|| {
        let (first, second) = (Door::new(), Door::new());
        let running = Connected::new(when_any((first.sender(), second.sender()))).start();
        let other = thread::spawn(move || first.complete(Outcome::Value(1)));
        second.complete(Outcome::Value(2));
        other.join().unwrap();
        running.outcome()
    });
    assert_eq!(reached, set(["Value(1)", "Value(2)"]));
}

#[test]
fn stop_when_between_its_sender_and_its_trigger() {
    let reached = reached(|| {
        let (work, trigger) = (Door::new(), Door::new());
        let running = Connected::new(work.sender().stop_when(trigger.sender())).start();
        let other = thread::spawn(move || trigger.complete(Outcome::Value(0)));
        work.complete(Outcome::Value(1));
        other.join().unwrap();
        running.outcome()
    });
    assert_eq!(reached, set(["Stopped", "Value(1)"]));
}

#[test]
fn split_between_its_work_and_a_consumer_that_leaves() {
    let reached = reached(|| {
        let (gate, source) = (Door::new(), StopSource::new());
        let running = Connected::stoppable(gate.sender().split(), &source).start();
        let other = thread::spawn(move || source.request_stop(StopReason::Requested));
        gate.complete(Outcome::Value(1));
        other.join().unwrap();
        running.outcome()
    });
    assert_eq!(reached, set(["Stopped", "Value(1)"]));
}

#[test]
fn a_boxed_sender_that_is_completed_while_it_is_started() {
    let reached = reached(|| {
        let gate = Door::new();
        let completing = {
            let gate = gate.clone();
            thread::spawn(move || gate.complete(Outcome::Value(1)))
        };
        let second = gate.clone();
        let sender = gate.sender().let_value(move |v| second.sender().then(move |w| (v, w)).boxed()).boxed();
        let running = Connected::new(sender).start();
        completing.join().unwrap();
        while !running.is_complete() {
            gate.complete(Outcome::Value(2));
        }
        running.outcome()
    });
    assert_eq!(reached, set(["Value((1, 2))", "Value((2, 2))"]));
}

#[test]
fn a_round_that_is_completed_while_it_is_started() {
    let reached = reached(|| {
        let gate = Gate::<ControlFlow<u8>>::new();
        let completing = {
            let gate = gate.clone();
            thread::spawn(move || gate.complete(Outcome::Value(ControlFlow::Continue(()))))
        };
        let rounds = gate.clone();
        let running = Connected::new(repeat_until(move || rounds.sender())).start();
        let rounds = 1 + u8::from(completing.join().unwrap());
        gate.complete(Outcome::Value(ControlFlow::Break(rounds)));
        running.outcome()
    });
    assert_eq!(reached, set(["Value(1)", "Value(2)"]));
}

/// An executor with a thread for each piece of work.
#[derive(Clone, PartialEq)]
struct Threads;

impl Executor for Threads {
    fn post(&self, runnable: Runnable) {
        thread::spawn(|| runnable.run());
    }

    fn parallelism(&self) -> usize {
        2
    }
}

#[test]
fn bulk_between_its_runners() {
    let reached = reached(|| {
        let sender = just([const { AtomicUsize::new(0) }; 3]).bulk(3, |index, hits| {
            hits[index].fetch_add(1, Ordering::Relaxed);
        });
        let running = Connected::with_env(sender, Env::from(Threads)).start();
        while !running.is_complete() {
            thread::yield_now();
        }
        running.outcome()
    });
    assert_eq!(reached, set(["Value([1, 1, 1])"]));
}
