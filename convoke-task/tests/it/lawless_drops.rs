//! Values of the program that panic when they are dropped, where the last one is dropped by a task that has ended: locals in
//! its environment, and handles to its executor. The panic is contained and reported, and all who wait for the task are told.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use convoke::env::{self, Changes, Local};
use convoke::executor::{PoolExecutor, RunLoop, block_on_with, reschedule};
use convoke::prelude::*;
use convoke::raw::{AnyExecutor, Runnable};
use convoke::sender::prelude::*;
use convoke::sync::oneshot;
use convoke::{launch, run_on};

/// Counts its drops, and panics then.
struct Bomb(Arc<AtomicUsize>);

impl Drop for Bomb {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
        panic!("a value that panics when it is dropped");
    }
}

static BOMB: Local<Bomb> = Local::inherited("bomb");

/// An executor whose last handle panics when it is dropped.
#[derive(Clone)]
struct Lone(PoolExecutor, #[expect(dead_code, reason = "stored to be dropped")] Arc<Bomb>);

impl PartialEq for Lone {
    fn eq(&self, _: &Self) -> bool {
        false
    }
}

impl Executor for Lone {
    fn post(&self, runnable: Runnable) {
        self.0.post(runnable);
    }

    fn wraps(&self) -> Option<&dyn AnyExecutor> {
        Some(&self.0)
    }
}

/// Runs `program` with bombs that it lets tasks drop. Returns the number of drops, when all is over.
fn run(program: impl FnOnce(&ThreadPool, &dyn Fn() -> Bomb)) -> usize {
    let pool = ThreadPool::new(2).unwrap();
    let dropped = Arc::new(AtomicUsize::new(0));
    program(&pool, &|| Bomb(dropped.clone()));
    drop(pool);
    dropped.load(Ordering::Relaxed)
}

#[test]
fn a_local_of_a_launched_chain_keeps_nobody_waiting() {
    let dropped = run(|pool, bomb| {
        let launched = launch(&pool.executor()).local(&BOMB, bomb()).start(async { 7 });
        assert_eq!(launched.wait(), Outcome::Value(7));
        let run_loop = RunLoop::new();
        let launched = launch(&run_loop.executor()).local(&BOMB, bomb()).start(async {
            checkpoint().await;
            scope(async |s| s.spawn_future(async { 8 }).await).await
        });
        assert!(run_loop.run_ready() > 0);
        assert_eq!(launched.wait(), Outcome::Value(8));
    });
    assert_eq!(dropped, 2);
}

#[test]
fn a_local_of_a_chain_that_is_blocked_on_keeps_nobody_waiting() {
    let dropped = run(|_, bomb| {
        let changes = Changes::new().local(&BOMB, bomb());
        assert_eq!(block_on_with(changes, async { checkpoint().await }), Outcome::Value(()));
        let changes = Changes::new().local(&BOMB, bomb());
        assert_eq!(sync_wait_with(changes, convoke::task::task(async { 1 })), Outcome::Value(1));
        let (completed, scope) = (Env::new().with(Changes::new().local(&BOMB, bomb())), CountingScope::new());
        scope.spawn(just(()), &completed).unwrap();
        drop(completed);
        assert_eq!(sync_wait(scope.join()), Outcome::Value(()));
    });
    assert_eq!(dropped, 3);
}

#[test]
fn a_local_of_a_part_of_a_task_keeps_nobody_waiting() {
    let dropped = run(|pool, bomb| {
        let (executor, inside, named) = (pool.executor(), bomb(), bomb());
        let outcome = block_on(async move {
            let one = env::with().local(&BOMB, inside).run(run_on(&executor, async { 1 })).await;
            let named = env::with().local(&BOMB, named).name("named");
            one + named.run(async { 2 }).await
        });
        assert_eq!(outcome, Outcome::Value(3));
    });
    assert_eq!(dropped, 2);
}

/// The tasks wait until the program has dropped its own handle.
#[test]
fn the_last_handle_of_an_executor_keeps_nobody_waiting() {
    let dropped = run(|pool, bomb| {
        let lone = || Lone(pool.executor(), Arc::new(bomb()));
        let (go, waits) = std::sync::mpsc::channel();
        let x = lone();
        let launched = launch(&x).start(async move { waits.recv().unwrap() });
        drop(x);
        go.send(1).unwrap();
        assert_eq!(launched.wait(), Outcome::Value(1));
        let (child, awaited, run, moved) = (lone(), lone(), lone(), lone());
        let outcome = block_on(async move {
            scope(async |s| {
                let (go, waits) = oneshot::channel();
                s.child().on(&child).spawn(async { waits.await.unwrap() });
                drop(child);
                go.send(()).unwrap();
                let (go, waits) = oneshot::channel();
                let child = s.child().on(&awaited).spawn_future(async { waits.await.unwrap() });
                drop(awaited);
                go.send(()).unwrap();
                child.await;
            })
            .await;
            let (go, waits) = oneshot::channel();
            let running = run_on(&run, async { waits.await.unwrap() });
            drop(run);
            go.send(()).unwrap();
            running.await;
            scope(async |s| {
                s.spawn(async move {
                    reschedule(&moved).await.unwrap();
                    drop(moved);
                    checkpoint().await;
                });
            })
            .await;
        });
        assert_eq!(outcome, Outcome::Value(()));
    });
    assert_eq!(dropped, 5);
}
