//! Effects of the network on programs.

use std::io::ErrorKind;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use convoke::net::{ListenOptions, TcpListener, TcpStream, UdpSocket, UnixDatagram, resolve};
use convoke::prelude::*;
use convoke::sim::{Ending, Link, Sim};
use convoke::time::now;

const SECOND: Duration = Duration::from_secs(1);

/// Echoes what it receives, one connection after the other.
async fn echo() -> std::io::Result<()> {
    let listener = TcpListener::bind("0.0.0.0:7").await?;
    loop {
        let (stream, _) = listener.accept().await?;
        let mut word = [0; 64];
        while let Ok(count @ 1..) = stream.read(&mut word).await {
            if stream.write_all(&word[..count]).await.is_err() {
                break;
            }
        }
    }
}

async fn says(stream: &TcpStream, what: &[u8]) -> std::io::Result<()> {
    stream.write_all(what).await?;
    let mut heard = vec![0; what.len()];
    stream.read_exact(&mut heard).await?;
    assert_eq!(heard, what);
    Ok(())
}

#[test]
fn hosts_find_each_other_by_name() {
    let mut sim = Sim::new(1);
    sim.host("server").daemon().run(echo);
    sim.host("client").run(|| async {
        sleep(SECOND).await;
        let stream = TcpStream::connect("server:7").await?;
        assert_eq!(stream.peer_addr()?.to_string(), "10.0.0.1:7");
        assert_eq!(stream.local_addr()?.ip().to_string(), "10.0.0.2");
        says(&stream, b"hello").await
    });
    let report = sim.run();
    assert!(report.elapsed() > SECOND);
}

#[test]
#[cfg_attr(miri, ignore = "compares five megabytes one by one")]
fn a_megabyte_arrives_in_order_over_a_rough_link() {
    for seed in 0..5 {
        let mut sim = Sim::new(seed);
        sim.links(Link::rough().resets(0.0));
        let sent: Vec<u8> =
            (0..if cfg!(miri) { 20_000 } else { 1_000_000_u32 }).map(|at| (at % 251) as u8).collect();
        let expected = sent.clone();
        sim.host("sink").run(move || {
            let expected = expected.clone();
            async move {
                let listener = TcpListener::bind("0.0.0.0:7").await?;
                let (stream, _) = listener.accept().await?;
                let mut heard = Vec::new();
                let mut buffer = [0; 4096];
                while let count @ 1.. = stream.read(&mut buffer).await? {
                    heard.extend_from_slice(&buffer[..count]);
                }
                assert!(heard == expected, "{} bytes of {}", heard.len(), expected.len());
                std::io::Result::Ok(())
            }
        });
        sim.host("tap").run(move || {
            let sent = sent.clone();
            async move {
                sleep(SECOND).await;
                TcpStream::connect("sink:7").await?.write_all(&sent).await
            }
        });
        sim.run();
    }
}

#[test]
fn a_port_without_a_listener_and_a_missing_host_are_different_errors() {
    let mut sim = Sim::new(1);
    sim.host("quiet");
    sim.host("client").run(|| async {
        let refused = TcpStream::connect("quiet:7").await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        let unknown = TcpStream::connect("nowhere:7").await.unwrap_err();
        assert!(unknown.to_string().contains("there is no host `nowhere`"), "{unknown}");
        let unreachable = TcpStream::connect("192.168.0.1:7").await.unwrap_err();
        assert_eq!(unreachable.kind(), ErrorKind::HostUnreachable);
    });
    sim.run();
}

#[test]
fn a_partition_holds_up_a_stream_and_healing_brings_the_bytes() {
    let mut sim = Sim::new(3);
    sim.host("server").daemon().run(echo);
    sim.host("client").run(|| async {
        sleep(Duration::from_millis(100)).await;
        let stream = TcpStream::connect("server:7").await?;
        sleep(SECOND).await;
        // The hosts are partitioned by now.
        says(&stream, b"over there").await
    });
    sim.at(SECOND / 2, |sim| sim.partition("client", "server"));
    sim.at(10 * SECOND, |sim| sim.heal("client", "server"));
    let report = sim.run();
    assert!(report.elapsed() > 10 * SECOND, "{report}");
    assert!(report.elapsed() < 40 * SECOND, "{report}");
}

