//! Futures that are dropped while they wait, as in a foreign `select!`, and sockets that are dropped.

use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::{Poll, Waker};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use convoke_task::{launch, local_scope};

use super::DriverHarness;
use super::fixture::in_flight;
use convoke_io::driver::{Interest, Ticket};
use convoke_io::{IoContext, current_driver};

/// Polls a future once, which must be pending, and drops it.
async fn poll_once_and_drop(future: impl Future) {
    let mut future = pin!(future);
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Pending => Poll::Ready(()),
        Poll::Ready(_) => panic!("the future is not pending"),
    })
    .await;
}

pub(super) fn a_dropped_read_has_read_nothing(harness: &DriverHarness) {
    harness.run(async {
        let (near, far) = harness.connection().await?;
        let driver = current_driver()?;
        for _ in 0..3 {
            poll_once_and_drop(far.read(&mut [0; 4])).await;
            assert_eq!(driver.in_flight(), 0, "an operation without a buffer is returned at once");
        }
        near.write_all(b"kept").await?;
        let mut bytes = [0; 4];
        far.read_exact(&mut bytes).await?;
        assert_eq!(&bytes, b"kept");
        Ok(())
    });
}

/// Safe code may leak a future; its watcher then stays in the list until the socket is dropped.
pub(super) fn a_leaked_watcher_counts_until_its_socket_is_dropped(harness: &DriverHarness) {
    harness.run(async {
        let (near, far) = harness.connection().await?;
        let nothing = far.source.try_read(&mut [0; 4]).expect_err("there is nothing to read");
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
        assert!(far.source.watch(Interest::Read, Ticket::NONE, Waker::noop()).is_some());
        let driver = current_driver()?;
        assert_eq!(driver.in_flight(), 1);
        drop(far);
        assert_eq!(driver.in_flight(), 0);
        assert_eq!(near.read(&mut [0; 4]).await?, 0);
        Ok(())
    });
}

/// A buffer that records its drop.
struct Watched([u8; 16], Arc<AtomicBool>);

impl AsMut<[u8]> for Watched {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.1.store(true, Ordering::Release);
    }
}

pub(super) fn an_owned_buffer_is_released_before_the_task_ends(harness: &DriverHarness) {
    let context = IoContext::new(harness.driver());
    let is_gone = Arc::new(AtomicBool::new(false));
    let buffer = Watched([0; 16], is_gone.clone());
    let (near, far) = context.block_on(harness.connection()).unwrap().expect("a connection");
    context
        .block_on(async {
            let mut buffer = Some(buffer);
            let read = async { far.read_owned(buffer.take().expect("polled once")).await };
            poll_once_and_drop(read).await;
        })
        .unwrap();
    assert!(is_gone.load(Ordering::Acquire), "the task has ended, but the driver still has the buffer");
    assert_eq!(context.driver().in_flight(), 0);
    drop(near);
}

pub(super) fn an_operation_keeps_its_socket_open(harness: &DriverHarness) {
    harness.run(async {
        let (near, far) = harness.connection().await?;
        local_scope(async |s| {
            let read = far.read_owned([0; 4]);
            drop(far);
            let read = s.spawn_future(read.into_future());
            in_flight(1).await;
            near.write_all(b"open").await?;
            let (read, bytes) = read.await;
            assert_eq!((read?, &bytes), (4, b"open"));
            assert_eq!(near.read(&mut [0; 4]).await?, 0, "the socket is closed afterwards");
            io::Result::Ok(())
        })
        .await
    });
}

/// Repeated, since the state of a socket must not leak into the next one with its key.
pub(super) fn a_dropped_socket_leaves_its_key_to_the_next(harness: &DriverHarness) {
    let context = IoContext::new(harness.driver());
    for round in 0..if cfg!(miri) { 4 } else { 64_u8 } {
        let (near, far) = context.block_on(harness.connection()).unwrap().expect("a connection");
        let executor = context.executor();
        let echo = launch(&executor).start(async move {
            let mut byte = [0; 1];
            while far.read(&mut byte).await? > 0 {
                far.write_all(&byte).await?;
            }
            io::Result::Ok(())
        });
        let received = context.block_on(async {
            let mut received = [0; 1];
            near.write_all(&[round]).await?;
            near.read_exact(&mut received).await?;
            drop(near);
            io::Result::Ok(received[0])
        });
        assert_eq!(received.unwrap().expect("the echo arrives"), round);
        context.run();
        assert!(echo.wait().unwrap().is_ok());
    }
}
