//! A policy, and every other closure that a judged scope calls, is safe code of the program's and may be wrong in any way: it
//! panics, changes its mind, re-enters the scope it judges. No such mistake may touch freed memory, leave anybody waiting, or lose
//! a panic. These tests also run under Miri and AddressSanitizer.
use std::future::{poll_fn, ready};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use convoke::Panic;
use convoke::alloc::try_frame;
use convoke::alloc::{Bounded, FrameAllocator};
use convoke::env::Changes;
use convoke::executor::{ExecutorRef, InlineExecutor};
use convoke::prelude::*;
use convoke::raw::Runnable;
use convoke::retry::Backoff;
use convoke::scope::PolicyScope;
use convoke::scope::policy::{
    ChildFailure, FirstError, FirstSuccess, On, Policy, Quorum, Supervise, Tally, WaitForAll,
};
use convoke::scope::scope_with;
use convoke::sender::prelude::*;
use convoke::task::forever;

/// Runs a program to its end; the error is the panic that came out of it.
fn run<T: Send + 'static>(program: impl Future<Output = T> + Send + 'static) -> Result<Outcome<T>, Panic> {
    Panic::catch(|| sync_wait(task(program)))
}

/// Asserts that the program panicked with these words somewhere in the message.
#[track_caller]
fn assert_panicked<T: std::fmt::Debug>(ran: Result<Outcome<T>, Panic>, words: &str) {
    let panic = ran.expect_err("the panic was lost");
    assert!(panic.message().contains(words), "{panic}");
}

/// Counts itself when it is dropped.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Where a [`Lawless`] policy panics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Panics {
    AfterValue,
    AfterFailure,
    InOutput,
    InExecutor,
}

/// A policy that panics in one of its methods, and counts on in the others.
struct Lawless(Panics);

impl Lawless {
    fn reach(&self, here: Panics) {
        assert_ne!(self.0, here, "lawless in {here:?}");
    }
}

impl<V, E> Policy<V, E> for Lawless {
    type Output = (usize, usize);

    fn is_enough_after_value(&self, _: &Tally<V, E>) -> bool {
        self.reach(Panics::AfterValue);
        false
    }

    fn is_enough_after_failure(&self, _: &Tally<V, E>) -> bool {
        self.reach(Panics::AfterFailure);
        false
    }

    fn output(&self, tally: Tally<V, E>) -> (usize, usize) {
        self.reach(Panics::InOutput);
        (tally.values.len(), tally.failures.len())
    }

    fn executor(&self) -> Option<ExecutorRef> {
        self.reach(Panics::InExecutor);
        None
    }
}

#[test]
fn a_policy_that_panics_ends_its_scope_with_that_panic() {
    use Panics::{AfterFailure, AfterValue, InExecutor, InOutput};
    for panics in [AfterValue, AfterFailure, InOutput, InExecutor] {
        let dropped = Arc::new(AtomicUsize::new(0));
        let kept = [Counted(dropped.clone()), Counted(dropped.clone())];
        let ran = run(async move {
            scope_with(Lawless(panics), async |s| {
                let [one, other] = kept;
                s.spawn(async { Ok(one) });
                s.spawn(async { Err(other) });
                s.spawn(async {
                    checkpoint().await;
                    Ok(Counted(Arc::default()))
                });
            })
            .await
        });
        assert_panicked(ran, &format!("lawless in {panics:?}"));
        assert_eq!(dropped.load(Ordering::Relaxed), 2, "{panics:?}: a result was leaked");
    }
}

#[test]
fn a_policy_that_panics_stops_those_who_wait_for_ever() {
    for panics in [Panics::AfterValue, Panics::AfterFailure] {
        let ran = run(async move {
            scope_with::<_, (), (), _, _>(Lawless(panics), async |s| {
                s.child().daemon().spawn(async { forever().await });
                s.spawn(async { forever().await });
                s.spawn(async { Ok(()) });
                s.spawn(async { Err(()) });
                forever().await
            })
            .await
        });
        assert_panicked(ran, "lawless in");
    }
}

