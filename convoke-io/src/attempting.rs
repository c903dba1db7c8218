//! Tries something on a source until it can be done: the shape of every call of a socket that takes a borrowed buffer.
//! Between two attempts it waits with a ticket, which owns nothing; so it can be dropped at any time and loses nothing.

use core::cell::Cell;
use core::fmt;
use core::future::Future;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::io;
use std::sync::Arc;

use convoke_core::Panic;
use convoke_core::raw::{Frame, StopWatch};
use convoke_exec::raw::look_next;

use crate::driver::{Interest, Source, Ticket};

/// After so many calls in a row that did not have to wait, on one thread, the next one lets others run first, also those who
/// are only found to be ready by a look at the driver: a peer that always has something to say does not keep a thread for itself, and
/// a stop is heard.
pub const CALLS_IN_A_ROW: u32 = 64;

thread_local! {
    static IN_A_ROW: Cell<u32> = const { Cell::new(0) };
}

/// From now on this thread counts anew: for drivers whose runs must not depend on what the thread has done before.
pub fn count_calls_anew() {
    IN_A_ROW.set(0);
}

/// What waits for a direction of a source to be ready, from poll to poll: lies in the future, or, for traits with `poll_…`
/// methods, beside the source. There are many of them, so all but the watch is in one word.
#[derive(Debug)]
pub struct Waiting {
    watch: StopWatch,
    /// The bits below, and above them the number of the ticket.
    word: u64,
}

/// It waits to write; else to read.
const WRITES: u64 = 1;
/// It has let others run, and it is its turn now.
const YIELDED: u64 = 2;
/// The rest is the number of the ticket.
const NUMBERS: u32 = 2;

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
        Ticket::numbered(self.word >> NUMBERS)
    }

    #[inline]
    const fn set_ticket(&mut self, ticket: Ticket) {
        self.word = ticket.number() << NUMBERS | self.word & (WRITES | YIELDED);
    }

    /// Polls `act` until it does not say that it would block.
    #[inline]
    pub fn poll<T>(
        &mut self,
        source: &dyn Source,
        place: &'static Location<'static>,
        cx: &Context<'_>,
        act: impl FnMut(&dyn Source) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        self.poll_asking_first(false, source, place, cx, act)
    }

    /// The same. If `asks_first`, the source is asked, before the first attempt, if that is known to block.
    #[inline]
    pub fn poll_asking_first<T>(
        &mut self,
        asks_first: bool,
        source: &dyn Source,
        place: &'static Location<'static>,
        cx: &Context<'_>,
        mut act: impl FnMut(&dyn Source) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        if is_stopped() {
            self.let_go(source);
            return Poll::Pending;
        }
        if self.ticket() == Ticket::NONE {
            if !self.is_turn(cx) {
                return Poll::Pending;
            }
            // Who has just answered a question waits for the next one.
            if asks_first && let Some(ticket) = source.watch_untried(self.interest(), cx.waker()) {
                return self.waits(ticket, place, cx);
            }
        }
        match act(source) {
            // It was ready, so who waited for that has been woken, or is just being: the ticket is worth nothing.
            Ok(done) => {
                self.set_ticket(Ticket::NONE);
                Poll::Ready(Ok(done))
            }
            Err(error) => self.has_failed(error, source, place, cx, act),
        }
    }

    /// An attempt was in vain. Out of line: who goes on at once keeps nothing for the case that he does not.
    ///
    /// A source that always says that it would block, and then that it is ready, does not keep the thread: after a while others
    /// run first, and a stop is heard.
    #[inline(never)]
    fn has_failed<T>(
        &mut self,
        mut error: io::Error,
        source: &dyn Source,
        place: &'static Location<'static>,
        cx: &Context<'_>,
        mut act: impl FnMut(&dyn Source) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        let mut calls = 0;
        loop {
            match error.kind() {
                io::ErrorKind::WouldBlock => {
                    if let Some(ticket) = source.watch(self.interest(), self.ticket(), cx.waker()) {
                        return self.waits(ticket, place, cx);
                    }
                }
                io::ErrorKind::Interrupted => {}
                _ => return self.is_done(Err(error)),
            }
            if calls == CALLS_IN_A_ROW {
                cx.waker().wake_by_ref();
                look_next();
                return Poll::Pending;
            }
            calls += 1;
            match act(source) {
                Err(again) => error = again,
                done => return self.is_done(done),
            }
        }
    }

    fn is_done<T>(&mut self, result: io::Result<T>) -> Poll<io::Result<T>> {
        self.set_ticket(Ticket::NONE);
        Poll::Ready(result)
    }

    /// It waits now, with this ticket.
    #[inline]
    fn waits<T>(&mut self, ticket: Ticket, place: &'static Location<'static>, cx: &Context<'_>) -> Poll<T> {
        self.set_ticket(ticket);
        // Not `set`, which is a call.
        IN_A_ROW.with(|calls| calls.set(0));
        Frame::current(|frame| {
            if let Some(frame) = frame {
                frame.waits_at(place);
                self.watch.watch(frame, cx);
            }
        });
        Poll::Pending
    }

    /// Whether it may go on at once; if not, it is polled again when others have run.
    #[inline]
    fn is_turn(&mut self, cx: &Context<'_>) -> bool {
        let calls = IN_A_ROW.with(|calls| {
            calls.set(calls.get() + 1);
            calls.get()
        });
        if calls <= CALLS_IN_A_ROW {
            self.word &= !YIELDED;
            return true;
        }
        self.lets_others_run(cx)
    }

    #[cold]
    fn lets_others_run(&mut self, cx: &Context<'_>) -> bool {
        IN_A_ROW.set(0);
        self.word ^= YIELDED;
        let yields = self.word & YIELDED != 0;
        if yields {
            cx.waker().wake_by_ref();
            // Others may be ready by now, and nobody has heard of it yet.
            look_next();
        }
        !yields
    }

    /// It waits no longer.
    #[inline]
    pub fn let_go(&mut self, source: &dyn Source) {
        if self.ticket() != Ticket::NONE {
            let (interest, ticket) = (self.interest(), self.ticket());
            self.set_ticket(Ticket::NONE);
            // What a driver throws, or the destructor of a waker, has been reported by the panic hook. It may be dropped because
            // of a panic, and a second one would end the process.
            let _ = Panic::catch(|| source.unwatch(interest, ticket));
        }
    }
}

