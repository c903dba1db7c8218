//! The rules of a counting scope, one by one: nest, join, drain, and the drop of a scope that was not joined.
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use convoke_core::InlineExecutor;
use convoke_core::testing::{ByHand, DropCount};
use convoke_exec::ThreadPool;
use convoke_sender::prelude::*;
use convoke_sender::testing::{Connected, Gate, all_outcomes, stopped_env};
use convoke_sender::{Completes, Receiver};
use convoke_sender::{CountingScope, sync_wait};

fn join(scope: &CountingScope) -> Outcome<(), Never> {
    Connected::new(scope.join()).start().outcome()
}

fn panics(message: &'static str) -> impl Sender<Value = (), Error = Never> + 'static {
    just_from(move || panic!("{message}"))
}

/// Drops a scope and returns the message of the panic.
fn complaint(scope: CountingScope) -> String {
    let thrown = catch_unwind(AssertUnwindSafe(|| drop(scope))).expect_err("the drop panics");
    Panic::from_payload(thrown).message().to_owned()
}

#[test]
fn a_new_scope_is_open_and_empty() {
    let scope = CountingScope::new();
    assert_eq!((scope.use_count(), scope.join_started(), scope.joined()), (0, false, false));
}

#[test]
fn nest_counts_at_once_starts_nothing_and_passes_every_door() {
    for (outcome, sender) in all_outcomes(1, "e") {
        let scope = CountingScope::new();
        let nested = scope.nest(sender);
        assert!(nested.is_associated());
        assert_eq!(scope.use_count(), 1);
        assert_eq!(Connected::new(nested).start().outcome(), outcome);
        assert_eq!(scope.use_count(), 0);
    }
    let scope = CountingScope::new();
    drop(scope.nest(just_from(|| unreachable!("it was not started"))));
}

#[test]
fn an_association_moves_with_the_sender_and_ends_when_it_is_dropped() {
    let (scope, count) = (CountingScope::new(), DropCount::new());
    let token = count.token();
    let nested = scope.nest(just_from(move || drop(token)));
    let moved = Box::new(nested);
    assert_eq!(scope.use_count(), 1);
    drop(moved);
    assert_eq!((scope.use_count(), count.dropped()), (0, 1));
}

#[test]
fn an_association_ends_when_its_operation_is_dropped_unstarted() {
    let scope = CountingScope::new();
    let connected = Connected::new(scope.nest(just(1)));
    assert_eq!(scope.use_count(), 1);
    drop(connected);
    assert_eq!(scope.use_count(), 0);
}

#[test]
fn an_association_ends_when_its_operation_completes() {
    let (scope, gate) = (CountingScope::new(), Gate::<i32>::new());
    let running = Connected::new(scope.nest(gate.sender())).start();
    assert_eq!(scope.use_count(), 1);
    gate.complete(Outcome::Value(3));
    assert_eq!(scope.use_count(), 0);
    assert_eq!(running.outcome(), Outcome::Value(3));
}

#[test]
fn the_count_goes_down_after_the_completion() {
    let scope = Arc::new(CountingScope::new());
    let inside = scope.clone();
    let nested = scope.nest(just(())).then(move |()| inside.use_count());
    assert_eq!(Connected::new(nested).start().outcome(), Outcome::Value(1));
    assert_eq!(scope.use_count(), 0);
}

#[test]
fn a_failed_nest_drops_the_sender_runs_nothing_and_completes_as_stopped() {
    let (scope, count) = (CountingScope::new(), DropCount::new());
    assert_eq!(join(&scope), Outcome::Value(()));
    let token = count.token();
    let nested = scope.nest(just_from(move || unreachable!("{token:?}")));
    assert_eq!((nested.is_associated(), count.dropped(), scope.use_count()), (false, 1, 0));
    // It does not refer to the scope any more.
    drop(scope);
    assert_eq!(Connected::new(nested.then(|()| 1)).start().outcome(), Outcome::Stopped);
}

#[test]
fn a_nested_sender_completes_where_the_sender_inside_does() {
    fn completes<S: Sender>(_: &S) -> Completes {
        S::COMPLETES
    }
    let (scope, by_hand) = (CountingScope::new(), ByHand::new());
    assert_eq!(completes(&scope.nest(just(1))), Completes::Inline);
    let nested = scope.nest(schedule(&by_hand));
    assert_eq!(nested.completes_on(&Env::new()), Some(ExecutorRef::new(by_hand)));
}

#[test]
fn a_clone_is_counted_separately_and_fails_when_the_scope_is_closed() {
    let scope = CountingScope::new();
    let first = scope.nest(just(1));
    let second = first.clone();
    assert_eq!(scope.use_count(), 2);
    let joining = Connected::new(scope.join()).start();
    let third = second.clone();
    assert_eq!((third.is_associated(), scope.use_count()), (false, 2));
    assert_eq!(Connected::new(third.clone()).start().outcome(), Outcome::Stopped);
    drop((first, second));
    assert_eq!(joining.outcome(), Outcome::Value(()));
}

#[test]
fn only_starting_a_join_closes_the_scope() {
    let scope = CountingScope::new();
    let connected = Connected::new(scope.join());
    assert!(!scope.join_started());
    drop(connected);
    assert!(scope.nest(just(1)).is_associated());
}

#[test]
fn a_scope_is_closed_while_it_is_joining_and_joined_when_the_last_has_left() {
    let (scope, gate) = (CountingScope::new(), Gate::<()>::new());
    scope.spawn(gate.sender(), &Env::new()).unwrap();
    let joining = Connected::new(scope.join()).start();
    assert_eq!((scope.join_started(), scope.joined(), joining.is_complete()), (true, false, false));
    let refused = scope.spawn(just(()), &Env::new()).unwrap_err();
    assert!(refused.is_closed());
    gate.complete(Outcome::Value(()));
    assert_eq!(joining.outcome(), Outcome::Value(()));
    assert_eq!((scope.join_started(), scope.joined(), scope.use_count()), (true, true, 0));
}

#[test]
fn a_join_of_an_empty_scope_completes_at_once() {
    let (scope, by_hand) = (CountingScope::new(), ByHand::new());
    let joining = Connected::with_env(scope.join(), Env::from(by_hand.clone())).start();
    assert_eq!((joining.outcome(), by_hand.len()), (Outcome::Value(()), 0));
}

#[test]
fn a_join_completes_on_the_executor_of_its_environment() {
    let (scope, gate, by_hand) = (CountingScope::new(), Gate::<()>::new(), ByHand::new());
    scope.spawn(gate.sender(), &Env::new()).unwrap();
    let joining = Connected::with_env(scope.join(), Env::from(by_hand.clone())).start();
    gate.complete(Outcome::Value(()));
    assert!(scope.joined() && !joining.is_complete());
    assert_eq!(by_hand.run_all(), 1);
    assert_eq!(joining.outcome(), Outcome::Value(()));
}

#[test]
fn every_join_completes_also_a_late_one() {
    let (scope, nested) = {
        let scope = CountingScope::new();
        let nested = scope.nest(just(()));
        (scope, nested)
    };
    let joining = [(); 2].map(|()| Connected::new(scope.join()).start());
    drop(nested);
    for join in joining {
        assert_eq!(join.outcome(), Outcome::Value(()));
    }
    assert_eq!(join(&scope), Outcome::Value(()));
}

#[test]
fn a_join_does_not_leave_the_work_behind_because_it_is_stopped() {
    let (scope, gate) = (CountingScope::new(), Gate::<()>::new());
    scope.spawn(gate.sender(), &Env::new()).unwrap();
    let joining = Connected::with_env(scope.join(), stopped_env()).start();
    assert!(!joining.is_complete() && gate.is_waiting());
    gate.complete(Outcome::Value(()));
    assert_eq!(joining.outcome(), Outcome::Value(()));
}

#[test]
fn a_join_that_is_dropped_by_its_executor_is_stopped() {
    let (scope, by_hand) = (CountingScope::new(), ByHand::new());
    let nested = scope.nest(just(()));
    let joining = Connected::with_env(scope.join(), Env::from(by_hand.clone())).start();
    drop(nested);
    by_hand.drop_all();
    assert_eq!(joining.outcome(), Outcome::Stopped);
}

#[test]
fn the_receiver_of_a_join_may_drop_the_scope_at_once() {
    let scope = Arc::new(Mutex::new(Some(CountingScope::new())));
    let gate = Gate::<()>::new();
    let (owner, env) = (scope.clone(), Env::from(InlineExecutor));
    let joining = {
        let scope = scope.lock().unwrap();
        let scope = scope.as_ref().unwrap();
        scope.spawn(gate.sender(), &env).unwrap();
        Connected::with_env(scope.join().then(move |()| drop(owner.lock().unwrap().take())), env).start()
    };
    gate.complete(Outcome::Value(()));
    assert_eq!(joining.outcome(), Outcome::Value(()));
    assert!(scope.lock().unwrap().is_none());
}

#[test]
fn the_first_panic_is_the_outcome_of_every_join_by_name() {
    let scope = CountingScope::new();
    scope.named("first").spawn(panics("one"), &Env::new()).unwrap();
    scope.named("second").spawn(panics("two"), &Env::new()).unwrap();
    let expected = || Outcome::Panicked(Panic::new("`first` panicked: one"));
    assert_eq!([join(&scope), join(&scope)], [expected(), expected()]);
}

#[test]
fn a_panic_without_a_name_is_reported_with_its_source_location() {
    let scope = CountingScope::new();
    let line = line!() + 1;
    scope.spawn(panics("where?"), &Env::new()).unwrap();
    let Outcome::Panicked(panic) = join(&scope) else { panic!("it panicked") };
    let location = format!("{}:{line}:", file!());
    assert!(panic.message().contains(&location) && panic.message().ends_with("where?"), "{panic}");
}

#[test]
fn a_payload_that_is_not_text_reaches_the_first_join() {
    let scope = CountingScope::new();
    let work = just_from(|| std::panic::panic_any(7_u8)).then(|()| ());
    scope.named("odd").spawn(work, &Env::new()).unwrap();
    let Outcome::Panicked(panic) = join(&scope) else { panic!("it panicked") };
    assert_eq!(panic.downcast_ref(), Some(&7_u8));
    let message = "`odd` panicked: a panic whose payload is not text";
    assert_eq!(join(&scope), Outcome::Panicked(Panic::new(message)));
}

#[test]
fn a_drain_waits_for_the_work_and_what_it_spawns_and_closes_nothing() {
    let scope = CountingScope::new();
    let (first, second) = (Gate::<()>::new(), Gate::<()>::new());
    let (handle, next) = (scope.handle(), second.clone());
    let parent = first.sender().then(move |()| handle.spawn(next.sender(), &Env::new()).unwrap());
    scope.spawn(parent, &Env::new()).unwrap();
    let draining = Connected::new(scope.drain()).start();
    first.complete(Outcome::Value(()));
    assert!(!draining.is_complete() && second.is_waiting() && !scope.join_started());
    second.complete(Outcome::Value(()));
    assert_eq!(draining.outcome(), Outcome::Value(()));
    assert!(scope.nest(just(1)).is_associated());
}

#[test]
fn a_drain_of_an_empty_scope_completes_at_once_else_on_its_executor() {
    let (scope, by_hand) = (CountingScope::new(), ByHand::new());
    let drain = || Connected::with_env(scope.drain(), Env::from(by_hand.clone())).start();
    assert_eq!(drain().outcome(), Outcome::Value(()));
    let nested = scope.nest(just(()));
    let draining = drain();
    drop(nested);
    assert!(!draining.is_complete());
    assert_eq!((by_hand.run_all(), draining.outcome()), (1, Outcome::Value(())));
}

#[test]
fn a_drain_that_is_stopped_leaves_the_work_alone() {
    let (scope, gate, source, by_hand) =
        (CountingScope::new(), Gate::<()>::new(), StopSource::new(), ByHand::new());
    scope.spawn(gate.sender(), &Env::new()).unwrap();
    let changes = convoke_core::env::Changes::new().stop_token(source.token());
    let draining = Connected::with_env(scope.drain(), Env::from(by_hand.clone()).with(changes)).start();
    source.request_stop(StopReason::Requested);
    assert!(!draining.is_complete(), "it completes on its executor");
    by_hand.run_all();
    assert_eq!(draining.outcome(), Outcome::Stopped);
    assert_eq!(Connected::with_env(scope.drain(), stopped_env()).start().outcome(), Outcome::Stopped);
    assert_eq!((gate.asked_to_stop(), gate.complete(Outcome::Value(()))), (None, true));
}

#[test]
fn a_drain_reports_a_panic_and_a_later_join_does_not() {
    let scope = CountingScope::new();
    scope.named("brief").spawn(panics("oh"), &Env::new()).unwrap();
    let draining = Connected::new(scope.drain()).start();
    assert_eq!(draining.outcome(), Outcome::Panicked(Panic::new("`brief` panicked: oh")));
    assert_eq!(join(&scope), Outcome::Value(()));
}

#[test]
fn a_scope_dropped_with_work_in_it_stops_the_work_and_names_it() {
    let (scope, gate) = (CountingScope::new(), Gate::<()>::new());
    let handle = scope.handle();
    scope.named("listener").spawn(gate.sender(), &Env::new()).unwrap();
    let nested = scope.named("reader").nest(just(()));
    let message = complaint(scope);
    assert!(message.contains("2 pieces of work") && message.contains("`listener`, `reader`"), "{message}");
    assert_eq!(gate.asked_to_stop(), Some(StopReason::Abandoned));
    assert!(handle.spawn(just(()), &Env::new()).unwrap_err().is_closed());
    drop(nested);
    assert_eq!(handle.use_count(), 0);
}

#[test]
fn a_scope_dropped_before_a_panic_was_reported_reports_it() {
    let scope = CountingScope::new();
    scope.named("quiet").spawn(panics("unreported"), &Env::new()).unwrap();
    assert!(complaint(scope).contains("`quiet` panicked: unreported"));
}

#[test]
fn a_scope_dropped_while_its_thread_panics_does_not_end_the_process() {
    let gate = Gate::<()>::new();
    let in_scope = gate.sender();
    let thrown = catch_unwind(AssertUnwindSafe(|| {
        let scope = CountingScope::new();
        scope.spawn(in_scope, &Env::new()).unwrap();
        panic!("the first");
    }));
    assert_eq!(Panic::from_payload(thrown.unwrap_err()).message(), "the first");
    assert_eq!(gate.asked_to_stop(), Some(StopReason::Abandoned));
}

#[test]
fn an_empty_scope_may_be_dropped_unjoined() {
    let scope = CountingScope::new();
    scope.spawn(just(()), &Env::new()).unwrap();
    drop(scope);
}

/// A receiver that reads the count of the scope when it is completed.
struct ReadsCount<'a>(&'a CountingScope, &'a AtomicUsize, Env);

impl<V, E> Receiver<V, E> for ReadsCount<'_> {
    fn complete(self, _: Outcome<V, E>) {
        self.1.store(self.0.use_count() + 10, Ordering::Release);
    }

    fn env(&self) -> &Env {
        &self.2
    }
}

