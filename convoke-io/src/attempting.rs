//! Attempts: calls on a source that are retried until they do not block. Every socket call with a borrowed
//! buffer is one. Between two attempts the caller waits with a ticket, which owns nothing, so it can be
//! dropped at any time and nothing is lost.

use core::fmt;
use core::future::Future;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::io;
use std::sync::Arc;

use convoke_core::Panic;
use convoke_core::raw::{Frame, StopWatch, budget};
use convoke_exec::raw::count_call;

use crate::driver::{Interest, Source, Ticket};

/// The state of a wait for one direction of a source, from poll to poll. It lies in the future, or beside the
/// source for traits with `poll_…` methods. There are many of them, so everything but the stop watch is
/// packed into one word.
#[derive(Debug)]
pub struct Waiting {
    watch: StopWatch,
    /// The flags below, and above them the number of the ticket.
    word: u64,
}

/// Flag: it waits to write. Otherwise it waits to read.
const WRITES: u64 = 1;
/// The shift of the ticket's number, which fills the other bits.
const TICKET_SHIFT: u32 = 1;

/// The step after a failed attempt.
enum AfterFailure {
    Retry,
    /// The task will be polled again.
    Wait,
    Fail(io::Error),
}

impl Waiting {
    #[inline]
    pub const fn new(interest: Interest) -> Self {
        let word = match interest {
            Interest::Read => 0,
            Interest::Write => WRITES,
        };
        Self { watch: StopWatch::new(), word }
    }

    #[inline]
    const fn interest(&self) -> Interest {
        if self.word & WRITES == 0 { Interest::Read } else { Interest::Write }
    }

    #[inline]
    const fn ticket(&self) -> Ticket {
        Ticket::numbered(self.word >> TICKET_SHIFT)
    }

    #[inline]
    const fn set_ticket(&mut self, ticket: Ticket) {
        self.word = ticket.number() << TICKET_SHIFT | self.word & WRITES;
    }

    /// Polls `act` until it returns something other than `WouldBlock`.
    #[inline]
    pub fn poll<T>(
        &mut self,
        source: &dyn Source,
        location: &'static Location<'static>,
        cx: &Context<'_>,
        act: impl FnMut(&dyn Source) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        self.poll_asking_first(false, source, location, cx, act)
    }

    /// Polls `act` until it returns something other than `WouldBlock`. If `asks_first`, and the source knows
    /// that the first attempt would block, it waits without that attempt.
    #[inline]
    pub fn poll_asking_first<T>(
        &mut self,
        asks_first: bool,
        source: &dyn Source,
        location: &'static Location<'static>,
        cx: &Context<'_>,
        mut act: impl FnMut(&dyn Source) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        if is_stopped() {
            self.release(source);
            return Poll::Pending;
        }
        if !budget::may_proceed(cx) {
            return Poll::Pending;
        }
        // A server that has just sent a reply waits for the next request.
        if self.ticket() == Ticket::NONE
            && asks_first
            && let Some(ticket) = source.watch_untried(self.interest(), cx.waker())
        {
            self.start_waiting(ticket, location, cx);
            return Poll::Pending;
        }
        match act(source) {
            // The source was ready, so this watcher was woken or is about to be: the ticket is void.
            Ok(done) => self.complete(Ok(done)),
            Err(error) => self.retry_or_wait(error, source, location, cx, act),
        }
    }

    /// Handles a failed attempt: retries or waits. Out of line, so that the successful path needs no stack
    /// space for it.
    ///
    /// A source may keep alternating between "would block" and "ready". Each round takes from the budget of the
    /// task, so that others run and a stop takes effect. Outside of tasks there is no budget, and the number of
    /// rounds of one poll has the same bound: the caller's executor may have other work, too.
    #[inline(never)]
    fn retry_or_wait<T>(
        &mut self,
        mut error: io::Error,
        source: &dyn Source,
        location: &'static Location<'static>,
        cx: &Context<'_>,
        mut act: impl FnMut(&dyn Source) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        for _ in 0..budget::PER_POLL {
            match self.after_failure(error, source, location, cx) {
                AfterFailure::Retry => {}
                AfterFailure::Wait => return Poll::Pending,
                AfterFailure::Fail(error) => return self.complete(Err(error)),
            }
            match act(source) {
                Err(again) => error = again,
                done => return self.complete(done),
            }
        }
        budget::yield_now(cx);
        Poll::Pending
    }

