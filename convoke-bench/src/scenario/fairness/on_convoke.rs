//! The neighbours in Convoke, on an I/O context with its driver.

use std::hint::black_box;
use std::time::Duration;

use convoke::driver::io_context;
use convoke::net::UdpSocket;
use convoke::scope;
use convoke::sync::{Mutex, Semaphore, mpsc};
use convoke::task::map_concurrent;
use convoke::time;

use super::{AT_ONCE, End, INTERVAL, Make, Neighbour, tick, work};

pub(super) fn run(ops: u64, neighbour: Make) -> Duration {
    let both = async {
        scope(async |s| {
            let end = End::new();
            s.child().local().spawn(neighbour(end.clone()));
            let late = tick(ops, sleep).await;
            end.tell();
            late
        })
        .await
    };
    io_context().expect("an I/O context starts").block_on(both).unwrap()
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
            let _ = black_box(semaphore.acquire().await);
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
        let mut numbers = convoke::task::generator(async |y| {
            for n in 0_u64.. {
                y.yield_value(n).await;
            }
        });
        while !end.has_come() {
            black_box(numbers.next().await);
        }
    })
}

pub(super) fn map(end: End) -> Neighbour {
    Box::pin(async move {
        let mut results = map_concurrent(0_u64.., AT_ONCE, async |n| n + 1);
        while !end.has_come() {
            black_box(results.next().await);
        }
    })
}
