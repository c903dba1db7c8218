//! Each operation is finished exactly once, whoever else waits; and what waits is counted.

use std::io;

use convoke_task::{launch, local_scope, try_join};

use super::Harness;
use super::stage::{fill, in_flight, skip};
use convoke_io::{IoContext, current_driver};

const READERS: usize = 64;

pub(super) fn each_operation_is_finished_once(harness: &Harness) {
    let mut heard = harness.run(async {
        let (near, far) = harness.connection().await?;
        local_scope(async |s| {
            let readers: Vec<_> =
                (0..READERS).map(|_| s.spawn_future(far.read_owned([0; 1]).into_future())).collect();
            in_flight(READERS).await;
            let words: Vec<u8> = (0..READERS as u8).collect();
            near.write_all(&words).await?;
            let mut heard = Vec::new();
            for reader in readers {
                let (read, byte) = reader.await;
                assert_eq!(read?, 1);
                heard.push(byte[0]);
            }
            io::Result::Ok(heard)
        })
        .await
    });
    heard.sort_unstable();
    assert_eq!(
        heard,
        (0..READERS as u8).collect::<Vec<_>>(),
        "each byte is read by one, each read reads one"
    );
}

pub(super) fn what_can_be_done_at_once_does_not_wait(harness: &Harness) {
    harness.run(async {
        let (near, far) = harness.connection().await?;
        near.write_all(b"now").await?;
        // It has arrived when it can be seen.
        assert_eq!(far.peek(&mut [0; 3]).await?, 3);
        let driver = current_driver()?;
        let (read, bytes) = far.read_owned([0; 3]).await;
        assert_eq!((read?, &bytes, driver.in_flight()), (3, b"now", 0));
        Ok(())
    });
}

pub(super) fn all_who_wait_for_a_source_are_told(harness: &Harness) {
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

pub(super) fn both_directions_wait_at_once(harness: &Harness) {
    harness.run(async {
        let (near, far) = harness.connection().await?;
        let sent = fill(&near)?;
        local_scope(async |s| {
            let write = s.spawn_future(async { near.write_all(b"last").await });
            let read = s.spawn_future(async { near.read(&mut [0; 8]).await });
            in_flight(2).await;
            far.write_all(b"answer").await?;
            assert_eq!(read.await?, 6, "who reads does not wait for who writes");
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

pub(super) fn a_context_runs_until_nothing_is_in_flight(harness: &Harness) {
    let context = IoContext::new(harness.driver());
    let (near, far) = context.run_until(harness.connection()).unwrap().expect("two ends");
    let executor = context.executor();
    let reader = launch(&executor).start(async move { far.read(&mut [0; 4]).await });
    let writer = launch(&executor).start(async move { near.write_all(b"four").await.map(|()| near) });
    context.run();
    assert_eq!(context.driver().in_flight(), 0);
    assert!(writer.wait().unwrap().is_ok());
    assert_eq!(reader.wait().unwrap().expect("the other end is there"), 4);
}
