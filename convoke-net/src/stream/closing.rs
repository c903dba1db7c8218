//! `Closing`: a stream as a resource, so that `using` closes it on every exit of its body.

use core::future::poll_fn;
use core::ops::{Deref, DerefMut};
use core::pin::Pin;
use core::task::{Context, Poll};
use std::io;

use convoke_task::{AsyncClose, Exit};
use futures_io::{AsyncRead, AsyncWrite};

use super::lingering::{Linger, discard};

/// A stream that [`using`](convoke_task::using()) closes on every exit of its body: buffered bytes are
/// written, TLS sends its close message, and the peer reads the end of the stream. Then input is read and
/// discarded until the peer ends too, within the limits of [`Linger`], so that what was written is delivered:
/// closing a connection with unread input resets it. A stream that is merely dropped does none of that, since
/// a destructor cannot await.
///
/// Sockets need no wrapper: `using(stream, ..)` does the same. Use `Closing` for TLS, erased and foreign
/// streams.
///
/// It dereferences to the stream. An error of closing becomes the body's error, as by `?`. If the body failed
/// with an error of its own, that error is kept and the error of closing is ignored: a broken connection does
/// not close well either.
///
/// ```
/// use std::io;
/// use std::time::Duration;
/// use convoke::prelude::*;
/// use convoke::io::{Closing, duplex, read_exact, write_all};
/// use convoke::task::forever;
///
/// let ended = block_on(async {
///     let (near, mut far) = duplex(64);
///     let body = using(Closing::new(near), async |mut near| -> io::Result<()> {
///         write_all(&mut **near, b"half a sen").await?;
///         forever().await // Until the timeout.
///     });
///     let peer = async {
///         let mut heard = [0; 16];
///         let ended = read_exact(&mut far, &mut heard).await.unwrap_err();
///         drop(far); // Now the close does not wait any longer.
///         ended.to_string()
///     };
///     let (body, ended) = join((timeout(Duration::from_millis(1), body), peer)).await;
///     assert!(body.is_err());
///     ended
/// });
/// assert_eq!(ended.unwrap(), "the stream ended after 10 of 16 bytes");
/// ```
#[derive(Debug)]
pub struct Closing<S> {
    stream: S,
    /// `S::poll_read`, or `None` for a writer.
    poll_read: Option<PollRead<S>>,
    linger: Linger,
}

type PollRead<S> = fn(Pin<&mut S>, &mut Context<'_>, &mut [u8]) -> Poll<io::Result<usize>>;

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Closing<S> {
    /// Wraps a stream that is to be closed, with the default limits of [`Linger`].
    pub const fn new(stream: S) -> Self {
        Self { stream, poll_read: Some(S::poll_read), linger: Linger::new() }
    }

    /// Sets the limits of the lingering close.
    #[must_use]
    pub fn linger(self, linger: Linger) -> Self {
        Self { linger, ..self }
    }
}

impl<W: AsyncWrite + Unpin + Send> Closing<W> {
    /// Wraps a writer that is to be closed: a half of a stream, a file, a compressor. Nothing is read.
    pub const fn writer(writer: W) -> Self {
        Self { stream: writer, poll_read: None, linger: Linger::none() }
    }
}

#[diagnostic::do_not_recommend]
impl<W: AsyncWrite + Unpin + Send> AsyncClose for Closing<W> {
    type Error = io::Error;

    async fn close(mut self, exit: Exit) -> io::Result<()> {
        let closed = poll_fn(|cx| Pin::new(&mut self.stream).poll_close(cx)).await;
        if let (Ok(()), Some(poll_read)) = (&closed, self.poll_read) {
            discard(self.linger, |cx, buffer| poll_read(Pin::new(&mut self.stream), cx, buffer)).await;
        }
        if matches!(exit, Exit::Error) { Ok(()) } else { closed }
    }
}

impl<S> Deref for Closing<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.stream
    }
}

impl<S> DerefMut for Closing<S> {
    fn deref_mut(&mut self) -> &mut S {
        &mut self.stream
    }
}
