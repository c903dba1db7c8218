//! Sockets and streams that are ready at once, each in a loop beside a sibling.
#![cfg(not(miri))]

use std::io::{self, IoSlice, IoSliceMut};
use std::task::{Context, Poll};

use super::*;
use convoke::io::{AnyStream, Progress, copy, copy_bidirectional};
use convoke::net::AsyncFd;

/// More bytes than the loop of one test reads.
const BYTES: &[u8] = &[7; 4 * PER_POLL as usize];

lets_a_sibling_run! {
    tcp_read: |s| { let (near, far) = tcp().await; far.write_all(BYTES).await.unwrap(); } => near.read(&mut [0]).await;
    tcp_read_vectored: |s| { let (near, far) = tcp().await; far.write_all(BYTES).await.unwrap(); } => {
        near.read_vectored(&mut [IoSliceMut::new(&mut [0])]).await
    };
    tcp_read_exact: |s| { let (near, far) = tcp().await; far.write_all(BYTES).await.unwrap(); } => near.read_exact(&mut [0]).await;
    tcp_read_buf: |s| { let (near, far) = tcp().await; far.write_all(BYTES).await.unwrap(); } => near.read_buf(&mut Vec::with_capacity(1)).await;
    tcp_peek: |s| { let (near, far) = tcp().await; far.write_all(BYTES).await.unwrap(); } => near.peek(&mut [0]).await;
    tcp_read_owned: |s| { let (near, far) = tcp().await; far.write_all(BYTES).await.unwrap(); } => near.read_owned([0]).await;
    tcp_read_lease: |s| { let (near, far) = tcp().await; for _ in 0..MANY { far.write_all(b"!").await.unwrap(); } } => {
        near.peek(&mut [0]).await.unwrap();
        near.read_lease().await
    };
    tcp_read_of_ended: |s| { let (near, _) = tcp().await; } => near.read(&mut [0]).await;
    tcp_write_vectored: |s| { let (near, _far) = tcp().await; } => near.write_vectored(&[IoSlice::new(b"!")]).await;
    tcp_write_all: |s| { let (near, _far) = tcp().await; } => near.write_all(b"!").await;
    tcp_write_owned: |s| { let (near, _far) = tcp().await; } => near.write_owned([1]).await;
    tcp_readable: |s| { let (near, far) = tcp().await; far.write_all(BYTES).await.unwrap(); } => near.readable().await;
    tcp_writable: |s| { let (near, _far) = tcp().await; } => near.writable().await;
    tcp_half_read: |s| {
        let (near, far) = tcp().await;
        far.write_all(BYTES).await.unwrap();
        let (near, _write) = near.into_split();
    } => near.read(&mut [0]).await;
    tcp_half_write: |s| {
        let (near, _far) = tcp().await;
        let (_read, near) = near.into_split();
    } => near.write(b"!").await;
    tcp_accept: |s| {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let _clients: Vec<_> = (0..MANY).map(|_| std::net::TcpStream::connect(address).unwrap()).collect();
    } => listener.accept().await;
    resolved_number: |s| {} => convoke::net::resolve("127.0.0.1:1").await;
    udp_recv_from: |s| { let socket = udp_full().await; } => socket.recv_from(&mut [0]).await;
    udp_peek_from: |s| { let socket = udp_full().await; } => socket.peek_from(&mut [0]).await;
    udp_recv: |s| { let socket = udp_full().await; } => socket.recv(&mut [0]).await;
    udp_send: |s| { let socket = udp_full().await; } => socket.send(b"!").await;
    erased_read: |s| {
        let (near, far) = tcp().await;
        far.write_all(BYTES).await.unwrap();
        let mut near = AnyStream::new(near);
    } => near.read(&mut [0]).await;
    erased_write: |s| { let (near, _far) = tcp().await; let mut near = AnyStream::new(near); } => near.write(b"!").await;
    erased_flush: |s| { let (near, _far) = tcp().await; let mut near = AnyStream::new(near); } => near.flush().await;
    copy_of_little: |s| {} => copy(&mut &b"!"[..], &mut Vec::new()).await;
    closed_duplex: |s| { let (mut near, _) = duplex(1); } => convoke::io::read_exact(&mut near, &mut [0]).await;
}

#[cfg(feature = "tls")]
mod tls {
    use super::*;
    use convoke::io::Duplex;
    use convoke::tls::{Identity, Roots, TlsAcceptor, TlsConnector, TlsStream};

