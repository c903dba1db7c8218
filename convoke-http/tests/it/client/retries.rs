//! Requests that are sent again, and those that must not be.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use convoke::prelude::*;
use convoke::retry::Backoff;
use convoke::time::now;
use convoke_http::Client;
use convoke_http::client::{Payload, Phase};
use http::Method;
use http_body_util::{BodyExt, Empty};

use super::scripted::{Peer, scripted};
use crate::harness::{Log, seconds, simulated};

/// Answers the first request of each connection. Closes the connection when it reads the second.
async fn once(_: usize, mut peer: Peer) -> io::Result<()> {
    peer.head().await?;
    peer.answer("once").await?;
    peer.head().await?;
    Ok(())
}

#[test]
fn an_idempotent_request_survives_a_connection_that_was_closed_meanwhile() {
    simulated(|| {
        scripted(Client::builder(), once, async |client, accepted| {
            for _ in 0..3 {
                for request in [
                    client.get("http://127.0.0.1/"),
                    client.put("http://127.0.0.1/").body("text"),
                    client.delete("http://127.0.0.1/"),
                ] {
                    assert_eq!(request.send().await?.text().await?, "once");
                }
            }
            assert_eq!(accepted.get(), 9, "each needed a connection of its own");
            Ok(())
        })
    });
}

#[test]
fn a_request_that_may_have_been_processed_is_not_sent_twice() {
    simulated(|| {
        scripted(Client::builder(), once, async |client, accepted| {
            assert_eq!(client.get("http://127.0.0.1/").send().await?.text().await?, "once");
            let retry = Backoff::constant(seconds(1)).up_to(5);
            let error = client.post("http://127.0.0.1/").retry(retry).send().await.unwrap_err();
            assert!(error.may_have_been_processed() && error.phase() == Phase::Head, "{error}");
            assert_eq!(accepted.get(), 1);
            Ok(())
        })
    });
}

#[test]
fn a_stream_is_not_sent_twice() {
    simulated(|| {
        scripted(Client::builder(), once, async |client, accepted| {
            assert_eq!(client.get("http://127.0.0.1/").send().await?.text().await?, "once");
            // Of unknown size.
            let stream = Empty::<Bytes>::new().with_trailers(async { None });
            let request = client.put("http://127.0.0.1/").body(Payload::stream(stream));
            let error = request.send().await.unwrap_err();
            assert!(error.may_have_been_processed(), "{error}");
            assert_eq!(accepted.get(), 1);
            Ok(())
        })
    });
}

#[test]
fn any_request_is_sent_by_another_connection_if_the_server_was_seen_to_close() {
    let closing = async |_, mut peer: Peer| {
        peer.head().await?;
        peer.answer("last").await
    };
    simulated(move || {
        scripted(Client::builder(), closing, async |client, accepted| {
            for _ in 0..4 {
                // The close was seen, or is seen in the moment in which the connection is taken.
                assert_eq!(client.post("http://127.0.0.1/").send().await?.text().await?, "last");
                sleep(Duration::from_millis(500)).await;
            }
            assert_eq!(accepted.get(), 4);
            Ok(())
        })
    });
}

#[test]
fn connections_that_are_refused_or_lost_are_tried_again_by_the_schedule() {
    // Two are lost without an answer, the third is served.
    let third = async |number: usize, mut peer: Peer| {
        peer.head().await?;
        if number >= 2 { peer.answer("third").await } else { Ok(()) }
    };
    simulated(move || {
        let builder = Client::builder().retry(Backoff::exponential(seconds(1)).up_to(2));
        scripted(builder, third, async |client, accepted| {
            let begun = now();
            assert_eq!(client.get("http://127.0.0.1/").send().await?.text().await?, "third");
            assert_eq!((accepted.get(), now() - begun), (3, seconds(3)));
            // Nobody listens there. Also a POST may be tried again: it was not sent.
            let begun = now();
            let error = client.post("http://127.0.0.1:81/").send().await.unwrap_err();
            assert!(error.is_connect() && !error.may_have_been_processed(), "{error}");
            assert_eq!(now() - begun, seconds(3));
            assert_eq!(io::Error::from(error).kind(), io::ErrorKind::ConnectionRefused);
            Ok(())
        })
    });
}

#[test]
fn a_retry_that_comes_after_the_deadline_is_not_waited_for() {
    simulated(|| async {
        let log = Log::default();
        Client::builder()
            .retry(Backoff::constant(seconds(10)))
            .run(async |client| {
                let begun = now();
                let refused = client.method(Method::GET, "http://127.0.0.1:81/").total_time(seconds(15));
                let error = refused.send().await.unwrap_err();
                assert!(error.is_connect() && !error.is_timeout(), "{error}");
                assert_eq!(now() - begun, seconds(10), "one pause, and the second would be too long");
                let refused = client.get("http://127.0.0.1:81/").send();
                assert!(timeout(seconds(5), refused).await.unwrap().unwrap_err().is_connect());
                log.add("ended");
                io::Result::Ok(())
            })
            .await
    });
}

/// The settings of a server by HTTP/2: all by default.
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
/// The end of a connection, which has processed no request.
const GO_AWAY: &[u8] = &[0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
/// The first request is refused, and was not processed.
const REFUSED: &[u8] = &[0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 7];
/// The first request has failed.
const FAILED: &[u8] = &[0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 2];
/// The response to the first request: its status is 200, and it has no body.
const OK: &[u8] = &[0, 0, 1, 1, 5, 0, 0, 0, 1, 0x88];

#[test]
fn a_request_that_the_server_has_not_looked_at_is_sent_again_by_http2() {
    for (first, is_processed) in [(GO_AWAY, false), (REFUSED, false), (FAILED, true)] {
        simulated(move || {
            let script = move |number: usize, mut peer: Peer| async move {
                peer.stream.write_all(SETTINGS).await?;
                // The request has arrived by then.
                sleep(seconds(1)).await;
                peer.stream.write_all(if number == 0 { first } else { OK }).await?;
                peer.closed().await;
                Ok(())
            };
            scripted(Client::builder().http2_only(), script, async move |client, accepted| {
                let answer = client.post("http://127.0.0.1/").body("text").send().await;
                assert_eq!(answer.is_err(), is_processed, "{answer:?}");
                if let Err(error) = answer {
                    assert!(error.may_have_been_processed(), "{error}");
                }
                assert_eq!(accepted.get(), if is_processed { 1 } else { 2 });
                Ok(())
            })
        });
    }
}
