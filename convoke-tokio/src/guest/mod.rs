//! tokio inside Convoke: futures that need a tokio runtime, in tasks of Convoke's.
//!
//! A guest is made, polled and dropped while its thread has *entered* the runtime. The runtime is a service of the
//! I/O context: `runtime` holds it, and closes it in order. `calls` are the lines that a report about it names.

mod calls;
mod runtime;

pub use calls::GuestCall;
pub use runtime::{GuestRuntime, TasksLeft};

use core::fmt;
use core::future::Future;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::sync::Arc;

use calls::GuestCalls;
use convoke_io::context::use_service;
use pin_project_lite::pin_project;
use tokio::runtime::{Handle, RuntimeMetrics};

/// Runs a future that needs a tokio runtime, in a task of Convoke's: a client of a database, an HTTP client, a
/// socket or a timer of tokio's. `make` makes it.
///
/// The future is made, polled and dropped inside the runtime, so that it can use `tokio::spawn`, timers and
/// sockets. The runtime is the [`GuestRuntime`] of the I/O context, which is created when it is first needed, and
/// closes in order with the other services. In a tokio program, inside [`run`](crate::run()), it is the
/// program's own.
///
/// - *Completes with* what the future returns.
/// - *If dropped*, the future is dropped, inside the runtime. A stop drops it where it waits
///   (`convoke::env::ForeignFutures`). Tasks that it has spawned go on, and are waited for when the runtime
///   closes.
/// - *Runs on* the task's executor. Tasks that it spawns run on the thread of the guest runtime.
/// - *Panics* if the future does; and outside a tokio runtime if there is no I/O context, or if the runtime cannot
///   be created.
///
/// ```
/// use std::time::Duration;
/// use convoke_tokio::tokio_guest;
///
/// #[convoke::main]
/// async fn main() {
///     let answer = tokio_guest(|| async {
///         let spawned = tokio::spawn(async { 6 * 7 });
///         tokio::time::sleep(Duration::from_millis(1)).await;
///         spawned.await.unwrap()
///     })
///     .await;
///     assert_eq!(answer, 42);
/// }
/// ```
#[track_caller]
pub fn tokio_guest<M, F>(make: M) -> Guest<M, F>
where
    M: FnOnce() -> F,
    F: Future,
{
    Guest { make: Some(make), future: None, runtime: None, location: Location::caller() }
}

pin_project! {
    /// Future of [`tokio_guest()`].
    #[must_use = "futures do nothing until they are awaited"]
    pub struct Guest<M, F> {
        make: Option<M>,
        #[pin]
        future: Option<F>,
        runtime: Option<Entered>,
        location: &'static Location<'static>,
    }

    impl<M, F> PinnedDrop for Guest<M, F> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            let _entered = this.runtime.as_ref().map(|runtime| runtime.handle.enter());
            this.future.set(None);
        }
    }
}

impl<M: FnOnce() -> F, F: Future> Future for Guest<M, F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let mut this = self.project();
        let runtime = &*this.runtime.get_or_insert_with(|| runtime_of_this_task(this.location));
        let _entered = runtime.handle.enter();
        let before = runtime.tasks();
        if let Some(make) = this.make.take() {
            this.future.set(Some(make()));
        }
        let Some(future) = this.future.as_mut().as_pin_mut() else {
            panic!("`tokio_guest` polled after it has ended")
        };
        let polled = future.poll(cx);
        runtime.note_spawned(before, this.location);
        if polled.is_ready() {
            this.future.set(None);
        }
        polled
    }
}

/// The runtime of a guest.
struct Entered {
    handle: Handle,
    /// `None` in a runtime of the program's own, which closes in its own way.
    counted: Option<Counted>,
}

/// The calls of a guest runtime, and its number of tasks. The metrics are kept: to make them counts a reference, twice each poll.
struct Counted {
    calls: Arc<GuestCalls>,
    metrics: RuntimeMetrics,
}

impl Entered {
    /// Returns the number of tasks that are alive.
    fn tasks(&self) -> usize {
        self.counted.as_ref().map_or(0, |counted| counted.metrics.num_alive_tasks())
    }

    /// Notes the tasks that there are more than before a poll.
    fn note_spawned(&self, before: usize, location: &'static Location<'static>) {
        if let Some(Counted { calls, metrics }) = &self.counted
            && let spawned @ 1.. = metrics.num_alive_tasks().saturating_sub(before)
        {
            calls.note(location, spawned);
        }
    }
}

/// Returns the runtime that this thread has entered, or else the guest runtime of the task's I/O context.
fn runtime_of_this_task(location: &'static Location<'static>) -> Entered {
    if let Ok(handle) = Handle::try_current() {
        return Entered { handle, counted: None };
    }
    match use_service::<GuestRuntime>() {
        Ok(runtime) => {
            let calls = runtime.calls().clone();
            calls.note(location, 0);
            let handle = runtime.handle().clone();
            let metrics = handle.metrics();
            Entered { handle, counted: Some(Counted { calls, metrics }) }
        }
        Err(error) => panic!("the `tokio_guest` at {location} has no tokio runtime: {error}"),
    }
}

impl<M, F> fmt::Debug for Guest<M, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guest").field("location", &self.location).finish_non_exhaustive()
    }
}
