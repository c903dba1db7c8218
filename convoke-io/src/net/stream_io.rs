//! The calls of streams, written once for whole streams and for halves: over a source.

use core::fmt;
use core::future::Future;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::io;

use crate::attempting::Waiting;
use crate::driver::{Interest, Source};
use crate::stream::Progress;
use crate::stream::raw::{ended_early, took_no_more};

/// Reads what is there: see [`SocketStream::read`](super::SocketStream::read).
#[must_use = "futures do nothing until they are awaited"]
pub(super) struct ReadSome<'a> {
    source: &'a dyn Source,
    buffer: &'a mut [u8],
    place: &'static Location<'static>,
    waiting: Waiting,
}

impl<'a> ReadSome<'a> {
    #[track_caller]
    #[inline]
    pub(super) fn new(source: &'a dyn Source, buffer: &'a mut [u8]) -> Self {
        Self { source, buffer, place: Location::caller(), waiting: Waiting::new(Interest::Read) }
    }
}

impl Drop for ReadSome<'_> {
    #[inline]
    fn drop(&mut self) {
        self.waiting.let_go(self.source);
    }
}

impl Future for ReadSome<'_> {
    type Output = io::Result<usize>;

    /// It mostly has to wait, so what is known to block is not tried; unless there is nothing to wait for.
    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let (asks_first, buffer) = (!this.buffer.is_empty(), &mut *this.buffer);
        this.waiting
            .poll_asking_first(asks_first, this.source, this.place, cx, |source| source.try_read(buffer))
    }
}

/// Fills a buffer from a socket: see [`SocketStream::read_exact`](super::SocketStream::read_exact).
#[must_use = "futures do nothing until they are awaited"]
pub struct FillBuffer<'a> {
    source: &'a dyn Source,
    buffer: &'a mut [u8],
    filled: usize,
    progress: Option<&'a Progress>,
    place: &'static Location<'static>,
    waiting: Waiting,
}

impl Drop for FillBuffer<'_> {
    #[inline]
    fn drop(&mut self) {
        self.waiting.let_go(self.source);
    }
}

impl<'a> FillBuffer<'a> {
    #[track_caller]
    pub(super) fn new(source: &'a dyn Source, buffer: &'a mut [u8]) -> Self {
        let place = Location::caller();
        Self { source, buffer, filled: 0, progress: None, place, waiting: Waiting::new(Interest::Read) }
    }

    /// Counts there how much was read.
    pub fn progress(mut self, progress: &'a Progress) -> Self {
        self.progress = Some(progress);
        self
    }
}

impl Future for FillBuffer<'_> {
    type Output = io::Result<()>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while this.filled < this.buffer.len() {
            let room = &mut this.buffer[this.filled..];
            let read =
                ready!(this.waiting.poll(this.source, this.place, cx, |source| source.try_read(room)))?;
            if read == 0 {
                return Poll::Ready(Err(ended_early(this.filled, this.buffer.len())));
            }
            this.filled += read;
            Progress::add(this.progress, read);
        }
        Poll::Ready(Ok(()))
    }
}

/// Writes a whole buffer to a socket: see [`SocketStream::write_all`](super::SocketStream::write_all).
#[must_use = "futures do nothing until they are awaited"]
pub struct SendBuffer<'a> {
    source: &'a dyn Source,
    buffer: &'a [u8],
    written: usize,
    progress: Option<&'a Progress>,
    place: &'static Location<'static>,
    waiting: Waiting,
}

impl Drop for SendBuffer<'_> {
    #[inline]
    fn drop(&mut self) {
        self.waiting.let_go(self.source);
    }
}

impl<'a> SendBuffer<'a> {
    #[track_caller]
    pub(super) fn new(source: &'a dyn Source, buffer: &'a [u8]) -> Self {
        let place = Location::caller();
        Self { source, buffer, written: 0, progress: None, place, waiting: Waiting::new(Interest::Write) }
    }

    /// Counts there how much was written.
    pub fn progress(mut self, progress: &'a Progress) -> Self {
        self.progress = Some(progress);
        self
    }
}

impl Future for SendBuffer<'_> {
    type Output = io::Result<()>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while this.written < this.buffer.len() {
            let rest = &this.buffer[this.written..];
            let written =
                ready!(this.waiting.poll(this.source, this.place, cx, |source| source.try_write(rest)))?;
            Progress::add(this.progress, written);
            // Mostly all of it is taken at once.
            if written == rest.len() {
                break;
            }
            if written == 0 {
                return Poll::Ready(Err(took_no_more(this.written, this.buffer.len())));
            }
            this.written += written;
        }
        Poll::Ready(Ok(()))
    }
}

impl fmt::Debug for ReadSome<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadSome").finish_non_exhaustive()
    }
}

impl fmt::Debug for FillBuffer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FillBuffer").field("filled", &self.filled).finish_non_exhaustive()
    }
}

impl fmt::Debug for SendBuffer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendBuffer").field("written", &self.written).finish_non_exhaustive()
    }
}
