//! Hosts: dead peers, limits, wrong clocks.

use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use convoke::net::{SocketOption, TcpListener, TcpStream, UnixListener, UnixStream};
use convoke::prelude::*;
use convoke::sim::{Ending, Link, Sim};
use convoke::task::forever;
use convoke::time::now;

const SECOND: Duration = Duration::from_secs(1);

/// Accepts connections and holds each until its peer closes it.
async fn holds_connections() -> io::Result<()> {
    let listener = TcpListener::bind("0.0.0.0:7").await?;
    scope(async |s| {
        loop {
            let (stream, _) = listener.accept().await?;
            s.spawn(async move { while let Ok(1..) = stream.read(&mut [0; 64]).await {} });
        }
    })
    .await
}

async fn waits() {
    forever().await
}

#[test]
fn a_host_that_crashed_for_good_is_not_waited_for() {
    let mut sim = Sim::new(1);
    sim.host("server").run(waits);
    sim.at(SECOND, |sim| sim.crash("server"));
    assert_eq!(sim.run().host("server").unwrap().ending(), &Ending::Crashed);
}

#[test]
fn a_peer_of_a_crashed_host_is_half_open_until_it_writes() {
    let mut sim = Sim::new(2);
    sim.host("server").daemon().run(holds_connections);
    sim.host("client").run(|| async {
        sleep(SECOND / 10).await;
        let stream = TcpStream::connect("server:7").await.unwrap();
        let nothing = timeout(20 * SECOND, stream.read(&mut [0])).await;
        assert!(nothing.is_err(), "nobody has told it: {nothing:?}");
        // The host runs again, and does not know the connection.
        stream.write_all(b"are you there?").await.unwrap();
        assert_eq!(stream.read(&mut [0]).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
    });
    sim.at(SECOND, |sim| sim.restart("server"));
    sim.run();
}

/// Returns the error of a writer whose reader reads nothing, and crashes when the window is full.
fn end_of_a_writer(after: fn(&mut Sim)) -> ErrorKind {
    let mut sim = Sim::new(2);
    let ended = Arc::new(Mutex::new(None));
    sim.host("reader").receive_window(100).daemon().run(|| async {
        let listener = TcpListener::bind("0.0.0.0:7").await?;
        let _accepted = listener.accept().await?;
        waits().await;
        io::Result::Ok(())
    });
    sim.host("writer").run_with(ended.clone(), async |ended| {
        let stream = TcpStream::connect("reader:7").await.unwrap();
        let error = stream.write_all(&[1; 1000]).await.unwrap_err();
        *ended.lock().unwrap() = Some(error.kind());
    });
    sim.at(SECOND, after);
    sim.run();
    ended.lock().unwrap().take().unwrap()
}

#[test]
fn a_writer_that_waits_for_room_hears_of_its_readers_crash() {
    assert_eq!(end_of_a_writer(|sim| sim.crash("reader")), ErrorKind::TimedOut);
    assert_eq!(end_of_a_writer(|sim| sim.restart("reader")), ErrorKind::ConnectionReset);
}

#[test]
fn keep_alive_finds_a_peer_that_is_gone() {
    let mut sim = Sim::new(2);
    sim.host("server").daemon().run(holds_connections);
    sim.host("client").run(|| async {
        sleep(SECOND / 10).await;
        let stream = TcpStream::connect("server:7").await.unwrap();
        stream.set_option(SocketOption::KeepAlive(Some(10 * SECOND))).unwrap();
        assert_eq!(stream.read(&mut [0]).await.unwrap_err().kind(), ErrorKind::TimedOut);
    });
    sim.at(SECOND, |sim| sim.crash("server"));
    sim.run();
}

#[test]
fn half_open_connections_and_resets_can_be_made() {
    let mut sim = Sim::new(2);
    sim.host("server").daemon().run(holds_connections);
    sim.host("client").run(|| async {
        sleep(SECOND / 10).await;
        let stream = TcpStream::connect("server:7").await.unwrap();
        let at = now();
        assert_eq!(stream.read(&mut [0]).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
        assert!(now() - at > SECOND / 2);
        assert_eq!(stream.write(b"more").await.unwrap_err().kind(), ErrorKind::BrokenPipe);

        let other = TcpStream::connect("server:7").await.unwrap();
        sleep(2 * SECOND).await;
        other.write_all(b"hello").await.unwrap();
        assert_eq!(other.read(&mut [0]).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
    });
    sim.at(SECOND, |sim| sim.reset("client", "server"));
    sim.at(2 * SECOND, |sim| sim.half_open("server", "client"));
    sim.run();
}

#[test]
fn a_slow_reader_holds_up_the_writer() {
    let mut sim = Sim::new(4);
    sim.links(Link::calm());
    sim.host("slow").receive_window(100).daemon().run(|| async {
        let listener = TcpListener::bind("0.0.0.0:7").await?;
        let (stream, _) = listener.accept().await?;
        sleep(10 * SECOND).await;
        while let 1.. = stream.read(&mut [0; 1000]).await? {}
        io::Result::Ok(())
    });
    sim.host("fast").run(|| async {
        sleep(SECOND).await;
        let stream = TcpStream::connect("slow:7").await?;
        let start = now();
        stream.write_all(&[1; 100]).await?;
        assert_eq!(now() - start, Duration::ZERO, "there was room");
        stream.write_all(&[1]).await?;
        assert!(now() - start > 8 * SECOND, "there was none before it was read");
        io::Result::Ok(())
    });
    sim.run();
}

#[test]
fn descriptors_run_out_and_come_back() {
    let mut sim = Sim::new(4);
    sim.host("small").descriptors(3).run(|| async {
        let listener = UnixListener::bind("/socket")?;
        let (one, other) = UnixStream::pair()?;
        let none_left = UnixStream::connect("/socket").await.unwrap_err();
        assert_eq!(none_left.raw_os_error(), Some(24), "{none_left}");
        drop(one);
        let client = UnixStream::connect("/socket").await?;
        // The connection waits in the backlog for a free descriptor.
        assert_eq!(listener.accept().await.unwrap_err().raw_os_error(), Some(24));
        drop(other);
        let (server, _) = listener.accept().await?;
        drop(client);
        assert_eq!(server.read(&mut [0]).await?, 0);
        io::Result::Ok(())
    });
    sim.run();
}

#[test]
fn memory_for_tasks_is_bounded() {
    let mut sim = Sim::new(4);
    sim.host("small").memory(16 << 10).run(|| async {
        let large = || async {
            let room = [1_u8; 32 << 10];
            checkpoint().await;
            room[0]
        };
        assert!(convoke::alloc::try_frame(large()).is_err());
        let small = convoke::alloc::try_frame(async { 1_u8 });
        assert_eq!(small.unwrap_or_else(|_| panic!("there is room for it")).await, 1);
    });
    sim.run();
}

#[test]
fn a_program_that_does_not_fit_into_its_host_is_a_failure() {
    let mut sim = Sim::new(4);
    sim.host("tiny").memory(64).run(waits);
    let failure = sim.try_run().unwrap_err();
    assert!(failure.what().contains("host `tiny` could not start"), "{failure}");
}

#[test]
fn clocks_that_run_fast_or_show_another_time() {
    let mut sim = Sim::new(4);
    let shown: Arc<Mutex<Vec<(&str, Instant)>>> = Arc::default();
    for name in ["right", "ahead", "behind", "fast"] {
        let shown = shown.clone();
        sim.host(name).run(move || {
            let shown = shown.clone();
            async move {
                let start = now();
                shown.lock().unwrap().push((name, start));
                sleep(3 * SECOND).await;
                assert_eq!(now() - start, 3 * SECOND);
            }
        });
    }
    sim.host("ahead").clock_ahead(5 * SECOND);
    sim.host("behind").clock_behind(SECOND);
    sim.host("fast").clock_rate(1.5);
    let report = sim.run();
    let shown = shown.lock().unwrap();
    let at = |name| shown.iter().find(|(host, _)| *host == name).unwrap().1;
    assert_eq!(at("ahead") - at("right"), 5 * SECOND);
    assert_eq!(at("right") - at("behind"), SECOND);
    let ended = |name| report.trace().iter().find(|line| line.what().starts_with(name)).map(|line| line.at());
    assert_eq!(ended("fast: its program"), Some(2 * SECOND));
    assert_eq!(ended("right: its program"), Some(3 * SECOND));
}

#[test]
fn unix_sockets_belong_to_their_host() {
    let mut sim = Sim::new(4);
    for name in ["one", "other"] {
        sim.host(name).run(move || async move {
            // Both hosts can bind this path.
            let listener = UnixListener::bind("/run/socket")?;
            assert_eq!(UnixListener::bind("/run/socket").unwrap_err().kind(), ErrorKind::AddrInUse);
            let (client, (server, _)) =
                try_join((UnixStream::connect("/run/socket"), listener.accept())).await?;
            client.write_all(name.as_bytes()).await?;
            drop(client);
            let mut heard = [0; 16];
            let count = server.read(&mut heard).await?;
            assert!(name.as_bytes().starts_with(&heard[..count]));
            io::Result::Ok(())
        });
    }
    sim.run();
}
