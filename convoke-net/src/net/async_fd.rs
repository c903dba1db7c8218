//! `AsyncFd`: a descriptor of any kind that the kernel reports readiness for.
#![cfg(unix)]

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use futures_io::{AsyncRead, AsyncWrite};

use super::poll_slot::{PollSlots, poll_location};
use super::readiness::{ready, try_io};
use convoke_io::attempting::attempt;
use convoke_io::context::current_driver;
use convoke_io::driver::{Interest, Source, StandardSocket};

/// A descriptor of any kind that the kernel reports readiness for: a pipe, a terminal, an eventfd, an inotify
/// instance, a socket of another crate. The driver watches a duplicate of the descriptor, and makes it
/// non-blocking; the program uses the original. It belongs to the context of the task that created it.
///
/// Use [`read`](AsyncFd::read) and [`write`](AsyncFd::write) if `&T` implements `Read` and `Write`, as pipes
/// and files of the standard library do; it then implements `futures_io::{AsyncRead, AsyncWrite}`, too. Use
/// [`async_io`](AsyncFd::async_io) for every other call. Regular files are always ready, and are refused.
///
/// ```
/// use convoke::net::AsyncFd;
/// use convoke::prelude::*;
///
/// let context = convoke::driver::io_context()?;
/// let received = context.block_on(async {
///     let (reader, writer) = std::io::pipe()?;
///     let (reader, writer) = (AsyncFd::new(reader)?, AsyncFd::new(writer)?);
///     let mut received = [0; 5];
///     try_join((reader.read(&mut received), writer.write(b"hello"))).await?;
///     std::io::Result::Ok(received)
/// });
/// assert_eq!(&received.unwrap()?, b"hello");
/// # std::io::Result::Ok(())
/// ```
pub struct AsyncFd<T> {
    inner: T,
    source: Arc<dyn Source>,
    slots: PollSlots,
}

impl<T: AsFd> AsyncFd<T> {
    /// Adopts a descriptor: makes it non-blocking, and registers it with the driver of the current task.
    ///
    /// # Errors
    /// Fails if there is no I/O context, if the driver has no descriptors, as in a simulation, or with the
    /// error of the kernel, for example for a regular file. The value is dropped then.
    pub fn new(inner: T) -> io::Result<Self> {
        let duplicate = inner.as_fd().try_clone_to_owned()?;
        let source = current_driver()?.adopt(StandardSocket::Descriptor(duplicate))?;
        Ok(Self { inner, source, slots: PollSlots::new() })
    }
}

impl<T> AsyncFd<T> {
    /// Returns a reference to the value that owns the descriptor.
    pub fn get_ref(&self) -> &T {
        &self.inner
    }

