//! Depth: tasks that await tasks, scopes in scopes, and waiters in line cost heap, and not the stack of a thread.
use std::pin::Pin;
use std::sync::Arc;

use convoke::executor::{InlineExecutor, RunLoop};
use convoke::prelude::*;
use convoke::sync::Mutex;
use convoke::task::task;

/// A depth that overflows the stack of a test's thread if each level uses a part of it.
const DEEP: usize = if cfg!(miri) { 50 } else { 30_000 };

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Awaits a task that awaits a task, and so on.
fn nested(levels: usize) -> Boxed<usize> {
    Box::pin(async move { if levels == 0 { 0 } else { task(nested(levels - 1)).await + 1 } })
}

#[test]
fn tasks_that_await_tasks_end_at_any_depth() {
    assert_eq!(block_on(nested(DEEP)), Outcome::Value(DEEP));
}

/// Runs a test on a thread with a stack of 2 MiB, the usual size.
fn on_a_small_stack(test: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(2 << 20).spawn(test).unwrap().join().unwrap();
}

#[test]
fn a_million_tasks_that_await_each_other_end() {
    // Without optimisation a million takes half a minute, and ends too.
    const MILLION: usize = match (cfg!(miri), cfg!(debug_assertions)) {
        (true, _) => 100,
        (_, true) => 100_000,
        _ => 1_000_000,
    };
    on_a_small_stack(|| assert_eq!(block_on(nested(MILLION)), Outcome::Value(MILLION)));
    on_a_small_stack(|| {
        let launched = launch(&InlineExecutor).start(nested(MILLION));
        assert_eq!(launched.wait(), Outcome::Value(MILLION));
    });
}

#[test]
fn a_deep_chain_of_tasks_is_stopped_from_outside_to_its_end() {
    fn waits(levels: usize) -> Boxed<()> {
        Box::pin(async move {
            if levels == 0 {
                convoke::task::forever().await
            }
            task(waits(levels - 1)).await;
        })
    }
    on_a_small_stack(|| {
        let run_loop = RunLoop::new();
        let launched = launch(&run_loop.executor()).start(waits(DEEP));
        while run_loop.run_ready() > 0 {}
        launched.request_stop(StopReason::Requested);
        while run_loop.run_ready() > 0 {}
        assert_eq!(launched.wait(), Outcome::Stopped);
    });
}

/// Opens a scope with a child that opens a scope, and so on. The deepest child ends as `end` says.
fn nested_scopes(levels: usize, end: fn() -> Result<(), usize>) -> Boxed<Result<(), usize>> {
    Box::pin(async move {
        if levels == 0 {
            return end();
        }
        let below = scope(async |s| {
            s.spawn(nested_scopes(levels - 1, end));
            Ok(())
        });
        below.await.map_err(|levels| levels + 1)
    })
}

#[test]
fn scopes_in_children_of_scopes_end_at_any_depth() {
    on_a_small_stack(|| assert_eq!(block_on(nested_scopes(DEEP, || Ok(()))), Outcome::Value(Ok(()))));
}

#[test]
fn a_failure_comes_up_from_any_depth_of_scopes() {
    on_a_small_stack(|| assert_eq!(block_on(nested_scopes(DEEP, || Err(0))), Outcome::Value(Err(DEEP))));
    on_a_small_stack(|| {
        // The label of each level would make the text of a panic grow with the square of the depth.
        struct NoText;
        let fails = || block_on(nested_scopes(DEEP / 6, || std::panic::panic_any(NoText)));
        let panic = std::panic::catch_unwind(fails).unwrap_err();
        assert!(panic.is::<NoText>());
    });
}

/// Bodies in bodies, all in one task: they are polled inside each other, as functions call each other. With the feature
/// `deep` they continue on a new stack when a part of the old one is used.
mod on_the_stack {
    use std::cell::Cell;
    use std::task::{Context, Poll};
    use std::time::Duration;

