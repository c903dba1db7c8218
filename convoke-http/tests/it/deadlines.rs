//! The request time: a deadline that everything below the handler inherits.

use std::io;
use std::time::Duration;

use convoke::env::current;
use convoke::prelude::*;
use convoke::time::now;
use convoke_http::{RequestBody, serve};
use http::{Request, Response};

use crate::harness::{Client, Log, Transaction, beside, listener, seconds, simulated};

#[test]
fn a_deadline_is_seen_by_children_of_the_handler() {
    simulated(|| async {
        let handler = async |_: Request<RequestBody>| {
            let below = scope(async |s| s.spawn_future(async { current::deadline() }).await).await;
            let left = below.map(|deadline| deadline - now());
            io::Result::Ok(Response::new(format!("{left:?}")))
        };
        beside(serve(listener().await?, handler).request_time(seconds(7)), async {
            let answer = Client::connect().await?.get("/").await?;
            assert_eq!(answer.body, format!("{:?}", Some(Duration::from_secs(7))));
            Ok(())
        })
        .await
    });
}

#[test]
fn a_handler_that_is_too_slow_is_stopped_cleans_up_and_is_answered_with_503() {
    simulated(|| async {
        let log = Log::default();
        let (working, reports) = (log.clone(), log.clone());
        let endless = move |_: Request<RequestBody>| {
            let log = working.clone();
            async move {
                using(Transaction(log), async |_| {
                    // In a child of a child.
                    scope(async |s| s.spawn(async { sleep(seconds(3600)).await })).await
                })
                .await;
                io::Result::Ok(Response::new(String::new()))
            }
        };
        let server = serve(listener().await?, endless)
            .request_time(seconds(7))
            .report(move |report| reports.add(report.to_string().split_once(": ").unwrap().1));
        beside(server, async {
            let (mut client, begun) = (Client::connect().await?, now());
            assert_eq!(client.get("/").await?.status, 503);
            assert_eq!((now() - begun).as_secs(), 8, "seven, and one to close");
            Ok(())
        })
        .await?;
        let stopped = "stopped, since it had not been answered after 7s";
        assert_eq!(log.lines(), ["closed: the body was stopped (deadline passed)", stopped]);
        Ok(())
    });
}
