//! Work spawned into a counting scope: its environment, its one allocation, its stop, and its result.
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use convoke_core::env::{Changes, Local};
use convoke_core::testing::{ByHand, DropCount};
use convoke_exec::ThreadPool;
use convoke_sender::counting_scope::SpawnFuture;
use convoke_sender::prelude::*;
use convoke_sender::testing::{Connected, Gate, all_outcomes, stopped_env};
use convoke_sender::{CountingScope, sync_wait};
use convoke_testing::workshop::frames::Frames;

type Door = Gate<i32, &'static str>;

fn join(scope: &CountingScope) -> Outcome<(), Never> {
    Connected::new(scope.join()).start().outcome()
}

fn with_token(source: &StopSource) -> Env {
    Env::new().with(Changes::new().stop_token(source.token()))
}

/// Creates a scope, work at a gate in it, and the sender of its result.
fn future() -> (CountingScope, Door, SpawnFuture<i32, &'static str>) {
    let (scope, gate) = (CountingScope::new(), Door::new());
    let future = scope.named("work").spawn_future(gate.sender(), &Env::new()).unwrap();
    (scope, gate, future)
}

/// A value whose destructor panics.
struct Prickly;

impl Drop for Prickly {
    fn drop(&mut self) {
        panic!("prickly");
    }
}

#[test]
fn spawned_work_is_started_at_once_and_counted_until_it_completes() {
    let (scope, gate) = (CountingScope::new(), Gate::<()>::new());
    scope.spawn(gate.sender(), &Env::new()).unwrap();
    assert_eq!((gate.is_waiting(), scope.use_count()), (true, 1));
    gate.complete(Outcome::Stopped);
    assert_eq!((scope.use_count(), join(&scope)), (0, Outcome::Value(())));
}

#[test]
fn spawned_work_sees_its_environment_and_what_is_inherited() {
    static INHERITED: Local<u32> = Local::inherited("inherited");
    static LEFT: Local<u32> = Local::not_inherited("left");
    let (scope, by_hand, seen) = (CountingScope::new(), ByHand::new(), Arc::new(Mutex::new(None)));
    let env = Env::from(by_hand.clone()).with(Changes::new().local(&INHERITED, 1).local(&LEFT, 2));
    let read =
        |env: &Env| (env.executor().clone(), env.local(&INHERITED).copied(), env.local(&LEFT).copied());
    for stoppable in [false, true] {
        let store = seen.clone();
        let work = read_env(read).then(move |found| *store.lock().unwrap() = Some(found));
        let source = StopSource::new();
        let changes = Changes::new();
        let changes = if stoppable { changes.stop_token(source.token()) } else { changes };
        scope.spawn(work, &env.with(changes)).unwrap();
        assert_eq!(seen.lock().unwrap().take(), Some((ExecutorRef::new(by_hand.clone()), Some(1), None)));
    }
}

#[test]
fn spawned_work_stops_with_the_scope_and_with_its_environment() {
    let source = StopSource::new();
    for env in [Env::new(), with_token(&source)] {
        let (scope, gate) = (CountingScope::new(), Gate::<()>::new());
        scope.spawn(gate.sender(), &env).unwrap();
        assert!(scope.request_stop(StopReason::Shutdown));
        assert_eq!((gate.asked_to_stop(), scope.use_count()), (Some(StopReason::Shutdown), 0));
    }
    let (scope, one, other) = (CountingScope::new(), Gate::<()>::new(), Gate::<()>::new());
    scope.spawn(one.sender(), &with_token(&source)).unwrap();
    scope.spawn(other.sender(), &Env::new()).unwrap();
    source.request_stop(StopReason::Named("env"));
    assert_eq!(one.asked_to_stop(), Some(StopReason::Named("env")));
    assert_eq!(other.asked_to_stop(), None);
    let late = Gate::<()>::new();
    scope.spawn(late.sender(), &with_token(&source)).unwrap();
    assert_eq!(late.asked_to_stop(), Some(StopReason::Named("env")));
    other.complete(Outcome::Value(()));
}

#[test]
fn spawned_work_knows_the_deadline_of_its_environment() {
    let deadline = Instant::now() + Duration::from_secs(60);
    let (scope, source) = (CountingScope::new(), StopSource::with_deadline(deadline));
    let seen = scope.spawn_future(read_env(|env: &Env| env.stop().deadline()), &with_token(&source)).unwrap();
    assert_eq!(Connected::new(seen).start().outcome(), Outcome::Value(Some(deadline)));
}

