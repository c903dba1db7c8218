//! A server on real sockets and all cores.

use std::collections::BTreeSet;
use std::future::IntoFuture;
use std::io;

use convoke::Runtime;
use convoke::net::{TcpListener, TcpStream};
use convoke::prelude::*;
use convoke_http::{RequestBody, serve};
use http::{Request, Response};

use crate::harness::Client;

/// Answers with the name of the thread that the handler runs on.
async fn thread(_: Request<RequestBody>) -> io::Result<Response<String>> {
    Ok(Response::new(std::thread::current().name().unwrap_or_default().to_owned()))
}

#[test]
fn connections_and_their_requests_are_spread_over_all_cores() {
    let runtime = Runtime::builder().contexts(2).pool_threads(1).build().unwrap();
    let threads = runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let server = async { serve(listener, thread).into_future().await.map(|()| BTreeSet::new()) };
        let clients = async move {
            let mut threads = BTreeSet::new();
            for _ in 0..4 {
                let mut client = Client::new(TcpStream::connect(address).await?);
                threads.insert(client.get("/").await?.body);
            }
            Ok(threads)
        };
        race((server, clients)).await
    });
    let threads: io::Result<BTreeSet<String>> = threads.unwrap();
    assert_eq!(threads.unwrap().len(), 2);
}

#[cfg(unix)]
#[test]
fn unix_listeners_are_served() {
    use convoke::net::{UnixListener, UnixStream};

    let file = std::env::temp_dir().join(format!("convoke-http-{}", std::process::id()));
    let at = file.clone();
    let runtime = Runtime::builder().contexts(1).pool_threads(1).build().unwrap();
    let answer = runtime.block_on(async move {
        let listener = UnixListener::bind(&at)?;
        let server = async { serve(listener, thread).into_future().await.map(|()| Vec::new()) };
        let client = async move {
            let stream = UnixStream::connect(&at).await?;
            stream.write_all(b"GET / HTTP/1.1\r\nhost: s\r\nconnection: close\r\n\r\n").await?;
            let mut answer = Vec::new();
            while stream.read_buf(&mut answer).await? > 0 {}
            Ok(answer)
        };
        race((server, client)).await
    });
    std::fs::remove_file(file).unwrap();
    let answer: io::Result<Vec<u8>> = answer.unwrap();
    assert!(answer.unwrap().starts_with(b"HTTP/1.1 200 OK"));
}
