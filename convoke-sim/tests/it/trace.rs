//! The trace tells what became of each packet, and a failure shows the breaks that came before it.

use std::io::{self, ErrorKind};
use std::time::Duration;

use convoke::net::{TcpListener, TcpStream, UdpSocket};
use convoke::prelude::*;
use convoke::sim::{Link, Sim, SimReport, TRACE_LINES, note};

const MILLISECOND: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// Answers each word of eight bytes on each connection.
async fn server() -> io::Result<()> {
    let listener = TcpListener::bind("0.0.0.0:7").await?;
    scope(async |s| {
        loop {
            let (stream, _) = listener.accept().await?;
            s.spawn(async move {
                let mut word = [0; 8];
                while stream.read_exact(&mut word).await.is_ok() {
                    if stream.write_all(&word).await.is_err() {
                        break;
                    }
                }
            });
        }
    })
    .await
}

async fn idle() {
    convoke::task::forever().await
}

async fn asks(stream: &TcpStream) -> io::Result<()> {
    stream.write_all(&[1; 8]).await?;
    stream.read_exact(&mut [0; 8]).await
}

/// Asks once a second until the connection breaks, writes `notes` lines, and returns the error.
async fn asks_until_it_fails(notes: usize) -> io::Result<()> {
    let stream = TcpStream::connect("server:7").await?;
    loop {
        if let Err(error) = asks(&stream).await {
            for number in 0..notes {
                note(format_args!("line {number} after the failure"));
            }
            return Err(error);
        }
        sleep(SECOND).await;
    }
}

const RESET: &str = "client:49152 → server:7: connection ends: connection reset";

/// The message of a run in which the connection is reset, and `notes` lines and `signals` events follow.
fn failure_after_reset(notes: usize, signals: usize) -> String {
    let mut sim = Sim::new(1);
    sim.links(Link::calm());
    sim.host("server").daemon().run(server);
    sim.host("client").run(move || asks_until_it_fails(notes));
    sim.host("other").daemon().run(idle);
    sim.at(SECOND / 2, move |sim| {
        sim.reset("client", "server");
        for _ in 0..signals {
            sim.raise("other", convoke::signal::Signal::HANGUP);
        }
    });
    sim.try_run().expect_err("the reset fails the client").to_string()
}

#[test]
fn a_failure_shows_the_reset_that_caused_it() {
    let said = failure_after_reset(0, 0);
    assert!(said.contains("client ✗ server: connections are reset"), "{said}");
    assert!(said.contains(RESET), "{said}");
}

