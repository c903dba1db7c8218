//! Tests beyond the suite for all drivers: Unix sockets, sockets of the standard library, options, shared
//! ports.

use std::io::{self, Write};
use std::net::{self, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use convoke_io::IoContext;
use convoke_io::driver::{Address, Driver, ListenOptions, SocketOption, Source, StandardSocket};
use convoke_net::net::{TcpListener, TcpStream, UdpSocket};
use convoke_poll::PollDriver;
use convoke_task::try_join;

fn run<T>(program: impl Future<Output = io::Result<T>>) -> T {
    let context = IoContext::new(Arc::new(PollDriver::new().expect("a driver can be created")));
    context.block_on(program).unwrap().expect("the program succeeds")
}

fn any_port() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

#[test]
fn a_socket_of_the_standard_library_is_adopted_and_converted_back() {
    let listener = net::TcpListener::bind(any_port()).expect("a port is free");
    let address = listener.local_addr().expect("it has an address");
    let received = run(async {
        let listener = TcpListener::from_std(listener)?;
        let (near, (far, _)) = try_join((TcpStream::connect(address), listener.accept())).await?;
        let mut near = near.into_std()?;
        near.set_nonblocking(false)?;
        near.write_all(b"out")?;
        drop(near);
        let mut received = [0; 3];
        far.read_exact(&mut received).await?;
        assert_eq!(far.read(&mut [0; 1]).await?, 0, "both handles are closed");
        Ok(received)
    });
    assert_eq!(&received, b"out");
}

#[test]
fn reading_from_a_listener_is_an_error() {
    let driver = PollDriver::new().expect("a driver can be created");
    let mut places = vec![Address::Internet(any_port())];
    let path = std::env::temp_dir().join(format!("convoke-poll-{}-no-bytes", std::process::id()));
    if cfg!(unix) {
        places.push(Address::Path(path.clone()));
    }
    for at in places {
        let listener = driver.listen(&at, &ListenOptions::default()).expect("the address is free");
        for length in [0, 8] {
            let read = listener.try_read(&mut vec![0; length]).expect_err("nothing to read");
            let written = listener.try_write(&vec![0; length]).expect_err("nowhere to write");
            assert_eq!(
                (read.kind(), written.kind()),
                (io::ErrorKind::Unsupported, io::ErrorKind::Unsupported)
            );
        }
    }
    _ = std::fs::remove_file(path);
}

#[cfg(any(target_os = "linux", target_os = "android"))]
#[test]
fn a_dropped_socket_with_another_open_handle_gets_no_events() {
    let driver = PollDriver::new().expect("a driver can be created");
    let (near, far) = {
        let listener = net::TcpListener::bind(any_port()).expect("a port is free");
        let near =
            net::TcpStream::connect(listener.local_addr().expect("it has an address")).expect("it listens");
        (near, listener.accept().expect("a connection waits").0)
    };
    let kept = far.try_clone().expect("a handle more");
    let source = driver.adopt(StandardSocket::TcpStream(far)).expect("it can be adopted");
    drop(source);
    // The kernel has forgotten the socket, though it is open: its events do not reach the next socket
    // with its key.
    (&near).write_all(b"unread").expect("it fits");
    let descriptor = driver.descriptor().expect("it has an address");
    assert!(!crate::descriptors::is_readable(descriptor), "there is an event");
    drop(kept);
}

/// Tests a read that ends at the mark of an urgent byte, though there is more behind it.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[test]
fn bytes_behind_an_urgent_byte_are_read() {
    let received = run(async {
        let listener = TcpListener::bind(any_port()).await?;
        let near = net::TcpStream::connect(listener.local_addr()?)?;
        let (far, _) = listener.accept().await?;
        let hears = async {
            let (mut received, mut buffer) = (Vec::new(), [0; 64]);
            while received.len() < 12 {
                let read = far.read(&mut buffer).await?;
                received.extend_from_slice(&buffer[..read]);
            }
            Ok(received)
        };
        // All of it arrives in one event, which the reader waits for.
        let speaks = async {
            (&near).write_all(b"before")?;
            socket2::SockRef::from(&near).send_out_of_band(b"!")?;
            (&near).write_all(b"behind")
        };
        try_join((hears, speaks)).await.map(|(received, ())| received)
    });
    assert_eq!(received, b"beforebehind");
}

#[test]
fn options_return_the_values_they_were_set_to() {
    run(async {
        let listener = TcpListener::bind(any_port()).await?;
        let stream = TcpStream::connect(listener.local_addr()?).await?;
        for option in [
            SocketOption::NoDelay(true),
            SocketOption::NoDelay(false),
            SocketOption::TimeToLive(17),
            SocketOption::Linger(Some(Duration::from_secs(3))),
            SocketOption::Linger(None),
            SocketOption::KeepAlive(Some(Duration::from_secs(77))),
            SocketOption::KeepAlive(None),
        ] {
            stream.set_option(option)?;
            assert_eq!(stream.option(option)?, option);
        }
        stream.set_option(SocketOption::ReceiveBuffer(1 << 15))?;
        match stream.option(SocketOption::ReceiveBuffer(0))? {
            // Kernels treat the size as a hint.
            SocketOption::ReceiveBuffer(size) => assert!(size >= 1 << 15),
            other => panic!("{other:?}"),
        }
        let socket = UdpSocket::bind(any_port()).await?;
        socket.set_option(SocketOption::Broadcast(true))?;
        assert_eq!(socket.option(SocketOption::Broadcast(false))?, SocketOption::Broadcast(true));
        Ok(())
    });
}

#[test]
fn options_have_methods() {
    run(async {
        let listener = TcpListener::bind(any_port()).await?;
        listener.set_ttl(33)?;
        assert_eq!(listener.ttl()?, 33);
        let stream = TcpStream::connect(listener.local_addr()?).await?;
        stream.set_nodelay(true)?;
        stream.set_ttl(17)?;
        stream.set_tos(0x10)?;
        stream.set_keepalive(Some(Duration::from_secs(77)))?;
        stream.set_linger(Some(Duration::ZERO))?;
        assert_eq!((stream.nodelay()?, stream.ttl()?, stream.tos()?), (true, 17, 0x10));
        assert_eq!(stream.keepalive()?, Some(Duration::from_secs(77)));
        assert_eq!(stream.linger()?, Some(Duration::ZERO));
        stream.set_send_buffer_size(1 << 15)?;
        stream.set_recv_buffer_size(1 << 15)?;
        assert!(stream.send_buffer_size()? >= 1 << 15 && stream.recv_buffer_size()? >= 1 << 15);
        for at in [any_port(), (Ipv6Addr::LOCALHOST, 0).into()] {
            let Ok(socket) = UdpSocket::bind(at).await else { continue };
            socket.set_broadcast(true)?;
            socket.set_ttl(9)?;
            socket.set_multicast_loop(false)?;
            socket.set_multicast_ttl(3)?;
            assert_eq!((socket.broadcast()?, socket.ttl()?), (true, 9));
            assert_eq!((socket.multicast_loop()?, socket.multicast_ttl()?), (false, 3));
        }
        Ok(())
    });
}

/// The loopback interface of Linux takes part in multicast if it is named.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[test]
fn a_datagram_to_a_group_is_received_by_its_members() {
    run(async {
        let group = Ipv4Addr::new(239, 7, 7, 7);
        let member = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).await?;
        member.join_multicast_v4(group, Ipv4Addr::LOCALHOST)?;
        let sender = UdpSocket::bind(any_port()).await?;
        sender.set_multicast_loop(true)?;
        socket2::SockRef::from(&sender).set_multicast_if_v4(&Ipv4Addr::LOCALHOST)?;
        sender.send_to(b"all", (group, member.local_addr()?.port()).into()).await?;
        let mut buffer = [0; 8];
        assert_eq!(member.recv_from(&mut buffer).await?, (3, sender.local_addr()?));
        member.leave_multicast_v4(group, Ipv4Addr::LOCALHOST)?;
        assert!(member.leave_multicast_v4(group, Ipv4Addr::LOCALHOST).is_err());
        Ok(())
    });
}

