//! Real tasks in all interleavings: awaiting operations that complete elsewhere, being stopped and woken
//! meanwhile, and ending while others hold references. Freed frames are overwritten, so that a later use
//! shows.

use std::future::poll_fn;
use std::task::{Poll, Waker};

use crate::model::{Count, Reached, explore, explore_long};
use crate::threads::Threads;
use convoke_core::env::{Changes, FrameAllocator};
use convoke_core::raw::sync::atomic::{AtomicBool, Ordering};
use convoke_core::raw::sync::{Arc, Mutex, thread};
use convoke_sender::prelude::*;
use convoke_sender::sync_wait_with;
use convoke_task::raw::wake_locally;
use convoke_task::{checkpoint, reschedule, scope, task};
use convoke_testing::workshop::frames::Frames;

/// Threads that are started inside the task, to be joined at the end.
#[derive(Clone, Default)]
struct Others(std::sync::Arc<std::sync::Mutex<Vec<thread::JoinHandle<()>>>>);

impl Others {
    fn spawn(&self, f: impl FnOnce() + Send + 'static) {
        let thread = thread::spawn(f);
        self.0.lock().unwrap().push(thread);
    }

    fn join(&self) {
        while let Some(thread) = { self.0.lock().unwrap().pop() } {
            thread.join().unwrap();
        }
    }
}

fn changes(frames: &Frames) -> Changes {
    Changes::new().allocator(FrameAllocator::new(frames.clone()))
}

#[test]
fn what_is_awaited_completes_elsewhere_while_the_poll_still_runs() {
    static AT_ONCE: Reached = Reached::new();
    static WOKEN: Reached = Reached::new();
    explore(3, || {
        let (frames, others, polls) = (Frames::at_most(9), Others::default(), Count::default());
        let (inside, counted) = (others.clone(), polls.clone());
        let work = from_callback(move |handle: Completion<u32>| inside.spawn(move || handle.value(7)));
        let mut awaited = work.into_awaited();
        let outcome = sync_wait_with(
            changes(&frames),
            task(poll_fn(move |cx| {
                counted.add();
                std::pin::Pin::new(&mut awaited).poll(cx)
            })),
        );
        assert_eq!(outcome, Outcome::Value(7));
        others.join();
        assert_eq!(frames.counts().0, 0);
        AT_ONCE.here_if(polls.get() == 1);
        WOKEN.here_if(polls.get() > 1);
    });
    AT_ONCE.assert("it had completed when the poll looked");
    WOKEN.assert("the task was woken");
}

#[test]
fn a_task_is_asked_to_stop_while_what_it_awaits_completes() {
    static VALUE: Reached = Reached::new();
    static STOPPED: Reached = Reached::new();
    explore_long(2, || {
        let (frames, others, source) = (Frames::at_most(9), Others::default(), StopSource::new());
        let asker = {
            let source = source.clone();
            thread::spawn(move || source.request_stop(StopReason::Requested))
        };
        let inside = others.clone();
        let work = from_callback(move |handle: Completion<u32>| {
            inside.spawn(move || if handle.stop_requested() { handle.stopped() } else { handle.value(7) });
        });
        let outcome = sync_wait_with(
            changes(&frames).stop_token(source.token()),
            task(async move { work.into_awaited().await }),
        );
        asker.join().unwrap();
        others.join();
        assert_eq!(frames.counts().0, 0);
        VALUE.here_if(outcome == Outcome::Value(7));
        STOPPED.here_if(outcome == Outcome::Stopped);
    });
    VALUE.assert("it completed");
    STOPPED.assert("it was stopped");
}

/// Runs a task that ends while another thread wakes it and drops the waker.
fn wake_while_it_ends(executor: Option<Threads>, freed_later: &'static Reached, freed: &'static Reached) {
    let (frames, others) = (Frames::at_most(9), Others::default());
    let inside = others.clone();
    let work = task(poll_fn(move |cx| {
        let waker = cx.waker().clone();
        inside.spawn(move || {
            waker.wake_by_ref();
            drop(waker);
        });
        Poll::Ready(7)
    }));
    let outcome = match &executor {
        None => sync_wait_with(changes(&frames), work),
        Some(executor) => sync_wait_with(changes(&frames), work.starts_on(executor)),
    };
    assert_eq!(outcome, Outcome::Value(7));
    let left = frames.counts().0;
    others.join();
    if let Some(executor) = executor {
        executor.join();
    }
    assert_eq!(frames.counts().0, 0);
    freed_later.here_if(left > 0);
    freed.here_if(left == 0);
}

