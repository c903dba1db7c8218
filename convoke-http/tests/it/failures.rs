//! Handlers that panic, fail or stop: one request has failed, and no other.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use convoke::prelude::*;
use convoke::task::stopped;
use convoke_http::{Report, RequestBody, serve};
use http::{Request, Response, StatusCode};
use hyper::body::{Body, Frame};

use crate::harness::{Client, Log, ask, beside, http2, listener, seconds, simulated};

/// Fails in the way that the path names.
async fn fail(request: Request<RequestBody>) -> io::Result<Response<String>> {
    match request.uri().path() {
        "/panic" => panic!("a mistake of ours"),
        "/error" => Err(io::Error::other("no database")),
        "/stop" => stopped().await,
        "/slow" => {
            sleep(seconds(5)).await;
            Ok(Response::new("slow".to_owned()))
        }
        _ => Ok(Response::new("fine".to_owned())),
    }
}

const REPORTS: [&str; 2] =
    ["GET /panic from 127.0.0.1: panicked: a mistake of ours", "GET /error from 127.0.0.1: no database"];

/// Returns a function that writes reports into the log, without the port of the client.
fn reporting(log: &Log) -> impl Fn(Report) + Send + Sync + 'static {
    let log = log.clone();
    move |report: Report| {
        // A client that closes its connection before it has read everything resets it.
        if report.is_about_client() {
            return;
        }
        let line = report.to_string();
        let (start, rest) = line.split_once("127.0.0.1:").unwrap();
        log.add(format!("{start}127.0.0.1{}", rest.trim_start_matches(|c: char| c.is_ascii_digit())));
    }
}

#[test]
fn a_panic_and_an_error_are_500_and_reported_and_the_connection_goes_on() {
    simulated(|| async {
        let log = Log::default();
        beside(serve(listener().await?, fail).report(reporting(&log)), async {
            let mut client = Client::connect().await?;
            assert_eq!(client.get("/panic").await?.status, 500);
            assert_eq!(client.get("/error").await?.status, 500);
            assert_eq!(client.get("/stop").await?.status, 503);
            assert_eq!(client.get("/").await?.body, "fine");
            Ok(())
        })
        .await?;
        assert_eq!(log.lines(), REPORTS);
        Ok(())
    });
}

#[test]
fn other_streams_of_the_connection_go_on_after_a_panic() {
    simulated(|| async {
        let log = Log::default();
        beside(serve(listener().await?, fail).report(reporting(&log)), async {
            scope(async |s| {
                let client = http2(&s, Client::connect().await?.stream).await?;
                let slow = async { assert_eq!(ask(&client, "/slow").await.unwrap().1, "slow") };
                let failing = async {
                    assert_eq!(ask(&client, "/panic").await.unwrap().0, StatusCode::INTERNAL_SERVER_ERROR);
                    assert_eq!(ask(&client, "/error").await.unwrap().0, StatusCode::INTERNAL_SERVER_ERROR);
                    assert_eq!(ask(&client, "/stop").await.unwrap().0, StatusCode::SERVICE_UNAVAILABLE);
                };
                join((slow, failing)).await;
                Ok(())
            })
            .await
        })
        .await?;
        assert_eq!(log.lines(), REPORTS);
        Ok(())
    });
}

#[test]
fn clients_that_break_the_protocol_are_reported_as_such() {
    simulated(|| async {
        let log = Log::default();
        let seen = log.clone();
        let server = serve(listener().await?, fail).report(move |report| {
            assert!(report.is_about_client(), "{report}");
            seen.add("a bad client");
        });
        beside(server, async {
            let mut client = Client::connect().await?;
            client.send("nonsense\r\n\r\n").await?;
            assert!(client.rest().await.starts_with("HTTP/1.1 400"));
            Ok(())
        })
        .await?;
        assert_eq!(log.lines(), ["a bad client"]);
        Ok(())
    });
}

/// A body of the program that fails after its first chunk, in the way that the path names.
struct FailingBody {
    path: String,
    sent: bool,
}

impl Body for FailingBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if !std::mem::replace(&mut self.sent, true) {
            return Poll::Ready(Some(Ok(Frame::data(Bytes::from("first")))));
        }
        match &*self.path {
            "/panic" => panic!("a mistake of ours"),
            "/error" => Poll::Ready(Some(Err(io::Error::other("no disk")))),
            _ => Poll::Ready(None),
        }
    }
}

#[test]
fn a_body_that_panics_or_fails_is_reported_and_seen_to_be_incomplete_by_both_protocols() {
    simulated(|| async {
        let log = Log::default();
        let failing = async |request: Request<RequestBody>| {
            let path = request.uri().path().to_owned();
            io::Result::Ok(Response::new(FailingBody { path, sent: false }))
        };
        beside(serve(listener().await?, failing).report(reporting(&log)), async {
            for path in ["/panic", "/error"] {
                let mut client = Client::connect().await?;
                client.send(&format!("GET {path} HTTP/1.1\r\nhost: s\r\n\r\n")).await?;
                let rest = client.rest().await;
                // Hyper has not sent the head yet.
                assert_eq!(rest, "");
            }
            scope(async |s| {
                let client = http2(&s, Client::connect().await?.stream).await?;
                assert!(ask(&client, "/panic").await.is_err());
                assert!(ask(&client, "/error").await.is_err());
                assert_eq!(ask(&client, "/").await?.1, "first");
                Ok(())
            })
            .await
        })
        .await?;
        let panicked = "GET /panic from 127.0.0.1: the response is incomplete: panicked: a mistake of ours";
        let failed = "GET /error from 127.0.0.1: the response is incomplete: no disk";
        assert_eq!(log.lines(), [panicked, failed, panicked, failed]);
        Ok(())
    });
}

#[test]
fn a_response_that_cannot_be_sent_is_reported_as_a_mistake_of_the_server() {
    simulated(|| async {
        let log = Log::default();
        let wrong = async |_: Request<RequestBody>| {
            let mut answer = Response::new(String::new());
            *answer.status_mut() = StatusCode::PROCESSING;
            io::Result::Ok(answer)
        };
        let reports = log.clone();
        let server =
            serve(listener().await?, wrong).report(move |report| reports.add(report.is_about_client()));
        beside(server, async {
            assert_eq!(Client::connect().await?.get("/").await?.status, 500);
            Ok(())
        })
        .await?;
        assert_eq!(log.lines(), ["false"]);
        Ok(())
    });
}
