//! Stops at every point: programs that keep their promises wherever they are stopped, and programs that do
//! not.
use std::future::Future;
use std::rc::Rc;
use std::sync::Mutex;
use std::task::Poll;
use std::time::Duration;

use convoke::prelude::*;
use convoke::sender::deadline_after;
use convoke::sender::prelude::*;
use convoke::testing::{Asked, Ended, Probe, StopRun, explore_stops, explore_stops_with, replay_stop};

/// Returns the message of an exploration that fails.
fn complaint<P>(program: impl Fn(&Probe) -> P) -> String
where
    P: Future<Output: Send + 'static> + Send + 'static,
{
    let failed = Panic::catch(|| explore_stops_with(program));
    failed.expect_err("it should fail").message().to_owned()
}

/// Leaks a value, where a leak checker still sees it.
fn leak(forgotten: impl Send + 'static) {
    static LEAKED: Mutex<Vec<Box<dyn Send>>> = Mutex::new(Vec::new());
    LEAKED.lock().unwrap().push(Box::new(forgotten));
}

/// Three levels of scopes, in which every task holds something.
async fn nested(probe: Probe) -> u32 {
    scope(async |s| {
        let handles: Vec<_> = (0..3)
            .map(|n| {
                let probe = probe.clone();
                s.spawn_future(async move {
                    let _held = probe.must_drop("child");
                    checkpoint().await;
                    scope(async |s| {
                        let grandchild = probe.must_drop("grandchild");
                        s.spawn(async move {
                            let _grandchild = grandchild;
                            checkpoint().await;
                        });
                        sleep(Duration::from_secs(n)).await;
                    })
                    .await;
                    1
                })
            })
            .collect();
        let _held = probe.must_drop("body");
        let mut sum = 0;
        for handle in handles {
            sum += handle.await;
        }
        sum
    })
    .await
}

