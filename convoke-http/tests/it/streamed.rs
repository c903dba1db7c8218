//! Bodies that a task writes while they are sent.

use std::future::IntoFuture;
use std::io;

use convoke::prelude::*;
use convoke::time::now;
use convoke_http::{Connection, RequestBody, StreamedBody, serve, streamed};
use http::{Request, Response};

use crate::harness::{Client, Log, Transaction, ask, beside, http2, listener, seconds, simulated, stop};

/// Sends a number each second, up to that in the path, in a transaction. After three it fails in the way that the query
/// names.
async fn count(request: Request<RequestBody>, log: Log) -> io::Result<Response<StreamedBody>> {
    let last: u32 = request.uri().path()[1..].parse().map_err(io::Error::other)?;
    let failure = request.uri().query().unwrap_or_default().to_owned();
    let body = streamed(async move |body| {
        using(Transaction(log), async |_| {
            for number in 1..=last {
                body.send(number.to_string()).await?;
                match (number, &*failure) {
                    (3, "error") => return Err(io::Error::other("no more numbers")),
                    (3, "panic") => panic!("a mistake of ours"),
                    _ => sleep(seconds(1)).await,
                }
            }
            Ok(())
        })
        .await
    });
    Ok(Response::new(body))
}

#[test]
fn a_body_is_sent_while_it_is_written_by_both_protocols() {
    simulated(|| async {
        let log = Log::default();
        let working = log.clone();
        beside(serve(listener().await?, move |request| count(request, working.clone())), async {
            let mut client = Client::connect().await?;
            client.send("GET /3 HTTP/1.1\r\nhost: s\r\nconnection: close\r\n\r\n").await?;
            let head = client.answer().await?.head;
            assert!(head.contains("transfer-encoding: chunked"), "{head}");
            // It ends after the clean-up of its producer.
            assert_eq!(client.rest().await, "1\r\n1\r\n1\r\n2\r\n1\r\n3\r\n0\r\n\r\n");
            assert_eq!(log.lines(), ["closed: the body returned a value"]);
            scope(async |s| {
                let client = http2(&s, Client::connect().await?.stream).await?;
                assert_eq!(ask(&client, "/5").await?.1, "12345");
                Ok(())
            })
            .await
        })
        .await
    });
}

#[test]
fn a_body_whose_producer_fails_is_not_taken_for_a_whole_one() {
    simulated(|| async {
        let log = Log::default();
        let (working, reports) = (log.clone(), log.clone());
        let server = serve(listener().await?, move |request| count(request, working.clone()))
            .report(move |report| reports.add(report.to_string().rsplit_once(": ").unwrap().1));
        beside(server, async {
            for failure in ["error", "panic"] {
                let mut client = Client::connect().await?;
                client.send(&format!("GET /5?{failure} HTTP/1.1\r\nhost: s\r\n\r\n")).await?;
                client.answer().await?;
                let rest = client.rest().await;
                assert!(rest.ends_with("3\r\n") && !rest.contains("0\r\n"), "{rest:?}");
            }
            Ok(())
        })
        .await?;
        let closed = ["closed: the body failed", "closed: the body panicked (a mistake of ours)"];
        assert_eq!(log.lines(), [closed[0], "no more numbers", closed[1], "a mistake of ours"]);
        Ok(())
    });
}

#[test]
fn a_client_that_hangs_up_stops_the_producer_whose_clean_up_is_awaited() {
    simulated(|| async {
        let log = Log::default();
        let working = log.clone();
        beside(serve(listener().await?, move |request| count(request, working.clone())), async {
            let mut client = Client::connect().await?;
            client.send("GET /100 HTTP/1.1\r\nhost: s\r\n\r\n").await?;
            client.answer().await?;
            sleep(seconds(2)).await;
            drop(client);
            sleep(seconds(10)).await;
            assert_eq!(log.lines(), ["closed: the body was stopped (its result is not wanted any more)"]);
            Ok(())
        })
        .await
    });
}

#[test]
fn a_producer_goes_on_in_a_drain_and_hears_of_it() {
    simulated(|| async {
        let listener = listener().await?;
        let events = async |_: Request<RequestBody>| {
            io::Result::Ok(Response::new(streamed(async |body| {
                body.send("hello ").await?;
                Connection::current().unwrap().drain().begun().await;
                sleep(seconds(2)).await;
                body.send("bye").await?;
                io::Result::Ok(())
            })))
        };
        scope(async |s| {
            let server = s.spawn_future(serve(listener, events).into_future());
            let mut client = Client::connect().await?;
            client.send("GET / HTTP/1.1\r\nhost: s\r\n\r\n").await?;
            client.answer().await?;
            sleep(seconds(100)).await;
            let begun = now();
            let (_, rest) = join((stop(server), async { (client.rest().await, drop(client)).0 })).await;
            assert_eq!(rest, "6\r\nhello \r\n3\r\nbye\r\n0\r\n\r\n");
            assert_eq!(now() - begun, seconds(2));
            io::Result::Ok(())
        })
        .await
    });
}
