//! Sockets as programs use them, on the driver of this machine: halves, options, owned and borrowed buffers,
//! the standard library's sockets, and the effect of a stop or a drop in flight.
#![cfg(feature = "net")]

use std::io::{self, IoSlice, IoSliceMut};
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use convoke::driver::io_context;
use convoke::io::{AnyStream, Progress, read_exact, write_all};
use convoke::net::{AddressError, ListenOptions, SocketOption, TcpListener, TcpStream, UdpSocket};
use convoke::prelude::*;
use convoke::sender::prelude::*;
use convoke::task::budget;
use convoke::time::stop_after;

/// Runs a program on its own context.
fn run<T>(program: impl Future<Output = io::Result<T>>) -> T {
    io_context().unwrap().block_on(program).unwrap().unwrap()
}

async fn connected() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let (client, (server, from)) =
        try_join((TcpStream::connect(listener.local_addr()?), listener.accept())).await?;
    assert_eq!((client.local_addr()?, server.local_addr()?), (from, client.peer_addr()?));
    Ok((client, server))
}

#[test]
fn borrowed_halves_read_and_write_at_once() {
    run(async {
        let (mut client, mut server) = connected().await?;
        let ((from_server, to_server), (from_client, to_client)) = (client.split(), server.split());
        let (mut heard, mut answered) = ([0; 3], [0; 4]);
        try_join((
            to_server.write_all(b"one"),
            to_client.write_all(b"four"),
            from_client.read_exact(&mut heard),
            from_server.read_exact(&mut answered),
        ))
        .await?;
        assert_eq!((&heard, &answered), (b"one", b"four"));
        Ok(())
    });
}

#[test]
fn a_half_that_writes_ends_its_direction_when_it_goes_and_the_other_goes_on() {
    run(async {
        let (client, server) = connected().await?;
        let (reads, writes) = client.into_split();
        writes.write_all(b"last words").await?;
        drop(writes);
        let mut all = Vec::new();
        loop {
            let lease = server.read_lease().await?;
            if lease.is_empty() {
                break;
            }
            all.extend_from_slice(&lease);
        }
        assert_eq!(all, b"last words");
        server.write_all(b"reply").await?;
        let mut reply = [0; 5];
        reads.read_exact(&mut reply).await?;
        assert_eq!(&reply, b"reply");
        Ok(())
    });
}

#[test]
fn halves_are_put_together_again_only_with_their_own() {
    run(async {
        let (client, server) = connected().await?;
        let ((reads, writes), (others_reads, others_writes)) = (client.into_split(), server.into_split());
        let wrong = reads.reunite(others_writes).unwrap_err();
        assert_eq!(wrong.to_string(), "the two halves are of different connections");
        let (client, server) = (wrong.0.reunite(writes).unwrap(), others_reads.reunite(wrong.1).unwrap());
        client.write_all(b"still there").await?;
        server.read_exact(&mut [0; 11]).await
    });
}

#[test]
fn what_was_looked_at_is_still_there() {
    run(async {
        let (client, server) = connected().await?;
        client.write_all(b"peek").await?;
        let (mut looked, mut read) = ([0; 4], [0; 4]);
        server.readable().await?;
        assert_eq!(server.peek(&mut looked).await?, 4);
        server.read_exact(&mut read).await?;
        assert_eq!(looked, read);
        Ok(())
    });
}

#[test]
fn several_buffers_are_one_write_and_one_read() {
    run(async {
        let (client, server) = connected().await?;
        let written =
            client.write_vectored(&[IoSlice::new(b"ab"), IoSlice::new(b""), IoSlice::new(b"cde")]).await?;
        assert_eq!(written, 5);
        server.readable().await?;
        let (mut one, mut other) = ([0; 3], [0; 8]);
        let read =
            server.read_vectored(&mut [IoSliceMut::new(&mut one), IoSliceMut::new(&mut other)]).await?;
        assert_eq!((read, &one, &other[..2]), (5, b"abc", &b"de"[..]));
        Ok(())
    });
}

#[test]
fn a_buffer_that_is_given_away_comes_back() {
    run(async {
        let (client, server) = connected().await?;
        let (written, words) = client.write_owned(b"owned".to_vec()).await;
        assert_eq!((written?, words.as_slice()), (5, &b"owned"[..]));
        let (read, buffer) = server.read_owned([0_u8; 8]).await;
        assert_eq!(&buffer[..read?], b"owned");
        Ok(())
    });
}

