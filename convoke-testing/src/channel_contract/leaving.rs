//! Stops at any point, of the whole program or of one part: no message is lost or duplicated.

use core::cell::RefCell;
use core::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use convoke_core::{StopReason, StopSource};

use super::super::explore_stops::{explore_inner_stops, explore_stops};
use super::super::play::{Play, run};
use super::ledger::{Ledger, message};
use super::{Calls, ChannelHarness, ChannelUnderTest};
use convoke_task::{catch_stopped, checkpoint, race, scope};

const SENDERS: u32 = 2;
const MESSAGES: u32 = if cfg!(miri) { 1 } else { 3 };

/// A guard that returns its receiver when its task ends, so that the test can receive the rest. It closes the
/// channel, because senders would wait forever.
struct ReturnOnDrop<C: ChannelUnderTest> {
    receiver: Option<C::Receiver>,
    slot: Arc<Mutex<Option<C::Receiver>>>,
}

impl<C: ChannelUnderTest> Drop for ReturnOnDrop<C> {
    fn drop(&mut self) {
        if let Some(mut receiver) = self.receiver.take() {
            C::close(&mut receiver);
            *self.slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(receiver);
        }
    }
}

/// The ledger and the receiver of one run.
struct RunRecord<R> {
    ledger: Ledger,
    receiver: Arc<Mutex<Option<R>>>,
}

/// Returns a program in which several tasks send, and one receives and drops its wait again and again.
fn program<C: ChannelUnderTest>(
    calls: Calls,
    record: &RunRecord<C::Receiver>,
) -> impl Future<Output = ()> + Send + use<C> {
    let (sender, receiver) = C::open(1);
    let mut end = ReturnOnDrop::<C> { receiver: Some(receiver), slot: record.receiver.clone() };
    let ledger = record.ledger.clone();
    async move {
        scope(async |s| {
            for whose in 0..SENDERS {
                let (sender, ledger) = (sender.clone(), ledger.clone());
                s.spawn(async move {
                    for number in 0..MESSAGES {
                        let message = message(whose, number);
                        if calls.send::<C>(&sender, message).await.is_ok() {
                            ledger.sent(message);
                        }
                    }
                });
            }
            drop(sender);
            let ledger = ledger.clone();
            s.spawn(async move {
                let Some(receiver) = &mut end.receiver else { unreachable!("set above") };
                loop {
                    let received = race((async { Some(calls.receive::<C>(receiver).await) }, async {
                        checkpoint().await;
                        None
                    }));
                    match received.await {
                        Some(Some(message)) => ledger.received(message),
                        Some(None) => return,
                        None => {}
                    }
                }
            });
        })
        .await;
    }
}

pub(super) fn a_stop_loses_no_message<C: ChannelUnderTest>(harness: &ChannelHarness<C>) {
    let calls = harness.calls();
    let runs = RefCell::new(Vec::new());
    let make = || {
        let record = RunRecord { ledger: Ledger::default(), receiver: Arc::default() };
        let running = program::<C>(calls, &record);
        runs.borrow_mut().push(record);
        running
    };
    // The second makes the runs of the first, too. Miri takes seconds for a run.
    if !cfg!(miri) {
        explore_stops(make);
    }
    explore_inner_stops(make);
    for RunRecord { ledger, receiver } in runs.take() {
        let receiver = receiver.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut receiver) = receiver else { unreachable!("the task that had it has ended") };
        let book = ledger.clone();
        run(async move {
            while let Some(message) = calls.receive::<C>(&mut receiver).await {
                book.received(message);
            }
        });
        ledger.check_order();
    }
}

/// Checks that a stop ends also calls that would not have to wait.
pub(super) fn a_stop_is_heard<C: ChannelUnderTest>(harness: &ChannelHarness<C>) {
    if !harness.hears_stops {
        return;
    }
    let source = StopSource::new();
    let (sender, mut receiver) = C::open(2);
    let (mut receiver, sender) = Play::new().stop_token(source.token()).run(async move {
        assert_eq!(C::send(&sender, 1).await, Ok(()));
        source.request_stop(StopReason::Requested);
        let sent = catch_stopped(C::send(&sender, 2)).await;
        assert!(sent.is_err(), "a task that was requested to stop has sent a message");
        let received = catch_stopped(C::receive(&mut receiver)).await;
        assert!(received.is_err(), "a task that was requested to stop has received a message");
        (receiver, sender)
    });
    drop(sender);
    run(async move {
        assert_eq!(C::receive(&mut receiver).await, Some(1), "a stop lost a message that was sent");
        assert_eq!(C::receive(&mut receiver).await, None);
    });
}
