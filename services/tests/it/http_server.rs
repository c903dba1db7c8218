//! A server of Convoke's on loopback, beside which a foreign program runs.

use std::future::IntoFuture;
use std::io;
use std::net::SocketAddr;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use convoke::Runtime;
use convoke::net::TcpListener;
use convoke::prelude::*;
use convoke::sync::Event;
use convoke_http::{RequestBody, serve};
use http::{Request, Response, StatusCode};

/// Output of a program, and the number of requests that the server has answered.
pub(crate) struct Ran {
    pub(crate) output: String,
    pub(crate) answered: usize,
}

async fn answer(request: Request<RequestBody>) -> io::Result<Response<String>> {
    let body = match request.uri().path() {
        "/large" => "x".repeat(1 << 20),
        "/version" => format!("{:?}", request.version()),
        _ => "hello".to_owned(),
    };
    Ok(Response::new(body))
}

/// Runs a program beside a server. The arguments are made with the server's address.
#[track_caller]
pub(crate) fn run_beside_server(
    program: &str,
    arguments: impl FnOnce(SocketAddr) -> Vec<String> + Send + 'static,
) -> Ran {
    let program = program.to_owned();
    let answered = Arc::new(AtomicUsize::new(0));
    let counted = answered.clone();
    let runtime = Runtime::builder().contexts(2).pool_threads(1).build().unwrap();
    let ended = runtime.block_on(async move {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let counts = move |_: &convoke_http::RequestRecord| _ = counted.fetch_add(1, Ordering::Relaxed);
        let server = async {
            serve(listener, answer).on_request(counts).into_future().await?;
            Err(io::Error::other("the server has ended"))
        };
        let runs =
            async move { blocking(move |_| Command::new(program).args(arguments(address)).output()).await };
        race((server, runs)).await
    });
    let output = ended.unwrap().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    Ran { output: text, answered: answered.load(Ordering::Relaxed) }
}

/// Counts of a server that was drained under load, and the output of the program that was the load.
pub(crate) struct Drained {
    pub(crate) output: String,
    /// Requests whose handler has begun.
    pub(crate) begun: usize,
    /// Requests whose whole answer was given to the connection.
    pub(crate) answered: usize,
}

/// Runs a program as load beside a server, which is asked to stop after this number of answers.
#[track_caller]
pub(crate) fn drain_under_load(
    program: &str,
    arguments: impl FnOnce(SocketAddr) -> Vec<String> + Send + 'static,
    answers: usize,
) -> Drained {
    let program = program.to_owned();
    let counts = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
    let [begins, ends] = [counts.clone(), counts.clone()];
    let enough = Arc::new(Event::new());
    let [reached, over] = [enough.clone(), enough.clone()];
    let runtime = Runtime::builder().contexts(2).pool_threads(1).build().unwrap();
    let ended: Outcome<io::Result<Output>> = runtime.block_on(async move {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let hello = move |_: Request<RequestBody>| {
            let number = begins[0].fetch_add(1, Ordering::Relaxed);
            async move {
                // Some are under way for a while.
                if number.is_multiple_of(7) {
                    sleep(Duration::from_millis(3)).await;
                }
                io::Result::Ok(Response::new("hello".to_owned()))
            }
        };
        let server = serve(listener, hello).on_request(move |record| {
            let is_whole = record.status == Some(StatusCode::OK) && record.response_bytes == 5;
            if is_whole && ends[1].fetch_add(1, Ordering::Relaxed) + 1 == answers {
                reached.set();
            }
        });
        scope(async |s| {
            let server = s.spawn_future(server.into_future());
            let drain = async {
                enough.wait().await;
                server.request_stop(StopReason::Shutdown);
                assert!(catch_stopped(server).await.is_err(), "a server ends stopped");
                Ok(())
            };
            let load = async {
                let output = blocking(move |_| Command::new(program).args(arguments(address)).output()).await;
                // A load that was too small fails the test, and does not hang it.
                over.set();
                output
            };
            Ok(try_join((load, drain)).await?.0)
        })
        .await
    });
    let output = ended.unwrap().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    let [begun, answered] = [0, 1].map(|n: usize| counts[n].load(Ordering::Relaxed));
    Drained { output: text, begun, answered }
}

/// Returns the number before, or after, a word in what a program has printed.
#[track_caller]
pub(crate) fn number_before(output: &str, word: &str) -> usize {
    let (before, _) = output.split_once(word).unwrap_or_else(|| panic!("no {word:?} in {output}"));
    let number: String = before.trim_end().chars().rev().take_while(char::is_ascii_digit).collect();
    number.chars().rev().collect::<String>().parse().unwrap()
}
