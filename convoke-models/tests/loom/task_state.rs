//! Waking, stopping and moving a task in all interleavings, by threads that do what its state machine tells
//! them: no wake is lost, and no two threads are inside it.

use crate::model::{Reached, explore};
use crate::model_task::ModelTask;
use convoke_core::raw::sync::atomic::Ordering;
use convoke_core::raw::sync::thread;
use convoke_task::raw::task_state::{Access, AfterPause, Leave, Wake};

#[test]
fn a_shared_task_is_woken_while_it_pauses() {
    static SEEN: Reached = Reached::new();
    static WOKEN: Reached = Reached::new();
    static POSTED: Reached = Reached::new();
    explore(4, || {
        let task = ModelTask::queued(1);
        let waker = {
            let task = task.clone();
            thread::spawn(move || {
                task.ready.store(true, Ordering::Relaxed);
                let wake = task.wake(Access::Shared);
                task.drop_reference(Access::Shared);
                wake
            })
        };
        task.state().begin(Access::Shared);
        task.work();
        let seen = task.ready.load(Ordering::Relaxed);
        let pause = task.state().pause(Access::Shared);
        if pause == AfterPause::Post {
            task.queued.add();
        }
        let wake = waker.join().unwrap();
        if task.take_runnable() {
            task.state().begin(Access::Shared);
            assert!(task.ready.load(Ordering::Relaxed), "a woken task sees the reason");
            task.end(Access::Shared, Access::Shared);
        } else {
            assert!(seen, "a wake-up was lost");
            assert!(!task.is_free());
        }
        SEEN.here_if(seen);
        WOKEN.here_if(pause == AfterPause::Post);
        POSTED.here_if(wake == Wake::Post);
    });
    SEEN.assert("it saw it before it was woken");
    WOKEN.assert("it was woken while it ran");
    POSTED.assert("it was woken after it had paused");
}

#[test]
fn a_shared_task_that_wakes_itself_is_woken_while_it_pauses() {
    static WHILE_IT_RAN: Reached = Reached::new();
    static WHILE_IT_WAS_QUEUED: Reached = Reached::new();
    explore(4, || {
        let task = ModelTask::queued(1);
        let waker = {
            let task = task.clone();
            thread::spawn(move || {
                task.ready.store(true, Ordering::Relaxed);
                assert_eq!(task.wake(Access::Shared), Wake::Nothing, "it runs, or it is queued");
                task.drop_reference(Access::Shared);
            })
        };
        task.state().begin(Access::Shared);
        task.work();
        let seen = task.ready.load(Ordering::Relaxed);
        task.state().pause_and_queue(Access::Shared);
        task.queued.add();
        waker.join().unwrap();
        assert!(task.take_runnable(), "it was queued once");
        task.state().begin(Access::Shared);
        assert!(task.ready.load(Ordering::Relaxed), "a task that is woken sees why");
        task.end(Access::Shared, Access::Shared);
        WHILE_IT_RAN.here_if(seen);
        WHILE_IT_WAS_QUEUED.here_if(!seen);
    });
    WHILE_IT_RAN.assert("it was woken before it paused");
    WHILE_IT_WAS_QUEUED.assert("it was woken later");
}

