//! The end of a server: what was begun is finished, and nothing else is begun.

use std::future::IntoFuture;
use std::io;
use std::time::Duration;

use convoke::net::TcpStream;
use convoke::prelude::*;
use convoke::time::now;
use convoke_http::{Connection, RequestBody, serve};
use http::{Request, Response, StatusCode};

use crate::harness::{Client, Log, Transaction, ask, http2, listener, path, seconds, simulated, stop};

/// Answers after five seconds.
async fn slow(_: Request<RequestBody>) -> io::Result<Response<String>> {
    sleep(seconds(5)).await;
    Ok(Response::new("finished".to_owned()))
}

#[test]
fn a_request_that_has_begun_is_answered_and_its_connection_closed() {
    simulated(|| async {
        let listener = listener().await?;
        scope(async |s| {
            let server = s.spawn_future(serve(listener, slow).into_future());
            let mut client = Client::connect().await?;
            client.send("GET / HTTP/1.1\r\nhost: s\r\n\r\n").await?;
            sleep(seconds(1)).await;
            let (stopping, asking) = (stop(server), async {
                let begun = now();
                let answer = client.answer().await.unwrap();
                assert_eq!((&*answer.body, (now() - begun).as_secs()), ("finished", 4));
                assert!(answer.head.contains("connection: close"), "{answer:?}");
                assert_eq!(client.rest().await, "");
            });
            join((stopping, asking)).await;
            Ok(())
        })
        .await
    });
}

#[test]
fn the_listener_and_idle_connections_close_at_once() {
    simulated(|| async {
        let listener = listener().await?;
        scope(async |s| {
            let server = s.spawn_future(serve(listener, slow).into_future());
            let (mut fresh, mut idle, busy) =
                (Client::connect().await?, Client::connect().await?, Client::connect().await?);
            assert_eq!(idle.get("/").await?.body, "finished");
            busy.send("GET / HTTP/1.1\r\nhost: s\r\n\r\n").await?;
            sleep(seconds(1)).await;
            let (stopping, asking) = (stop(server), async {
                let begun = now();
                assert_eq!((fresh.rest().await, idle.rest().await), (String::new(), String::new()));
                assert_eq!(now() - begun, seconds(0));
                // The busy one is still answered, and nobody else is. The listener closes in the same moment,
                // before or after the connections.
                sleep(Duration::from_millis(1)).await;
                assert!(TcpStream::connect("127.0.0.1:80").await.is_err());
            });
            join((stopping, asking)).await;
            drop(busy);
            Ok(())
        })
        .await
    });
}

#[test]
fn streams_of_http2_are_answered_and_no_more_are_begun() {
    simulated(|| async {
        let listener = listener().await?;
        scope(async |s| {
            let server = s.spawn_future(serve(listener, slow).into_future());
            let client = http2(&s, Client::connect().await?.stream).await?;
            let begun = async { assert_eq!(ask(&client, "/").await.unwrap().1, "finished") };
            let stopping = async {
                sleep(seconds(1)).await;
                stop(server).await;
            };
            let late = async {
                sleep(seconds(2)).await;
                assert!(ask(&client, "/late").await.is_err());
            };
            join((begun, stopping, late)).await;
            Ok(())
        })
        .await
    });
}

#[test]
fn after_the_grace_period_requests_are_stopped_and_their_clean_up_is_awaited() {
    simulated(|| async {
        let (listener, log) = (listener().await?, Log::default());
        let (working, reports) = (log.clone(), log.clone());
        let endless = move |_: Request<RequestBody>| {
            let log = working.clone();
            async move {
                using(Transaction(log), async |_| sleep(seconds(3600)).await).await;
                io::Result::Ok(Response::new(String::new()))
            }
        };
        let server = serve(listener, endless).grace(seconds(3)).report(move |report| {
            let line = report.to_string();
            reports.add(line.split_once("connection from ").unwrap().1.split_once(": ").unwrap().1);
        });
        scope(async |s| {
            let server = s.spawn_future(server.into_future());
            let mut client = Client::connect().await?;
            client.send("GET / HTTP/1.1\r\nhost: s\r\n\r\n").await?;
            sleep(seconds(1)).await;
            let begun = now();
            let (_, rest) = join((stop(server), async { (client.rest().await, drop(client)).0 })).await;
            assert_eq!((now() - begun, &*rest), (seconds(4), ""), "three of grace, and one to close");
            io::Result::Ok(())
        })
        .await?;
        let cut = "1 requests had not ended 3s after the stop request, and were asked to stop";
        assert_eq!(log.lines(), [cut, "closed: the body was stopped (shutting down)"]);
        Ok(())
    });
}

