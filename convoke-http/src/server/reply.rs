//! The part of a request that hyper holds: a handle. When a client hangs up, hyper drops it, and nothing else.

use core::convert::Infallible;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};

use convoke_core::Outcome;
use convoke_task::Scope;
use convoke_task::scope::{Handle, HandleOutcome};
use http::{Response, StatusCode};

use super::HttpService;
use super::date::add_date;
use super::exchange::Exchange;
use super::reply_body::ReplyBody;
use super::stalled::Seen;

/// The answered exchange of a request, or the handle of the task that answers it. If it is dropped, that task is asked to stop, or
/// finishes unheard if it has a `keeper`.
pub(super) struct Reply<S: HttpService> {
    state: ReplyState<S>,
    /// The scope of the task, if the task is to finish although no connection waits for it.
    keeper: Option<Scope<()>>,
    /// True if the response needs a date of ours.
    is_dated: bool,
}

enum ReplyState<S: HttpService> {
    Ready(Box<Exchange<S>>),
    Running(HandleOutcome<Box<Exchange<S>>>),
    Taken,
}

impl<S: HttpService> Reply<S> {
    pub(super) fn ready(exchange: Box<Exchange<S>>) -> Self {
        let is_dated = exchange.origin.server.has_own_clock;
        Self { state: ReplyState::Ready(exchange), keeper: None, is_dated }
    }

    pub(super) fn running(
        handle: Handle<Box<Exchange<S>>>,
        keeper: Option<Scope<()>>,
        is_dated: bool,
    ) -> Self {
        Self { state: ReplyState::Running(handle.outcome()), keeper, is_dated }
    }
}

// Nothing in it is pinned in place: a handle can be moved.
impl<S: HttpService> Unpin for Reply<S> {}

impl<S: HttpService> Future for Reply<S> {
    type Output = Result<Response<ReplyBody<S>>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let outcome = match &mut self.state {
            ReplyState::Running(running) => Some(ready!(Pin::new(running).poll(cx))),
            _ => None,
        };
        let mut response = match (core::mem::replace(&mut self.state, ReplyState::Taken), outcome) {
            (_, Some(Outcome::Value(exchange))) | (ReplyState::Ready(exchange), None) => {
                ReplyBody::of(exchange)
            }
            // The handler has stopped by itself.
            (_, Some(Outcome::Stopped)) => ReplyBody::empty(StatusCode::SERVICE_UNAVAILABLE, None),
            // Not the handler, whose panic is caught, but a destructor after it.
            (_, Some(Outcome::Panicked(_))) => ReplyBody::empty(StatusCode::INTERNAL_SERVER_ERROR, None),
            (_, Some(Outcome::Error(never))) => match never {},
            (_, None) => panic!("polled after completion"),
        };
        if self.is_dated {
            add_date(&mut response);
        }
        Seen::Output.record();
        Poll::Ready(Ok(response))
    }
}

impl<S: HttpService> Drop for Reply<S> {
    fn drop(&mut self) {
        if let (Some(keeper), ReplyState::Running(running)) =
            (self.keeper.take(), core::mem::replace(&mut self.state, ReplyState::Taken))
        {
            let finish = async move {
                drop(running.await);
            };
            // A scope that has ended cannot keep it: then it is asked to stop.
            _ = keeper.child().try_spawn(finish);
        }
    }
}
