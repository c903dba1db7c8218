//! Requests that no honest client sends.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use convoke::prelude::*;
use convoke::raw::Random;
use convoke_http::{Limits, Report, RequestBody, serve};
use http::{Request, Response, StatusCode};

use crate::harness::{Client, Log, ask, beside, echo, http2, listener, path, seconds, simulated};

/// Sends bytes on a connection of their own, and returns the statuses of all answers, and the paths that the service has
/// seen.
fn check(bytes: impl Into<String>, statuses: &'static [u16], paths: &'static [&'static str]) {
    let bytes = bytes.into();
    simulated(move || {
        let bytes = bytes.clone();
        async move {
            let log = Log::default();
            let seen = log.clone();
            let service = move |request: Request<RequestBody>| {
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
struct Running(Arc<(AtomicUsize, AtomicUsize)>);

impl Running {
    fn enter(&self) -> Self {
        let now = self.0.0.fetch_add(1, Relaxed) + 1;
        self.0.1.fetch_max(now, Relaxed);
        self.clone()
    }

    fn leave(&self) {
        self.0.0.fetch_sub(1, Relaxed);
    }

    fn now(&self) -> usize {
        self.0.0.load(Relaxed)
    }

    fn most(&self) -> usize {
        self.0.1.load(Relaxed)
    }
}

/// Counts a handler while it runs. Requests for `/forever` are never answered; their clean-up takes a time.
fn counted(running: &Running, clean_up: Duration) -> impl Fn(Request<RequestBody>) -> Answering + use<> {
    let running = running.clone();
    move |request| {
        let running = running.enter();
        Box::pin(async move {
            let leave = async |exit: Exit| {
                if !exit.is_clean() {
                    sleep(clean_up).await;
                }
                running.leave();
            };
            ensure(leave, async {
                if request.uri().path() == "/forever" {
                    sleep(seconds(3600)).await;
                }
            })
            .await;
            Ok(Response::new(String::new()))
        })
    }
}

type Answering = Pin<Box<dyn Future<Output = io::Result<Response<String>>> + Send>>;

/// Begins that many requests by HTTP/2 that are never answered, and resets each at once.
async fn reset_rapidly(requests: u32) -> io::Result<Client> {
    let attacker = Client::connect().await?;
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
    for stream in 0..requests {
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
    Ok(attacker)
}

#[test]
fn a_client_that_resets_streams_rapidly_has_few_handlers_and_others_are_served() {
    simulated(|| async {
        let running = Running::default();
        let service = counted(&running, Duration::ZERO);
        beside(serve(listener().await?, service).report(|_| ()), async {
            let others = async {
                for _ in 0..20 {
                    let mut other = Client::connect().await?;
                    assert_eq!(other.get("/").await?.status, 200);
                }
                io::Result::Ok(())
            };
            let (attacker, served) = join((reset_rapidly(5_000), others)).await;
            served?;
            sleep(seconds(1)).await;
            let most = running.most();
            assert!((1..200).contains(&most), "{most} handlers at a time");
            assert_eq!(running.now(), 0, "all of them have ended");
            drop(attacker);
            Ok(())
        })
        .await
    });
}

#[test]
fn resets_with_slow_clean_ups_take_at_most_twice_the_streams_of_a_connection() {
    simulated(|| async {
        let running = Running::default();
        let service = counted(&running, seconds(10));
        let limits = Limits::new().streams(20).requests(50);
        beside(serve(listener().await?, service).limits(limits).report(|_| ()), async {
            scope(async |s| {
                let attacker = http2(&s, Client::connect().await?.stream).await?;
                let mut refused = 0;
                for _ in 0..200 {
                    // The server has accepted it when it is reset.
                    match timeout(Duration::from_millis(10), ask(&attacker, "/forever")).await {
                        Ok(answer) => {
                            assert_eq!(answer?.0, StatusCode::SERVICE_UNAVAILABLE);
                            refused += 1;
                        }
                        Err(_) => assert_eq!(Client::connect().await?.get("/").await?.status, 200),
                    }
                }
                assert_eq!((running.now(), refused), (40, 160));
                assert_eq!(Client::connect().await?.get("/").await?.status, 200);
                sleep(seconds(12)).await;
                assert_eq!(running.now(), 0, "they were cleaned up");
                assert_eq!(ask(&attacker, "/").await?.0, StatusCode::OK, "its turn again");
                Ok(())
            })
            .await
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

/// The most memory that this process has had, in KiB; `None` where the system does not tell.
pub(crate) fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    peak.trim().strip_suffix(" kB")?.parse().ok()
}

#[test]
fn random_malformed_requests_are_answered_or_closed_and_others_are_served() {
    const BATCH: usize = 100;
    let mut random = Random::new(1);
    let statuses = Arc::new(Mutex::new(BTreeMap::new()));
    let (mut done, mut after_first) = (0, None);
    while done < rounds() {
        let requests: Vec<Vec<u8>> = (0..BATCH).map(|_| malformed(&mut random)).collect();
        done += requests.len() as u64;
        let (seed, seen) = (done, statuses.clone());
        convoke::sim::simulate(seed, async move {
            let own = Log::default();
            let ours = own.clone();
            let report = move |report: Report| {
                if !report.is_about_client() {
                    ours.add(report);
                }
            };
            beside(serve(listener().await?, echo).report(report), async {
                for bytes in requests {
                    let mut client = Client::connect().await?;
                    // The server may have answered and closed before it has all.
                    _ = client.stream.write_all(&bytes).await;
                    _ = client.stream.shutdown(std::net::Shutdown::Write);
                    let answers = client.rest_of_bytes().await;
                    let text = String::from_utf8_lossy(&answers);
                    assert!(!text.contains("HTTP/1.1 5"), "{bytes:?}: {text}");
                    let first = match &*text {
                        "" => "none",
                        text if text.starts_with("HTTP/1.1 ") => &text[9..12],
                        _ => "by HTTP/2",
                    };
                    *seen.lock().unwrap().entry(first.to_owned()).or_insert(0) += 1;
                }
                assert_eq!(Client::connect().await?.get("/").await?.status, 200);
                Ok(())
            })
            .await?;
            assert!(own.lines().is_empty(), "reports about the server: {:?}", own.lines());
            io::Result::Ok(())
        })
        .unwrap();
        if done >= 1_000 {
            after_first = after_first.or_else(peak_memory);
        }
    }
    println!("{done} requests, first answers: {:?}", statuses.lock().unwrap());
    if let (Some(before), Some(after)) = (after_first, peak_memory()) {
        println!("memory: {before} KiB after 1,000 of them, {after} KiB after all");
        assert!(after < before + 32 * 1024, "{before} KiB, and then {after} KiB");
    }
}