#[test]
fn a_failure_shows_the_reset_however_many_lines_and_events_follow() {
    for said in [failure_after_reset(100, 0), failure_after_reset(0, 100), failure_after_reset(100, 100)] {
        assert!(said.contains(RESET), "{said}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "writes ten thousand lines")]
fn a_break_outlives_the_lines_that_a_trace_keeps() {
    let said = failure_after_reset(TRACE_LINES + 10, 0);
    assert!(said.contains(RESET), "{said}");
    assert!(!said.contains("line 0 after the failure"), "{said}");
    assert!(said.contains("server starts"), "{said}");
}

#[test]
fn breaks_that_are_too_many_to_print_are_counted() {
    let mut sim = Sim::new(1);
    sim.host("one").run(|| async {
        sleep(SECOND).await;
        (0..20).for_each(note);
        Err::<(), _>("on purpose")
    });
    sim.host("other").daemon().run(idle);
    sim.at(SECOND / 2, |sim| (0..130).for_each(|_| sim.partition_one_way("one", "other")));
    let failure = sim.try_run().unwrap_err();
    let said = failure.to_string();
    assert!(said.contains("… 30 earlier broken connections and faults …"), "{said}");
    assert_eq!(said.matches("one ✗ other: cut").count(), 100, "{said}");
    assert_eq!(failure.trace().iter().filter(|line| line.is_break()).count(), 130);
}

#[test]
fn every_failure_on_a_rough_link_shows_the_break() {
    for seed in 0..if cfg!(miri) { 2 } else { 60 } {
        let mut sim = Sim::new(seed);
        sim.links(Link::rough().resets(0.05));
        sim.host("server").daemon().run(server);
        sim.host("client").run(|| asks_until_it_fails(40));
        let failure = sim.try_run().expect_err("the link resets one of the writes");
        let said = failure.to_string();
        assert!(said.contains(": the link resets the connection\n"), "{said}");
        assert!(said.contains(": connection ends: connection reset\n"), "{said}");
    }
}

fn lines(report: &SimReport) -> Vec<String> {
    report.trace().iter().map(|line| format!("{:?} {}", line.at(), line.what())).collect()
}

#[test]
fn a_trace_tells_when_each_packet_is_sent_and_when_it_arrives() {
    let mut sim = Sim::new(1);
    sim.links(Link::calm());
    sim.host("server").daemon().run(server);
    sim.host("client").run(|| async {
        sleep(SECOND).await;
        let stream = TcpStream::connect("server:7").await?;
        asks(&stream).await
    });
    let expected = [
        "0ns server starts",
        "0ns client starts",
        "1s client:49152 → server:7: connect",
        "1.001s client:49152 → server:7: connect: arrived",
        "1.001s server:7 → client:49152: connected",
        "1.002s server:7 → client:49152: connected: arrived",
        "1.002s client:49152 → server:7: 8 bytes",
        "1.003s client:49152 → server:7: 8 bytes: arrived",
        "1.003s server:7 → client:49152: 8 bytes",
        "1.004s server:7 → client:49152: 8 bytes: arrived",
        "1.004s client:49152 → server:7: end of stream",
        "1.004s client: its program completed",
        "1.004s server:7 → client:49152: end of stream",
        "1.004s server: its program stopped",
    ];
    let found = lines(&sim.run());
    assert_eq!(found, expected, "{found:#?}");
}

/// The lines about the packet with this payload, without the way.
fn fates(report: &SimReport, payload: &str) -> Vec<(Duration, String)> {
    let about = report.trace().iter().filter(|line| line.what().contains(payload));
    about.map(|line| (line.at(), line.what().split(payload).nth(1).unwrap_or_default().to_owned())).collect()
}

#[test]
fn a_lost_packet_is_sent_again_and_arrives() {
    let mut sim = Sim::new(1);
    sim.links(Link::calm());
    sim.host("server").daemon().run(server);
    sim.host("client").run(|| async {
        let stream = TcpStream::connect("server:7").await?;
        sleep(SECOND).await;
        stream.write_all(&[1; 7]).await?;
        sleep(SECOND).await;
        io::Result::Ok(())
    });
    // All packets are lost for a quarter of a second.
    sim.at(SECOND / 2, |sim| sim.links(Link::calm().loss(1.0)));
    sim.at(5 * SECOND / 4, |sim| sim.links(Link::calm()));
    let start = SECOND + 2 * MILLISECOND;
    let again = start + 200 * MILLISECOND;
    let once_more = again + 400 * MILLISECOND;
    let expected = [
        (start, ""),
        (start, ": lost"),
        (again, ": sent again (transmission 2)"),
        (again, ": lost"),
        (once_more, ": sent again (transmission 3)"),
        (once_more + MILLISECOND, ": arrived"),
    ];
    assert_eq!(fates(&sim.run(), "7 bytes"), expected.map(|(at, fate)| (at, fate.to_owned())));
}

#[test]
fn a_packet_that_meets_a_partition_or_a_crashed_host_says_so() {
    let mut sim = Sim::new(1);
    sim.links(Link::calm());
    sim.host("server").daemon().run(server);
    sim.host("client").run(|| async {
        let stream = TcpStream::connect("server:7").await?;
        sleep(SECOND).await;
        stream.write_all(&[1; 7]).await?;
        let error = stream.read_exact(&mut [0; 8]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        io::Result::Ok(())
    });
    sim.at(SECOND / 2, |sim| sim.partition("client", "server"));
    sim.at(SECOND + 100 * MILLISECOND, |sim| {
        sim.heal_all();
        sim.crash("server");
    });
    sim.at(2 * SECOND, |sim| sim.restart("server"));
    let report = sim.run();
    let found: Vec<_> = fates(&report, "7 bytes").into_iter().map(|(_, fate)| fate).collect();
    assert_eq!(found[..2], ["", ": lost in the partition"]);
    assert_eq!(found[2..4], [": sent again (transmission 2)", ": lost, because the host is down"]);
    assert_eq!(found.last().unwrap(), ": arrived", "{found:#?}");
    assert!(fates(&report, "reset: arrived").len() == 1, "{:#?}", lines(&report));
}

#[test]
fn a_segment_that_overtakes_another_arrives_early() {
    let mut sim = Sim::new(1);
    sim.links(Link::calm());
    sim.host("server").daemon().run(server);
    sim.host("client").run(|| async {
        let stream = TcpStream::connect("server:7").await?;
        sleep(SECOND).await;
        stream.write_all(&[1; 3]).await?;
        sleep(SECOND).await;
        stream.write_all(&[1; 5]).await?;
        stream.read_exact(&mut [0; 8]).await
    });
    sim.at(SECOND / 2, |sim| sim.links(Link::calm().latency(2 * SECOND..2 * SECOND)));
    sim.at(3 * SECOND / 2, |sim| sim.links(Link::calm()));
    let report = sim.run();
    let early = ": arrived early, and waits for what was sent before";
    let start = SECOND + 2 * MILLISECOND;
    assert_eq!(fates(&report, "3 bytes")[1], (start + 2 * SECOND, ": arrived".to_owned()));
    assert_eq!(fates(&report, "5 bytes")[1], (start + SECOND + MILLISECOND, early.to_owned()));
}

#[test]
fn a_trace_tells_what_became_of_datagrams() {
    let mut sim = Sim::new(1);
    sim.links(Link::calm());
    sim.host("receiver").daemon().run(|| async {
        let socket = UdpSocket::bind("0.0.0.0:9").await?;
        loop {
            socket.recv_from(&mut [0; 8]).await?;
        }
        #[allow(unreachable_code, reason = "names the type of the error")]
        io::Result::Ok(())
    });
    sim.host("sender").run(|| async {
        let socket = UdpSocket::bind("0.0.0.0:9").await?;
        for (length, port) in [(1, 9), (2, 9), (3, 9), (4, 10)] {
            sleep(SECOND).await;
            socket.send_to(&vec![0; length], format!("10.0.0.1:{port}").parse().unwrap()).await?;
        }
        sleep(SECOND).await;
        io::Result::Ok(())
    });
    sim.at(3 * SECOND / 2, |sim| sim.links(Link::calm().loss(1.0)));
    sim.at(5 * SECOND / 2, |sim| sim.links(Link::calm().duplicates(1.0)));
    sim.at(7 * SECOND / 2, |sim| sim.links(Link::calm()));
    let report = sim.run();
    let fates = |length| -> Vec<String> {
        let found = fates(&report, &format!("a datagram of {length} bytes"));
        found.into_iter().map(|(_, fate)| fate).collect()
    };
    assert_eq!(fates(1), ["", ": arrived"]);
    assert_eq!(fates(2), ["", ": lost"]);
    assert_eq!(fates(3), ["", ": sent twice by the link", ": arrived", ": arrived"]);
    assert_eq!(fates(4), ["", ": dropped, because no socket receives it"]);
}
