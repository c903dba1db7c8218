//! Two tasks that wait for each other through channels of capacity one, on one thread and on two.
//!
//! Each channel is measured on the runtime it was made for. On two threads each task has its own runtime, so
//! that no scheduler can move them to the same thread.

use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

use super::{CONVOKE, Scenario};
use crate::own::Convoke;
use crate::peer::{Glommio, OneThread, Smol, Spawner, Tokio};

/// The minimum number of round trips between two threads in a sample: a single one may find a sleeping
/// thread.
const AT_LEAST: u64 = 1000;

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario::new(
            "channel",
            "one round trip of a number between two tasks of a thread, through channels of capacity one",
        )
        .contestant(CONVOKE, one_thread::<Convoke, Mpsc>)
        .contestant("convoke_mpmc", one_thread::<Convoke, Mpmc>)
        .contestant("tokio", one_thread::<Tokio, TokioMpsc>)
        .contestant("smol", one_thread::<Smol, AsyncChannel>)
        .contestant("futures", one_thread::<Smol, FuturesMpsc>)
        .contestant_if(Glommio::starts(), "glommio", one_thread::<Glommio, GlommioLocal>),
        Scenario::new(
            "channel_mpsc_2",
            "one round trip of a number between two threads, through channels of capacity one",
        )
        .batch(AT_LEAST)
        .contestant(CONVOKE, two_threads::<Convoke, Mpsc>)
        .contestant("convoke_mpmc", two_threads::<Convoke, Mpmc>)
        .contestant("tokio", two_threads::<Tokio, TokioMpsc>)
        .contestant("smol", two_threads::<Smol, AsyncChannel>)
        .contestant("futures", two_threads::<Smol, FuturesMpsc>),
    ]
}

/// A channel of capacity one.
trait Channel {
    type Sender: 'static;
    type Receiver: 'static;

    fn open() -> (Self::Sender, Self::Receiver);

    fn send(sender: &mut Self::Sender, message: u64) -> impl Future<Output = ()>;

    fn receive(receiver: &mut Self::Receiver) -> impl Future<Output = u64>;
}

struct Mpsc;

impl Channel for Mpsc {
    type Sender = convoke::sync::mpsc::Sender<u64>;
    type Receiver = convoke::sync::mpsc::Receiver<u64>;

    fn open() -> (Self::Sender, Self::Receiver) {
        convoke::sync::mpsc::channel(1)
    }

    #[inline]
    async fn send(sender: &mut Self::Sender, message: u64) {
        sender.send(message).await.expect("somebody receives");
    }

    #[inline]
    async fn receive(receiver: &mut Self::Receiver) -> u64 {
        receiver.recv().await.expect("somebody sends")
    }
}

struct Mpmc;

impl Channel for Mpmc {
    type Sender = convoke::sync::mpmc::Sender<u64>;
    type Receiver = convoke::sync::mpmc::Receiver<u64>;

    fn open() -> (Self::Sender, Self::Receiver) {
        convoke::sync::mpmc::channel(1)
    }

    #[inline]
    async fn send(sender: &mut Self::Sender, message: u64) {
        sender.send(message).await.expect("somebody receives");
    }

    #[inline]
    async fn receive(receiver: &mut Self::Receiver) -> u64 {
        receiver.recv().await.expect("somebody sends")
    }
}

struct TokioMpsc;

impl Channel for TokioMpsc {
    type Sender = tokio::sync::mpsc::Sender<u64>;
    type Receiver = tokio::sync::mpsc::Receiver<u64>;

    fn open() -> (Self::Sender, Self::Receiver) {
        tokio::sync::mpsc::channel(1)
    }

    #[inline]
    async fn send(sender: &mut Self::Sender, message: u64) {
        sender.send(message).await.expect("somebody receives");
    }

    #[inline]
    async fn receive(receiver: &mut Self::Receiver) -> u64 {
        receiver.recv().await.expect("somebody sends")
    }
}

struct AsyncChannel;

impl Channel for AsyncChannel {
    type Sender = async_channel::Sender<u64>;
    type Receiver = async_channel::Receiver<u64>;

    fn open() -> (Self::Sender, Self::Receiver) {
        async_channel::bounded(1)
    }

    #[inline]
    async fn send(sender: &mut Self::Sender, message: u64) {
        sender.send(message).await.expect("somebody receives");
    }

    #[inline]
    async fn receive(receiver: &mut Self::Receiver) -> u64 {
        receiver.recv().await.expect("somebody sends")
    }
}

/// Each sender has a capacity of one message of its own.
struct FuturesMpsc;

impl Channel for FuturesMpsc {
    type Sender = futures::channel::mpsc::Sender<u64>;
    type Receiver = futures::channel::mpsc::Receiver<u64>;

    fn open() -> (Self::Sender, Self::Receiver) {
        futures::channel::mpsc::channel(0)
    }

    #[inline]
    async fn send(sender: &mut Self::Sender, message: u64) {
        futures::SinkExt::feed(sender, message).await.expect("somebody receives");
    }

    #[inline]
    async fn receive(receiver: &mut Self::Receiver) -> u64 {
        futures::StreamExt::next(receiver).await.expect("somebody sends")
    }
}

/// Only between tasks of one thread.
struct GlommioLocal;

impl Channel for GlommioLocal {
    type Sender = glommio::channels::local_channel::LocalSender<u64>;
    type Receiver = glommio::channels::local_channel::LocalReceiver<u64>;

    fn open() -> (Self::Sender, Self::Receiver) {
        glommio::channels::local_channel::new_bounded(1)
    }

    #[inline]
    async fn send(sender: &mut Self::Sender, message: u64) {
        sender.send(message).await.expect("somebody receives");
    }

    #[inline]
    async fn receive(receiver: &mut Self::Receiver) -> u64 {
        receiver.recv().await.expect("somebody sends")
    }
}

/// Sends back what it receives.
async fn answer<C: Channel>(mut pinged: C::Receiver, mut ponged: C::Sender, ops: u64) {
    for _ in 0..=ops {
        let message = C::receive(&mut pinged).await;
        C::send(&mut ponged, message).await;
    }
}

async fn ask<C: Channel>(mut ping: C::Sender, mut pong: C::Receiver, ops: u64) -> Duration {
    // Not timed: waits until the other task is ready.
    C::send(&mut ping, ops).await;
    C::receive(&mut pong).await;
    let start = Instant::now();
    for op in 0..ops {
        C::send(&mut ping, black_box(op)).await;
        black_box(C::receive(&mut pong).await);
    }
    start.elapsed()
}

fn one_thread<R: OneThread, C: Channel + 'static>() -> impl FnMut(u64) -> Duration {
    let mut runtime = R::start();
    move |ops| {
        runtime.run(|spawner| async move {
            let ((ping, pinged), (ponged, pong)) = (C::open(), C::open());
            let other = spawner.spawn(answer::<C>(pinged, ponged, ops));
            let elapsed = ask::<C>(ping, pong, ops).await;
            other.await;
            elapsed
        })
    }
}

fn two_threads<R: OneThread, C: Channel<Sender: Send, Receiver: Send> + 'static>()
-> impl FnMut(u64) -> Duration {
    let mut runtime = R::start();
    move |ops| {
        let ((ping, pinged), (ponged, pong)) = (C::open(), C::open());
        let other = thread::spawn(move || R::start().run(|_| answer::<C>(pinged, ponged, ops)));
        let elapsed = runtime.run(|_| ask::<C>(ping, pong, ops));
        other.join().expect("the contestant does not panic");
        elapsed
    }
}
