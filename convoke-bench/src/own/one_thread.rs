//! Convoke's run loop as one of the runtimes of one thread: a scope that the contestant's tasks are started in.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

use convoke::raw::Frame;
use convoke::{Handle, Scope, checkpoint, scope, sync_wait, task};

use crate::peer::{OneThread, Spawner};

pub(crate) struct Convoke;

/// The scope of a run. It is leaked, a few hundred bytes a run, so that the handle can be copied as the peers' are.
#[derive(Clone, Copy)]
pub(crate) struct InScope(&'static Scope<()>);

impl OneThread for Convoke {
    type Spawner = InScope;

    fn start() -> Self {
        Self
    }

    fn run<F: Future + 'static>(&mut self, work: impl FnOnce(InScope) -> F) -> F::Output {
        let mut output = None;
        {
            let (output, work) = (OnThisThread(&mut output), OnThisThread(work));
            let run = async move {
                let (output, work) = (output, work);
                let OnThisThread(work) = work;
                scope(async move |s| {
                    let s: &'static Scope<()> = Box::leak(Box::new(s));
                    let value = s.spawn_future_local(work(InScope(s))).await;
                    let OnThisThread(output) = output;
                    *output = Some(value);
                })
                .await;
            };
            sync_wait(task(OnThisThread(run))).unwrap();
        }
        output.expect("the scope has ended")
    }
}

impl Spawner for InScope {
    type Task<T: 'static> = Handle<T>;

    #[inline]
    fn spawn<F: Future + 'static>(self, future: F) -> Handle<F::Output> {
        self.0.spawn_future_local(future)
    }

    fn yield_now(self) -> impl Future<Output = ()> {
        checkpoint()
    }

    fn wait(self) -> impl Future<Output = ()> {
        poll_fn(|_| {
            Frame::current(|frame| frame.is_some_and(Frame::honour_stop));
            Poll::Pending
        })
    }
}

/// `sync_wait` runs what it is given on the calling thread, but asks that it could go elsewhere.
struct OnThisThread<T>(T);

// SAFETY: nothing here moves it to another thread: the loop of a `sync_wait` is its own thread's.
unsafe impl<T> Send for OnThisThread<T> {}

impl<F: Future> Future for OnThisThread<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: the future is not moved out of what is pinned.
        unsafe { self.map_unchecked_mut(|this| &mut this.0) }.poll(context)
    }
}