    /// Decides what follows a failed attempt, and starts to wait if it is that. Not generic, as `retry_or_wait` is: there is one
    /// instance of it.
    fn after_failure(
        &mut self,
        error: io::Error,
        source: &dyn Source,
        location: &'static Location<'static>,
        cx: &Context<'_>,
    ) -> AfterFailure {
        match error.kind() {
            io::ErrorKind::WouldBlock => {
                if let Some(ticket) = source.watch(self.interest(), self.ticket(), cx.waker()) {
                    self.start_waiting(ticket, location, cx);
                    return AfterFailure::Wait;
                }
            }
            io::ErrorKind::Interrupted => {}
            _ => return AfterFailure::Fail(error),
        }
        budget::spend();
        if budget::may_proceed(cx) { AfterFailure::Retry } else { AfterFailure::Wait }
    }

    #[inline]
    fn complete<T>(&mut self, result: io::Result<T>) -> Poll<io::Result<T>> {
        self.set_ticket(Ticket::NONE);
        budget::spend();
        count_call();
        Poll::Ready(result)
    }

    /// Starts to wait with this ticket.
    fn start_waiting(&mut self, ticket: Ticket, location: &'static Location<'static>, cx: &Context<'_>) {
        self.set_ticket(ticket);
        Frame::current(|frame| {
            if let Some(frame) = frame {
                frame.waits_at(location);
                self.watch.watch(frame, cx);
            }
        });
    }

    /// Stops waiting.
    #[inline]
    pub fn release(&mut self, source: &dyn Source) {
        if self.ticket() != Ticket::NONE {
            let (interest, ticket) = (self.interest(), self.ticket());
            self.set_ticket(Ticket::NONE);
            // The panic hook has reported a panic of the driver or of a waker's destructor. This may run
            // during unwinding, where a second panic would abort the process.
            let _ = Panic::catch(|| source.unwatch(interest, ticket));
        }
    }
}

/// Stops the task if a stop was requested before this poll began; a later request polls the task again.
/// Returns true if so: the caller returns `Pending` now.
#[inline]
pub fn is_stopped() -> bool {
    Frame::current(|frame| frame.is_some_and(Frame::honour_stop))
}

/// A wait on a source inside a future. Each byte of it is a byte of every waiting task, so it refers to the
/// source through the socket's own reference, which is one word.
#[derive(Debug)]
pub struct Waiter<'a> {
    source: &'a Arc<dyn Source>,
    location: &'static Location<'static>,
    waiting: Waiting,
}

impl<'a> Waiter<'a> {
    #[track_caller]
    #[inline]
    pub fn new(source: &'a Arc<dyn Source>, interest: Interest) -> Self {
        Self { source, location: Location::caller(), waiting: Waiting::new(interest) }
    }

    /// Polls an attempt, as [`Waiting::poll`] does.
    #[inline]
    pub fn poll<T>(
        &mut self,
        cx: &Context<'_>,
        act: impl FnMut(&dyn Source) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        self.waiting.poll(&**self.source, self.location, cx, act)
    }

    /// Polls an attempt, as [`Waiting::poll_asking_first`] does.
    #[inline]
    pub fn poll_asking_first<T>(
        &mut self,
        asks_first: bool,
        cx: &Context<'_>,
        act: impl FnMut(&dyn Source) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        self.waiting.poll_asking_first(asks_first, &**self.source, self.location, cx, act)
    }
}

impl Drop for Waiter<'_> {
    #[inline]
    fn drop(&mut self) {
        self.waiting.release(&**self.source);
    }
}

/// The future of [`attempt`].
#[must_use = "futures do nothing until they are awaited"]
pub struct Attempting<'a, F> {
    waiter: Waiter<'a>,
    act: F,
}

/// Tries `act` on the source until it does not block, and waits in between.
#[track_caller]
#[inline]
pub fn attempt<'a, T, F>(source: &'a Arc<dyn Source>, interest: Interest, act: F) -> Attempting<'a, F>
where
    F: FnMut(&dyn Source) -> io::Result<T>,
{
    Attempting { waiter: Waiter::new(source, interest), act }
}

// `act` is called by reference and never pinned.
impl<F> Unpin for Attempting<'_, F> {}

impl<T, F> Future for Attempting<'_, F>
where
    F: FnMut(&dyn Source) -> io::Result<T>,
{
    type Output = io::Result<T>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        let this = self.get_mut();
        this.waiter.poll(cx, &mut this.act)
    }
}

impl<F> fmt::Debug for Attempting<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attempting").field("waiting", &self.waiter.waiting).finish_non_exhaustive()
    }
}
