//! How connections end: by halves, after the last byte, all at once.

use core::time::Duration;
use std::io;
use std::net::Shutdown;

use convoke_task::local_scope;

use super::Harness;
use super::stage::{fill, in_flight, rest};
use crate::net::{SocketOption, TcpStream};

pub(super) fn half_a_connection_can_be_closed(harness: &Harness) {
    harness.run(async {
        let (near, far) = harness.connection().await?;
        near.write_all(b"question").await?;
        near.shutdown(Shutdown::Write)?;
        assert_eq!(rest(&far).await?, b"question");
        far.write_all(b"answer").await?;
        drop(far);
        assert_eq!(rest(&near).await?, b"answer");
        assert!(near.write_all(b"more").await.is_err(), "this direction has ended");
        Ok(())
    });
}

/// Bytes and end come in one event; the buffer has more room than there are bytes, or just as much.
pub(super) fn the_end_comes_after_the_last_byte(harness: &Harness) {
    harness.run(async {
        for room in [1, 2, 3, 64] {
            let (near, far) = harness.connection().await?;
            near.write_all(b"two").await?;
            drop(near);
            let mut heard = Vec::new();
            let mut buffer = vec![0; room];
            loop {
                match far.read(&mut buffer).await? {
                    0 => break,
                    read => heard.extend_from_slice(&buffer[..read]),
                }
            }
            assert_eq!(heard, b"two");
        }
        Ok(())
    });
    // The same when the first read waits for it.
    harness.run(async {
        let (near, far) = harness.connection().await?;
        local_scope(async |s| {
            let heard = s.spawn_future(rest(&far));
            in_flight(1).await;
            near.write_all(b"two").await?;
            drop(near);
            assert_eq!(heard.await?, b"two");
            io::Result::Ok(())
        })
        .await
    });
}

pub(super) fn the_end_stays(harness: &Harness) {
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

pub(super) fn a_reset_is_an_error(harness: &Harness) {
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

pub(super) fn writing_to_who_is_gone_is_an_error_in_the_end(harness: &Harness) {
    harness.run(async {
        let (near, far) = harness.connection().await?;
        drop(far);
        let words = vec![0; 1 << 20];
        let error = loop {
            if let Err(error) = near.write_all(&words).await {
                break error;
            }
        };
        let gone = [io::ErrorKind::BrokenPipe, io::ErrorKind::ConnectionReset];
        assert!(gone.contains(&error.kind()), "{error}");
        Ok(())
    });
}

pub(super) fn the_end_wakes_who_waits(harness: &Harness) {
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

pub(super) fn a_reset_wakes_who_waits_to_write(harness: &Harness) {
    harness.run(async {
        let (near, far) = harness.connection().await?;
        fill(&near)?;
        local_scope(async |s| {
            let write = s.spawn_future(async { near.write_all(b"no room").await });
            in_flight(1).await;
            reset(far)?;
            assert!(write.await.is_err());
            io::Result::Ok(())
        })
        .await
    });
}