/// Ends by the stopped door if a stop had been asked for when this poll began; one that comes later polls the task again. True
/// if so: the caller returns `Pending` now.
#[inline]
pub fn is_stopped() -> bool {
    Frame::current(|frame| frame.is_some_and(Frame::honour_stop))
}

/// Somebody who wants to do something to a source, and waits for it: in a future, where each byte is one of each task that waits.
/// So the source is the reference to what its socket has, which is one word.
#[derive(Debug)]
pub struct Waiter<'a> {
    source: &'a Arc<dyn Source>,
    place: &'static Location<'static>,
    waiting: Waiting,
}

impl<'a> Waiter<'a> {
    #[track_caller]
    #[inline]
    pub fn new(source: &'a Arc<dyn Source>, interest: Interest) -> Self {
        Self { source, place: Location::caller(), waiting: Waiting::new(interest) }
    }

    /// As [`Waiting::poll`].
    #[inline]
    pub fn poll<T>(
        &mut self,
        cx: &Context<'_>,
        act: impl FnMut(&dyn Source) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        self.waiting.poll(&**self.source, self.place, cx, act)
    }

    /// As [`Waiting::poll_asking_first`].
    #[inline]
    pub fn poll_asking_first<T>(
        &mut self,
        asks_first: bool,
        cx: &Context<'_>,
        act: impl FnMut(&dyn Source) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        self.waiting.poll_asking_first(asks_first, &**self.source, self.place, cx, act)
    }
}

impl Drop for Waiter<'_> {
    #[inline]
    fn drop(&mut self) {
        self.waiting.let_go(&**self.source);
    }
}

/// See [`attempt`].
#[must_use = "futures do nothing until they are awaited"]
pub struct Attempting<'a, F> {
    waiter: Waiter<'a>,
    act: F,
}

/// Tries `act` on the source until it can be done, and waits in between.
#[track_caller]
#[inline]
pub fn attempt<'a, T, F>(source: &'a Arc<dyn Source>, interest: Interest, act: F) -> Attempting<'a, F>
where
    F: FnMut(&dyn Source) -> io::Result<T>,
{
    Attempting { waiter: Waiter::new(source, interest), act }
}

// Nothing in here is pinned: what is done is called by reference.
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
