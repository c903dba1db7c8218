//! A poster that posts a batch, waits until all of it has run, and posts the next.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::time::Duration;

use convoke::env::Env;
use convoke::sender::Receiver;
use convoke::{Executor, Never, Outcome};

use super::{Reusable, Stopwatch, leaked_env};

/// Runs the poster on `poster_executor`, which posts batches of `batch` operations to `serial`, which runs one at a
/// time.
pub(crate) fn post_batches<H: Executor, X: Executor>(
    poster_executor: H,
    serial: X,
    batch: u64,
) -> impl FnMut(u64) -> Duration {
    let posts: &'static Posts<H, X> = Box::leak(Box::new(Posts {
        poster: Reusable::new(),
        operations: (0..batch).map(|_| Reusable::new()).collect(),
        batches_left: Cell::new(0),
        not_done: Cell::new(0),
        env: leaked_env(poster_executor.clone()),
        poster_executor,
        serial,
        watch: Stopwatch::leak(),
    }));
    move |ops| {
        posts.batches_left.set(ops / batch);
        posts.watch.begin(1);
        // SAFETY: `posts` is leaked, and the poster has completed, because `wait` returned after the last
        // run.
        unsafe { posts.poster.start(&posts.poster_executor, PostBatch(posts)) };
        posts.watch.wait()
    }
}

struct Posts<H: Executor, X: Executor> {
    poster: Reusable<H, PostBatch<H, X>>,
    operations: Vec<Reusable<X, CountOne<H, X>>>,
    batches_left: Cell<u64>,
    /// Accessed by the work of the serial executor, and by the poster while there is none.
    not_done: Cell<u64>,
    poster_executor: H,
    serial: X,
    env: &'static Env,
    watch: &'static Stopwatch,
}

// SAFETY: the poster and the work of a batch alternate, and the serial executor runs one piece of a batch at
// a time.
unsafe impl<H: Executor, X: Executor> Sync for Posts<H, X> {}

/// The poster.
struct PostBatch<H: Executor, X: Executor>(&'static Posts<H, X>);

/// One operation of the batch.
struct CountOne<H: Executor, X: Executor>(&'static Posts<H, X>);

impl<H: Executor, X: Executor> Receiver<(), Never> for PostBatch<H, X> {
    fn complete(self, _: Outcome<(), Never>) {
        let posts = self.0;
        let Some(left) = posts.batches_left.get().checked_sub(1) else {
            return posts.watch.one();
        };
        posts.batches_left.set(left);
        posts.not_done.set(posts.operations.len() as u64);
        for operation in &posts.operations {
            // SAFETY: `posts` is leaked, and the previous batch has completed, because its last operation
            // started the poster.
            unsafe { operation.start(&posts.serial, CountOne(posts)) };
        }
    }

    fn env(&self) -> &Env {
        self.0.env
    }
}

impl<H: Executor, X: Executor> Receiver<(), Never> for CountOne<H, X> {
    #[inline]
    fn complete(self, _: Outcome<(), Never>) {
        let posts = self.0;
        posts.not_done.set(posts.not_done.get() - 1);
        if posts.not_done.get() == 0 {
            // SAFETY: `posts` is leaked, and the poster has completed: it posted this batch as its last
            // action.
            unsafe { posts.poster.start(&posts.poster_executor, PostBatch(posts)) };
        }
    }

    fn env(&self) -> &Env {
        self.0.env
    }
}