    /// Waits until an attempt in this direction may succeed. It may return early: try, and wait again after
    /// [`WouldBlock`](io::ErrorKind::WouldBlock).
    ///
    /// - *Completes with* `()`; an error of the driver; or stopped.
    /// - *If dropped*, nothing has happened.
    /// - *Runs on* the current task.
    ///
    /// ```
    /// use std::io::PipeReader;
    /// use convoke::net::{AsyncFd, Interest};
    ///
    /// async fn wait(pipe: &AsyncFd<PipeReader>) -> std::io::Result<()> {
    ///     pipe.ready(Interest::Read).await
    /// }
    /// ```
    #[track_caller]
    pub fn ready(&self, interest: Interest) -> impl Future<Output = io::Result<()>> + Send + use<'_, T> {
        ready(&self.source, interest)
    }

    /// Waits until reading may succeed. Otherwise like [`ready`](AsyncFd::ready).
    ///
    /// - *Completes with* `()`; an error of the driver; or stopped.
    /// - *If dropped*, nothing has happened.
    /// - *Runs on* the current task.
    ///
    /// ```
    /// use std::io::PipeReader;
    /// use convoke::net::AsyncFd;
    ///
    /// async fn wait(pipe: &AsyncFd<PipeReader>) -> std::io::Result<()> {
    ///     pipe.readable().await
    /// }
    /// ```
    #[track_caller]
    pub fn readable(&self) -> impl Future<Output = io::Result<()>> + Send + use<'_, T> {
        self.ready(Interest::Read)
    }

    /// Waits until writing may succeed. Otherwise like [`ready`](AsyncFd::ready).
    ///
    /// - *Completes with* `()`; an error of the driver; or stopped.
    /// - *If dropped*, nothing has happened.
    /// - *Runs on* the current task.
    ///
    /// ```
    /// use std::io::PipeWriter;
    /// use convoke::net::AsyncFd;
    ///
    /// async fn wait(pipe: &AsyncFd<PipeWriter>) -> std::io::Result<()> {
    ///     pipe.writable().await
    /// }
    /// ```
    #[track_caller]
    pub fn writable(&self) -> impl Future<Output = io::Result<()>> + Send + use<'_, T> {
        self.ready(Interest::Write)
    }

    /// Calls `io`, which uses the descriptor without blocking, if it may succeed in this direction.
    ///
    /// # Errors
    /// Returns the error of `io`, or [`WouldBlock`](io::ErrorKind::WouldBlock) without a call if the
    /// descriptor is known to block: wait with [`ready`](AsyncFd::ready), and try again.
    pub fn try_io<R>(&self, interest: Interest, mut io: impl FnMut(&T) -> io::Result<R>) -> io::Result<R> {
        try_io(&*self.source, interest, || io(&self.inner))
    }

    /// Calls `io`, which uses the descriptor without blocking, until it does not return
    /// [`WouldBlock`](io::ErrorKind::WouldBlock), and waits in between.
    ///
    /// - *Completes with* the result of `io`; or stopped, and then the last call has returned `WouldBlock`.
    /// - *If dropped*, the last call has returned `WouldBlock`.
    /// - *Runs on* the current task.
    ///
    /// ```
    /// use std::io::Read;
    /// use convoke::net::{AsyncFd, Interest};
    ///
    /// async fn byte(pipe: &AsyncFd<std::io::PipeReader>) -> std::io::Result<u8> {
    ///     let read_one = |mut pipe: &std::io::PipeReader| {
    ///         let mut byte = [0];
    ///         pipe.read_exact(&mut byte).map(|()| byte[0])
    ///     };
    ///     pipe.async_io(Interest::Read, read_one).await
    /// }
    /// ```
    #[track_caller]
    pub fn async_io<'a, R>(
        &'a self,
        interest: Interest,
        mut io: impl FnMut(&T) -> io::Result<R> + 'a,
    ) -> impl Future<Output = io::Result<R>> + 'a {
        attempt(&self.source, interest, move |source| try_io(source, interest, || io(&self.inner)))
    }

    /// Reads the available bytes. Waits for at least one, unless the buffer is empty.
    ///
    /// - *Completes with* the number of bytes, zero at the end; an error; or stopped.
    /// - *If dropped*, nothing was read.
    /// - *Runs on* the current task.
    ///
    /// ```
    /// use std::io::PipeReader;
    /// use convoke::net::AsyncFd;
    ///
    /// async fn some(pipe: &AsyncFd<PipeReader>) -> std::io::Result<Vec<u8>> {
    ///     let mut bytes = vec![0; 512];
    ///     let read = pipe.read(&mut bytes).await?;
    ///     bytes.truncate(read);
    ///     Ok(bytes)
    /// }
    /// ```
    #[track_caller]
    pub fn read<'a>(&'a self, buffer: &'a mut [u8]) -> impl Future<Output = io::Result<usize>> + 'a
    where
        for<'r> &'r T: Read,
    {
        self.async_io(Interest::Read, move |mut inner| inner.read(buffer))
    }

    /// Writes as many bytes as fit. Waits until at least one fits, unless the buffer is empty.
    ///
    /// A write to a pipe without a reader raises SIGPIPE, which Rust programs ignore, unless they restore its
    /// default action; then it is the error [`BrokenPipe`](io::ErrorKind::BrokenPipe).
    ///
    /// - *Completes with* the number of bytes; an error; or stopped.
    /// - *If dropped*, nothing was written.
    /// - *Runs on* the current task.
    ///
    /// ```
    /// use std::io::PipeWriter;
    /// use convoke::net::AsyncFd;
    ///
    /// async fn wake(pipe: &AsyncFd<PipeWriter>) -> std::io::Result<usize> {
    ///     pipe.write(b"!").await
    /// }
    /// ```
    #[track_caller]
    pub fn write<'a>(&'a self, buffer: &'a [u8]) -> impl Future<Output = io::Result<usize>> + 'a
    where
        for<'r> &'r T: Write,
    {
        self.async_io(Interest::Write, move |mut inner| inner.write(buffer))
    }
}

impl<T> Drop for AsyncFd<T> {
    fn drop(&mut self) {
        self.slots.release(&*self.source);
    }
}

impl<T: Unpin> AsyncRead for AsyncFd<T>
where
    for<'r> &'r T: Read,
{
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let mut inner = &this.inner;
        let read = |source: &dyn Source| try_io(source, Interest::Read, || inner.read(buffer));
        this.slots.reads().poll(&*this.source, Interest::Read, poll_location(), cx, read)
    }
}

impl<T: Unpin> AsyncWrite for AsyncFd<T>
where
    for<'r> &'r T: Write,
{
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let mut inner = &this.inner;
        let write = |source: &dyn Source| try_io(source, Interest::Write, || inner.write(buffer));
        this.slots.writes().poll(&*this.source, Interest::Write, poll_location(), cx, write)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let mut inner = &this.inner;
        let flush = |source: &dyn Source| try_io(source, Interest::Write, || inner.flush());
        this.slots.writes().poll(&*this.source, Interest::Write, poll_location(), cx, flush)
    }

    /// Flushes. The descriptor is closed when it is dropped: only then does the reader of a pipe read the
    /// end.
    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}

impl<T: AsFd> AsFd for AsyncFd<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }
}

impl<T: fmt::Debug> fmt::Debug for AsyncFd<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AsyncFd").field(&self.inner).finish()
    }
}