#[test]
fn a_task_is_woken_from_another_thread_by_a_remote_wake() {
    static SEEN: Reached = Reached::new();
    static LATER: Reached = Reached::new();
    static ONE_REMOTE_WAKE: Reached = Reached::new();
    static EACH_ITS_OWN: Reached = Reached::new();
    explore(2, || {
        let task = ModelTask::queued(2);
        let wakers: Vec<_> = (0..2)
            .map(|_| {
                let task = task.clone();
                thread::spawn(move || {
                    task.ready.store(true, Ordering::Relaxed);
                    let wake = task.wake(Access::Remote);
                    task.drop_reference(Access::Remote);
                    wake
                })
            })
            .collect();
        task.state().begin(Access::Local);
        task.work();
        let seen = task.ready.load(Ordering::Relaxed);
        assert_eq!(task.state().pause(Access::Local), AfterPause::Idle, "nobody else changes it");
        task.wait_for_remote_wake();
        task.open(Access::Local);
        assert!(task.take_runnable(), "the remote wake woke it");
        task.state().begin(Access::Local);
        assert!(task.ready.load(Ordering::Relaxed), "a woken task sees the reason");
        let waited = task.end(Access::Local, Access::Local);
        let sent =
            wakers.into_iter().map(|waker| waker.join().unwrap()).filter(|wake| *wake == Wake::Send).count();
        assert!(task.is_free());
        SEEN.here_if(seen);
        LATER.here_if(waited);
        ONE_REMOTE_WAKE.here_if(sent == 1);
        EACH_ITS_OWN.here_if(sent == 2);
    });
    SEEN.assert("it saw it before the remote wake came");
    LATER.assert("it waited for the second remote wake");
    ONE_REMOTE_WAKE.assert("one remote wake for two, or the second came when it had left");
    EACH_ITS_OWN.assert("two remote wakes");
}

#[test]
fn a_task_leaves_its_owner_thread_while_another_thread_wakes_it() {
    static BEFORE: Reached = Reached::new();
    static LATER: Reached = Reached::new();
    static FREED_REMOTELY: Reached = Reached::new();
    explore(4, || {
        let task = ModelTask::queued(1);
        let waker = {
            let task = task.clone();
            thread::spawn(move || {
                let wake = task.wake(Access::Remote);
                (wake, task.drop_reference(Access::Remote))
            })
        };
        task.state().begin(Access::Local);
        let waited = task.end(Access::Local, Access::Local);
        let (wake, freed) = waker.join().unwrap();
        assert!(task.is_free());
        assert_eq!(wake == Wake::Send, waited, "a remote wake is waited for, and nothing else is");
        BEFORE.here_if(!waited);
        LATER.here_if(waited);
        FREED_REMOTELY.here_if(freed);
    });
    BEFORE.assert("it left first");
    LATER.assert("it waited for the remote wake");
    FREED_REMOTELY.assert("the last reference was dropped on the other thread");
}

#[test]
fn a_shared_task_is_asked_to_stop_while_it_ends() {
    static HEARD: Reached = Reached::new();
    static TOO_LATE: Reached = Reached::new();
    explore(4, || {
        let task = ModelTask::queued(1);
        let asker = {
            let task = task.clone();
            thread::spawn(move || {
                let wake = task.act(task.state().ask_stop(Access::Shared));
                task.drop_reference(Access::Shared);
                wake
            })
        };
        task.state().begin(Access::Shared);
        let heard = task.state().stop_asked();
        task.end(Access::Shared, Access::Shared);
        assert_eq!(asker.join().unwrap(), Wake::Nothing, "who runs and ends is not queued again");
        assert!(task.is_free());
        HEARD.here_if(heard);
        TOO_LATE.here_if(!heard);
    });
    HEARD.assert("it heard of it");
    TOO_LATE.assert("it had ended");
}

#[test]
fn a_stop_from_another_thread_reaches_a_task_that_waits_on_its_owner_thread() {
    static AT_ONCE: Reached = Reached::new();
    static BY_REMOTE_WAKE: Reached = Reached::new();
    explore(4, || {
        let task = ModelTask::queued(1);
        let asker = {
            let task = task.clone();
            thread::spawn(move || {
                let _ = task.act(task.state().ask_stop(Access::Remote));
                task.drop_reference(Access::Remote);
            })
        };
        task.state().begin(Access::Local);
        let at_once = task.state().stop_asked();
        if !at_once {
            assert_eq!(task.state().pause(Access::Local), AfterPause::Idle);
            task.wait_for_remote_wake();
            task.open(Access::Local);
            assert!(task.take_runnable());
            task.state().begin(Access::Local);
            assert!(task.state().stop_asked());
        }
        task.end(Access::Local, Access::Local);
        asker.join().unwrap();
        assert!(task.is_free());
        AT_ONCE.here_if(at_once);
        BY_REMOTE_WAKE.here_if(!at_once);
    });
    AT_ONCE.assert("it heard of it while it ran");
    BY_REMOTE_WAKE.assert("it was woken for it");
}

