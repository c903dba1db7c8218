//! A stop request goes down the tree at the time it is made: children hear of it though their parent is not
//! polled. The parent's loop does not run here from the request on; the children have a loop of their own.
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::Poll;

use convoke::executor::RunLoop;
use convoke::inspect::tree;
use convoke::prelude::*;
use convoke::scope::{Handle, scope_on};
use convoke::sync::Event;
use convoke::task::forever;

const REASON: StopReason = StopReason::Named("test");

type Log = Arc<Mutex<Vec<&'static str>>>;

/// A loop for parents, a loop for children, and what the children said.
struct Loops {
    parents: RunLoop,
    children: RunLoop,
    log: Log,
}

impl Loops {
    fn new() -> Self {
        Self { parents: RunLoop::new(), children: RunLoop::new(), log: Log::default() }
    }

    /// Runs both until nothing is ready.
    fn run_both(&self) {
        while self.parents.run_ready() + self.children.run_ready() > 0 {}
    }

    fn log(&self) -> Vec<&'static str> {
        self.log.lock().unwrap().clone()
    }
}

/// Waits until it is stopped, and says so, with the reason.
async fn until_stopped(log: Log, name: &'static str) {
    let reason = catch_stopped(forever()).await.unwrap_err().reason();
    assert_eq!(reason, Some(REASON), "{name}");
    log.lock().unwrap().push(name);
}

#[test]
fn a_child_hears_of_a_stop_though_its_parent_is_not_polled() {
    let loops = Loops::new();
    let (there, log) = (loops.children.executor(), loops.log.clone());
    let launched = launch(&loops.parents.executor()).start(async move {
        scope_on(&there, async |s| {
            s.spawn(until_stopped(log, "child"));
            forever().await
        })
        .await
    });
    loops.run_both();
    launched.request_stop(REASON);
    loops.children.run_ready();
    assert_eq!(loops.log(), ["child"]);
    loops.run_both();
    assert_eq!(launched.wait(), Outcome::Stopped);
}

#[test]
fn children_of_children_hear_too_through_scopes_of_all_kinds() {
    let loops = Loops::new();
    let (there, log) = (loops.children.executor(), loops.log.clone());
    let launched = launch(&loops.parents.executor()).start(async move {
        let (there_too, log_too) = (there.clone(), log.clone());
        let deep = async move {
            scope_on(&there_too, async |s| {
                s.spawn(until_stopped(log_too, "below a limit"));
                timeout(std::time::Duration::from_secs(60), forever()).await.ok();
            })
            .await;
        };
        scope(async |s| {
            // The parent of the deepest child is not polled either.
            s.spawn(deep);
            local_scope(async |l| {
                l.spawn(async {
                    scope_on(&there, async |s| {
                        s.spawn(until_stopped(log, "in a local scope"));
                        forever().await
                    })
                    .await
                });
                forever().await
            })
            .await
        })
        .await
    });
    loops.run_both();
    launched.request_stop(REASON);
    loops.children.run_ready();
    let mut log = loops.log();
    log.sort_unstable();
    assert_eq!(log, ["below a limit", "in a local scope"]);
    loops.run_both();
    assert_eq!(launched.wait(), Outcome::Stopped);
}

#[test]
fn the_tree_shows_a_stop_at_once_down_to_the_leaves() {
    let loops = Loops::new();
    let launched = launch(&loops.parents.executor()).name("top of the walk").start(async {
        scope(async |s| {
            s.spawn(async {
                scope(async |s| {
                    s.spawn(async { forever().await });
                    s.spawn(async { forever().await });
                    forever().await
                })
                .await
            });
            forever().await
        })
        .await
    });
    loops.run_both();
    let asked = || {
        let shown = tree().find("top of the walk").unwrap().to_string();
        shown.lines().filter(|line| line.contains("asked to stop")).count()
    };
    assert_eq!(asked(), 0);
    launched.request_stop(REASON);
    assert_eq!(asked(), 4, "the task, its child, and two below");
    loops.run_both();
    assert_eq!(launched.wait(), Outcome::Stopped);
}

