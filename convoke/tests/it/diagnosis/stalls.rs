//! Tasks that block their executor.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use convoke::executor::{RunLoop, reschedule};
use convoke::inspect::{Diagnosis, Finding};
use convoke::prelude::*;
use convoke::sender::prelude::*;

use crate::diagnosis::programs::{Checker, line, only};

/// Blocks the thread until the test releases it.
fn block(until: &Receiver<()>) {
    let _ = until.recv();
}

#[test]
fn a_task_that_holds_its_executor_is_named_while_it_does_and_when_it_has_ended() {
    static WAITED: AtomicU32 = AtomicU32::new(0);
    let mut checker = Checker::new(Diagnosis::new().by_hand());
    let ((entered, is_in), (let_go, gate)) = (channel(), channel());
    let spawned = line() + 2;
    let run_loop = thread::Builder::new().name("the loop".into()).spawn(move || {
        let program = task(async move {
            WAITED.store(line() + 1, Ordering::Relaxed);
            checkpoint().await;
            entered.send(()).unwrap();
            block(&gate);
        })
        .named("stuck");
        let beside = async {
            scope(async |s| {
                s.named("program").spawn(async move { program.await });
                checkpoint().await;
                s.named("late").spawn(async {});
            })
            .await
        };
        sync_wait(task(beside).named("around"))
    });
    let run_loop = run_loop.unwrap();
    is_in.recv().unwrap();
    assert!(checker.now().is_empty(), "what is seen for the first time has lasted for no time");
    let Finding::Stall(stall) = only(checker.now()) else { panic!("a stall") };
    assert_eq!(stall.task.name.as_deref(), Some("stuck"));
    assert_eq!(stall.task.location.line(), spawned);
    assert_eq!(stall.task.waits_at.unwrap().line(), WAITED.load(Ordering::Relaxed));
    assert_eq!(&*stall.thread, "the loop");
    assert_eq!(stall.lasted.as_secs(), 1);
    assert!(stall.behind_it);
    let queued: Vec<_> = stall.queued.iter().filter_map(|task| task.name.as_deref()).collect();
    assert_eq!(queued, ["late"], "{stall}");
    let help = stall.to_string();
    assert!(help.contains("`blocking` for calls that block"), "{help}");
    assert!(help.contains("drop the guard before the await, or use `convoke::sync::Mutex`"), "{help}");
    assert!(checker.now().is_empty(), "it is said once");
    let_go.send(()).unwrap();
    run_loop.join().unwrap().unwrap();
    let Finding::StallOver(over) = only(checker.now()) else { panic!("it is over") };
    assert_eq!((over.task.name.as_deref(), over.lasted.as_secs()), (Some("stuck"), 3));
    assert_eq!((over.delayed, over.longest_delay.unwrap().as_secs()), (1, 2));
    assert!(checker.now().is_empty());
}

#[test]
fn a_task_that_lets_others_run_is_no_stall_however_often_it_is_seen() {
    let mut checker = Checker::new(Diagnosis::new().by_hand());
    let reports = sync_wait(task(async move {
        let mut reports = Vec::new();
        for _ in 0..20 {
            reports.extend(checker.after(3600));
            checkpoint().await;
        }
        reports
    }));
    assert!(reports.unwrap().is_empty());
}

#[test]
fn an_executor_with_nothing_to_do_is_no_stall() {
    let mut checker = Checker::new(Diagnosis::new().by_hand());
    let run_loop = RunLoop::new();
    let launched = launch(&run_loop.executor()).name("waits").start(never::<()>().into_future());
    run_loop.run_ready();
    for _ in 0..20 {
        assert!(checker.after(3600).is_empty());
    }
    launched.request_stop(StopReason::Requested);
    run_loop.run_ready();
    assert!(launched.is_finished());
}

#[test]
fn a_task_that_has_moved_is_one_stall_wherever_it_was_polled_before() {
    let mut checker = Checker::new(Diagnosis::new().by_hand());
    let ((entered, is_in), (let_go, gate)) = (channel(), channel());
    let pools = [(); 2].map(|()| ThreadPool::new(1).unwrap());
    let [first, second] = pools.each_ref().map(ThreadPool::executor);
    let launched = launch(&first).name("wanderer").start(async move {
        reschedule(&second).await.unwrap();
        entered.send(()).unwrap();
        block(&gate);
    });
    is_in.recv().unwrap();
    checker.now();
    let Finding::Stall(stall) = only(checker.now()) else { panic!("a stall") };
    assert_eq!(stall.task.name.as_deref(), Some("wanderer"));
    // The thread that it came from polls another task: that is not the end of the stall.
    launch(&first).start(async {}).wait().unwrap();
    assert!(checker.now().is_empty());
    let_go.send(()).unwrap();
    launched.wait().unwrap();
    assert!(matches!(only(checker.now()), Finding::StallOver(_)));
}

#[test]
fn a_task_that_blocks_for_another_loop_is_named_while_that_loop_polls_others() {
    let mut checker = Checker::new(Diagnosis::new().by_hand());
    let inner = async move {
        let mut reports = Vec::new();
        for _ in 0..3 {
            reports.extend(checker.now());
            checkpoint().await;
        }
        (checker, reports)
    };
    let outer = async move {
        let (checker, reports) = sync_wait(task(inner).named("inner")).unwrap();
        checkpoint().await;
        (checker, reports)
    };
    let (mut checker, reports) = sync_wait(task(outer).named("outer")).unwrap();
    let Finding::Stall(stall) = only(reports) else { panic!("a stall") };
    assert_eq!(stall.task.name.as_deref(), Some("outer"));
    assert!(matches!(only(checker.now()), Finding::StallOver(_)));
}

#[test]
fn a_thread_that_ends_is_forgotten() {
    let mut checker = Checker::new(Diagnosis::new().by_hand());
    for _ in 0..3 {
        thread::spawn(|| sync_wait(task(async {}))).join().unwrap().unwrap();
        assert!(checker.after(3600).is_empty());
    }
}

#[test]
fn several_can_look_at_once_and_do_not_disturb_each_other() {
    let mut checker = [(); 2].map(|()| Checker::new(Diagnosis::new().by_hand()));
    let reports = sync_wait(task(async move {
        for checker in &mut checker {
            checker.now();
            checker.now();
        }
        checkpoint().await;
        let over = checker[0].now();
        checker[0].now();
        [over, checker[1].now(), checker[0].now()].map(|reports| reports.len())
    }));
    // The second check sees that the first poll is over, and no second stall: it has seen that poll only
    // once.
    assert_eq!(reports, Outcome::Value([1, 1, 0]));
}
