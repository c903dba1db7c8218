//! Server-sent events: a task writes the body while it is sent. When the server is asked to stop it says good bye, and no
//! event is lost.
//!
//! ```text
//! cargo run -p convoke-http --example events
//! ```

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use convoke::net::{TcpListener, TcpStream};
use convoke::prelude::*;
use convoke::time::interval;
use convoke_http::{Connection, RequestBody, StreamedBody, serve, streamed};
use http::{Request, Response, header};

/// Sends an event every ten milliseconds, until the client goes or the server drains.
async fn events(_: Request<RequestBody>) -> io::Result<Response<StreamedBody>> {
    let drain = Connection::current().map(|connection| connection.drain());
    let body = streamed(async move |body| {
        let mut ticks = interval(Duration::from_millis(10));
        for number in 1.. {
            ticks.tick().await;
            if drain.as_ref().is_some_and(|drain| drain.has_begun()) {
                break;
            }
            body.send(format!("event: tick\ndata: {number}\n\n")).await?;
        }
        body.send("event: bye\ndata: the server ends\n\n").await?;
        io::Result::Ok(())
    });
    let mut response = Response::new(body);
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, header::HeaderValue::from_static("text/event-stream"));
    Ok(response)
}

/// Prints events until the server ends the stream.
async fn listen(address: SocketAddr) -> io::Result<()> {
    let stream = TcpStream::connect(address).await?;
    stream.write_all(b"GET / HTTP/1.1\r\nhost: here\r\n\r\n").await?;
    let mut heard = Vec::new();
    while stream.read_buf(&mut heard).await? > 0 {}
    let heard = String::from_utf8_lossy(&heard);
    heard.lines().filter(|line| line.starts_with("data: ")).for_each(|line| println!("{line}"));
    assert!(heard.contains("data: 1\n") && heard.contains("event: bye"));
    Ok(())
}

#[convoke::main]
async fn main() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    scope(async |s| {
        let server = s.spawn_future(async { serve(listener, events).await });
        let client = s.spawn_future(listen(address));
        sleep(Duration::from_millis(55)).await;
        server.request_stop(StopReason::Shutdown);
        _ = catch_stopped(server).await;
        client.await
    })
    .await
}