#[test]
fn a_shield_keeps_the_children_inside_from_hearing() {
    let loops = Loops::new();
    let (there, log) = (loops.children.executor(), loops.log.clone());
    let launched = launch(&loops.parents.executor()).start(async move {
        let says = log.clone();
        // The scope is made outside of the shield, and polled inside.
        shield(scope_on(&there, async |s| {
            s.spawn(async move {
                checkpoint().await;
                says.lock().unwrap().push("to the end");
            });
        }))
        .await;
        log.lock().unwrap().push("after the shield");
    });
    loops.parents.run_ready();
    launched.request_stop(REASON);
    loops.run_both();
    assert_eq!(loops.log(), ["to the end", "after the shield"]);
    assert_eq!(launched.wait(), Outcome::Value(()));
}

#[test]
fn a_scope_that_comes_under_a_shield_later_is_shielded_from_then_on() {
    let loops = Loops::new();
    let (there, log) = (loops.children.executor(), loops.log.clone());
    let launched = launch(&loops.parents.executor()).start(async move {
        let says = log.clone();
        let mut work = pin!(scope_on(&there, async |s| {
            s.spawn(async move {
                for _ in 0..4 {
                    checkpoint().await;
                }
                says.lock().unwrap().push("to the end");
            });
        }));
        // Polled once outside, and then inside.
        poll_fn(|cx| {
            let _ = work.as_mut().poll(cx);
            Poll::Ready(())
        })
        .await;
        shield(work).await;
    });
    loops.parents.run_ready();
    launched.request_stop(REASON);
    loops.run_both();
    assert_eq!(loops.log(), ["to the end"]);
    assert_eq!(launched.wait(), Outcome::Value(()));
}

#[test]
fn a_scope_that_moved_to_another_task_hears_of_that_ones_stop_alone() {
    type Work = Pin<Box<dyn Future<Output = ()> + Send>>;
    let loops = Loops::new();
    let (there, log) = (loops.children.executor(), loops.log.clone());
    let carried: Arc<Mutex<Option<Work>>> = Arc::default();
    let handed = carried.clone();
    let first = launch(&loops.parents.executor()).start(async move {
        let mut work: Work = Box::pin(scope_on(&there, async |s| {
            s.spawn(until_stopped(log, "child"));
            forever().await
        }));
        poll_fn(|cx| {
            assert!(work.as_mut().poll(cx).is_pending());
            Poll::Ready(())
        })
        .await;
        *handed.lock().unwrap() = Some(work);
        forever().await
    });
    loops.run_both();
    let work = carried.lock().unwrap().take().unwrap();
    let second = launch(&loops.parents.executor()).start(work);
    loops.run_both();
    first.request_stop(StopReason::Requested);
    loops.run_both();
    assert_eq!(loops.log(), [""; 0], "the scope has left the task that was stopped");
    assert_eq!(first.wait(), Outcome::Stopped);
    second.request_stop(REASON);
    loops.children.run_ready();
    assert_eq!(loops.log(), ["child"]);
    loops.run_both();
    assert_eq!(second.wait(), Outcome::Stopped);
}

#[test]
fn the_children_of_a_child_hear_when_its_handle_is_dropped() {
    let loops = Loops::new();
    let (there, log) = (loops.children.executor(), loops.log.clone());
    let handle: Arc<Mutex<Option<Handle<()>>>> = Arc::default();
    let handed = handle.clone();
    let launched = launch(&loops.parents.executor()).start(async move {
        scope(async |s| {
            let child = s.spawn_future(async move {
                scope_on(&there, async |s| {
                    s.spawn(async move {
                        let stopped = catch_stopped(forever()).await.unwrap_err();
                        assert_eq!(stopped.reason(), Some(StopReason::Abandoned));
                        log.lock().unwrap().push("below");
                    });
                    forever().await
                })
                .await;
            });
            *handed.lock().unwrap() = Some(child);
        })
        .await;
    });
    loops.run_both();
    drop(handle.lock().unwrap().take());
    loops.children.run_ready();
    assert_eq!(loops.log(), ["below"]);
    loops.run_both();
    assert_eq!(launched.wait(), Outcome::Value(()));
}

