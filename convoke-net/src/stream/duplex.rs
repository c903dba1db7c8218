//! `duplex(capacity)`: two connected streams in memory, for tests and for tasks that exchange bytes.

use core::fmt;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::sync::{Arc, PoisonError};

use convoke_core::raw::sync::{Mutex, MutexGuard};
use convoke_core::raw::{Frame, StopWatch, budget};
use futures_io::{AsyncRead, AsyncWrite};

use convoke_io::attempting::is_stopped;
use convoke_io::driver::Finished;

/// Creates two connected streams: bytes that are written to one are read from the other. At most `capacity`
/// bytes are buffered in each direction.
///
/// Reading and writing wait, and can be stopped. When one stream is dropped or closed, the other reads the
/// remaining bytes and then the end. Writing to a dropped stream fails with
/// [`BrokenPipe`](io::ErrorKind::BrokenPipe).
///
/// # Panics
/// If the capacity is zero.
#[track_caller]
pub fn duplex(capacity: usize) -> (Duplex, Duplex) {
    assert!(capacity > 0, "the capacity of a duplex stream must be at least 1 byte");
    let (there, back) = (Arc::new(Pipe::new(capacity)), Arc::new(Pipe::new(capacity)));
    (Duplex::new(back.clone(), there.clone()), Duplex::new(there, back))
}

/// One end of a [`duplex()`].
pub struct Duplex {
    reads: Arc<Pipe>,
    writes: Arc<Pipe>,
    read_watch: StopWatch,
    write_watch: StopWatch,
}

struct Pipe(Mutex<PipeState>);

struct PipeState {
    bytes: VecDeque<u8>,
    capacity: usize,
    writer_gone: bool,
    reader_gone: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl Pipe {
    fn new(capacity: usize) -> Self {
        Self(Mutex::new(PipeState {
            bytes: VecDeque::new(),
            capacity,
            writer_gone: false,
            reader_gone: false,
            reader: None,
            writer: None,
        }))
    }

    fn lock(&self) -> MutexGuard<'_, PipeState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and wakes both ends without the lock.
    fn change(&self, change: impl FnOnce(&mut PipeState)) {
        let mut state = self.lock();
        change(&mut state);
        let (reader, writer) = (state.reader.take(), state.writer.take());
        drop(state);
        wake(reader);
        wake(writer);
    }
}

/// Wakes a task, without the lock. A waker that panics does not keep the other end from being woken.
fn wake(waker: Option<Waker>) {
    drop(waker.map(Finished::waking));
}

impl PipeState {
    fn free(&self) -> usize {
        self.capacity - self.bytes.len()
    }
}

impl Duplex {
    fn new(reads: Arc<Pipe>, writes: Arc<Pipe>) -> Self {
        Self { reads, writes, read_watch: StopWatch::new(), write_watch: StopWatch::new() }
    }
}

#[track_caller]
fn wait(watch: &mut StopWatch, cx: &Context<'_>) {
    let location = Location::caller();
    Frame::current(|frame| {
        if let Some(frame) = frame {
            frame.waits_at(location);
            watch.watch(frame, cx);
        }
    });
}

impl AsyncRead for Duplex {
    #[track_caller]
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        if is_stopped() || !budget::may_proceed(cx) {
            return Poll::Pending;
        }
        let this = self.get_mut();
        // The waker is cloned and dropped without the lock: it may run foreign code.
        let mut spare = None;
        let mut state = this.reads.lock();
        while state.bytes.is_empty() && !state.writer_gone && !buffer.is_empty() {
            if let Some(waker) = spare.take() {
                let before = state.reader.replace(waker);
                drop(state);
                drop(before);
                wait(&mut this.read_watch, cx);
                return Poll::Pending;
            }
            drop(state);
            spare = Some(cx.waker().clone());
            state = this.reads.lock();
        }
        budget::spend();
        let read = state.bytes.read(buffer);
        let writer = state.writer.take();
        drop(state);
        wake(writer);
        Poll::Ready(read)
    }
}

impl AsyncWrite for Duplex {
    #[track_caller]
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        if is_stopped() || !budget::may_proceed(cx) {
            return Poll::Pending;
        }
        let this = self.get_mut();
        // The waker is cloned and dropped without the lock: it may run foreign code.
        let mut spare = None;
        let mut state = this.writes.lock();
        while state.free() == 0 && !state.reader_gone && !state.writer_gone && !buffer.is_empty() {
            if let Some(waker) = spare.take() {
                let before = state.writer.replace(waker);
                drop(state);
                drop(before);
                wait(&mut this.write_watch, cx);
                return Poll::Pending;
            }
            drop(state);
            spare = Some(cx.waker().clone());
            state = this.writes.lock();
        }
        budget::spend();
        if state.reader_gone || state.writer_gone {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let free = state.free();
        let written = state.bytes.write(&buffer[..buffer.len().min(free)]);
        let reader = state.reader.take();
        drop(state);
        wake(reader);
        Poll::Ready(written)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.writes.change(|state| state.writer_gone = true);
        Poll::Ready(Ok(()))
    }
}

impl Drop for Duplex {
    fn drop(&mut self) {
        self.writes.change(|state| state.writer_gone = true);
        self.reads.change(|state| state.reader_gone = true);
    }
}

impl fmt::Debug for Duplex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Duplex").finish_non_exhaustive()
    }
}