#[test]
fn probes_and_long_polls_hear_of_the_drain() {
    simulated(|| async {
        let listener = listener().await?;
        let poll = async |_: Request<RequestBody>| {
            let drain = Connection::current().unwrap().drain();
            assert!(!drain.has_begun());
            drain.begun().await;
            assert!(drain.has_begun());
            let mut answer = Response::new("ask another server".to_owned());
            *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            io::Result::Ok(answer)
        };
        scope(async |s| {
            let server = s.spawn_future(serve(listener, poll).into_future());
            let mut client = Client::connect().await?;
            client.send("GET / HTTP/1.1\r\nhost: s\r\n\r\n").await?;
            sleep(seconds(100)).await;
            let (stopping, asking) = (stop(server), async {
                let begun = now();
                let answer = client.answer().await.unwrap();
                assert_eq!((answer.status, &*answer.body), (503, "ask another server"));
                assert_eq!(now() - begun, seconds(0));
            });
            join((stopping, asking)).await;
            Ok(())
        })
        .await
    });
}

#[test]
fn a_client_whose_request_is_incomplete_is_waited_for_in_the_grace_period_only() {
    simulated(|| async {
        let listener = listener().await?;
        scope(async |s| {
            let server = s.spawn_future(serve(listener, path).grace(seconds(3)).into_future());
            let mut client = Client::connect().await?;
            client.send("GET / HTTP/1.1\r\n").await?;
            sleep(seconds(1)).await;
            let begun = now();
            let (_, rest) = join((stop(server), async { (client.rest().await, drop(client)).0 })).await;
            assert_eq!((now() - begun, &*rest), (seconds(3), ""));
            Ok(())
        })
        .await
    });
}

/// Says whether the server takes more clients; any other page after three seconds.
async fn probed(request: Request<RequestBody>) -> io::Result<Response<String>> {
    let mut answer = Response::new("answered".to_owned());
    match request.uri().path() {
        "/ready" if Connection::current().unwrap().drain().has_begun() => {
            *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        }
        "/ready" => {}
        "/drain" => Connection::current().unwrap().drain().begun().await,
        _ => sleep(seconds(3)).await,
    }
    Ok(answer)
}

#[test]
fn a_drain_that_is_announced_is_told_to_readiness_probes_before_it_begins() {
    simulated(|| async {
        let listener = listener().await?;
        scope(async |s| {
            let server = serve(listener, probed).announce(seconds(10)).grace(seconds(5));
            let server = s.spawn_future(server.into_future());
            let (mut early, mut poll) = (Client::connect().await?, Client::connect().await?);
            assert_eq!(early.get("/ready").await?.status, 200);
            poll.send("GET /drain HTTP/1.1\r\nhost: s\r\n\r\n").await?;
            sleep(seconds(1)).await;
            let begun = now();
            let clients = async {
                // Waits for the drain hear of it at once. Everything else is as before, also for new clients.
                assert_eq!((poll.answer().await?.status, now() - begun), (200, seconds(0)));
                for second in 1..10 {
                    assert_eq!(Client::connect().await?.get("/ready").await?.status, 503);
                    assert_eq!(early.get("/ready").await?.status, 503);
                    sleep(seconds(second).saturating_sub(now() - begun)).await;
                }
                let mut late = Client::connect().await?;
                let answer = late.get("/page").await?;
                assert_eq!(
                    (answer.status, now() - begun),
                    (200, seconds(12)),
                    "it is drained, and not cut off"
                );
                assert!(TcpStream::connect("127.0.0.1:80").await.is_err(), "the listener is closed");
                assert_eq!((early.rest().await, late.rest().await), (String::new(), String::new()));
                io::Result::Ok(())
            };
            join((stop(server), clients)).await.1?;
            assert_eq!(now() - begun, seconds(12));
            Ok(())
        })
        .await
    });
}
