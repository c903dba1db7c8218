//! A connection by HTTP/2: hyper's, with a task for each stream.

use core::future::Future;
use core::pin::Pin;
use core::time::Duration;
use std::sync::Arc;

use convoke_core::UntilStopped;
use convoke_task::Scope;
use futures_io::{AsyncRead, AsyncWrite};
use hyper::rt::Executor;
use hyper::server::conn::http2::{Builder, Connection};

use super::drive::{Ended, HyperConnection, drive};
use super::observed::Observed;
use super::protocol::Prefixed;
use super::requests::Requests;
use super::stalled::Unstalled;
use super::{HttpService, SharedServer};
use crate::rt::{ConvokeTimer, HyperIo};

/// Serves the requests of a connection until it ends. Returns why hyper has ended it, if that is a failure.
pub(super) async fn converse<S, T>(
    stream: Prefixed<T>,
    requests: Requests<S>,
    scope: Scope<()>,
    mut stop: UntilStopped,
) -> Option<hyper::Error>
where
    S: HttpService,
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (server, activity) = (requests.origin.server.clone(), requests.origin.activity.clone());
    let write_time = server.limits.write_time;
    let io = HyperIo::new(Observed::new(stream, activity.clone(), write_time)).vectored(true);
    let streams = Streams { scope, name: "stream of HTTP/2".into(), write_time };
    let mut http = builder(streams, &server).serve_connection(io, requests);
    match drive(&mut http, &mut stop, &activity, &server.limits).await {
        Ended::Hyper(result) => result.err(),
        Ended::SlowHead | Ended::Unresponsive | Ended::Dormant => None,
    }
}

fn builder<E: Clone, S>(streams: E, server: &SharedServer<S>) -> Builder<E> {
    let limits = &server.limits;
    let mut builder = Builder::new(streams);
    builder
        .timer(ConvokeTimer)
        .auto_date_header(!server.has_own_clock)
        .max_concurrent_streams(limits.streams)
        .initial_stream_window_size(limits.stream_window_bytes)
        .initial_connection_window_size(limits.connection_window_bytes)
        // Hyper does not take more than that.
        .max_send_buf_size(limits.send_bytes.min(u32::MAX as usize))
        .keep_alive_interval(limits.probes_after())
        .keep_alive_timeout(limits.probe_time)
        .max_header_list_size(u32::try_from(limits.header_bytes).unwrap_or(u32::MAX));
    builder
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

impl<T, S> HyperConnection for Connection<HyperIo<T>, Requests<S>, Streams>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: HttpService,
{
    fn drain(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}
