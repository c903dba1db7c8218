//! How a connection is closed: its write side first, then the rest, so that what was written is delivered.

use std::io;
use std::net::Shutdown;

use super::kind::Kind;
use super::socket_stream::SocketStream;
use crate::stream::Linger;
use crate::stream::raw::discard;
use convoke_io::attempting::Waiter;
use convoke_io::driver::Interest;
use convoke_task::{AsyncClose, Exit};

impl<K: Kind> SocketStream<K> {
    /// Closes the connection so that what was written is delivered: shuts down the write side, then reads and
    /// discards until the peer ends, or until a limit is reached. [`using`](convoke_task::using()) a stream
    /// does this with the default limits.
    ///
    /// - *Completes with* `()`, also if a limit was reached or the connection is gone; an error of the
    ///   driver; or stopped.
    /// - *If dropped*, the connection is closed at once.
    /// - *Runs on* the current task.
    ///
    /// ```
    /// use std::time::Duration;
    /// use convoke::io::Linger;
    /// use convoke::net::TcpStream;
    ///
    /// async fn refuse(stream: TcpStream) -> std::io::Result<()> {
    ///     stream.write_all(b"too many clients\n").await?;
    ///     stream.close_with(Linger::new().time(Duration::from_secs(2))).await
    /// }
    /// ```
    pub async fn close_with(self, linger: Linger) -> io::Result<()> {
        closed(self.source.shut_down(Shutdown::Write))?;
        let mut waiter = Waiter::new(&self.source, Interest::Read);
        discard(linger, |cx, buffer| waiter.poll(cx, |source| source.try_read(buffer))).await;
        Ok(())
    }
}

#[diagnostic::do_not_recommend]
impl<K: Kind> AsyncClose for SocketStream<K> {
    type Error = io::Error;

    /// Closes the connection with the default limits: see [`close_with`](SocketStream::close_with). If the
    /// body failed, its error is kept: a broken connection does not close well either.
    async fn close(self, exit: Exit) -> io::Result<()> {
        let closed = self.close_with(Linger::new()).await;
        if matches!(exit, Exit::Error) { Ok(()) } else { closed }
    }
}

/// Treats a connection that is gone as closed.
pub(super) fn closed(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
        result => result,
    }
}