#[test]
fn a_partition_that_lasts_times_out_both_connect_and_write() {
    let mut sim = Sim::new(3);
    sim.host("server").daemon().run(echo);
    sim.host("client").run(|| async {
        sleep(Duration::from_millis(100)).await;
        let stream = TcpStream::connect("server:7").await.unwrap();
        sleep(SECOND).await;
        stream.write_all(b"hello").await.unwrap();
        let lost = stream.read(&mut [0]).await.unwrap_err();
        assert_eq!(lost.kind(), ErrorKind::TimedOut);
        let never = TcpStream::connect("server:7").await.unwrap_err();
        assert_eq!(never.kind(), ErrorKind::TimedOut);
    });
    sim.at(SECOND / 2, |sim| sim.isolate("server"));
    sim.run();
}

#[test]
fn one_way_partitions_let_the_other_way_through() {
    let mut sim = Sim::new(5);
    let heard = Arc::new(Mutex::new(Vec::new()));
    for (name, other) in [("left", "right"), ("right", "left")] {
        let heard = heard.clone();
        sim.host(name).run(move || {
            let heard = heard.clone();
            async move {
                let socket = UdpSocket::bind("0.0.0.0:9").await?;
                sleep(SECOND).await;
                let other = resolve((other, 9)).await?[0];
                socket.send_to(name.as_bytes(), other).await?;
                let mut word = [0; 16];
                if let Ok(received) = timeout(SECOND, socket.recv_from(&mut word)).await {
                    let (count, from) = received?;
                    assert_eq!(from, other);
                    heard.lock().unwrap().push((name, String::from_utf8_lossy(&word[..count]).into_owned()));
                }
                std::io::Result::Ok(())
            }
        });
    }
    assert_eq!(sim.address("right").to_string(), "10.0.0.2");
    sim.partition_one_way("left", "right");
    sim.run();
    assert_eq!(*heard.lock().unwrap(), [("left", "right".to_owned())]);
}

#[test]
fn connections_overtake_each_other() {
    let mut sim = Sim::new(5);
    let order = Arc::new(Mutex::new(Vec::new()));
    let kept = order.clone();
    sim.host("server").run(move || {
        let order = order.clone();
        async move {
            let listener = TcpListener::bind("0.0.0.0:7").await?;
            for _ in 0..10 {
                let (stream, from) = listener.accept().await?;
                order.lock().unwrap().push(from.port());
                drop(stream);
            }
            std::io::Result::Ok(())
        }
    });
    sim.host("client").run(|| async {
        sleep(SECOND).await;
        let connects = (0..10).map(|_| TcpStream::connect("server:7")).collect::<Vec<_>>();
        try_join(connects).await.map(drop)
    });
    sim.run();
    let arrived = kept.lock().unwrap();
    assert!(!arrived.is_sorted(), "ports are handed out in order: {arrived:?}");
}

#[test]
fn a_full_backlog_holds_up_who_connects() {
    let mut sim = Sim::new(5);
    sim.host("busy").run(|| async {
        let mut options = ListenOptions::default();
        options.backlog = 1;
        let listener = TcpListener::bind_with("0.0.0.0:7", options).await?;
        sleep(3 * SECOND).await;
        for _ in 0..2 {
            let (stream, _) = listener.accept().await?;
            assert_eq!(stream.read(&mut [0]).await?, 0);
        }
        std::io::Result::Ok(())
    });
    sim.host("client").run(|| async {
        sleep(SECOND).await;
        drop(TcpStream::connect("busy:7").await?);
        let start = now();
        drop(TcpStream::connect("busy:7").await?);
        assert!(now() - start > SECOND);
        std::io::Result::Ok(())
    });
    sim.run();
}

#[test]
fn an_address_is_bound_once_and_only_on_its_own_host() {
    let mut sim = Sim::new(5);
    sim.host("neighbour");
    sim.host("host").run(|| async {
        let first = TcpListener::bind("0.0.0.0:7").await.unwrap();
        let taken = TcpListener::bind("127.0.0.1:7").await.unwrap_err();
        assert_eq!(taken.kind(), ErrorKind::AddrInUse);
        let foreign = TcpListener::bind("10.0.0.1:8").await.unwrap_err();
        assert_eq!(foreign.kind(), ErrorKind::AddrNotAvailable);
        // Streams and datagrams have separate ports, and closing a socket frees its port.
        UdpSocket::bind("0.0.0.0:7").await.unwrap();
        drop(first);
        TcpListener::bind("127.0.0.1:7").await.unwrap();
        // Automatic ports are distinct.
        let one = UdpSocket::bind("[::]:0").await.unwrap();
        let other = UdpSocket::bind("[::]:0").await.unwrap();
        assert_ne!(one.local_addr().unwrap().port(), other.local_addr().unwrap().port());
    });
    sim.run();
}

