//! Attempts on a source that lies or panics, through the futures of a socket.

use std::cell::Cell;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context as TaskContext, Wake, Waker};
use std::thread;

use convoke::Panic;
use convoke::driver::IoContext;
use convoke::driver::{
    Address, InFlight, Interest, OperationId, Source, Submitted, Ticket, Watched, Watchers,
};
use convoke::net::TcpStream;
use convoke::prelude::*;

use crate::lawless_driver::drivers::Bare;
use crate::lawless_driver::lawless::{caught, poll_once};

/// The behaviour of a stream.
#[derive(Clone, Copy)]
struct Behaviour {
    transfer: fn(usize) -> io::Result<usize>,
    watch: fn(&Lying, Ticket, &Waker) -> Option<Ticket>,
    unwatch: fn(&Lying, Ticket),
}

const HONEST: Behaviour = Behaviour {
    transfer: |_| Err(io::ErrorKind::WouldBlock.into()),
    watch: |source, ticket, waker| {
        let watched: Watched = source.watchers.lock().unwrap().watch(ticket, waker.clone());
        Some(watched.ticket)
    },
    unwatch: |source, ticket| drop(source.watchers.lock().unwrap().unwatch(ticket)),
};

/// A stream that connects at once, and then behaves as chosen.
struct Lying {
    behaviour: Behaviour,
    watchers: Mutex<Watchers>,
}

impl Lying {
    fn context(behaviour: Behaviour) -> (IoContext, Arc<Self>) {
        let source = Arc::new(Self { behaviour, watchers: Mutex::default() });
        (IoContext::new(Arc::new(Bare::with_stream(source.clone()))), source)
    }
}

impl fmt::Debug for Lying {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lying")
    }
}

impl Source for Lying {
    fn submit(&self, operation: InFlight) -> Submitted {
        Submitted::Done(operation, Ok(0))
    }

    fn cancel(&self, _: OperationId) -> Option<InFlight> {
        None
    }

    fn watch(&self, _: Interest, ticket: Ticket, waker: &Waker) -> Option<Ticket> {
        (self.behaviour.watch)(self, ticket, waker)
    }

    fn unwatch(&self, _: Interest, ticket: Ticket) {
        (self.behaviour.unwatch)(self, ticket);
    }

    fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        (self.behaviour.transfer)(buffer.len())
    }

    fn try_write(&self, buffer: &[u8]) -> io::Result<usize> {
        (self.behaviour.transfer)(buffer.len())
    }

    fn local_address(&self) -> io::Result<Address> {
        Ok(Address::Unnamed)
    }
}

async fn connected() -> TcpStream {
    TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], 1))).await.unwrap()
}

#[test]
fn a_result_beyond_the_buffer_counts_as_the_whole_buffer() {
    let (context, _) = Lying::context(Behaviour { transfer: |length| Ok(length + 3), ..HONEST });
    let outcome = context.block_on(async {
        let stream = connected().await;
        let mut buffer = [1; 4];
        assert_eq!(stream.read(&mut buffer).await.unwrap(), 7);
        stream.read_exact(&mut buffer).await.unwrap();
        stream.write_all(b"words").await.unwrap();
        assert_eq!(buffer, [1; 4], "nothing was written into the buffer");
    });
    assert_eq!(outcome, Outcome::Value(()));
}

#[test]
fn a_result_beyond_the_buffer_of_a_lease_panics() {
    let (context, _) = Lying::context(Behaviour { transfer: |length| Ok(length + 1), ..HONEST });
    let leased = Panic::catch(|| context.block_on(async { connected().await.read_lease().await.map(drop) }));
    assert!(leased.unwrap_err().message().contains("do not fit into a lease"));
}

#[test]
fn an_attempt_that_panics_panics_the_task_and_the_stream_can_be_used_again() {
    thread_local! {
        static PANICS: Cell<bool> = const { Cell::new(true) };
    }
    let (context, _) = Lying::context(Behaviour {
        transfer: |length| {
            assert!(!PANICS.replace(false), "the driver breaks");
            Ok(length)
        },
        ..HONEST
    });
    let outcome = context.block_on(async {
        let stream = connected().await;
        let mut buffer = [0; 4];
        let broken = caught(stream.read(&mut buffer)).await;
        assert!(broken.is_err());
        stream.read(&mut buffer).await.unwrap()
    });
    assert_eq!(outcome, Outcome::Value(4));
}

