//! Tests of the delay queue in virtual time: order, removing, moving, a stop, and many random steps compared
//! with a sorted list.
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use convoke::env::Env;
use convoke::prelude::*;
use convoke::raw::Random;
use convoke::task::task;
use convoke::testing::{Clockwork, Connected};
use convoke::time::{DelayKey, DelayQueue, now};
use futures_core::Stream;

const SECOND: Duration = Duration::from_secs(1);

/// Receives all items, each with the second at which it came.
async fn drain(queue: &mut DelayQueue<u32>, begin: Instant) -> Vec<(u32, u64)> {
    let mut all = Vec::new();
    while let Some(expired) = queue.next().await {
        assert!(expired.deadline() <= now());
        all.push((expired.into_inner(), (now() - begin).as_secs()));
    }
    all
}

#[convoke::test(virtual_time)]
async fn items_come_out_at_their_times_and_ties_in_order() {
    let begin = now();
    let mut queue = DelayQueue::new();
    for (value, seconds) in [(1, 3), (2, 1), (3, 2), (4, 1), (5, 0)] {
        queue.insert(value, seconds * SECOND);
    }
    assert_eq!(drain(&mut queue, begin).await, [(5, 0), (2, 1), (4, 1), (3, 2), (1, 3)]);
    assert!(queue.is_empty());
    queue.insert_at(6, begin);
    assert_eq!(drain(&mut queue, begin).await, [(6, 3)], "it is used again, and late items come at once");
}

#[convoke::test(virtual_time)]
async fn items_are_removed_and_moved_by_their_keys() {
    let begin = now();
    let mut queue = DelayQueue::with_capacity(4);
    let keys = [5, 6, 7, 8].map(|n| queue.insert(n, n * SECOND));
    assert_eq!((queue.get(keys[1]), queue.deadline(keys[1])), (Some(&6), Some(begin + 6 * SECOND)));
    assert_eq!(queue.peek(), Some(keys[0]));
    assert_eq!(queue.remove(keys[0]), Some(5));
    assert_eq!((queue.remove(keys[0]), queue.reset(keys[0], SECOND)), (None, false));
    assert!(queue.reset(keys[3], SECOND) && queue.reset_at(keys[1], begin + 9 * SECOND));
    let again = queue.insert(9, 2 * SECOND);
    assert_eq!(
        (queue.get(keys[0]), queue.get(again)),
        (None, Some(&9)),
        "an old key does not find a new item"
    );
    assert_eq!(drain(&mut queue, begin).await, [(8, 1), (9, 2), (7, 7), (6, 9)]);
    queue.insert(1, SECOND);
    queue.clear();
    assert_eq!((queue.len(), queue.next().await), (0, None));
}

/// Polls the queue as a stream once.
async fn poll_once(queue: &mut DelayQueue<u32>) -> Poll<Option<u32>> {
    poll_fn(|cx| {
        Poll::Ready(Pin::new(&mut *queue).poll_next(cx).map(|item| item.map(|expired| expired.into_inner())))
    })
    .await
}

#[test]
fn a_task_that_waits_is_woken_at_the_time_of_another_first_item_without_polling_again() {
    let clock = Clockwork::new();
    for change in 0..4 {
        let begin = clock.now();
        let program = async move {
            let mut queue = DelayQueue::new();
            let key = queue.insert(1, if change == 3 { Duration::MAX } else { 20 * SECOND });
            assert_eq!(poll_once(&mut queue).await, Poll::Pending);
            match change {
                0 => _ = queue.insert(2, 3 * SECOND),
                1 => _ = queue.reset(key, 3 * SECOND),
                2 => {
                    queue.insert(2, 3 * SECOND);
                    queue.remove(key);
                }
                _ => _ = queue.insert_at(2, begin + 3 * SECOND),
            }
            // Waits without a poll of the queue, until the timer of the queue wakes the task.
            let mut first = true;
            poll_fn(|_| if std::mem::take(&mut first) { Poll::Pending } else { Poll::Ready(()) }).await;
            (now() - begin, poll_once(&mut queue).await.is_ready())
        };
        let running = Connected::with_env(task(program), Env::from(clock.clone())).start();
        clock.advance(30 * SECOND);
        assert_eq!(running.outcome(), Outcome::Value((3 * SECOND, true)), "{change}");
    }
    assert_eq!(clock.advance(100 * SECOND), 0, "a timer was left behind");
}

