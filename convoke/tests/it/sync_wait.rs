//! `sync_wait`: what it waits for, what it allocates, what it returns.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use convoke::env::{Changes, Local};
use convoke::executor::InlineExecutor;
use convoke::sender::prelude::*;

#[test]
fn the_outcome_comes_back_through_its_door() {
    assert_eq!(sync_wait(just(1)), Outcome::Value(1));
    assert_eq!(sync_wait(just_error::<u8, _>("no")), Outcome::Error("no"));
    assert_eq!(sync_wait(just_stopped::<u8>()), Outcome::Stopped);
}

#[test]
#[should_panic(expected = "boom")]
fn a_panic_of_the_work_goes_on_at_the_waiter() {
    let _ = sync_wait(just(1).then(|_| -> u8 { panic!("boom") }));
}

#[test]
fn work_may_borrow_from_the_waiting_stack() {
    let text = String::from("borrowed");
    assert_eq!(sync_wait(just(&text).then(|text| text.len())), Outcome::Value(8));
}

#[test]
fn the_environment_is_that_which_was_asked_for() {
    static KEY: Local<u32> = Local::inherited("key");
    let source = StopSource::new();
    source.request_stop(StopReason::Deadline);
    let changes = Changes::new().local(&KEY, 7).stop_token(source.token());
    let seen = sync_wait_with(changes, read_env(|env| (env.local(&KEY).copied(), env.stop().reason())));
    assert_eq!(seen, Outcome::Value((Some(7), Some(StopReason::Deadline))));
}

#[test]
fn work_posted_to_the_loop_of_the_waiter_runs_on_its_thread() {
    let here = thread::current().id();
    let sender = read_env(|env| env.executor().clone())
        .let_value(|executor| schedule(&executor))
        .then(|()| thread::current().id());
    assert_eq!(sync_wait(sender), Outcome::Value(here));
}

#[test]
fn a_completion_from_another_thread_wakes_the_waiter() {
    for round in 0..if cfg!(miri) { 4 } else { 2_000 } {
        let sender = from_callback(|completion: Completion<u32, Never>| {
            thread::spawn(move || completion.value(round));
        });
        assert_eq!(sync_wait(sender), Outcome::Value(round));
    }
}

#[test]
fn a_handle_kept_after_the_wait_leads_nowhere() {
    let executor = sync_wait(read_env(|env| env.executor().clone())).unwrap();
    assert_eq!(sync_wait(schedule(&executor)), Outcome::Stopped);
}

#[test]
fn shared_work_that_lost_a_race_ends_before_the_wait_ends() {
    let (hand_out, handle) = mpsc::channel();
    let (tell, told) = mpsc::channel();
    let work = from_callback(move |completion: Completion<u32>| hand_out.send(completion).unwrap())
        .unstoppable()
        .on(&InlineExecutor)
        .materialize()
        .then(move |outcome| tell.send(outcome).unwrap());
    let slow = thread::spawn(move || handle.recv().unwrap().value(7));
    let winner = when_any((work.split(), just(())));
    assert_eq!(sync_wait(winner), Outcome::Value(()));
    assert_eq!(told.try_recv(), Ok(Outcome::Value(7)));
    slow.join().unwrap();
}

#[test]
fn waits_nest() {
    let outer = just(1).then(|v| v + sync_wait(just(10).then(|v| v * 2)).unwrap());
    assert_eq!(sync_wait(outer), Outcome::Value(21));
}

#[test]
fn a_million_waits_in_a_loop() {
    const MANY: u64 = if cfg!(miri) { 200 } else { 1_000_000 };
    let mut sum = 0_u64;
    for i in 0..MANY {
        sum += sync_wait(just(i).then(|v| v + 1)).unwrap();
    }
    assert_eq!(sum, MANY * (MANY + 1) / 2);
}

#[test]
fn a_foreign_runnable_that_panics_does_not_tear_the_work() {
    let cleaned = Arc::new(AtomicUsize::new(0));
    let seen = cleaned.clone();
    let result = std::panic::catch_unwind(|| {
        sync_wait(read_env(|env| env.executor().clone()).let_value(move |executor| {
            executor.post(convoke::testing::runnable(|_| panic!("stray")));
            schedule(&executor).then(move |()| seen.fetch_add(1, Ordering::Relaxed))
        }))
    });
    let panic = convoke::Panic::from_payload(result.unwrap_err());
    assert_eq!((panic.message(), cleaned.load(Ordering::Relaxed)), ("stray", 1));
}

#[test]
fn a_handle_kept_after_a_wait_that_panicked_leads_nowhere() {
    let kept = Arc::new(Mutex::new(None));
    let keep = kept.clone();
    let result = std::panic::catch_unwind(|| {
        sync_wait(read_env(|env| env.executor().clone()).let_value(move |executor| {
            *keep.lock().unwrap() = Some(executor.clone());
            executor.post(convoke::testing::runnable(|_| panic!("stray")));
            schedule(&executor)
        }))
    });
    assert_eq!(convoke::Panic::from_payload(result.unwrap_err()).message(), "stray");
    let executor = kept.lock().unwrap().take().expect("it was kept");
    assert_eq!(sync_wait(schedule(&executor)), Outcome::Stopped);
}