/// The outcome of a daemon is not awaited: a panic of the policy at its failure is reported by the scope nevertheless.
#[test]
fn a_policy_that_panics_at_the_failure_of_a_daemon_is_heard() {
    let ran = run(async {
        scope_with::<_, (), (), _, _>(Lawless(Panics::AfterFailure), async |s| {
            s.child().daemon().spawn(async { Err(()) });
            forever().await
        })
        .await
    });
    assert_panicked(ran, "lawless in AfterFailure");
}

#[test]
fn a_policy_that_panics_at_the_failure_of_the_body_is_heard() {
    let ran = run(async {
        scope_with::<_, (), _, _, _>(Lawless(Panics::AfterFailure), async |s| {
            s.spawn(async { forever().await });
            Err("not content")
        })
        .await
    });
    assert_panicked(ran, "lawless in AfterFailure");
}

/// A daemon says that it was enough by a child of its own. Where there is no memory for that, it says so when there is.
#[test]
fn a_verdict_is_not_lost_for_want_of_memory() {
    let little = FrameAllocator::new(Bounded::new(16 * 1024));
    let judged = sync_wait_with(
        Changes::new().allocator(little),
        task(async {
            scope_with::<_, (), _, _, _>(FirstError, async |s| {
                let fails = Arc::new(AtomicBool::new(false));
                let hears = fails.clone();
                s.child().daemon().spawn(async move {
                    while !hears.load(Ordering::Relaxed) {
                        checkpoint().await;
                    }
                    Err("enough")
                });
                let mut all = Vec::new();
                while let Ok(framed) = try_frame(ready([0_u8; 16])) {
                    all.push(framed);
                }
                fails.store(true, Ordering::Relaxed);
                for _ in 0..8 {
                    checkpoint().await;
                }
                drop(all);
                forever().await
            })
            .await
        }),
    );
    assert_eq!(judged, Outcome::Value(Err("enough")));
}

/// Starts another child in the scope that it judges, whenever it is asked, up to a number.
struct Reenters {
    scope: Arc<Mutex<Option<PolicyScope<Self, u32, u32>>>>,
    more: AtomicUsize,
}

impl Reenters {
    fn start_another(&self) {
        let more = self.more.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |more| more.checked_sub(1));
        let scope = self.scope.lock().unwrap().clone();
        let (Ok(more), Some(scope)) = (more, scope) else { return };
        scope.spawn(async move { Ok(more as u32) });
        scope.named("daemon").daemon().spawn(async { forever().await });
        scope.child().restart(Backoff::constant(Duration::ZERO).up_to(1)).spawn(|| async { Err(0) });
    }
}

impl Policy<u32, u32> for Reenters {
    type Output = (Vec<u32>, usize);

    fn is_enough_after_value(&self, _: &Tally<u32, u32>) -> bool {
        self.start_another();
        false
    }

    fn is_enough_after_failure(&self, _: &Tally<u32, u32>) -> bool {
        self.start_another();
        false
    }

    fn output(&self, tally: Tally<u32, u32>) -> (Vec<u32>, usize) {
        (tally.values, tally.failures.len())
    }
}

/// A policy is not called under a lock that the scope's own calls take: it would wait for itself.
#[test]
fn a_policy_that_starts_children_while_it_judges_does_not_wait_for_itself() {
    let ran = run(async {
        let handle = Arc::new(Mutex::new(None));
        let policy = Reenters { scope: handle.clone(), more: AtomicUsize::new(4) };
        let judged = scope_with(policy, async |s| {
            *handle.lock().unwrap() = Some(s.clone());
            s.spawn(async { Ok(7) });
        })
        .await;
        // It has the policy, which has it.
        *handle.lock().unwrap() = None;
        judged
    });
    let (mut values, failures) = ran.expect("nobody panics").unwrap();
    values.sort_unstable();
    assert_eq!((values, failures), (vec![1, 2, 3, 4, 7], 4));
}

/// A policy starts children, on an executor that runs them before `spawn` returns: it is called again while it judges another child.
#[test]
fn a_policy_whose_children_run_inside_of_its_judgement_judges_all_of_them() {
    let ran = run(async {
        let handle = Arc::new(Mutex::new(None));
        let policy = Reenters { scope: handle.clone(), more: AtomicUsize::new(3) };
        let judged = scope_with(policy, async |s| {
            *handle.lock().unwrap() = Some(s.clone());
            s.child().on(&InlineExecutor).spawn(async { Ok(7) });
        })
        .await;
        // It has the policy, which has it.
        *handle.lock().unwrap() = None;
        judged
    });
    let (values, failures) = ran.expect("nobody panics").unwrap();
    assert_eq!((values.len(), failures), (4, 3));
}