#[test]
fn a_read_that_waits_is_finished_by_the_driver() {
    run(async {
        let (client, server) = connected().await?;
        scope(async |s| {
            let reading = s.spawn_future(async move { server.read_owned(vec![0; 8]).await });
            checkpoint().await;
            client.write_all(b"late").await?;
            let (read, buffer) = reading.await;
            assert_eq!(&buffer[..read?], b"late");
            Ok(())
        })
        .await
    });
}

#[test]
fn a_function_that_the_driver_calls_may_run_a_loop_of_its_own() {
    run(async {
        let (client, server) = connected().await?;
        // Called while the context waits for I/O, as soon as the bytes arrive.
        let read = server.read_owned(vec![0; 8]).then(|read| {
            assert_eq!(sync_wait(task(async { checkpoint().await })), Outcome::Value(()));
            read
        });
        let ((read, buffer), ()) = join((read.into_future(), async {
            for _ in 0..3 {
                checkpoint().await;
            }
            client.write_all(b"hello").await.unwrap();
        }))
        .await;
        assert_eq!((read?, &buffer[..5]), (5, &b"hello"[..]));
        Ok(())
    });
}

#[test]
fn a_stopped_read_takes_nothing_from_the_connection() {
    run(async {
        let (client, server) = connected().await?;
        let mut buffer = [0; 8];
        assert!(timeout(Duration::from_millis(1), server.read(&mut buffer)).await.is_err());
        let owned = async { server.read_owned(vec![0; 8]).await };
        assert!(timeout(Duration::from_millis(1), owned).await.is_err());
        client.write_all(b"for the next").await?;
        server.read_exact(&mut [0; 12]).await
    });
}

#[test]
fn a_read_that_is_dropped_in_flight_takes_nothing_from_the_connection() {
    run(async {
        let (client, server) = connected().await?;
        let mut buffer = [0; 8];
        {
            let mut read = std::pin::pin!(server.read(&mut buffer));
            let polled = std::future::poll_fn(|cx| std::task::Poll::Ready(read.as_mut().poll(cx))).await;
            assert!(polled.is_pending());
        }
        client.write_all(b"for the next").await?;
        server.read_exact(&mut [0; 12]).await
    });
}

#[test]
fn who_never_has_to_wait_lets_others_hear_that_they_can_go_on() {
    run(async {
        let ((talks, _hears_nothing), (near, far)) = try_join((connected(), connected())).await?;
        let heard = Arc::new(AtomicBool::new(false));
        scope(async |s| {
            let has_heard = heard.clone();
            s.spawn(async move {
                far.read(&mut [0]).await?;
                has_heard.store(true, Ordering::Relaxed);
                io::Result::Ok(())
            });
            checkpoint().await;
            near.write_all(b"!").await?;
            let mut calls = 0;
            while !heard.load(Ordering::Relaxed) {
                talks.write(b".").await?;
                calls += 1;
                assert!(calls <= 2 * budget::PER_POLL, "nobody looks who else is ready");
            }
            Ok(())
        })
        .await
    });
}

#[test]
fn a_write_that_is_stopped_says_how_far_it_got() {
    run(async {
        let (client, server) = connected().await?;
        let (progress, words) = (Progress::new(), vec![7; 64 << 20]);
        let stopped = catch_stopped(stop_after(Duration::from_millis(5), async {
            client.write_all(&words).progress(&progress).await
        }));
        assert!(stopped.await.is_err(), "nobody reads, and the kernel has no room for all of it");
        client.shutdown(Shutdown::Write)?;
        let mut read = 0;
        loop {
            match server.read_lease().await?.len() {
                0 => break,
                length => read += length as u64,
            }
        }
        assert_eq!(read, progress.bytes(), "what was written is what arrived");
        Ok(())
    });
}

