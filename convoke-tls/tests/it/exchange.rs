//! Bytes both ways: large, small, in two tasks, and cut off.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use convoke::io::{Closing, Duplex, copy, duplex, read_exact, write_all};
use convoke::prelude::*;
use convoke_tls::{TlsAcceptor, TlsConnector, TlsStream};
use futures_io::{AsyncRead, AsyncWrite};

use crate::certificates::Authority;

/// Two connected TLS streams over a pipe of this capacity: small ones make every record come in pieces.
pub(crate) async fn pair(capacity: usize) -> (TlsStream<Duplex>, TlsStream<Duplex>) {
    let authority = Authority::new();
    let acceptor = TlsAcceptor::new(authority.identity("a.test")).unwrap();
    let connector = TlsConnector::new(authority.roots()).unwrap();
    let (near, far) = duplex(capacity);
    try_join((connector.connect("a.test", near), acceptor.accept(far))).await.unwrap()
}

/// Reads until the peer's close_notify.
pub(crate) async fn read_to_end(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let (mut all, mut piece) = (Vec::new(), [0; 1000]);
    loop {
        let read = std::future::poll_fn(|cx| Pin::new(&mut *stream).poll_read(cx, &mut piece)).await?;
        if read == 0 {
            return Ok(all);
        }
        all.extend_from_slice(&piece[..read]);
    }
}

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|index| (index * 7 % 251) as u8).collect()
}

#[convoke::test(virtual_time)]
async fn bytes_arrive_in_order_through_pipes_of_all_sizes() {
    for (capacity, count) in [(1 << 17, 300_000), (1000, 100_000), (7, 5_000), (1, 300)] {
        let (mut near, mut far) = pair(capacity).await;
        let sent = bytes(count);
        let send = async {
            write_all(&mut near, &sent).await?;
            std::future::poll_fn(|cx| Pin::new(&mut near).poll_close(cx)).await
        };
        let ((), received) = try_join((send, read_to_end(&mut far))).await.unwrap();
        assert!(received == sent, "{count} bytes through {capacity}");
    }
}

#[convoke::test(virtual_time)]
async fn halves_in_two_tasks_send_and_receive_at_once() {
    let (near, far) = pair(500).await;
    let sent = bytes(60_000);
    let echoed = scope(async |s| {
        s.spawn(async move {
            // The echo goes through both halves of the far side.
            let (mut read, mut write) = far.into_split();
            copy(&mut read, &mut write).await.unwrap();
            std::future::poll_fn(|cx| Pin::new(&mut write).poll_close(cx)).await.unwrap();
        });
        let (mut read, write) = near.into_split();
        let all = sent.clone();
        s.spawn(async move {
            let body = using(Closing::writer(write), async |mut write| write_all(&mut **write, &all).await);
            body.await.unwrap();
        });
        read_to_end(&mut read).await.unwrap()
    })
    .await;
    assert!(echoed == sent);
}

#[convoke::test(virtual_time)]
async fn halves_are_reunited_only_with_their_own() {
    let ((one, other), capacity) = (pair(1000).await, 1000);
    let (read, write) = one.into_split();
    let (far_read, far_write) = other.into_split();
    let (read, far_write) = read.reunite(far_write).unwrap_err();
    let mut near = read.reunite(write).unwrap();
    let mut far = far_read.reunite(far_write).unwrap();
    write_all(&mut near, b"whole").await.unwrap();
    let mut heard = [0; 5];
    read_exact(&mut far, &mut heard).await.unwrap();
    assert_eq!((&heard, capacity), (b"whole", 1000));
}

#[convoke::test(virtual_time)]
async fn several_buffers_are_one_record() {
    let (mut near, mut far) = pair(1 << 16).await;
    let parts = [IoSlice::new(b"head "), IoSlice::new(b""), IoSlice::new(b"and "), IoSlice::new(b"body")];
    let written =
        std::future::poll_fn(|cx| Pin::new(&mut near).poll_write_vectored(cx, &parts)).await.unwrap();
    assert_eq!(written, 13);
    let mut heard = [0; 64];
    let read = std::future::poll_fn(|cx| Pin::new(&mut far).poll_read(cx, &mut heard)).await.unwrap();
    assert_eq!(&heard[..read], b"head and body", "one read returns one record");
}

#[convoke::test(virtual_time)]
async fn a_read_sends_what_a_write_has_left() {
    // The record does not fit into the pipe: the write is accepted, and nothing flushes it but the read.
    let (mut near, mut far) = pair(100).await;
    let ask = async {
        write_all(&mut near, &[b'q'; 1000]).await.unwrap();
        let mut answer = [0; 6];
        read_exact(&mut near, &mut answer).await.unwrap();
        answer
    };
    let answer = async {
        read_exact(&mut far, &mut [0; 1000]).await.unwrap();
        write_all(&mut far, b"answer").await.unwrap();
        std::future::poll_fn(|cx| Pin::new(&mut far).poll_flush(cx)).await.unwrap();
    };
    assert_eq!(&join((ask, answer)).await.0, b"answer");
}