/// Says the opposite of what it said before.
#[derive(Default)]
struct Fickle(AtomicUsize);

impl Policy<u32, u32> for Fickle {
    type Output = usize;

    fn is_enough_after_value(&self, _: &Tally<u32, u32>) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed).is_multiple_of(2)
    }

    fn is_enough_after_failure(&self, tally: &Tally<u32, u32>) -> bool {
        self.is_enough_after_value(tally)
    }

    fn output(&self, tally: Tally<u32, u32>) -> usize {
        tally.values.len() + tally.failures.len()
    }
}

#[test]
fn a_policy_that_changes_its_mind_has_ended_its_scope_the_first_time() {
    let ran = run(async {
        scope_with(Fickle::default(), async |s| {
            s.spawn(async { Ok(1) });
            s.spawn(async { Err(2) });
            s.spawn(async { forever().await });
            forever().await
        })
        .await
    });
    assert_eq!(ran.expect("nobody panics"), Outcome::Value(2));
}

/// Drops all that it is given.
#[derive(Clone, PartialEq)]
struct Refuses;

impl Executor for Refuses {
    fn post(&self, runnable: Runnable) {
        drop(runnable);
    }
}

#[test]
fn a_policy_that_sends_children_where_nothing_runs_has_nothing_to_judge() {
    let ran = run(async {
        scope_with::<_, u32, u32, _, _>(On::new(&Refuses, Quorum(1)), async |s| {
            s.spawn(async { Ok(1) });
            s.child().daemon().spawn(async { forever().await });
            s.child().restart(Backoff::constant(Duration::ZERO)).spawn(|| async { Err(1) });
        })
        .await
        .is_err_and(|failures| failures.is_empty())
    });
    assert_eq!(ran.expect("nobody panics"), Outcome::Value(true));
}

/// A value or an error that panics when it is dropped.
#[derive(Debug)]
struct Brittle;

impl Drop for Brittle {
    fn drop(&mut self) {
        // A second panic while one unwinds would end the process by itself.
        assert!(std::thread::panicking(), "dropped");
    }
}

#[test]
fn results_that_panic_when_they_are_dropped_panic_their_scope() {
    // Values of which one too many has come, and is dropped by the policy.
    let ran = run(async {
        let some = scope_with::<_, _, u32, _, _>(Quorum(1), async |s| {
            s.spawn(async { Ok(Brittle) });
            s.spawn(async { Ok(Brittle) });
        });
        some.await.map(std::mem::forget).is_ok()
    });
    assert_panicked(ran, "dropped");
    // Errors that are forgotten because the child is started again.
    let ran = run(async {
        scope_with::<_, u32, _, _, _>(Supervise, async |s| {
            s.child().restart(Backoff::constant(Duration::ZERO)).spawn(|| async { Err(Brittle) });
            forever().await
        })
        .await
        .values
    });
    assert_panicked(ran, "dropped");
}

#[test]
fn a_child_whose_future_panics_when_it_is_dropped_has_failed_once() {
    let ran = run(async {
        let failures = scope_with::<_, u32, u32, _, _>(WaitForAll, async |s| {
            let (value, panic) = (Brittle, Brittle);
            s.spawn(async move {
                checkpoint().await;
                let _kept = value;
                Ok(1)
            });
            s.spawn(poll_fn(move |_| {
                let _kept = &panic;
                Poll::Ready(Ok(1))
            }));
        })
        .await
        .unwrap_err();
        failures.len()
    });
    assert_eq!(ran.expect("both are failures, for the policy"), Outcome::Value(2));
}

