//! One attempt of a request, over one connection.

use core::error::Error;
use core::future::{Future, IntoFuture, poll_fn};
use core::pin::pin;
use core::task::Poll;
use core::time::Duration;
use std::sync::Arc;

use convoke_exec::time::sleep;
use convoke_task::timeout;
use http::header::{AUTHORIZATION, CONNECTION, HOST, PROXY_AUTHORIZATION, UPGRADE};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Method, Request, Response, Uri, Version, request};
use hyper::body::Incoming;

use super::SharedClient;
use super::basic::basic_of;
use super::error::{Cause, ClientError, Phase};
use super::origin::Origin;
use super::payload::{Payload, Progress};
use super::pool::{Acquired, Checkout};
use super::route::{Route, Versions};

/// An attempt that has failed.
pub(super) struct Failure {
    pub(super) error: ClientError,
    /// The body, if it was not sent.
    pub(super) unsent: Option<Payload>,
    /// The connection was lost, or could not be opened. Another one may do.
    pub(super) is_lost: bool,
    /// The connection had served a request before: the server may have closed it at any time.
    pub(super) was_reused: bool,
}

impl Failure {
    fn before(error: ClientError, unsent: Payload, is_lost: bool) -> Self {
        Self { error, unsent: Some(unsent), is_lost, was_reused: false }
    }
}

/// Returns the way of a request to its origin.
pub(super) fn route_of(
    client: &SharedClient,
    head: &request::Parts,
    origin: &Origin,
) -> Result<Route, ClientError> {
    let options = &client.options;
    if origin.is_encrypted() && !options.tls.is_there() {
        return Err(ClientError::request(
            "the client has no TLS: make it by `Client::https()` (feature `tls-system-roots` of convoke-http), or with \
             `Client::builder().tls(…)` (feature `tls`)",
        ));
    }
    if head.method == Method::CONNECT {
        return Err(ClientError::request("a tunnel is opened with `Proxy`, and not by a request"));
    }
    // By HTTP/2 there are no upgrades.
    let versions = if head.headers.contains_key(UPGRADE) { Versions::Http1 } else { options.versions };
    let proxy = options.proxy.of(origin);
    Ok(match proxy {
        Some(proxy) if !origin.is_encrypted() => Route {
            origin: proxy.origin.clone(),
            tunnel: None,
            forwarder: Some(proxy.clone()),
            versions: Versions::Http1,
        },
        proxy => Route { origin: origin.clone(), tunnel: proxy.cloned(), forwarder: None, versions },
    })
}

/// Takes a connection, sends a request by it, and waits for the head of the response. Calls `reached` at each step.
pub(super) async fn exchange(
    client: &Arc<SharedClient>,
    route: &Arc<Route>,
    origin: &Origin,
    (head, body): (request::Parts, Payload),
    head_time: Duration,
    reached: impl Fn(Phase),
) -> Result<(Response<Incoming>, Checkout), Failure> {
    reached(Phase::Wait);
    let mut checkout = match take_connection(client, route).await {
        Ok(checkout) => checkout,
        Err(error) => {
            let is_lost = error.is_connect();
            return Err(Failure::before(error.of(origin, false), body, is_lost));
        }
    };
    let was_reused = checkout.is_reused();
    let progress = body.progress();
    let request = match adapted(head, origin, route, checkout.is_http2()) {
        Ok(head) => Request::from_parts(head, body),
        Err(error) => return Err(Failure::before(error.of(origin, false), body, false)),
    };
    reached(Phase::Head);
    let answer = answered(checkout.send(request), progress.as_deref(), head_time).await;
    let Some(answer) = answer else {
        let error = ClientError::new(Phase::Head, Cause::Time("the head of the response", head_time));
        return Err(Failure { error: error.of(origin, true), unsent: None, is_lost: false, was_reused });
    };
    match answer {
        Ok(response) => Ok((response, checkout)),
        Err(mut failed) => {
            let unsent = failed.take_message().map(Request::into_body);
            let error = failed.into_error();
            let is_unprocessed = unsent.is_some() || is_refused(&error);
            // A response that makes no sense will not make more the next time.
            let is_lost = !error.is_parse() && !error.is_user();
            let error = ClientError::failed(Phase::Head, error).of(origin, !is_unprocessed);
            Err(Failure { error, unsent, is_lost, was_reused })
        }
    }
}