#[cfg(unix)]
#[test]
fn a_unix_stream_knows_its_peer() {
    run(async {
        let (near, _far) = convoke_net::net::UnixStream::pair()?;
        let peer = near.peer_cred()?;
        assert!(peer.pid().is_none_or(|pid| pid as u32 == std::process::id()));
        let file = std::env::temp_dir().join(format!("convoke-poll-{}-owner", std::process::id()));
        std::fs::write(&file, "")?;
        let owner = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(&file)?);
        std::fs::remove_file(file)?;
        assert_eq!(peer.uid(), owner, "a new file belongs to the same user");
        Ok(())
    });
}

/// With SO_LINGER the kernel blocks the thread that closes. The dropped handle is the last but one here, so
/// that the option can still be read.
#[cfg(unix)]
#[test]
fn a_dropped_stream_does_not_linger() {
    use std::os::fd::AsFd;

    run(async {
        let listener = TcpListener::bind(any_port()).await?;
        let linger = Some(Duration::from_secs(60));
        for (set, left) in [(linger, None), (Some(Duration::ZERO), Some(Duration::ZERO)), (None, None)] {
            let stream = TcpStream::connect(listener.local_addr()?).await?;
            stream.set_option(SocketOption::Linger(set))?;
            let kept = net::TcpStream::from(stream.as_fd().try_clone_to_owned()?);
            drop(stream);
            assert_eq!(socket2::SockRef::from(&kept).linger()?, left);
        }
        let stream = TcpStream::connect(listener.local_addr()?).await?;
        stream.set_option(SocketOption::Linger(linger))?;
        let converted = stream.into_std()?;
        assert_eq!(socket2::SockRef::from(&converted).linger()?, linger, "the stream was not closed");
        Ok(())
    });
}

