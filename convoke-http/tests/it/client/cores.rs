//! Clients on real sockets and all cores.

use std::future::IntoFuture;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread;

use bytes::Bytes;
use convoke::Runtime;
use convoke::net::TcpListener;
use convoke::prelude::*;
use convoke_http::{Client, RequestBody, serve};
use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame};

fn thread_name() -> String {
    thread::current().name().unwrap_or_default().to_owned()
}

/// A body that says which thread has polled it.
struct Polled(bool);

impl Body for Polled {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let first = !std::mem::replace(&mut self.0, true);
        Poll::Ready(first.then(|| Ok(Frame::data(thread_name().into()))))
    }
}

async fn echo(request: Request<RequestBody>) -> io::Result<Response<String>> {
    let body = request.into_body().collect().await?.to_bytes();
    Ok(Response::new(String::from_utf8_lossy(&body).into_owned()))
}

/// Returns the chunk of each request, on the context of the caller. A server of ours would share the contexts in turn with the other
/// one, so that each had only one of them.
async fn by_hand(listener: TcpListener) -> io::Result<Vec<String>> {
    scope(async |s| {
        loop {
            let (stream, _) = listener.accept().await?;
            s.spawn(async move {
                let mut request = Vec::new();
                while stream.read_buf(&mut request).await? > 0 {
                    let text = String::from_utf8_lossy(&request).into_owned();
                    if let Some(text) = text.strip_suffix("\r\n0\r\n\r\n") {
                        let chunk = text.rsplit("\r\n").next().unwrap_or_default();
                        let length = chunk.len();
                        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{chunk}");
                        stream.write_all(answer.as_bytes()).await?;
                        request.clear();
                    }
                }
                io::Result::Ok(())
            });
        }
    })
    .await
}

#[test]
fn a_connection_runs_on_the_core_of_the_handler_that_needs_it() {
    let runtime = Runtime::builder().contexts(2).pool_threads(1).build().unwrap();
    let threads = runtime.block_on(async {
        let upstream = TcpListener::bind("127.0.0.1:0").await?;
        let front = TcpListener::bind("127.0.0.1:0").await?;
        let (target, at) = (upstream.local_addr()?, front.local_addr()?);
        let proxy = Client::run(async |client| {
            let ask = move |_: Request<RequestBody>| {
                let client = client.clone();
                async move {
                    // An idle one of another core would be used as well.
                    let request = client.post(format!("http://{target}/")).header("connection", "close");
                    let polled_on = request.stream(Polled(false)).send().await?.text().await?;
                    io::Result::Ok(Response::new(format!("{polled_on} for {}", thread_name())))
                }
            };
            serve(front, ask).await.map(|()| Vec::new())
        });
        // A connection for each request: they are handed to the contexts in turn.
        let visitor = Client::run(async |client| {
            let mut seen = Vec::new();
            for _ in 0..20 {
                let request = client.get(format!("http://{at}/")).header("connection", "close");
                seen.push(request.send().await?.text().await?);
            }
            io::Result::Ok(seen)
        });
        race((by_hand(upstream), proxy, visitor)).await
    });
    let threads: io::Result<Vec<String>> = threads.unwrap();
    let mut threads = threads.unwrap();
    assert!(
        threads.iter().all(|line| line.split_once(" for ").is_some_and(|(one, other)| one == other)),
        "{threads:?}"
    );
    threads.sort();
    threads.dedup();
    assert_eq!(threads.len(), 2, "{threads:?}");
}

#[test]
fn many_requests_of_all_cores_share_a_client_and_are_answered_each_by_its_own() {
    for builder in [Client::builder, || Client::builder().http2_only()] {
        let runtime = Runtime::builder().contexts(2).pool_threads(1).build().unwrap();
        let done = runtime.block_on(async {
            let upstream = TcpListener::bind("127.0.0.1:0").await?;
            let front = TcpListener::bind("127.0.0.1:0").await?;
            let (target, at) = (upstream.local_addr()?, front.local_addr()?);
            let proxy = builder().connections_per_origin(4).run(async |client| {
                let pass = move |request: Request<RequestBody>| {
                    let client = client.clone();
                    async move {
                        let request = client.post(format!("http://{target}/")).stream(request.into_body());
                        io::Result::Ok(request.send().await?.into_http())
                    }
                };
                serve(front, pass).await
            });
            let visitor = builder().connections_per_origin(8).run(async |client| {
                scope(async |s| {
                    for visitor in 0..16 {
                        let client = client.clone();
                        s.spawn(async move {
                            for round in 0..25 {
                                let text = format!("{visitor} {round}");
                                let request = client.put(format!("http://{at}/")).body(text.clone());
                                assert_eq!(request.send().await?.text().await?, text);
                            }
                            io::Result::Ok(())
                        });
                    }
                    Ok(())
                })
                .await
            });
            let upstream = async { serve(upstream, echo).into_future().await };
            race((upstream, proxy, visitor)).await
        });
        let done: io::Result<()> = done.unwrap();
        done.unwrap();
    }
}

/// Fetches the page of a server that is given by `CONVOKE_UPSTREAM`, such as nginx at `http://127.0.0.1:8080/`, many times at once. Without
/// the variable it asks a server of ours.
#[test]
fn pages_of_an_upstream_server_arrive_whole() {
    let runtime = Runtime::builder().contexts(1).pool_threads(1).build().unwrap();
    let done = runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let own = format!("http://{}/", listener.local_addr()?);
        let uri = std::env::var("CONVOKE_UPSTREAM").unwrap_or(own);
        let server = async {
            serve(listener, async |_: Request<RequestBody>| io::Result::Ok(Response::new("x".repeat(10_000))))
                .await
        };
        let client = Client::builder().connections_per_origin(4).run(async |client| {
            let first = client.get(&uri).send().await?.error_for_status()?.bytes().await?;
            assert!(!first.is_empty());
            let all: Vec<_> = (0..100)
                .map(|_| async { client.get(&uri).send().await?.error_for_status()?.bytes().await })
                .collect();
            for page in join(all).await {
                assert_eq!(page?, first);
            }
            let head = client.head(&uri).send().await?;
            assert!(head.status().is_success() && head.bytes().await?.is_empty());
            assert!(client.connections() <= 4, "{client:?}");
            io::Result::Ok(())
        });
        race((server, client)).await
    });
    let done: io::Result<()> = done.unwrap();
    done.unwrap();
}