#[test]
fn hosts_speak_over_the_newer_protocol_too() {
    let mut sim = Sim::new(5);
    sim.host("server").daemon().run(|| async {
        let listener = TcpListener::bind("[::]:7").await?;
        let (stream, from) = listener.accept().await?;
        assert_eq!(from.ip().to_string(), "fd00::2");
        stream.write_all(b"6").await
    });
    sim.host("client").run(|| async {
        sleep(SECOND).await;
        let stream = TcpStream::connect("[fd00::1]:7").await?;
        stream.read_exact(&mut [0]).await
    });
    sim.run();
}

#[test]
fn datagrams_of_unix_sockets_stay_in_their_host() {
    let mut sim = Sim::new(5);
    sim.host("host").run(|| async {
        let log = UnixDatagram::bind("/dev/log")?;
        let program = UnixDatagram::unbound()?;
        program.send_to(b"hello", "/dev/log").await?;
        let mut line = [0; 16];
        let (count, _) = log.recv_from(&mut line).await?;
        assert_eq!(&line[..count], b"hello");
        drop(log);
        assert_eq!(program.send_to(b"hello", "/dev/log").await.unwrap_err().kind(), ErrorKind::NotFound);
        std::io::Result::Ok(())
    });
    sim.run();
}

#[test]
fn each_link_may_be_another() {
    let mut sim = Sim::new(5);
    sim.links(Link::calm());
    for name in ["near", "far"] {
        sim.host(name).daemon().run(echo);
    }
    sim.host("client").run(|| async {
        sleep(SECOND).await;
        let mut took = Vec::new();
        for server in ["near:7", "far:7"] {
            let start = now();
            says(&TcpStream::connect(server).await?, b"hello").await?;
            took.push(now() - start);
        }
        // One round trip for the connection, one for the word.
        assert_eq!(took, [Duration::from_millis(4), Duration::from_millis(1 + 50 + 1 + 50)]);
        std::io::Result::Ok(())
    });
    let slow = Duration::from_millis(50);
    sim.link("far", "client", Link::calm());
    sim.link_one_way("far", "client", Link::calm().latency(slow..slow));
    sim.run();
}

#[test]
fn a_host_may_be_asked_to_stop() {
    let mut sim = Sim::new(5);
    sim.host("server").run(echo);
    sim.at(SECOND, |sim| sim.stop("server"));
    let report = sim.run();
    assert_eq!(report.host("server").unwrap().ending(), &Ending::Stopped);
    assert_eq!(report.elapsed(), SECOND);
}

#[test]
fn listeners_of_a_group_share_the_connections() {
    let mut sim = Sim::new(5);
    let shares = Arc::new(Mutex::new([0; 2]));
    let kept = shares.clone();
    sim.host("server").daemon().run(move || {
        let shares = shares.clone();
        async move {
            let group = TcpListener::bind_group("0.0.0.0:7", 2).await?;
            scope(async |s| {
                for (number, listener) in group.into_iter().enumerate() {
                    let shares = shares.clone();
                    s.spawn(async move {
                        while listener.accept().await.is_ok() {
                            shares.lock().unwrap()[number] += 1;
                        }
                    });
                }
            })
            .await;
            std::io::Result::Ok(())
        }
    });
    sim.host("client").run(|| async {
        sleep(SECOND).await;
        for _ in 0..20 {
            TcpStream::connect("server:7").await?;
        }
        sleep(SECOND).await;
        std::io::Result::Ok(())
    });
    sim.run();
    let [one, other] = *kept.lock().unwrap();
    assert!(one > 3 && other > 3 && one + other == 20, "{one} and {other}");
}