#[cfg(all(unix, not(any(target_os = "solaris", target_os = "illumos"))))]
#[test]
fn several_listeners_share_a_port_with_reuse_port() {
    run(async {
        let group = TcpListener::bind_group(any_port(), 3).await?;
        let address = group[0].local_addr()?;
        assert!(group.iter().all(|listener| listener.local_addr().is_ok_and(|own| own == address)));
        assert!(TcpListener::bind(address).await.is_err(), "a listener without the option may not share");
        Ok(())
    });
}

/// A system without IPv6.
struct WithoutIpv6(PollDriver);

impl Driver for WithoutIpv6 {
    fn stream(&self, like: &Address) -> io::Result<Arc<dyn Source>> {
        match like {
            Address::Internet(SocketAddr::V6(_)) => Err(io::ErrorKind::Unsupported.into()),
            like => self.0.stream(like),
        }
    }

    fn listen(&self, at: &Address, options: &ListenOptions) -> io::Result<Arc<dyn Source>> {
        self.0.listen(at, options)
    }

    fn datagrams(&self, at: &Address, options: &ListenOptions) -> io::Result<Arc<dyn Source>> {
        self.0.datagrams(at, options)
    }

    fn wait(&self, until: Option<Instant>) -> io::Result<()> {
        self.0.wait(until)
    }

    fn wake(&self) {
        self.0.wake();
    }

    fn in_flight(&self) -> usize {
        self.0.in_flight()
    }

    fn shut_down(&self) {
        self.0.shut_down();
    }
}

#[test]
fn connect_skips_addresses_of_unsupported_families() {
    let listener = net::TcpListener::bind(any_port()).expect("a port is free");
    let here = listener.local_addr().expect("it has an address");
    let addresses = [SocketAddr::from((Ipv6Addr::LOCALHOST, here.port())), here];
    let driver = WithoutIpv6(PollDriver::new().expect("a driver can be created"));
    let context = IoContext::new(Arc::new(driver));
    let connected =
        context.block_on(TcpStream::connect(&addresses[..])).unwrap().expect("one of them listens");
    assert_eq!(connected.peer_addr().expect("it has an address"), here);
    let error = context.block_on(TcpStream::connect(addresses[0])).unwrap().expect_err("it is unsupported");
    assert_eq!(error.kind(), io::ErrorKind::Unsupported);
}

