//! `AnyStream`: a stream with an erased type, for both directions.

use core::any::Any;
use core::future::Future;

use futures_io::{AsyncRead, AsyncWrite};

use super::methods::{debug, reads, writes};

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
/// use convoke::io::{AnyStream, duplex, read_exact};
///
/// async fn greet(mut stream: AnyStream) -> std::io::Result<()> {
///     stream.write_all(b"hello").await
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
}

reads!([] AnyStream, this => this.0);
writes!([] AnyStream, this => this.0);
debug!([] AnyStream, "AnyStream");
