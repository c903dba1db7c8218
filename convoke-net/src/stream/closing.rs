//! `Closing`: a stream as a resource, so that `using` closes it on every exit of its body.

use core::future::poll_fn;
use core::ops::{Deref, DerefMut};
use core::pin::Pin;
use std::io;

use convoke_task::{AsyncClose, Exit};
use futures_io::AsyncWrite;

/// A stream that [`using`](convoke_task::using()) closes on every exit of its body: buffered bytes are
/// written, TLS sends its close message, and the peer reads the end of the stream. A stream that is merely
/// dropped does none of that, since a destructor cannot await.
///
/// It dereferences to the stream. An error of closing becomes the body's error, as by `?`. If the body failed
/// with an error of its own, that error is kept and the error of closing is ignored: a broken connection does
/// not close well either.
///
/// ```
/// use std::io;
/// use std::time::Duration;
/// use convoke::prelude::*;
/// use convoke::sender::prelude::*;
/// use convoke::io::{Closing, duplex, read_exact, write_all};
///
/// let ended = block_on(async {
///     let (near, mut far) = duplex(64);
///     let body = using(Closing::new(near), async |mut near| -> io::Result<()> {
///         write_all(&mut **near, b"half a sen").await?;
///         never().await // Until the timeout.
///     });
///     assert!(timeout(Duration::from_millis(1), body).await.is_err());
///     let mut heard = [0; 16];
///     read_exact(&mut far, &mut heard).await.unwrap_err().to_string()
/// });
/// assert_eq!(ended.unwrap(), "the stream ended after 10 of 16 bytes");
/// ```
#[derive(Debug)]
pub struct Closing<W> {
    stream: W,
}

impl<W: AsyncWrite + Unpin + Send> Closing<W> {
    /// Wraps a stream that is to be closed.
    pub const fn new(stream: W) -> Self {
        Self { stream }
    }
}

#[diagnostic::do_not_recommend]
impl<W: AsyncWrite + Unpin + Send> AsyncClose for Closing<W> {
    type Error = io::Error;

    async fn close(mut self, exit: Exit) -> io::Result<()> {
        let closed = poll_fn(|cx| Pin::new(&mut self.stream).poll_close(cx)).await;
        if matches!(exit, Exit::Error) { Ok(()) } else { closed }
    }
}

impl<W> Deref for Closing<W> {
    type Target = W;

    fn deref(&self) -> &W {
        &self.stream
    }
}

impl<W> DerefMut for Closing<W> {
    fn deref_mut(&mut self) -> &mut W {
        &mut self.stream
    }
}
