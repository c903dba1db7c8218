//! The drain of a server: it was asked to stop, and finishes what it has begun.

use convoke_core::StopToken;

/// The drain of a server, for handlers that must hear of it: a request that was begun is shielded from the stop of the
/// server, and so hears nothing of it otherwise. See [`Connection::drain`](crate::Connection::drain).
///
/// A long poll waits for [`begun`](Drain::begun). A readiness probe asks [`has_begun`](Drain::has_begun), on a server that
/// [announces](crate::Server::announce) its drain: on any other, a probe that comes after the stop request is refused, as
/// everybody is.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::sync::Event;
/// use convoke_http::{Connection, RequestBody};
/// use http::{Request, Response, StatusCode};
///
/// static NEWS: Event = Event::new();
///
/// /// Answers when there is news, or when the server is about to end.
/// async fn long_poll(_: Request<RequestBody>) -> Result<Response<String>, std::io::Error> {
///     let Some(connection) = Connection::current() else { return Ok(Response::default()) };
///     let drain = connection.drain();
///     let news = race((
///         async { NEWS.wait().await; true },
///         async { drain.begun().await; false },
///     ))
///     .await;
///     let mut answer = Response::new(if news { "news" } else { "ask again" }.to_owned());
///     if drain.has_begun() {
///         *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
///     }
///     Ok(answer)
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Drain {
    stop: StopToken,
}

impl Drain {
    pub(crate) fn new(stop: StopToken) -> Self {
        Self { stop }
    }

    /// Returns true if the server was asked to stop.
    pub fn has_begun(&self) -> bool {
        self.stop.stop_requested()
    }

    /// Waits until the server is asked to stop, without ending by it.
    ///
    /// - *Completes with* `()`, when the drain begins, or at once if it has begun. Stopped, if the task is asked to stop
    ///   before.
    /// - *If dropped*, nothing happens.
    /// - *Runs on* the current task.
    pub async fn begun(&self) {
        self.stop.stopped().await;
    }
}
