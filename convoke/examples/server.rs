//! A server on all cores in one call: the server of the README. It says back what a client says.
//!
//! ```text
//! cargo run --release --example server                      # at 127.0.0.1:7000; try it: nc 127.0.0.1 7000
//! cargo run --release --example server -- 127.0.0.1:7001
//! ```
//!
//! Ctrl-C or SIGTERM asks it to stop: it takes no more clients, answers that were begun are finished, and the process exits with
//! 130 or 143. Run it under `ulimit -n 64` and connect a hundred clients: it reports that, and goes on when some leave.

use std::io;
use std::net::SocketAddr;

use convoke::net::{TcpStream, serve};
use convoke::prelude::*;

/// Says back what the client says, until it ends.
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
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:7000".to_owned());
    serve(address, echo).on_listening(|address| println!("listening at {address}")).await
}
