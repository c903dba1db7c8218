//! `duplex(capacity)`: two ends of a stream in memory, for tests and for tasks that speak in bytes.

use core::fmt;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::sync::{Arc, PoisonError};

use convoke_core::raw::sync::{Mutex, MutexGuard};
use convoke_core::raw::{Frame, StopWatch};
use futures_io::{AsyncRead, AsyncWrite};

use convoke_io::attempting::is_stopped;
use convoke_io::driver::Finished;

/// Two ends: what is written to one is read from the other, with at most so many bytes on the way in each direction.
///
/// Reading waits, and so does writing; both hear of a stop. When an end is dropped or closed, the other reads what is left and
/// then the end, and writing to it fails with [`BrokenPipe`](io::ErrorKind::BrokenPipe).
///
/// # Panics
/// If the capacity is zero: nothing would ever get across.
#[track_caller]
pub fn duplex(capacity: usize) -> (Duplex, Duplex) {
    assert!(capacity > 0, "a pipe without room passes nothing");
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

struct Pipe(Mutex<State>);

struct State {
    bytes: VecDeque<u8>,
    capacity: usize,
    writer_gone: bool,
    reader_gone: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl Pipe {
    fn new(capacity: usize) -> Self {
        Self(Mutex::new(State {
            bytes: VecDeque::new(),
            capacity,
            writer_gone: false,
            reader_gone: false,
            reader: None,
            writer: None,
        }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and wakes both sides without the lock.
    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        change(&mut state);
        let (reader, writer) = (state.reader.take(), state.writer.take());
        drop(state);
        wake(reader);
        wake(writer);
    }
}

/// Wakes it, if there is one, without the lock. A waker that panics is the business of whoever made it: the other side is told all
/// the same, and what was transferred is not lost.
fn wake(waker: Option<Waker>) {
    drop(waker.map(Finished::waking));
}

impl State {
    fn room(&self) -> usize {
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
    let place = Location::caller();
    Frame::current(|frame| {
        if let Some(frame) = frame {
            frame.waits_at(place);
            watch.watch(frame, cx);
        }
    });
}

impl AsyncRead for Duplex {
    #[track_caller]
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        if is_stopped() {
            return Poll::Pending;
        }
        let this = self.get_mut();
        // Cloned and dropped without the lock: it may be anybody's waker.
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
        if is_stopped() {
            return Poll::Pending;
        }
        let this = self.get_mut();
        // As in `poll_read`.
        let mut spare = None;
        let mut state = this.writes.lock();
        while state.room() == 0 && !state.reader_gone && !state.writer_gone && !buffer.is_empty() {
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
        if state.reader_gone || state.writer_gone {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let room = state.room();
        let written = state.bytes.write(&buffer[..buffer.len().min(room)]);
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