#[test]
fn an_address_of_the_wrong_kind_is_named_in_the_error() {
    let driver = PollDriver::new().expect("a driver can be created");
    let socket = driver.datagrams(&any_port().into(), &ListenOptions::default()).expect("a port is free");
    let error = socket.try_send_to(b"x", &Address::Unnamed).expect_err("it is not an Internet address");
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    assert_eq!(error.to_string(), "(unnamed) is not an address for this kind of socket");
}

#[cfg(unix)]
mod unix {
    use std::path::PathBuf;

    use convoke_io::transfer::{Toward, Transfer};
    use convoke_net::net::{UnixDatagram, UnixListener, UnixStream};
    use convoke_sender::sync_wait;

    use super::*;

    /// A unique path, which is deleted on drop.
    struct TempPath(PathBuf);

    impl TempPath {
        fn new(name: &str) -> Self {
            Self(std::env::temp_dir().join(format!("convoke-poll-{}-{name}", std::process::id())))
        }
    }

    impl Drop for TempPath {
        fn drop(&mut self) {
            _ = std::fs::remove_file(&self.0);
        }
    }

    #[test]
    fn streams_connect_by_path() {
        let path = TempPath::new("stream");
        run(async {
            let listener = UnixListener::bind(&path.0)?;
            assert_eq!(listener.local_addr()?, Address::Path(path.0.clone()));
            let (near, (far, peer)) = try_join((UnixStream::connect(&path.0), listener.accept())).await?;
            assert_eq!(peer, Address::Unnamed);
            assert_eq!(near.peer_addr()?, Address::Path(path.0.clone()));
            near.write_all(b"over a path").await?;
            let mut seen = [0; 16];
            assert_eq!(far.peek(&mut seen).await?, 11);
            assert_eq!(far.read(&mut seen).await?, 11);
            drop(near);
            assert_eq!(far.read(&mut seen).await?, 0);
            Ok(())
        });
    }

