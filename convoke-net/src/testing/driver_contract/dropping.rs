//! Futures that are dropped while they wait, as a foreign `select!` does it; and sockets that go.

use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::{Poll, Waker};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use convoke_task::{launch, local_scope};

use super::Harness;
use super::stage::in_flight;
use convoke_io::driver::{Interest, Ticket};
use convoke_io::{IoContext, current_driver};

/// Polls it once. It must wait, and is dropped.
async fn polled_and_dropped(future: impl Future) {
    let mut future = pin!(future);
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Pending => Poll::Ready(()),
        Poll::Ready(_) => panic!("there was nothing to be done"),
    })
    .await;
}

pub(super) fn a_read_that_is_dropped_has_read_nothing(harness: &Harness) {
    harness.run(async {
        let (near, far) = harness.connection().await?;
        let driver = current_driver()?;
        for _ in 0..3 {
            polled_and_dropped(far.read(&mut [0; 4])).await;
            assert_eq!(driver.in_flight(), 0, "one that owns no buffer is handed back at once");
        }
        near.write_all(b"kept").await?;
        let mut bytes = [0; 4];
        far.read_exact(&mut bytes).await?;
        assert_eq!(&bytes, b"kept");
        Ok(())
    });
}

/// Safe code may forget a future, and what it waits with stays in line until the socket goes.
pub(super) fn one_who_was_forgotten_counts_until_the_socket_goes(harness: &Harness) {
    harness.run(async {
        let (near, far) = harness.connection().await?;
        let nothing = far.source.try_read(&mut [0; 4]).expect_err("nobody has written");
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

/// A buffer that says when it goes.
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

pub(super) fn a_buffer_of_its_own_is_given_back_before_the_task_ends(harness: &Harness) {
    let context = IoContext::new(harness.driver());
    let is_gone = Arc::new(AtomicBool::new(false));
    let buffer = Watched([0; 16], is_gone.clone());
    let (near, far) = context.run_until(harness.connection()).unwrap().expect("two ends");
    context
        .run_until(async {
            let mut buffer = Some(buffer);
            let read = async { far.read_owned(buffer.take().expect("it is polled once")).await };
            polled_and_dropped(read).await;
        })
        .unwrap();
    assert!(is_gone.load(Ordering::Acquire), "the task has ended, and the driver has the buffer still");
    assert_eq!(context.driver().in_flight(), 0);
    drop(near);
}

pub(super) fn an_operation_keeps_its_socket(harness: &Harness) {
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
            assert_eq!(near.read(&mut [0; 4]).await?, 0, "and then it was closed");
            io::Result::Ok(())
        })
        .await
    });
}

/// More than once, for what is known about a socket must not be taken for what is known about the next one in its place.
pub(super) fn a_socket_that_goes_makes_room_for_the_next(harness: &Harness) {
    let context = IoContext::new(harness.driver());
    for round in 0..if cfg!(miri) { 4 } else { 64_u8 } {
        let (near, far) = context.run_until(harness.connection()).unwrap().expect("two ends");
        let executor = context.executor();
        let echo = launch(&executor).start(async move {
            let mut byte = [0; 1];
            while far.read(&mut byte).await? > 0 {
                far.write_all(&byte).await?;
            }
            io::Result::Ok(())
        });
        let heard = context.run_until(async {
            let mut heard = [0; 1];
            near.write_all(&[round]).await?;
            near.read_exact(&mut heard).await?;
            drop(near);
            io::Result::Ok(heard[0])
        });
        assert_eq!(heard.unwrap().expect("the echo is there"), round);
        context.run();
        assert!(echo.wait().unwrap().is_ok());
    }
}
