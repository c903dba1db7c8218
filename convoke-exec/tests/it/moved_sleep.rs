//! Tests of sleeps that are moved, with a manual clock; and the size of a task that sleeps.
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;
use std::time::{Duration, Instant};

use convoke::alloc::{Counting, FrameAllocator};
use convoke::env::{Changes, Env};
use convoke::executor::{BlockOn, RunLoop};
use convoke::prelude::*;
use convoke::task::task;
use convoke::testing::{Clockwork, Connected};
use convoke::time::{Sleeping, now, sleep, sleep_until};

const SECOND: Duration = Duration::from_secs(1);

/// Runs a program with a manual clock, and returns its value and the seconds that have passed for it.
fn seconds<F: Future<Output = ()> + Send + 'static>(program: impl FnOnce(Instant) -> F) -> u64 {
    let clock = Clockwork::new();
    let begin = clock.now();
    let program = program(begin);
    let timed = async move {
        program.await;
        (now() - begin).as_secs()
    };
    let running = Connected::with_env(task(timed), Env::from(clock.clone())).start();
    clock.advance(1000 * SECOND);
    let Outcome::Value(seconds) = running.outcome() else { panic!("the program has not ended") };
    assert_eq!(clock.advance(1000 * SECOND), 0, "a timer was left behind");
    seconds
}

/// Polls a sleep once, which must wait.
async fn begin(mut sleeping: Pin<&mut Sleeping>) {
    poll_fn(|cx| {
        assert!(sleeping.as_mut().poll(cx).is_pending());
        Poll::Ready(())
    })
    .await;
}

#[test]
fn a_sleep_is_moved_before_its_first_poll_while_it_waits_and_after_its_end() {
    let ended = seconds(async |begun| {
        let mut sleeping = pin!(sleep(50 * SECOND).into_future());
        sleeping.as_mut().reset(begun + 40 * SECOND);
        begin(sleeping.as_mut()).await;
        sleeping.as_mut().reset(begun + 3 * SECOND);
        assert!(!sleeping.is_elapsed());
        sleeping.as_mut().await;
        assert_eq!(now(), begun + 3 * SECOND);
        assert!(sleeping.is_elapsed());
        sleeping.as_mut().await;
        sleeping.as_mut().reset_after(4 * SECOND);
        assert!(!sleeping.is_elapsed());
        sleeping.as_mut().await;
        sleeping.as_mut().reset(begun);
        sleeping.as_mut().await;
    });
    assert_eq!(ended, 7);
}

#[test]
fn a_sleep_is_moved_later() {
    let ended = seconds(async |begun| {
        let mut sleeping = pin!(sleep_until(begun + SECOND).into_future());
        begin(sleeping.as_mut()).await;
        sleeping.as_mut().reset_after(9 * SECOND);
        sleeping.await;
    });
    assert_eq!(ended, 9);
}

#[test]
fn a_moved_sleep_wakes_its_task_without_another_poll() {
    for far in [50 * SECOND, Duration::from_secs(u32::MAX.into()) - SECOND] {
        let ended = seconds(async move |begun| {
            let mut sleeping = pin!(sleep(far).into_future());
            let mut polls = 0;
            poll_fn(|cx| {
                polls += 1;
                if polls == 1 {
                    assert!(sleeping.as_mut().poll(cx).is_pending());
                    sleeping.as_mut().reset(begun + 2 * SECOND);
                    return Poll::Pending;
                }
                sleeping.as_mut().poll(cx)
            })
            .await;
            assert_eq!(polls, 2);
        });
        assert_eq!(ended, 2);
    }
}

#[test]
fn a_sleep_that_was_made_endless_is_ended_by_another_move() {
    let ended = seconds(async |begun| {
        let mut sleeping = pin!(sleep(SECOND).into_future());
        begin(sleeping.as_mut()).await;
        sleeping.as_mut().reset_after(Duration::MAX);
        assert!(timeout(5 * SECOND, sleeping.as_mut()).await.is_err());
        sleeping.as_mut().reset(begun + 6 * SECOND);
        sleeping.await;
    });
    assert_eq!(ended, 6);
}

#[test]
fn a_sleep_that_was_due_and_is_moved_before_it_is_polled_sleeps_again() {
    let ended = seconds(async |begun| {
        let mut sleeping = pin!(sleep(SECOND).into_future());
        begin(sleeping.as_mut()).await;
        sleep(2 * SECOND).await;
        assert!(sleeping.is_elapsed());
        sleeping.as_mut().reset(begun + 8 * SECOND);
        assert!(!sleeping.is_elapsed());
        sleeping.await;
    });
    assert_eq!(ended, 8);
}

#[test]
#[cfg_attr(
    miri,
    ignore = "measures frames, which are larger without optimisations of the compiler that Miri turns off"
)]
fn a_task_that_sleeps_takes_at_most_240_bytes() {
    let memory = Counting::new(FrameAllocator::system());
    let changes = Changes::new().allocator(FrameAllocator::new(memory.clone()));
    let outcome = RunLoop::new().block_on_with(changes, start_tasks(&memory));
    let bytes = outcome.unwrap();
    assert!(bytes <= 240, "{bytes} bytes");
}

/// Starts tasks as the benchmark of timers does, each with a duration and a reference count, and returns the
/// bytes of one.
async fn start_tasks(memory: &Counting<FrameAllocator>) -> usize {
    const TASKS: usize = 100;
    let counted = Rc::new(());
    scope(async |s| {
        let before = memory.live_bytes();
        for n in 0..TASKS {
            let (duration, counted) = (Duration::from_micros(n as u64), counted.clone());
            s.child().local().spawn(async move {
                sleep(duration).await;
                drop(counted);
            });
        }
        (memory.live_bytes() - before) / TASKS
    })
    .await
}
