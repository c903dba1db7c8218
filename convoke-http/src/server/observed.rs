//! The stream of a connection: tells its activity, and fails if the client does not read.

use core::future::{Future, IntoFuture};
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::io::{self, IoSlice};
use std::sync::Arc;

use convoke_exec::time::{Sleeping, sleep};
use futures_io::{AsyncRead, AsyncWrite};

use super::activity::Activity;

/// A stream whose reads and writes are recorded, and whose writes may wait for a limited time.
pub(super) struct Observed<S> {
    stream: S,
    activity: Arc<Activity>,
    write_time: Duration,
    /// Runs while a write waits. Allocated when the first one does.
    timer: Option<Pin<Box<Sleeping>>>,
    waits: bool,
}

impl<S> Observed<S> {
    pub(super) fn new(stream: S, activity: Arc<Activity>, write_time: Duration) -> Self {
        Self { stream, activity, write_time, timer: None, waits: false }
    }

    /// Returns the stream.
    pub(super) fn into_inner(self) -> S {
        self.stream
    }

    /// Ends the wait of a write that has made progress, and fails one that waits for too long.
    fn limited<T>(&mut self, cx: &mut Context<'_>, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            if self.waits {
                self.waits = false;
                self.activity.sent();
            }
            return polled;
        }
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(self.write_time).into_future()));
        if !self.waits {
            self.waits = true;
            self.activity.waits_to_send();
            timer.as_mut().reset_after(self.write_time);
        }
        timer.as_mut().poll(cx).map(|()| Err(does_not_read(self.write_time)))
    }
}

#[cold]
fn does_not_read(time: Duration) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, format!("the client has read nothing for {time:?}"))
}

impl<S: AsyncRead + Unpin> AsyncRead for Observed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        target: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, target);
        if matches!(read, Poll::Ready(Ok(1..))) {
            self.activity.received();
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Observed<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.limited(cx, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(cx, buffers);
        self.limited(cx, polled)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(cx);
        self.limited(cx, polled)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_close(cx);
        self.limited(cx, polled)
    }
}
