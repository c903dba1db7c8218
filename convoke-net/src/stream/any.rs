//! `AnyStream`: a stream with an erased type. It is two words, and no call allocates. A function that takes
//! one is compiled once.

use core::any::Any;
use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::io::{self, IoSlice, IoSliceMut};
use std::sync::{Arc, PoisonError};

use convoke_core::raw::sync::{Mutex, MutexGuard};
use futures_io::{AsyncRead, AsyncWrite};

/// A type that an [`AnyStream`] can hold: readable, writable, `Send` and `'static`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a stream of bytes",
    note = "it needs `futures_io::{{AsyncRead, AsyncWrite}}`, and `Unpin + Send + 'static`"
)]
pub trait Bytes: AsyncRead + AsyncWrite + Unpin + Send + Any {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + Any> Bytes for S {}

/// A stream with an erased type.
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
    /// Erases the type of `stream`. An `AnyStream` is returned unchanged.
    pub fn new<S: Bytes>(stream: S) -> Self {
        let mut stream = Some(stream);
        if let Some(erased) = (&mut stream as &mut dyn Any).downcast_mut::<Option<Self>>() {
            return erased.take().expect("set above");
        }
        Self(Box::new(stream.expect("set above")))
    }

    /// Returns a reference to the stream, if it is an `S`.
    pub fn downcast_ref<S: Bytes>(&self) -> Option<&S> {
        (&*self.0 as &dyn Any).downcast_ref()
    }

    /// Returns a mutable reference to the stream, if it is an `S`.
    pub fn downcast_mut<S: Bytes>(&mut self) -> Option<&mut S> {
        (&mut *self.0 as &mut dyn Any).downcast_mut()
    }

    /// Returns the stream itself, if it is an `S`.
    ///
    /// # Errors
    /// Returns `self` unchanged if it is not.
    pub fn downcast<S: Bytes>(self) -> Result<S, Self> {
        if self.downcast_ref::<S>().is_none() {
            return Err(self);
        }
        let any: Box<dyn Any> = self.0;
        Ok(*any.downcast().expect("checked above"))
    }

    /// Splits it into two halves, for two tasks.
    pub fn split(self) -> (AnyReader, AnyWriter) {
        let both = Arc::new(Mutex::new(self));
        (AnyReader(both.clone()), AnyWriter(both))
    }
}

/// The read half of an [`AnyStream`].
pub struct AnyReader(Arc<Mutex<AnyStream>>);

/// The write half of an [`AnyStream`].
pub struct AnyWriter(Arc<Mutex<AnyStream>>);

impl AnyReader {
    /// Reunites both halves.
    ///
    /// # Errors
    /// Returns both unchanged if they are halves of different streams.
    pub fn reunite(self, writer: AnyWriter) -> Result<AnyStream, (Self, AnyWriter)> {
        if !Arc::ptr_eq(&self.0, &writer.0) {
            return Err((self, writer));
        }
        drop(writer);
        match Arc::try_unwrap(self.0) {
            Ok(both) => Ok(both.into_inner().unwrap_or_else(PoisonError::into_inner)),
            Err(_) => unreachable!("the two halves hold the only references"),
        }
    }
}

/// Locks the stream. The lock is held during a poll, never across an await.
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
