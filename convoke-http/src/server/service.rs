//! The services that a server can run.

use core::future::Future;

use http::{Request, Response};
use hyper::body::Body;
use hyper::service::Service;

use crate::body::RequestBody;
use crate::report::AnyError;

/// A service that a [`Server`](crate::Server) can run: any of hyper's, from a request with a [`RequestBody`] to a response. Its
/// future is `Send`, since requests run on all cores. An `async fn` becomes one with
/// [`service_fn`](hyper::service::service_fn), a service of tower with `convoke_http::tower`.
///
/// Implemented for all of them, and not to be implemented otherwise.
#[diagnostic::on_unimplemented(
    message = "a server cannot run `{Self}`",
    note = "it runs a `hyper::service::Service<Request<RequestBody>>` that is `Send` and `Sync`, with a `Send` future",
    note = "wrap a function with `hyper::service::service_fn`, and a service of tower with `convoke_http::tower`"
)]
pub trait HttpService: Send + Sync + 'static {
    /// The body of its responses.
    type Body: Body<Data: Send, Error: Into<AnyError>> + Send + 'static;
    /// The error of requests that fail.
    type Error: Into<AnyError>;
    /// The future of a request.
    type Future: Future<Output = Result<Response<Self::Body>, Self::Error>> + Send + 'static;

    /// Handles a request.
    #[doc(hidden)]
    fn call(&self, request: Request<RequestBody>) -> Self::Future;
}

#[diagnostic::do_not_recommend]
impl<S, B> HttpService for S
where
    S: Service<Request<RequestBody>, Response = Response<B>, Error: Into<AnyError>> + Send + Sync + 'static,
    S::Future: Send + 'static,
    B: Body<Data: Send, Error: Into<AnyError>> + Send + 'static,
{
    type Body = B;
    type Error = S::Error;
    type Future = S::Future;

    fn call(&self, request: Request<RequestBody>) -> S::Future {
        Service::call(self, request)
    }
}
