//! The bounds of the pool.

use convoke::prelude::*;
use convoke_http::Client;
use convoke_http::client::Phase;

use super::scripted::{Peer, scripted};
use crate::harness::{seconds, simulated};

/// Answers each request after a second.
async fn slow(_: usize, mut peer: Peer) -> std::io::Result<()> {
    loop {
        peer.head().await?;
        sleep(seconds(1)).await;
        peer.answer("late").await?;
    }
}

async fn get(client: &Client) -> std::io::Result<String> {
    Ok(client.get("http://127.0.0.1/").send().await?.text().await?)
}

#[test]
fn requests_beyond_the_connections_of_an_origin_wait_their_turn() {
    simulated(|| {
        scripted(Client::builder().connections_per_origin(2), slow, async |client, accepted| {
            let begun = convoke::time::now();
            let all: Vec<_> = (0..6).map(|_| get(&client)).collect();
            for answer in join(all).await {
                assert_eq!(answer?, "late");
            }
            assert_eq!((accepted.get(), client.connections(), client.waiting_requests()), (2, 2, 0));
            let took = convoke::time::now() - begun;
            assert!((seconds(3)..seconds(4)).contains(&took), "three rounds of two, not {took:?}");
            Ok(())
        })
    });
}

#[test]
fn requests_beyond_the_queue_fail_at_once() {
    simulated(|| {
        let builder = Client::builder().connections_per_origin(1).waiting(1);
        scripted(builder, slow, async |client, _| {
            let half = seconds(1) / 2;
            let second = async {
                sleep(half).await;
                get(&client).await
            };
            let third = async {
                sleep(half * 3 / 2).await;
                assert_eq!((client.connections(), client.waiting_requests()), (1, 1));
                client.get("http://127.0.0.1/").send().await
            };
            let (one, two, three) = join((get(&client), second, third)).await;
            assert_eq!((one?, two?), ("late".to_owned(), "late".to_owned()));
            let error = three.unwrap_err();
            assert!(error.phase() == Phase::Wait && !error.is_timeout(), "{error}");
            assert!(!error.may_have_been_processed());
            Ok(())
        })
    });
}

/// Answers each request at once.
async fn quick(_: usize, mut peer: Peer) -> std::io::Result<()> {
    loop {
        peer.head().await?;
        peer.answer("now").await?;
    }
}

#[test]
fn idle_connections_beyond_the_bound_and_the_time_are_closed() {
    simulated(|| {
        let builder = Client::builder().idle_per_origin(2).idle_time(seconds(10));
        scripted(builder, slow, async |client, accepted| {
            let all: Vec<_> = (0..5).map(|_| get(&client)).collect();
            join(all).await.into_iter().collect::<Result<Vec<_>, _>>()?;
            sleep(seconds(5)).await;
            assert_eq!((accepted.get(), client.connections(), client.idle_connections()), (5, 2, 2));
            // One of them is used, and stays longer.
            get(&client).await?;
            sleep(seconds(5)).await;
            assert_eq!((client.connections(), client.idle_connections()), (1, 1));
            sleep(seconds(10)).await;
            assert_eq!((accepted.get(), client.connections()), (5, 0));
            Ok(())
        })
    });
}

#[test]
fn an_idle_connection_gives_its_place_to_another_origin() {
    simulated(|| {
        scripted(Client::builder().connections(1), quick, async |client, accepted| {
            for _ in 0..3 {
                for host in ["127.0.0.1", "localhost"] {
                    let answer = client.get(format!("http://{host}/")).send().await?.text().await?;
                    assert_eq!((&*answer, client.connections()), ("now", 1));
                }
            }
            assert_eq!(accepted.get(), 6);
            Ok(())
        })
    });
}

#[test]
fn requests_of_many_origins_share_the_places_of_all_connections() {
    simulated(|| {
        scripted(Client::builder().connections(2), slow, async |client, _| {
            let all: Vec<_> = (0..12)
                .map(|index| {
                    let host = if index % 2 == 0 { "127.0.0.1" } else { "localhost" };
                    let client = &client;
                    async move { client.get(format!("http://{host}/")).send().await?.text().await }
                })
                .collect();
            for answer in join(all).await {
                assert_eq!(answer?, "late");
                assert!(client.connections() <= 2);
            }
            Ok(())
        })
    });
}

#[test]
fn more_streams_than_a_connection_may_have_open_another_one() {
    use convoke_http::serve;
    simulated(|| async {
        let slow = async |_: http::Request<convoke_http::RequestBody>| {
            sleep(seconds(1)).await;
            std::io::Result::Ok(http::Response::new("late".to_owned()))
        };
        let client =
            Client::builder().http2_only().streams(2).connections_per_origin(2).run(async |client| {
                let begun = convoke::time::now();
                let all: Vec<_> = (0..8).map(|_| get(&client)).collect();
                for answer in join(all).await {
                    assert_eq!(answer?, "late");
                }
                assert_eq!(client.connections(), 2);
                let took = convoke::time::now() - begun;
                assert!((seconds(2)..seconds(3)).contains(&took), "two rounds of four, not {took:?}");
                Ok(())
            });
        crate::harness::beside(serve(crate::harness::listener().await?, slow), client).await
    });
}

#[test]
fn a_connection_whose_upload_goes_on_is_not_waited_for() {
    // The server answers before it has read the body, and reads it much later.
    let early = async |number: usize, mut peer: Peer| {
        peer.head().await?;
        if number == 0 {
            peer.answer("early").await?;
            sleep(seconds(20)).await;
            peer.body(1_000_000).await?;
            peer.head().await?;
        }
        peer.answer("next").await?;
        peer.closed().await;
        Ok(())
    };
    simulated(move || {
        scripted(Client::builder(), early, async |client, accepted| {
            let body = "x".repeat(1_000_000);
            let first = client.post("http://127.0.0.1/").body(body).send().await?.text().await?;
            let begun = convoke::time::now();
            assert_eq!((&*first, &*get(&client).await?), ("early", "next"));
            assert!(convoke::time::now() - begun < seconds(5));
            assert_eq!(accepted.get(), 2);
            Ok(())
        })
    });
}
