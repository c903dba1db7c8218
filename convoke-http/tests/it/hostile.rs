//! Requests that no honest client sends.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use convoke::prelude::*;
use convoke::raw::Random;
use convoke_http::serve;

use crate::harness::{Client, Log, beside, echo, listener, path, seconds, simulated};

/// Sends bytes on a connection of their own, and returns the statuses of all answers, and the paths that the service has
/// seen.
fn check(bytes: impl Into<String>, statuses: &'static [u16], paths: &'static [&'static str]) {
    let bytes = bytes.into();
    simulated(move || {
        let bytes = bytes.clone();
        async move {
            let log = Log::default();
            let seen = log.clone();
            let service = move |request: http::Request<convoke_http::RequestBody>| {
                seen.add(request.uri().path());
                echo(request)
            };
            beside(serve(listener().await?, service), async {
                let mut client = Client::connect().await?;
                client.send(&bytes).await?;
                let mut answers = Vec::new();
                while let Ok(answer) = client.answer().await {
                    answers.push(answer.status);
                }
                assert_eq!(answers, statuses, "{bytes:?}");
                Ok(())
            })
            .await?;
            assert_eq!(log.lines(), paths, "{bytes:?}");
            Ok(())
        }
    });
}

#[test]
fn chunks_that_are_broken_are_answered_with_400_and_end_the_connection() {
    check(
        "POST /a HTTP/1.1\r\nhost: s\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\nGET /b HTTP/1.1\r\nhost: s\r\n\r\n",
        &[400],
        &["/a"],
    );
    check(
        "POST /a HTTP/1.1\r\nhost: s\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhelloXX0\r\n\r\nGET /b HTTP/1.1\r\nhost: s\r\n\r\n",
        &[400],
        &["/a"],
    );
    // Longer than any number.
    check(
        "POST /a HTTP/1.1\r\nhost: s\r\ntransfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\nhello\r\n0\r\n\r\n",
        &[400],
        &["/a"],
    );
}

#[test]
fn a_request_with_length_and_chunks_smuggles_nothing() {
    // The chunks count, and the connection ends: what follows may have been meant as a body by someone on the way.
    check(
        "POST /a HTTP/1.1\r\nhost: s\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nhost: s\r\n\r\n",
        &[200],
        &["/a"],
    );
    check(
        "POST /a HTTP/1.1\r\nhost: s\r\ntransfer-encoding: chunked\r\ncontent-length: 4\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nhost: s\r\n\r\n",
        &[200],
        &["/a"],
    );
}

#[test]
fn lengths_and_encodings_that_contradict_each_other_are_answered_with_400() {
    for head in [
        "content-length: 5\r\ncontent-length: 6",
        "content-length: 5, 6",
        "content-length: +5",
        "content-length: 5x",
        "content-length: -1",
        "transfer-encoding: identity",
        "transfer-encoding: chunked, identity",
        "transfer-encoding: xchunked",
        "transfer-encoding : chunked",
        "content-length\r\n : 5",
        "host: s\r\n folded: 5",
    ] {
        let bytes = format!(
            "POST /a HTTP/1.1\r\nhost: s\r\n{head}\r\n\r\nhelloGET /smuggled HTTP/1.1\r\nhost: s\r\n\r\n"
        );
        check(bytes, &[400], &[]);
    }
}

#[test]
fn chunks_by_http_1_0_are_refused() {
    check("POST /a HTTP/1.0\r\nhost: s\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", &[400], &[]);
}

#[test]
fn what_is_no_http_is_answered_with_400_or_not_at_all() {
    check("\x16\x03\x01\x02\x00\x01\x00\x01\r\n\r\n", &[400], &[]);
    check("SSH-2.0-OpenSSH_9.6\r\n\r\n", &[400], &[]);
    // The preface of HTTP/2, and then something else.
    check("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nGET / HTTP/1.1\r\n\r\n", &[], &[]);
    check("PRI * HTTP/2.0\r\n\r\n", &[], &[]);
}

#[test]
fn lines_that_end_with_a_bare_line_feed_smuggle_nothing() {
    // Hyper takes a bare line feed as the end of a line, as RFC 9112 allows, and of the head. What follows is a request
    // of its own, with or without a proxy that reads it in the same way.
    check(
        "GET /a HTTP/1.1\nhost: s\n\nGET /b HTTP/1.1\r\nhost: s\r\nconnection: close\r\n\r\n",
        &[200, 200],
        &["/a", "/b"],
    );
    // A bare carriage return ends nothing.
    check("GET /a HTTP/1.1\r\nhost: s\rx: y\r\n\r\n", &[400], &[]);
}

#[test]
fn many_connections_that_say_half_a_head_end_with_408_and_others_are_served() {
    simulated(|| async {
        beside(serve(listener().await?, path), async {
            let mut slow = Vec::new();
            for number in 0..200 {
                let client = Client::connect().await?;
                client.send(&"GET / HTTP/1.1\r\nhost: s\r\n"[..1 + number % 25]).await?;
                slow.push(client);
            }
            // One byte at a time does not help.
            for _ in 0..9 {
                for client in &slow {
                    // Some heads are broken by it, and refused.
                    _ = client.send("a").await;
                }
                assert_eq!(Client::connect().await?.get("/page").await?.status, 200);
                sleep(seconds(1)).await;
            }
            sleep(seconds(2)).await;
            let mut slow_heads = 0;
            for mut client in slow {
                let rest = client.rest().await;
                slow_heads += u32::from(rest.starts_with("HTTP/1.1 408 "));
                assert!(
                    rest.is_empty() || rest.starts_with("HTTP/1.1 408 ") || rest.starts_with("HTTP/1.1 400 "),
                    "{rest}"
                );
            }
            assert!(slow_heads > 50, "{slow_heads} heads were too slow");
            Ok(())
        })
        .await
    });
}

/// Counts the handlers that run, and the most at a time.
#[derive(Clone, Default)]
struct Running(std::sync::Arc<(AtomicUsize, AtomicUsize)>);

impl Running {
    fn enter(&self) -> Self {
        let now = self.0.0.fetch_add(1, Relaxed) + 1;
        self.0.1.fetch_max(now, Relaxed);
        self.clone()
    }

    fn leave(&self) {
        self.0.0.fetch_sub(1, Relaxed);
    }
}

#[test]
fn a_client_that_resets_streams_rapidly_has_few_handlers_and_others_are_served() {
    simulated(|| async {
        let running = Running::default();
        let counted = running.clone();
        let service = move |request: http::Request<convoke_http::RequestBody>| {
            let running = counted.enter();
            async move {
                ensure(async |_| running.leave(), async {
                    if request.uri().path() == "/forever" {
                        sleep(seconds(3600)).await;
                    }
                })
                .await;
                std::io::Result::Ok(http::Response::new(String::new()))
            }
        };
        beside(serve(listener().await?, service).report(|_| ()), async {
            let attacker = Client::connect().await?;
            let attack = async {
                let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
                for stream in 0_u32..5_000 {
                    let id = (2 * stream + 1).to_be_bytes();
                    bytes.extend_from_slice(b"\0\0\x17\x01\x05");
                    bytes.extend_from_slice(&id);
                    bytes.extend_from_slice(b"\x82\x86\x04\x08/forever\x01\x09localhost");
                    bytes.extend_from_slice(b"\0\0\x04\x03\0");
                    bytes.extend_from_slice(&id);
                    bytes.extend_from_slice(&[0, 0, 0, 8]);
                }
                // The server may end the connection before it has read all of that.
                _ = timeout(seconds(20), attacker.stream.write_all(&bytes)).await;
            };
            let others = async {
                for _ in 0..20 {
                    let mut other = Client::connect().await?;
                    assert_eq!(other.get("/").await?.status, 200);
                }
                std::io::Result::Ok(())
            };
            join((attack, others)).await.1?;
            sleep(seconds(1)).await;
            let most = running.0.1.load(Relaxed);
            assert!((1..200).contains(&most), "{most} handlers at a time");
            assert_eq!(running.0.0.load(Relaxed), 0, "all of them have ended");
            Ok(())
        })
        .await
    });
}

/// The number of malformed requests: `CONVOKE_ROUNDS`, or a few.
fn rounds() -> u64 {
    std::env::var("CONVOKE_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(3_000)
}

/// A request with some bytes changed, inserted, removed or repeated.
fn malformed(random: &mut Random) -> Vec<u8> {
    const SEEDS: [&str; 5] = [
        "GET /a?b=c HTTP/1.1\r\nhost: s\r\naccept: */*\r\n\r\n",
        "POST /a HTTP/1.1\r\nhost: s\r\ncontent-length: 5\r\n\r\nhello",
        "POST /a HTTP/1.1\r\nhost: s\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        "GET /a HTTP/1.1\r\nhost: s\r\nconnection: upgrade\r\nupgrade: x\r\nexpect: 100-continue\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\x0e\x01\x05\0\0\0\x01\u{2}\u{6}\u{4}",
    ];
    const WORDS: [&str; 8] =
        ["\r\n", "\n", "\0", "chunked", "content-length: 99", "host: x", " ", "ffffffffffffffffffff"];
    let mut bytes = SEEDS[random.below(SEEDS.len())].as_bytes().to_vec();
    for _ in 0..1 + random.below(4) {
        let at = random.below(bytes.len());
        match random.below(4) {
            0 => bytes[at] = random.below(256) as u8,
            1 => drop(bytes.drain(at..bytes.len().min(at + 1 + random.below(8)))),
            2 => drop(bytes.splice(at..at, WORDS[random.below(WORDS.len())].bytes())),
            _ => {
                let copy = bytes[at..].to_vec();
                bytes.extend(copy);
            }
        }
        if bytes.is_empty() {
            bytes.push(b'\r');
        }
    }
    bytes
}

#[test]
fn random_malformed_requests_are_answered_or_closed_and_others_are_served() {
    let mut random = Random::new(1);
    let all = rounds();
    let mut done = 0;
    while done < all {
        let requests: Vec<Vec<u8>> = (0..100).map(|_| malformed(&mut random)).collect();
        done += requests.len() as u64;
        let seed = done;
        convoke::sim::simulate(seed, async move {
            beside(
                serve(listener().await?, echo).report(|report| assert!(report.is_about_client(), "{report}")),
                async {
                    for bytes in requests {
                        let mut client = Client::connect().await?;
                        // The server may have answered and closed before it has all.
                        _ = client.stream.write_all(&bytes).await;
                        _ = client.stream.shutdown(std::net::Shutdown::Write);
                        let answers = client.rest_of_bytes().await;
                        let text = String::from_utf8_lossy(&answers);
                        assert!(!text.contains("HTTP/1.1 5"), "{bytes:?}: {text}");
                    }
                    assert_eq!(Client::connect().await?.get("/").await?.status, 200);
                    Ok(())
                },
            )
            .await
        })
        .unwrap();
    }
}
