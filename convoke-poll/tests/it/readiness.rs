//! Readiness of sockets, attempts of the program's own, adopted descriptors, and the `poll_…` methods of
//! datagram sockets, on the pollers of all systems.
#![cfg(unix)]

use std::future::poll_fn;
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::sync::Arc;

use convoke::io::{read_exact, write_all};
use convoke::prelude::*;
use convoke::task::checkpoint;
use convoke_io::{IoContext, current_driver};
use convoke_net::net::{AsyncFd, Interest, TcpListener, TcpStream, UdpSocket, UnixStream};
use convoke_poll::PollDriver;

const MAKERS: [fn() -> io::Result<PollDriver>; 3] =
    [PollDriver::new, PollDriver::portable, PollDriver::portable_without_edges];

/// Runs a program with each poller, and checks that nothing is left in flight.
fn run<F: Future<Output = io::Result<()>>>(program: impl Fn() -> F) {
    for make in MAKERS {
        let context = IoContext::new(Arc::new(make().expect("a driver can be created")));
        context.block_on(program()).unwrap().expect("the program succeeds");
        assert_eq!(context.driver().in_flight(), 0, "something is left in flight");
    }
}

/// Lets other tasks run until this many waiters are there.
async fn waiters(count: usize) {
    while current_driver().expect("there is a context").in_flight() != count {
        checkpoint().await;
    }
}

#[track_caller]
fn would_block<T: std::fmt::Debug>(result: io::Result<T>) {
    assert_eq!(result.expect_err("nothing is there yet").kind(), ErrorKind::WouldBlock);
}

#[test]
fn a_listener_is_readable_when_a_connection_waits() {
    run(|| async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        would_block(listener.try_accept());
        let connects = async {
            waiters(1).await;
            TcpStream::connect(address).await
        };
        let (near, ()) = try_join((connects, listener.readable())).await?;
        assert_eq!(listener.try_accept()?.1, near.local_addr()?);
        Ok(())
    });
}

#[test]
fn a_datagram_socket_is_readable_when_a_datagram_waits() {
    run(|| async {
        let (one, other) = (UdpSocket::bind("127.0.0.1:0").await?, UdpSocket::bind("127.0.0.1:0").await?);
        one.writable().await?;
        would_block(one.try_recv_from(&mut [0; 8]));
        let sends = async {
            waiters(1).await;
            other.try_send_to(b"word", one.local_addr()?)
        };
        try_join((sends, one.readable())).await?;
        let mut buffer = [0; 8];
        assert_eq!(one.try_recv_from(&mut buffer)?, (4, other.local_addr()?));
        Ok(())
    });
}

#[test]
fn a_full_stream_is_writable_when_its_peer_has_read() {
    run(|| async {
        let (near, far) = UnixStream::pair()?;
        while near.try_write(&[0; 1 << 16]).is_ok() {}
        would_block(near.try_write(&[0]));
        let reads = async {
            waiters(1).await;
            let mut buffer = vec![0; 1 << 16];
            while far.try_read(&mut buffer).is_ok() {}
            Ok(())
        };
        try_join((reads, near.writable())).await?;
        assert!(near.try_write(&[0]).is_ok());
        Ok(())
    });
}

#[test]
fn a_call_of_the_programs_own_waits_for_readiness() {
    run(|| async {
        let (near, far) = UnixStream::pair()?;
        let near_too = std::os::unix::net::UnixStream::from(near.as_fd().try_clone_to_owned()?);
        let receive = || {
            let mut byte = [0];
            io::Read::read(&mut &near_too, &mut byte).map(|read| (read, byte[0]))
        };
        would_block(near.try_io(Interest::Read, receive));
        let mut calls = 0;
        would_block(near.try_io(Interest::Read, || {
            calls += 1;
            receive()
        }));
        assert_eq!(calls, 0, "the socket is known to block");
        let sends = async {
            waiters(1).await;
            far.write_all(b"!").await
        };
        let (received, ()) = try_join((near.async_io(Interest::Read, receive), sends)).await?;
        assert_eq!(received, (1, b'!'));
        Ok(())
    });
}

