//! Our locks and channels, run through the contract suites that we offer to others.

use std::sync::Arc;

use convoke::sync::{
    Mutex, MutexGuard, OwnedMutexGuard, OwnedPermit, Permit, RwLock, Semaphore, WriteGuard,
    lossless_broadcast, mpmc, mpsc,
};
use convoke::testing::channel_contract::{self, ChannelUnderTest};
use convoke::testing::lock_contract::{self, LockUnderTest};

use crate::sync::streams::next;

macro_rules! lock {
    ($Name:ident($inner:ty), <$a:lifetime> $Held:ty, |$it:ident| $acquire:expr, $try_acquire:expr) => {
        struct $Name($inner);

        impl LockUnderTest for $Name {
            type Held<$a> = $Held;

            async fn acquire<$a>(&$a self) -> $Held {
                let $it = &self.0;
                $acquire.await
            }

            fn try_acquire<$a>(&$a self) -> Option<$Held> {
                let $it = &self.0;
                $try_acquire
            }
        }
    };
}

lock!(OfMutex(Mutex<()>), <'a> MutexGuard<'a, ()>, |it| it.lock(), it.try_lock());
lock!(OfOwnedMutex(Arc<Mutex<()>>), <'a> OwnedMutexGuard<()>, |it| it.lock_owned(), it.try_lock_owned());
lock!(OfSemaphore(Semaphore), <'a> Permit<'a>, |it| it.acquire(), it.try_acquire());
lock!(OfMany(Semaphore), <'a> Permit<'a>, |it| it.acquire_many(2), it.try_acquire_many(2));
lock!(OfOwned(Arc<Semaphore>), <'a> OwnedPermit, |it| it.acquire_owned(), it.try_acquire_many_owned(1));
lock!(OfWriters(RwLock<()>), <'a> WriteGuard<'a, ()>, |it| it.write(), it.try_write());

fn check_lock<L: LockUnderTest>(permits: usize, make: impl Fn() -> L + 'static) {
    lock_contract::check(&lock_contract::LockHarness::new(permits, make).in_order().hears_stops());
}

#[test]
fn a_mutex_keeps_the_contract_of_locks() {
    check_lock(1, || OfMutex(Mutex::new(())));
    check_lock(1, || OfOwnedMutex(Arc::default()));
}

#[test]
fn a_semaphore_keeps_the_contract_of_locks() {
    for permits in 1..=3 {
        check_lock(permits, move || OfSemaphore(Semaphore::new(permits)));
        check_lock(permits, move || OfOwned(Arc::new(Semaphore::new(permits))));
    }
    check_lock(2, || OfMany(Semaphore::new(5)));
}

#[test]
fn the_writers_of_a_read_write_lock_keep_the_contract_of_locks() {
    check_lock(1, || OfWriters(RwLock::new(())));
}

macro_rules! channel {
    ($Name:ident, $channel:ident, |$capacity:ident| $open:expr, |$receiver:ident| $another:expr) => {
        channel!(
            $Name,
            $channel,
            |$capacity| $open,
            |sender, message| sender.send(message).await.map_err(|error| error.0),
            |receiver| receiver.recv().await,
            |$receiver| $another
        );
    };
    (
        $Name:ident, $channel:ident, |$capacity:ident| $open:expr, |$sender:ident, $message:ident| $send:expr,
        |$receives:ident| $receive:expr, |$receiver:ident| $another:expr
    ) => {
        struct $Name;

        impl ChannelUnderTest for $Name {
            type Sender = $channel::Sender<u32>;
            type Receiver = $channel::Receiver<u32>;

            fn open($capacity: usize) -> (Self::Sender, Self::Receiver) {
                $open
            }

            async fn send($sender: &Self::Sender, $message: u32) -> Result<(), u32> {
                $send
            }

            async fn receive($receives: &mut Self::Receiver) -> Option<u32> {
                $receive
            }

            fn close(receiver: &mut Self::Receiver) {
                receiver.close();
            }

            fn another($receiver: &Self::Receiver) -> Option<Self::Receiver> {
                $another
            }
        }
    };
}

channel!(OfMpsc, mpsc, |capacity| mpsc::channel(capacity), |_receiver| None);
channel!(OfUnboundedMpsc, mpsc, |_capacity| mpsc::unbounded(), |_receiver| None);
channel!(OfMpmc, mpmc, |capacity| mpmc::channel(capacity), |receiver| Some(receiver.clone()));
channel!(OfUnboundedMpmc, mpmc, |_capacity| mpmc::unbounded(), |receiver| Some(receiver.clone()));
// Sends through permits, and receives as streams.
channel!(
    OfReservedMpsc,
    mpsc,
    |capacity| mpsc::channel(capacity),
    |sender, message| reserved(sender, message).await,
    |receiver| next(receiver).await,
    |_receiver| None
);
channel!(
    OfReservedMpmc,
    mpmc,
    |capacity| mpmc::channel(capacity),
    |sender, message| reserved(sender, message).await,
    |receiver| next(receiver).await,
    |receiver| Some(receiver.clone())
);
channel!(
    OfBroadcastStream,
    lossless_broadcast,
    |capacity| lossless_broadcast::channel(capacity),
    |sender, message| sender.send(message).await.map_err(|error| error.0),
    |receiver| next(receiver).await,
    |_receiver| None
);

async fn reserved(sender: &mpsc::Sender<u32>, message: u32) -> Result<(), u32> {
    match sender.reserve().await {
        Ok(permit) => {
            permit.send(message);
            Ok(())
        }
        Err(_) => Err(message),
    }
}

// With one receiver: with several, each message is received several times.
channel!(OfBroadcast, lossless_broadcast, |capacity| lossless_broadcast::channel(capacity), |_receiver| None);

fn bounded<C: ChannelUnderTest>() {
    channel_contract::check(&channel_contract::ChannelHarness::<C>::new().hears_stops());
}

fn unbounded<C: ChannelUnderTest>() {
    channel_contract::check(&channel_contract::ChannelHarness::<C>::new().unbounded().hears_stops());
}

#[test]
fn a_channel_to_one_keeps_the_contract() {
    bounded::<OfMpsc>();
    unbounded::<OfUnboundedMpsc>();
    bounded::<OfReservedMpsc>();
}

#[test]
fn a_channel_to_many_keeps_the_contract() {
    bounded::<OfMpmc>();
    unbounded::<OfUnboundedMpmc>();
    bounded::<OfReservedMpmc>();
}

#[test]
fn a_broadcast_to_one_keeps_the_contract_of_channels() {
    bounded::<OfBroadcast>();
    bounded::<OfBroadcastStream>();
}
