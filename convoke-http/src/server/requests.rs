//! The service that hyper calls: starts a child of the connection for each request.

use core::convert::Infallible;
use std::sync::Arc;

use convoke_task::Scope;
use http::{Request, Response, StatusCode, Version, header};
use hyper::body::{Body, Incoming};
use hyper::service::Service;

use super::answer::Answer;
use super::exchange::{Exchange, Origin};
use super::reply::Reply;
use super::reply_body::ReplyBody;
use super::{HttpService, OnHangUp};

/// The requests of a connection. Hyper calls it, and holds only [`Reply`].
pub(super) struct Requests<S> {
    pub(super) origin: Arc<Origin<S>>,
    /// The scope of the handlers.
    pub(super) scope: Scope<()>,
}

impl<S: HttpService> Service<Request<Incoming>> for Requests<S> {
    type Response = Response<ReplyBody<S>>;
    type Error = Infallible;
    type Future = Reply<S>;

    fn call(&self, request: Request<Incoming>) -> Reply<S> {
        let server = &*self.origin.server;
        let has_place = !self.has_too_many(&request) && server.places.take();
        let refusal = if has_place { self.refusal(&request) } else { Some(StatusCode::SERVICE_UNAVAILABLE) };
        let mut exchange = Exchange::begin(&self.origin, has_place, &request);
        if let Some(status) = refusal {
            exchange.answer(Err(status));
            return Reply::ready(exchange);
        }
        let child = self.scope.named(server.request_name.clone());
        // Most handlers answer without a wait, and then hyper need not be polled a second time.
        let handle = child.spawn_future_eagerly(Answer::new(request, exchange));
        let keeper = match server.on_hang_up {
            OnHangUp::Stop => None,
            OnHangUp::Finish => Some(self.scope.clone()),
        };
        Reply::running(handle, keeper, server.has_own_clock)
    }
}

impl<S> Requests<S> {
    /// Returns true if the connection has twice as many requests as it may have streams. The surplus was reset by the client,
    /// and is still being cleaned up: hyper bounds only the requests that were not reset.
    fn has_too_many(&self, request: &Request<Incoming>) -> bool {
        request.version() == Version::HTTP_2
            && self.origin.activity.requests()
                >= (self.origin.server.limits.streams as usize).saturating_mul(2)
    }

    /// Returns the status with which a request is refused because of its head.
    fn refusal(&self, request: &Request<Incoming>) -> Option<StatusCode> {
        let limits = &self.origin.server.limits;
        if request.headers().len() > limits.headers {
            return Some(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
        }
        // The lower bound is the announced length.
        if request.body().size_hint().lower() > limits.body_bytes {
            return Some(StatusCode::PAYLOAD_TOO_LARGE);
        }
        // RFC 9112 demands a refusal without one; with two, a proxy may have used the other one.
        if request.version() == Version::HTTP_11
            && request.headers().get_all(header::HOST).iter().count() != 1
        {
            return Some(StatusCode::BAD_REQUEST);
        }
        // Hyper has checked the lengths by HTTP/1, and removed those that do not count.
        let lengths = request.headers().get_all(header::CONTENT_LENGTH).iter().count();
        (lengths > 1).then_some(StatusCode::BAD_REQUEST)
    }
}