    use convoke::cleanup::Exit;

    use super::*;

    /// A depth at which scopes overflow the stack of a test's thread, with optimisation and without.
    const LEVELS: usize = match (cfg!(miri), cfg!(debug_assertions)) {
        (true, _) => 50,
        (_, true) => 2_000,
        _ => 10_000,
    };

    /// Defines a function whose future counts the levels below it: `$level` awaits the next one, with `$below` levels. The deepest
    /// level is `$deepest`.
    macro_rules! nested {
        ($name:ident, $deepest:expr, $below:ident => $level:expr) => {
            fn $name(levels: usize) -> Boxed<usize> {
                Box::pin(async move {
                    let Some($below) = levels.checked_sub(1) else { return $deepest.await };
                    $level
                })
            }
        };
    }

    nested!(scopes, ready(), below => scope(async |_| scopes(below).await + 1).await);
    nested!(local_scopes, ready(), below => local_scope(async |_| local_scopes(below).await + 1).await);
    nested!(timeouts, ready(), below => timeout(LONG, timeouts(below)).await.unwrap() + 1);
    nested!(joins, ready(), below => join((joins(below), async { 1 })).await.0 + 1);
    nested!(races, ready(), below => race((races(below), std::future::pending())).await + 1);
    nested!(shields, ready(), below => shield(shields(below)).await + 1);
    nested!(usings, ready(), below => using(Resource, async |_| usings(below).await + 1).await);
    nested!(scopes_that_wait, std::future::pending(), below => {
        scope(async |_| scopes_that_wait(below).await + 1).await
    });
    nested!(usings_that_wait, std::future::pending(), below => {
        using(Resource, async |_| usings_that_wait(below).await + 1).await
    });
    nested!(scopes_that_panic, async { std::panic::panic_any("deep") }, below => {
        scope(async |_| scopes_that_panic(below).await + 1).await
    });

    /// The deepest level of what ends: it waits once.
    async fn ready() -> usize {
        checkpoint().await;
        0
    }

    const LONG: Duration = Duration::from_secs(3600);

    thread_local! {
        static CLOSED: Cell<usize> = const { Cell::new(0) };
    }

    /// A resource that counts how many of it were closed on this thread.
    struct Resource;

    impl AsyncClose for Resource {
        type Error = Never;

        async fn close(self, _: Exit) -> Result<(), Never> {
            CLOSED.set(CLOSED.get() + 1);
            Ok(())
        }
    }

    #[test]
    fn whatever_awaits_itself_in_its_body_ends_at_any_depth() {
        let all = [scopes, local_scopes, timeouts, joins, races, shields, usings];
        for nested in all {
            on_a_small_stack(move || assert_eq!(block_on(nested(LEVELS)), Outcome::Value(LEVELS)));
        }
    }

    #[test]
    fn a_stop_unwinds_any_depth_in_order() {
        on_a_small_stack(|| {
            let outcome = block_on(async {
                let waiting = using(Resource, async |_| scopes_that_wait(LEVELS).await);
                timeout(Duration::from_millis(1), waiting).await.is_err()
            });
            assert_eq!((outcome, CLOSED.get()), (Outcome::Value(true), 1));
        });
    }

    #[test]
    fn a_panic_comes_up_from_any_depth() {
        on_a_small_stack(|| {
            let panic = std::panic::catch_unwind(|| block_on(scopes_that_panic(LEVELS))).unwrap_err();
            assert_eq!(panic.downcast_ref(), Some(&"deep"));
        });
    }

    #[test]
    fn work_whose_loop_is_gone_is_dropped_at_any_depth() {
        for nested in [scopes_that_wait, usings_that_wait] {
            on_a_small_stack(move || {
                let run_loop = RunLoop::new();
                let launched = launch(&run_loop.executor()).start(nested(LEVELS));
                run_loop.run_ready();
                drop(run_loop);
                launched.request_stop(StopReason::Requested);
                assert_eq!(launched.wait(), Outcome::Stopped);
            });
        }
    }