#[test]
fn bytes_go_through_an_adopted_pipe() {
    run(|| async {
        let (reader, writer) = io::pipe()?;
        let (mut reader, mut writer) = (AsyncFd::new(reader)?, AsyncFd::new(writer)?);
        // More than a pipe holds, so that both ends wait.
        let sent: Vec<u8> = (0..1_000_000_u32).map(|at| (at % 251) as u8).collect();
        let mut received = vec![0; sent.len()];
        try_join((write_all(&mut writer, &sent), read_exact(&mut reader, &mut received))).await?;
        assert!(sent == received);
        drop(writer);
        assert_eq!(reader.read(&mut [0]).await?, 0, "the end: no writer is left");
        Ok(())
    });
}

#[test]
fn a_stopped_read_of_a_pipe_takes_nothing() {
    run(|| async {
        let (reader, writer) = io::pipe()?;
        let reader = AsyncFd::new(reader)?;
        let lost = timeout(std::time::Duration::from_millis(1), reader.read(&mut [0; 4])).await;
        assert!(lost.is_err(), "there is nothing to read");
        (&writer).write_all(b"word")?;
        let mut received = [0; 4];
        assert_eq!((reader.read(&mut received).await?, received), (4, *b"word"));
        Ok(())
    });
}

#[cfg(any(target_os = "linux", target_os = "android"))]
#[test]
#[allow(unsafe_code)]
fn an_eventfd_wakes_a_task_of_another_thread() {
    use std::fs::File;
    use std::os::fd::{FromRawFd, OwnedFd};

    run(|| async {
        // SAFETY: the call has no memory arguments. The descriptor that it returns belongs to nobody else.
        let event = File::from(unsafe { OwnedFd::from_raw_fd(libc::eventfd(0, libc::EFD_CLOEXEC)) });
        let counter = event.try_clone()?;
        let event = AsyncFd::new(event)?;
        let mut count = [0; 8];
        would_block(event.try_io(Interest::Read, |mut event| io::Read::read(&mut event, &mut count)));
        let adds = async {
            waiters(1).await;
            std::thread::spawn(move || (&counter).write_all(&7_u64.to_ne_bytes())).join().unwrap()
        };
        try_join((event.read(&mut count), adds)).await?;
        assert_eq!(u64::from_ne_bytes(count), 7);
        Ok(())
    });
}

#[cfg(any(target_os = "linux", target_os = "android"))]
#[test]
fn a_regular_file_is_refused() {
    run(|| async {
        let file = std::fs::File::open(std::env::current_exe()?)?;
        assert_eq!(AsyncFd::new(file).unwrap_err().kind(), ErrorKind::PermissionDenied);
        Ok(())
    });
}

#[test]
fn datagrams_are_polled_for() {
    run(|| async {
        let (one, other) = (UdpSocket::bind("127.0.0.1:0").await?, UdpSocket::bind("127.0.0.1:0").await?);
        let (from, to) = (other.local_addr()?, one.local_addr()?);
        let mut buffer = [0; 8];
        let receives = poll_fn(|cx| one.poll_recv_from(cx, &mut buffer));
        let sends = async {
            waiters(1).await;
            poll_fn(|cx| other.poll_send_to(cx, b"word", to)).await
        };
        let (received, sent) = try_join((receives, sends)).await?;
        assert_eq!((received, sent), ((4, from), 4));
        assert_eq!(&buffer[..4], b"word");
        // A wait that is left over ends with the socket.
        let waits = poll_fn(|cx| {
            assert!(one.poll_recv_from(cx, &mut buffer).is_pending());
            std::task::Poll::Ready(())
        });
        waits.await;
        assert_eq!(current_driver()?.in_flight(), 1);
        drop(one);
        assert_eq!(current_driver()?.in_flight(), 0);
        Ok(())
    });
}
