//! A connection of a server: the task that hyper's state machine runs in.
//!
//! Its tree of tasks: the connection; below it, outside the shield, upgraded streams; inside the shield the requests, and
//! by HTTP/2 a task of hyper's for each stream, which waits for its request.

use core::error::Error;
use core::future::Future;
use core::pin::Pin;
use core::time::Duration;
use std::io;
use std::sync::Arc;

use convoke_core::StopToken;
use convoke_net::net::{Address, Kind, ServerReport, SocketOption, SocketStream};
use convoke_net::stream::{Linger, lingering_close, write_all};
use convoke_task::policy::ChildFailure;
use convoke_task::{Scope, current, scope, shield, timeout, with_local};
use futures_io::{AsyncRead, AsyncWrite};
use hyper::rt::Executor;
use hyper::server::conn::{http1, http2};

use super::activity::Activity;
use super::drive::{Ended, HyperConnection, drive};
use super::observed::Observed;
use super::protocol::{Agreed, Prefixed, Protocol};
use super::reply_body::Incomplete;
use super::requests::Requests;
use super::stalled::Unstalled;
use super::{HttpService, Shared};
use crate::connection::{CONNECTION, Connection};
use crate::limits::{HEADERS, Limits};
use crate::report::{AnyError, Report};
use crate::rt::{ConvokeTimer, HyperIo};
use crate::secured::Secured;

/// The answer to a client that is too slow with the head of its request.
const TOO_SLOW: &[u8] = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// Serves a connection. Reports its failures.
pub(super) async fn serve_connection<S: HttpService, K: Kind>(
    server: Arc<Shared<S>>,
    stream: SocketStream<K>,
    peer: Address,
) {
    // Responses are written as a whole. An error means that the socket is not one of TCP, or gone.
    _ = stream.set_option(SocketOption::NoDelay(true));
    // A stop ends what follows at once: the client has not asked for anything yet.
    match begin(&server, stream).await {
        Ok(Some((stream, protocol, agreed))) => converse(server, stream, protocol, agreed, peer).await,
        Ok(None) => {}
        Err(error) => server.report(Report::BadClient { peer, error: error.into() }),
    }
}

/// The stream of a connection, after its protocol is known.
type Begun<K> = Prefixed<Secured<SocketStream<K>>>;

/// Does the handshake and finds out which protocol the client speaks. Returns `None` if the client says nothing.
async fn begin<S: HttpService, K: Kind>(
    server: &Shared<S>,
    stream: SocketStream<K>,
) -> io::Result<Option<(Begun<K>, Protocol, Agreed)>> {
    let (stream, agreed) = server.tls.secure(stream).await?;
    let mut stream = Prefixed::new(stream);
    let protocol = match agreed.protocol {
        Some(protocol) => Some(protocol),
        // A client that takes longer has not even sent a few bytes. There is nothing to answer.
        None => timeout(server.limits.header_time, stream.detect()).await.unwrap_or(Ok(None))?,
    };
    Ok(protocol.map(|protocol| (stream, protocol, agreed)))
}

/// Serves the requests of a connection. After a stop request, those that have begun go on for the grace period.
async fn converse<S, T>(server: Arc<Shared<S>>, stream: T, protocol: Protocol, agreed: Agreed, peer: Address)
where
    S: HttpService,
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let stop = current::stop_token();
    scope(async |upgrades: Scope<()>| {
        let (reporting, client) = (server.clone(), peer.clone());
        let upgrades = upgrades.supervise(move |failure: ChildFailure<AnyError>| {
            reporting.report(Report::Upgraded { peer: client.clone(), error: failure.to_string().into() });
        });
        let connection = Connection::new(peer, agreed.is_encrypted, stop.clone(), upgrades);
        let grace = server.grace;
        let requests = serve_requests(server, stream, protocol, connection.clone(), stop);
        with_local(&CONNECTION, connection, shield(requests).grace(grace)).await;
    })
    .await;
}

