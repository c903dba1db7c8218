//! A connection in the hands of a request.

use core::future::Future;
use std::sync::Arc;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1, http2};

use super::super::payload::Payload;
use super::super::route::Route;
use super::Pool;

/// Hyper's handle of a connection.
pub(in super::super) enum Sender {
    Http1(http1::SendRequest<Payload>),
    Http2(http2::SendRequest<Payload>),
}

impl Sender {
    pub(super) fn is_closed(&self) -> bool {
        match self {
            Self::Http1(sender) => sender.is_closed(),
            Self::Http2(sender) => sender.is_closed(),
        }
    }
}

/// A connection that was taken from the pool.
pub(super) struct Taken {
    pub(super) id: u64,
    pub(super) sender: Sender,
    pub(super) is_reused: bool,
}

/// A connection that a request uses, or one stream of it. Dropping it returns the connection.
pub(in super::super) struct Checkout {
    pool: Arc<Pool>,
    route: Arc<Route>,
    id: u64,
    /// `Some` until it is dropped.
    sender: Option<Sender>,
    is_used: bool,
    is_reused: bool,
}

impl Checkout {
    pub(super) fn new(pool: Arc<Pool>, route: Arc<Route>, taken: Taken) -> Self {
        let Taken { id, sender, is_reused } = taken;
        Self { pool, route, id, sender: Some(sender), is_used: false, is_reused }
    }

    /// Returns true if the connection has served a request before: the server may have closed it meanwhile.
    pub(in super::super) fn is_reused(&self) -> bool {
        self.is_reused
    }

    pub(in super::super) fn is_http2(&self) -> bool {
        matches!(self.sender, Some(Sender::Http2(_)))
    }

    /// Sends a request. Its future must be dropped before the checkout.
    pub(in super::super) fn send(
        &mut self,
        request: Request<Payload>,
    ) -> impl Future<Output = Result<Response<Incoming>, TrySendError<Request<Payload>>>> + Send + use<> {
        self.is_used = true;
        let (one, other) = match &mut self.sender {
            Some(Sender::Http1(sender)) => (Some(sender.try_send_request(request)), None),
            Some(Sender::Http2(sender)) => (None, Some(sender.try_send_request(request))),
            None => unreachable!("a checkout has its sender until it is dropped"),
        };
        async move {
            match (one, other) {
                (Some(one), _) => one.await,
                (None, Some(other)) => other.await,
                (None, None) => unreachable!("there is one of them"),
            }
        }
    }
}

impl Drop for Checkout {
    fn drop(&mut self) {
        if let Some(sender) = self.sender.take() {
            self.pool.release(&self.route, self.id, sender, self.is_used);
        }
    }
}

impl Pool {
    /// Takes back the sender of a checkout.
    fn release(self: &Arc<Self>, route: &Arc<Route>, id: u64, sender: Sender, is_used: bool) {
        let now = convoke_exec::time::now();
        self.change_only(|state, later| state.release(route, id, sender, is_used, now, later));
    }
}
