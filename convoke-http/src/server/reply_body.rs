//! The body of a response: that of the service, or none. The exchange ends with it.

use core::error::Error;
use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll};

use bytes::Buf;
use convoke_core::Panic;
use http::{Response, StatusCode};
use hyper::body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::HttpService;
use super::exchange::Exchange;
use super::stalled::Seen;
use crate::report::{AnyError, Report};

pin_project! {
    /// The body of a response, with the exchange that it ends.
    pub(super) struct ReplyBody<S: HttpService> {
        // The first field, and so dropped first: the exchange includes the body's destructor.
        #[pin]
        body: Option<S::Body>,
        exchange: Option<Box<Exchange<S>>>,
    }
}

impl<S: HttpService> ReplyBody<S> {
    /// Makes the response of an exchange: that of the service, or one of the server itself.
    pub(super) fn of(mut exchange: Box<Exchange<S>>) -> Response<Self> {
        match exchange.take_answer() {
            Some(Ok(response)) => response.map(|body| Self { body: Some(body), exchange: Some(exchange) }),
            Some(Err(status)) => Self::empty(status, Some(exchange)),
            None => unreachable!("an exchange is answered before it is a response"),
        }
    }

    /// Makes a response without a body.
    pub(super) fn empty(status: StatusCode, exchange: Option<Box<Exchange<S>>>) -> Response<Self> {
        let mut response = Response::new(Self { body: None, exchange });
        *response.status_mut() = status;
        response
    }
}

impl<S: HttpService> Body for ReplyBody<S> {
    type Data = <S::Body as Body>::Data;
    type Error = Incomplete;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Incomplete>>> {
        let mut this = self.project();
        let Some(body) = this.body.as_mut().as_pin_mut() else { return Poll::Ready(None) };
        let polled = match Panic::catch(|| body.poll_frame(cx)) {
            Ok(polled) => polled.map(|frame| frame.map(|frame| frame.map_err(Into::<AnyError>::into))),
            Err(panic) => Poll::Ready(Some(Err(panic.to_string().into()))),
        };
        if polled.is_pending() {
            Seen::Waiting.record()
        } else {
            Seen::Output.record()
        }
        if let (Poll::Ready(Some(Ok(frame))), Some(exchange)) = (&polled, this.exchange.as_mut())
            && let Some(data) = frame.data_ref()
        {
            exchange.sent(data.remaining());
        }
        polled.map_err(|error| {
            if let Some(exchange) = this.exchange {
                exchange.report(|request| Report::Response { request, error });
            }
            // The panic hook has reported a panic of its destructor.
            _ = Panic::catch(|| this.body.set(None));
            Incomplete
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

/// The error by which hyper hears that the body has failed. The failure itself was reported.
#[derive(Debug)]
pub(super) struct Incomplete;

impl fmt::Display for Incomplete {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the body of the response has failed")
    }
}

impl Error for Incomplete {}