#[test]
fn a_peer_that_resets_is_an_error_and_a_peer_that_ends_is_not() {
    run(async {
        let (client, server) = connected().await?;
        client.set_option(SocketOption::Linger(Some(Duration::ZERO)))?;
        drop(client);
        let error = server.read(&mut [0; 1]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        let (client, server) = connected().await?;
        drop(client);
        assert_eq!(server.read(&mut [0; 1]).await?, 0);
        Ok(())
    });
}

#[test]
fn nobody_there_is_an_error() {
    run(async {
        let address = TcpListener::bind("127.0.0.1:0").await?.local_addr()?;
        let error = TcpStream::connect(address).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        Ok(())
    });
}

#[test]
fn options_are_kept() {
    run(async {
        let (client, _server) = connected().await?;
        assert!(!client.nodelay()?);
        client.set_nodelay(true)?;
        assert!(client.nodelay()?);
        for option in [SocketOption::TimeToLive(42), SocketOption::Linger(Some(Duration::from_secs(3)))] {
            client.set_option(option)?;
            assert_eq!(client.option(option)?, option);
        }
        client.set_option(SocketOption::KeepAlive(Some(Duration::from_secs(30))))?;
        assert!(client.take_error()?.is_none());
        Ok(())
    });
}

#[test]
fn sockets_of_the_standard_library_come_and_go() {
    run(async {
        let listener = TcpListener::from_std(std::net::TcpListener::bind("127.0.0.1:0")?)?;
        let address = listener.local_addr()?;
        let (client, (server, _)) = try_join((
            async { TcpStream::from_std(std::net::TcpStream::connect(address)?) },
            listener.accept(),
        ))
        .await?;
        let client = client.into_std()?;
        client.set_nonblocking(false)?;
        io::Write::write_all(&mut &client, b"from std")?;
        server.read_exact(&mut [0; 8]).await?;
        assert_eq!(listener.into_std()?.local_addr()?, address);
        Ok(())
    });
}

#[cfg(target_os = "linux")]
#[test]
fn a_group_listens_at_one_address() {
    run(async {
        let group = TcpListener::bind_group("127.0.0.1:0", 3).await?;
        let address = group[0].local_addr()?;
        assert!(group.iter().all(|listener| listener.local_addr().is_ok_and(|other| other == address)));
        let alone = TcpListener::bind_with(address, ListenOptions::default()).await;
        assert_eq!(alone.unwrap_err().kind(), io::ErrorKind::AddrInUse);
        Ok(())
    });
}

#[test]
fn datagrams_have_senders_and_may_be_looked_at() {
    run(async {
        let (one, other) = (UdpSocket::bind("127.0.0.1:0").await?, UdpSocket::bind("127.0.0.1:0").await?);
        one.send_to(b"to whom", other.local_addr()?).await?;
        let mut buffer = [0; 16];
        let peeked = other.peek_from(&mut buffer).await?;
        assert_eq!(peeked, other.recv_from(&mut buffer).await?);
        assert_eq!((peeked.0, peeked.1), (7, one.local_addr()?));
        other.connect(one.local_addr()?).await?;
        other.send(b"connected").await?;
        assert_eq!(one.recv_from(&mut buffer).await?.0, 9);
        Ok(())
    });
}

#[cfg(unix)]
#[test]
fn unix_sockets_are_sockets_too() {
    use convoke::net::{UnixDatagram, UnixListener, UnixStream};

    let folder = std::env::temp_dir().join(format!("convoke-sockets-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    run(async {
        let listener = UnixListener::bind(folder.join("stream"))?;
        assert_eq!(listener.local_addr()?.path(), Some(&*folder.join("stream")));
        let (client, (server, _)) =
            try_join((UnixStream::connect(folder.join("stream")), listener.accept())).await?;
        client.write_all(b"in a file").await?;
        server.read_exact(&mut [0; 9]).await?;
        let (one, other) = UnixStream::pair()?;
        one.write_all(b"in a pair").await?;
        other.read_exact(&mut [0; 9]).await?;
        assert_eq!(other.peer_addr()?.path(), None);
        let (to, from) = (UnixDatagram::bind(folder.join("datagrams"))?, UnixDatagram::unbound()?);
        from.send_to(b"datagram", folder.join("datagrams")).await?;
        assert_eq!(to.recv(&mut [0; 16]).await?, 8);
        Ok(())
    });
    std::fs::remove_dir_all(folder).unwrap();
}

#[cfg(unix)]
#[test]
fn other_options_are_set_through_the_descriptor() {
    use std::os::fd::AsFd;

    run(async {
        let (client, _server) = connected().await?;
        let socket = socket2::SockRef::from(&client);
        socket.set_tos_v4(16)?;
        assert_eq!(socket.tos_v4()?, 16);
        assert!(client.as_fd().try_clone_to_owned().is_ok());
        Ok(())
    });
}

#[test]
fn streams_of_any_type_and_sockets_speak_the_same_traits() {
    run(async {
        let (client, server) = connected().await?;
        let (mut client, mut server) = (AnyStream::new(client), AnyStream::new(server));
        let mut heard = [0; 6];
        try_join((write_all(&mut client, b"erased"), read_exact(&mut server, &mut heard))).await?;
        assert_eq!(&heard, b"erased");
        assert!(client.downcast::<TcpStream>().is_ok());
        Ok(())
    });
}

#[test]
fn asking_for_nothing_between_two_waits_leaves_nobody_waiting() {
    use std::pin::Pin;
    use std::task::Poll;

    use futures_io::AsyncRead;

    let context = io_context().unwrap();
    let driver = context.driver().clone();
    let ended = context.block_on(async {
        let (mut client, _server) = connected().await?;
        for _ in 0..10 {
            let polled = std::future::poll_fn(|cx| {
                let waits = Pin::new(&mut client).poll_read(cx, &mut [0; 1]).is_pending();
                let nothing = Pin::new(&mut client).poll_read(cx, &mut []);
                Poll::Ready((waits, matches!(nothing, Poll::Ready(Ok(0)))))
            });
            assert_eq!(polled.await, (true, true));
        }
        io::Result::Ok(driver.in_flight())
    });
    assert_eq!(ended.unwrap().unwrap(), 0);
}

/// Returns the kind of an error, its address and the system's error code.
fn named(error: io::Error) -> (io::ErrorKind, String, Option<i32>) {
    let inside: &AddressError =
        error.get_ref().expect("it is in words").downcast_ref().expect("it names an address");
    assert!(error.to_string().contains(&inside.cause().to_string()), "{error}");
    (error.kind(), error.to_string(), inside.cause().raw_os_error())
}

#[test]
fn an_address_that_cannot_be_used_is_named_with_what_the_system_said() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let at = listener.local_addr()?;
        let (kind, words, number) = named(TcpListener::bind(at).await.unwrap_err());
        assert_eq!(kind, io::ErrorKind::AddrInUse);
        assert!(words.starts_with(&format!("cannot bind to {at}: ")) && number.is_some(), "{words}");
        drop(listener);
        let (kind, words, number) = named(TcpStream::connect(at).await.unwrap_err());
        assert_eq!(kind, io::ErrorKind::ConnectionRefused);
        assert!(words.starts_with(&format!("cannot connect to {at}: ")) && number.is_some(), "{words}");
        let datagrams = UdpSocket::bind("127.0.0.1:0").await?;
        let at = datagrams.local_addr()?;
        let (kind, words, _) = named(UdpSocket::bind(at).await.unwrap_err());
        assert_eq!((kind, words.contains(&at.to_string())), (io::ErrorKind::AddrInUse, true));
        Ok(())
    });
}

