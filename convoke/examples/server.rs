//! A server on all cores in one call: the server of the README. It echoes what a client sends.
//!
//! ```text
//! cargo run --release --example server                      # plays by itself, with one client
//! cargo run --release --example server -- 127.0.0.1:7000    # try it: nc 127.0.0.1 7000
//! ```
//!
//! Ctrl-C or SIGTERM asks it to stop: it takes no more clients, answers that were begun are finished, and the process exits with
//! 130 or 143. Run it under `ulimit -n 64` and connect a hundred clients: it reports that, and goes on when some leave.

use std::io;
use std::net::SocketAddr;

use convoke::net::{TcpStream, serve};
use convoke::prelude::*;
use convoke::sync::oneshot;

/// Echoes what the client sends, until it ends.
pub async fn echo(client: TcpStream, _from: SocketAddr) -> io::Result<()> {
    let mut buffer = [0; 4096];
    while let length @ 1.. = client.read(&mut buffer).await? {
        // A stop takes effect in `read`, between two requests, and not here.
        shield(client.write_all(&buffer[..length])).await?;
    }
    Ok(())
}

#[convoke::main]
async fn main() -> io::Result<()> {
    let Some(address) = std::env::args().nth(1) else { return play().await };
    serve(address, echo).on_listening(|address| println!("listening at {address}")).await
}

/// Runs the server at any free port, with one client, and then asks it to stop.
async fn play() -> io::Result<()> {
    let (listening, mut address) = oneshot::channel();
    let server = serve("127.0.0.1:0", echo).on_listening(move |address| {
        // The other end is gone only if the program is stopping.
        _ = listening.send(address);
    });
    scope(async |s| {
        // Dropping the handle asks the server to stop, and the scope waits for it.
        let serving = s.named("server").spawn_future(server.into_future());
        let Some(address) = address.recv().await else { return serving.await };
        let client = TcpStream::connect(address).await?;
        client.write_all(b"hello").await?;
        let mut heard = [0; 5];
        client.read_exact(&mut heard).await?;
        println!("  heard: {}", String::from_utf8_lossy(&heard));
        Ok(())
    })
    .await
}
