//! Clients that go while they are answered.

use std::io;
use std::time::Duration;

use convoke::prelude::*;
use convoke::sync::Event;
use convoke_http::{OnHangUp, RequestBody, serve};
use http::{Request, Response};

use crate::harness::{Client, Log, Transaction, ask, beside, http2, listener, seconds, simulated};

/// Works for ten seconds in a transaction.
async fn work(log: Log) -> io::Result<Response<String>> {
    log.add("begun");
    using(Transaction(log), async |_| sleep(seconds(10)).await).await;
    Ok(Response::new("done".to_owned()))
}

/// Lets a client hang up while it is answered.
fn hang_up(option: OnHangUp, by_http2: bool) -> Log {
    let log = Log::default();
    let all = log.clone();
    simulated(move || {
        let log = all.clone();
        async move {
            let working = log.clone();
            let server = serve(listener().await?, move |_: Request<RequestBody>| work(working.clone()));
            let server = server.on_hang_up(option);
            beside(server, async {
                if by_http2 {
                    scope(async |s| {
                        let client = http2(&s, Client::connect().await?.stream).await?;
                        // The stream is reset. The connection stays.
                        let asked = timeout(seconds(2), ask(&client, "/")).await;
                        assert!(asked.is_err());
                        sleep(seconds(20)).await;
                        Ok(())
                    })
                    .await
                } else {
                    let client = Client::connect().await?;
                    client.send("GET / HTTP/1.1\r\nhost: s\r\n\r\n").await?;
                    sleep(seconds(2)).await;
                    drop(client);
                    sleep(seconds(20)).await;
                    Ok(())
                }
            })
            .await
        }
    });
    log
}

#[test]
fn a_client_that_hangs_up_stops_its_handler_whose_clean_up_is_awaited() {
    for by_http2 in [false, true] {
        let lines = hang_up(OnHangUp::Stop, by_http2).lines();
        for lines in lines.chunks(2) {
            assert_eq!(
                lines,
                ["begun", "closed: the body was stopped (its result is not wanted any more)"],
                "HTTP/2: {by_http2}"
            );
        }
        assert!(!lines.is_empty());
    }
}

#[test]
fn a_handler_finishes_without_its_client_if_the_server_says_so() {
    for by_http2 in [false, true] {
        let lines = hang_up(OnHangUp::Finish, by_http2).lines();
        for lines in lines.chunks(2) {
            assert_eq!(lines, ["begun", "closed: the body returned a value"], "HTTP/2: {by_http2}");
        }
        assert!(!lines.is_empty());
    }
}

#[test]
fn a_request_counts_until_the_clean_up_of_its_handler_has_ended() {
    simulated(|| async {
        static BEGUN: Event = Event::new();
        BEGUN.reset();
        let log = Log::default();
        let (working, records) = (log.clone(), log.clone());
        let server = serve(listener().await?, move |_: Request<RequestBody>| {
            BEGUN.set();
            work(working.clone())
        });
        let server = server.limits(convoke_http::Limits::new().requests(1)).on_request(move |record| {
            records.add(format!("status {:?}", record.status.map(|status| status.as_u16())))
        });
        beside(server, async {
            let client = Client::connect().await?;
            client.send("GET / HTTP/1.1\r\nhost: s\r\n\r\n").await?;
            BEGUN.wait().await;
            drop(client);
            sleep(Duration::from_millis(500)).await;
            // The handler still closes its transaction.
            assert_eq!(Client::connect().await?.get("/").await?.status, 503);
            sleep(seconds(1)).await;
            Ok(())
        })
        .await?;
        let lines = [
            "begun",
            "status Some(503)",
            "closed: the body was stopped (its result is not wanted any more)",
            "status None",
        ];
        assert_eq!(log.lines(), lines);
        Ok(())
    });
}
