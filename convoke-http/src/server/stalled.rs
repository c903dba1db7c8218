//! Streams of HTTP/2 whose client takes nothing: it gives no window, and so hyper neither writes nor asks for more.
//!
//! Hyper's task of a stream polls the response and its body, or waits for the client. The two parts of that poll which are
//! ours, [`Reply`](super::reply::Reply) and [`ReplyBody`](super::reply_body::ReplyBody), say what they have seen in a variable
//! of the thread; the wrapper of the task reads it when the poll is over.

use core::cell::Cell;
use core::future::{Future, IntoFuture};
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use convoke_exec::time::{Sleeping, sleep};
use pin_project_lite::pin_project;

/// The last thing that a poll of a stream's task has seen of its response.
#[derive(Clone, Copy)]
pub(super) enum Seen {
    /// Something to send: it is the client's turn.
    Output,
    /// The body has nothing to send yet: it is the program's turn.
    Waiting,
}

impl Seen {
    /// Records what was seen, for the task that is polled.
    pub(super) fn record(self) {
        LAST.set(Some(self));
    }
}

thread_local! {
    static LAST: Cell<Option<Seen>> = const { Cell::new(None) };
}

pin_project! {
    /// The task of a stream, which is dropped if its client takes nothing for a time. Hyper then resets the stream.
    pub(super) struct Unstalled<F> {
        #[pin]
        stream: F,
        limit: Duration,
        // Allocated when the client does not take all at once.
        timer: Option<Pin<Box<Sleeping>>>,
        // True while it is the client's turn.
        runs: bool,
    }
}

impl<F> Unstalled<F> {
    pub(super) fn new(stream: F, limit: Duration) -> Self {
        Self { stream, limit, timer: None, runs: false }
    }
}

impl<F: Future> Future for Unstalled<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        LAST.set(None);
        let polled = this.stream.poll(cx);
        let seen = LAST.take();
        if polled.is_ready() {
            return Poll::Ready(());
        }
        match seen {
            Some(Seen::Waiting) => *this.runs = false,
            Some(Seen::Output) => {
                *this.runs = true;
                let limit = *this.limit;
                let timer = this.timer.get_or_insert_with(|| Box::pin(sleep(limit).into_future()));
                timer.as_mut().reset_after(limit);
            }
            None => {}
        }
        match this.timer {
            Some(timer) if *this.runs => timer.as_mut().poll(cx),
            _ => Poll::Pending,
        }
    }
}
