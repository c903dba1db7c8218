//! P3149R1 §5.5: one piece of work whose result is wanted, beside ten whose are
//! not.
//!
//! `spawn_future` starts the work at once; dropping what it returns asks that work
//! to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use convoke::prelude::*;
use convoke::sender::prelude::*;

fn key_work() -> u32 {
    40
}

pub(crate) fn run() -> String {
    let pool = ThreadPool::new(2).unwrap();
    let (executor, env) = (pool.executor(), Env::from(pool.executor()));
    let (scope, others) = (CountingScope::new(), Arc::new(AtomicU32::new(0)));
    let key = just_from(key_work).starts_on(&executor);
    let key = scope.spawn_future(key, &env).unwrap().then(|key| key + 2);
    for _ in 0..10 {
        let others = others.clone();
        let other = just_from(move || _ = others.fetch_add(1, Ordering::Relaxed));
        scope.spawn(other.starts_on(&executor), &env).unwrap();
    }
    let ((), key) = sync_wait(when_all((scope.join(), key))).unwrap();
    format!("key work: {key}, others: {}", others.load(Ordering::Relaxed))
}
