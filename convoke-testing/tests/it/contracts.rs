//! The suites for locks and channels: they accept types that keep the contract, also without support for
//! stops, and reject those that do not.
use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use convoke::Panic;
use convoke::testing::channel_contract::{self, ChannelUnderTest};
use convoke::testing::lock_contract::{self, LockUnderTest};

fn complaint(check: impl FnOnce()) -> String {
    let failed = Panic::catch(check).expect_err("it should fail");
    failed.message().to_owned()
}

/// The bug of a lock.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// Admits every task.
    Open,
    /// Wakes the last waiter first.
    LastFirst,
    /// Loses the permit of a waiter that was granted it and is dropped.
    KeepsPermits,
}

/// A lock without support for stops: permits are granted to waiters.
struct Foreign {
    fault: Fault,
    state: Arc<Mutex<LockState>>,
}

#[derive(Default)]
struct LockState {
    free: usize,
    waiting: VecDeque<(u64, Waker)>,
    granted: Vec<u64>,
    next: u64,
}

struct Held<'a>(&'a Foreign);

/// A future that waits for a permit.
struct Waiting<'a> {
    lock: &'a Foreign,
    number: Option<u64>,
}

impl Foreign {
    fn new(permits: usize, fault: Fault) -> Self {
        Self { fault, state: Arc::new(Mutex::new(LockState { free: permits, ..LockState::default() })) }
    }

    fn give_back(&self) {
        let mut state = self.state.lock().unwrap();
        let next =
            if self.fault == Fault::LastFirst { state.waiting.pop_back() } else { state.waiting.pop_front() };
        match next {
            Some((number, waker)) => {
                state.granted.push(number);
                drop(state);
                waker.wake();
            }
            None => state.free += 1,
        }
    }
}

impl<'a> Waiting<'a> {
    fn poll(&mut self, cx: &Context<'_>) -> Poll<Held<'a>> {
        let mut state = self.lock.state.lock().unwrap();
        if let Some(number) = self.number {
            if let Some(at) = state.granted.iter().position(|granted| *granted == number) {
                state.granted.swap_remove(at);
                self.number = None;
                return Poll::Ready(Held(self.lock));
            }
            state.waiting.iter_mut().filter(|waiting| waiting.0 == number).for_each(|waiting| {
                waiting.1 = cx.waker().clone();
            });
            return Poll::Pending;
        }
        if state.free > 0 || self.lock.fault == Fault::Open {
            state.free = state.free.saturating_sub(1);
            return Poll::Ready(Held(self.lock));
        }
        let number = state.next;
        state.next += 1;
        state.waiting.push_back((number, cx.waker().clone()));
        self.number = Some(number);
        Poll::Pending
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let Some(number) = self.number else { return };
        let mut state = self.lock.state.lock().unwrap();
        state.waiting.retain(|waiting| waiting.0 != number);
        let was_granted = state.granted.contains(&number);
        state.granted.retain(|granted| *granted != number);
        drop(state);
        if was_granted && self.lock.fault != Fault::KeepsPermits {
            self.lock.give_back();
        }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.give_back();
    }
}

impl LockUnderTest for Foreign {
    type Held<'a> = Held<'a>;

    async fn acquire(&self) -> Held<'_> {
        let mut waiting = Waiting { lock: self, number: None };
        poll_fn(|cx| waiting.poll(cx)).await
    }

    fn try_acquire(&self) -> Option<Held<'_>> {
        let mut state = self.state.lock().unwrap();
        let free = state.free.checked_sub(1)?;
        state.free = free;
        Some(Held(self))
    }
}

fn harness(permits: usize, fault: Fault) -> lock_contract::LockHarness<Foreign> {
    lock_contract::LockHarness::new(permits, move || Foreign::new(permits, fault)).in_order()
}

#[test]
fn a_lock_that_knows_nothing_of_stops_keeps_the_contract() {
    lock_contract::check(&harness(1, Fault::None));
    lock_contract::check(&harness(3, Fault::None));
}

#[test]
fn a_lock_that_lets_everybody_in_is_found() {
    let says = complaint(|| lock_contract::check(&harness(2, Fault::Open)));
    assert!(says.contains("holders are in a lock for 2"), "{says}");
}

#[test]
fn a_lock_that_serves_the_last_first_is_found_if_it_promised_otherwise() {
    let says = complaint(|| lock_contract::check(&harness(1, Fault::LastFirst)));
    assert!(says.contains("the waiters got in out of order"), "{says}");
    let no_promise = lock_contract::LockHarness::new(1, || Foreign::new(1, Fault::LastFirst));
    lock_contract::check(&no_promise);
}

#[test]
fn a_lock_that_loses_the_permits_of_those_who_go_is_found() {
    let says = complaint(|| lock_contract::check(&harness(1, Fault::KeepsPermits)));
    assert!(says.contains("the first waiter was dropped, but the second was not woken"), "{says}");
}

#[test]
fn a_lock_that_does_not_hear_stops_is_found_if_it_promised_to() {
    let says = complaint(|| lock_contract::check(&harness(1, Fault::None).hears_stops()));
    assert!(says.contains("hangs") || says.contains("requested to stop"), "{says}");
}

/// A channel without support for stops.
struct Plain<const FAULT: u8>;

