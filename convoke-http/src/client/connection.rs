//! A connection of a client: the task that opens it, and that hyper's state machine runs in.
//!
//! The task is a child of the client, shielded from its stop: requests that the program makes while it cleans up are served. It
//! ends when the client is closed, which is after the body of [`Client::run`](super::Client::run) has ended.

use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::io;
use std::sync::Arc;
use std::time::Instant;

use convoke_core::StopReason;
use convoke_exec::time::now;
use convoke_net::net::{SocketOption, TcpStream};
use convoke_task::{Scope, scope, select, shield, timeout};
use hyper::client::conn::{http1, http2};

use super::SharedClient;
use super::alarm::Alarm;
use super::error::{Cause, ClientError, Phase};
use super::places::Place;
use super::pool::Sender;
use super::route::{Route, Versions};
use super::tunnel::tunnel;
use crate::rt::{ConvokeTimer, HyperIo, ScopeExecutor};
use crate::secured::Secured;

/// The time that a connection may take to end when no request uses it any more. A peer that is gone does not answer.
const CLOSE_TIME: Duration = Duration::from_secs(5);
/// The time after which a connection by HTTP/2 that is in use is asked whether it is still there, and that the answer may take.
const PING_TIME: Duration = Duration::from_secs(10);

type Stream = Secured<TcpStream>;

/// Opens a connection, and runs it to its end.
pub(super) async fn run_connection(client: Arc<SharedClient>, route: Arc<Route>, place: Place) {
    shield(async {
        let opening = Opening { client: &client, route: &route, place, is_open: false };
        let opened = select! {
            // Boxed, since the memory is not needed once the connection is open.
            opened = Box::pin(open(&client, &route)) => opened,
            () = client.closing.wait() => Err(ClientError::new(Phase::Wait, Cause::Closed)),
        };
        match opened {
            Ok((stream, false)) => serve_http1(opening, stream).await,
            // Boxed, since connections of HTTP/1 do not need the memory.
            Ok((stream, true)) => Box::pin(serve_http2(opening, stream)).await,
            Err(error) => opening.failed(error),
        }
    })
    .await;
}

/// A connection that is being opened, as the pool counts it.
struct Opening<'a> {
    client: &'a Arc<SharedClient>,
    route: &'a Arc<Route>,
    place: Place,
    is_open: bool,
}

impl<'a> Opening<'a> {
    fn failed(mut self, error: ClientError) {
        self.is_open = true;
        let error = error.of(&self.route.origin, false);
        self.client.open_all(self.client.pool.not_opened(self.route, &error));
    }

    /// Gives the connection to the pool. Returns `None` if the client was closed meanwhile.
    fn opened(mut self, sender: Sender) -> Option<Open<'a>> {
        self.is_open = true;
        let (client, route) = (self.client, self.route);
        let (id, openings) = client.pool.opened(route, self.place, sender);
        client.open_all(openings);
        Some(Open { client, route, id: id? })
    }
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        if !self.is_open {
            let error = ClientError::new(Phase::Connect, Cause::Said("the task that opens it was stopped"));
            self.client.open_all(self.client.pool.not_opened(self.route, &error));
        }
    }
}

/// A connection that the pool has.
struct Open<'a> {
    client: &'a Arc<SharedClient>,
    route: &'a Arc<Route>,
    id: u64,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.client.open_all(self.client.pool.ended(self.route, self.id));
    }
}

/// Opens a connection. Returns true if it speaks HTTP/2.
async fn open(client: &SharedClient, route: &Route) -> Result<(Stream, bool), ClientError> {
    let options = &client.options;
    let (origin, connect_time) = (&route.origin, options.connect_time);
    let peer = route.tunnel.as_ref().map_or(origin, |proxy| &proxy.origin);
    let connecting = TcpStream::connect((peer.bare_host(), peer.port()));
    let stream = within(Phase::Connect, "connecting", connect_time, connecting).await?;
    // Requests are written as a whole. An error means that the socket is gone.
    _ = stream.set_option(SocketOption::NoDelay(true));
    if let Some(proxy) = &route.tunnel {
        let tunnelling = tunnel(&stream, origin, proxy);
        within(Phase::Proxy, "opening a tunnel", connect_time, tunnelling).await?;
    }
    if !origin.is_encrypted() {
        return Ok((Secured::plain(stream), route.versions == Versions::Http2));
    }
    let securing = options.tls.secure(origin.bare_host(), route.versions, stream);
    let (stream, is_http2) = within(Phase::Tls, "the handshake", options.tls_time, securing).await?;
    if route.versions == Versions::Http2 && !is_http2 {
        return Err(ClientError::new(Phase::Tls, Cause::Said("the server does not speak HTTP/2")));
    }
    Ok((stream, is_http2))
}

async fn within<T>(
    phase: Phase,
    what: &'static str,
    time: Duration,
    work: impl Future<Output = io::Result<T>>,
) -> Result<T, ClientError> {
    match timeout(time, work).await {
        Ok(result) => result.map_err(|error| ClientError::failed(phase, error)),
        Err(_) => Err(ClientError::new(phase, Cause::Time(what, time))),
    }
}

