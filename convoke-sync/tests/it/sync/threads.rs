//! Tests of the blocking calls: threads send and receive, and tasks and loops are refused.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use convoke::prelude::*;
use convoke::sender::prelude::*;
use convoke::sync::broadcast::{self, RecvError};
use convoke::sync::{lossless_broadcast, mpmc, mpsc, oneshot};

#[test]
fn threads_send_and_receive_through_a_full_channel() {
    const MANY: u32 = if cfg!(miri) { 50 } else { 2_000 };
    let (sender, mut receiver) = mpsc::channel(1);
    let sends = thread::spawn(move || (0..MANY).for_each(|n| sender.blocking_send(n).unwrap()));
    assert_eq!((0..MANY).find(|n| receiver.blocking_recv() != Some(*n)), None);
    assert_eq!(receiver.blocking_recv(), None);
    sends.join().unwrap();
}

#[test]
fn a_blocked_thread_hears_that_the_other_half_is_dropped() {
    let (sender, receiver) = mpmc::channel(1);
    sender.try_send(1).unwrap();
    let sends = thread::spawn(move || sender.blocking_send(2).is_err());
    drop(receiver);
    assert!(sends.join().unwrap());
    let (sender, receiver) = mpmc::channel::<u8>(1);
    let receives = thread::spawn(move || receiver.blocking_recv());
    drop(sender);
    assert_eq!(receives.join().unwrap(), None);
}

#[test]
fn broadcasts_and_oneshots_reach_a_blocked_thread() {
    let (sender, mut receiver) = broadcast::channel(1);
    let receives = thread::spawn(move || (receiver.blocking_recv(), receiver.blocking_recv()));
    sender.send(1).unwrap();
    drop(sender);
    assert_eq!(receives.join().unwrap(), (Ok(1), Err(RecvError::Closed)));
    let (sender, mut receiver) = lossless_broadcast::channel(1);
    let receives = thread::spawn(move || [(); 3].map(|()| receiver.blocking_recv()));
    sender.blocking_send(1).unwrap();
    sender.blocking_send(2).unwrap();
    drop(sender);
    assert_eq!(receives.join().unwrap(), [Some(1), Some(2), None]);
    let (sender, receiver) = oneshot::channel();
    let receives = thread::spawn(move || receiver.blocking_recv());
    sender.send(1).unwrap();
    assert_eq!(receives.join().unwrap(), Ok(1));
}

#[test]
fn blocking_work_of_a_task_may_block() {
    let (sender, mut receiver) = mpsc::channel(1);
    let outcome = block_on(async {
        scope(async |s| {
            let received = s.spawn_future(blocking(move |_| receiver.blocking_recv()));
            sender.send(7).await.unwrap();
            received.await
        })
        .await
    });
    assert_eq!(outcome, Outcome::Value(Some(7)));
}

/// Calls `f`, and returns the message of its panic.
fn refusal(f: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(f)).expect_err("the call was not refused");
    *panic.downcast::<String>().expect("the message has arguments")
}

#[test]
fn a_blocking_call_in_a_task_is_refused() {
    let message = refusal(|| {
        let (_sender, mut receiver) = mpsc::channel::<u8>(1);
        _ = block_on(async { receiver.blocking_recv() });
    });
    assert!(message.starts_with("`blocking_recv` was called in a task"), "{message}");
    assert!(message.contains("await `recv` instead"), "{message}");
}

#[test]
fn a_blocking_call_on_the_thread_of_a_loop_is_refused() {
    let message = refusal(|| {
        let (sender, _receiver) = mpsc::channel::<u8>(1);
        // It waits, and so goes on in the loop of `sync_wait`, outside of a task.
        let late = sleep(std::time::Duration::from_millis(1));
        _ = sync_wait(late.then(move |()| sender.blocking_send(1)));
    });
    assert!(message.starts_with("`blocking_send` was called on the thread of a run loop"), "{message}");
}
