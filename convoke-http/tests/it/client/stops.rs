//! A stop at any await: the next request works, and no connection is left.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use convoke::net::{TcpListener, TcpStream, serve as serve_connections};
use convoke::prelude::*;
use convoke::sim::{Fault, Sim, explore_faults, explore_host_stops};
use convoke_http::client::ClientBuilder;
use convoke_http::{Client, RequestBody, StreamedBody, serve, streamed};
use http::{Request, Response};
use http_body_util::BodyExt;

use crate::harness::{Log, Transaction, beside, listener, seconds, simulated};

/// Answers with the path and the body, in two chunks.
async fn echo(request: Request<RequestBody>) -> io::Result<Response<StreamedBody>> {
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await?.to_bytes();
    Ok(Response::new(streamed(async move |writer| {
        writer.send(path).await?;
        sleep(Duration::from_millis(1)).await;
        writer.send(body).await?;
        io::Result::Ok(())
    })))
}

async fn post(client: &Client, path: &str) -> io::Result<()> {
    let request = client.post(format!("http://server{path}")).body(" body");
    assert_eq!(request.send().await?.text().await?, format!("{path} body"));
    Ok(())
}

/// Requests beside each other and one after the other. Those of a scope are stopped by its failure.
async fn requests(client: &Client) -> io::Result<()> {
    post(client, "/first").await?;
    try_join((post(client, "/left"), post(client, "/right"), post(client, "/middle"))).await?;
    post(client, "/last").await
}

/// A client whose requests are stopped after each number of steps, by a race that they lose. Whatever was cut, the next request
/// gets its own answer.
fn interrupted(builder: fn() -> ClientBuilder) -> impl Fn(&mut Sim) {
    move |sim| {
        sim.host("server").daemon().run(async || serve("0.0.0.0:80", echo).report(drop).await);
        sim.host("client").run(move || async move {
            sleep(seconds(1)).await;
            builder().connections_per_origin(2).run(async |client| requests(&client).await).await
        });
    }
}

#[test]
fn a_stop_of_the_program_at_any_step_leaves_no_connection() {
    for builder in BUILDERS {
        // The simulation fails if the client's host has a socket when its program has ended.
        assert!(explore_host_stops(1, "client", interrupted(builder)).runs().len() > 50);
    }
}

#[test]
fn a_fault_at_any_operation_leaves_no_connection() {
    let all_but_crashes: Vec<Fault> = Fault::ALL.into_iter().filter(|fault| *fault != Fault::Crash).collect();
    for builder in BUILDERS {
        assert!(explore_faults(1, "client", &all_but_crashes, interrupted(builder)).runs().len() > 20);
    }
}

/// Counts the connections that a server has.
#[derive(Clone, Default)]
struct Open(Arc<AtomicUsize>);

/// Passes connections on to the server, and counts them.
async fn counted(client: TcpStream, open: Open) -> io::Result<()> {
    open.0.fetch_add(1, Ordering::SeqCst);
    let mut client = client;
    let mut server = TcpStream::connect("127.0.0.1:81").await?;
    let result = convoke::io::copy_bidirectional(&mut client, &mut server).await;
    open.0.fetch_sub(1, Ordering::SeqCst);
    result.map(drop)
}

/// Stops a request after `steps` polls of it. Returns false if it has ended before.
async fn stopped_after(steps: usize, request: impl Future<Output = io::Result<()>>) -> io::Result<bool> {
    let mut polls = 0;
    let mut request = std::pin::pin!(request);
    let polled = std::future::poll_fn(|cx| {
        polls += 1;
        if polls > steps {
            return std::task::Poll::Ready(None);
        }
        request.as_mut().poll(cx).map(Some)
    });
    polled.await.transpose().map(|ended| ended.is_none())
}

/// A host with the server, which counts its connections.
fn counting_server(sim: &mut Sim) -> Open {
    let open = Open::default();
    sim.host("server").daemon().run_with(open.clone(), async |open| {
        let listener = TcpListener::bind("127.0.0.1:81").await?;
        let passing = serve_connections("0.0.0.0:80", move |client, _| counted(client, open.clone()));
        try_join((serve(listener, echo).report(drop), passing)).await.map(drop)
    });
    open
}

const BUILDERS: [fn() -> ClientBuilder; 2] = [Client::builder, || Client::builder().http2_only()];

#[test]
fn a_request_that_is_dropped_at_any_poll_does_not_poison_the_pool() {
    for builder in BUILDERS {
        let mut sim = Sim::new(1);
        let open = counting_server(&mut sim);
        sim.host("client").run_with(open, move |open| async move {
            sleep(seconds(1)).await;
            let cut = async |client: Client| {
                let mut steps = 0;
                while stopped_after(steps, post(&client, "/cut")).await? {
                    // With one connection at a time, a poisoned one would answer this.
                    post(&client, "/next").await?;
                    assert!(client.connections() <= 1 && client.waiting_requests() == 0, "{client:?}");
                    steps += 1;
                }
                assert!(steps > 1, "{steps}");
                io::Result::Ok(())
            };
            builder().connections_per_origin(1).run(cut).await?;
            sleep(seconds(1)).await;
            assert_eq!(open.0.load(Ordering::SeqCst), 0, "the server still has connections");
            io::Result::Ok(())
        });
        sim.run();
    }
}

#[test]
fn a_request_that_is_stopped_at_any_time_does_not_poison_the_pool() {
    for builder in BUILDERS {
        let stopped = AtomicUsize::new(0);
        convoke::sim::explore_seeds(0..3, |sim| {
            stopped.fetch_add(1, Ordering::SeqCst);
            let open = counting_server(sim);
            sim.host("client").run_with(open, move |open| async move {
                sleep(seconds(1)).await;
                let cut = async |client: Client| {
                    let mut time = Duration::ZERO;
                    // Two at a time, so that one waits for the connection of the other.
                    while timeout(time, try_join((post(&client, "/one"), post(&client, "/two"))))
                        .await
                        .is_err()
                    {
                        post(&client, "/next").await?;
                        assert!(client.connections() <= 1 && client.waiting_requests() == 0, "{client:?}");
                        time += Duration::from_micros(250);
                    }
                    assert!(time > Duration::from_millis(5), "{time:?}");
                    io::Result::Ok(())
                };
                builder().connections_per_origin(1).run(cut).await?;
                sleep(seconds(1)).await;
                assert_eq!(open.0.load(Ordering::SeqCst), 0, "the server still has connections");
                io::Result::Ok(())
            });
        });
        assert_eq!(stopped.into_inner(), 3);
    }
}

#[test]
fn a_stop_by_http2_resets_the_stream_and_keeps_the_connection() {
    simulated(|| async {
        let log = Log::default();
        let working = log.clone();
        let slow = move |request: Request<RequestBody>| {
            let log = working.clone();
            async move {
                if request.uri().path() == "/slow" {
                    using(Transaction(log), async |_| sleep(seconds(3600)).await).await;
                }
                io::Result::Ok(Response::new("quick".to_owned()))
            }
        };
        let client = Client::builder().http2_only().run(async |client| {
            let request = client.get("http://127.0.0.1/slow").send();
            assert!(timeout(seconds(2), request).await.is_err());
            sleep(seconds(2)).await;
            assert_eq!(client.get("http://127.0.0.1/").send().await?.text().await?, "quick");
            assert_eq!(client.connections(), 1);
            io::Result::Ok(())
        });
        beside(serve(listener().await?, slow), client).await?;
        assert_eq!(log.lines(), ["closed: the body was stopped (its result is not wanted any more)"]);
        Ok(())
    });
}
