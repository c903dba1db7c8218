//! Waiting with a thread instead of a task: the calls whose name begins with `blocking_`.

use core::cell::Cell;
use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use std::sync::Arc;
use std::task::Wake;

use convoke_core::raw::sync::atomic::{AtomicBool, Ordering};
use convoke_core::raw::sync::{thread, thread_local};
use convoke_core::raw::{Frame, OwnerId};

/// Blocks this thread until the future has completed. `call` and `instead` name the blocking call and the one
/// to await, for the message of the panic.
///
/// # Panics
/// In a task, and on a thread that runs an executor.
#[track_caller]
pub(crate) fn wait_for<F: Future>(call: &str, instead: &str, future: F) -> F::Output {
    let in_task = Frame::current(|frame| frame.is_some());
    assert!(
        !in_task && OwnerId::here() == OwnerId::NONE,
        "`{call}` was called {}, and would block all other work of this thread; await `{instead}` instead, or call it in \
         `blocking`",
        if in_task { "in a task" } else { "on the thread of a run loop" }
    );
    let parker = SPARE.try_with(Cell::take).ok().flatten().unwrap_or_else(Parker::new);
    let waker = Waker::from(parker.clone());
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    let output = loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            break output;
        }
        parker.park();
    };
    drop(waker);
    let _ = SPARE.try_with(|spare| spare.set(Some(parker)));
    output
}

thread_local! {
    /// The parker of the last wait of this thread, cached for the next one. It is taken out meanwhile: a
    /// nested wait, in a waker for example, has its own.
    static SPARE: Cell<Option<Arc<Parker>>> = Cell::new(None);
}

/// Unparks a thread. The flag is set before: a thread may be unparked for other reasons.
struct Parker {
    thread: thread::Thread,
    woken: AtomicBool,
}

impl Parker {
    fn new() -> Arc<Self> {
        Arc::new(Self { thread: thread::current(), woken: AtomicBool::new(false) })
    }

    /// Blocks until it was woken since the last call.
    fn park(&self) {
        while !self.woken.swap(false, Ordering::Acquire) {
            thread::park();
        }
    }
}

impl Wake for Parker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // An exchange, as in `park`: a plain store might come before one of these in the order of changes, and
        // be overwritten by it.
        self.woken.swap(true, Ordering::Release);
        self.thread.unpark();
    }
}
