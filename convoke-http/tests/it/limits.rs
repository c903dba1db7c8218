//! Limits of what clients may ask for, and how they are told.

use std::io;

use bytes::Bytes;
use convoke::prelude::*;
use convoke::sync::Event;
use convoke::time::now;
use convoke_http::{Limits, RequestBody, serve, streamed};
use http::{Request, Response, StatusCode};
use http_body_util::Full;

use crate::harness::{Client, ask, beside, echo, http2, listener, path, seconds, send, simulated};

#[test]
fn a_head_that_is_too_large_is_answered_with_431_by_both_protocols() {
    simulated(|| async {
        let limits = Limits::new().header_bytes(1000);
        beside(serve(listener().await?, path).limits(limits), async {
            let mut client = Client::connect().await?;
            let long = "x".repeat(1000);
            client.send(&format!("GET / HTTP/1.1\r\nhost: s\r\nlong: {long}\r\n\r\n")).await?;
            assert_eq!(client.answer().await?.status, 431);
            assert_eq!(client.rest().await, "");
            // One without an end does not fill the memory either.
            let mut endless = Client::connect().await?;
            endless.send("GET / HTTP/1.1\r\nhost: s\r\nlong: ").await?;
            endless.send(&"x".repeat(100_000)).await?;
            assert_eq!(endless.answer().await?.status, 431);
            scope(async |s| {
                let client = http2(&s, Client::connect().await?.stream).await?;
                let request =
                    Request::get("http://server/").header("long", &long).body(Full::default()).unwrap();
                assert_eq!(send(&client, request).await?.0, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
                assert_eq!(ask(&client, "/").await?.0, StatusCode::OK);
                Ok(())
            })
            .await
        })
        .await
    });
}

#[test]
fn too_many_header_fields_are_answered_with_431_by_both_protocols() {
    simulated(|| async {
        beside(serve(listener().await?, path).limits(Limits::new().headers(8)), async {
            let fields: String = (0..8).map(|n| format!("field-{n}: x\r\n")).collect();
            let mut client = Client::connect().await?;
            client.send(&format!("GET / HTTP/1.1\r\nhost: s\r\n{fields}\r\n")).await?;
            assert_eq!(client.answer().await?.status, 431);
            scope(async |s| {
                let client = http2(&s, Client::connect().await?.stream).await?;
                let mut request = Request::get("http://server/");
                for n in 0..9 {
                    request = request.header(format!("field-{n}"), "x");
                }
                let request = request.body(Full::default()).unwrap();
                assert_eq!(send(&client, request).await?.0, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
                Ok(())
            })
            .await
        })
        .await
    });
}

#[test]
fn a_head_that_is_too_slow_is_answered_with_408() {
    simulated(|| async {
        beside(serve(listener().await?, path), async {
            let mut client = Client::connect().await?;
            // The time between requests does not count.
            client.get("/").await?;
            sleep(seconds(50)).await;
            let begun = now();
            // A byte a second: each one is progress, and yet it takes too long.
            let head = "GET / HTTP/1.1\r\nhost: server\r\nslow: xxxxxxxxxxx";
            for byte in head.chars() {
                if client.send(&byte.to_string()).await.is_err() || now() - begun > seconds(11) {
                    break;
                }
                sleep(seconds(1)).await;
            }
            let answer = client.answer().await?;
            assert_eq!(answer.status, 408);
            assert!(answer.head.contains("connection: close"), "{answer:?}");
            assert_eq!(client.rest().await, "");
            Ok(())
        })
        .await
    });
}

#[test]
fn a_slow_head_behind_a_pipelined_request_is_answered_with_408() {
    simulated(|| async {
        beside(serve(listener().await?, path), async {
            let mut client = Client::connect().await?;
            // The first round finds the connection new, and the second one finds it busy.
            for _ in 0..2 {
                client.get("/0").await?;
            }
            client.send("GET /1 HTTP/1.1\r\nhost: server\r\n\r\nGET /2 HTTP/1.1\r\nhost:").await?;
            assert_eq!(client.answer().await?.body, "/1");
            let begun = now();
            assert_eq!(client.answer().await?.status, 408);
            // The limit for a request head, plus up to one second of waiting on a busy connection.
            let took = now() - begun;
            assert!(took >= seconds(9) && took < seconds(12), "{took:?}");
            Ok(())
        })
        .await
    });
}

#[test]
fn a_client_that_says_nothing_is_closed() {
    simulated(|| async {
        beside(serve(listener().await?, path), async {
            let (mut silent, begun) = (Client::connect().await?, now());
            assert_eq!(silent.rest().await, "");
            assert_eq!((now() - begun).as_secs(), 10);
            Ok(())
        })
        .await
    });
}

#[test]
fn a_body_that_is_too_large_is_answered_with_413() {
    simulated(|| async {
        beside(serve(listener().await?, echo).limits(Limits::new().body_bytes(10)), async {
            let mut announced = Client::connect().await?;
            announced.send("POST / HTTP/1.1\r\nhost: s\r\ncontent-length: 11\r\n\r\n").await?;
            assert_eq!(announced.answer().await?.status, 413);
            let mut counted = Client::connect().await?;
            let chunks = "6\r\nhello \r\n5\r\nworld\r\n0\r\n\r\n";
            counted
                .send(&format!("POST / HTTP/1.1\r\nhost: s\r\ntransfer-encoding: chunked\r\n\r\n{chunks}"))
                .await?;
            assert_eq!(counted.answer().await?.status, 413);
            let mut fits = Client::connect().await?;
            fits.send("POST / HTTP/1.1\r\nhost: s\r\ncontent-length: 10\r\n\r\nhelloworld").await?;
            assert_eq!(fits.answer().await?.body, "helloworld");
            scope(async |s| {
                let client = http2(&s, Client::connect().await?.stream).await?;
                let request =
                    Request::post("http://server/").body(Full::new(Bytes::from("hello world"))).unwrap();
                assert_eq!(send(&client, request).await?.0, StatusCode::PAYLOAD_TOO_LARGE);
                Ok(())
            })
            .await
        })
        .await
    });
}

#[test]
fn a_client_that_waits_for_100_is_refused_before_it_sends() {
    simulated(|| async {
        beside(serve(listener().await?, echo).limits(Limits::new().body_bytes(10)), async {
            let head = "POST / HTTP/1.1\r\nhost: s\r\nexpect: 100-continue\r\n";
            let mut client = Client::connect().await?;
            client.send(&format!("{head}content-length: 5\r\n\r\n")).await?;
            assert_eq!(client.answer().await?.status, 100);
            client.send("hello").await?;
            assert_eq!(client.answer().await?.body, "hello");
            client.send(&format!("{head}content-length: 11\r\n\r\n")).await?;
            assert_eq!(client.answer().await?.status, 413);
            Ok(())
        })
        .await
    });
}

#[test]
fn a_body_that_is_too_slow_is_answered_with_408() {
    simulated(|| async {
        beside(serve(listener().await?, echo).limits(Limits::new().body_time(seconds(5))), async {
            let (mut client, begun) = (Client::connect().await?, now());
            client.send("POST / HTTP/1.1\r\nhost: s\r\ncontent-length: 5\r\n\r\nhell").await?;
            assert_eq!(client.answer().await?.status, 408);
            assert_eq!((now() - begun).as_secs(), 5);
            Ok(())
        })
        .await
    });
}

#[test]
fn a_request_beyond_the_bound_is_answered_with_503() {
    simulated(|| async {
        static BEGUN: Event = Event::new();
        static GO_ON: Event = Event::new();
        BEGUN.reset();
        GO_ON.reset();
        let wait = async |_: Request<RequestBody>| {
            BEGUN.set();
            GO_ON.wait().await;
            io::Result::Ok(Response::new(String::new()))
        };
        beside(serve(listener().await?, wait).limits(Limits::new().requests(1)), async {
            let (mut first, mut second) = (Client::connect().await?, Client::connect().await?);
            first.send("GET / HTTP/1.1\r\nhost: s\r\n\r\n").await?;
            BEGUN.wait().await;
            assert_eq!(second.get("/").await?.status, 503);
            GO_ON.set();
            assert_eq!(first.answer().await?.status, 200);
            // The place is free again.
            assert_eq!(second.get("/").await?.status, 200);
            Ok(())
        })
        .await
    });
}

#[test]
fn an_idle_connection_is_closed_by_both_protocols() {
    simulated(|| async {
        let slow = async |_: Request<RequestBody>| {
            sleep(seconds(100)).await;
            io::Result::Ok(Response::new(String::new()))
        };
        beside(serve(listener().await?, slow).limits(Limits::new().idle_time(seconds(20))), async {
            let mut client = Client::connect().await?;
            // A request that takes longer is not idle.
            assert_eq!(client.get("/").await?.status, 200);
            let begun = now();
            assert_eq!(client.rest().await, "");
            assert_eq!((now() - begun).as_secs(), 20);
            scope(async |s| {
                let mut client = http2(&s, Client::connect().await?.stream).await?;
                assert_eq!(ask(&client, "/").await?.0, StatusCode::OK);
                sleep(seconds(19)).await;
                assert!(client.ready().await.is_ok());
                sleep(seconds(2)).await;
                assert!(client.ready().await.is_err());
                Ok(())
            })
            .await
        })
        .await
    });
}

#[test]
fn a_client_that_does_not_read_is_cut_off() {
    simulated(|| async {
        let log = crate::harness::Log::default();
        let ended = log.clone();
        let large = async |_: Request<RequestBody>| {
            io::Result::Ok(Response::new(Full::new(Bytes::from(vec![b'x'; 1_000_000]))))
        };
        let begun = now();
        let server = serve(listener().await?, large).report(move |report| {
            let why = report.to_string();
            ended.add(format!(
                "{:?} {}",
                now() - begun,
                why.ends_with("the client has read nothing for 30s")
            ));
        });
        beside(server, async {
            let client = Client::connect().await?;
            client.send("GET / HTTP/1.1\r\nhost: s\r\n\r\n").await?;
            sleep(seconds(60)).await;
            Ok(())
        })
        .await?;
        assert_eq!(log.lines(), ["30s true"]);
        Ok(())
    });
}

#[test]
fn a_stream_whose_client_gives_no_window_is_reset_and_others_go_on() {
    simulated(|| async {
        let log = crate::harness::Log::default();
        let ended = log.clone();
        let large = async |request: Request<RequestBody>| {
            let (chunks, size) = if request.uri().path() == "/large" { (20, 10_000) } else { (1, 5) };
            io::Result::Ok(Response::new(streamed(async move |body| {
                for _ in 0..chunks {
                    body.send(vec![b'x'; size]).await?;
                }
                io::Result::Ok(())
            })))
        };
        let server = serve(listener().await?, large).on_request(move |record| {
            ended.add(format!("{} {} s", record.uri.path(), record.took.as_secs()));
        });
        beside(server, async {
            scope(async |s| {
                let client = http2(&s, Client::connect().await?.stream).await?;
                let request = Request::get("http://server/large").body(Full::default()).unwrap();
                // Held, and not read: there is no window beyond the first.
                let answer = client.clone().send_request(request).await.map_err(io::Error::other)?;
                sleep(seconds(31)).await;
                let rest = http_body_util::BodyExt::collect(answer.into_body()).await;
                assert!(rest.is_err(), "the stream was reset");
                assert_eq!(ask(&client, "/small").await?.1, "xxxxx");
                Ok(())
            })
            .await
        })
        .await?;
        assert_eq!(log.lines(), ["/large 30 s", "/small 0 s"]);
        Ok(())
    });
}

#[test]
fn limits_can_be_turned_off() {
    simulated(|| async {
        let (no_limit, for_ever) = (usize::MAX, std::time::Duration::MAX);
        let limits =
            Limits::new().requests(no_limit).header_bytes(no_limit).headers(no_limit).streams(u32::MAX);
        let limits = limits.header_time(for_ever).body_bytes(u64::MAX).body_time(for_ever);
        let limits = limits.idle_time(for_ever).write_time(for_ever);
        beside(serve(listener().await?, echo).limits(limits).request_time(for_ever), async {
            let mut client = Client::connect().await?;
            let fields: String = (0..1000).map(|n| format!("field-{n}: x\r\n")).collect();
            client
                .send(&format!("POST / HTTP/1.1\r\nhost: s\r\ncontent-length: 5\r\n{fields}\r\nhel"))
                .await?;
            sleep(seconds(10_000)).await;
            client.send("lo").await?;
            assert_eq!(client.answer().await?.body, "hello");
            sleep(seconds(10_000)).await;
            scope(async |s| {
                let client = http2(&s, Client::connect().await?.stream).await?;
                let request =
                    Request::post("http://server/").body(Full::new(Bytes::from("hello world"))).unwrap();
                assert_eq!(send(&client, request).await?.1, "hello world");
                Ok(())
            })
            .await
        })
        .await
    });
}
