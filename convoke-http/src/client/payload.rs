//! The body of a request: nothing, bytes that can be sent again, or a stream.

use core::any::Any;
use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::sync::Arc;

use bytes::{Buf, Bytes};
use convoke_core::Panic;
use convoke_core::raw::sync::atomic::{AtomicUsize, Ordering};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Frame, SizeHint};

use crate::report::AnyError;

/// The size of the chunks in which bytes are handed to the connection, so that progress is seen.
const CHUNK: usize = 64 * 1024;

type Stream = Pin<Box<dyn Body<Data = Bytes, Error = AnyError> + Send>>;

/// The body of a request. Text and bytes become one by `into`, and can be sent again when a connection was lost or a
/// redirect asks for it. [`Payload::stream`] takes any other body, which is sent once.
#[derive(Default)]
pub struct Payload {
    content: Content,
    progress: Option<Arc<Progress>>,
}

#[derive(Default)]
enum Content {
    #[default]
    Nothing,
    Bytes(Bytes),
    Stream(Stream),
    /// A stream that was given away.
    Gone,
}

/// The number of chunks of a body that were taken to be sent.
#[derive(Debug, Default)]
pub(super) struct Progress(AtomicUsize);

impl Progress {
    pub(super) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Payload {
    /// Wraps a body that is sent while it is made. The task of the connection polls it, in the environment of the client.
    pub fn stream<B>(body: B) -> Self
    where
        B: Body<Data: Send, Error: Into<AnyError>> + Send + 'static,
    {
        if body.is_end_stream() {
            return Self::default();
        }
        let body: &mut dyn Any = &mut Some(body);
        if let Some(full) = body.downcast_mut::<Option<Full<Bytes>>>().and_then(Option::take) {
            return Self::from_full(full);
        }
        if let Some(text) = body.downcast_mut::<Option<String>>().and_then(Option::take) {
            return text.into();
        }
        let body = body.downcast_mut::<Option<B>>().and_then(Option::take);
        let body = body.unwrap_or_else(|| unreachable!("the body is of its own type"));
        let body = body
            .map_frame(|frame| frame.map_data(|mut data| data.copy_to_bytes(data.remaining())))
            .map_err(Into::into);
        Self { content: Content::Stream(Box::pin(body)), progress: Some(Arc::default()) }
    }

    /// Takes the bytes of a body that has them all.
    fn from_full(mut full: Full<Bytes>) -> Self {
        let mut cx = Context::from_waker(core::task::Waker::noop());
        match Pin::new(&mut full).poll_frame(&mut cx) {
            Poll::Ready(Some(Ok(frame))) => frame.into_data().unwrap_or_default().into(),
            _ => Self::default(),
        }
    }

    /// Returns another one with the same content; `None` for a stream.
    pub(super) fn again(&self) -> Option<Self> {
        let content = match &self.content {
            Content::Nothing => Content::Nothing,
            Content::Bytes(bytes) => Content::Bytes(bytes.clone()),
            Content::Stream(_) | Content::Gone => return None,
        };
        let progress = matches!(&content, Content::Bytes(bytes) if bytes.len() > CHUNK).then(Arc::default);
        Some(Self { content, progress })
    }

    /// Returns one to send: a copy, or the stream itself.
    pub(super) fn take(&mut self) -> Self {
        self.again()
            .unwrap_or_else(|| core::mem::replace(self, Self { content: Content::Gone, progress: None }))
    }

    /// Returns true if it was a stream, and given away.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self.content, Content::Gone)
    }

    /// Returns the progress of a body that is not sent at once.
    pub(super) fn progress(&self) -> Option<Arc<Progress>> {
        self.progress.clone()
    }
}

impl From<Bytes> for Payload {
    fn from(bytes: Bytes) -> Self {
        Self { content: Content::Bytes(bytes), progress: None }
    }
}

impl From<Vec<u8>> for Payload {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::from(bytes).into()
    }
}

impl From<String> for Payload {
    fn from(text: String) -> Self {
        Bytes::from(text).into()
    }
}

impl From<&'static str> for Payload {
    fn from(text: &'static str) -> Self {
        Bytes::from(text).into()
    }
}

impl From<&'static [u8]> for Payload {
    fn from(bytes: &'static [u8]) -> Self {
        Bytes::from(bytes).into()
    }
}

impl Body for Payload {
    type Data = Bytes;
    type Error = AnyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, AnyError>>> {
        let this = &mut *self;
        match &mut this.content {
            Content::Nothing | Content::Gone => Poll::Ready(None),
            Content::Bytes(bytes) => {
                let chunk = bytes.split_to(bytes.len().min(CHUNK));
                if let Some(progress) = &this.progress {
                    progress.0.fetch_add(1, Ordering::Relaxed);
                }
                Poll::Ready((!chunk.is_empty()).then(|| Ok(Frame::data(chunk))))
            }
            Content::Stream(stream) => {
                // A panic of the program's body must not end the connection, which others may share.
                let polled = Panic::catch(|| stream.as_mut().poll_frame(cx));
                let polled = polled.unwrap_or_else(|panic| Poll::Ready(Some(Err(panic.to_string().into()))));
                if let (Poll::Ready(_), Some(progress)) = (&polled, &this.progress) {
                    progress.0.fetch_add(1, Ordering::Relaxed);
                }
                polled
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Nothing | Content::Gone => true,
            Content::Bytes(bytes) => bytes.is_empty(),
            Content::Stream(stream) => stream.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Nothing | Content::Gone => SizeHint::with_exact(0),
            Content::Bytes(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Content::Stream(stream) => stream.size_hint(),
        }
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.content {
            Content::Nothing => "nothing",
            Content::Bytes(_) => "bytes",
            Content::Stream(_) => "a stream",
            Content::Gone => "a stream that was sent",
        };
        f.debug_struct("Payload").field("content", &kind).field("size", &self.size_hint()).finish()
    }
}
