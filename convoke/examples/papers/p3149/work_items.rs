//! P3149R1 §3.1: as many pieces of work as there are items, on a pool, and a
//! context that outlives them.
//!
//! In the paper the order of three declarations keeps `ctx` alive, and nothing
//! checks it. Here spawned senders own what they use (`counted`); or the compiler
//! checks the borrow (`borrowed`), and there is nothing to join.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use convoke::prelude::*;
use convoke::sender::prelude::*;

#[derive(Default)]
struct WorkContext(AtomicU32);

fn do_work(ctx: &WorkContext, item: u32) {
    ctx.0.fetch_add(item, Ordering::Relaxed);
}

fn counted(pool: &ThreadPool, items: &[u32]) -> u32 {
    let ctx = Arc::new(WorkContext::default());
    let scope = CountingScope::new();
    for &item in items {
        let ctx = ctx.clone();
        let work = just(item).continues_on(&pool.executor());
        let work = work.then(move |item| do_work(&ctx, item));
        scope.spawn(work, &Env::new()).unwrap();
    }
    sync_wait(scope.join()).unwrap();
    ctx.0.load(Ordering::Relaxed)
}

fn borrowed(pool: &ThreadPool, items: &[u32]) -> u32 {
    let ctx = WorkContext::default();
    convoke::blocking_scope(&pool.executor(), |s| {
        for &item in items {
            let ctx = &ctx;
            s.spawn(async move { do_work(ctx, item) });
        }
    });
    ctx.0.into_inner()
}

pub(crate) fn run() -> String {
    let my_pool = ThreadPool::new(8).unwrap();
    let items: Vec<u32> = (1..=100).collect();
    format!("{} and {}", counted(&my_pool, &items), borrowed(&my_pool, &items))
}