#[test]
fn datagrams_to_a_group_reach_its_members() {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

    let group = Ipv4Addr::new(224, 1, 2, 3);
    let mut sim = Sim::new(1);
    sim.links(Link::calm());
    for name in ["one", "two", "outside"] {
        sim.host(name).run(move || async move {
            let socket = UdpSocket::bind("0.0.0.0:9").await?;
            if name != "outside" {
                socket.join_multicast_v4(group, Ipv4Addr::UNSPECIFIED)?;
                let again = socket.join_multicast_v4(group, Ipv4Addr::UNSPECIFIED).unwrap_err();
                assert_eq!(again.kind(), ErrorKind::AddrInUse);
            }
            let mut heard = Vec::new();
            let mut word = [0; 16];
            while let Ok(received) = timeout(3 * SECOND, socket.recv_from(&mut word)).await {
                let (length, from) = received?;
                heard.push((word[..length].to_vec(), from.to_string()));
                if heard.len() == 1 && name == "two" {
                    socket.leave_multicast_v4(group, Ipv4Addr::UNSPECIFIED)?;
                }
            }
            let said = |word: &str| (word.as_bytes().to_vec(), "10.0.0.4:7".to_owned());
            let expected = match name {
                "one" => vec![said("first"), said("second")],
                "two" => vec![said("first")],
                _ => Vec::new(),
            };
            assert_eq!(heard, expected, "{name}");
            std::io::Result::Ok(())
        });
    }
    sim.host("sender").run(move || async move {
        sleep(SECOND).await;
        let socket = UdpSocket::bind("0.0.0.0:7").await?;
        let to = SocketAddr::new(IpAddr::V4(group), 9);
        socket.send_to(b"first", to).await?;
        sleep(SECOND).await;
        socket.send_to(b"second", to).await?;
        // Nobody has joined this one.
        socket
            .send_to(b"third", SocketAddr::new(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 9).into(), 9))
            .await?;
        std::io::Result::Ok(())
    });
    sim.run();
}

/// The number of connections that break while twenty seeds ask a server fifty times.
fn broken_connections(link: &Link) -> usize {
    let mut broken = 0;
    for seed in 0..if cfg!(miri) { 1 } else { 20 } {
        let mut sim = Sim::new(seed);
        sim.links(link.clone());
        sim.host("server").daemon().run(echo);
        sim.host("client").run(|| async {
            let Ok(stream) = TcpStream::connect("server:7").await else { return };
            for _ in 0..50 {
                if says(&stream, b"hello").await.is_err() {
                    return;
                }
            }
        });
        let report = sim.run();
        broken += usize::from(report.trace().iter().any(|line| line.is_break()));
    }
    broken
}

#[test]
fn the_usual_link_breaks_no_connection_and_a_rough_one_does() {
    assert_eq!(broken_connections(&Link::usual()), 0);
    assert_ne!(broken_connections(&Link::rough().resets(0.05)), 0);
}

/// The number of packets that only open a window.
fn window_updates(report: &convoke::sim::SimReport) -> usize {
    report.trace().iter().filter(|line| line.what().contains(" window opened by ")).count()
}

#[test]
fn a_window_is_opened_by_the_answers_of_a_dialogue() {
    let mut sim = Sim::new(1);
    sim.host("server").receive_window(64).daemon().run(echo);
    sim.host("client").receive_window(64).run(|| async {
        let stream = TcpStream::connect("server:7").await?;
        for _ in 0..50 {
            says(&stream, b"hello").await?;
        }
        std::io::Result::Ok(())
    });
    assert_eq!(window_updates(&sim.run()), 0, "ten times the window is sent, and each answer opens it");
}

#[test]
fn a_window_is_opened_by_itself_if_there_are_no_answers() {
    let mut sim = Sim::new(1);
    sim.host("sink").receive_window(64).run(|| async {
        let (stream, _) = TcpListener::bind("0.0.0.0:7").await?.accept().await?;
        let mut heard = 0;
        while let count @ 1.. = stream.read(&mut [0; 10]).await? {
            heard += count;
        }
        assert_eq!(heard, 1000);
        std::io::Result::Ok(())
    });
    sim.host("tap").run(|| async {
        sleep(SECOND).await;
        TcpStream::connect("sink:7").await?.write_all(&[0; 1000]).await
    });
    assert_ne!(window_updates(&sim.run()), 0);
}

#[test]
fn a_window_that_shrinks_does_not_hide_what_was_read() {
    let mut sim = Sim::new(1);
    sim.links(Link::calm());
    sim.host("sink").receive_window(1000).run(|| async {
        let (stream, _) = TcpListener::bind("0.0.0.0:7").await?.accept().await?;
        // Less than half the window: the sender is told with the next bytes, and none are written.
        stream.read_exact(&mut [0; 400]).await?;
        stream.set_recv_buffer_size(100)?;
        stream.read_exact(&mut [0; 100]).await
    });
    sim.host("tap").run(|| async {
        sleep(SECOND).await;
        let stream = TcpStream::connect("sink:7").await?;
        stream.write_all(&[0; 400]).await?;
        sleep(SECOND).await;
        stream.write_all(&[0; 100]).await
    });
    sim.run();
}