#[test]
fn a_report_function_that_panics_ends_the_scope_with_that_panic() {
    let ran = run(async {
        scope_with::<_, u32, u32, _, _>(Supervise, async |s| {
            let schedule = Backoff::constant(Duration::ZERO);
            s.child().restart(schedule).report(|_| panic!("no report")).spawn(|| async { Err(1) });
            s.child().daemon().spawn(async { forever().await });
            forever().await
        })
        .await
        .values
    });
    assert_panicked(ran, "no report");
    let ran = run(async {
        scope(async |s| {
            let supervised = s.supervise(|_: ChildFailure<u32>| panic!("nothing is told"));
            supervised.spawn(async { forever().await });
            supervised.named("one").spawn(async { Err(1) });
            forever().await
        })
        .await
    });
    assert_panicked::<()>(ran, "nothing is told");
}

#[test]
fn a_report_function_may_start_children_beside_the_one_that_failed() {
    let ran = run(async {
        let told = Arc::new(AtomicUsize::new(0));
        let count = told.clone();
        scope(async move |s| {
            let (beside, inner) = (s.clone(), count.clone());
            let supervised = s.supervise(move |_: ChildFailure<u32>| {
                if inner.fetch_add(1, Ordering::Relaxed) < 3 {
                    let again = beside.supervise({
                        let inner = inner.clone();
                        move |_: ChildFailure<u32>| _ = inner.fetch_add(1, Ordering::Relaxed)
                    });
                    again.spawn(async { Err(1) });
                }
            });
            supervised.spawn(async { Err(1) });
            supervised.spawn(async { panic!("as well") });
        })
        .await;
        told.load(Ordering::Relaxed)
    });
    assert_eq!(ran.expect("the panic was told"), Outcome::Value(4));
}

#[test]
fn what_makes_a_child_may_panic_each_time() {
    let ran = run(async {
        let schedule = Backoff::constant(Duration::ZERO).up_to(3);
        let report = scope_with::<_, u32, u32, _, _>(Supervise, async |s| {
            s.child()
                .restart(schedule)
                .spawn(|| -> std::future::Ready<Result<u32, u32>> { panic!("not made") });
        })
        .await;
        report.failures.iter().map(ChildFailure::attempt).collect::<Vec<_>>()
    });
    assert_eq!(ran.expect("it is a failure, for the policy"), Outcome::Value(vec![4]));
}

#[test]
fn scopes_that_are_dropped_while_they_are_judged_let_all_results_go() {
    let dropped = Arc::new(AtomicUsize::new(0));
    let values = [Counted(dropped.clone()), Counted(dropped.clone())];
    let ran = run(async move {
        let mut judged = Box::pin(scope_with::<_, _, u32, _, _>(WaitForAll, async |s| {
            values.into_iter().for_each(|value| s.spawn(async { Ok(value) }));
            s.child().daemon().spawn(async { forever().await });
            forever().await
        }));
        for _ in 0..8 {
            poll_fn(|cx| Poll::Ready(judged.as_mut().poll(cx).is_ready())).await;
            checkpoint().await;
        }
        drop(judged);
    });
    assert_eq!(ran.expect("nobody panics"), Outcome::Value(()));
    assert_eq!(dropped.load(Ordering::Relaxed), 2);
}

#[test]
fn no_policy_hears_of_children_that_come_too_late() {
    let ran = run(async {
        let mut kept = None;
        let first = scope_with::<_, u32, u32, _, _>(FirstSuccess, async |s| {
            s.spawn(async { Ok(1) });
            kept = Some(s);
        });
        let first = first.await.unwrap();
        let late = kept.unwrap();
        let refused = [
            Panic::catch(|| late.spawn(async { Ok(2) })),
            Panic::catch(|| late.child().daemon().spawn(async { Ok(()) })),
            Panic::catch(|| {
                late.child().restart(Backoff::constant(Duration::ZERO)).spawn(|| async { Ok(3) })
            }),
        ];
        (first, refused.into_iter().all(|refused| refused.is_err()))
    });
    assert_eq!(ran.expect("what was refused is caught"), Outcome::Value((1, true)));
}

#[test]
fn first_error_of_a_panicked_child_panics_once_for_all() {
    let ran = run(async {
        scope_with::<_, u32, u32, _, _>(FirstError, async |s| {
            (0..3).for_each(|n| s.spawn(async move { panic!("fell over {n}") }));
        })
        .await
        .is_ok()
    });
    assert_panicked(ran, "fell over 0");
}