/// Waits for a connection.
async fn take_connection(client: &Arc<SharedClient>, route: &Arc<Route>) -> Result<Checkout, ClientError> {
    let mut waiting = match client.pool.acquire(route, client.places.here())? {
        Acquired::Now(checkout) => return Ok(checkout),
        Acquired::Later(waiting, openings) => {
            client.open_all(openings);
            waiting
        }
    };
    let time = client.options.wait_time;
    match timeout(time, waiting.receiver.recv()).await {
        Ok(Some(result)) => result,
        Ok(None) => Err(ClientError::new(Phase::Wait, Cause::Closed)),
        Err(_) => Err(ClientError::new(Phase::Wait, Cause::Time("waiting", time))),
    }
}

/// Waits for the head of the response, as long as the request makes progress and then for `time`. Returns `None` if the time is up.
async fn answered<F: Future>(sending: F, progress: Option<&Progress>, time: Duration) -> Option<F::Output> {
    let mut sending = pin!(sending);
    let mut timer = pin!(sleep(time).into_future());
    let mut sent = 0;
    poll_fn(|cx| {
        if let Poll::Ready(answer) = sending.as_mut().poll(cx) {
            return Poll::Ready(Some(answer));
        }
        // The timer also hears a stop of the task, which hyper's future does not.
        while timer.as_mut().poll(cx).is_ready() {
            match progress.map_or(0, Progress::count) {
                count if count == sent => return Poll::Ready(None),
                count => sent = count,
            }
            timer.as_mut().reset_after(time);
        }
        Poll::Pending
    })
    .await
}

/// Returns the head as it is written on a connection of this kind.
fn adapted(
    mut head: request::Parts,
    origin: &Origin,
    route: &Route,
    is_http2: bool,
) -> Result<request::Parts, ClientError> {
    let authority = origin.authority();
    if let Some(user) = head.uri.authority().and_then(|authority| basic_of(authority.as_str())) {
        head.headers.entry(AUTHORIZATION).or_insert(user);
    }
    if let Some(authorization) = route.forwarder.as_ref().and_then(|proxy| proxy.authorization.as_ref()) {
        head.headers.insert(PROXY_AUTHORIZATION, authorization.clone());
    }
    let path = head.uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
    if is_http2 {
        head.version = Version::HTTP_2;
        head.headers.remove(CONNECTION);
    } else {
        head.version = Version::HTTP_11;
        let host = HeaderValue::try_from(&authority).map_err(ClientError::request)?;
        head.headers.entry(HOST).or_insert(host);
    }
    let mut uri = http::uri::Parts::default();
    uri.path_and_query = Some(path);
    if is_http2 || route.forwarder.is_some() {
        uri.scheme = Some(if origin.is_encrypted() { Scheme::HTTPS } else { Scheme::HTTP });
        uri.authority = Some(Authority::try_from(authority).map_err(ClientError::request)?);
    }
    head.uri = Uri::from_parts(uri).map_err(ClientError::request)?;
    Ok(head)
}

/// Returns true if the server says that it has not processed the request.
fn is_refused(error: &hyper::Error) -> bool {
    let mut next = error.source();
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<h2::Error>() {
            let reason = error.reason();
            return reason == Some(h2::Reason::REFUSED_STREAM)
                || (error.is_go_away() && error.is_remote() && reason == Some(h2::Reason::NO_ERROR));
        }
        next = error.source();
    }
    false
}
