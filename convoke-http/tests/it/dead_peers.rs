//! Clients that vanish without a word while they are answered.

use std::io;
use std::time::Duration;

use convoke::net::TcpStream;
use convoke::prelude::*;
use convoke::sim::explore_seeds;
use convoke_http::{Limits, RequestBody, serve};
use http::{Request, Response};

use crate::harness::{Client, Log, Transaction, ask, http2, seconds};

/// Works for an hour in a transaction.
async fn server(probe_time: Duration, log: Log) -> io::Result<()> {
    let work = move |_: Request<RequestBody>| {
        let log = log.clone();
        async move {
            log.add("begun");
            using(Transaction(log), async |_| sleep(seconds(3600)).await).await;
            io::Result::Ok(Response::new(String::new()))
        }
    };
    serve("0.0.0.0:80", work).limits(Limits::new().probe_time(probe_time)).report(|_| ()).await
}

async fn client(by_http2: bool) -> io::Result<()> {
    // The server starts at the same time.
    sleep(Duration::from_millis(500)).await;
    let stream = TcpStream::connect("server:80").await?;
    if !by_http2 {
        let client = Client::new(stream);
        client.send("GET / HTTP/1.1\r\nhost: server\r\n\r\n").await?;
        sleep(seconds(10_000)).await;
        drop(client);
        return Ok(());
    }
    scope(async |s| {
        let client = http2(&s, stream).await?;
        _ = timeout(seconds(10_000), ask(&client, "/")).await;
        Ok(())
    })
    .await
}

/// Lets a client vanish at 2 s. The handler has ended at `until`, or runs on.
fn vanish(by_http2: bool, probe_time: Duration, until: u64, ends: bool) {
    explore_seeds(0..10, move |sim| {
        let log = Log::default();
        let lines = log.clone();
        sim.host("server").daemon().run_with(log, move |log| server(probe_time, log));
        let asking = sim.host("client");
        if by_http2 {
            asking.daemon().run(move || client(true));
            sim.at(seconds(2), |sim| sim.partition("server", "client"));
        } else {
            asking.daemon().run(move || client(false));
            sim.at(seconds(2), |sim| sim.crash("client"));
            sim.at(seconds(3), |sim| sim.restart("client"));
        }
        // The simulation ends with its clients.
        sim.host("clock").run(move || async move {
            sleep(seconds(until)).await;
            io::Result::Ok(())
        });
        sim.at(seconds(until) - Duration::from_millis(1), move |_| {
            let lines = lines.lines();
            let has_ended = lines.iter().any(|line| line.starts_with("closed: "));
            assert_eq!((&*lines[0], has_ended), ("begun", ends), "{lines:?}");
        });
    });
}

#[test]
fn a_client_of_http2_that_is_cut_off_is_noticed_while_its_request_runs() {
    // Thirty seconds of silence, thirty to answer, and a second for the clean-up.
    vanish(true, convoke_http::PROBE_TIME, 65, true);
    vanish(true, seconds(5), 15, true);
}

#[test]
fn a_client_of_http1_whose_machine_has_gone_is_noticed_while_its_request_runs() {
    vanish(false, convoke_http::PROBE_TIME, 65, true);
    vanish(false, seconds(5), 15, true);
}

#[test]
fn nobody_is_asked_where_probes_are_turned_off() {
    vanish(true, Duration::MAX, 600, false);
}
