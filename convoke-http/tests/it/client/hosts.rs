//! The client on a simulated host, while servers crash and are cut off.

use std::io;

use convoke::prelude::*;
use convoke::retry::Backoff;
use convoke::sim::{Sim, explore_seeds, note, run_twice};
use convoke::time::now;
use convoke_http::client::ClientBuilder;
use convoke_http::{Client, RequestBody, serve};
use http::header::DATE;
use http::{Request, Response};

use crate::harness::{Log, seconds};

/// Answers after a second.
async fn slow(request: Request<RequestBody>) -> io::Result<Response<String>> {
    sleep(seconds(1)).await;
    // The server's own date is by the clock of the machine. By HTTP/2, a message is shorter if the date is as before.
    let answer = Response::builder().header(DATE, "Thu, 01 Jan 1970 00:00:00 GMT");
    answer.body(request.uri().path().to_owned()).map_err(io::Error::other)
}

/// Asks for ten pages, and writes down how long each took.
async fn asking(builder: ClientBuilder, log: Log) -> io::Result<()> {
    builder
        .head_time(seconds(4))
        .connect_time(seconds(4))
        .retry(Backoff::constant(seconds(1)).jitter(0.5).up_to(30))
        .run(async |client| {
            for page in 0..10 {
                let begun = now();
                let path = format!("/{page}");
                // A request that was sent, and is not answered in time, is for the program to repeat.
                let text = convoke::retry::retry_if(
                    Backoff::constant(seconds(1)),
                    |error: &convoke_http::ClientError| error.is_timeout(),
                    async || client.get(format!("http://server{path}")).send().await?.text().await,
                );
                assert_eq!(text.await?, path);
                note(format!("{path} after {:?}", now() - begun));
                log.add(&path);
                sleep(seconds(1)).await;
            }
            Ok(())
        })
        .await
}

fn trouble(sim: &mut Sim, builder: fn() -> ClientBuilder) -> Log {
    let log = Log::default();
    sim.host("server").daemon().run(async || serve("0.0.0.0:80", slow).report(note).await);
    sim.host("client").run_with(log.clone(), move |log| asking(builder(), log));
    sim.at(seconds(4), |sim| sim.stop("server"));
    sim.at(seconds(7), |sim| sim.restart("server"));
    sim.at(seconds(11), |sim| sim.crash("server"));
    sim.at(seconds(14), |sim| sim.restart("server"));
    sim.at(seconds(18), |sim| sim.partition("server", "client"));
    sim.at(seconds(40), |sim| sim.heal("server", "client"));
    log
}

const BUILDERS: [fn() -> ClientBuilder; 2] = [Client::builder, || Client::builder().http2_only()];

#[test]
fn every_page_arrives_although_the_server_is_drained_crashes_and_is_cut_off() {
    for builder in BUILDERS {
        let logs = std::sync::Mutex::new(Vec::new());
        explore_seeds(0..20, |sim| logs.lock().unwrap().push(trouble(sim, builder)));
        for log in logs.into_inner().unwrap() {
            assert_eq!(log.lines().len(), 10, "{:?}", log.lines());
        }
    }
}

#[test]
fn the_same_seed_is_the_same_run() {
    for builder in BUILDERS {
        for seed in 0..3 {
            run_twice(seed, |sim| _ = trouble(sim, builder));
        }
    }
}
