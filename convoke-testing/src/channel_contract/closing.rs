//! Closing a channel: no sent message is lost, and all waiters are woken.

use std::sync::{Arc, Mutex};

use super::super::play::run;
use super::super::wait_all_blocked::wait_all_blocked;
use super::{ChannelHarness, ChannelUnderTest};
use convoke_task::scope;

const WAITERS: u32 = 4;

pub(super) fn what_was_sent_is_received_after_the_end<C: ChannelUnderTest>(harness: &ChannelHarness<C>) {
    let calls = harness.calls();
    run(async move {
        let (sender, mut receiver) = C::open(3);
        for number in 0..3 {
            assert_eq!(calls.send::<C>(&sender, number).await, Ok(()));
        }
        C::close(&mut receiver);
        assert_eq!(calls.send::<C>(&sender, 7).await, Err(7), "a closed channel must return the message");
        for number in 0..3 {
            assert_eq!(
                calls.receive::<C>(&mut receiver).await,
                Some(number),
                "a message that was sent before the end is lost"
            );
        }
        for _ in 0..2 {
            assert_eq!(calls.receive::<C>(&mut receiver).await, None, "the channel is closed and empty");
        }
    });
}

pub(super) fn the_last_sender_ends_it<C: ChannelUnderTest>(harness: &ChannelHarness<C>) {
    let calls = harness.calls();
    run(async move {
        let (sender, mut receiver) = C::open(2);
        let other = sender.clone();
        assert_eq!(calls.send::<C>(&sender, 1).await, Ok(()));
        drop(sender);
        assert_eq!(
            calls.send::<C>(&other, 2).await,
            Ok(()),
            "the channel closed before its last sender was dropped"
        );
        drop(other);
        assert_eq!(calls.receive::<C>(&mut receiver).await, Some(1));
        assert_eq!(calls.receive::<C>(&mut receiver).await, Some(2));
        assert_eq!(calls.receive::<C>(&mut receiver).await, None, "the channel is closed and empty");
    });
}

/// Checks that the end wakes all receivers, or the only one.
pub(super) fn the_end_wakes_all_receivers<C: ChannelUnderTest>(harness: &ChannelHarness<C>) {
    let calls = harness.calls();
    run(async move {
        scope(async |s| {
            let (sender, receiver) = C::open(1);
            let mut receivers = vec![receiver];
            for _ in 1..WAITERS {
                receivers.extend(C::another(&receivers[0]));
            }
            for mut receiver in receivers {
                s.spawn(async move {
                    assert_eq!(
                        calls.receive::<C>(&mut receiver).await,
                        None,
                        "the channel is closed and empty"
                    );
                });
            }
            wait_all_blocked().await;
            drop(sender);
        })
        .await;
    });
}

pub(super) fn the_end_wakes_all_senders<C: ChannelUnderTest>(harness: &ChannelHarness<C>) {
    if harness.unbounded {
        return;
    }
    let calls = harness.calls();
    run(async move {
        let returned = Arc::new(Mutex::new(Vec::new()));
        scope(async |s| {
            let (sender, mut receiver) = C::open(1);
            assert_eq!(calls.send::<C>(&sender, 0).await, Ok(()));
            for number in 1..=WAITERS {
                let (sender, returned) = (sender.clone(), returned.clone());
                s.spawn(async move {
                    let back = calls.send::<C>(&sender, number).await;
                    returned.lock().unwrap().extend(back.err());
                });
            }
            wait_all_blocked().await;
            C::close(&mut receiver);
            assert_eq!(
                calls.receive::<C>(&mut receiver).await,
                Some(0),
                "a message that was sent before the end is lost"
            );
            let rest = calls.receive::<C>(&mut receiver).await;
            assert_eq!(rest, None, "a message beyond the capacity was received after the end");
        })
        .await;
        let mut returned = returned.lock().unwrap().clone();
        returned.sort_unstable();
        assert_eq!(
            returned,
            (1..=WAITERS).collect::<Vec<_>>(),
            "messages that were not sent must be returned"
        );
    });
}

pub(super) fn messages_are_returned_without_a_receiver<C: ChannelUnderTest>(harness: &ChannelHarness<C>) {
    let calls = harness.calls();
    let unbounded = harness.unbounded;
    run(async move {
        scope(async |s| {
            let (sender, receiver) = C::open(1);
            if !unbounded {
                assert_eq!(calls.send::<C>(&sender, 0).await, Ok(()));
                let sends = sender.clone();
                s.spawn(async move {
                    assert_eq!(calls.send::<C>(&sends, 1).await, Err(1), "the only receiver was dropped");
                });
                wait_all_blocked().await;
            }
            drop(receiver);
            assert_eq!(calls.send::<C>(&sender, 2).await, Err(2), "the only receiver was dropped");
        })
        .await;
    });
}
