//! Erased streams that are borrowed. They need no allocation, and the stream need not be `'static`.

use core::future::Future;

use futures_io::{AsyncRead, AsyncWrite};

use super::methods::{debug, reads, writes};

/// A borrowed stream with an erased type.
///
/// ```
/// use convoke::io::{AnyStreamMut, duplex};
/// use convoke::prelude::*;
///
/// async fn ask(mut stream: AnyStreamMut<'_>) -> std::io::Result<u8> {
///     stream.write_all(b"?").await?;
///     let mut answer = [0];
///     stream.read_exact(&mut answer).await?;
///     Ok(answer[0])
/// }
///
/// let answer = block_on(async {
///     let (mut near, mut far) = duplex(16);
///     AnyStreamMut::new(&mut far).write_all(b"!").await?;
///     ask(AnyStreamMut::new(&mut near)).await // `near` is used again afterwards.
/// });
/// assert_eq!(answer.unwrap().unwrap(), b'!');
/// ```
pub struct AnyStreamMut<'a>(&'a mut dyn ReadsAndWrites);

/// A borrowed readable stream with an erased type. See [`AnyStreamMut`].
pub struct AnyReadStreamMut<'a>(&'a mut (dyn AsyncRead + Unpin + Send));

/// A borrowed writable stream with an erased type. See [`AnyStreamMut`].
pub struct AnyWriteStreamMut<'a>(&'a mut (dyn AsyncWrite + Unpin + Send));

/// Both directions in one trait object.
trait ReadsAndWrites: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> ReadsAndWrites for S {}

impl<'a> AnyStreamMut<'a> {
    /// Borrows a stream and erases its type.
    pub fn new<S: AsyncRead + AsyncWrite + Unpin + Send>(stream: &'a mut S) -> Self {
        Self(stream)
    }

    /// Borrows it again for a shorter time, to pass it to a function and use it afterwards.
    pub fn reborrow(&mut self) -> AnyStreamMut<'_> {
        AnyStreamMut(&mut *self.0)
    }
}

impl<'a> AnyReadStreamMut<'a> {
    /// Borrows a stream and erases its type.
    pub fn new<S: AsyncRead + Unpin + Send>(stream: &'a mut S) -> Self {
        Self(stream)
    }

    /// Borrows it again for a shorter time, to pass it to a function and use it afterwards.
    pub fn reborrow(&mut self) -> AnyReadStreamMut<'_> {
        AnyReadStreamMut(&mut *self.0)
    }
}

impl<'a> AnyWriteStreamMut<'a> {
    /// Borrows a stream and erases its type.
    pub fn new<S: AsyncWrite + Unpin + Send>(stream: &'a mut S) -> Self {
        Self(stream)
    }

    /// Borrows it again for a shorter time, to pass it to a function and use it afterwards.
    pub fn reborrow(&mut self) -> AnyWriteStreamMut<'_> {
        AnyWriteStreamMut(&mut *self.0)
    }
}

reads!(['a] AnyStreamMut<'a>, this => this.0);
writes!(['a] AnyStreamMut<'a>, this => this.0);
reads!(['a] AnyReadStreamMut<'a>, this => this.0);
writes!(['a] AnyWriteStreamMut<'a>, this => this.0);
debug!(['a] AnyStreamMut<'a>, "AnyStreamMut");
debug!(['a] AnyReadStreamMut<'a>, "AnyReadStreamMut");
debug!(['a] AnyWriteStreamMut<'a>, "AnyWriteStreamMut");