    lets_a_sibling_run! {
        tls_read: |s| { let (mut near, mut far) = pair().await; far.write_all(BYTES).await.unwrap(); } => near.read(&mut [0]).await;
        tls_half_read: |s| {
            let (near, mut far) = pair().await;
            far.write_all(BYTES).await.unwrap();
            let (mut near, _write) = near.into_split();
        } => near.read(&mut [0]).await;
        tls_write: |s| { let (mut near, _far) = pair().await; } => near.write(b"!").await;
        tls_read_exact: |s| { let (mut near, mut far) = pair().await; far.write_all(BYTES).await.unwrap(); } => near.read_exact(&mut [0]).await;
    }

    async fn pair() -> (TlsStream<Duplex>, TlsStream<Duplex>) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let (pem, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let acceptor = TlsAcceptor::new(Identity::from_pem(pem.as_bytes(), key.as_bytes()).unwrap()).unwrap();
        let mut roots = Roots::new();
        roots.add_pem(pem.as_bytes()).unwrap();
        let connector = TlsConnector::new(roots).unwrap();
        let (near, far) = duplex(1 << 17);
        try_join((connector.connect("localhost", near), acceptor.accept(far))).await.unwrap()
    }
}

#[cfg(unix)]
mod unix {
    use super::*;
    use convoke::net::{UnixDatagram, UnixStream};

    lets_a_sibling_run! {
        unix_read: |s| { let (near, far) = UnixStream::pair().unwrap(); far.write_all(BYTES).await.unwrap(); } => near.read(&mut [0]).await;
        unix_write: |s| { let (near, _far) = UnixStream::pair().unwrap(); } => near.write(b"!").await;
        unix_datagram_of_nobody: |s| { let socket = UnixDatagram::unbound().unwrap(); } => socket.send_to(b"!", "/nowhere").await;
        fd_readable: |s| {
            let (near, mut far) = std::os::unix::net::UnixStream::pair().unwrap();
            std::io::Write::write_all(&mut far, BYTES).unwrap();
            near.set_nonblocking(true).unwrap();
            let near = AsyncFd::new(near).unwrap();
        } => near.readable().await;
        fd_read: |s| {
            let (near, mut far) = std::os::unix::net::UnixStream::pair().unwrap();
            std::io::Write::write_all(&mut far, BYTES).unwrap();
            near.set_nonblocking(true).unwrap();
            let near = AsyncFd::new(near).unwrap();
        } => near.read(&mut [0]).await;
    }
}

async fn tcp() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (near, (far, _)) =
        try_join((TcpStream::connect(listener.local_addr().unwrap()), listener.accept())).await.unwrap();
    (near, far)
}

/// A socket that is connected to itself, and has more datagrams than one poll can receive.
async fn udp_full() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(socket.local_addr().unwrap()).await.unwrap();
    for _ in 0..MANY {
        socket.send(b"!").await.unwrap();
    }
    socket
}

/// A stream of another crate that is always ready, a byte at a time.
struct Endless;

impl futures_io::AsyncRead for Endless {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        buffer[0] = 1;
        Poll::Ready(Ok(1))
    }
}

impl futures_io::AsyncWrite for Endless {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(1))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Runs a future that never waits and never ends beside a sibling that stops it.
fn is_stopped_by_a_sibling(endless: impl Future<Output = ()> + Send + 'static) {
    let outcome = block_on(async {
        scope(async |s| {
            let endless = s.spawn_future(endless);
            for _ in 0..3 {
                checkpoint().await;
            }
            endless.request_stop(StopReason::Requested);
            endless.outcome().await
        })
        .await
    });
    assert_eq!(outcome, Outcome::Value(Outcome::Stopped));
}

#[test]
fn a_copy_of_an_endless_foreign_stream_lets_others_run_and_stops() {
    is_stopped_by_a_sibling(async { drop(copy(&mut Endless, &mut Endless).await) });
}

#[test]
fn both_directions_of_an_endless_copy_have_their_turns() {
    let (there, back) = (Arc::new(Progress::new()), Arc::new(Progress::new()));
    let (counts, counts_back) = (there.clone(), back.clone());
    is_stopped_by_a_sibling(async move {
        _ = copy_bidirectional(&mut Endless, &mut Endless).progress(&counts, &counts_back).await;
    });
    assert!(there.bytes() > 0 && back.bytes() > 0, "{there:?} {back:?}");
}

#[test]
fn whole_buffers_of_an_endless_foreign_stream_let_others_run_and_stop() {
    is_stopped_by_a_sibling(async {
        loop {
            convoke::io::read_exact(&mut Endless, &mut [0; 3]).await.unwrap();
            convoke::io::write_all(&mut Endless, &[0; 3]).await.unwrap();
        }
    });
    is_stopped_by_a_sibling(async {
        let mut erased = AnyStream::new(Endless);
        loop {
            erased.read(&mut [0]).await.unwrap();
            erased.flush().await.unwrap();
        }
    });
}