#[test]
fn one_allocation_for_each_freed_before_the_scope_is_joined() {
    let (frames, source) = (Frames::at_most(10), StopSource::new());
    let stoppable = frames.env().with(Changes::new().stop_token(source.token()));
    for env in [frames.env(), stoppable] {
        let (scope, gate, before) = (CountingScope::new(), Gate::<()>::new(), frames.counts().1);
        scope.spawn(gate.sender(), &env).unwrap();
        let future = scope.spawn_future(just(1), &env).unwrap();
        assert_eq!(frames.counts(), (2, before + 2));
        drop(future);
        let at_join = frames.clone();
        let joining = Connected::new(scope.join().then(move |()| at_join.counts().0)).start();
        gate.complete(Outcome::Value(()));
        assert_eq!(joining.outcome(), Outcome::Value(0));
    }
}

#[test]
fn without_memory_the_sender_is_returned_and_nothing_is_counted() {
    let (scope, frames) = (CountingScope::new(), Frames::at_most(0));
    let error = scope.spawn(just(()), &frames.env()).unwrap_err();
    assert!(!error.is_closed() && error.to_string().contains("no memory"), "{error}");
    assert_eq!(Connected::new(error.into_sender()).start().outcome(), Outcome::Value(()));
    let error = scope.spawn_future(just(5), &frames.env()).unwrap_err();
    assert_eq!(sync_wait(error.into_sender()), Outcome::Value(5));
    assert_eq!(scope.use_count(), 0);
}

#[test]
fn a_closed_scope_returns_the_sender_and_runs_nothing() {
    let scope = CountingScope::new();
    assert_eq!(join(&scope), Outcome::Value(()));
    let ran = Arc::new(AtomicUsize::new(0));
    let counter = ran.clone();
    let count = just_from(move || _ = counter.fetch_add(1, Ordering::Relaxed));
    let error = scope.spawn(count, &Env::new()).unwrap_err();
    assert!(error.is_closed() && error.to_string().contains("closed"), "{error}");
    assert_eq!((ran.load(Ordering::Relaxed), scope.use_count()), (0, 0));
    assert_eq!(sync_wait(error.into_sender()), Outcome::Value(()));
    assert!(scope.spawn_future(just(5), &Env::new()).unwrap_err().is_closed());
}

#[test]
fn a_local_that_panics_when_it_is_dropped_keeps_no_scope_waiting() {
    static SHARP: Local<Mutex<Option<Prickly>>> = Local::inherited("sharp");
    let scope = CountingScope::new();
    let gate = Gate::<()>::new();
    let env = Env::new().with(Changes::new().local(&SHARP, Mutex::new(Some(Prickly))));
    scope.named("sharp").spawn(gate.sender(), &env).unwrap();
    drop(env);
    gate.complete(Outcome::Value(()));
    assert_eq!(join(&scope), Outcome::Value(()), "the panic was reported");
}

#[test]
fn every_door_passes_through_a_future_early_and_late() {
    for (outcome, sender) in all_outcomes(1, "e") {
        let scope = CountingScope::new();
        let future = scope.spawn_future(sender, &Env::new()).unwrap();
        assert_eq!(scope.use_count(), 0, "it has completed, and is no longer counted");
        assert_eq!(Connected::new(future).start().outcome(), outcome);
        assert_eq!(join(&scope), Outcome::Value(()), "the consumer has got the panic, not the scope");
    }
    for (outcome, _) in all_outcomes(1, "e") {
        let (scope, gate, future) = future();
        let running = Connected::new(future).start();
        assert_eq!((running.is_complete(), scope.use_count()), (false, 1));
        let expected = format!("{outcome:?}");
        gate.complete(outcome);
        assert_eq!((format!("{:?}", running.outcome()), scope.use_count()), (expected, 0));
    }
}

#[test]
fn the_result_outlives_the_scope() {
    let (scope, gate, future) = future();
    gate.complete(Outcome::Value(4));
    assert_eq!(join(&scope), Outcome::Value(()));
    drop(scope);
    assert_eq!(Connected::new(future).start().outcome(), Outcome::Value(4));
}

#[test]
fn the_count_goes_down_after_the_consumer_was_completed() {
    let (scope, gate, future) = future();
    let handle = scope.handle();
    let running = Connected::new(future.then(move |_| handle.use_count())).start();
    gate.complete(Outcome::Value(1));
    assert_eq!((running.outcome(), scope.use_count()), (Outcome::Value(1), 0));
}

#[test]
fn dropping_a_future_asks_its_work_alone_to_stop() {
    let (scope, gate, future) = future();
    let other = Gate::<()>::new();
    scope.spawn(other.sender(), &Env::new()).unwrap();
    drop(future);
    assert_eq!((gate.asked_to_stop(), other.asked_to_stop()), (Some(StopReason::Abandoned), None));
    assert_eq!(scope.use_count(), 1);
    other.complete(Outcome::Value(()));
}

