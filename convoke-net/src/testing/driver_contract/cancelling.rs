//! Cancelling an operation before, during or after its transfer loses no byte: either nothing was
//! transferred, or the result tells how much.

use std::io;

use convoke_core::StopReason;
use convoke_task::{catch_stopped, checkpoint, local_scope};

use super::DriverHarness;
use super::fixture::{fill, in_flight, rest, skip};
use crate::net::{SocketOption, TcpListener, TcpStream};

pub(super) fn a_stop_before_the_start_transfers_nothing(harness: &DriverHarness) {
    harness.run(async {
        let (near, far) = harness.connection().await?;
        near.write_all(b"here").await?;
        far.peek(&mut [0; 4]).await?;
        local_scope(async |s| {
            let read = s.spawn_future(far.read_owned([0; 4]).into_future());
            read.request_stop(StopReason::Requested);
            assert!(catch_stopped(read).await.is_err(), "the stop was requested before it began");
            let mut bytes = [0; 4];
            far.read_exact(&mut bytes).await?;
            assert_eq!(&bytes, b"here");
            io::Result::Ok(())
        })
        .await
    });
}

pub(super) fn a_stop_during_the_wait_transfers_nothing(harness: &DriverHarness) {
    harness.run(async {
        let (near, far) = harness.connection().await?;
        let listener = TcpListener::bind(harness.address()).await?;
        let sent = fill(&near)?;
        local_scope(async |s| {
            let owned = s.spawn_future(far_read_owned(&near));
            let borrowed = s.spawn_future(async { near.read(&mut [0; 4]).await });
            let written = s.spawn_future(async { near.write_owned(vec![1; 8]).await.0 });
            let accepted = s.spawn_future(async { listener.accept().await });
            in_flight(4).await;
            owned.request_stop(StopReason::Requested);
            borrowed.request_stop(StopReason::Requested);
            written.request_stop(StopReason::Requested);
            accepted.request_stop(StopReason::Requested);
            assert!(catch_stopped(owned).await.is_err());
            assert!(catch_stopped(borrowed).await.is_err());
            assert!(catch_stopped(written).await.is_err());
            assert!(catch_stopped(accepted).await.is_err());
            in_flight(0).await;
            io::Result::Ok(())
        })
        .await?;
        far.write_all(b"after").await?;
        let mut bytes = [0; 5];
        near.read_exact(&mut bytes).await?;
        assert_eq!(&bytes, b"after");
        drop(TcpStream::connect(listener.local_addr()?).await?);
        drop(listener.accept().await?);
        skip(&far, sent).await?;
        near.shutdown(std::net::Shutdown::Write)?;
        assert_eq!(rest(&far).await?, b"", "the cancelled write wrote nothing");
        Ok(())
    });
}

async fn far_read_owned(stream: &TcpStream) -> io::Result<usize> {
    stream.read_owned(vec![0; 4]).await.0
}

pub(super) fn a_stop_after_the_transfer_loses_nothing(harness: &DriverHarness) {
    harness.run(async {
        let (near, far) = harness.connection().await?;
        local_scope(async |s| {
            let read = s.spawn_future(far.read_owned([0; 4]).into_future());
            in_flight(1).await;
            near.write_all(b"done").await?;
            in_flight(0).await;
            read.request_stop(StopReason::Requested);
            match catch_stopped(read).await {
                Ok((read, bytes)) => assert_eq!((read?, &bytes), (4, b"done")),
                Err(_) => panic!("the bytes were read, and are lost"),
            }
            io::Result::Ok(())
        })
        .await
    });
}

pub(super) fn some_of_several_operations_are_cancelled(harness: &DriverHarness) {
    harness.run(async {
        let (near, far) = harness.connection().await?;
        local_scope(async |s| {
            let mut readers: Vec<_> =
                (0..5).map(|_| s.spawn_future(far.read_owned([0; 1]).into_future())).collect();
            in_flight(5).await;
            let (middle, last) = (readers.remove(2), readers.remove(3));
            middle.request_stop(StopReason::Requested);
            assert!(catch_stopped(middle).await.is_err());
            last.request_stop(StopReason::Requested);
            assert!(catch_stopped(last).await.is_err());
            in_flight(3).await;
            near.write_all(b"abc").await?;
            let mut received = Vec::new();
            for reader in readers {
                let (read, byte) = reader.await;
                assert_eq!(read?, 1);
                received.extend(byte);
            }
            received.sort_unstable();
            assert_eq!(received, b"abc");
            io::Result::Ok(())
        })
        .await
    });
}

/// Each round stops at another moment: before the operation begins, while it waits, while the driver performs
/// it, after it has finished.
const ROUNDS: usize = if cfg!(miri) { 12 } else { 240 };
const MOMENTS: usize = 6;

pub(super) fn reads_that_are_stopped_at_any_time_lose_nothing(harness: &DriverHarness) {
    let (sent, received) = harness.run(async {
        let (near, far) = harness.connection().await?;
        let (mut sent, mut received) = (Vec::new(), Vec::new());
        local_scope(async |s| {
            for round in 0..ROUNDS {
                let read = s.spawn_future(far.read_owned([0; 3]).into_future());
                moments(round / MOMENTS % MOMENTS).await;
                let data = [round as u8, (round >> 8) as u8, 0xff];
                near.write_all(&data).await?;
                sent.extend(data);
                moments(round % MOMENTS).await;
                read.request_stop(StopReason::Requested);
                if let Ok((read, bytes)) = catch_stopped(read).await {
                    received.extend_from_slice(&bytes[..read?]);
                }
            }
            io::Result::Ok(())
        })
        .await?;
        near.shutdown(std::net::Shutdown::Write)?;
        received.extend(rest(&far).await?);
        Ok((sent, received))
    });
    assert_eq!(sent, received);
}

pub(super) fn writes_that_are_stopped_at_any_time_lose_nothing(harness: &DriverHarness) {
    let (sent, received) = harness.run(async {
        let (near, far) = harness.connection().await?;
        // A small buffer makes writes wait; a driver without this option waits less often.
        _ = near.set_option(SocketOption::SendBuffer(1 << 12));
        let (mut sent, mut received) = (Vec::new(), Vec::new());
        local_scope(async |s| {
            for round in 0..ROUNDS {
                let data = vec![round as u8; if cfg!(miri) { 1 << 8 } else { 1 << 14 }];
                let write = s.spawn_future(near.write_owned(data).into_future());
                moments(round / MOMENTS % MOMENTS).await;
                if round % 3 == 0 {
                    let mut buffer = vec![0; 1 << 15];
                    if let Ok(read) = far.source.try_read(&mut buffer) {
                        received.extend_from_slice(&buffer[..read]);
                    }
                }
                moments(round % MOMENTS).await;
                write.request_stop(StopReason::Requested);
                if let Ok((written, data)) = catch_stopped(write).await {
                    sent.extend_from_slice(&data[..written?]);
                }
            }
            io::Result::Ok(())
        })
        .await?;
        near.shutdown(std::net::Shutdown::Write)?;
        received.extend(rest(&far).await?);
        Ok((sent, received))
    });
    assert!(sent == received, "{} bytes were reported as written, {} arrived", sent.len(), received.len());
}

async fn moments(count: usize) {
    for _ in 0..count {
        checkpoint().await;
    }
}
