//! Each operation is finished exactly once, and waiters are counted.

use std::io;

use convoke_task::{launch, local_scope, try_join};

use super::DriverHarness;
use super::fixture::{fill, in_flight, skip};
use convoke_io::{IoContext, current_driver};

const READERS: usize = 64;

pub(super) fn each_operation_is_finished_once(harness: &DriverHarness) {
    let mut received = harness.run(async {
        let (near, far) = harness.connection().await?;
        local_scope(async |s| {
            let readers: Vec<_> =
                (0..READERS).map(|_| s.spawn_future(far.read_owned([0; 1]).into_future())).collect();
            in_flight(READERS).await;
            let data: Vec<u8> = (0..READERS as u8).collect();
            near.write_all(&data).await?;
            let mut received = Vec::new();
            for reader in readers {
                let (read, byte) = reader.await;
                assert_eq!(read?, 1);
                received.push(byte[0]);
            }
            io::Result::Ok(received)
        })
        .await
    });
    received.sort_unstable();
    assert_eq!(
        received,
        (0..READERS as u8).collect::<Vec<_>>(),
        "each byte is read once, and each read gets one byte"
    );
}

pub(super) fn an_operation_that_is_ready_does_not_wait(harness: &DriverHarness) {
    harness.run(async {
        let (near, far) = harness.connection().await?;
        near.write_all(b"now").await?;
        // Once it can be peeked at it has arrived.
        assert_eq!(far.peek(&mut [0; 3]).await?, 3);
        let driver = current_driver()?;
        let (read, bytes) = far.read_owned([0; 3]).await;
        assert_eq!((read?, &bytes, driver.in_flight()), (3, b"now", 0));
        Ok(())
    });
}

pub(super) fn all_waiters_of_a_source_are_woken(harness: &DriverHarness) {
    harness.run(async {
        let (near, far) = harness.connection().await?;
        local_scope(async |s| {
            let waiting: Vec<_> = (0..READERS).map(|_| s.spawn_future(far.readable())).collect();
            in_flight(READERS).await;
            near.write_all(b"!").await?;
            for one in waiting {
                one.await?;
            }
            io::Result::Ok(())
        })
        .await
    });
}

pub(super) fn both_directions_wait_at_once(harness: &DriverHarness) {
    harness.run(async {
        let (near, far) = harness.connection().await?;
        let sent = fill(&near)?;
        local_scope(async |s| {
            let write = s.spawn_future(async { near.write_all(b"last").await });
            let read = s.spawn_future(async { near.read(&mut [0; 8]).await });
            in_flight(2).await;
            far.write_all(b"answer").await?;
            assert_eq!(read.await?, 6, "the reader does not wait for the writer");
            in_flight(1).await;
            skip(&far, sent).await?;
            let mut last = [0; 4];
            try_join((write, far.read_exact(&mut last))).await?;
            assert_eq!(&last, b"last");
            io::Result::Ok(())
        })
        .await
    });
}

pub(super) fn a_context_runs_until_nothing_is_in_flight(harness: &DriverHarness) {
    let context = IoContext::new(harness.driver());
    let (near, far) = context.block_on(harness.connection()).unwrap().expect("a connection");
    let executor = context.executor();
    let reader = launch(&executor).start(async move { far.read(&mut [0; 4]).await });
    let writer = launch(&executor).start(async move { near.write_all(b"four").await.map(|()| near) });
    context.run();
    assert_eq!(context.driver().in_flight(), 0);
    assert!(writer.wait().unwrap().is_ok());
    assert_eq!(reader.wait().unwrap().expect("the read succeeds"), 4);
}
