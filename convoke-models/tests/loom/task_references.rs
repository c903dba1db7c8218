//! The references of a task, in all interleavings: it is freed once, and not touched after that.

use crate::model::{Reached, explore};
use crate::model_task::{Left, ModelTask};
use convoke_core::raw::sync::atomic::{AtomicUsize, Ordering};
use convoke_core::raw::sync::{Arc, Mutex, thread};
use convoke_task::raw::task_state::{Access, Leave, State, Wake};

#[test]
fn references_are_made_and_dropped_on_three_threads_and_the_task_is_freed_once() {
    static LOCAL: Reached = Reached::new();
    static REMOTE: Reached = Reached::new();
    explore(2, || {
        let task = ModelTask::queued(1);
        task.state().begin(Access::Local);
        // A reference that is created here and dropped elsewhere leaves the two counts uneven.
        task.state().add_reference(Access::Local);
        let others: Vec<_> = (0..2)
            .map(|number| {
                let task = task.clone();
                thread::spawn(move || {
                    if number == 0 {
                        task.state().add_reference(Access::Remote);
                        assert!(!task.drop_reference(Access::Remote), "there is another");
                    }
                    task.drop_reference(Access::Remote)
                })
            })
            .collect();
        task.end(Access::Local, Access::Local);
        let freed = others.into_iter().fold(false, |freed, other| freed | other.join().unwrap());
        assert!(task.is_free());
        LOCAL.here_if(!freed);
        REMOTE.here_if(freed);
    });
    LOCAL.assert("the task itself was the last");
    REMOTE.assert("a reference elsewhere was the last");
}

#[test]
fn a_shared_task_is_freed_once_by_its_last_reference() {
    static ALONE: Reached = Reached::new();
    static OTHER: Reached = Reached::new();
    explore(4, || {
        let task = ModelTask::queued(1);
        let other = {
            let task = task.clone();
            thread::spawn(move || {
                task.state().add_reference(Access::Shared);
                let _ = task.wake(Access::Shared);
                task.drop_reference(Access::Shared);
                task.drop_reference(Access::Shared)
            })
        };
        task.state().begin(Access::Shared);
        task.end(Access::Shared, Access::Shared);
        let by_other = other.join().unwrap();
        assert!(task.is_free());
        ALONE.here_if(!by_other);
        OTHER.here_if(by_other);
    });
    ALONE.assert("the task itself was the last");
    OTHER.assert("the other was the last");
}

#[test]
fn a_child_that_leaves_alone_was_given_out_before_its_parent_heard_of_it() {
    static ALONE: Reached = Reached::new();
    static AFTER_ALL: Reached = Reached::new();
    static LATER: Reached = Reached::new();
    static LATER_STILL: Reached = Reached::new();
    for has_owner in [true, false] {
        let (from, other) =
            if has_owner { (Access::Local, Access::Remote) } else { (Access::Shared, Access::Shared) };
        explore(4, move || {
            let task = ModelTask::queued(0);
            // The parent's list: whether the child is in it, and whether it was given out.
            let list = Arc::new(Mutex::new((true, false)));
            let asker = {
                let (task, list) = (task.clone(), list.clone());
                thread::spawn(move || {
                    {
                        let mut list = list.lock().unwrap();
                        if !list.0 {
                            return;
                        }
                        list.1 = true;
                        task.state().add_reference(other);
                        assert!(!task.left.get(), "its place is looked at");
                    }
                    task.act_as_parent(task.state().ask_stop(other));
                    task.drop_reference(other);
                })
            };
            task.state().begin(from);
            task.work();
            let leave_parent = || {
                let mut list = list.lock().unwrap();
                list.0 = false;
                list.1
            };
            let mut leave = task.state().finish_and_leave(from);
            while leave == Leave::Later {
                task.wait_for_remote_wake();
                task.state().add_reference(from);
                assert!(task.state().open().leaving);
                task.drop_reference(from);
                leave = task.state().leave(from);
                LATER.here();
            }
            let given_out = leave_parent();
            if leave == Leave::Alone && !given_out {
                task.free();
                ALONE.here();
            } else {
                if leave == Leave::Alone {
                    AFTER_ALL.here();
                    task.left.set();
                    while task.state().leave_after_all(from) == Leave::Later {
                        task.wait_for_remote_wake();
                        task.state().add_reference(from);
                        assert!(task.state().open().leaving);
                        task.left.assert();
                        task.drop_reference(from);
                        LATER_STILL.here();
                    }
                    task.drop_reference(from);
                } else {
                    task.leave_to_others(from);
                }
            }
            asker.join().unwrap();
            assert!(task.is_free());
        });
    }
    ALONE.assert("nobody else knew it");
    AFTER_ALL.assert("it was given out after it had looked");
    LATER.assert("it waited for the remote wake");
    LATER_STILL.assert("it waited for the remote wake after its parent was told");
}

#[test]
fn a_waker_used_up_on_the_owner_thread_and_one_dropped_on_another_free_the_task_once() {
    static HERE: Reached = Reached::new();
    static ELSEWHERE: Reached = Reached::new();
    explore(3, || {
        let task = ModelTask::queued(1);
        task.state().begin(Access::Local);
        task.state().add_reference(Access::Local);
        let other = {
            let task = task.clone();
            thread::spawn(move || task.drop_reference(Access::Remote))
        };
        let wake = task.state().wake_and_drop_locally().expect("it has not left, and the counts are small");
        assert_eq!(wake, Wake::Nothing, "it runs, and will be queued when it waits");
        task.end(Access::Local, Access::Local);
        let elsewhere = other.join().unwrap();
        assert!(task.is_free());
        HERE.here_if(!elsewhere);
        ELSEWHERE.here_if(elsewhere);
    });
    HERE.assert("the task itself was the last");
    ELSEWHERE.assert("the other was the last");
}

#[test]
fn a_handle_on_the_owner_thread_and_a_waker_on_another_free_the_task_once() {
    static COUNTED: Reached = Reached::new();
    static FREED_ELSEWHERE: Reached = Reached::new();
    explore(3, || {
        let state = Arc::new(State::queued_with_handle());
        let freed = Arc::new(AtomicUsize::new(0));
        // True if the task's kind is a permanent one, which the thread that frees it reads.
        let left = Arc::new(Left::new());
        state.begin(Access::Local);
        // A waker is cloned on the owner thread, and sent elsewhere.
        state.add_reference(Access::Local);
        let elsewhere = {
            let (state, freed, left) = (state.clone(), freed.clone(), left.clone());
            thread::spawn(move || {
                if state.drop_reference(Access::Remote) {
                    left.assert();
                    freed.fetch_add(1, Ordering::Relaxed);
                    FREED_ELSEWHERE.here();
                }
            })
        };
        let free = match state.finish_and_leave(Access::Local) {
            Leave::Counted => {
                COUNTED.here();
                left.set();
                state.drop_reference(Access::Local)
            }
            Leave::Alone | Leave::Later => unreachable!("there is a waker, and no remote wake"),
        };
        assert!(!free, "the handle is still there");
        if state.drop_handle() {
            left.assert();
            freed.fetch_add(1, Ordering::Relaxed);
        }
        elsewhere.join().unwrap();
        assert_eq!(freed.load(Ordering::Relaxed), 1);
    });
    COUNTED.assert("counted");
    FREED_ELSEWHERE.assert("the waker goes last");
}
