//! A client and a server on loopback: one page after the other, many at once, a download, a time limit, a failure. When the client
//! returns, its connections are closed.
//!
//! ```text
//! cargo run -p convoke-http --features client --example client
//! ```

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use convoke::net::TcpListener;
use convoke::prelude::*;
use convoke::retry::Backoff;
use convoke_http::{Client, RequestBody, StreamedBody, serve, streamed};
use http::{Request, Response};
use http_body_util::BodyExt;

/// Counts to the number of the path, a line each millisecond. A body is counted instead.
async fn count(request: Request<RequestBody>) -> io::Result<Response<StreamedBody>> {
    let last = request.uri().path()[1..].parse().unwrap_or(0);
    let sent = request.into_body().collect().await?.to_bytes().len();
    Ok(Response::new(streamed(async move |body| {
        for number in 1..=last {
            body.send(format!("{number}\n")).await?;
            sleep(Duration::from_millis(1)).await;
        }
        body.send(format!("{sent} bytes were sent\n")).await?;
        io::Result::Ok(())
    })))
}

async fn fetch(client: &Client, at: SocketAddr) -> io::Result<()> {
    // The connection of the first request serves the second.
    let page = client.get(format!("http://{at}/3")).send().await?.error_for_status()?;
    assert_eq!(page.text().await?, "1\n2\n3\n0 bytes were sent\n");
    let page = client.post(format!("http://{at}/")).body("hello").send().await?;
    assert_eq!(page.text().await?, "5 bytes were sent\n");
    println!("two requests over {} connection", client.connections());

    // Ten at once: an error of one stops the others.
    scope(async |s| {
        for page in 1..=10 {
            let request = client.get(format!("http://{at}/{page}"));
            s.spawn(async move { request.send().await?.bytes().await.map(drop) });
        }
        Ok::<_, convoke_http::ClientError>(())
    })
    .await?;
    println!("ten requests over {} connections", client.connections());

    // Chunk by chunk.
    let mut download = client.get(format!("http://{at}/20")).send().await?;
    let mut chunks = 0;
    while let Some(_chunk) = download.chunk().await? {
        chunks += 1;
    }
    println!("a download of {chunks} chunks");

    // What takes too long is stopped. Its connection is closed, and not used again.
    let slow = async { client.get(format!("http://{at}/100000")).send().await?.text().await };
    assert!(timeout(Duration::from_millis(20), slow).await.is_err());

    // Nobody listens there.
    let error = client.get("http://127.0.0.1:1/").send().await.unwrap_err();
    println!("{error}");
    assert!(error.is_connect() && !error.may_have_been_processed());
    Ok(())
}

#[convoke::main]
async fn main() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let at = listener.local_addr()?;
    let client = Client::builder()
        .connect_time(Duration::from_secs(2))
        .retry(Backoff::exponential(Duration::from_millis(10)).up_to(2))
        .run(async |client| fetch(&client, at).await);
    let server = serve(listener, count);
    race((async { server.await }, client)).await
}
