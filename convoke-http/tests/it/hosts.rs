//! The server on a simulated host of its own, unchanged, while the network and its host fail.

use std::io;
use std::time::Duration;

use convoke::net::TcpStream;
use convoke::prelude::*;
use convoke::sim::{Fault, Sim, explore_faults, explore_host_stops, explore_seeds, note, run_twice};
use convoke::time::now;
use convoke_http::{RequestBody, StreamedBody, serve, streamed};
use http::{Request, Response};

use crate::harness::{Client, Log, Transaction, ask, http2, seconds};

/// Answers after as many seconds as the path says, in a transaction.
async fn wait(request: Request<RequestBody>, log: Log) -> io::Result<Response<String>> {
    let time: u64 = request.uri().path()[1..].parse().map_err(io::Error::other)?;
    using(Transaction(log), async |_| sleep(seconds(time)).await).await;
    Ok(Response::new(format!("after {time} s")))
}

/// The program of the server: what it is on a real machine.
async fn server(log: Log) -> io::Result<()> {
    let records = log.clone();
    let working = log.clone();
    serve("0.0.0.0:80", move |request| wait(request, working.clone()))
        .on_request(move |record| {
            note(format!("{} {:?}", record.uri, record.status));
            records.add(format!("{} {:?}", record.uri, record.status.map(|status| status.as_u16())));
        })
        .report(note)
        .await
}

/// Asks until it is answered, and writes down what it took.
async fn client(log: Log) -> io::Result<()> {
    for path in ["/0", "/5", "/2", "/1"] {
        let begun = now();
        let attempts = convoke::retry::Backoff::constant(seconds(1));
        let answer = convoke::retry::retry(attempts, async || {
            let ask = async { Client::new(TcpStream::connect("server:80").await?).get(path).await };
            timeout(seconds(20), ask).await?
        });
        let answer = answer.await?;
        let line = format!("{path}: {} after {:?}", answer.body, now() - begun);
        note(&line);
        log.add(line);
    }
    Ok(())
}

/// A server that is drained, crashes and is cut off, while a client asks for four pages.
fn trouble(sim: &mut Sim) -> Log {
    let log = Log::default();
    sim.host("server").daemon().run_with(log.clone(), server);
    sim.host("client").run_with(log.clone(), client);
    sim.at(seconds(3), |sim| sim.stop("server"));
    sim.at(seconds(8), |sim| sim.restart("server"));
    sim.at(seconds(9), |sim| sim.crash("server"));
    sim.at(seconds(10), |sim| sim.restart("server"));
    sim.at(seconds(13), |sim| sim.partition("server", "client"));
    sim.at(seconds(15), |sim| sim.heal("server", "client"));
    log
}

#[test]
fn the_same_seed_is_the_same_run() {
    for seed in 0..5 {
        let report = run_twice(seed, |sim| _ = trouble(sim));
        assert!(report.elapsed() < Duration::from_secs(120), "{:?}", report.elapsed());
    }
}

#[test]
fn every_request_is_answered_although_the_server_is_drained_and_crashes() {
    let mut logs = Vec::new();
    let all = std::sync::Mutex::new(&mut logs);
    explore_seeds(0..30, |sim| all.lock().unwrap().push(trouble(sim)));
    for log in logs {
        let lines = log.lines();
        // The drained server has delivered what it had begun.
        assert!(lines.iter().any(|line| line == "/5 Some(200)"), "{lines:?}");
        for answer in ["/0: after 0 s", "/5: after 5 s", "/2: after 2 s", "/1: after 1 s"] {
            assert!(lines.iter().any(|line| line.starts_with(answer)), "{answer}: {lines:?}");
        }
        // Each handler that was answered has closed its transaction before. One that has crashed has not.
        let closed = lines.iter().filter(|line| line.starts_with("closed")).count();
        let answered = lines.iter().filter(|line| line.contains(" Some(200)")).count();
        assert_eq!(closed, answered, "{lines:?}");
    }
}