#[test]
fn a_task_moves_while_it_is_woken_and_its_remote_wake_is_handled_where_it_was() {
    static BY_REMOTE_WAKE: Reached = Reached::new();
    static DIRECTLY: Reached = Reached::new();
    static WAITED: Reached = Reached::new();
    static OPENED_LATE: Reached = Reached::new();
    explore(3, || {
        let task = ModelTask::queued(1);
        task.state().begin(Access::Local);
        let waker = {
            let task = task.clone();
            thread::spawn(move || {
                let wake = task.wake(task.remote_access());
                task.drop_reference(task.remote_access());
                wake
            })
        };
        task.state().move_out();
        task.moved.store(true, Ordering::Release);
        // It woke itself and continues elsewhere: this thread is the owner from here on.
        assert_eq!(task.wake(Access::Shared), Wake::Nothing);
        task.work();
        assert_eq!(task.state().pause(Access::Shared), AfterPause::Post);
        let runs_on = {
            let task = task.clone();
            thread::spawn(move || {
                task.state().begin(Access::Shared);
                task.work();
                let leave = task.state().finish_and_leave(Access::Shared);
                if leave == Leave::Counted {
                    task.leave_to_others(Access::Shared);
                }
                leave
            })
        };
        let mut opened = None;
        if task.take_remote_wake() {
            opened = Some(task.open(Access::Shared));
        }
        let wake = waker.join().unwrap();
        let leave = runs_on.join().unwrap();
        if task.take_remote_wake() {
            assert!(opened.is_none(), "it was woken once");
            opened = Some(task.open(Access::Shared));
        }
        if leave == Leave::Later {
            assert!(opened.unwrap().leaving, "the thread that handles the remote wake is told to go on");
            assert_eq!(task.state().leave(Access::Shared), Leave::Counted);
            task.leave_to_others(Access::Shared);
        }
        assert!(task.is_free());
        BY_REMOTE_WAKE.here_if(wake == Wake::Send);
        DIRECTLY.here_if(wake == Wake::Nothing);
        WAITED.here_if(leave == Leave::Later);
        OPENED_LATE.here_if(opened.is_some_and(|opened| !opened.leaving));
    });
    BY_REMOTE_WAKE.assert("it was woken by a remote wake to where it was");
    DIRECTLY.assert("it was woken where it is");
    WAITED.assert("it waited for the remote wake to leave");
    OPENED_LATE.assert("the remote wake was handled while it ran elsewhere");
}

#[test]
fn a_runnable_that_is_refused_elsewhere_is_sent_to_its_owner_thread_once() {
    static ONE_REMOTE_WAKE: Reached = Reached::new();
    static TWO_REMOTE_WAKES: Reached = Reached::new();
    explore(4, || {
        let task = ModelTask::queued(1);
        let refuser = {
            let task = task.clone();
            thread::spawn(move || task.act(task.state().refuse_remotely()))
        };
        let waker = {
            let task = task.clone();
            thread::spawn(move || {
                let wake = task.wake(Access::Remote);
                task.drop_reference(Access::Remote);
                wake
            })
        };
        // The owner thread: processes remote wakes until the runnable has come back.
        loop {
            task.wait_for_remote_wake();
            if task.open(Access::Local).refused {
                break;
            }
        }
        assert!(!task.take_runnable(), "it was queued all the time");
        task.state().begin(Access::Local);
        task.end(Access::Local, Access::Local);
        let sent = [refuser.join().unwrap(), waker.join().unwrap()];
        assert!(task.is_free());
        let sent = sent.iter().filter(|wake| **wake == Wake::Send).count();
        ONE_REMOTE_WAKE.here_if(sent == 1);
        TWO_REMOTE_WAKES.here_if(sent == 2);
    });
    ONE_REMOTE_WAKE.assert("both in one remote wake");
    TWO_REMOTE_WAKES.assert("a remote wake each");
}
