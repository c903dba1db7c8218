//! Stops of single parts: programs that continue or end cleanly, and programs that the exploration rejects.
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use convoke::local_scope;
use convoke::prelude::*;
use convoke::sender::prelude::*;
use convoke::sync::{Barrier, Semaphore, mpsc};
use convoke::task::{for_each_concurrent, generator};
use convoke::testing::{
    Ended, Exploration, MOST_INNER_STOPS, Part, Probe, explore_inner_stops, explore_inner_stops_with,
    replay_inner_stop,
};

fn complaint<P>(program: impl Fn(&Probe) -> P) -> String
where
    P: Future<Output: Send + 'static> + Send + 'static,
{
    let failed = Panic::catch(|| explore_inner_stops_with(program));
    failed.expect_err("it should fail").message().to_owned()
}

fn tasks(exploration: &Exploration) -> usize {
    exploration.inner_runs().iter().filter(|run| matches!(run.part(), Some(Part::Task(_)))).count()
}

fn regions(exploration: &Exploration) -> usize {
    exploration.inner_runs().iter().filter(|run| matches!(run.part(), Some(Part::Region(_)))).count()
}

/// Two levels of scopes, in which every task holds something and cleans up.
async fn nested(probe: Probe) -> u32 {
    scope(async |s| {
        let children: Vec<_> = (0..2)
            .map(|n| {
                let probe = probe.clone();
                s.named(format!("child {n}")).spawn_future(async move {
                    let _held = probe.must_drop("child");
                    let body = probe.clone();
                    scope(async move |s| {
                        let grandchild = body.must_drop("grandchild");
                        s.named(format!("grandchild {n}")).spawn(async move {
                            let _held = grandchild;
                            checkpoint().await;
                            sleep(Duration::from_secs(1)).await;
                        });
                        body.acquired("connection");
                        ensure(
                            async |_| {
                                checkpoint().await;
                                body.cleaned_up("connection");
                            },
                            async { sleep(Duration::from_secs(n)).await },
                        )
                        .await;
                    })
                    .await;
                    1
                })
            })
            .collect();
        let mut sum = 0;
        for (n, child) in children.into_iter().enumerate() {
            // The program can do without the second.
            sum += if n == 0 { child.await } else { catch_stopped(child).await.unwrap_or_default() };
        }
        sum
    })
    .await
}

#[test]
fn nested_scopes_end_whichever_part_of_them_is_stopped() {
    let exploration = explore_inner_stops_with(|probe| nested(probe.clone()));
    assert_eq!(exploration.undisturbed().ended(), Ended::Value);
    assert_eq!(exploration.runs().len(), 2 * exploration.points());
    assert_eq!(exploration.skipped(), 0);
    assert!(tasks(&exploration) > 40 && regions(&exploration) > 20, "{exploration}");
    let ended = |door| exploration.inner_runs().iter().filter(|run| run.ended() == door).count();
    assert!(ended(Ended::Value) > 10 && ended(Ended::Stopped) > 0, "{exploration}");
}

#[test]
fn an_exploration_of_parts_is_the_same_every_time_and_each_run_can_be_replayed() {
    let explore = || explore_inner_stops_with(|probe| nested(probe.clone()));
    let exploration = explore();
    assert_eq!(exploration, explore());
    for runs in exploration.inner_runs().chunks(2).step_by(7) {
        let (point, part) = (runs[0].stop_after().unwrap(), runs[0].part().unwrap());
        assert_eq!(replay_inner_stop(point, part, |probe: &Probe| nested(probe.clone())), runs);
    }
    let lines = exploration.to_string().lines().count();
    assert_eq!(lines, 2 + exploration.runs().len() + exploration.inner_runs().len());
}

#[test]
fn a_task_whose_clean_up_a_stop_skips_is_named_with_the_run_that_shows_it() {
    let program = |probe: &Probe| {
        let probe = probe.clone();
        async move {
            scope(async |s| {
                s.named("tidy").spawn(async { sleep(Duration::from_secs(1)).await });
                s.named("careless").spawn(async move {
                    checkpoint().await;
                    probe.acquired("lock file");
                    // A stop of the whole program does not reach the shielded part.
                    shield(async {
                        checkpoint().await;
                        checkpoint().await;
                    })
                    .await;
                    if catch_stopped(checkpoint()).await.is_ok() || !all_is_stopped() {
                        probe.cleaned_up("lock file");
                    }
                });
            })
            .await
        }
    };
    fn all_is_stopped() -> bool {
        convoke::env::current::stop_reason() == Some(StopReason::Abandoned)
    }
    let says = complaint(program);
    assert!(says.contains("with a stop of task 1 from"), "{says}");
    assert!(says.contains("`lock file` was acquired 1 time and cleaned up 0 times"), "{says}");
    assert!(says.contains("requested to stop: `careless`"), "{says}");
    let after = says.split("replay_inner_stop(").nth(1).unwrap();
    let point: usize = after.split(',').next().unwrap().parse().unwrap();
    assert!(after.starts_with(&format!("{point}, Part::Task(1), …)` runs that alone")), "{says}");
    assert!(Panic::catch(|| replay_inner_stop(point, Part::Task(1), program)).is_err());
}

