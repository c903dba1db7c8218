//! Requests and responses by both protocols.

use std::io;

use convoke::prelude::*;
use convoke_http::{Connection, RequestBody, serve};
use http::{Request, Response};

use crate::harness::{Client, Log, ask, beside, echo, http2, listener, path, simulated};

#[test]
fn hello_by_http1() {
    simulated(|| async {
        beside(serve(listener().await?, path), async {
            let answer = Client::connect().await?.get("/hello").await?;
            assert_eq!((answer.status, &*answer.body), (200, "/hello"));
            Ok(())
        })
        .await
    });
}

#[test]
fn hello_by_http2_with_prior_knowledge() {
    simulated(|| async {
        beside(serve(listener().await?, path), async {
            scope(async |s| {
                let client = http2(&s, Client::connect().await?.stream).await?;
                assert_eq!(ask(&client, "/hello").await?, (http::StatusCode::OK, "/hello".to_owned()));
                Ok(())
            })
            .await
        })
        .await
    });
}

#[test]
fn a_connection_is_kept_for_further_requests() {
    simulated(|| async {
        let log = Log::default();
        let (connections, seen) = (log.clone(), log.clone());
        let who = move |_: Request<RequestBody>| {
            connections.add(Connection::current().unwrap().peer());
            async { io::Result::Ok(Response::new(String::new())) }
        };
        beside(serve(listener().await?, who), async {
            let mut client = Client::connect().await?;
            client.get("/1").await?;
            client.get("/2").await?;
            Ok(())
        })
        .await?;
        let seen = seen.lines();
        assert!(seen.len() == 2 && seen[0] == seen[1], "{seen:?}");
        Ok(())
    });
}

#[test]
fn requests_sent_at_once_are_answered_in_order() {
    simulated(|| async {
        beside(serve(listener().await?, path), async {
            let mut client = Client::connect().await?;
            let requests: String = (0..5).map(|n| format!("GET /{n} HTTP/1.1\r\nhost: s\r\n\r\n")).collect();
            client.send(&requests).await?;
            for n in 0..5 {
                assert_eq!(client.answer().await?.body, format!("/{n}"));
            }
            Ok(())
        })
        .await
    });
}

#[test]
fn streams_of_one_connection_run_at_the_same_time() {
    simulated(|| async {
        // Each waits for the other.
        static BOTH: convoke::sync::Barrier = convoke::sync::Barrier::new(2);
        let meet = async |_: Request<RequestBody>| {
            BOTH.wait().await;
            io::Result::Ok(Response::new(String::new()))
        };
        beside(serve(listener().await?, meet), async {
            scope(async |s| {
                let client = http2(&s, Client::connect().await?.stream).await?;
                try_join((ask(&client, "/1"), ask(&client, "/2"))).await?;
                Ok(())
            })
            .await
        })
        .await
    });
}

#[test]
fn bodies_arrive_by_length_and_in_chunks() {
    simulated(|| async {
        beside(serve(listener().await?, echo), async {
            let mut client = Client::connect().await?;
            client.send("POST / HTTP/1.1\r\nhost: s\r\ncontent-length: 5\r\n\r\nhello").await?;
            assert_eq!(client.answer().await?.body, "hello");
            let chunks = "POST / HTTP/1.1\r\nhost: s\r\ntransfer-encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n";
            for byte in chunks.chars() {
                client.send(&byte.to_string()).await?;
            }
            assert_eq!(client.answer().await?.body, "hello");
            Ok(())
        })
        .await
    });
}

#[test]
fn an_access_log_has_a_line_for_each_request_that_has_ended() {
    simulated(|| async {
        let log = Log::default();
        let lines = log.clone();
        let server = serve(listener().await?, path).on_request(move |record| {
            let http::Version::HTTP_11 = record.version else { panic!("{record}") };
            lines.add(format!(
                "{} {} {:?} {}",
                record.method, record.uri, record.status, record.response_bytes
            ));
        });
        beside(server, async {
            let mut client = Client::connect().await?;
            client.get("/one").await?;
            client.send("HEAD /two HTTP/1.1\r\nhost: s\r\nconnection: close\r\n\r\n").await?;
            assert!(client.rest().await.contains("content-length: 4"));
            Ok(())
        })
        .await?;
        assert_eq!(log.lines(), ["GET /one Some(200) 4", "HEAD /two Some(200) 0"]);
        Ok(())
    });
}
