//! The contract that every adaptor keeps, as one suite over a table of all of them: each outcome of the work,
//! at once and later, a stop before the start and while the work runs, a drop before the start, a closure that
//! panics, a completion on another thread, and the environment that the work sees. A behaviour that only one
//! adaptor has is tested beside that adaptor.

mod table;

use std::thread;

use convoke_core::env::{Changes, Local};
use convoke_core::testing::DropCount;
use convoke_sender::prelude::*;
use convoke_sender::testing::{Connected, Gate, all_outcomes, stopped_env};

use table::{End, Stop, Tokens, Work, adaptors};

type Door = Gate<i32, &'static str>;

/// The outcomes of the work.
fn ends() -> [End; 4] {
    all_outcomes(1, "e").map(|(outcome, _)| outcome)
}

#[test]
fn every_outcome_of_work_that_completes_at_once_becomes_what_the_adaptor_says() {
    for adaptor in adaptors() {
        for (outcome, work) in all_outcomes(1, "e") {
            let running = Connected::new((adaptor.wrap)(work.boxed(), &Tokens::default())).start();
            assert_eq!(running.outcome(), (adaptor.expect)(outcome), "{}", adaptor.name);
        }
    }
}

#[test]
fn every_outcome_of_work_that_completes_later_becomes_what_the_adaptor_says() {
    for adaptor in adaptors() {
        for (end, outcome) in ends().into_iter().zip(ends()) {
            let gate = Door::new();
            let running = Connected::new((adaptor.wrap)(gate.sender().boxed(), &Tokens::default())).start();
            assert!(!running.is_complete(), "{}", adaptor.name);
            assert!(gate.complete(end), "{} has started its work", adaptor.name);
            assert_eq!(running.outcome(), (adaptor.expect)(outcome), "{}", adaptor.name);
        }
    }
}

#[test]
fn a_stop_before_the_start_reaches_the_work_or_leaves_it_unstarted() {
    for adaptor in adaptors() {
        let gate = Door::new();
        let sender = (adaptor.wrap)(gate.sender().boxed(), &Tokens::default());
        let running = Connected::with_env(sender, stopped_env()).start();
        let end = match adaptor.stop {
            Stop::Reaches => Outcome::Stopped,
            Stop::IsShielded => {
                assert_eq!((gate.is_waiting(), gate.asked_to_stop()), (true, None), "{}", adaptor.name);
                gate.complete(Outcome::Value(1));
                Outcome::Value(1)
            }
        };
        assert_eq!(running.outcome(), (adaptor.expect)(end), "{}", adaptor.name);
    }
}

#[test]
fn a_stop_while_the_work_runs_reaches_it_unless_it_is_shielded() {
    for adaptor in adaptors() {
        let (gate, source) = (Door::new(), StopSource::new());
        let sender = (adaptor.wrap)(gate.sender().boxed(), &Tokens::default());
        let running = Connected::stoppable(sender, &source).start();
        assert!(!running.is_complete(), "{}", adaptor.name);
        source.request_stop(StopReason::Requested);
        let end = match adaptor.stop {
            Stop::Reaches => {
                assert!(gate.asked_to_stop().is_some(), "{}", adaptor.name);
                Outcome::Stopped
            }
            Stop::IsShielded => {
                assert_eq!((running.is_complete(), gate.asked_to_stop()), (false, None), "{}", adaptor.name);
                gate.complete(Outcome::Value(1));
                Outcome::Value(1)
            }
        };
        assert_eq!(running.outcome(), (adaptor.expect)(end), "{}", adaptor.name);
    }
}

#[test]
fn work_that_ignores_a_stop_runs_to_its_own_end() {
    for adaptor in adaptors() {
        let (gate, source) = (Door::new(), StopSource::new());
        let sender = (adaptor.wrap)(gate.deaf().boxed(), &Tokens::default());
        let running = Connected::stoppable(sender, &source).start();
        source.request_stop(StopReason::Requested);
        assert!(!running.is_complete(), "{} waits for its work", adaptor.name);
        gate.complete(Outcome::Value(1));
        assert_eq!(running.outcome(), (adaptor.after_ignored_stop)(Outcome::Value(1)), "{}", adaptor.name);
    }
}

