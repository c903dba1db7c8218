//! Waiting for room and for messages, and going while one waits.

use core::task::Poll;

use super::super::play::run;
use super::super::woken::Woken;
use super::{ChannelUnderTest, Harness};

pub(super) fn who_sends_waits_for_room<C: ChannelUnderTest>(harness: &Harness<C>) {
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
            assert!(woken.poll(waits.as_mut()).is_pending(), "there is room for {capacity}, and no more");
            assert_eq!(calls.receive::<C>(&mut receiver).await, Some(0));
            assert!(woken.count() > 0, "there is room now, and nobody was told");
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

/// One who receives, when a message has come for him; one who sends, when there is no room yet.
pub(super) fn one_who_waited_and_goes_takes_nothing_along<C: ChannelUnderTest>(harness: &Harness<C>) {
    let calls = harness.calls();
    let unbounded = harness.unbounded;
    run(async move {
        let (sender, mut receiver) = C::open(1);
        let woken = Woken::new();
        let mut waits = Box::pin(C::receive(&mut receiver));
        assert!(woken.poll(waits.as_mut()).is_pending(), "nothing was sent");
        assert_eq!(calls.send::<C>(&sender, 1).await, Ok(()));
        assert!(woken.count() > 0, "there is a message, and nobody was told");
        drop(waits);
        assert_eq!(calls.receive::<C>(&mut receiver).await, Some(1), "it was sent, and is lost");
        if unbounded {
            return;
        }
        assert_eq!(calls.send::<C>(&sender, 2).await, Ok(()));
        let mut gone = Box::pin(C::send(&sender, 3));
        assert!(Woken::new().poll(gone.as_mut()).is_pending(), "there is no room");
        drop(gone);
        assert_eq!(calls.receive::<C>(&mut receiver).await, Some(2));
        assert_eq!(calls.send::<C>(&sender, 4).await, Ok(()), "there is room: the other one has gone");
        assert_eq!(calls.receive::<C>(&mut receiver).await, Some(4), "what was not sent does not arrive");
    });
}