#[convoke::test(virtual_time)]
async fn a_write_after_one_that_was_stopped_sends_what_was_accepted_before() {
    // The pipe takes a part of the first record. Each of the next writes waits for the rest of it, and is stopped.
    let (mut near, mut far) = pair(50).await;
    write_all(&mut near, &[1; 1000]).await.unwrap();
    for number in 2..5 {
        let stopped = timeout(Duration::from_secs(1), write_all(&mut near, &[number; 1000])).await;
        assert!(stopped.is_err(), "nobody reads");
    }
    let write = async {
        write_all(&mut near, &[9; 1000]).await?;
        std::future::poll_fn(|cx| Pin::new(&mut near).poll_close(cx)).await
    };
    let ((), heard) = try_join((write, read_to_end(&mut far))).await.unwrap();
    assert!(heard == [[1; 1000], [9; 1000]].concat(), "what was accepted, in order, and no more");
}

/// A stream of another crate, which takes bytes for ever once it is told to.
struct Endless {
    below: Duplex,
    swallows: Arc<AtomicBool>,
}

impl AsyncRead for Endless {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.below).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Endless {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.swallows.load(Ordering::Relaxed) {
            return Poll::Ready(Ok(bytes.len()));
        }
        Pin::new(&mut self.below).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[convoke::test(virtual_time)]
async fn writes_and_flushes_over_an_endless_stream_let_others_run() {
    let authority = Authority::new();
    let acceptor = TlsAcceptor::new(authority.identity("a.test")).unwrap();
    let connector = TlsConnector::new(authority.roots()).unwrap();
    for kind in ["write", "vectored", "flush"] {
        let (below, far) = duplex(1 << 16);
        let (swallows, is_over) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        let near = Endless { below, swallows: swallows.clone() };
        let (mut near, _far) =
            try_join((connector.connect("a.test", near), acceptor.accept(far))).await.unwrap();
        swallows.store(true, Ordering::Relaxed);
        let ends = is_over.clone();
        scope(async |s| {
            s.spawn(async move {
                let parts = [IoSlice::new(b"head"), IoSlice::new(b"body")];
                for _ in 0..100_000 {
                    if ends.load(Ordering::Relaxed) {
                        return;
                    }
                    std::future::poll_fn(|cx| match kind {
                        "write" => Pin::new(&mut near).poll_write(cx, b"word").map_ok(drop),
                        "vectored" => Pin::new(&mut near).poll_write_vectored(cx, &parts).map_ok(drop),
                        _ => Pin::new(&mut near).poll_flush(cx),
                    })
                    .await
                    .unwrap();
                }
                panic!("nobody else runs beside a {kind}");
            });
            for _ in 0..3 {
                checkpoint().await;
            }
            is_over.store(true, Ordering::Relaxed);
        })
        .await;
    }
}

#[convoke::test(virtual_time)]
async fn a_connection_that_is_cut_is_no_end_of_the_stream() {
    let (mut near, mut far) = pair(1 << 16).await;
    write_all(&mut near, b"half a mess").await.unwrap();
    drop(near);
    let mut heard = [0; 11];
    read_exact(&mut far, &mut heard).await.unwrap();
    let error = read_to_end(&mut far).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    assert!(error.to_string().contains("close_notify"), "{error}");
}

#[convoke::test(virtual_time)]
async fn a_record_that_was_tampered_with_is_refused_each_time() {
    let authority = Authority::new();
    let acceptor = TlsAcceptor::new(authority.identity("a.test")).unwrap();
    let connector = TlsConnector::new(authority.roots()).unwrap();
    let ((near, mut attacker), (mut other, far)) = (duplex(1 << 16), duplex(1 << 16));
    let relay = async {
        // The handshake passes; then comes a record of the attacker's own.
        let handshake = convoke::io::copy_bidirectional(&mut attacker, &mut other);
        _ = timeout(std::time::Duration::from_secs(1), handshake).await;
        write_all(
            &mut other,
            &[23, 3, 3, 0, 20, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20],
        )
        .await
        .unwrap();
    };
    let shake = async { try_join((connector.connect("a.test", near), acceptor.accept(far))).await.unwrap() };
    let ((_near, mut far), ()) = join((shake, relay)).await;
    for _ in 0..2 {
        let error = read_to_end(&mut far).await.unwrap_err();
        assert_eq!(error.to_string(), "TLS failed: cannot decrypt peer's message");
    }
}
