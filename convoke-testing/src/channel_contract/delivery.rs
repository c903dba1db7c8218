//! Delivery: each message arrives once, and those of one sender in order.

use super::super::play::run;
use super::ledger::{Ledger, message};
use super::{Calls, ChannelHarness, ChannelUnderTest};
use convoke_exec::ThreadPool;
use convoke_task::{launch, scope};

const MESSAGES: u32 = if cfg!(miri) { 4 } else { 20 };
const SENDERS: u32 = 3;
const THREADS: usize = 3;
const MESSAGES_ON_THREADS: u32 = if cfg!(miri) { 3 } else { 200 };

pub(super) fn messages_of_one_sender_arrive_in_their_order<C: ChannelUnderTest>(harness: &ChannelHarness<C>) {
    let calls = harness.calls();
    for capacity in 1..=3 {
        let received = run(async move {
            scope(async |s| {
                let (sender, mut receiver) = C::open(capacity);
                s.spawn(async move {
                    for number in 0..MESSAGES {
                        calls.send::<C>(&sender, number).await.expect("the receiver is alive");
                    }
                });
                let mut received = Vec::new();
                while let Some(message) = calls.receive::<C>(&mut receiver).await {
                    received.push(message);
                }
                received
            })
            .await
        });
        assert_eq!(received, (0..MESSAGES).collect::<Vec<_>>(), "with a capacity of {capacity}");
    }
}

async fn send_all<C: ChannelUnderTest>(
    calls: Calls,
    sender: C::Sender,
    ledger: Ledger,
    whose: u32,
    many: u32,
) {
    for number in 0..many {
        let message = message(whose, number);
        if calls.send::<C>(&sender, message).await.is_ok() {
            ledger.sent(message);
        }
    }
}

async fn receive_all<C: ChannelUnderTest>(calls: Calls, mut receiver: C::Receiver, ledger: Ledger) {
    while let Some(message) = calls.receive::<C>(&mut receiver).await {
        ledger.received(message);
    }
}

pub(super) fn each_message_arrives_once<C: ChannelUnderTest>(harness: &ChannelHarness<C>) {
    let (calls, ledger) = (harness.calls(), Ledger::default());
    let book = ledger.clone();
    let alone = run(async move {
        scope(async |s| {
            let (sender, receiver) = C::open(2);
            let other = C::another(&receiver);
            let alone = other.is_none();
            for whose in 0..SENDERS {
                s.spawn(send_all::<C>(calls, sender.clone(), book.clone(), whose, MESSAGES));
            }
            if let Some(other) = other {
                s.spawn(receive_all::<C>(calls, other, book.clone()));
            }
            s.spawn(receive_all::<C>(calls, receiver, book.clone()));
            alone
        })
        .await
    });
    if alone {
        ledger.check_order();
    } else {
        ledger.check();
    }
}

pub(super) fn each_message_arrives_once_on_several_threads<C: ChannelUnderTest>(harness: &ChannelHarness<C>) {
    let (calls, ledger) = (harness.calls(), Ledger::default());
    let pool = ThreadPool::new(THREADS).expect("the system could start threads");
    let (sender, receiver) = C::open(2);
    let mut launched = Vec::new();
    for whose in 0..SENDERS {
        let sends = send_all::<C>(calls, sender.clone(), ledger.clone(), whose, MESSAGES_ON_THREADS);
        launched.push(launch(&pool.executor()).start(sends));
    }
    drop(sender);
    if let Some(other) = C::another(&receiver) {
        launched.push(launch(&pool.executor()).start(receive_all::<C>(calls, other, ledger.clone())));
    }
    launched.push(launch(&pool.executor()).start(receive_all::<C>(calls, receiver, ledger.clone())));
    for task in launched {
        task.wait().unwrap();
    }
    ledger.check();
}
