//! The end of connections: half-closed, after the last byte, reset.

use core::time::Duration;
use std::io;
use std::net::Shutdown;

use convoke_task::{catch_stopped, local_scope, stopped, try_join, using};

use super::DriverHarness;
use super::fixture::{fill, in_flight, rest};
use crate::net::{SocketOption, TcpStream};

pub(super) fn a_connection_can_be_half_closed(harness: &DriverHarness) {
    harness.run(async {
        let (near, far) = harness.connection().await?;
        near.write_all(b"question").await?;
        near.shutdown(Shutdown::Write)?;
        assert_eq!(rest(&far).await?, b"question");
        far.write_all(b"answer").await?;
        drop(far);
        assert_eq!(rest(&near).await?, b"answer");
        assert!(near.write_all(b"more").await.is_err(), "this direction was shut down");
        Ok(())
    });
}

/// Bytes and end arrive in one event; the buffer is larger than the bytes, or exactly as large.
pub(super) fn the_end_comes_after_the_last_byte(harness: &DriverHarness) {
    harness.run(async {
        for buffer in [1, 2, 3, 64] {
            let (near, far) = harness.connection().await?;
            near.write_all(b"two").await?;
            drop(near);
            let mut received = Vec::new();
            let mut buffer = vec![0; buffer];
            loop {
                match far.read(&mut buffer).await? {
                    0 => break,
                    read => received.extend_from_slice(&buffer[..read]),
                }
            }
            assert_eq!(received, b"two");
        }
        Ok(())
    });
    // Again, with a first read that waits for them.
    harness.run(async {
        let (near, far) = harness.connection().await?;
        local_scope(async |s| {
            let received = s.spawn_future(rest(&far));
            in_flight(1).await;
            near.write_all(b"two").await?;
            drop(near);
            assert_eq!(received.await?, b"two");
            io::Result::Ok(())
        })
        .await
    });
}

pub(super) fn the_end_is_read_again_and_again(harness: &DriverHarness) {
    harness.run(async {
        let (near, far) = harness.connection().await?;
        drop(near);
        for _ in 0..3 {
            assert_eq!(far.read(&mut [0; 4]).await?, 0);
            assert_eq!(far.read_owned([0; 4]).await.0?, 0);
        }
        Ok(())
    });
}

fn reset(stream: TcpStream) -> io::Result<()> {
    stream.set_option(SocketOption::Linger(Some(Duration::ZERO)))
}

pub(super) fn a_reset_is_an_error(harness: &DriverHarness) {
    harness.run(async {
        let (near, far) = harness.connection().await?;
        local_scope(async |s| {
            let borrowed = s.spawn_future(async { far.read(&mut [0; 4]).await.map(drop) });
            in_flight(1).await;
            reset(near)?;
            let error = borrowed.await.expect_err("the connection was reset");
            assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
            io::Result::Ok(())
        })
        .await?;
        let (near, far) = harness.connection().await?;
        local_scope(async |s| {
            let owned = s.spawn_future(async { far.read_owned([0; 4]).await.0.map(drop) });
            in_flight(1).await;
            reset(near)?;
            let error = owned.await.expect_err("the connection was reset");
            assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
            io::Result::Ok(())
        })
        .await
    });
}

pub(super) fn writing_to_a_closed_peer_fails_eventually(harness: &DriverHarness) {
    harness.run(async {
        let (near, far) = harness.connection().await?;
        drop(far);
        let data = vec![0; 1 << 20];
        let error = loop {
            if let Err(error) = near.write_all(&data).await {
                break error;
            }
        };
        let gone = [io::ErrorKind::BrokenPipe, io::ErrorKind::ConnectionReset];
        assert!(gone.contains(&error.kind()), "{error}");
        Ok(())
    });
}

pub(super) fn the_end_wakes_readers(harness: &DriverHarness) {
    harness.run(async {
        let (near, far) = harness.connection().await?;
        local_scope(async |s| {
            let borrowed = s.spawn_future(async { far.read(&mut [0; 4]).await });
            let owned = s.spawn_future(far.read_owned([0; 4]).into_future());
            in_flight(2).await;
            near.shutdown(Shutdown::Write)?;
            assert_eq!((borrowed.await?, owned.await.0?), (0, 0));
            io::Result::Ok(())
        })
        .await
    });
}

pub(super) fn a_reset_wakes_writers(harness: &DriverHarness) {
    harness.run(async {
        let (near, far) = harness.connection().await?;
        fill(&near)?;
        local_scope(async |s| {
            let write = s.spawn_future(async { near.write_all(b"blocked").await });
            in_flight(1).await;
            reset(far)?;
            assert!(write.await.is_err());
            io::Result::Ok(())
        })
        .await
    });
}

/// A kernel that closes a connection with unread input resets it. The lingering close exists because of that.
pub(super) fn a_drop_with_unread_input_resets(harness: &DriverHarness) {
    harness.run(async {
        let (client, server) = harness.connection().await?;
        client.write_all(b"a request that is not read").await?;
        server.readable().await?;
        drop(server);
        let error = rest(&client).await.expect_err("the connection was reset");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        Ok(())
    });
}

/// The client has sent requests that the server does not read, and has received nothing yet.
pub(super) fn a_lingering_close_delivers_what_was_written(harness: &DriverHarness) {
    harness.run(async {
        let (client, server) = harness.connection().await?;
        fill(&client)?;
        let written = fill(&server)?;
        let closes = using(server, async |_| io::Result::Ok(()));
        let reads = async move { rest(&client).await };
        let ((), received) = try_join((closes, reads)).await?;
        assert_eq!(received.len(), written, "what was written is delivered");
        Ok(())
    });
}

pub(super) fn a_lingering_close_of_a_stopped_body_delivers_what_was_written(harness: &DriverHarness) {
    harness.run(async {
        let (client, server) = harness.connection().await?;
        fill(&client)?;
        let written = fill(&server)?;
        let closes = async {
            let body = using(server, async |_| -> io::Result<()> { stopped().await });
            assert!(catch_stopped(body).await.is_err(), "the body has stopped");
            Ok(())
        };
        let reads = async move { rest(&client).await };
        let ((), received) = try_join((closes, reads)).await?;
        assert_eq!(received.len(), written, "what was written is delivered");
        Ok(())
    });
}