#[cfg(unix)]
#[test]
fn a_path_that_cannot_be_used_is_named() {
    use convoke::net::{UnixDatagram, UnixListener, UnixStream};

    run(async {
        let nowhere = "/nowhere/at/all";
        let datagrams = UnixDatagram::unbound()?;
        for error in [
            UnixListener::bind(nowhere).unwrap_err(),
            UnixStream::connect(nowhere).await.unwrap_err(),
            UnixDatagram::bind(nowhere).unwrap_err(),
            datagrams.connect(nowhere).unwrap_err(),
        ] {
            let (kind, words, _) = named(error);
            assert_eq!((kind, words.contains(nowhere)), (io::ErrorKind::NotFound, true));
        }
        Ok(())
    });
}

#[test]
fn what_is_no_address_is_told_what_one_looks_like() {
    run(async {
        for text in ["127.0.0.1", "host:99999", "host:http", "http://host/", ":80", ""] {
            let error = TcpStream::connect(text).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
            let words = error.to_string();
            assert!(words.contains(&format!("`{text}`")) && words.contains("0 to 65535"), "{words}");
        }
        let error = TcpStream::connect(&[][..]).await.unwrap_err();
        assert_eq!(error.to_string(), "no address was given: the list is empty");
        Ok(())
    });
}
