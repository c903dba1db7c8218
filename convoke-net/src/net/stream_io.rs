//! The futures of stream calls, written once for whole streams and for halves.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::io;
use std::sync::Arc;

use crate::stream::Progress;
use crate::stream::raw::{ended_early, write_zero};
use convoke_io::attempting::Waiter;
use convoke_io::driver::{Interest, Source};

/// The future of [`SocketStream::read`](super::SocketStream::read).
#[must_use = "futures do nothing until they are awaited"]
pub(super) struct ReadSome<'a> {
    waiter: Waiter<'a>,
    buffer: &'a mut [u8],
}

impl<'a> ReadSome<'a> {
    #[track_caller]
    #[inline]
    pub(super) fn new(source: &'a Arc<dyn Source>, buffer: &'a mut [u8]) -> Self {
        Self { waiter: Waiter::new(source, Interest::Read), buffer }
    }
}

impl Future for ReadSome<'_> {
    type Output = io::Result<usize>;

    /// Polls the read. It mostly has to wait, so an attempt that is known to block is skipped. An empty
    /// buffer never waits.
    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let (asks_first, buffer) = (!this.buffer.is_empty(), &mut *this.buffer);
        this.waiter.poll_asking_first(asks_first, cx, |source| source.try_read(buffer))
    }
}

/// The future of [`SocketStream::read_exact`](super::SocketStream::read_exact). `COUNTS` is the number of
/// counters that it updates: 0, or 1 after [`progress`](FillBuffer::progress).
#[must_use = "futures do nothing until they are awaited"]
pub struct FillBuffer<'a, const COUNTS: usize = 0> {
    waiter: Waiter<'a>,
    buffer: &'a mut [u8],
    filled: usize,
    progress: [&'a Progress; COUNTS],
}

impl<'a> FillBuffer<'a> {
    #[track_caller]
    pub(super) fn new(source: &'a Arc<dyn Source>, buffer: &'a mut [u8]) -> Self {
        Self { waiter: Waiter::new(source, Interest::Read), buffer, filled: 0, progress: [] }
    }

    /// Adds the number of bytes read to `progress`.
    pub fn progress(self, progress: &'a Progress) -> FillBuffer<'a, 1> {
        let Self { waiter, buffer, filled, progress: [] } = self;
        FillBuffer { waiter, buffer, filled, progress: [progress] }
    }
}

impl<const COUNTS: usize> Future for FillBuffer<'_, COUNTS> {
    type Output = io::Result<()>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while this.filled < this.buffer.len() {
            let rest = &mut this.buffer[this.filled..];
            let read = ready!(this.waiter.poll(cx, |source| source.try_read(rest)))?;
            if read == 0 {
                return Poll::Ready(Err(ended_early(this.filled, this.buffer.len())));
            }
            this.filled += read;
            Progress::add(this.progress.first().copied(), read);
        }
        Poll::Ready(Ok(()))
    }
}

/// The future of [`SocketStream::write_all`](super::SocketStream::write_all). `COUNTS` is the number of
/// counters that it updates: 0, or 1 after [`progress`](SendBuffer::progress).
#[must_use = "futures do nothing until they are awaited"]
pub struct SendBuffer<'a, const COUNTS: usize = 0> {
    waiter: Waiter<'a>,
    buffer: &'a [u8],
    written: usize,
    progress: [&'a Progress; COUNTS],
}

impl<'a> SendBuffer<'a> {
    #[track_caller]
    pub(super) fn new(source: &'a Arc<dyn Source>, buffer: &'a [u8]) -> Self {
        Self { waiter: Waiter::new(source, Interest::Write), buffer, written: 0, progress: [] }
    }

    /// Adds the number of bytes written to `progress`.
    pub fn progress(self, progress: &'a Progress) -> SendBuffer<'a, 1> {
        let Self { waiter, buffer, written, progress: [] } = self;
        SendBuffer { waiter, buffer, written, progress: [progress] }
    }
}

impl<const COUNTS: usize> Future for SendBuffer<'_, COUNTS> {
    type Output = io::Result<()>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while this.written < this.buffer.len() {
            let rest = &this.buffer[this.written..];
            let written = ready!(this.waiter.poll(cx, |source| source.try_write(rest)))?;
            Progress::add(this.progress.first().copied(), written);
            // Mostly the kernel takes all of it at once.
            if written == rest.len() {
                break;
            }
            if written == 0 {
                return Poll::Ready(Err(write_zero(this.written, this.buffer.len())));
            }
            this.written += written;
        }
        Poll::Ready(Ok(()))
    }
}

// They lie in waiting tasks, of which there are many.
#[cfg(all(target_pointer_width = "64", not(feature = "loom")))]
const _: () = assert!(size_of::<FillBuffer<'_>>() <= 56 && size_of::<SendBuffer<'_>>() <= 56);

impl fmt::Debug for ReadSome<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadSome").finish_non_exhaustive()
    }
}

impl<const COUNTS: usize> fmt::Debug for FillBuffer<'_, COUNTS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FillBuffer").field("filled", &self.filled).finish_non_exhaustive()
    }
}

impl<const COUNTS: usize> fmt::Debug for SendBuffer<'_, COUNTS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendBuffer").field("written", &self.written).finish_non_exhaustive()
    }
}
