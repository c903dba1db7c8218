//! A connection of a server: the task that hyper's state machine runs in.
//!
//! Its tree of tasks: the connection; below it, outside the shield, upgraded streams; inside the shield the requests, and
//! by HTTP/2 a task of hyper's for each stream, which waits for its request.

use core::error::Error;
use std::io;
use std::sync::Arc;

use convoke_core::StopToken;
use convoke_net::net::{Address, Kind, ServerReport, SocketOption, SocketStream};
use convoke_task::policy::ChildFailure;
use convoke_task::{Scope, current, scope, shield, timeout, with_local};
use futures_io::{AsyncRead, AsyncWrite};

use super::activity::Activity;
use super::exchange::Origin;
use super::protocol::{Agreed, Prefixed, Protocol};
use super::reply_body::Incomplete;
use super::requests::Requests;
use super::{HttpService, SharedServer, http1, http2};
use crate::connection::{CONNECTION, Connection};
use crate::report::{AnyError, Report};
use crate::secured::Secured;

/// Serves a connection. Reports its failures.
pub(super) async fn serve_connection<S: HttpService, K: Kind>(
    server: Arc<SharedServer<S>>,
    stream: SocketStream<K>,
    peer: Address,
) {
    // Responses are written as a whole. An error means that it is no TCP socket, or that it is gone.
    _ = stream.set_option(SocketOption::NoDelay(true));
    if let Some(time) = server.limits.probes_after() {
        _ = stream.set_option(SocketOption::KeepAlive(Some(time)));
    }
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
    server: &SharedServer<S>,
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
async fn converse<S, T>(
    server: Arc<SharedServer<S>>,
    stream: Prefixed<T>,
    protocol: Protocol,
    agreed: Agreed,
    peer: Address,
) where
    S: HttpService,
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let stop = current::stop_token();
    scope(async |upgrades: Scope<()>| {
        let (reporting, client) = (server.clone(), peer.clone());
        let upgrades = upgrades.supervise(move |failure: ChildFailure<AnyError>| {
            reporting.report(Report::Upgraded { peer: client.clone(), error: failure.to_string().into() });
        });
        let drain = server.announced.clone().unwrap_or_else(|| stop.clone());
        let connection = Connection::new(peer, agreed.is_encrypted, drain, upgrades);
        let grace = server.grace;
        let requests = serve_requests(server, stream, protocol, connection.clone(), stop);
        with_local(&CONNECTION, connection, shield(requests).grace(grace)).await;
    })
    .await;
}

/// Serves requests until the connection ends, and waits for their tasks.
async fn serve_requests<S, T>(
    server: Arc<SharedServer<S>>,
    stream: Prefixed<T>,
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
        let _cut = CutOff { server: &server, connection: &connection, activity: &activity, stop: &stop };
        let origin =
            Origin { server: server.clone(), connection: connection.clone(), activity: activity.clone() };
        let requests = Requests { origin: Arc::new(origin), scope: scope.clone() };
        connection.set_requests(Some(scope.clone()));
        let stop = stop.stopped();
        let failure = match protocol {
            Protocol::Http1 => http1::converse(stream, requests, stop).await,
            Protocol::Http2 => {
                // A task of its own, as by HTTP/1.
                let child = scope.named(server.driver_name.clone());
                child.spawn_future_eagerly(http2::converse(stream, requests, scope.clone(), stop)).await
            }
        };
        if let Some(error) = failure {
            server.report_end(connection.peer().clone(), error);
        }
    })
    .await;
}

impl<S> SharedServer<S> {
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

/// Unsets the scope of the requests of a connection when it has ended.
struct UnsetRequests<'a>(&'a Connection);

impl Drop for UnsetRequests<'_> {
    fn drop(&mut self) {
        self.0.set_requests(None);
    }
}

/// Reports the requests that had not ended when the grace period of a drain was over.
struct CutOff<'a, S: HttpService> {
    server: &'a SharedServer<S>,
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
