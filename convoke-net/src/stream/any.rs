//! A stream of any type: two words, and no allocation for an operation. So a function that takes one is compiled once.

use core::any::Any;
use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::io::{self, IoSlice, IoSliceMut};
use std::sync::{Arc, PoisonError};

use convoke_core::raw::sync::{Mutex, MutexGuard};
use futures_io::{AsyncRead, AsyncWrite};

/// What an [`AnyStream`] can be made of: bytes that can be read and written, sent and kept.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a stream of bytes",
    note = "it needs `futures_io::{{AsyncRead, AsyncWrite}}`, and `Unpin + Send + 'static`"
)]
pub trait Bytes: AsyncRead + AsyncWrite + Unpin + Send + Any {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + Any> Bytes for S {}

/// A stream whose type was forgotten.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::io::{AnyStream, duplex, read_exact, write_all};
///
/// async fn greet(mut stream: AnyStream) -> std::io::Result<()> {
///     write_all(&mut stream, b"hello").await
/// }
///
/// let said = block_on(async {
///     let (near, mut far) = duplex(16);
///     greet(AnyStream::new(near)).await?;
///     let mut said = [0; 5];
///     read_exact(&mut far, &mut said).await?;
///     std::io::Result::Ok(said)
/// });
/// assert_eq!(&said.unwrap().unwrap(), b"hello");
/// ```
pub struct AnyStream(Box<dyn Bytes>);

impl AnyStream {
    /// Forgets the type of `stream`. One that is forgotten already stays as it is.
    pub fn new<S: Bytes>(stream: S) -> Self {
        let mut stream = Some(stream);
        if let Some(erased) = (&mut stream as &mut dyn Any).downcast_mut::<Option<Self>>() {
            return erased.take().expect("put there above");
        }
        Self(Box::new(stream.expect("put there above")))
    }

    /// The stream, if it is an `S`.
    pub fn downcast_ref<S: Bytes>(&self) -> Option<&S> {
        (&*self.0 as &dyn Any).downcast_ref()
    }

    /// The stream, if it is an `S`.
    pub fn downcast_mut<S: Bytes>(&mut self) -> Option<&mut S> {
        (&mut *self.0 as &mut dyn Any).downcast_mut()
    }

    /// The stream itself, if it is an `S`.
    ///
    /// # Errors
    /// If it is not: then it is as it was.
    pub fn downcast<S: Bytes>(self) -> Result<S, Self> {
        if self.downcast_ref::<S>().is_none() {
            return Err(self);
        }
        let any: Box<dyn Any> = self.0;
        Ok(*any.downcast().expect("it is one"))
    }

    /// Two halves, for two tasks.
    pub fn split(self) -> (AnyReader, AnyWriter) {
        let both = Arc::new(Mutex::new(self));
        (AnyReader(both.clone()), AnyWriter(both))
    }
}

/// The half of an [`AnyStream`] that reads.
pub struct AnyReader(Arc<Mutex<AnyStream>>);

/// The half of an [`AnyStream`] that writes.
pub struct AnyWriter(Arc<Mutex<AnyStream>>);

impl AnyReader {
    /// Both halves together again.
    ///
    /// # Errors
    /// If they are not of the same stream: then they are as they were.
    pub fn reunite(self, writer: AnyWriter) -> Result<AnyStream, (Self, AnyWriter)> {
        if !Arc::ptr_eq(&self.0, &writer.0) {
            return Err((self, writer));
        }
        drop(writer);
        match Arc::try_unwrap(self.0) {
            Ok(both) => Ok(both.into_inner().unwrap_or_else(PoisonError::into_inner)),
            Err(_) => unreachable!("there are two halves, and both are here"),
        }
    }
}

/// Held for a poll, never while one waits.
fn lock(both: &Mutex<AnyStream>) -> MutexGuard<'_, AnyStream> {
    both.lock().unwrap_or_else(PoisonError::into_inner)
}

impl AsyncRead for AnyStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0).poll_read(cx, buffer)
    }

    fn poll_read_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0).poll_read_vectored(cx, buffers)
    }
}

impl AsyncWrite for AnyStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0).poll_write(cx, buffer)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0).poll_write_vectored(cx, buffers)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_close(cx)
    }
}

impl AsyncRead for AnyReader {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut *lock(&self.0)).poll_read(cx, buffer)
    }
}

impl AsyncWrite for AnyWriter {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut *lock(&self.0)).poll_write(cx, buffer)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *lock(&self.0)).poll_flush(cx)
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *lock(&self.0)).poll_close(cx)
    }
}

impl fmt::Debug for AnyStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyStream").finish_non_exhaustive()
    }
}

impl fmt::Debug for AnyReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyReader").finish_non_exhaustive()
    }
}

impl fmt::Debug for AnyWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyWriter").finish_non_exhaustive()
    }
}
