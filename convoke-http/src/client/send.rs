//! A request with its retries and redirects.

use core::future::Future;
use core::time::Duration;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use convoke_core::raw::sync::Mutex;
use convoke_exec::time::{now, sleep};
use convoke_task::schedule::{Backoff, Waits};
use convoke_task::{current, limits::timeout_at};
use http::request;

use super::SharedClient;
use super::error::{Cause, ClientError, Phase};
use super::exchange::{Failure, exchange, route_of};
use super::origin::Origin;
use super::payload::Payload;
use super::redirect::{Redirect, redirect_of};
use super::response::{Response, ResponseBody};

/// The maximum number of times that a request is sent again, without a pause, because the server had closed an idle connection or
/// has refused the request unseen.
const STALE_RETRIES: usize = 3;
/// The maximum size of the body of a redirect that is read, so that the connection can be used again.
const SKIPPED_BYTES: usize = 16 * 1024;

/// A request as it was ordered.
pub(super) struct Order {
    pub(super) head: request::Parts,
    pub(super) body: Payload,
    pub(super) total_time: Option<Duration>,
    pub(super) head_time: Duration,
    pub(super) redirects: usize,
    pub(super) retry: Option<Backoff>,
}

/// The step that a request has reached, and where: what it says if its time is up.
type Reached = Mutex<(Phase, Option<Origin>)>;

/// Sends a request.
pub(super) async fn send(client: Arc<SharedClient>, mut order: Order) -> Result<Response, ClientError> {
    for (name, value) in &client.options.headers {
        if !order.head.headers.contains_key(name) {
            order.head.headers.append(name, value.clone());
        }
    }
    let reached = Mutex::new((Phase::Request, None));
    let total = order.total_time.and_then(|time| Some((now().checked_add(time)?, time)));
    let following = follow(&client, order, total, &reached);
    match total {
        None => following.await,
        Some((at, time)) => within(at, time, following, &reached).await,
    }
}

async fn within(
    at: Instant,
    time: Duration,
    following: impl Future<Output = Result<Response, ClientError>>,
    reached: &Reached,
) -> Result<Response, ClientError> {
    match timeout_at(at, following).await {
        Ok(result) => result,
        Err(_) => {
            let (phase, origin) = reached.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let error = ClientError::new(phase, Cause::Time("the request", time));
            Err(match origin {
                Some(origin) => error.of(&origin, phase >= Phase::Head),
                None => error,
            })
        }
    }
}

/// Sends a request, and follows redirects.
async fn follow(
    client: &Arc<SharedClient>,
    mut order: Order,
    total: Option<(Instant, Duration)>,
    reached: &Reached,
) -> Result<Response, ClientError> {
    let mut followed = 0;
    loop {
        let origin = Origin::of(&order.head.uri).map_err(ClientError::request)?;
        let response = attempt(client, &mut order, &origin, total, reached).await?;
        if order.redirects == 0 {
            return Ok(response);
        }
        let redirect = redirect_of(&response, &order).map_err(|error| error.of(&origin, true))?;
        let Some(Redirect { uri, changes_method, changes_origin }) = redirect else { return Ok(response) };
        if followed == order.redirects {
            let error = ClientError::new(Phase::Redirect, Cause::Said("there are too many of them"));
            return Err(error.of(&origin, true));
        }
        followed += 1;
        response.skip_body(SKIPPED_BYTES).await;
        order.redirect(uri, changes_method, changes_origin);
    }
}

/// Sends a request, and does so again as long as that is allowed.
async fn attempt(
    client: &Arc<SharedClient>,
    order: &mut Order,
    origin: &Origin,
    total: Option<(Instant, Duration)>,
    reached: &Reached,
) -> Result<Response, ClientError> {
    let route = Arc::new(route_of(client, &order.head, origin).map_err(|error| error.of(origin, false))?);
    let mut stale = 0;
    let mut pauses = order.retry.map(|schedule| schedule.waits());
    loop {
        if order.body.is_gone() {
            return Err(ClientError::request("its body is a stream, and was sent before").of(origin, true));
        }
        let reach = |phase| {
            *reached.lock().unwrap_or_else(PoisonError::into_inner) = (phase, Some(origin.clone()));
        };
        let message = (order.head.clone(), order.body.take());
        let failure = match exchange(client, &route, origin, message, order.head_time, reach).await {
            Ok((response, checkout)) => {
                let options = &client.options;
                let uri = order.head.uri.clone();
                return Ok(Response::new(response, uri, options.collected_bytes, |incoming| {
                    let (origin, idle_time) = (origin.clone(), options.body_idle_time);
                    ResponseBody::new(incoming, checkout, origin, idle_time, total)
                }));
            }
            Err(failure) => failure,
        };
        let Failure { error, unsent, is_lost, was_reused } = failure;
        if let (true, Some(body)) = (order.body.is_gone(), unsent) {
            order.body = body;
        }
        let may_repeat = !error.may_have_been_processed() || order.head.method.is_idempotent();
        if !is_lost || !may_repeat || order.body.is_gone() {
            return Err(error);
        }
        let is_stale = error.phase() == Phase::Head && (was_reused || !error.may_have_been_processed());
        if is_stale && stale < STALE_RETRIES {
            stale += 1;
            // The other idle connections of the route are probably as old.
            client.pool.discard_idle(&route);
            continue;
        }
        match pauses.as_mut().and_then(Waits::next) {
            Some(pause) if !is_in_vain(pause) => sleep(pause).await,
            _ => return Err(error),
        }
    }
}

/// Returns true if the deadline of the task passes before the end of this pause.
fn is_in_vain(pause: Duration) -> bool {
    current::deadline().is_some_and(|deadline| now().checked_add(pause).is_none_or(|end| end >= deadline))
}