#[test]
fn one_who_waits_for_what_a_stopped_task_would_have_done_hangs_and_is_found() {
    let says = complaint(|_| async {
        scope(async |s| {
            let barrier = Arc::new(Barrier::new(2));
            let other = barrier.clone();
            s.named("other").spawn(async move {
                checkpoint().await;
                other.wait().await;
            });
            barrier.wait().await;
        })
        .await
    });
    assert!(says.contains("with a stop of task 0") && says.contains("it hangs"), "{says}");
    assert!(says.contains("requested to stop: `other`"), "{says}");
}

#[test]
fn a_program_that_says_so_is_asked_as_a_whole_when_a_part_is_gone() {
    let exploration = explore_inner_stops_with(|probe| {
        probe.ends_only_when_stopped();
        let held = probe.must_drop("server");
        async move {
            scope(async |s| {
                s.spawn(async move {
                    let _held = held;
                    never::<()>().await
                });
                s.spawn(async { never::<()>().await });
            })
            .await
        }
    });
    assert!(tasks(&exploration) > 4, "{exploration}");
}

#[test]
fn limits_and_groups_of_branches_are_stopped_by_themselves() {
    let exploration = explore_inner_stops_with(|probe| {
        let probe = probe.clone();
        async move {
            let held = || probe.must_drop("branch");
            let slow = |seconds| {
                let held = held();
                async move {
                    let _held = held;
                    sleep(Duration::from_secs(seconds)).await;
                    seconds
                }
            };
            let caught = catch_stopped(async {
                let first = race((slow(1), slow(2))).await;
                let both = join((slow(1), slow(2))).await;
                let late = timeout(Duration::from_secs(1), slow(2)).await;
                (first, both, late.is_err())
            });
            if let Ok(ended) = caught.await {
                assert_eq!(ended, (1, (1, 2), true));
            }
        }
    });
    assert!(regions(&exploration) > 10, "{exploration}");
    assert_eq!(exploration.undisturbed().ended(), Ended::Value);
    // Code that catches the stop of a part continues, because the whole program was not requested to stop.
    assert!(exploration.inner_runs().iter().all(|run| run.ended() == Ended::Value), "{exploration}");
}

#[test]
fn children_that_borrow_and_lanes_and_generators_are_stopped_by_themselves() {
    let exploration = explore_inner_stops_with(|probe| {
        let probe = probe.clone();
        async move {
            let name = String::from("borrowed");
            let borrows = catch_stopped(local_scope(async |s| {
                for _ in 0..2 {
                    s.spawn(async {
                        let _held = probe.must_drop(name.as_str());
                        checkpoint().await;
                    });
                }
            }));
            let _ = borrows.await;
            let lanes = for_each_concurrent(1..=3, 2, |n: u64| {
                let held = probe.must_drop("lane");
                async move {
                    let _held = held;
                    sleep(Duration::from_secs(n)).await;
                }
            });
            let _ = catch_stopped(lanes).await;
            let pages = generator(async |y| {
                let _held = probe.must_drop("pages");
                for page in 0..3 {
                    checkpoint().await;
                    y.yield_value(page).await;
                }
            });
            let _ =
                catch_stopped(using(pages, async |mut pages| while pages.next().await.is_some() {})).await;
        }
    });
    assert!(regions(&exploration) > 10, "{exploration}");
}

#[test]
fn what_is_shielded_is_not_asked() {
    let exploration = explore_inner_stops(|| async {
        shield(async {
            let inner = timeout(Duration::from_secs(2), sleep(Duration::from_secs(1))).await;
            assert!(inner.is_ok(), "a stop is not for what is shielded");
        })
        .await
    });
    assert_eq!(exploration.inner_runs(), []);
}

#[test]
fn no_permit_and_no_message_is_lost_whichever_task_is_stopped() {
    let exploration = explore_inner_stops_with(|probe| {
        let probe = probe.clone();
        async move {
            let permits = Arc::new(Semaphore::new(2));
            let (sender, mut receiver) = mpsc::channel(1);
            scope(async |s| {
                for n in 0..4 {
                    let (permits, sender, probe) = (permits.clone(), sender.clone(), probe.clone());
                    s.spawn(async move {
                        let _held = probe.must_drop("worker");
                        let _permits = permits.acquire_many(1 + n % 2).await;
                        checkpoint().await;
                        let _ = sender.send(n).await;
                    });
                }
                drop(sender);
                while receiver.recv().await.is_some() {}
            })
            .await;
            assert_eq!(permits.available(), 2);
        }
    });
    assert!(tasks(&exploration) > 50, "{exploration}");
}

#[test]
fn a_program_with_too_many_parts_is_explored_evenly_and_says_how_many_were_left_out() {
    let exploration = explore_inner_stops(|| async {
        scope(async |s| {
            for _ in 0..40 {
                s.spawn(async { checkpoint().await });
            }
        })
        .await
    });
    assert_eq!(exploration.inner_runs().len(), 2 * MOST_INNER_STOPS);
    assert!(exploration.skipped() > 0, "{}", exploration.points());
    let last = exploration.inner_runs().last().unwrap().stop_after().unwrap();
    assert!(last > exploration.points() / 2, "{last}");
}

#[test]
fn a_part_that_is_not_there_cannot_be_replayed() {
    let replayed =
        Panic::catch(|| replay_inner_stop(0, Part::Task(5), |_: &Probe| async { checkpoint().await }));
    let absent = replayed.expect_err("there is none");
    let says = absent.message();
    assert!(says.contains("there is no task 5"), "{says}");
}