    /// As a foreign `select!` drops it.
    #[test]
    fn usings_that_are_dropped_in_flight_are_dropped_at_any_depth() {
        on_a_small_stack(|| {
            let outcome = block_on(async {
                let mut waits = usings_that_wait(LEVELS);
                std::future::poll_fn(|cx| {
                    assert!(waits.as_mut().poll(cx).is_pending());
                    Poll::Ready(())
                })
                .await;
                drop(waits);
            });
            assert_eq!((outcome, CLOSED.get()), (Outcome::Value(()), 0));
        });
    }

    /// A future that sets something up for the time of each poll, as spans and task-locals of other crates do.
    struct InSpan<F>(Pin<Box<F>>);

    thread_local! {
        static IN_SPAN: Cell<bool> = const { Cell::new(false) };
    }

    impl<F: Future> Future for InSpan<F> {
        type Output = F::Output;

        fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
            IN_SPAN.set(true);
            let polled = self.0.as_mut().poll(cx);
            IN_SPAN.set(false);
            polled
        }
    }

    /// The reason why deep bodies are not polled later, from the loop of their task: what is around them would have returned.
    #[test]
    fn the_deepest_body_is_polled_inside_of_the_futures_around_it() {
        fn nested(levels: usize) -> Boxed<bool> {
            Box::pin(async move {
                if levels == 0 {
                    checkpoint().await;
                    return IN_SPAN.get();
                }
                scope(async |_| nested(levels - 1).await).await
            })
        }
        on_a_small_stack(|| {
            assert_eq!(block_on(InSpan(Box::pin(nested(LEVELS)))), Outcome::Value(true));
        });
    }
}

#[test]
fn scopes_in_bodies_end_at_any_depth_if_a_level_is_a_task() {
    fn through_tasks(levels: usize) -> Boxed<usize> {
        Box::pin(async move {
            if levels == 0 {
                return 0;
            }
            scope(async |_| task(through_tasks(levels - 1)).await + 1).await
        })
    }
    on_a_small_stack(|| assert_eq!(block_on(through_tasks(DEEP)), Outcome::Value(DEEP)));
}

#[test]
fn tasks_that_await_tasks_end_at_any_depth_on_a_pool() {
    let pool = ThreadPool::new(2).unwrap();
    assert_eq!(launch(&pool.executor()).start(nested(DEEP / 10)).wait(), Outcome::Value(DEEP / 10));
}

#[test]
fn tasks_that_await_tasks_end_at_any_depth_inline() {
    assert_eq!(launch(&InlineExecutor).start(nested(DEEP)).wait(), Outcome::Value(DEEP));
}

#[test]
fn a_stop_reaches_the_deepest_of_nested_tasks() {
    fn waits(levels: usize) -> Boxed<()> {
        Box::pin(async move {
            if levels == 0 {
                convoke::task::forever().await
            }
            task(waits(levels - 1)).await;
        })
    }
    let outcome = block_on(async {
        race((waits(DEEP / 10), async {
            for _ in 0..DEEP / 10 {
                checkpoint().await;
            }
        }))
        .await;
    });
    assert_eq!(outcome, Outcome::Value(()));
}

#[test]
fn a_loop_that_is_dropped_under_waiters_in_line_stops_them_all() {
    let run_loop = RunLoop::new();
    let lock = Arc::new(Mutex::new(0));
    let held = lock.try_lock().unwrap();
    let launched: Vec<_> = (0..DEEP / 10)
        .map(|_| {
            let lock = lock.clone();
            launch(&run_loop.executor()).start(async move { *lock.lock().await += 1 })
        })
        .collect();
    run_loop.run_ready();
    drop(run_loop);
    drop(held);
    assert!(launched.into_iter().all(|launched| launched.wait() == Outcome::Stopped));
}
