//! axum on tokio, unchanged: a handler whose client hangs up leaves nothing open.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use convoke::prelude::*;
use convoke::sync::Event;
use convoke_tokio::{finish, run};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::log::{Log, Transaction, multi_thread};

#[test]
fn a_client_that_hangs_up_leaves_nothing_open() {
    let (log, begun) = (Log::default(), Arc::new(Event::new()));
    let quick = {
        let log = log.clone();
        move || {
            let log = log.clone();
            async move {
                run(async move { using(Transaction(log), async |_| "done").await }).await.unwrap_or("stopped")
            }
        }
    };
    let slow = {
        let (log, begun) = (log.clone(), begun.clone());
        move || {
            let (log, begun) = (log.clone(), begun.clone());
            async move {
                let work = run(async move {
                    using(Transaction(log), async |_| {
                        scope(async |s| {
                            s.spawn(async { tokio::time::sleep(Duration::from_secs(3600)).await });
                            s.spawn(async { sleep(Duration::from_secs(3600)).await });
                            begun.set();
                        })
                        .await;
                    })
                    .await;
                });
                work.await.map_or("stopped", |()| "done")
            }
        }
    };
    multi_thread(2).block_on(async move {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().route("/quick", get(quick)).route("/slow", get(slow));
        let server = tokio::spawn(async move { axum::serve(listener, router).await });
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(b"GET /quick HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("done"), "{answer}");
        assert_eq!(log.lines(), ["commit"]);

        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        begun.wait().await;
        drop(client);
        // The server hears of it in its own time, and drops the handler.
        while log.lines().len() < 2 {
            tokio::task::yield_now().await;
        }
        assert_eq!(log.lines(), ["commit", "rollback"]);
        finish(Duration::from_secs(60)).await.unwrap();
        server.abort();
    });
}
