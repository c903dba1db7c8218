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

use super::exchange::Exchange;
use super::stalled::Seen;
use super::{OnReport, report_to};
use crate::report::{AnyError, Report, RequestLine};

pin_project! {
    /// The body of a response, with the exchange that it ends.
    pub(super) struct ReplyBody<B> {
        // The first field, and so dropped first: the exchange includes the body's destructor.
        #[pin]
        body: Option<B>,
        exchange: Option<Exchange>,
        on_failure: Option<OnFailure>,
    }
}

/// The function to report a failure of the body to, and the request that it belongs to.
pub(super) struct OnFailure {
    pub(super) report: OnReport,
    pub(super) request: RequestLine,
}

impl<B> ReplyBody<B> {
    /// Makes the response of a service one of the server.
    pub(super) fn of_service(
        response: Response<B>,
        mut exchange: Exchange,
        on_failure: OnFailure,
    ) -> Response<Self> {
        exchange.answered(response.status());
        response.map(|body| Self { body: Some(body), exchange: Some(exchange), on_failure: Some(on_failure) })
    }

    /// Makes a response of the server itself.
    pub(super) fn of_server(status: StatusCode, exchange: Option<Exchange>) -> Response<Self> {
        let mut exchange = exchange;
        if let Some(exchange) = &mut exchange {
            exchange.answered(status);
        }
        let mut response = Response::new(Self { body: None, exchange, on_failure: None });
        *response.status_mut() = status;
        response
    }
}

impl<B: Body<Error: Into<AnyError>>> Body for ReplyBody<B> {
    type Data = B::Data;
    type Error = Incomplete;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, Incomplete>>> {
        let mut this = self.project();
        let Some(body) = this.body.as_mut().as_pin_mut() else { return Poll::Ready(None) };
        let polled = match Panic::catch(|| body.poll_frame(cx)) {
            Ok(polled) => polled.map(|frame| frame.map(|frame| frame.map_err(Into::into))),
            Err(panic) => Poll::Ready(Some(Err(panic.to_string().into()))),
        };
        if polled.is_pending() {
            Seen::Waiting.record()
        } else {
            Seen::Output.record()
        }
        if let (Poll::Ready(Some(Ok(frame))), Some(exchange)) = (&polled, this.exchange)
            && let Some(data) = frame.data_ref()
        {
            exchange.sent(data.remaining());
        }
        polled.map_err(|error| {
            if let Some(OnFailure { report, request }) = this.on_failure.take() {
                report_to(&report, Report::Response { request, error });
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
