//! A signal that arrives while a task waits for the next one: it is received exactly once.

use std::sync::Arc;

use crate::model::{Reached, explore};
use convoke_core::raw::sync::thread;
use convoke_net::signal::{Signal, SignalHub, Signals};
use convoke_testing::workshop::polled_by_hand::PolledByHand as ByHand;

const ONE: Signal = Signal::HANGUP;
const OTHER: Signal = Signal::TERMINATE;

/// Waits for the next signal on this thread.
fn next(signals: &mut Signals) -> Signal {
    ByHand::new(signals.next()).wait()
}

#[test]
fn two_signals_that_come_while_they_are_asked_for_are_both_heard_of() {
    static WAITED: Reached = Reached::new();
    static WAS_THERE: Reached = Reached::new();
    explore(3, || {
        let hub = Arc::new(SignalHub::new());
        let mut signals = hub.subscribe([ONE, OTHER]).unwrap();
        let comes = thread::spawn(move || {
            hub.hear(ONE);
            hub.hear(OTHER);
        });
        let at_once = signals.try_next();
        WAS_THERE.here_if(at_once.is_some());
        WAITED.here_if(at_once.is_none());
        let first = at_once.unwrap_or_else(|| next(&mut signals));
        assert_eq!((first, next(&mut signals)), (ONE, OTHER), "in the order in which they came");
        comes.join().unwrap();
        assert_eq!(signals.try_next(), None, "each once");
    });
    WAITED.assert("it was asked for before it came");
    WAS_THERE.assert("it came before");
}

#[test]
fn a_signal_that_comes_again_is_one_more_or_the_same_and_never_lost() {
    static TWICE: Reached = Reached::new();
    static ONCE: Reached = Reached::new();
    explore(3, || {
        let hub = Arc::new(SignalHub::new());
        let mut signals = hub.subscribe([ONE]).unwrap();
        let comes = thread::spawn(move || {
            hub.hear(ONE);
            hub.hear(ONE);
        });
        assert_eq!(next(&mut signals), ONE);
        comes.join().unwrap();
        let again = signals.try_next();
        TWICE.here_if(again.is_some());
        ONCE.here_if(again.is_none());
        assert!(again.is_none() || signals.try_next().is_none());
    });
    TWICE.assert("the first was taken before the second came");
    ONCE.assert("they were one");
}