#[test]
fn siblings_of_a_child_that_failed_hear_though_their_parent_is_not_polled() {
    let loops = Loops::new();
    let (there, log) = (loops.children.executor(), loops.log.clone());
    let fails = Arc::new(Event::new());
    let failing = fails.clone();
    let launched = launch(&loops.parents.executor()).start(async move {
        scope_on(&there, async |s| {
            let below = there.clone();
            s.spawn(async move {
                scope_on(&below, async |s| {
                    s.spawn(async move {
                        let stopped = catch_stopped(forever()).await.unwrap_err();
                        assert_eq!(stopped.reason(), Some(StopReason::Sibling));
                        log.lock().unwrap().push("below a sibling");
                    });
                })
                .await;
            });
            s.spawn(async move {
                failing.wait().await;
                Err("failed")
            });
            forever().await
        })
        .await
    });
    loops.run_both();
    fails.set();
    while loops.children.run_ready() > 0 {}
    assert_eq!(loops.log(), ["below a sibling"]);
    loops.run_both();
    assert_eq!(launched.wait(), Outcome::<Result<(), _>>::Value(Err("failed")));
}

#[test]
fn children_hear_while_their_parent_computes() {
    let loops = Arc::new(Mutex::new(Vec::new()));
    let children = RunLoop::new();
    let (there, log) = (children.executor(), loops.clone());
    let source = StopSource::new();
    let changes = convoke::env::Changes::new().stop_token(source.token());
    let program = async {
        scope_on(&there, async |s| {
            s.spawn(until_stopped(log, "child"));
            // A poll that has waited before.
            checkpoint().await;
            source.request_stop(REASON);
            while children.run_ready() > 0 {}
            assert_eq!(*loops.lock().unwrap(), ["child"], "the parent has not let go of its thread");
            Ok::<(), ()>(())
        })
        .await
    };
    let outcome = convoke::executor::BlockOn::block_on_with(&RunLoop::new(), changes, program);
    assert_eq!(outcome, Outcome::Value(Ok(())));
}

#[test]
fn children_hear_while_their_parent_computes_in_its_first_poll() {
    let log = Log::default();
    let children = RunLoop::new();
    let (there, says) = (children.executor(), log.clone());
    let source = StopSource::new();
    let changes = convoke::env::Changes::new().stop_token(source.token());
    let program = async {
        scope(async |s| {
            // Neither this task nor the scope has waited yet.
            let below = there.clone();
            s.child().on(&there).spawn(async move {
                scope_on(&below, async |s| {
                    s.spawn(until_stopped(says, "below a child"));
                    forever().await
                })
                .await
            });
            while children.run_ready() > 0 {}
            source.request_stop(REASON);
            while children.run_ready() > 0 {}
            assert_eq!(*log.lock().unwrap(), ["below a child"], "the parent has not let go of its thread");
        })
        .await
    };
    let outcome = convoke::executor::BlockOn::block_on_with(&RunLoop::new(), changes, program);
    assert_eq!(outcome, Outcome::Stopped, "a child was cut short");
}

#[test]
fn a_stop_walks_down_a_deep_tree_without_using_the_stack() {
    const DEEP: usize = if cfg!(miri) { 50 } else { 5_000 };
    fn nest(levels: usize) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            scope(async |s| {
                if levels > 0 {
                    s.spawn(nest(levels - 1));
                }
                forever().await
            })
            .await
        })
    }
    let parents = RunLoop::new();
    let launched = launch(&parents.executor()).start(nest(DEEP));
    while parents.run_ready() > 0 {}
    launched.request_stop(REASON);
    while parents.run_ready() > 0 {}
    assert_eq!(launched.wait(), Outcome::Stopped);
}