async fn serve_http1(opening: Opening<'_>, stream: Stream) {
    let head_bytes = opening.client.options.head_bytes;
    let mut builder = http1::Builder::new();
    builder.max_header_size(head_bytes).max_buf_size(head_bytes.max(8192));
    match builder.handshake(HyperIo::new(stream).vectored(true)).await {
        Ok((sender, connection)) => {
            if let Some(open) = opening.opened(Sender::Http1(sender)) {
                drive(open, connection.with_upgrades()).await;
            }
        }
        Err(error) => opening.failed(ClientError::failed(Phase::Connect, error)),
    }
}

async fn serve_http2(opening: Opening<'_>, stream: Stream) {
    let options = &opening.client.options;
    let head_bytes = u32::try_from(options.head_bytes).unwrap_or(u32::MAX);
    scope(async |streams: Scope<()>| {
        let mut builder = http2::Builder::new(ScopeExecutor::new(streams.clone()));
        builder
            .timer(ConvokeTimer)
            .keep_alive_interval(PING_TIME)
            .keep_alive_timeout(PING_TIME)
            .max_header_list_size(head_bytes);
        match builder.handshake(HyperIo::new(stream).vectored(true)).await {
            Ok((sender, connection)) => {
                if let Some(open) = opening.opened(Sender::Http2(sender)) {
                    drive(open, connection).await;
                }
            }
            Err(error) => opening.failed(ClientError::failed(Phase::Connect, error)),
        }
        // What is left of its tasks has nobody to work for.
        streams.request_stop(StopReason::Shutdown);
    })
    .await;
}

/// Runs hyper's connection, until it has ended and no request uses it any more.
async fn drive(open: Open<'_>, mut connection: impl Future<Output = hyper::Result<()>> + Unpin) {
    let mut driver = Driver {
        open: &open,
        returning: None,
        is_ended: false,
        is_slow: false,
        idle_at: now().checked_add(open.client.options.idle_time),
        close_at: None,
        alarm: Alarm::default(),
    };
    poll_fn(|cx| driver.poll(&mut connection, cx)).await;
}

struct Driver<'a> {
    open: &'a Open<'a>,
    /// Hyper's handle after a request, until the connection is ready for the next one.
    returning: Option<Sender>,
    /// Hyper has ended. By HTTP/2, requests may still be answered by tasks of it.
    is_ended: bool,
    /// Others were told that this connection is not ready soon.
    is_slow: bool,
    /// The earliest time at which an idle connection has to end.
    idle_at: Option<Instant>,
    /// The time at which the connection is dropped.
    close_at: Option<Instant>,
    alarm: Alarm,
}

impl Driver<'_> {
    fn poll<C>(&mut self, connection: &mut C, cx: &mut Context<'_>) -> Poll<()>
    where
        C: Future<Output = hyper::Result<()>> + Unpin,
    {
        let Open { client, route, id } = *self.open;
        loop {
            // An error is that of the requests, which hear of it.
            if !self.is_ended && Pin::new(&mut *connection).poll(cx).is_ready() {
                self.is_ended = true;
                client.open_all(client.pool.retire(route, id));
            }
            let watch = client.pool.watch(route, id, cx.waker());
            if let Some(returned) = watch.returned {
                self.returning = Some(returned);
                self.is_slow = false;
            }
            if !watch.is_retired {
                self.poll_returning(cx);
                let Some(idle_at) = self.idle_at else { return Poll::Pending };
                if self.alarm.poll(idle_at, cx).is_pending() {
                    return Poll::Pending;
                }
                // If it is retired by this, its handle is dropped, and hyper ends.
                self.idle_at = client.pool.retire_idle(route, id, client.options.idle_time);
                continue;
            }
            self.returning = None;
            if self.is_ended && watch.used == 0 {
                return Poll::Ready(());
            }
            if self.close_at.is_none() {
                let time = if watch.used == 0 { Some(CLOSE_TIME) } else { None };
                let grace = watch.is_closed.then_some(client.options.grace);
                self.close_at = time.or(grace).and_then(|time| now().checked_add(time));
            }
            let Some(close_at) = self.close_at else { return Poll::Pending };
            return self.alarm.poll(close_at, cx);
        }
    }

    /// Returns the handle to the pool when hyper is ready for the next request.
    fn poll_returning(&mut self, cx: &mut Context<'_>) {
        let Open { client, route, id } = *self.open;
        let Some(Sender::Http1(sender)) = &mut self.returning else { return };
        match sender.poll_ready(cx) {
            Poll::Ready(Ok(())) => {
                if let Some(sender) = self.returning.take() {
                    client.pool.ready(route, id, sender);
                }
            }
            // Hyper is about to end.
            Poll::Ready(Err(_)) => self.returning = None,
            Poll::Pending if !self.is_slow => {
                self.is_slow = true;
                client.open_all(client.pool.not_ready(route, id));
            }
            Poll::Pending => {}
        }
    }
}
