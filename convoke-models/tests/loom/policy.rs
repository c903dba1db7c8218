//! Policies in all interleavings: simultaneous results of children, and the verdict of the policy. No result
//! is lost or counted twice, and each possible verdict is reached.
use std::future::Future;

use crate::model::{Reached, explore};
use crate::threads::Threads;
use convoke_sender::sync_wait;
use convoke_task::policy::{FirstError, FirstSuccess, On, Policy, Quorum, Supervise, WaitForAll};
use convoke_task::{PolicyScope, scope_with, task};

type Judged<P> = PolicyScope<On<P>, u32, u32>;

/// Opens a scope with a thread for each child, and joins the threads.
fn judge<P, F>(policy: P, body: impl FnOnce(Judged<P>) -> F + Send + 'static) -> P::Output
where
    P: Policy<u32, u32, Output: Send + 'static> + Send + Sync + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let executor = Threads::default();
    let policy = On::new(&executor, policy);
    let outcome = sync_wait(task(async move { scope_with(policy, body).await }));
    executor.join();
    outcome.unwrap()
}

#[test]
fn of_two_successes_at_once_one_is_the_first() {
    static ONE: Reached = Reached::new();
    static OTHER: Reached = Reached::new();
    explore(1, || {
        let first = judge(FirstSuccess, async |s: Judged<_>| {
            s.spawn(async { Ok(1) });
            s.spawn(async { Ok(2) });
        });
        match first.unwrap() {
            1 => ONE.here(),
            2 => OTHER.here(),
            value => panic!("nobody has said {value}"),
        }
    });
    ONE.assert("the one was faster");
    OTHER.assert("the other was faster");
}

#[test]
fn a_failure_beside_a_success_does_not_stand_in_its_way() {
    static DONE: Reached = Reached::new();
    explore(1, || {
        let first = judge(FirstSuccess, async |s: Judged<_>| {
            s.spawn(async { Err(1) });
            s.spawn(async { Ok(2) });
        });
        assert_eq!(first.unwrap(), 2);
        DONE.here();
    });
    DONE.assert("it was the success");
}

#[test]
fn an_error_beside_a_value_is_the_scopes_whichever_comes_first() {
    static ERROR: Reached = Reached::new();
    explore(1, || {
        let all = judge(FirstError, async |s: Judged<_>| {
            s.spawn(async { Err(1) });
            s.spawn(async { Ok(2) });
        });
        assert_eq!(all, Err(1));
        ERROR.here();
    });
    ERROR.assert("the error was the scope's");
}

#[test]
fn all_that_is_said_at_once_is_kept() {
    static IN_ORDER: Reached = Reached::new();
    static THE_OTHER_WAY: Reached = Reached::new();
    explore(1, || {
        let report = judge(Supervise, async |s: Judged<_>| {
            s.spawn(async { Ok(1) });
            s.spawn(async { Ok(2) });
        });
        assert!(report.failures.is_empty());
        match report.values[..] {
            [1, 2] => IN_ORDER.here(),
            [2, 1] => THE_OTHER_WAY.here(),
            ref values => panic!("{values:?}"),
        }
        let report = judge(WaitForAll, async |s: Judged<_>| s.spawn(async { Err(3) }));
        assert_eq!(report.unwrap_err().len(), 1);
    });
    IN_ORDER.assert("as they were started");
    THE_OTHER_WAY.assert("the second overtook the first");
}

#[test]
fn a_value_beyond_the_quorum_is_not_counted() {
    static DONE: Reached = Reached::new();
    explore(1, || {
        let values = judge(Quorum(1), async |s: Judged<_>| {
            s.spawn(async { Ok(1) });
            s.spawn(async { Ok(2) });
        });
        assert_eq!(values.unwrap().len(), 1);
        DONE.here();
    });
    DONE.assert("one was enough");
}

/// The last worker ends while the daemon fails: the failure is reported, or the daemon was stopped before it
/// could fail.
#[test]
fn a_daemon_that_fails_while_it_is_asked_to_leave_is_heard_or_gone() {
    static HEARD: Reached = Reached::new();
    static GONE: Reached = Reached::new();
    explore(1, || {
        let all = judge(WaitForAll, async |s: Judged<_>| {
            s.child().daemon().spawn(async {
                convoke_task::checkpoint().await;
                Err(1)
            });
            s.spawn(async { Ok(2) });
        });
        match all {
            Ok(values) => {
                assert_eq!(values, [2]);
                GONE.here();
            }
            Err(failures) => {
                assert_eq!(failures.len(), 1);
                HEARD.here();
            }
        }
    });
    HEARD.assert("it failed before");
    GONE.assert("it was asked to leave before");
}