#[test]
fn a_task_ends_on_its_owner_thread_while_another_thread_wakes_it() {
    static LATER: Reached = Reached::new();
    static AT_ONCE: Reached = Reached::new();
    explore(3, || wake_while_it_ends(None, &LATER, &AT_ONCE));
    LATER.assert("the waker was kept for longer than the task");
    AT_ONCE.assert("the waker was gone before");
}

#[test]
fn a_shared_task_ends_while_it_is_woken_elsewhere() {
    static LATER: Reached = Reached::new();
    static AT_ONCE: Reached = Reached::new();
    explore(3, || wake_while_it_ends(Some(Threads::default()), &LATER, &AT_ONCE));
    LATER.assert("the waker was kept for longer than the task");
    AT_ONCE.assert("the waker was gone before");
}

#[test]
fn a_task_that_is_woken_elsewhere_while_it_runs_runs_again() {
    static SEEN: Reached = Reached::new();
    static AGAIN: Reached = Reached::new();
    explore(3, || {
        let (frames, others, polls) = (Frames::at_most(9), Others::default(), Count::default());
        let (inside, counted, ready) = (others.clone(), polls.clone(), Arc::new(AtomicBool::new(false)));
        let outcome = sync_wait_with(
            changes(&frames),
            task(poll_fn(move |cx| {
                if counted.add() == 0 {
                    let (waker, ready) = (cx.waker().clone(), ready.clone());
                    inside.spawn(move || {
                        ready.store(true, Ordering::Relaxed);
                        waker.wake();
                    });
                }
                if ready.load(Ordering::Relaxed) { Poll::Ready(7) } else { Poll::Pending }
            })),
        );
        assert_eq!(outcome, Outcome::Value(7));
        others.join();
        assert_eq!(frames.counts().0, 0);
        SEEN.here_if(polls.get() == 1);
        AGAIN.here_if(polls.get() == 2);
    });
    SEEN.assert("it saw it while it ran");
    AGAIN.assert("it was run again");
}

#[test]
fn a_task_is_woken_in_place_while_its_waker_is_taken_elsewhere() {
    static IN_PLACE: Reached = Reached::new();
    static ELSEWHERE: Reached = Reached::new();
    explore(3, || {
        let (frames, others) = (Frames::at_most(9), Others::default());
        let line: Arc<Mutex<Option<Waker>>> = Arc::default();
        let (inside, kept) = (others.clone(), line.clone());
        let work = task(async move {
            scope(async |s| {
                let (waits, polls) = (kept.clone(), Count::default());
                s.spawn(poll_fn(move |cx| {
                    if polls.add() > 0 {
                        return Poll::Ready(());
                    }
                    *waits.lock().unwrap() = Some(cx.waker().clone());
                    let line = waits.clone();
                    inside.spawn(move || {
                        let taken = line.lock().unwrap().take();
                        ELSEWHERE.here_if(taken.is_some());
                        taken.into_iter().for_each(Waker::wake);
                    });
                    Poll::Pending
                }));
                checkpoint().await;
                // As a driver does it: under its lock, and the waker stays stored.
                if let Some(waker) = &*kept.lock().unwrap() {
                    assert!(wake_locally(waker));
                    IN_PLACE.here();
                }
            })
            .await;
        });
        assert_eq!(sync_wait_with(changes(&frames), work), Outcome::Value(()));
        others.join();
        drop(line.lock().unwrap().take());
        assert_eq!(frames.counts().0, 0);
    });
    IN_PLACE.assert("it was woken in place");
    ELSEWHERE.assert("its waker was taken elsewhere, before or after");
}

#[test]
fn a_task_moves_and_ends_there_while_a_remote_wake_arrives_where_it_was() {
    static WAKE_BEFORE: Reached = Reached::new();
    static WAKE_AFTER: Reached = Reached::new();
    explore_long(2, || {
        let (frames, others, executor) = (Frames::at_most(9), Others::default(), Threads::default());
        let (inside, there) = (others.clone(), executor.clone());
        let woken = Arc::new(Mutex::new(false));
        let seen = woken.clone();
        let outcome = sync_wait_with(
            changes(&frames),
            task(async move {
                poll_fn(|cx| {
                    let (waker, woken) = (cx.waker().clone(), woken.clone());
                    inside.spawn(move || {
                        waker.wake();
                        *woken.lock().unwrap() = true;
                    });
                    Poll::Ready(())
                })
                .await;
                reschedule(&there).await.unwrap();
                *woken.lock().unwrap()
            }),
        );
        others.join();
        executor.join();
        assert_eq!(frames.counts().0, 0);
        assert!(*seen.lock().unwrap());
        WAKE_BEFORE.here_if(outcome == Outcome::Value(true));
        WAKE_AFTER.here_if(outcome == Outcome::Value(false));
    });
    WAKE_BEFORE.assert("it was woken before it ran there");
    WAKE_AFTER.assert("it was woken while it ran there, or after");
}
