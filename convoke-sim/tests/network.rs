//! What the network does to programs, and what it leaves them.

use std::io::ErrorKind;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use convoke::net::{TcpListener, TcpStream, UdpSocket};
use convoke::prelude::*;
use convoke::sim::{Link, Sim};

const SECOND: Duration = Duration::from_secs(1);

/// Sends back what it is sent, one connection after the other.
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
fn a_megabyte_arrives_in_order_over_a_rough_link() {
    for seed in 0..5 {
        let mut sim = Sim::new(seed);
        sim.links(Link::rough().resets(0.0));
        let sent: Vec<u8> = (0..1_000_000_u32).map(|at| (at % 251) as u8).collect();
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
fn nobody_listens_nobody_is_there() {
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
        // By now they are cut off from each other.
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
    for (name, other) in [("left", "10.0.0.2:9"), ("right", "10.0.0.1:9")] {
        let heard = heard.clone();
        sim.host(name).run(move || {
            let heard = heard.clone();
            async move {
                let socket = UdpSocket::bind("0.0.0.0:9").await.unwrap();
                sleep(SECOND).await;
                socket.send_to(name.as_bytes(), other.parse().unwrap()).await.unwrap();
                let mut word = [0; 16];
                if let Ok((count, _)) = timeout(SECOND, socket.recv_from(&mut word))
                    .await
                    .unwrap_or(Err(ErrorKind::TimedOut.into()))
                {
                    heard.lock().unwrap().push((name, String::from_utf8_lossy(&word[..count]).into_owned()));
                }
            }
        });
    }
    sim.partition_one_way("left", "right");
    sim.run();
    assert_eq!(*heard.lock().unwrap(), [("left", "right".to_owned())]);
}
