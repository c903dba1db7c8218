//! The two halves of a TLS stream, for two tasks.
//!
//! Both need the session: reading may have to send. A half takes the stream out of the slot for one poll, and no lock is held while
//! it polls. The other half, if it comes meanwhile, is woken when the stream is back. Whatever waits to send wakes
//! both tasks: the stream below remembers one waker for writing, and either half may be the one to go on.

use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::io::{self, IoSlice};
use std::sync::{Arc, PoisonError};
use std::task::Wake;

use convoke_core::raw::budget;
use convoke_core::raw::sync::{Mutex, MutexGuard};
use futures_io::{AsyncRead, AsyncWrite};

use crate::stream::TlsStream;

/// The read half of a [`TlsStream`].
pub struct TlsReadHalf<S> {
    shared: Arc<SharedStream<S>>,
}

/// The write half of a [`TlsStream`]. Close it to send close_notify: dropping it sends nothing.
pub struct TlsWriteHalf<S> {
    shared: Arc<SharedStream<S>>,
}

impl<S> TlsStream<S> {
    /// Splits the stream into two halves, for two tasks.
    pub fn into_split(self) -> (TlsReadHalf<S>, TlsWriteHalf<S>) {
        let slot = Slot { stream: Some(Box::new(self)), waiting: [None, None] };
        let shared = Arc::new(SharedStream { slot: Mutex::new(slot), sending: Arc::default() });
        (TlsReadHalf { shared: shared.clone() }, TlsWriteHalf { shared })
    }
}

#[derive(Clone, Copy)]
enum Half {
    Read = 0,
    Write = 1,
}

struct SharedStream<S> {
    slot: Mutex<Slot<S>>,
    sending: Arc<Sending>,
}

struct Slot<S> {
    /// `None` while one of the halves polls it.
    stream: Option<Box<TlsStream<S>>>,
    /// The half that came meanwhile.
    waiting: [Option<Waker>; 2],
}

/// The waker for sending: wakes both halves.
#[derive(Default)]
struct Sending(Mutex<[Option<Waker>; 2]>);

impl Sending {
    fn lock(&self) -> MutexGuard<'_, [Option<Waker>; 2]> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn register(&self, half: Half, waker: Waker) {
        // The one before is dropped without the lock.
        let before = self.lock()[half as usize].replace(waker);
        drop(before);
    }
}

impl Wake for Sending {
    fn wake(self: Arc<Self>) {
        let wakers = core::mem::take(&mut *self.lock());
        wakers.into_iter().flatten().for_each(Waker::wake);
    }
}

impl<S> SharedStream<S> {
    fn lock(&self) -> MutexGuard<'_, Slot<S>> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Polls the stream, or waits until the other half has polled it. The second context is the one to send with.
    fn poll<T>(
        &self,
        half: Half,
        cx: &mut Context<'_>,
        poll: impl FnOnce(&mut TlsStream<S>, &mut Context<'_>, &mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let Some(stream) = self.take_or_wait(half, cx) else { return Poll::Pending };
        let mut taken = Taken { shared: self, stream: Some(stream) };
        self.sending.register(half, cx.waker().clone());
        let sending = Waker::from(self.sending.clone());
        let stream = taken.stream.as_deref_mut().expect("only its destructor takes it");
        poll(stream, cx, &mut Context::from_waker(&sending))
    }

    /// Takes the stream. If the other half has it, registers the waker and returns `None`.
    fn take_or_wait(&self, half: Half, cx: &Context<'_>) -> Option<Box<TlsStream<S>>> {
        if let Some(stream) = self.lock().stream.take() {
            return Some(stream);
        }
        // The waker is cloned and dropped without the lock: it may run foreign code.
        let waker = cx.waker().clone();
        let mut slot = self.lock();
        let before = match slot.stream.take() {
            Some(stream) => return Some(stream),
            None => slot.waiting[half as usize].replace(waker),
        };
        drop(slot);
        drop(before);
        None
    }
}

/// The stream while a half polls it. It goes back also if the poll panics.
struct Taken<'a, S> {
    shared: &'a SharedStream<S>,
    stream: Option<Box<TlsStream<S>>>,
}

impl<S> Drop for Taken<'_, S> {
    fn drop(&mut self) {
        let mut slot = self.shared.lock();
        slot.stream = self.stream.take();
        let waiting = core::mem::take(&mut slot.waiting);
        drop(slot);
        waiting.into_iter().flatten().for_each(Waker::wake);
    }
}

impl<S> TlsReadHalf<S> {
    /// Reunites both halves.
    ///
    /// # Errors
    /// Returns both unchanged if they are halves of different streams.
    pub fn reunite(self, write: TlsWriteHalf<S>) -> Result<TlsStream<S>, (Self, TlsWriteHalf<S>)> {
        if !Arc::ptr_eq(&self.shared, &write.shared) {
            return Err((self, write));
        }
        drop(write);
        let shared = Arc::into_inner(self.shared).expect("the two halves hold the only references");
        let slot = shared.slot.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(*slot.stream.expect("no half polls it"))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for TlsReadHalf<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let shared = &self.get_mut().shared;
        budget::poll_in_turn(cx, |cx| {
            shared.poll(Half::Read, cx, |stream, cx, sending| stream.poll_read_with(cx, sending, buffer))
        })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for TlsWriteHalf<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        let shared = &self.get_mut().shared;
        shared.poll(Half::Write, cx, |stream, _, sending| Pin::new(stream).poll_write(sending, buffer))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let shared = &self.get_mut().shared;
        shared.poll(Half::Write, cx, |stream, _, sending| {
            Pin::new(stream).poll_write_vectored(sending, buffers)
        })
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shared = &self.get_mut().shared;
        shared.poll(Half::Write, cx, |stream, _, sending| Pin::new(stream).poll_flush(sending))
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shared = &self.get_mut().shared;
        shared.poll(Half::Write, cx, |stream, _, sending| Pin::new(stream).poll_close(sending))
    }
}

impl<S> fmt::Debug for TlsReadHalf<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsReadHalf").finish_non_exhaustive()
    }
}

impl<S> fmt::Debug for TlsWriteHalf<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsWriteHalf").finish_non_exhaustive()
    }
}
