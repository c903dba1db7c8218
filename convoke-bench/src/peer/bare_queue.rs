//! async-task with the simplest possible queue: the cost of its tasks alone.
//!
//! Rule 1: a [`BareQueue`] is neither `Send` nor `Sync`, so a runnable, which only it holds, stays on the
//! thread that spawned it; and no scenario sends a waker to another thread.

#![allow(unsafe_code)]

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use async_task::{Runnable, Task};

use super::one_thread::{OneThread, Spawner};

pub(crate) struct BareQueue(RefCell<VecDeque<Runnable>>);

/// The queue, which lives as long as the process.
pub(crate) struct AsyncTask(&'static BareQueue);

impl OneThread for AsyncTask {
    type Spawner = &'static BareQueue;

    fn start() -> Self {
        Self(Box::leak(Box::new(BareQueue(RefCell::default()))))
    }

    fn run<F: Future + 'static>(&mut self, work: impl FnOnce(Self::Spawner) -> F) -> F::Output {
        let queue = self.0;
        let mut task = pin!(queue.spawn(work(queue)));
        let next = || queue.0.borrow_mut().pop_front();
        while let Some(runnable) = next() {
            runnable.run();
        }
        match task.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => output,
            Poll::Pending => panic!("the work waits for something outside of the queue"),
        }
    }
}

impl Spawner for &'static BareQueue {
    type Task<T: 'static> = Task<T>;

    #[inline]
    fn spawn<F: Future + 'static>(self, future: F) -> Task<F::Output> {
        let schedule = move |runnable| self.0.borrow_mut().push_back(runnable);
        // SAFETY: future, output and queue are `'static`, and by rule 1 none of them leaves this thread.
        let (runnable, task) = unsafe { async_task::spawn_unchecked(future, schedule) };
        runnable.schedule();
        task
    }
}