#[convoke::test(virtual_time)]
async fn a_stopped_or_dropped_wait_loses_no_item() {
    let begin = now();
    let mut queue = DelayQueue::new();
    queue.insert(1, 3 * SECOND);
    assert!(timeout(SECOND, queue.next()).await.is_err());
    assert_eq!(drain(&mut queue, begin).await, [(1, 3)]);
}

#[test]
fn a_dropped_wait_leaves_no_timer() {
    let clock = Clockwork::new();
    let program = async {
        let mut queue = DelayQueue::new();
        queue.insert(1, SECOND);
        let mut next = std::pin::pin!(queue.next());
        poll_fn(|cx| {
            assert!(next.as_mut().poll(cx).is_pending());
            Poll::Ready(())
        })
        .await;
    };
    let running = Connected::with_env(task(program), Env::from(clock.clone())).start();
    clock.run_ready();
    assert_eq!(running.outcome(), Outcome::Value(()));
    assert_eq!(clock.advance(10 * SECOND), 0, "a timer was left behind");
}

#[convoke::test(virtual_time)]
async fn random_steps_agree_with_a_sorted_list() {
    const STEPS: u32 = if cfg!(miri) { 100 } else { 20_000 };
    let mut random = Random::new(7);
    let mut queue = DelayQueue::new();
    // Time, sequence number, key, value.
    let mut list: Vec<(Instant, u32, DelayKey, u32)> = Vec::new();
    for step in 0..STEPS {
        let at = now() + random.below(1000) as u32 * Duration::from_millis(1);
        let chosen = if list.is_empty() { 0 } else { random.below(list.len()) };
        match random.below(5) {
            0 | 1 => list.push((at, step, queue.insert_at(step, at), step)),
            2 if !list.is_empty() => {
                let (.., key, value) = list.swap_remove(chosen);
                assert_eq!(queue.remove(key), Some(value));
            }
            3 if !list.is_empty() => {
                let (time, order, key, _) = &mut list[chosen];
                (*time, *order) = (at, step);
                assert!(queue.reset_at(*key, at));
            }
            _ => {
                let first = list.iter().min_by_key(|(time, order, ..)| (*time, *order)).copied();
                let expired = queue.next().await.map(|expired| (expired.deadline(), expired.into_inner()));
                assert_eq!(expired, first.map(|(time, .., value)| (time, value)));
                list.retain(|item| Some(*item) != first);
            }
        }
        assert_eq!(queue.len(), list.len());
        assert_eq!(
            queue.peek(),
            list.iter().min_by_key(|(time, order, ..)| (*time, *order)).map(|(.., key, _)| *key)
        );
    }
}

#[convoke::test(virtual_time)]
async fn an_old_key_finds_no_later_item_even_if_the_generations_are_used_up() {
    let mut queue = DelayQueue::new();
    let first = queue.insert(1, SECOND);
    assert_eq!(queue.remove(first), Some(1));
    let second = queue.insert(2, SECOND);
    let last = queue.set_generation(second, u32::MAX);
    assert_eq!(queue.remove(last), Some(2));
    let next = queue.insert(3, SECOND);
    assert_eq!((queue.get(first), queue.get(last), queue.get(next)), (None, None, Some(&3)));
    assert_eq!(
        (queue.remove(first), queue.remove(last)),
        (None, None),
        "they would remove another one's item"
    );
    assert!(!queue.reset(last, SECOND));
    assert_eq!(queue.remove(next), Some(3));
    assert_eq!(queue.insert(4, SECOND), queue.peek().unwrap(), "a slot that is not used up is used again");
}
