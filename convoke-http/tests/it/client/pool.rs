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
