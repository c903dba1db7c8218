//! Erased streams for one direction: `AnyReadStream` and `AnyWriteStream`.

use core::future::Future;

use futures_io::{AsyncRead, AsyncWrite};

use super::methods::{debug, reads, writes};

/// A readable stream with an erased type.
///
/// ```
/// use convoke::io::{AnyReadStream, duplex, write_all};
/// use convoke::prelude::*;
///
/// async fn first_byte(mut stream: AnyReadStream) -> std::io::Result<u8> {
///     let mut byte = [0];
///     stream.read_exact(&mut byte).await?;
///     Ok(byte[0])
/// }
///
/// let byte = block_on(async {
///     let (near, mut far) = duplex(16);
///     write_all(&mut far, b"word").await?;
///     first_byte(AnyReadStream::new(near)).await
/// });
/// assert_eq!(byte.unwrap().unwrap(), b'w');
/// ```
pub struct AnyReadStream(Box<dyn AsyncRead + Unpin + Send>);

/// A writable stream with an erased type.
///
/// ```
/// use convoke::io::{AnyWriteStream, duplex, read_exact};
/// use convoke::prelude::*;
///
/// async fn greet(mut stream: AnyWriteStream) -> std::io::Result<()> {
///     stream.write_all(b"hello").await
/// }
///
/// let said = block_on(async {
///     let (near, mut far) = duplex(16);
///     greet(AnyWriteStream::new(near)).await?;
///     let mut said = [0; 5];
///     read_exact(&mut far, &mut said).await?;
///     std::io::Result::Ok(said)
/// });
/// assert_eq!(&said.unwrap().unwrap(), b"hello");
/// ```
pub struct AnyWriteStream(Box<dyn AsyncWrite + Unpin + Send>);

impl AnyReadStream {
    /// Erases the type of `stream`.
    pub fn new(stream: impl AsyncRead + Unpin + Send + 'static) -> Self {
        Self(Box::new(stream))
    }
}

impl AnyWriteStream {
    /// Erases the type of `stream`.
    pub fn new(stream: impl AsyncWrite + Unpin + Send + 'static) -> Self {
        Self(Box::new(stream))
    }
}

reads!([] AnyReadStream, this => this.0);
writes!([] AnyWriteStream, this => this.0);
debug!([] AnyReadStream, "AnyReadStream");
debug!([] AnyWriteStream, "AnyWriteStream");
