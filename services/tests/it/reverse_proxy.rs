//! The reverse proxy of the example, before any server.

use std::io;

use convoke::net::TcpListener;
use convoke_http::{Client, serve};

#[path = "../../../convoke-http/examples/reverse_proxy.rs"]
#[allow(dead_code, reason = "the example has a server of its own behind the proxy, too")]
mod example;

/// Passes what comes to `front` on to the server `upstream`, until it is stopped.
pub(crate) async fn behind_proxy(front: TcpListener, upstream: &str) -> io::Result<()> {
    let target: http::uri::Authority = upstream.parse().map_err(io::Error::other)?;
    let proxy = Client::run(async |client| {
        serve(front, move |request| example::pass_on(client.clone(), target.clone(), request)).await
    });
    proxy.await
}
