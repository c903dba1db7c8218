//! The HTTP client of `convoke-http` in handlers of a tokio program: its sockets belong to an I/O context that a thread of its own runs.

use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use convoke::driver::{IO, IoExecutor, Work, io_context};
use convoke::env::with_local;
use convoke::prelude::*;
use convoke::task::forever;
use convoke_http::{Client, ClientError};
use convoke_tokio::{finish, run};

use crate::log::Log;

/// Starts a thread that runs an I/O context until the work is dropped.
fn context_on_a_thread() -> (IoExecutor, Work, JoinHandle<()>) {
    let (tell, told) = channel();
    let thread = thread::spawn(move || {
        let context = io_context().unwrap();
        tell.send((context.executor(), context.work())).unwrap();
        context.run();
    });
    let (executor, work) = told.recv().unwrap();
    (executor, work, thread)
}

/// Serves `hello` by axum on tokio, and returns the address of the page.
async fn serve(log: Log) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let page = format!("http://{}/", listener.local_addr().unwrap());
    let slow = move || async move {
        log.note("slow begun");
        std::future::pending::<&str>().await
    };
    let router = Router::new().route("/", get(|| async { "hello" })).route("/slow", get(slow));
    tokio::spawn(async move { axum::serve(listener, router).await });
    page
}

#[tokio::test]
async fn without_an_io_context_the_client_says_so() {
    let page = serve(Log::default()).await;
    let asked =
        run(async move { Client::run(async |client| client.get(&page).send().await.map(drop)).await });
    let error = asked.await.unwrap().unwrap_err();
    let mut causes = vec![error.to_string()];
    let mut cause = std::error::Error::source(&error);
    while let Some(error) = cause {
        causes.push(error.to_string());
        cause = error.source();
    }
    assert!(causes.iter().any(|cause| cause.contains("no I/O context")), "{causes:?}");
}

#[tokio::test]
async fn the_client_works_in_a_handler_and_leaves_nothing_when_tokio_drops_it() {
    let log = Log::default();
    let page = serve(log.clone()).await;
    let (executor, work, thread) = context_on_a_thread();
    let (hello, io) = (page.clone(), executor.clone());
    let answers = run(with_local(&IO, io, async move {
        Client::run(async |client| {
            let mut answers = Vec::new();
            for _ in 0..3 {
                answers.push(client.get(&hello).send().await?.text().await?);
            }
            Ok::<_, ClientError>(answers)
        })
        .await
    }));
    assert_eq!(answers.await.unwrap().unwrap(), ["hello"; 3]);
    // A request that is never answered, in a handler that tokio drops.
    let noted = log.clone();
    let handler = tokio::spawn(run(with_local(&IO, executor, async move {
        Client::run(async |client| {
            ensure(async |exit: Exit| noted.note(format!("the body {exit}")), async {
                let _ = client.get(format!("{page}slow")).send().await;
                forever().await
            })
            .await
        })
        .await
    })));
    while !log.lines().contains(&"slow begun".to_owned()) {
        tokio::task::yield_now().await;
    }
    handler.abort();
    assert!(handler.await.unwrap_err().is_cancelled());
    finish(Duration::from_secs(60)).await.unwrap();
    assert_eq!(log.lines(), ["slow begun", "the body was stopped (its result is not wanted any more)"]);
    drop(work);
    thread.join().unwrap();
}
