//! P3552R2 §4.5: a task in a counting scope.
//!
//! In the paper this does not compile, because the scope knows no scheduler. Here
//! `spawn` takes the environment of the work, which has one; a task stays on it.

use std::thread;

use convoke::prelude::*;
use convoke::sender::prelude::*;
use convoke::sync::oneshot;

pub(crate) fn run() -> String {
    let pool = ThreadPool::builder().threads(1).name("worker").build().unwrap();
    let scope = CountingScope::new();
    let (sender, name) = oneshot::channel();
    let work = task(async {
        just(()).await;
        let _ = sender.send(thread::current().name().map(str::to_owned));
    });
    scope.spawn(work, &Env::from(pool.executor())).unwrap();
    sync_wait(scope.join()).unwrap();
    format!("ran on {:?}", name.blocking_recv().unwrap().unwrap())
}
