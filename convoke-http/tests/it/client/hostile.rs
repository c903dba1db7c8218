//! Servers that break the protocol. The next request works.

use std::io;

use convoke_http::Client;
use convoke_http::client::Phase;

use super::scripted::{Peer, scripted};
use crate::harness::simulated;

/// Says `text` to the first request, closes the connection, and answers the others.
fn first(text: String, phase: Phase) {
    simulated(move || {
        let text = text.clone();
        let script = move |number: usize, mut peer: Peer| {
            let text = text.clone();
            async move {
                loop {
                    peer.head().await?;
                    match number {
                        0 => return peer.say(&text).await,
                        _ => peer.answer("fine").await?,
                    }
                }
            }
        };
        scripted(Client::builder(), script, async move |client, accepted| {
            // Not idempotent, so that it is not sent again.
            let failed = match client.post("http://127.0.0.1/").send().await {
                Ok(response) => response.bytes().await.map(drop),
                Err(error) => Err(error),
            };
            let error = failed.unwrap_err();
            assert_eq!(error.phase(), phase, "{error}");
            assert!(error.may_have_been_processed() && !error.is_timeout());
            assert_eq!(error.origin().unwrap().to_string(), "http://127.0.0.1");
            for _ in 0..2 {
                assert_eq!(client.post("http://127.0.0.1/").send().await?.text().await?, "fine");
            }
            assert_eq!((accepted.get(), client.connections()), (2, 1));
            io::Result::Ok(())
        })
    });
}

#[test]
fn an_early_close_is_no_response() {
    first(String::new(), Phase::Head);
}

#[test]
fn half_a_head_is_no_response() {
    first("HTTP/1.1 200 OK\r\ncontent-le".to_owned(), Phase::Head);
}

#[test]
fn garbage_is_no_response() {
    first("SSH-2.0-OpenSSH_9.6\r\n\r\n".to_owned(), Phase::Head);
}

#[test]
fn a_head_that_is_too_large_is_no_response() {
    first(format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "y".repeat(100_000)), Phase::Head);
}

#[test]
fn a_head_without_end_is_no_response() {
    first(format!("HTTP/1.1 200 OK\r\n{}", "x: y\r\n".repeat(20_000)), Phase::Head);
}

#[test]
fn half_a_body_is_an_error_of_the_body() {
    first("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf".to_owned(), Phase::Body);
}

#[test]
fn broken_chunks_are_an_error_of_the_body() {
    first("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n".to_owned(), Phase::Body);
}

#[test]
fn contradicting_lengths_are_no_response() {
    first("HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab".to_owned(), Phase::Head);
}

#[test]
fn a_second_response_that_nobody_asked_for_reaches_no_request() {
    simulated(|| {
        let twice = async |_, mut peer: Peer| {
            loop {
                peer.head().await?;
                peer.answer("asked").await?;
                peer.answer("smuggled").await?;
            }
        };
        scripted(Client::builder(), twice, async |client, _| {
            for _ in 0..5 {
                assert_eq!(client.get("http://127.0.0.1/").send().await?.text().await?, "asked");
                convoke::prelude::sleep(crate::harness::seconds(1)).await;
            }
            Ok(())
        })
    });
}
