//! A stop request that walks down to open scopes, in all interleavings with a task that opens one, ends it, and
//! leaves.

use convoke_core::StopReason;
use convoke_core::StopSource;
use convoke_core::env::{Changes, FrameAllocator};
use convoke_core::raw::sync::{Arc, thread};
use convoke_sender::prelude::*;
use convoke_sender::sync_wait_with;
use convoke_task::raw::task_state::{Access, State};
use convoke_task::{catch_stopped, current, scope, task};
use convoke_testing::workshop::frames::Frames;

use crate::model::{Count, Reached, explore};
use crate::threads::Threads;

/// A thread inside a task begins to listen while another one asks for a stop, which accesses the task in this
/// way. One of them sees the other.
fn listens_while_asked(inside: Access, asks: Access, both: &'static Reached, one: &'static Reached) {
    explore(4, move || {
        let state = Arc::new(State::queued(1));
        let asking = {
            let state = state.clone();
            thread::spawn(move || {
                let _ = state.ask_stop(asks);
                state.is_listened_to()
            })
        };
        state.begin(inside);
        state.listen(inside);
        let asked = state.stop_asked();
        let listened = asking.join().unwrap();
        assert!(asked || listened, "neither saw the other");
        both.here_if(asked && listened);
        one.here_if(asked != listened);
    });
}

#[test]
fn a_shared_task_begins_to_listen_while_it_is_asked_to_stop() {
    static BOTH: Reached = Reached::new();
    static ONE: Reached = Reached::new();
    listens_while_asked(Access::Shared, Access::Shared, &BOTH, &ONE);
    BOTH.assert("each saw the other");
    ONE.assert("one saw the other");
}

#[test]
fn an_owned_task_begins_to_listen_while_a_remote_thread_asks_it_to_stop() {
    static BOTH: Reached = Reached::new();
    static ONE: Reached = Reached::new();
    listens_while_asked(Access::Local, Access::Remote, &BOTH, &ONE);
    BOTH.assert("each saw the other");
    ONE.assert("one saw the other");
}

#[test]
fn a_scope_opens_and_ends_while_its_task_is_asked_to_stop_from_another_thread() {
    static HEARD: Reached = Reached::new();
    static NOT_HEARD: Reached = Reached::new();
    static ENDED: Reached = Reached::new();
    explore(1, || {
        let (executor, heard, source) = (Threads::default(), Count::default(), StopSource::new());
        let (there, counts, token) = (executor.clone(), heard.clone(), source.token());
        let frames = Frames::at_most(20);
        let asks = thread::spawn(move || source.request_stop(StopReason::Requested));
        let changes = Changes::new().allocator(FrameAllocator::new(frames.clone())).stop_token(token);
        let outcome = sync_wait_with(
            changes,
            task(async move {
                scope(async |s| {
                    s.child().on(&there).spawn(async move {
                        if current::stop_requested() {
                            counts.add();
                        }
                    });
                })
                .await
            }),
        );
        asks.join().unwrap();
        executor.join();
        assert_eq!(frames.counts().0, 0, "frames are left");
        HEARD.here_if(heard.get() == 1);
        NOT_HEARD.here_if(heard.get() == 0);
        ENDED.here_if(outcome == Outcome::Value(()));
    });
    HEARD.assert("the child heard of the stop");
    NOT_HEARD.assert("the child ended before");
    ENDED.assert("the scope ended with its value");
}

#[test]
fn a_child_opens_a_scope_elsewhere_while_it_is_asked_to_stop_through_its_handle() {
    static STOPPED: Reached = Reached::new();
    explore(1, || {
        let executor = Threads::default();
        let (there, below) = (executor.clone(), executor.clone());
        let frames = Frames::at_most(20);
        let changes = Changes::new().allocator(FrameAllocator::new(frames.clone()));
        let outcome = sync_wait_with(
            changes,
            task(async move {
                scope(async |s| {
                    let handle = s.child().on(&there).spawn_future(async move {
                        scope(async |s| {
                            s.child().on(&below).spawn(async {
                                current::stop_requested();
                            })
                        })
                        .await;
                        convoke_task::checkpoint().await;
                        7
                    });
                    handle.request_stop(StopReason::Requested);
                    catch_stopped(handle).await.ok()
                })
                .await
            }),
        );
        executor.join();
        assert_eq!(frames.counts().0, 0, "frames are left");
        STOPPED.here_if(outcome == Outcome::Value(None));
    });
    STOPPED.assert("the child was stopped");
}