#[test]
fn nested_scopes_end_wherever_they_are_stopped() {
    let exploration = explore_stops_with(|probe| nested(probe.clone()));
    assert_eq!(exploration.undisturbed().ended(), Ended::Value);
    assert!(exploration.points() > 10, "{exploration}");
    // Under Miri a few points are disturbed.
    if !cfg!(miri) {
        assert_eq!(exploration.runs().len(), 2 * exploration.points());
        assert!(exploration.ended(Ended::Stopped) > 10, "{exploration}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "a few points are disturbed under Miri, and this compares all")]
fn an_exploration_is_the_same_every_time() {
    let explore = || explore_stops_with(|probe| nested(probe.clone()));
    assert_eq!(explore(), explore());
    let exploration = explore();
    let replayed = replay_stop(3, |probe: &Probe| nested(probe.clone()));
    assert_eq!(exploration.runs()[6..8], replayed);
    assert_eq!(replayed.each_ref().map(StopRun::stop_after), [Some(3); 2]);
    assert_eq!(replayed.each_ref().map(StopRun::asked), [Some(Asked::Outside), Some(Asked::Inside)]);
    let lines = exploration.to_string().lines().count();
    assert_eq!(lines, 2 + 2 * exploration.points());
}

#[test]
fn a_stop_before_the_first_step_is_one_of_the_points() {
    let exploration = explore_stops(|| async { checkpoint().await });
    assert_eq!(exploration.points(), 2);
    assert_eq!(exploration.runs()[0].stop_after(), Some(0));
}

#[test]
fn hours_pass_at_once() {
    let exploration = explore_stops(|| async {
        for _ in 0..10 {
            sleep(Duration::from_secs(3600)).await;
        }
    });
    assert_eq!(exploration.undisturbed().ended(), Ended::Value);
    assert!(exploration.points() >= 20, "{exploration}");
    // A stop that arrives after a timer has fired takes effect before the program continues.
    assert!(exploration.runs().iter().all(|run| run.ended() == Ended::Stopped), "{exploration}");
}

#[test]
fn limits_of_time_hold_beside_a_stop() {
    let exploration = explore_stops_with(|probe| {
        let probe = probe.clone();
        async move {
            let held = probe.must_drop("held by the work");
            let slow = sleep(Duration::from_secs(60)).then(move |()| drop(held));
            let timed_out = deadline_after(Duration::from_secs(1), slow).stopped_as_option().await;
            assert!(timed_out.is_none());
            checkpoint().await;
        }
    });
    assert_eq!(exploration.undisturbed().ended(), Ended::Value);
}

#[test]
fn what_is_dropped_half_way_is_waited_for() {
    explore_stops_with(|probe| {
        let probe = probe.clone();
        async move {
            let inner = probe.clone();
            let mut opened = Box::pin(scope(async move |s| {
                for _ in 0..3 {
                    let held = inner.must_drop("child of a scope that is dropped");
                    s.spawn(async move {
                        let _held = held;
                        never::<()>().await
                    });
                }
                never::<()>().await
            }));
            let mut polls = 0;
            std::future::poll_fn(|cx| {
                assert!(opened.as_mut().poll(cx).is_pending());
                polls += 1;
                if polls == 3 {
                    return Poll::Ready(());
                }
                cx.waker().wake_by_ref();
                Poll::Pending
            })
            .await;
            drop(opened);
            checkpoint().await;
        }
    });
}

#[test]
fn a_handle_that_is_dropped_stops_its_child_at_every_point() {
    explore_stops_with(|probe| {
        let probe = probe.clone();
        async move {
            scope(async |s| {
                let held = probe.must_drop("child whose handle is dropped");
                let handle = s.spawn_future(async move {
                    let _held = held;
                    never::<()>().await
                });
                checkpoint().await;
                drop(handle);
                checkpoint().await;
            })
            .await
        }
    });
}

#[test]
fn the_first_error_stops_the_others_at_every_point() {
    let exploration = explore_stops_with(|probe| {
        let probe = probe.clone();
        async move {
            scope(async |s| {
                let held = probe.must_drop("sibling");
                s.spawn(async move {
                    let _held = held;
                    never::<()>().await
                });
                s.spawn(async {
                    sleep(Duration::from_millis(5)).await;
                    Err("no")
                });
                never::<()>().await;
                Ok::<(), &str>(())
            })
            .await
        }
    });
    assert_eq!(exploration.undisturbed().ended(), Ended::Value);
}

#[test]
fn clean_up_that_waits_runs_once_wherever_the_work_is_stopped() {
    let exploration = explore_stops_with(|probe| {
        let probe = probe.clone();
        async move {
            probe.acquired("transaction");
            let cleans = probe.clone();
            sleep(Duration::from_secs(1))
                .finally(sleep(Duration::from_secs(1)).then(move |()| cleans.cleaned_up("transaction")))
                .await;
            checkpoint().await;
        }
    });
    assert!(exploration.ended(Ended::Stopped) > 2, "{exploration}");
}

#[test]
fn tasks_that_are_not_send_are_explored_too() {
    explore_stops_with(|probe| {
        let probe = probe.clone();
        async move {
            scope(async |s| {
                let held = probe.must_drop("local");
                s.child().local().spawn(async move {
                    let _held = Rc::new(held);
                    checkpoint().await;
                    never::<()>().await
                });
                checkpoint().await;
                Err::<(), ()>(())
            })
            .await
        }
    });
}

#[test]
fn a_program_may_wait_for_its_stop() {
    let exploration = explore_stops_with(|probe| {
        probe.ends_only_when_stopped();
        let held = probe.must_drop("server");
        async move {
            let _held = held;
            never::<()>().await
        }
    });
    assert_eq!(exploration.undisturbed().ended(), Ended::Stopped);
}

#[test]
fn a_program_that_hangs_is_found_and_its_tasks_are_shown() {
    let says = complaint(|_| async {
        scope(async |s| {
            s.named("stuck").spawn(async { never::<()>().unstoppable().await });
        })
        .await
    });
    assert!(says.contains("without a stop: it hangs"), "{says}");
    assert!(says.contains("`the program`") && says.contains("└─ `stuck`"), "{says}");
}

#[test]
fn a_program_that_hangs_only_when_it_is_stopped_is_found() {
    let says = complaint(|_| async {
        let stopped = catch_stopped(async {
            checkpoint().await;
            checkpoint().await;
        });
        if stopped.await.is_err() {
            never::<()>().unstoppable().await;
        }
    });
    assert!(says.contains("with a stop from outside after step 0"), "{says}");
    assert!(says.contains("it hangs"), "{says}");
}

#[test]
fn clean_up_that_a_stop_skips_is_found_with_the_step_that_replays_it() {
    let program = |probe: &Probe| {
        let probe = probe.clone();
        async move {
            checkpoint().await;
            probe.acquired("lock file");
            checkpoint().await;
            probe.cleaned_up("lock file");
        }
    };
    let says = complaint(program);
    assert!(says.contains("with a stop from outside after step 2 (`replay_stop(2, …)`"), "{says}");
    assert!(says.contains("`lock file` was acquired 1 time and cleaned up 0 times"), "{says}");
    let replayed = Panic::catch(|| replay_stop(2, program));
    assert!(replayed.is_err());
    assert_eq!(replay_stop(0, program).map(|run| run.ended()), [Ended::Stopped; 2]);
}

#[test]
fn clean_up_that_runs_twice_is_found() {
    let says = complaint(|probe| {
        let probe = probe.clone();
        async move {
            probe.acquired("lock file");
            probe.cleaned_up("lock file");
            checkpoint().await;
            probe.cleaned_up("lock file");
        }
    });
    assert!(says.contains("acquired 1 time and cleaned up 2 times"), "{says}");
}

#[test]
fn what_is_never_dropped_is_found() {
    let says = complaint(|probe| {
        let held = probe.must_drop("forgotten");
        async move {
            checkpoint().await;
            leak(held);
        }
    });
    assert!(says.contains("`forgotten` was made 1 time and dropped 0 times"), "{says}");
}

#[test]
fn a_task_that_is_left_behind_is_found() {
    let says = complaint(|_| async {
        let mut opened = Box::pin(scope(async |s| {
            s.spawn(async { never::<()>().await });
            std::future::pending::<()>().await
        }));
        std::future::poll_fn(|cx| {
            assert!(opened.as_mut().poll(cx).is_pending());
            Poll::Ready(())
        })
        .await;
        leak(opened);
    });
    assert!(says.contains("were not freed"), "{says}");
}

#[test]
fn a_panic_is_found_with_its_message() {
    let says = complaint(|_| async {
        let stopped = catch_stopped(checkpoint()).await;
        assert!(stopped.is_ok(), "cannot be stopped");
        checkpoint().await;
    });
    assert!(
        says.contains("with a stop from outside after step 0") && says.contains("cannot be stopped"),
        "{says}"
    );
}