/// Serves requests until the connection ends, and waits for their tasks.
async fn serve_requests<S, T>(
    server: Arc<Shared<S>>,
    stream: T,
    protocol: Protocol,
    connection: Connection,
    stop: StopToken,
) where
    S: HttpService,
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let _requests = UnsetRequests(&connection);
    scope(async |scope| {
        let activity = Arc::new(Activity::new(protocol));
        let io = Observed::new(stream, activity.clone(), server.limits.write_time);
        let io = HyperIo::new(io).vectored(true);
        let _cut = CutOff { server: &server, connection: &connection, activity: &activity, stop: &stop };
        let requests = Requests {
            server: server.clone(),
            connection: connection.clone(),
            activity: activity.clone(),
            scope: scope.clone(),
        };
        connection.set_requests(Some(scope.clone()));
        let failure = match protocol {
            Protocol::Http1 => {
                let mut http = http1_builder(&server.limits).serve_connection(io, requests).with_upgrades();
                match drive(&mut http, &stop, &activity, &server.limits).await {
                    Ended::Hyper(result) => result.err(),
                    Ended::SlowHead => {
                        if let Some(parts) = http.into_parts() {
                            refuse_slow_head(parts.io.into_inner()).await;
                        }
                        None
                    }
                    Ended::Unresponsive => None,
                }
            }
            Protocol::Http2 => {
                let (name, write_time) = ("stream of HTTP/2".into(), server.limits.write_time);
                let streams = Streams { scope, name, write_time };
                let mut http = http2_builder(streams, &server.limits).serve_connection(io, requests);
                match drive(&mut http, &stop, &activity, &server.limits).await {
                    Ended::Hyper(result) => result.err(),
                    Ended::SlowHead | Ended::Unresponsive => None,
                }
            }
        };
        if let Some(error) = failure {
            server.report_end(connection.peer().clone(), error);
        }
    })
    .await;
}

impl<S> Shared<S> {
    /// Reports why hyper has ended a connection.
    fn report_end(&self, peer: Address, error: hyper::Error) {
        let is_ours = error.is_user();
        if is_ours && error.source().is_some_and(|source| source.is::<Incomplete>()) {
            // A failure of a response's body was reported where it was seen.
            return;
        }
        let error = error.into();
        self.report(match is_ours {
            // The service has made a response that cannot be sent.
            true => Report::Connection(ServerReport::Failed { peer, error }),
            false => Report::BadClient { peer, error },
        });
    }
}

fn http1_builder(limits: &Limits) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(ConvokeTimer)
        // Hyper's includes the time between requests. Ours does not.
        .header_read_timeout(None)
        .max_header_size(limits.header_bytes)
        .max_buf_size(limits.head_buffer());
    // That number is hyper's, too. If it is not set, hyper allocates nothing for it.
    if limits.headers != HEADERS {
        builder.max_headers(limits.headers);
    }
    builder
}

fn http2_builder<E: Clone>(streams: E, limits: &Limits) -> http2::Builder<E> {
    let mut builder = http2::Builder::new(streams);
    builder
        .timer(ConvokeTimer)
        .max_concurrent_streams(limits.streams)
        .max_header_list_size(u32::try_from(limits.header_bytes).unwrap_or(u32::MAX));
    builder
}

/// Tells a client that it was too slow. If it cannot be told, that does not matter.
async fn refuse_slow_head<T: AsyncRead + AsyncWrite + Unpin>(mut stream: T) {
    if write_all(&mut stream, TOO_SLOW).await.is_ok() {
        _ = lingering_close(&mut stream, Linger::new()).await;
    }
}

/// Starts hyper's tasks of HTTP/2 streams as children of the connection.
#[derive(Clone)]
struct Streams {
    scope: Scope<()>,
    /// One name for all, so that a stream allocates nothing for it.
    name: Arc<str>,
    write_time: Duration,
}

impl<F: Future<Output: Send> + Send + 'static> Executor<F> for Streams {
    fn execute(&self, stream: F) {
        let stream = Unstalled::new(stream, self.write_time);
        // Hyper resets the stream of a task that cannot start.
        _ = self.scope.named(self.name.clone()).try_spawn(stream);
    }
}

/// Unsets the scope of the requests of a connection when it has ended.
struct UnsetRequests<'a>(&'a Connection);

impl Drop for UnsetRequests<'_> {
    fn drop(&mut self) {
        self.0.set_requests(None);
    }
}

/// Reports the requests that had not ended when the grace period of a drain was over.
struct CutOff<'a, S: HttpService> {
    server: &'a Shared<S>,
    connection: &'a Connection,
    activity: &'a Activity,
    stop: &'a StopToken,
}

impl<S: HttpService> Drop for CutOff<'_, S> {
    fn drop(&mut self) {
        // Only the end of the grace period stops what is inside the shield.
        if self.stop.stop_requested() && current::stop_requested() {
            let (peer, requests) = (self.connection.peer().clone(), self.activity.requests());
            if requests > 0 {
                self.server.report(Report::CutOff { peer, requests, grace: self.server.grace });
            }
        }
    }
}

impl<T, S> HyperConnection for http1::UpgradeableConnection<HyperIo<T>, Requests<S>>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: HttpService,
{
    fn drain(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

impl<T, S> HyperConnection for http2::Connection<HyperIo<T>, Requests<S>, Streams>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: HttpService,
{
    fn drain(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}
