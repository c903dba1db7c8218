//! A server and a client on loopback. When the client has its answer the server is asked to stop, and drains.
//!
//! ```text
//! cargo run -p convoke-http --example hello
//! ```

use std::io;

use convoke::net::{TcpListener, TcpStream};
use convoke::prelude::*;
use convoke_http::{Connection, RequestBody, serve};
use http::{Request, Response};

async fn hello(request: Request<RequestBody>) -> io::Result<Response<String>> {
    let peer = Connection::current().map(|connection| connection.peer().to_string());
    Ok(Response::new(format!("hello {}, this is {}\n", peer.unwrap_or_default(), request.uri().path())))
}

/// Asks for a page, and returns all that the server says.
async fn get(address: std::net::SocketAddr, path: &str) -> io::Result<String> {
    let stream = TcpStream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    while stream.read_buf(&mut answer).await? > 0 {}
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

#[convoke::main]
async fn main() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = serve(listener, hello).on_request(|record| println!("{record}"));
    // The race is won by the client: the server is asked to stop, and awaited.
    let answer = race((async { server.await.map(|()| String::new()) }, get(address, "/front"))).await?;
    println!("{answer}");
    Ok(())
}