#[test]
fn dropping_its_operation_unstarted_asks_the_work_to_stop_too() {
    let (_scope, gate, future) = future();
    drop(Connected::new(future));
    assert_eq!(gate.asked_to_stop(), Some(StopReason::Abandoned));
}

#[test]
fn the_scope_waits_for_abandoned_work_and_its_result_is_dropped() {
    let (scope, gate, count) = (CountingScope::new(), Gate::<i32>::new(), DropCount::new());
    let token = count.token();
    let future = scope.spawn_future(gate.deaf().then(move |_| token), &Env::new()).unwrap();
    drop(future);
    let joining = Connected::new(scope.join()).start();
    assert!(!joining.is_complete());
    gate.complete(Outcome::Value(1));
    assert_eq!((joining.outcome(), count.dropped()), (Outcome::Value(()), 1));
}

#[test]
fn a_result_that_is_not_used_is_dropped_with_the_future() {
    let (scope, count) = (CountingScope::new(), DropCount::new());
    let future = scope.spawn_future(just(count.token()), &Env::new()).unwrap();
    assert_eq!(count.dropped(), 0);
    drop(future);
    assert_eq!(count.dropped(), 1);
}

#[test]
fn a_stop_is_passed_on_to_the_work_and_its_outcome_at_once_is_the_outcome() {
    let (_scope, gate, future) = future();
    let source = StopSource::new();
    let running = Connected::stoppable(future, &source).start();
    source.request_stop(StopReason::Deadline);
    assert_eq!(gate.asked_to_stop(), Some(StopReason::Deadline));
    assert_eq!(running.outcome(), Outcome::Stopped);
    // Work that completes with a value when it is asked to stop.
    let (scope, gate, source) = (CountingScope::new(), Gate::<i32>::new(), StopSource::new());
    let future = scope.spawn_future(gate.sender().upon_stopped(|| 9), &Env::new()).unwrap();
    let running = Connected::stoppable(future, &source).start();
    source.request_stop(StopReason::Requested);
    assert_eq!(running.outcome(), Outcome::Value(9));
}

#[test]
fn a_stopped_future_does_not_wait_for_slow_work_but_the_scope_does() {
    let (scope, gate, source) = (CountingScope::new(), Gate::<i32>::new(), StopSource::new());
    let future = scope.spawn_future(gate.deaf(), &Env::new()).unwrap();
    let running = Connected::stoppable(future, &source).start();
    source.request_stop(StopReason::Requested);
    assert_eq!((running.outcome(), scope.use_count()), (Outcome::Stopped, 1));
    gate.complete(Outcome::Value(1));
    assert_eq!(scope.use_count(), 0);
}

#[test]
fn a_consumer_stopped_before_its_start_passes_that_on() {
    let (_scope, gate, future) = future();
    let source = StopSource::new();
    source.request_stop(StopReason::Requested);
    assert_eq!(Connected::stoppable(future, &source).start().outcome(), Outcome::Stopped);
    assert_eq!(gate.asked_to_stop(), Some(StopReason::Requested));
}

#[test]
fn a_result_that_is_ready_is_also_given_to_a_consumer_that_was_stopped() {
    let (_scope, gate, future) = future();
    gate.complete(Outcome::Value(2));
    let source = StopSource::new();
    source.request_stop(StopReason::Requested);
    assert_eq!(Connected::stoppable(future, &source).start().outcome(), Outcome::Value(2));
}

#[test]
fn a_future_stops_with_the_scope_and_with_its_environment() {
    let (scope, gate, future) = future();
    scope.request_stop(StopReason::Shutdown);
    assert_eq!(gate.asked_to_stop(), Some(StopReason::Shutdown));
    assert_eq!(Connected::new(future).start().outcome(), Outcome::Stopped);
    let (scope, gate, source) = (CountingScope::new(), Door::new(), StopSource::new());
    let future = scope.spawn_future(gate.sender(), &with_token(&source)).unwrap();
    source.request_stop(StopReason::Requested);
    assert_eq!(gate.asked_to_stop(), Some(StopReason::Requested));
    assert_eq!(Connected::new(future).start().outcome(), Outcome::Stopped);
}

#[test]
fn a_panic_without_a_consumer_goes_to_the_scope() {
    let expected = || Outcome::Panicked(Panic::new("`work` panicked: lost?"));
    let panicked = || Outcome::Panicked(Panic::new("lost?"));
    // Dropped after the work panicked.
    let (scope, gate, future_) = future();
    gate.complete(panicked());
    drop(future_);
    assert_eq!(join(&scope), expected());
    // Dropped before.
    let (scope, gate) = (CountingScope::new(), Door::new());
    drop(scope.named("work").spawn_future(gate.deaf(), &Env::new()).unwrap());
    gate.complete(panicked());
    assert_eq!(join(&scope), expected());
    // Stopped before.
    let (scope, gate, source) = (CountingScope::new(), Door::new(), StopSource::new());
    let future = scope.named("work").spawn_future(gate.deaf(), &Env::new()).unwrap();
    let running = Connected::stoppable(future, &source).start();
    source.request_stop(StopReason::Requested);
    assert_eq!(running.outcome(), Outcome::Stopped);
    gate.complete(panicked());
    assert_eq!(join(&scope), expected());
}

