//! Waits for capacity and for messages, and waits that are dropped.

use core::task::Poll;

use super::super::play::run;
use super::super::woken::Woken;
use super::{ChannelHarness, ChannelUnderTest};

pub(super) fn send_waits_for_capacity<C: ChannelUnderTest>(harness: &ChannelHarness<C>) {
    if harness.unbounded {
        return;
    }
    let calls = harness.calls();
    run(async move {
        for capacity in 1..=3 {
            let (sender, mut receiver) = C::open(capacity);
            for number in 0..capacity as u32 {
                assert_eq!(calls.send::<C>(&sender, number).await, Ok(()));
            }
            let woken = Woken::new();
            let mut waits = Box::pin(C::send(&sender, 99));
            assert!(
                woken.poll(waits.as_mut()).is_pending(),
                "the channel accepted more than {capacity} messages"
            );
            assert_eq!(calls.receive::<C>(&mut receiver).await, Some(0));
            assert!(woken.count() > 0, "there is capacity, but no sender was woken");
            assert_eq!(woken.poll(waits.as_mut()), Poll::Ready(Ok(())));
            drop(waits);
            drop(sender);
            let mut rest = Vec::new();
            while let Some(message) = calls.receive::<C>(&mut receiver).await {
                rest.push(message);
            }
            assert_eq!(rest.len(), capacity);
            assert_eq!(rest.last(), Some(&99));
        }
    });
}

/// Checks that a dropped wait loses nothing: a receive when a message has arrived for it, a send when there
/// is no capacity yet.
pub(super) fn a_dropped_wait_takes_nothing<C: ChannelUnderTest>(harness: &ChannelHarness<C>) {
    let calls = harness.calls();
    let unbounded = harness.unbounded;
    run(async move {
        let (sender, mut receiver) = C::open(1);
        let woken = Woken::new();
        let mut waits = Box::pin(C::receive(&mut receiver));
        assert!(woken.poll(waits.as_mut()).is_pending(), "nothing was sent");
        assert_eq!(calls.send::<C>(&sender, 1).await, Ok(()));
        assert!(woken.count() > 0, "there is a message, but no receiver was woken");
        drop(waits);
        assert_eq!(calls.receive::<C>(&mut receiver).await, Some(1), "the message was sent, but is lost");
        if unbounded {
            return;
        }
        assert_eq!(calls.send::<C>(&sender, 2).await, Ok(()));
        let mut gone = Box::pin(C::send(&sender, 3));
        assert!(
            Woken::new().poll(gone.as_mut()).is_pending(),
            "the channel accepted a message beyond its capacity"
        );
        drop(gone);
        assert_eq!(calls.receive::<C>(&mut receiver).await, Some(2));
        assert_eq!(calls.send::<C>(&sender, 4).await, Ok(()), "the dropped send takes capacity");
        assert_eq!(
            calls.receive::<C>(&mut receiver).await,
            Some(4),
            "the message of the dropped send arrived"
        );
    });
}
