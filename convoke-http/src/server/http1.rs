//! A connection by HTTP/1: awake, while hyper works on requests; and dormant, while it waits for the next one.
//!
//! A connection that waits needs the stream, and nothing of hyper: its state, and two buffers of 8 KiB, are dropped. One whose
//! requests follow each other closely stays awake in between (`activity`).

use core::future::{Future, IntoFuture, poll_fn};
use core::pin::{Pin, pin};
use core::task::Poll;

use convoke_core::UntilStopped;
use convoke_exec::time::{now, sleep};
use convoke_net::stream::{Linger, lingering_close, write_all};
use convoke_task::timeout;
use futures_io::{AsyncRead, AsyncWrite};
use hyper::server::conn::http1::{Builder, UpgradeableConnection};

use super::drive::{Ended, HyperConnection, drive};
use super::observed::Observed;
use super::protocol::Prefixed;
use super::requests::Requests;
use super::{HttpService, SharedServer};
use crate::limits::HEADERS;
use crate::report::Report;
use crate::rt::{ConvokeTimer, HyperIo};

/// The answer to a client that is too slow with the head of its request.
const TOO_SLOW: &[u8] = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// Serves the requests of a connection until it ends. Returns why hyper has ended it, if that is a failure.
pub(super) async fn converse<S, T>(
    stream: Prefixed<T>,
    requests: Requests<S>,
    stop: UntilStopped,
) -> Option<hyper::Error>
where
    S: HttpService,
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (scope, name) = (requests.scope.clone(), requests.origin.server.driver_name.clone());
    let mut waiting = Waiting { stream, requests, stop };
    loop {
        // A task of its own: the socket then wakes hyper without the layers around the connection, and a dormant
        // connection does not have the memory.
        match scope.named(name.clone()).spawn_future_eagerly(awake(waiting)).await {
            Awake::Ended(failure) => return failure,
            Awake::Dormant(again) => waiting = again,
        }
        if !dormant(&mut waiting).await {
            // By TLS, the client is told. One that does not listen any more does not matter.
            let close = poll_fn(|cx| Pin::new(&mut waiting.stream).poll_close(cx));
            _ = timeout(waiting.requests.origin.server.limits.write_time, close).await;
            return None;
        }
    }
}

/// The parts of a connection that waits for a request.
struct Waiting<S, T> {
    stream: Prefixed<T>,
    requests: Requests<S>,
    stop: UntilStopped,
}

/// The end of a time in which a connection was awake.
enum Awake<S, T> {
    Ended(Option<hyper::Error>),
    Dormant(Waiting<S, T>),
}

/// Runs hyper until the connection ends, or has nothing to do.
async fn awake<S, T>(waiting: Waiting<S, T>) -> Awake<S, T>
where
    S: HttpService,
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Waiting { stream, requests, mut stop } = waiting;
    let (server, activity) = (requests.origin.server.clone(), requests.origin.activity.clone());
    let io = Observed::new(stream, activity.clone(), server.limits.write_time);
    let io = HyperIo::new(io).vectored(true);
    let mut http = builder(&server).serve_connection(io, requests).with_upgrades();
    match drive(&mut http, &mut stop, &activity, &server.limits).await {
        Ended::Hyper(result) => Awake::Ended(result.err()),
        Ended::Unresponsive => Awake::Ended(None),
        Ended::SlowHead => {
            if let Some(parts) = http.into_parts() {
                refuse_slow_head(parts.io.into_inner()).await;
            }
            Awake::Ended(None)
        }
        Ended::Dormant => match http.into_parts() {
            Some(parts) => {
                let mut stream = parts.io.into_inner().into_inner();
                stream.unread(&parts.read_buf);
                Awake::Dormant(Waiting { stream, requests: parts.service, stop })
            }
            None => Awake::Ended(None),
        },
    }
}

/// Waits for the first bytes of the next request. Returns false if the connection ends instead: the client has ended it,
/// it was idle for too long, or a stop is requested.
async fn dormant<S, T>(waiting: &mut Waiting<S, T>) -> bool
where
    S: HttpService,
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Waiting { stream, requests, stop } = waiting;
    let since = now();
    let mut patience = pin!(sleep(requests.origin.server.limits.idle_time).into_future());
    let filled = poll_fn(|cx| {
        if stop.poll_requested(cx).is_ready() {
            return Poll::Ready(Ok(0));
        }
        if stream.has_unread() {
            return Poll::Ready(Ok(1));
        }
        match stream.poll_fill(cx) {
            Poll::Pending => patience.as_mut().poll(cx).map(|()| Ok(0)),
            filled => filled,
        }
    });
    match filled.await {
        Ok(0) => false,
        Ok(_) => {
            requests.origin.activity.woke_after(now().saturating_duration_since(since));
            true
        }
        Err(error) => {
            let peer = requests.origin.connection.peer().clone();
            requests.origin.server.report(Report::BadClient { peer, error: error.into() });
            false
        }
    }
}

fn builder<S>(server: &SharedServer<S>) -> Builder {
    let limits = &server.limits;
    let mut builder = Builder::new();
    builder
        .timer(ConvokeTimer)
        .auto_date_header(!server.has_own_clock)
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

/// Tells a client that it was too slow. If it cannot be told, that does not matter.
async fn refuse_slow_head<T: AsyncRead + AsyncWrite + Unpin>(mut stream: T) {
    if write_all(&mut stream, TOO_SLOW).await.is_ok() {
        _ = lingering_close(&mut stream, Linger::new()).await;
    }
}

impl<T, S> HyperConnection for UpgradeableConnection<HyperIo<T>, Requests<S>>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: HttpService,
{
    fn drain(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}
