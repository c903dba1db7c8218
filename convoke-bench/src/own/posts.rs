//! A poster that posts a batch, waits until all of it has run, and posts the next.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::time::Duration;

use convoke::env::Env;
use convoke::sender::Receiver;
use convoke::{Executor, Never, Outcome};

use super::{Reusable, Stopwatch, leaked_env};

/// The poster runs on `home` and posts batches of `batch` operations to `serial`, which runs one at a time.
pub(crate) fn post_batches<H: Executor, X: Executor>(
    home: H,
    serial: X,
    batch: u64,
) -> impl FnMut(u64) -> Duration {
    let posts: &'static Posts<H, X> = Box::leak(Box::new(Posts {
        poster: Reusable::new(),
        operations: (0..batch).map(|_| Reusable::new()).collect(),
        batches_left: Cell::new(0),
        not_done: Cell::new(0),
        env: leaked_env(home.clone()),
        home,
        serial,
        watch: Stopwatch::leak(),
    }));
    move |ops| {
        posts.batches_left.set(ops / batch);
        posts.watch.begin(1);
        // SAFETY: it is leaked; the poster has ended, as `wait` returned the last time.
        unsafe { posts.poster.start(&posts.home, PostBatch(posts)) };
        posts.watch.wait()
    }
}

struct Posts<H: Executor, X: Executor> {
    poster: Reusable<H, PostBatch<H, X>>,
    operations: Vec<Reusable<X, CountOne<H, X>>>,
    batches_left: Cell<u64>,
    /// Touched by the work of the serial executor, and by the poster while there is none.
    not_done: Cell<u64>,
    home: H,
    serial: X,
    env: &'static Env,
    watch: &'static Stopwatch,
}

// SAFETY: the poster and the work of the batch take turns; within the batch the serial executor sees to it.
unsafe impl<H: Executor, X: Executor> Sync for Posts<H, X> {}

/// The poster.
struct PostBatch<H: Executor, X: Executor>(&'static Posts<H, X>);

/// One of the batch.
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
            // SAFETY: it is leaked; the last of the batch before has completed, or we would not be here.
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
            // SAFETY: it is leaked; the poster has completed, it posted us last.
            unsafe { posts.poster.start(&posts.home, PostBatch(posts)) };
        }
    }

    fn env(&self) -> &Env {
        self.0.env
    }
}