#[test]
fn a_source_that_alternates_between_ready_and_would_block_can_be_stopped() {
    for (watch, transfer) in [
        ((|_, _, _| None) as fn(&Lying, Ticket, &Waker) -> Option<Ticket>, HONEST.transfer),
        (HONEST.watch, |_| Err(io::ErrorKind::Interrupted.into())),
    ] {
        let (context, _) = Lying::context(Behaviour { transfer, watch, ..HONEST });
        let outcome = context.block_on(async {
            scope(async |s| {
                let reader = s.spawn_future(async {
                    let mut buffer = [0; 4];
                    connected().await.read(&mut buffer).await
                });
                for _ in 0..3 {
                    checkpoint().await;
                }
                drop(reader);
            })
            .await
        });
        assert_eq!(outcome, Outcome::Value(()));
    }
}

/// Counts how often it is woken.
#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_source_that_alternates_gives_the_thread_back_outside_a_task_too() {
    for (watch, transfer) in [
        ((|_, _, _| None) as fn(&Lying, Ticket, &Waker) -> Option<Ticket>, HONEST.transfer),
        (HONEST.watch, |_| Err(io::ErrorKind::Interrupted.into())),
    ] {
        let (context, _) = Lying::context(Behaviour { transfer, watch, ..HONEST });
        let stream = context.block_on(connected()).unwrap();
        let (wakes, mut buffer) = (Arc::new(Wakes::default()), [0; 4]);
        let waker = Waker::from(wakes.clone());
        let mut read = pin!(stream.read(&mut buffer));
        for polls in 1..=3 {
            // Each poll returns, and asks to be polled again.
            assert!(read.as_mut().poll(&mut TaskContext::from_waker(&waker)).is_pending());
            assert_eq!(wakes.0.load(Ordering::Relaxed), polls);
        }
    }
}

#[test]
fn a_source_that_never_wakes_can_be_stopped() {
    for watch in [
        (|_, _, _| Some(Ticket::NONE)) as fn(&Lying, Ticket, &Waker) -> Option<Ticket>,
        // A ticket of another list.
        |_, _, waker| Some(Watchers::new().watch(Ticket::NONE, waker.clone()).ticket),
    ] {
        let (context, _) = Lying::context(Behaviour { watch, ..HONEST });
        let outcome = context.block_on(async {
            scope(async |s| {
                let reader = s.spawn_future(async {
                    let mut buffer = [0; 4];
                    connected().await.read(&mut buffer).await
                });
                checkpoint().await;
                drop(reader);
            })
            .await
        });
        assert_eq!(outcome, Outcome::Value(()));
    }
}

#[test]
fn a_panic_in_unwatch_does_not_reach_the_dropped_future() {
    let (context, _) = Lying::context(Behaviour { unwatch: |_, _| panic!("stay"), ..HONEST });
    let outcome = context.block_on(async {
        scope(async |s| {
            let reader = s.spawn_future(async {
                let mut buffer = [0; 4];
                connected().await.read(&mut buffer).await
            });
            checkpoint().await;
            drop(reader);
            // During unwinding, too.
            let torn = s.spawn_future(caught(async {
                let stream = connected().await;
                let mut buffer = [0; 4];
                let mut read = pin!(stream.read(&mut buffer));
                poll_once(read.as_mut()).await;
                panic!("and goes");
            }));
            assert!(torn.await.is_err());
        })
        .await
    });
    assert_eq!(outcome, Outcome::Value(()));
}

#[test]
fn a_waker_that_a_source_never_drops_may_wake_an_ended_task() {
    let (context, source) = Lying::context(Behaviour { unwatch: |_, _| {}, ..HONEST });
    let outcome = context.block_on(async {
        scope(async |s| {
            let reader = s.spawn_future(async {
                let mut buffer = [0; 4];
                connected().await.read(&mut buffer).await
            });
            checkpoint().await;
            checkpoint().await;
            drop(reader);
        })
        .await
    });
    assert_eq!(outcome, Outcome::Value(()));
    let wake = |source: Arc<Lying>| {
        let taken = source.watchers.lock().unwrap().take();
        taken.into_iter().for_each(|waker| (0..100).for_each(|_| waker.wake_by_ref()));
    };
    thread::spawn({
        let source = source.clone();
        move || wake(source)
    })
    .join()
    .unwrap();
    drop(context);
    wake(source);
}
