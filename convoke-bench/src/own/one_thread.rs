//! Convoke's I/O context of one thread, with its driver, as users run it: a scope in which the contestant's tasks are
//! started.

use std::future::{Future, poll_fn};
use std::task::Poll;

use convoke::driver::io_context;
use convoke::env::Changes;
use convoke::raw::Frame;
use convoke::scope::Handle;
use convoke::scope::SameThread;
use convoke::{Scope, StopReason, checkpoint, scope};

use crate::peer::{OneThread, Spawner};

pub(crate) struct Convoke;

/// The scope of a run. It is leaked, a few hundred bytes per run, so that the handle can be copied as those
/// of the peers can.
#[derive(Clone, Copy)]
pub(crate) struct InScope(&'static Scope<()>);

impl OneThread for Convoke {
    type Spawner = InScope;

    fn start() -> Self {
        Self
    }

    fn run<F: Future + 'static>(&mut self, work: impl FnOnce(InScope) -> F) -> F::Output {
        run_with(Changes::new(), work)
    }
}

/// Runs `work` in a changed environment.
pub(crate) fn run_with<F: Future + 'static>(changes: Changes, work: impl FnOnce(InScope) -> F) -> F::Output {
    let all = async {
        let mut output = None;
        scope(async |s| {
            let s: &'static Scope<()> = Box::leak(Box::new(s));
            output = Some(s.child().local().spawn_future(work(InScope(s))).await);
        })
        .await;
        output
    };
    io_context()
        .expect("an I/O context starts")
        .block_on_with(changes, all)
        .unwrap()
        .expect("the scope has ended")
}

impl InScope {
    /// Starts a task without a handle; its scope owns it.
    pub(crate) fn start(self, future: impl Future<Output = ()> + 'static) {
        self.0.child().local().spawn(future);
    }

    /// Stops the tasks without a handle.
    pub(crate) fn stop_all(self) {
        self.0.request_stop(StopReason::Requested);
    }
}

impl Spawner for InScope {
    type Task<T: 'static> = Handle<T, SameThread>;

    #[inline]
    fn spawn<F: Future + 'static>(self, future: F) -> Handle<F::Output, SameThread> {
        self.0.child().local().spawn_future(future)
    }

    fn yield_now(self) -> impl Future<Output = ()> {
        checkpoint()
    }

    fn wait() -> impl Future<Output = ()> + 'static {
        poll_fn(|_| {
            Frame::current(|frame| frame.is_some_and(Frame::honour_stop));
            Poll::Pending
        })
    }
}