#[test]
fn a_nested_sender_may_borrow() {
    let (scope, seen, text) = (CountingScope::new(), AtomicUsize::new(0), String::from("mine"));
    let nested = scope.nest(just_from(|| text.len()));
    // Connected and dropped: a borrowed receiver is fine too.
    drop(nested.connect(ReadsCount(&scope, &seen, Env::new())));
    assert_eq!((scope.use_count(), seen.load(Ordering::Acquire)), (0, 0));
    assert_eq!(sync_wait(scope.nest(just_from(|| text.len()))), Outcome::Value(4));
}

#[test]
fn threads_spawn_and_leave_while_one_joins() {
    let pool = ThreadPool::new(2).unwrap();
    let env = Env::from(pool.executor());
    for round in 0..if cfg!(miri) { 7 } else { 200 } {
        let (scope, ran) = (CountingScope::new(), Arc::new(AtomicUsize::new(0)));
        let spawned: usize = std::thread::scope(|threads| {
            let spawner = |_| {
                let (handle, env, ran, executor) = (scope.handle(), &env, ran.clone(), pool.executor());
                threads.spawn(move || {
                    let one = || {
                        let ran = ran.clone();
                        let count = move |()| _ = ran.fetch_add(1, Ordering::Relaxed);
                        handle.spawn(schedule(&executor).then(count), env).is_ok()
                    };
                    (0..round % 7).filter(|_| one()).count()
                })
            };
            let spawners = [0, 1].map(spawner);
            assert_eq!(sync_wait(scope.join()), Outcome::Value(()));
            assert_eq!((scope.use_count(), scope.joined()), (0, true));
            spawners.into_iter().map(|spawner| spawner.join().unwrap()).sum()
        });
        assert_eq!(ran.load(Ordering::Relaxed), spawned, "all accepted work has run, and nothing else");
    }
}

#[test]
fn a_join_brings_the_thread_that_waits_back_from_the_work_of_others() {
    let (pool, scope) = (ThreadPool::new(1).unwrap(), CountingScope::new());
    let here = std::thread::current().id();
    for _ in 0..if cfg!(miri) { 5 } else { 100 } {
        let work = schedule(&pool.executor()).then(move |()| assert_ne!(std::thread::current().id(), here));
        scope.spawn(work, &Env::from(pool.executor())).unwrap();
        let drained_on = scope.drain().then(|()| std::thread::current().id());
        assert_eq!(sync_wait(drained_on), Outcome::Value(here));
    }
    let joined_on = scope.join().then(|()| std::thread::current().id());
    assert_eq!(sync_wait(joined_on), Outcome::Value(here));
}
