//! Services of tower, such as axum's routers.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};

use bytes::Bytes;
use http::Request;
use hyper::body::{Body, Frame, SizeHint};
use hyper::service::Service;
use pin_project_lite::pin_project;

use crate::body::{BodyError, RequestBody};
use crate::report::AnyError;

/// Makes a service of tower one that a [`Server`](crate::Server) runs.
///
/// ```no_run
/// use axum::{Router, routing::get};
/// use convoke_http::{Server, tower};
///
/// #[convoke::main]
/// async fn main() -> std::io::Result<()> {
///     let router = Router::new().route("/", get(async || "hello"));
///     Server::new("127.0.0.1:7000", tower(router)).await
/// }
/// ```
pub fn tower<S>(service: S) -> TowerService<S> {
    TowerService { service }
}

/// A service of tower, as hyper's. Returned by [`tower()`]. Each request is handled by a clone.
#[derive(Clone)]
pub struct TowerService<S> {
    service: S,
}

/// The body of a request, for services of tower: a [`RequestBody`] with boxed errors. One that is larger than its limit is a
/// [`LengthLimitError`](http_body_util::LengthLimitError), which frameworks answer with 413. Others are a
/// [`BodyError`](crate::BodyError).
#[derive(Debug)]
pub struct TowerBody {
    body: RequestBody,
}

impl Body for TowerBody {
    type Data = Bytes;
    type Error = AnyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, AnyError>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        polled.map(|frame| frame.map(|frame| frame.map_err(BodyError::into_innermost)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<S> Service<Request<RequestBody>> for TowerService<S>
where
    S: tower_service::Service<Request<TowerBody>> + Clone,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = TowerCall<S>;

    fn call(&self, request: Request<RequestBody>) -> TowerCall<S> {
        let request = Some(request.map(|body| TowerBody { body }));
        TowerCall { step: Step::Waiting { service: self.service.clone(), request } }
    }
}

pin_project! {
    /// The future of a [`TowerService`]: waits until the service is ready, and calls it.
    #[must_use = "futures do nothing until they are awaited"]
    pub struct TowerCall<S>
    where
        S: tower_service::Service<Request<TowerBody>>,
    {
        #[pin]
        step: Step<S, S::Future>,
    }
}

pin_project! {
    #[project = StepProjection]
    enum Step<S, F> {
        Waiting { service: S, request: Option<Request<TowerBody>> },
        Called { #[pin] future: F },
    }
}

impl<S> Future for TowerCall<S>
where
    S: tower_service::Service<Request<TowerBody>>,
{
    type Output = Result<S::Response, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut step = self.project().step;
        if let StepProjection::Waiting { service, request } = step.as_mut().project() {
            ready!(service.poll_ready(cx))?;
            let Some(request) = request.take() else { panic!("polled after the service has panicked") };
            let future = service.call(request);
            step.set(Step::Called { future });
        }
        match step.project() {
            StepProjection::Called { future } => future.poll(cx),
            StepProjection::Waiting { .. } => unreachable!("it was called above"),
        }
    }
}

impl<S> fmt::Debug for TowerService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TowerService").finish_non_exhaustive()
    }
}

impl<S> fmt::Debug for TowerCall<S>
where
    S: tower_service::Service<Request<TowerBody>>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TowerCall").finish_non_exhaustive()
    }
}