#[test]
fn a_client_that_is_cut_off_for_ever_ends_by_the_limits() {
    explore_seeds(0..10, |sim| {
        let log = Log::default();
        let lines = log.clone();
        sim.host("server").run_with(log, async |log| {
            let working = log.clone();
            let records = log.clone();
            let large = move |_: Request<RequestBody>| {
                working.add("asked");
                async { io::Result::Ok(Response::new("x".repeat(1_000_000))) }
            };
            let server =
                serve("0.0.0.0:80", large).report(move |report| records.add(report.is_about_client()));
            // A minute after the cut nothing is left of the connection.
            _ = timeout(seconds(62), server).await;
            Ok::<_, io::Error>(())
        });
        sim.host("client").run(|| async {
            let client = Client::new(TcpStream::connect("server:80").await?);
            client.send("GET / HTTP/1.1\r\nhost: server\r\n\r\n").await?;
            sleep(seconds(3600)).await;
            drop(client);
            io::Result::Ok(())
        });
        sim.at(seconds(2), |sim| sim.partition("server", "client"));
        sim.at(seconds(60), move |_| assert_eq!(lines.lines(), ["asked", "true"]));
    });
}

/// Writes two chunks, in a transaction. Another is around the handler itself.
async fn two_chunks(log: Log) -> io::Result<Response<StreamedBody>> {
    log.add("begun");
    using(Transaction(log.clone()), async |_| {
        log.add("begun");
        let writing = log.clone();
        let body = streamed(async move |body| {
            using(Transaction(writing), async |_| {
                for chunk in ["hello ", "world"] {
                    body.send(chunk).await?;
                    sleep(Duration::from_millis(1)).await;
                }
                io::Result::Ok(())
            })
            .await
        });
        Ok(Response::new(body))
    })
    .await
}

/// Asks by HTTP/1 and by HTTP/2.
async fn ask_twice() -> io::Result<()> {
    let mut client = Client::new(TcpStream::connect("server:80").await?);
    assert_eq!(client.get("/").await?.status, 200);
    drop(client);
    scope(async |s| {
        let client = http2(&s, TcpStream::connect("server:80").await?).await?;
        let (one, other) = try_join((ask(&client, "/1"), ask(&client, "/2"))).await?;
        // One that was cut off is an error, and not shorter.
        assert_eq!((&*one.1, &*other.1), ("hello world", "hello world"));
        Ok(())
    })
    .await
}

/// A client that asks by both protocols, and a server that ends after some time. Whatever happens to one of them, no
/// transaction is left open.
fn conversation(sim: &mut Sim) {
    let log = Log::default();
    sim.host("server").run_with(log.clone(), async |log| {
        let server = serve("0.0.0.0:80", move |_: Request<RequestBody>| two_chunks(log.clone())).report(note);
        timeout(seconds(30), server).await.unwrap_or(Ok(()))
    });
    sim.host("client").run(async || {
        // The server starts at the same time.
        sleep(seconds(1)).await;
        // A server that is lost does not say so.
        timeout(seconds(10), ask_twice()).await?
    });
    sim.finally(move || {
        let lines = log.lines();
        let begun = lines.iter().filter(|line| *line == "begun").count();
        if lines.len() == 2 * begun { Ok(()) } else { Err(format!("left open: {lines:?}")) }
    });
}

#[test]
fn a_stop_at_any_step_leaves_nothing_open() {
    for host in ["server", "client"] {
        assert!(explore_host_stops(1, host, conversation).runs().len() > 50);
    }
}

#[test]
fn a_fault_at_any_operation_leaves_nothing_open() {
    // A host that crashes does not clean up.
    let all_but_crashes: Vec<Fault> = Fault::ALL.into_iter().filter(|fault| *fault != Fault::Crash).collect();
    for host in ["server", "client"] {
        assert!(explore_faults(1, host, &all_but_crashes, conversation).runs().len() > 20);
    }
}
