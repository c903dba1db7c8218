//! The gain of the second core: a server that computes for each request, and tasks on a pool that do what those
//! of an HTTP server do, without its sockets. Each contestant takes part with one core and with two.

use std::hint::black_box;
use std::time::{Duration, Instant};

use convoke::sender::{Sender, sync_wait};
use convoke::task::task;
use convoke::{ThreadPool, checkpoint, scope};

use super::{CONVOKE, Instructions, Scenario};
use crate::echo::{self, Pair, Shape, Transport};
use crate::peer::{SmolPool, inside_tokio, tokio_pool};

const CONNECTIONS: u64 = 64;

/// The rounds of computing of a handler: some microseconds.
const ROUNDS: u64 = 2_000;

/// A request of a browser.
const HEAD: &[u8] =
    b"GET /articles/4711?page=2 HTTP/1.1\r\nHost: example.com\r\nAccept: text/html,*/*;q=0.8\r\n\
    Accept-Language: en-GB,en;q=0.5\r\nAccept-Encoding: gzip, deflate\r\nConnection: keep-alive\r\n\r\n";

pub(super) fn scenarios() -> Vec<Scenario> {
    let echo = Scenario::new(
        "echo_2_cores",
        "a request of 64 bytes over TCP, for which the server computes 0.1 ms, on one of 64 connections",
    )
    .served(&["tokio", "tokio_1_core", "convoke_1_core"]);
    let shape = Shape { transport: Transport::Work, bytes: 64, connections: CONNECTIONS as usize };
    let echo = echo::peers_on_cores().fold(echo, |scenario, peer| {
        scenario.server(peer, move || Pair::start(peer, shape), Instructions::Unknown)
    });
    let http_like = Scenario::new(
        "pool_http_like",
        "parse a head, spawn a handler that computes and yields, and await it, on one of 64 tasks of a pool",
    )
    .batch(CONNECTIONS)
    .contestant(CONVOKE, || convoke(2))
    .contestant("convoke_1_core", || convoke(1))
    .contestant("tokio", || tokio(2))
    .contestant("tokio_1_core", || tokio(1))
    .contestant("smol", || smol(2))
    .contestant("smol_1_core", || smol(1));
    vec![echo, http_like]
}

/// Parses the head as a server does that looks at each byte once. Returns the length of all values.
fn parse(head: &[u8]) -> usize {
    let lines = black_box(head).split(|byte| *byte == b'\n').skip(1);
    let values =
        lines.filter_map(|line| line.iter().position(|byte| *byte == b':').map(|at| line.len() - at));
    values.sum()
}

fn compute(seed: usize) -> u64 {
    (0..ROUNDS).fold(seed as u64, |sum, round| black_box(sum).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ round)
}

fn convoke(threads: usize) -> impl FnMut(u64) -> Duration {
    let pool = ThreadPool::new(threads).expect("a pool starts");
    move |ops| {
        let all = async move {
            let start = Instant::now();
            scope(async |s| {
                for _ in 0..CONNECTIONS {
                    s.spawn(async move {
                        scope(async |requests| {
                            for _ in 0..ops / CONNECTIONS {
                                let length = parse(HEAD);
                                let handler = requests.spawn_future(async move {
                                    checkpoint().await;
                                    compute(length)
                                });
                                black_box(handler.await);
                            }
                        })
                        .await;
                    });
                }
            })
            .await;
            start.elapsed()
        };
        sync_wait(task(all).starts_on(&pool.executor())).unwrap()
    }
}

fn tokio(threads: usize) -> impl FnMut(u64) -> Duration {
    let runtime = tokio_pool(threads);
    move |ops| {
        inside_tokio(&runtime, async move {
            let start = Instant::now();
            let connection = move |_| {
                tokio::spawn(async move {
                    for _ in 0..ops / CONNECTIONS {
                        let length = parse(HEAD);
                        let handler = tokio::spawn(async move {
                            tokio::task::yield_now().await;
                            compute(length)
                        });
                        black_box(handler.await.expect("the contestant does not panic"));
                    }
                })
            };
            let connections: Vec<_> = (0..CONNECTIONS).map(connection).collect();
            for connection in connections {
                connection.await.expect("the contestant does not panic");
            }
            start.elapsed()
        })
    }
}

fn smol(threads: usize) -> impl FnMut(u64) -> Duration {
    let pool = SmolPool::new(threads);
    move |ops| {
        let executor = pool.executor;
        pool.inside(async move {
            let start = Instant::now();
            let connection = move |_| {
                executor.spawn(async move {
                    for _ in 0..ops / CONNECTIONS {
                        let length = parse(HEAD);
                        let handler = executor.spawn(async move {
                            futures_lite::future::yield_now().await;
                            compute(length)
                        });
                        black_box(handler.await);
                    }
                })
            };
            let connections: Vec<_> = (0..CONNECTIONS).map(connection).collect();
            for connection in connections {
                connection.await;
            }
            start.elapsed()
        })
    }
}
