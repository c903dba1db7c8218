//! `Closing`: a stream of any crate as a resource, so that `using` closes it on every exit of its body.

use core::future::poll_fn;
use core::ops::{Deref, DerefMut};
use core::pin::Pin;
use std::io;

use convoke_task::{AsyncClose, Exit};
use futures_io::AsyncWrite;

/// A stream that [`using`](convoke_exec::using()) closes when its body has left, by whichever door: what is buffered is written, TLS
/// says goodbye, the peer reads the end. A stream that is merely dropped does none of that, and it cannot be awaited in a
/// destructor.
///
/// It is used like the stream itself. An error of closing is the body's, as by `?`; if the body has failed with an error of its
/// own that is the one, for a connection that is broken does not close well either, and nobody needs to be told.
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
///         never().await // Until the time is up.
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
    /// This stream, to be closed.
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