/// Drops sent messages at the end.
const FORGETS_AT_THE_END: u8 = 1;
/// A dropped receive loses a message.
const LOSES_WHAT_IS_GIVEN: u8 = 2;
/// Accepts one message more than its capacity.
const TOO_MUCH_ROOM: u8 = 3;
/// Wakes only one waiter at the end.
const TELLS_ONE: u8 = 4;

struct Line {
    messages: VecDeque<u32>,
    capacity: usize,
    senders: usize,
    closed: bool,
    sending: Vec<Waker>,
    receiving: Vec<Waker>,
}

struct Sends<const FAULT: u8>(Arc<Mutex<Line>>);
struct Receives<const FAULT: u8>(Arc<Mutex<Line>>);

impl Line {
    fn end<const FAULT: u8>(line: &Mutex<Self>) {
        let mut line = line.lock().unwrap();
        line.closed = true;
        if FAULT == FORGETS_AT_THE_END {
            line.messages.clear();
        }
        let mut told = std::mem::take(&mut line.receiving);
        told.append(&mut line.sending);
        drop(line);
        let most = if FAULT == TELLS_ONE { 1 } else { told.len() };
        told.into_iter().take(most).for_each(Waker::wake);
    }
}

impl<const FAULT: u8> Clone for Sends<FAULT> {
    fn clone(&self) -> Self {
        self.0.lock().unwrap().senders += 1;
        Self(self.0.clone())
    }
}

impl<const FAULT: u8> Drop for Sends<FAULT> {
    fn drop(&mut self) {
        let mut line = self.0.lock().unwrap();
        line.senders -= 1;
        let last = line.senders == 0;
        drop(line);
        if last {
            Line::end::<FAULT>(&self.0);
        }
    }
}

impl<const FAULT: u8> Drop for Receives<FAULT> {
    fn drop(&mut self) {
        Line::end::<FAULT>(&self.0);
    }
}

/// A message that was given to a receive and is not taken yet.
struct Given<'a>(&'a Mutex<Line>, Option<u32>);

impl Drop for Given<'_> {
    fn drop(&mut self) {
        if let Some(message) = self.1.take() {
            self.0.lock().unwrap().messages.push_front(message);
        }
    }
}

impl<const FAULT: u8> ChannelUnderTest for Plain<FAULT> {
    type Sender = Sends<FAULT>;
    type Receiver = Receives<FAULT>;

    fn open(capacity: usize) -> (Sends<FAULT>, Receives<FAULT>) {
        let capacity = capacity + usize::from(FAULT == TOO_MUCH_ROOM);
        let line = Line {
            messages: VecDeque::new(),
            capacity,
            senders: 1,
            closed: false,
            sending: Vec::new(),
            receiving: Vec::new(),
        };
        let line = Arc::new(Mutex::new(line));
        (Sends(line.clone()), Receives(line))
    }

    async fn send(sender: &Sends<FAULT>, message: u32) -> Result<(), u32> {
        poll_fn(|cx| {
            let mut line = sender.0.lock().unwrap();
            if line.closed {
                return Poll::Ready(Err(message));
            }
            if line.messages.len() >= line.capacity {
                line.sending.push(cx.waker().clone());
                return Poll::Pending;
            }
            line.messages.push_back(message);
            let told = std::mem::take(&mut line.receiving);
            drop(line);
            told.into_iter().for_each(Waker::wake);
            Poll::Ready(Ok(()))
        })
        .await
    }

    async fn receive(receiver: &mut Receives<FAULT>) -> Option<u32> {
        let mut given = Given(&receiver.0, None);
        let mut waited = false;
        poll_fn(|cx| {
            let mut line = receiver.0.lock().unwrap();
            let Some(message) = line.messages.pop_front() else {
                if line.closed {
                    return Poll::Ready(());
                }
                line.receiving.push(cx.waker().clone());
                waited = true;
                return Poll::Pending;
            };
            let told = std::mem::take(&mut line.sending);
            drop(line);
            told.into_iter().for_each(Waker::wake);
            given.1 = Some(message);
            Poll::Ready(())
        })
        .await;
        if FAULT == LOSES_WHAT_IS_GIVEN {
            let message = given.1.take();
            // A point at which it can be stopped or dropped while it holds the message.
            convoke::checkpoint().await;
            return message;
        }
        given.1.take()
    }

    fn close(receiver: &mut Receives<FAULT>) {
        Line::end::<FAULT>(&receiver.0);
    }
}

fn check<const FAULT: u8>() {
    channel_contract::check(&channel_contract::ChannelHarness::<Plain<FAULT>>::new());
}

#[test]
fn a_channel_that_knows_nothing_of_stops_keeps_the_contract() {
    check::<0>();
}

#[test]
fn a_channel_that_forgets_at_the_end_is_found() {
    let says = complaint(check::<FORGETS_AT_THE_END>);
    assert!(says.contains("lost") || says.contains("left: ["), "{says}");
}

#[test]
fn a_channel_that_loses_what_was_given_to_one_who_goes_is_found() {
    let says = complaint(check::<LOSES_WHAT_IS_GIVEN>);
    assert!(says.contains("was sent and is lost"), "{says}");
}

#[test]
fn a_channel_with_too_much_room_is_found() {
    let says = complaint(check::<TOO_MUCH_ROOM>);
    assert!(says.contains("the channel accepted more than 1 messages"), "{says}");
}

#[test]
fn a_channel_that_tells_only_one_of_its_end_is_found() {
    let says = complaint(check::<TELLS_ONE>);
    assert!(says.contains("hangs"), "{says}");
}
