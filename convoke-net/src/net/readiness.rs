//! Readiness: waiting until a socket may be used, and calls of the program's own on its descriptor.
//!
//! A source learns its readiness from attempts and events: an attempt that would block marks it as not ready, and
//! an event of the kernel marks it as ready again. A new source counts as ready.

use core::future::{Future, poll_fn};
use std::io;
use std::sync::Arc;

use convoke_io::attempting::Waiter;
use convoke_io::driver::{Interest, Source};

/// Waits until an attempt in this direction may succeed.
#[track_caller]
pub(super) fn ready(
    source: &Arc<dyn Source>,
    interest: Interest,
) -> impl Future<Output = io::Result<()>> + Send + '_ {
    let mut waiter = Waiter::new(source, interest);
    poll_fn(move |cx| {
        // `WouldBlock` registers a watcher, unless the source is ready: then there is a second call. So in
        // each poll: the task may have been woken for something else.
        let mut has_asked = false;
        waiter.poll(cx, |_| match core::mem::replace(&mut has_asked, true) {
            true => Ok(()),
            false => Err(io::ErrorKind::WouldBlock.into()),
        })
    })
}

/// Calls `io` if the source may be ready.
pub(super) fn try_io<T>(
    source: &dyn Source,
    interest: Interest,
    mut io: impl FnMut() -> io::Result<T>,
) -> io::Result<T> {
    let mut done = None;
    source.try_io(interest, &mut || {
        done = Some(io()?);
        Ok(())
    })?;
    // A driver that reports success without a call is in error, and the caller tries again.
    done.ok_or_else(|| io::ErrorKind::WouldBlock.into())
}

/// Adds the methods for readiness to a socket with a field `source`.
macro_rules! readiness_methods {
    () => {
        /// Waits until an attempt in this direction may succeed. It may return early: try, and wait again
        /// after [`WouldBlock`](std::io::ErrorKind::WouldBlock).
        ///
        /// - *Completes with* `()`; an error of the driver; or stopped.
        /// - *If dropped*, nothing has happened.
        /// - *Runs on* the current task.
        ///
        /// ```
        /// use convoke::net::{Interest, TcpListener};
        ///
        /// async fn wait(listener: &TcpListener) -> std::io::Result<()> {
        ///     listener.ready(Interest::Read).await
        /// }
        /// ```
        #[track_caller]
        pub fn ready(
            &self,
            interest: convoke_io::driver::Interest,
        ) -> impl Future<Output = std::io::Result<()>> + Send + '_ {
            crate::net::readiness::ready(&self.source, interest)
        }

        /// Waits until writing may succeed. Otherwise like [`ready`](Self::ready).
        ///
        /// - *Completes with* `()`; an error of the driver; or stopped.
        /// - *If dropped*, nothing has happened.
        /// - *Runs on* the current task.
        ///
        /// ```
        /// use convoke::net::UdpSocket;
        ///
        /// async fn wait(socket: &UdpSocket) -> std::io::Result<()> {
        ///     socket.writable().await
        /// }
        /// ```
        #[track_caller]
        pub fn writable(&self) -> impl Future<Output = std::io::Result<()>> + Send + '_ {
            self.ready(convoke_io::driver::Interest::Write)
        }

        /// Calls `io`, which uses the descriptor of this socket without blocking, if it may succeed in this
        /// direction. For calls that have no method here.
        ///
        /// # Errors
        /// Returns the error of `io`, or [`WouldBlock`](std::io::ErrorKind::WouldBlock) without a call if the
        /// socket is known to block: wait with [`ready`](Self::ready), and try again.
        pub fn try_io<T>(
            &self,
            interest: convoke_io::driver::Interest,
            io: impl FnMut() -> std::io::Result<T>,
        ) -> std::io::Result<T> {
            crate::net::readiness::try_io(&*self.source, interest, io)
        }

        /// Calls `io`, which uses the descriptor of this socket without blocking, until it does not return
        /// [`WouldBlock`](std::io::ErrorKind::WouldBlock), and waits in between.
        ///
        /// - *Completes with* the result of `io`; or stopped, and then the last call has returned
        ///   `WouldBlock`.
        /// - *If dropped*, the last call has returned `WouldBlock`.
        /// - *Runs on* the current task.
        ///
        /// ```
        /// use convoke::net::{Interest, TcpStream};
        ///
        /// async fn read(stream: &TcpStream) -> std::io::Result<u8> {
        ///     let mut byte = [0];
        ///     stream.async_io(Interest::Read, || stream.try_read(&mut byte)).await?;
        ///     Ok(byte[0])
        /// }
        /// ```
        #[track_caller]
        pub fn async_io<'a, T>(
            &'a self,
            interest: convoke_io::driver::Interest,
            mut io: impl FnMut() -> std::io::Result<T> + Send + 'a,
        ) -> impl Future<Output = std::io::Result<T>> + Send + 'a {
            convoke_io::attempting::attempt(&self.source, interest, move |source| {
                crate::net::readiness::try_io(source, interest, &mut io)
            })
        }
    };
}

pub(super) use readiness_methods;
