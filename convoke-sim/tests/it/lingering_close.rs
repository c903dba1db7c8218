//! The lingering close in virtual time: its limits, and answers to clients that pipeline.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use convoke::io::{Closing, LINGER_IDLE, LINGER_TIME, Linger, duplex, read_exact, write_all};
use convoke::net::{TcpListener, TcpStream};
use convoke::prelude::*;
use convoke::sim::{Link, Sim};
use convoke::time::now;

const SECOND: Duration = Duration::from_secs(1);

/// Runs a server and a client on two hosts over a calm link.
fn run<S, C>(
    server: impl FnOnce(TcpStream) -> S + Clone + Send + 'static,
    client: impl FnOnce(TcpStream) -> C + Clone + Send + 'static,
) where
    S: Future<Output = io::Result<()>> + Send + 'static,
    C: Future<Output = io::Result<()>> + Send + 'static,
{
    let mut sim = Sim::new(1);
    sim.links(Link::calm());
    sim.host("server").run(move || {
        let server = server.clone();
        async move {
            let listener = TcpListener::bind("0.0.0.0:7").await?;
            server(listener.accept().await?.0).await
        }
    });
    sim.host("client").run(move || {
        let client = client.clone();
        async move {
            sleep(SECOND).await;
            client(TcpStream::connect("server:7").await?).await
        }
    });
    sim.run();
}

/// Returns the time that a lingering close takes.
async fn time_to_close(stream: TcpStream, linger: Linger) -> io::Result<Duration> {
    let start = now();
    stream.close_with(linger).await?;
    Ok(now() - start)
}

#[test]
fn a_peer_that_ends_is_waited_for_and_not_longer() {
    run(
        async |stream| {
            let took = time_to_close(stream, Linger::new()).await?;
            assert_eq!(took, Duration::from_millis(2), "the end goes there, and its answer comes back");
            Ok(())
        },
        async |stream| {
            assert_eq!(stream.read(&mut [0]).await?, 0);
            Ok(())
        },
    );
}

#[test]
fn a_quiet_peer_is_waited_for_until_the_idle_limit() {
    run(
        async |stream| {
            assert_eq!(time_to_close(stream, Linger::new()).await?, LINGER_IDLE);
            Ok(())
        },
        async |stream| {
            sleep(100 * SECOND).await;
            drop(stream);
            Ok(())
        },
    );
}

#[test]
fn a_peer_that_sends_for_ever_is_waited_for_until_the_time_limit() {
    run(
        async |stream| {
            let took = time_to_close(stream, Linger::new()).await?;
            assert!(took >= LINGER_TIME && took < LINGER_TIME + SECOND, "{took:?}");
            Ok(())
        },
        async |stream| {
            while stream.write_all(b"more").await.is_ok() {
                sleep(SECOND / 10).await;
            }
            Ok(())
        },
    );
}

#[test]
fn a_peer_that_sends_much_is_waited_for_until_the_limit_of_bytes() {
    run(
        async |stream| {
            let took = time_to_close(stream, Linger::new().bytes(40)).await?;
            assert_eq!(took, Duration::from_millis(902), "ten times four bytes, one each 100 ms");
            Ok(())
        },
        async |stream| {
            while stream.write_all(b"more").await.is_ok() {
                sleep(SECOND / 10).await;
            }
            Ok(())
        },
    );
}

#[test]
fn a_close_without_limits_reads_nothing() {
    run(
        async |stream| {
            assert_eq!(time_to_close(stream, Linger::none()).await?, Duration::ZERO);
            Ok(())
        },
        async |stream| {
            _ = stream.read(&mut [0]).await;
            Ok(())
        },
    );
}

#[test]
fn a_wrapped_stream_lingers_like_a_socket() {
    run(
        async |stream| {
            stream.write_all(&[7; 40_000]).await?;
            stream.readable().await?;
            using(Closing::new(stream), async |_| Ok(())).await
        },
        async |stream| {
            stream.write_all(b"requests that are not read").await?;
            sleep(SECOND).await;
            let mut received = vec![0; 40_000];
            stream.read_exact(&mut received).await?;
            assert_eq!(stream.read(&mut [0]).await?, 0, "the end, and no reset");
            Ok(())
        },
    );
}

#[test]
fn a_pipe_in_memory_is_closed_with_limits_too() {
    let mut sim = Sim::new(1);
    sim.host("alone").run(|| async {
        let (near, mut far) = duplex(16);
        let start = now();
        using(Closing::new(near).linger(Linger::new().idle(SECOND / 4)), async |mut near| {
            write_all(&mut **near, b"word").await
        })
        .await?;
        assert_eq!(now() - start, SECOND / 4, "`far` does not end");
        let mut word = [0; 4];
        read_exact(&mut far, &mut word).await
    });
    sim.run();
}

/// Clients send requests without waiting for answers while the server is stopped. Every answer that the
/// server has written arrives.
#[test]
fn answers_to_pipelined_requests_arrive_when_the_server_is_stopped() {
    for seed in 0..4 {
        let answered = Arc::new(Mutex::new([0_usize; 3]));
        let mut sim = Sim::new(seed);
        let counts = answered.clone();
        sim.host("server").run(move || {
            let counts = counts.clone();
            async move {
                let listener = TcpListener::bind("0.0.0.0:7").await?;
                let serve = scope(async |s| {
                    for client in 0..3 {
                        let (stream, _) = listener.accept().await?;
                        let counts = counts.clone();
                        s.spawn(using(stream, async move |stream| -> io::Result<()> {
                            let mut request = [0; 4];
                            loop {
                                stream.read_exact(&mut request).await?;
                                stream.write_all(&request).await?;
                                counts.lock().unwrap()[client] += 1;
                            }
                        }));
                    }
                    io::Result::Ok(())
                });
                assert!(timeout(SECOND, serve).await.is_err(), "the clients do not end");
                io::Result::Ok(())
            }
        });
        for client in 0..3 {
            let answered = answered.clone();
            sim.host(&format!("client {client}")).run(move || {
                let answered = answered.clone();
                async move {
                    sleep(Duration::from_millis(100 + 10 * client)).await;
                    let stream = TcpStream::connect("server:7").await?;
                    let sends = async {
                        while stream.write_all(b"ask!").await.is_ok() {
                            sleep(Duration::from_millis(3)).await;
                        }
                        Ok(())
                    };
                    let receives = async {
                        // Slower than the server answers.
                        let (mut bytes, mut buffer) = (0, [0; 64]);
                        loop {
                            match stream.read(&mut buffer).await? {
                                0 => break,
                                read => bytes += read,
                            }
                            sleep(Duration::from_millis(50)).await;
                        }
                        stream.shutdown(std::net::Shutdown::Write)?;
                        let answered = answered.lock().unwrap()[client as usize];
                        assert!(answered > 100, "{answered}");
                        assert!(bytes / 4 >= answered, "{} answers of {answered}", bytes / 4);
                        io::Result::Ok(())
                    };
                    try_join((sends, receives)).await.map(drop)
                }
            });
        }
        sim.run();
    }
}
