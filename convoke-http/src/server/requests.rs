//! The service that hyper calls: starts a child of the connection for each request.

use core::convert::Infallible;
use std::sync::Arc;

use convoke_exec::time::now;
use convoke_task::{Scope, timeout};
use http::{Request, Response, StatusCode, Version, header};
use hyper::body::{Body, Incoming};
use hyper::service::Service;

use super::activity::Activity;
use super::exchange::Exchange;
use super::reply::Reply;
use super::reply_body::{OnFailure, ReplyBody};
use super::{HttpService, OnHangUp, Shared};
use crate::body::{BodyError, RequestBody};
use crate::caught::Caught;
use crate::connection::Connection;
use crate::report::{Report, RequestLine};

/// The requests of a connection. Hyper calls it, and holds only [`Reply`].
pub(super) struct Requests<S> {
    pub(super) server: Arc<Shared<S>>,
    pub(super) connection: Connection,
    pub(super) activity: Arc<Activity>,
    /// The scope of the handlers.
    pub(super) scope: Scope<()>,
}

impl<S: HttpService> Service<Request<Incoming>> for Requests<S> {
    type Response = Response<ReplyBody<S::Body>>;
    type Error = Infallible;
    type Future = Reply<S::Body>;

    fn call(&self, request: Request<Incoming>) -> Reply<S::Body> {
        let line = RequestLine {
            peer: self.connection.peer().clone(),
            method: request.method().clone(),
            uri: request.uri().clone(),
        };
        let permit =
            if self.has_too_many(&request) { None } else { self.server.requests.try_acquire_many_owned(1) };
        let refusal = match permit {
            Some(_) => self.refusal(&request),
            None => Some(StatusCode::SERVICE_UNAVAILABLE),
        };
        let on_request = self.server.on_request.as_ref();
        let exchange = Exchange::begin(&self.activity, permit, on_request, &line, &request);
        if let Some(status) = refusal {
            return Reply::ready(ReplyBody::of_server(status, Some(exchange)));
        }
        let limits = &self.server.limits;
        let request = request.map(|body| {
            // Without a body, nobody asks for the time.
            let deadline = if body.is_end_stream() { None } else { now().checked_add(limits.body_time) };
            RequestBody::new(body, limits.body_bytes, deadline)
        });
        let answering = answer(self.server.clone(), request, line, exchange);
        // Most handlers answer without a wait, and then hyper need not be polled a second time.
        let handle = self.scope.named(self.server.request_name.clone()).spawn_future_eagerly(answering);
        let keeper = match self.server.on_hang_up {
            OnHangUp::Stop => None,
            OnHangUp::Finish => Some(self.scope.clone()),
        };
        Reply::running(handle, keeper)
    }
}

impl<S> Requests<S> {
    /// Returns true if the client has reset so many requests whose clean-up still runs that it gets no more of those that the
    /// server can work on. Hyper bounds only the requests that were not reset.
    fn has_too_many(&self, request: &Request<Incoming>) -> bool {
        request.version() == Version::HTTP_2
            && self.activity.requests() >= (self.server.limits.streams as usize).saturating_mul(2)
    }

    /// Returns the status with which a request is refused because of its head.
    fn refusal(&self, request: &Request<Incoming>) -> Option<StatusCode> {
        let limits = &self.server.limits;
        if request.headers().len() > limits.headers {
            return Some(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
        }
        // The lower bound is the announced length.
        if request.body().size_hint().lower() > limits.body_bytes {
            return Some(StatusCode::PAYLOAD_TOO_LARGE);
        }
        // Without one, a server must refuse the request; with two, somebody on the way may have believed in the other.
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

/// Runs the service for a request, as a task of its own. Makes a response of all that can happen, but of a stop.
async fn answer<S: HttpService>(
    server: Arc<Shared<S>>,
    request: Request<RequestBody>,
    line: RequestLine,
    exchange: Exchange,
) -> Box<Response<ReplyBody<S::Body>>> {
    // Called inside the task, so that a panic of the call itself is that of the request.
    let serving = async { server.service.call(request).await };
    let result = match server.request_time {
        None => Caught::new(serving).await.map(Ok),
        Some(time) => Caught::new(timeout(time, serving)).await.map(|result| result.map_err(|_| time)),
    };
    let (status, report) = match result {
        Ok(Ok(Ok(response))) => {
            let on_failure = OnFailure { report: server.report.clone(), request: line };
            return Box::new(ReplyBody::of_service(response, exchange, on_failure));
        }
        Ok(Ok(Err(error))) => {
            let error = error.into();
            match BodyError::status_in(&*error) {
                Some(status) => (status, Report::BadClient { peer: line.peer, error }),
                None => (StatusCode::INTERNAL_SERVER_ERROR, Report::Failed { request: line, error }),
            }
        }
        Ok(Err(limit)) => (StatusCode::SERVICE_UNAVAILABLE, Report::TooSlow { request: line, limit }),
        Err(panic) => (StatusCode::INTERNAL_SERVER_ERROR, Report::Panicked { request: line, panic }),
    };
    server.report(report);
    Box::new(ReplyBody::of_server(status, Some(exchange)))
}
