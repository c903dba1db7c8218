//! The part of a request that hyper holds: a handle. When a client hangs up, hyper drops it, and nothing else.

use core::convert::Infallible;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};

use convoke_core::Outcome;
use convoke_task::Scope;
use convoke_task::scope::{Handle, HandleOutcome};
use http::{Response, StatusCode};

use super::reply_body::ReplyBody;
use super::stalled::Seen;

// Responses are boxed: they are larger than a pointer by four hundred bytes, and pass through many hands.

/// The response to a request, or the handle of the task that makes it. If it is dropped, that task is asked to stop, or
/// finishes unheard if it has a `keeper`.
pub(super) struct Reply<B: Send + 'static> {
    state: ReplyState<B>,
    /// The scope of the task, if the task is to finish although no connection waits for it.
    keeper: Option<Scope<()>>,
}

enum ReplyState<B> {
    Ready(Box<Response<ReplyBody<B>>>),
    Running(HandleOutcome<Box<Response<ReplyBody<B>>>>),
    Taken,
}

impl<B: Send + 'static> Reply<B> {
    pub(super) fn ready(response: Response<ReplyBody<B>>) -> Self {
        Self { state: ReplyState::Ready(Box::new(response)), keeper: None }
    }

    pub(super) fn running(handle: Handle<Box<Response<ReplyBody<B>>>>, keeper: Option<Scope<()>>) -> Self {
        Self { state: ReplyState::Running(handle.outcome()), keeper }
    }
}

// Nothing in it is pinned in place: a handle can be moved.
impl<B: Send + 'static> Unpin for Reply<B> {}

impl<B: Send + 'static> Future for Reply<B> {
    type Output = Result<Response<ReplyBody<B>>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let outcome = match &mut self.state {
            ReplyState::Running(running) => Some(ready!(Pin::new(running).poll(cx))),
            _ => None,
        };
        let response = match (core::mem::replace(&mut self.state, ReplyState::Taken), outcome) {
            (_, Some(Outcome::Value(response))) | (ReplyState::Ready(response), None) => *response,
            // The handler has stopped by itself.
            (_, Some(Outcome::Stopped)) => ReplyBody::of_server(StatusCode::SERVICE_UNAVAILABLE, None),
            // Not the handler, whose panic is caught, but a destructor after it.
            (_, Some(Outcome::Panicked(_))) => ReplyBody::of_server(StatusCode::INTERNAL_SERVER_ERROR, None),
            (_, Some(Outcome::Error(never))) => match never {},
            (_, None) => panic!("polled after completion"),
        };
        Seen::Output.record();
        Poll::Ready(Ok(response))
    }
}

impl<B: Send + 'static> Drop for Reply<B> {
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
