//! Children and runners on several threads, and the fields that they may touch.

#![allow(unsafe_code)]
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use convoke_core::raw::Runnable;
use convoke_core::testing::ByHand;
use convoke_sender::Receiver;
use convoke_sender::prelude::*;
use convoke_sender::testing::Connected;

/// A sender whose receiver counts the calls of its `env`.
struct AskedForEnv<'a, S>(S, &'a AtomicUsize);

/// The receiver of `AskedForEnv`.
struct Asked<'a, R>(R, &'a AtomicUsize);

// SAFETY: rules 1 to 3 of `Sender`: the operation is that of the sender, which keeps to them, with a receiver
// that, when it is completed, completes ours at once.
unsafe impl<'a, S: Sender> Sender for AskedForEnv<'a, S> {
    type Value = S::Value;
    type Error = S::Error;
    type Operation<R: Receiver<S::Value, S::Error>> = S::Operation<Asked<'a, R>>;

    fn connect<R: Receiver<S::Value, S::Error>>(self, receiver: R) -> Self::Operation<R> {
        self.0.connect(Asked(receiver, self.1))
    }
}

impl<V, E, R: Receiver<V, E>> Receiver<V, E> for Asked<'_, R> {
    fn complete(self, outcome: Outcome<V, E>) {
        self.0.complete(outcome);
    }

    fn env(&self) -> &Env {
        self.1.fetch_add(1, Relaxed);
        self.0.env()
    }
}

/// The number of calls of a bulk.
const COUNT: usize = if cfg!(miri) { 16 } else { 1000 };

/// An executor with a claimed parallelism that is run by hand, or that has a thread for each piece of work.
#[derive(Clone, PartialEq)]
struct Wide(Option<ByHand>, usize);

impl Executor for Wide {
    fn post(&self, runnable: Runnable) {
        match &self.0 {
            Some(by_hand) => by_hand.post(runnable),
            None => drop(std::thread::spawn(|| runnable.run())),
        }
    }

    fn parallelism(&self) -> usize {
        self.1
    }
}

fn hits() -> Vec<AtomicUsize> {
    (0..COUNT).map(|_| AtomicUsize::new(0)).collect()
}

fn hit(index: usize, hits: &impl AsRef<[AtomicUsize]>) {
    hits.as_ref()[index].fetch_add(1, Relaxed);
}

fn each_once(outcome: Outcome<Vec<AtomicUsize>>) -> bool {
    outcome.unwrap().into_iter().all(|hits| hits.into_inner() == 1)
}

#[test]
fn runners_of_a_bulk_share_the_calls() {
    for _ in 0..if cfg!(miri) { 3 } else { 300 } {
        let sender = just(hits()).bulk(COUNT, hit);
        assert!(each_once(Connected::with_env(sender, Env::from(Wide(None, 4))).start().wait()));
    }
}

#[test]
fn helpers_of_a_bulk_do_not_ask_the_receiver_which_need_not_be_sync() {
    let (by_hand, asked) = (ByHand::new(), AtomicUsize::new(0));
    let sender = AskedForEnv(just(hits()).bulk(COUNT, hit), &asked);
    let before = Cell::new(0);
    let outcome = Connected::with_env(sender, Env::from(Wide(Some(by_hand.clone()), 3))).meanwhile(|_| {
        before.set(asked.load(Relaxed));
        by_hand.run_all();
    });
    assert!(each_once(outcome));
    assert_eq!(asked.into_inner(), before.get());
}

#[test]
fn children_of_a_group_do_not_ask_the_receiver_which_need_not_be_sync() {
    let (by_hand, asked) = (ByHand::new(), AtomicUsize::new(0));
    let sender = AskedForEnv(when_all((schedule(&by_hand), schedule(&by_hand))), &asked);
    let before = Cell::new(0);
    let outcome = Connected::new(sender).meanwhile(|_| {
        before.set(asked.load(Relaxed));
        by_hand.run_all();
    });
    assert_eq!(outcome, Outcome::Value(((), ())));
    assert_eq!(asked.into_inner(), before.get());
}