#[test]
fn dropping_it_before_the_start_drops_work_and_closures_and_runs_nothing() {
    for adaptor in adaptors() {
        let (gate, work, closures) = (Door::new(), DropCount::new(), Tokens::default());
        let sender = (adaptor.wrap)(gate.holding(work.token()).boxed(), &closures);
        assert_eq!(work.dropped(), 0, "{}", adaptor.name);
        drop(sender);
        assert_eq!(work.dropped(), 1, "{}: the sender is dropped", adaptor.name);
        closures.assert_dropped(adaptor.name);
        let (work, closures) = (DropCount::new(), Tokens::default());
        drop(Connected::new((adaptor.wrap)(gate.holding(work.token()).boxed(), &closures)));
        assert_eq!(work.dropped(), 1, "{}: the operation is dropped", adaptor.name);
        closures.assert_dropped(adaptor.name);
        assert!(!gate.is_waiting(), "{}: the work was not started", adaptor.name);
    }
}

#[test]
fn a_completed_operation_keeps_nothing() {
    for adaptor in adaptors() {
        for (end, _) in ends().into_iter().zip(ends()) {
            let (gate, work, closures) = (Door::new(), DropCount::new(), Tokens::default());
            let sender = (adaptor.wrap)(gate.holding(work.token()).boxed(), &closures);
            let running = Connected::new(sender).start();
            gate.complete(end);
            drop(running.outcome());
            assert_eq!(work.dropped(), 1, "{}", adaptor.name);
            closures.assert_dropped(adaptor.name);
        }
    }
}

#[test]
fn a_panic_of_a_closure_is_the_outcome() {
    let mut tried = std::collections::BTreeSet::new();
    for adaptor in adaptors() {
        let Some((end, wrap)) = adaptor.panics else { continue };
        for (outcome, work) in all_outcomes(1, "e").into_iter().filter(|(outcome, _)| end(outcome)) {
            let running = Connected::new(wrap(work.boxed())).start();
            let expected = Outcome::Panicked(Panic::new("closure"));
            assert_eq!(running.outcome(), expected, "{} after {outcome:?}", adaptor.name);
            tried.insert(adaptor.name);
        }
    }
    assert_eq!(tried.len(), 18, "every adaptor with a closure was tried: {tried:?}");
}

#[test]
fn it_completes_once_when_another_thread_completes_its_work() {
    let rounds = if cfg!(miri) { 1 } else { 50 };
    for adaptor in adaptors() {
        for _ in 0..rounds {
            let gate = Door::new();
            let opener = gate.clone();
            let opener = thread::spawn(move || {
                while !opener.complete(Outcome::Value(1)) {
                    thread::yield_now();
                }
            });
            let sender = (adaptor.wrap)(gate.sender().boxed(), &Tokens::default());
            // A second completion fails in `Connected`.
            let outcome = Connected::new(sender).start().wait();
            assert_eq!(outcome, (adaptor.expect)(Outcome::Value(1)), "{}", adaptor.name);
            opener.join().unwrap();
        }
    }
}

#[test]
fn the_work_sees_the_environment_around() {
    static NUMBER: Local<i32> = Local::inherited("number");
    for adaptor in adaptors() {
        let seen = read_env(|env| env.local(&NUMBER).copied().unwrap_or(0)).may_fail().boxed();
        let env = Env::new().with(Changes::new().local(&NUMBER, 41));
        let running = Connected::with_env((adaptor.wrap)(seen, &Tokens::default()), env).start();
        assert_eq!(running.outcome(), (adaptor.expect)(Outcome::Value(41)), "{}", adaptor.name);
    }
}

#[test]
fn every_adaptor_is_in_the_table_once() {
    let mut names: Vec<_> = adaptors().iter().map(|adaptor| adaptor.name).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!((names.len(), count), (count, 41));
    let _: fn(Work, &Tokens) -> Work = adaptors()[0].wrap;
}