#[test]
fn a_value_that_panics_when_it_is_discarded_reaches_the_scope() {
    let (scope, gate) = (CountingScope::new(), Gate::<i32>::new());
    drop(scope.named("work").spawn_future(gate.deaf().then(|_| Prickly), &Env::new()).unwrap());
    gate.complete(Outcome::Value(1));
    assert_eq!(join(&scope), Outcome::Panicked(Panic::new("`work` panicked: prickly")));
}

#[test]
fn a_stop_callback_that_panics_does_not_keep_the_work_from_ending() {
    // The callback is registered with the token of the work.
    let work = |gate: &Gate<i32>| {
        let gate = gate.clone();
        read_env(|env: &Env| env.stop_token()).let_value(move |token| {
            let callback = Box::pin(token.on_stop(|_| panic!("callback")));
            callback.as_ref().register();
            gate.deaf().then(move |value| (value, drop(callback)).0)
        })
    };
    let (scope, gate, source) = (CountingScope::new(), Gate::new(), StopSource::new());
    let future = scope.spawn_future(work(&gate), &Env::new()).unwrap();
    let running = Connected::stoppable(future, &source).start();
    let thrown = catch_unwind(AssertUnwindSafe(|| source.request_stop(StopReason::Requested)));
    assert_eq!(Panic::from_payload(thrown.unwrap_err()).message(), "callback");
    assert_eq!(running.outcome(), Outcome::Stopped);
    gate.complete(Outcome::Value(1));
    assert_eq!(join(&scope), Outcome::Value(()));
    // Requested by the start of the consumer, which does not unwind: the panic goes to the scope.
    let (scope, gate) = (CountingScope::new(), Gate::new());
    let future = scope.named("work").spawn_future(work(&gate), &Env::new()).unwrap();
    assert_eq!(Connected::with_env(future, stopped_env()).start().outcome(), Outcome::Stopped);
    gate.complete(Outcome::Value(1));
    assert_eq!(join(&scope), Outcome::Panicked(Panic::new("`work` panicked: callback")));
    // Requested by the drop of the future, which does not panic: the panic goes to the scope.
    let (scope, gate) = (CountingScope::new(), Gate::new());
    drop(scope.named("work").spawn_future(work(&gate), &Env::new()).unwrap());
    gate.complete(Outcome::Value(1));
    assert_eq!(join(&scope), Outcome::Panicked(Panic::new("`work` panicked: callback")));
}

#[test]
fn threads_complete_consume_abandon_and_stop_in_any_order() {
    let pool = ThreadPool::new(2).unwrap();
    let (scope, values) = (CountingScope::new(), AtomicUsize::new(0));
    let rounds = if cfg!(miri) { 4 } else { 2_000 };
    for round in 0..rounds {
        let (source, count) = (StopSource::new(), DropCount::new());
        let token = count.token();
        let work = schedule(&pool.executor()).then(move |()| token);
        let future = scope.spawn_future(work, &Env::from(pool.executor())).unwrap();
        match round % 3 {
            0 => drop(future),
            1 => {
                let stop = source.clone();
                let requester = std::thread::spawn(move || stop.request_stop(StopReason::Requested));
                let outcome = Connected::stoppable(future, &source).start().wait();
                assert!(matches!(outcome, Outcome::Value(_) | Outcome::Stopped));
                requester.join().unwrap();
            }
            _ => {
                assert!(matches!(sync_wait(future), Outcome::Value(_)));
                values.fetch_add(1, Ordering::Relaxed);
            }
        }
        assert_eq!(sync_wait(scope.drain()), Outcome::Value(()));
        assert_eq!(count.dropped(), 1);
    }
    assert_eq!(values.load(Ordering::Relaxed), rounds / 3);
}

#[test]
fn the_payload_of_a_second_panic_may_use_the_scope_when_it_is_dropped() {
    /// A payload whose destructor locks the state of the scope.
    struct Asks(convoke_sender::ScopeHandle);

    impl Drop for Asks {
        fn drop(&mut self) {
            self.0.use_count();
        }
    }

    let scope = CountingScope::new();
    for _ in 0..2 {
        let handle = scope.handle();
        let work = just(()).then(move |()| -> () { std::panic::panic_any(Asks(handle)) });
        scope.spawn(work, &Env::new()).unwrap();
    }
    assert!(matches!(join(&scope), Outcome::Panicked(_)));
}