    #[test]
    fn a_path_without_a_listener_is_an_error() {
        let path = TempPath::new("absent");
        let error = run(async { Ok(UnixStream::connect(&path.0).await.expect_err("there is no listener")) });
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    /// Short reads of Unix streams mean nothing, and the end still arrives.
    #[test]
    fn a_pair_transfers_all_bytes() {
        run(async {
            let (near, far) = UnixStream::pair()?;
            let data: Vec<u8> = (0..1_u32 << 20).map(|n| n as u8 ^ (n >> 8) as u8).collect();
            let mut received = vec![0; data.len()];
            let all = data.as_slice();
            let write = async move { near.write_all(all).await };
            try_join((write, far.read_exact(&mut received))).await?;
            assert!(received == data);
            assert_eq!(far.read(&mut received).await?, 0);
            Ok(())
        });
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    #[test]
    fn an_abstract_name_begins_with_a_zero_byte() {
        let name = format!("\0convoke-poll-{}", std::process::id());
        run(async {
            let listener = UnixListener::bind(&name)?;
            assert_eq!(listener.local_addr()?, Address::Path(PathBuf::from(&name)));
            let (near, _) = try_join((UnixStream::connect(&name), listener.accept())).await?;
            assert_eq!(near.peer_addr()?, Address::Path(PathBuf::from(&name)));
            let (here, there) = (format!("{name}-here"), format!("{name}-there"));
            let (sends, receives) = (UnixDatagram::bind(&here)?, UnixDatagram::bind(&there)?);
            sends.send_to(b"named", &there).await?;
            let mut buffer = [0; 8];
            assert_eq!(receives.peek_from(&mut buffer).await?, (5, Address::Path(PathBuf::from(&here))));
            assert_eq!(receives.recv_from(&mut buffer).await?, (5, Address::Path(PathBuf::from(&here))));
            Ok(())
        });
    }

    #[test]
    fn datagrams_name_their_sender() {
        let (here, there) = (TempPath::new("here"), TempPath::new("there"));
        run(async {
            let (near, far) = (UnixDatagram::bind(&here.0)?, UnixDatagram::bind(&there.0)?);
            let mut buffer = [0; 16];
            near.send_to(b"named", &there.0).await?;
            assert_eq!(far.peek_from(&mut buffer).await?, (5, Address::Path(here.0.clone())));
            assert_eq!(far.recv_from(&mut buffer).await?, (5, Address::Path(here.0.clone())));
            UnixDatagram::unbound()?.send_to(b"nameless", &there.0).await?;
            assert_eq!(far.peek_from(&mut buffer).await?, (8, Address::Unnamed));
            assert_eq!(far.recv_from(&mut buffer).await?, (8, Address::Unnamed));
            near.connect(&there.0)?;
            near.send(b"connected").await?;
            assert_eq!(far.recv(&mut buffer).await?, 9);
            Ok(())
        });
    }

    #[test]
    fn a_connected_sender_waits_for_the_receiver() {
        let there = TempPath::new("waits");
        run(async {
            let (near, far) = (UnixDatagram::unbound()?, UnixDatagram::bind(&there.0)?);
            near.connect(&there.0)?;
            let send = async {
                for number in 0..500_u32 {
                    near.send(&number.to_le_bytes()).await?;
                }
                Ok(())
            };
            let receive = async {
                let mut buffer = [0; 4];
                for number in 0..500_u32 {
                    assert_eq!(far.recv(&mut buffer).await?, 4);
                    assert_eq!(u32::from_le_bytes(buffer), number);
                }
                Ok(())
            };
            try_join((send, receive)).await.map(drop)
        });
    }

    /// Linux reports that the receiver's queue is full, and never that it has space again.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    #[test]
    fn an_unconnected_sender_gets_an_error_if_the_receiver_is_full() {
        for connected in [false, true] {
            let (there, elsewhere) = (TempPath::new("full"), TempPath::new("elsewhere"));
            let error = run(async {
                let (near, far) = (UnixDatagram::unbound()?, UnixDatagram::bind(&there.0)?);
                let _other = UnixDatagram::bind(&elsewhere.0)?;
                if connected {
                    near.connect(&elsewhere.0)?;
                }
                let error = loop {
                    if let Err(error) = near.send_to(b"one more", &there.0).await {
                        break error;
                    }
                };
                assert_eq!(far.recv(&mut [0; 16]).await?, 8);
                near.send_to(b"there is space again", &there.0).await?;
                Ok(error)
            });
            assert_eq!(error.kind(), io::ErrorKind::ResourceBusy);
        }
    }

    #[test]
    fn connect_fails_after_shut_down() {
        let there = TempPath::new("too-late");
        let _listener = std::os::unix::net::UnixListener::bind(&there.0).expect("the address is free");
        let (driver, to) =
            (PollDriver::new().expect("a driver can be created"), Address::Path(there.0.clone()));
        let stream = driver.stream(&to).expect("there are descriptors");
        driver.shut_down();
        let connected = sync_wait(Transfer::<_, Toward>::new(stream, to)).unwrap().0;
        assert_eq!(connected.expect_err("the driver has shut down").kind(), io::ErrorKind::NotConnected);
    }

    /// Linux reports that the listener's queue is full, and never that it has space again.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    #[test]
    fn connect_fails_if_the_listeners_queue_is_full() {
        let there = TempPath::new("crowded");
        let driver = PollDriver::new().expect("a driver can be created");
        let mut options = ListenOptions::default();
        options.backlog = 1;
        let listener = driver.listen(&Address::Path(there.0.clone()), &options).expect("the address is free");
        let context = IoContext::new(Arc::new(driver));
        let error = context.block_on(async {
            let mut connected = Vec::new();
            loop {
                match UnixStream::connect(&there.0).await {
                    Ok(stream) => connected.push(stream),
                    Err(error) => break error,
                }
            }
        });
        assert_eq!(error.unwrap().kind(), io::ErrorKind::ResourceBusy);
        listener.try_accept().expect("connections wait");
        context.block_on(UnixStream::connect(&there.0)).unwrap().expect("there is space again");
    }
}
