//! Combinators of other crates around awaits that are ready at once: they take from the budget of the task, too.

use futures::AsyncReadExt;
use futures::stream::{FuturesUnordered, StreamExt};

use super::*;

lets_a_sibling_run! {
    joined: |s| { let (sender, mut receiver) = mpsc::unbounded(); } => futures::join!(sender.send(1), receiver.recv());
    selected: |s| { let lock = Mutex::new(0); } => {
        let (left, right) = (pin!(lock.lock().into_future()), pin!(lock.lock().into_future()));
        futures::future::select(left, right).await;
    };
    stream_next: |s| {
        let (sender, mut receiver) = mpsc::unbounded();
        for n in 0..MANY { sender.try_send(n).unwrap(); }
    } => receiver.next().await;
    unordered: |s| {
        let lock = Mutex::new(0);
        let mut several = FuturesUnordered::new();
    } => {
        several.push(async { drop(lock.lock().await) });
        several.next().await
    };
    buffered: |s| {
        let lock = Mutex::new(0);
        let mut several = pin!(futures::stream::repeat(()).map(|()| async { drop(lock.lock().await) }).buffer_unordered(3));
    } => several.next().await;
}

/// Runs a future that never ends by itself beside a sibling that stops it.
fn is_stopped_by_a_sibling(busy: impl Future<Output = ()> + Send + 'static) {
    let outcome = io_context().unwrap().block_on(async {
        scope(async |s| {
            let busy = s.spawn_future(busy);
            checkpoint().await;
            busy.request_stop(StopReason::Requested);
            busy.outcome().await
        })
        .await
    });
    assert_eq!(outcome.unwrap(), Outcome::Stopped);
}

/// An await that is ready, each time.
async fn lock_for_ever() {
    let lock = Mutex::new(0);
    loop {
        *lock.lock().await += 1;
    }
}

#[test]
fn a_foreign_join_of_busy_loops() {
    is_stopped_by_a_sibling(async {
        futures::join!(lock_for_ever(), lock_for_ever());
    });
}

#[test]
fn foreign_futures_unordered_of_busy_loops() {
    is_stopped_by_a_sibling(async {
        let mut loops: FuturesUnordered<_> = (0..50).map(|_| lock_for_ever()).collect();
        loops.next().await;
    });
}

#[test]
fn a_foreign_for_each_over_a_channel_that_is_never_empty() {
    is_stopped_by_a_sibling(async {
        let (sender, receiver) = mpsc::unbounded();
        sender.try_send(0).unwrap();
        receiver
            .for_each(|n| {
                sender.try_send(n + 1_u64).unwrap();
                std::future::ready(())
            })
            .await;
    });
}

#[test]
fn a_foreign_for_each_concurrent_over_permits() {
    is_stopped_by_a_sibling(async {
        let permits = Semaphore::new(8);
        futures::stream::repeat(()).for_each_concurrent(4, async |()| drop(permits.acquire().await)).await;
    });
}

#[test]
fn a_foreign_fold_over_a_generator() {
    is_stopped_by_a_sibling(async {
        let numbers = pin!(generator(async |y| for n in 0_u64.. {
            y.yield_value(n).await
        }));
        numbers.fold(0_u64, async |sum, n| sum.wrapping_add(n)).await;
    });
}

#[test]
#[cfg_attr(miri, ignore = "needs a kernel: sockets")]
fn a_foreign_reader_over_a_socket_that_is_always_ready() {
    is_stopped_by_a_sibling(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (mut near, (far, _)) = try_join((TcpStream::connect(address), listener.accept())).await.unwrap();
        let mut byte = [0];
        loop {
            far.write_all(&[1]).await.unwrap();
            AsyncReadExt::read(&mut near, &mut byte).await.unwrap();
        }
    });
}
