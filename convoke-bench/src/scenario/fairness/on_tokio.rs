//! The neighbours in tokio, on its single-threaded runtime with all its drivers; generators are those of
//! async-stream and the concurrent map that of futures, as tokio has none.

use std::hint::black_box;
use std::pin::pin;
use std::time::Duration;

use futures::stream::{self, StreamExt};
use tokio::net::UdpSocket;
use tokio::runtime::Builder;
use tokio::sync::{Mutex, Semaphore, mpsc};
use tokio::task::spawn_local;
use tokio::time;

use super::{AT_ONCE, End, INTERVAL, Make, Neighbour, tick, work};

pub(super) fn run(ops: u64, neighbour: Make) -> Duration {
    let runtime = Builder::new_current_thread().enable_all().build_local(Default::default());
    let both = async move {
        let end = End::new();
        let busy = spawn_local(neighbour(end.clone()));
        // As a task, because tokio polls the future that blocks the thread out of turn.
        let late = spawn_local(tick(ops, sleep)).await.expect("the ticker does not panic");
        end.tell();
        busy.await.expect("the neighbour does not panic");
        late
    };
    runtime.expect("a tokio run loop starts").block_on(both)
}

async fn sleep(duration: Duration) {
    time::sleep(duration).await;
}

pub(super) fn channel(end: End) -> Neighbour {
    Box::pin(async move {
        let (sender, mut receiver) = mpsc::channel(AT_ONCE);
        while !end.has_come() {
            sender.send(1_u64).await.expect("somebody receives");
            black_box(receiver.recv().await);
        }
    })
}

pub(super) fn lock(end: End) -> Neighbour {
    Box::pin(async move {
        let lock = Mutex::new(0_u64);
        while !end.has_come() {
            *lock.lock().await += 1;
        }
    })
}

pub(super) fn permits(end: End) -> Neighbour {
    Box::pin(async move {
        let semaphore = Semaphore::new(AT_ONCE);
        while !end.has_come() {
            let _ = black_box(semaphore.acquire().await.expect("it is not closed"));
        }
    })
}

pub(super) fn interval(end: End) -> Neighbour {
    Box::pin(async move {
        let mut interval = time::interval(INTERVAL);
        while !end.has_come() {
            interval.tick().await;
            work();
        }
    })
}

pub(super) fn socket(end: End) -> Neighbour {
    Box::pin(async move {
        let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a socket is bound");
        let itself = socket.local_addr().expect("a bound socket has an address");
        let mut buffer = [0; 64];
        while !end.has_come() {
            socket.send_to(&buffer, itself).await.expect("a datagram is sent");
            socket.recv_from(&mut buffer).await.expect("a datagram is received");
        }
    })
}

pub(super) fn generator(end: End) -> Neighbour {
    Box::pin(async move {
        let mut numbers = pin!(async_stream::stream! {
            for n in 0_u64.. {
                yield n;
            }
        });
        while !end.has_come() {
            black_box(numbers.next().await);
        }
    })
}

pub(super) fn map(end: End) -> Neighbour {
    Box::pin(async move {
        let mut results = pin!(stream::iter(0_u64..).map(async |n| n + 1).buffer_unordered(AT_ONCE));
        while !end.has_come() {
            black_box(results.next().await);
        }
    })
}
