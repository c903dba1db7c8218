//! P3149R1 §4.3: a parallel algorithm as a sender, with a scope inside of it.
//!
//! `let_with` is unifex's `let_value_with`: the scope lives as long as the work. In
//! a task the algorithm is `scope(async |s| …)`, which joins by itself
//! (`in_a_task`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use convoke::executor::PoolExecutor;
use convoke::prelude::*;
use convoke::sender::prelude::*;

type Total = Arc<AtomicU32>;

fn some_work(total: &Total, index: u32) -> impl FnOnce() + Send + 'static {
    let total = total.clone();
    move || _ = total.fetch_add(index, Ordering::Relaxed)
}

fn foo(pool: PoolExecutor, total: Total) -> impl Sender<Value = (), Error = Never> {
    let_with(CountingScope::new, move |scope| {
        let joins = scope.clone();
        let launches = move |()| {
            let env = Env::from(pool);
            for index in 0..100 {
                let work = just_from(some_work(&total, index)).starts_on(&pool);
                scope.spawn(work, &env).unwrap();
            }
        };
        just(()).then(launches).let_value(move |()| joins.join())
    })
}

async fn in_a_task(pool: PoolExecutor, total: Total) {
    convoke::scope::scope_on(&pool, async |s| {
        for index in 0..100 {
            let work = some_work(&total, index);
            s.spawn(async { work() });
        }
    })
    .await;
}

pub(crate) fn run() -> String {
    let pool = ThreadPool::new(2).unwrap();
    let total = Total::default();
    sync_wait(foo(pool.executor(), total.clone())).unwrap();
    block_on(in_a_task(pool.executor(), total.clone())).unwrap();
    format!("twice 0 + … + 99 is {}", total.load(Ordering::Relaxed))
}
