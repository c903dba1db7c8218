//! The task of a request: runs the service, and makes a response of all that can happen, but of a stop.
//!
//! It is a future by hand, because requests and responses are large: an `async fn` would move them some ten times more.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;
use std::sync::Arc;

use convoke_core::Panic;
use convoke_exec::time::now;
use convoke_task::limits::{Timeout, timeout};
use http::{Request, StatusCode};
use hyper::body::{Body, Incoming};
use pin_project_lite::pin_project;

use super::HttpService;
use super::exchange::{Exchange, Origin};
use crate::body::{BodyError, RequestBody};
use crate::caught::Caught;
use crate::report::{AnyError, Report};

pin_project! {
    /// Runs the service for a request, as a task of its own.
    pub(super) struct Answer<S: HttpService> {
        #[pin]
        served: Caught<Served<S>>,
        // Taken at the end.
        exchange: Option<Box<Exchange<S>>>,
    }
}

impl<S: HttpService> Answer<S> {
    pub(super) fn new(request: Request<Incoming>, exchange: Box<Exchange<S>>) -> Self {
        let origin = exchange.origin.clone();
        let limit = origin.server.request_time;
        let call = Call { origin, state: CallState::Begins { request: Some(request) } };
        let served = match limit {
            None => Served::Unlimited { call },
            Some(limit) => Served::Limited { call: timeout(limit, call), limit },
        };
        Self { served: Caught::new(served), exchange: Some(exchange) }
    }
}

impl<S: HttpService> Future for Answer<S> {
    type Output = Box<Exchange<S>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let result = ready!(this.served.poll(cx));
        let Some(mut exchange) = this.exchange.take() else { panic!("polled after completion") };
        let answer = match result {
            Ok(Ok(Ok(response))) => Ok(response),
            Ok(Ok(Err(error))) => Err(failed(error.into(), &exchange)),
            Ok(Err(limit)) => Err(too_slow(limit, &exchange)),
            Err(panic) => Err(panicked(panic, &exchange)),
        };
        exchange.answer(answer);
        Poll::Ready(exchange)
    }
}

#[cold]
fn failed<S: HttpService>(error: AnyError, exchange: &Exchange<S>) -> StatusCode {
    match BodyError::status_in(&*error) {
        Some(status) => {
            exchange.report(|request| Report::BadClient { peer: request.peer, error });
            status
        }
        None => {
            exchange.report(|request| Report::Failed { request, error });
            StatusCode::INTERNAL_SERVER_ERROR
        }
    }
}

#[cold]
fn too_slow<S: HttpService>(limit: Duration, exchange: &Exchange<S>) -> StatusCode {
    exchange.report(|request| Report::TooSlow { request, limit });
    StatusCode::SERVICE_UNAVAILABLE
}

#[cold]
fn panicked<S: HttpService>(panic: Panic, exchange: &Exchange<S>) -> StatusCode {
    exchange.report(|request| Report::Panicked { request, panic });
    StatusCode::INTERNAL_SERVER_ERROR
}

pin_project! {
    /// A call of the service, within the time of a request if there is one.
    #[project = ServedNow]
    enum Served<S: HttpService> {
        Unlimited {
            #[pin]
            call: Call<S>,
        },
        Limited {
            #[pin]
            call: Timeout<Call<S>>,
            limit: Duration,
        },
    }
}

impl<S: HttpService> Future for Served<S> {
    /// `Err` if the time was over, which was that long.
    type Output = Result<<S::Future as Future>::Output, Duration>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project() {
            ServedNow::Unlimited { call } => call.poll(cx).map(Ok),
            ServedNow::Limited { call, limit } => call.poll(cx).map_err(|_| *limit),
        }
    }
}

pin_project! {
    /// A call of the service: inside the task, so that a panic of the call itself is that of the request.
    struct Call<S: HttpService> {
        origin: Arc<Origin<S>>,
        #[pin]
        state: CallState<S::Future>,
    }
}

pin_project! {
    #[project = CallNow]
    enum CallState<F> {
        // `None` while the service is called.
        Begins {
            request: Option<Request<Incoming>>,
        },
        Runs {
            #[pin]
            future: F,
        },
    }
}

impl<S: HttpService> Future for Call<S> {
    type Output = <S::Future as Future>::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let CallNow::Begins { request } = this.state.as_mut().project() {
            let Some(request) = request.take() else { panic!("polled after a panic") };
            let server = &this.origin.server;
            let request = request.map(|body| {
                // Without a body, nobody asks for the time.
                let deadline =
                    if body.is_end_stream() { None } else { now().checked_add(server.limits.body_time) };
                RequestBody::new(body, server.limits.body_bytes, deadline)
            });
            this.state.set(CallState::Runs { future: server.service.call(request) });
        }
        match this.state.project() {
            CallNow::Runs { future } => future.poll(cx),
            CallNow::Begins { .. } => unreachable!("the service was called above"),
        }
    }
}
