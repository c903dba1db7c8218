//! Upgraded connections: WebSockets and their like.

use core::error::Error;
use core::fmt;
use core::future::Future;

use convoke_net::net::ConnectionOutput;
use http::Request;
use hyper::upgrade::{self, OnUpgrade};

use crate::connection::Connection;
use crate::rt::FuturesStream;

/// A connection that has changed its protocol: a stream of bytes, in both directions, with the traits of `futures-io`.
pub type Upgraded = FuturesStream<upgrade::Upgraded>;

/// Runs `handler` with the connection of this request, when the response has been sent and the connection has changed its
/// protocol. The response must have the status 101 (or 200 for `CONNECT`) and say `Upgrade` in its header. If it does not,
/// the handler does not run.
///
/// The handler is a child of the connection, and not of the request. It hears a stop of the server at once, and what it
/// still has to say belongs into its clean-up. Its failure is [reported](crate::Report::Upgraded).
///
/// # Errors
/// Fails if the request asks for no upgrade, or does not come from a [`Server`](crate::Server).
///
/// ```
/// use std::io;
/// use convoke::io::{read_exact, write_all};
/// use convoke::prelude::*;
/// use convoke_http::{RequestBody, Upgraded, upgrade};
/// use http::header::{CONNECTION, UPGRADE};
/// use http::{Request, Response, StatusCode};
///
/// /// Says good bye however it ends, also if the server is asked to stop.
/// struct Polite(Upgraded);
///
/// impl AsyncClose for Polite {
///     type Error = io::Error;
///     async fn close(mut self, _: Exit) -> io::Result<()> {
///         write_all(&mut self.0, b"bye").await
///     }
/// }
///
/// /// Returns each byte, until one is a dot.
/// async fn echo(stream: Upgraded) -> io::Result<()> {
///     using(Polite(stream), async |mut stream| {
///         let mut byte = [0];
///         while byte != *b"." {
///             read_exact(&mut stream.0, &mut byte).await?;
///             write_all(&mut stream.0, &byte).await?;
///         }
///         Ok(())
///     })
///     .await
/// }
///
/// async fn handler(mut request: Request<RequestBody>) -> io::Result<Response<String>> {
///     upgrade(&mut request, echo).map_err(io::Error::other)?;
///     let answer = Response::builder()
///         .status(StatusCode::SWITCHING_PROTOCOLS)
///         .header(CONNECTION, "upgrade")
///         .header(UPGRADE, "echo");
///     answer.body(String::new()).map_err(io::Error::other)
/// }
/// ```
pub fn upgrade<B, F, R>(request: &mut Request<B>, handler: F) -> Result<(), UpgradeError>
where
    F: FnOnce(Upgraded) -> R + Send + 'static,
    R: Future<Output: ConnectionOutput> + Send + 'static,
{
    if request.extensions().get::<OnUpgrade>().is_none() {
        return Err(UpgradeError { why: "it asks for no upgrade" });
    }
    let Some(connection) = Connection::current() else {
        return Err(UpgradeError {
            why: "it comes from no server of Convoke, or was passed to a task outside of it",
        });
    };
    let upgraded = upgrade::on(request);
    connection.upgrades().named("upgraded connection").spawn(async move {
        // An error means that the client has gone, or that the response says something else.
        let Ok(upgraded) = upgraded.await else { return Ok(()) };
        handler(FuturesStream::new(upgraded)).await.error().map_or(Ok(()), Err)
    });
    Ok(())
}

/// The error of [`upgrade()`].
#[derive(Clone, Debug)]
pub struct UpgradeError {
    why: &'static str,
}

impl fmt::Display for UpgradeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the request cannot be upgraded: {}", self.why)
    }
}

impl Error for UpgradeError {}
