//! The turns of a strand, in all interleavings: never two at once, nothing forgotten, each side of each race reached.

#![allow(unsafe_code)]
use std::sync::Arc as StdArc;
use std::sync::Mutex as StdMutex;
use std::sync::atomic::{AtomicUsize as StdUsize, Ordering::Relaxed as R};

use crate::model::{Reached, explore};
use convoke_core::raw::sync::atomic::AtomicBool;
use convoke_core::raw::sync::{Arc, UnsafeCell, thread};
use convoke_core::raw::{Call, Runnable};
use convoke_exec::raw::{AfterPost, Next, Turns};
use convoke_testing::runnable;

/// What has been run, in its order, and whether anything runs just now.
#[derive(Clone)]
struct Log {
    order: StdArc<StdMutex<Vec<u32>>>,
    /// The model's own, so that others can intrude at every touch.
    running: StdArc<AtomicBool>,
    /// What each piece writes without any order of its own: the model complains if the strand does not give it one.
    plain: StdArc<Plain>,
    stopped: StdArc<StdUsize>,
}

struct Plain(UnsafeCell<u32>);

// SAFETY: that no two threads are at it at once is what the strand promises, and what the model checks.
unsafe impl Sync for Plain {}

impl Log {
    fn new() -> Self {
        let running = StdArc::new(AtomicBool::new(false));
        let plain = StdArc::new(Plain(UnsafeCell::new(0)));
        Self { order: StdArc::default(), running, plain, stopped: StdArc::default() }
    }

    /// Work that gives other threads the chance to intrude while it runs.
    fn work(&self, number: u32) -> Runnable {
        let log = self.clone();
        runnable(move |call| {
            if call == Call::Stop {
                log.stopped.fetch_add(1, R);
                return;
            }
            assert!(!log.running.swap(true, R), "two pieces of one strand at the same time");
            log.order.lock().unwrap().push(number);
            log.touch(number);
            log.running.store(false, R);
        })
    }

    fn touch(&self, number: u32) {
        // SAFETY: as said at `Plain`.
        self.plain.0.with_mut(|plain| unsafe { *plain = number });
    }

    fn assert_in_order(&self, before: u32, after: u32) {
        let order = self.order.lock().unwrap();
        let place = |number| order.iter().position(|other| *other == number).unwrap();
        assert!(place(before) < place(after), "{order:?}");
    }
}

/// The turn of a strand on an executor that gives it `each` runs at a time.
fn turn(turns: &Turns, each: usize) {
    while let Next::Work(mut batch) = turns.next() {
        for _ in 0..each {
            if let Some(runnable) = batch.pop() {
                runnable.run();
            }
        }
        if !batch.is_empty() {
            turns.put_back(batch);
        }
    }
}

#[test]
fn posts_of_two_threads_run_one_at_a_time_and_all_of_them() {
    static SCHEDULED: [Reached; 2] = [const { Reached::new() }; 2];
    static QUEUED: [Reached; 2] = [const { Reached::new() }; 2];
    for (each, scheduled, queued) in [(1, &SCHEDULED[0], &QUEUED[0]), (2, &SCHEDULED[1], &QUEUED[1])] {
        explore(4, move || {
            let turns = Arc::new(Turns::new());
            let log = Log::new();
            let post = {
                let turns = turns.clone();
                move |work| match turns.post(work) {
                    AfterPost::Schedule => {
                        scheduled.here();
                        turn(&turns, each);
                    }
                    AfterPost::Queued => queued.here(),
                }
            };
            let there = {
                let (post, works) = (post.clone(), [log.work(1), log.work(2)]);
                thread::spawn(move || works.into_iter().for_each(post))
            };
            post(log.work(10));
            there.join().unwrap();
            assert_eq!(log.order.lock().unwrap().len(), 3);
            assert!(turns.is_empty());
            log.assert_in_order(1, 2);
        });
        scheduled.assert("a post began a turn");
        queued.assert("a post found one");
    }
}

#[test]
fn a_post_against_the_end_of_a_turn_schedules_again_or_is_seen() {
    static SEEN: Reached = Reached::new();
    static AGAIN: Reached = Reached::new();
    explore(4, || {
        let turns = Arc::new(Turns::new());
        let log = Log::new();
        assert_eq!(turns.post(log.work(1)), AfterPost::Schedule);
        let there = {
            let turns = turns.clone();
            thread::spawn(move || turn(&turns, 1))
        };
        match turns.post(log.work(2)) {
            AfterPost::Queued => SEEN.here(),
            AfterPost::Schedule => {
                AGAIN.here();
                // The turn is ours from here on, and with it what is the strand's own, such as its header.
                log.touch(2);
                turn(&turns, 1);
            }
        }
        there.join().unwrap();
        assert_eq!(*log.order.lock().unwrap(), [1, 2]);
    });
    SEEN.assert("the end of the turn saw it");
    AGAIN.assert("it came after the turn");
}

#[test]
fn a_post_against_a_dropped_turn_is_stopped_with_it_or_free_to_schedule() {
    static WITH_IT: Reached = Reached::new();
    static AFTER_IT: Reached = Reached::new();
    explore(4, || {
        let turns = Arc::new(Turns::new());
        let log = Log::new();
        assert_eq!(turns.post(log.work(1)), AfterPost::Schedule);
        let there = {
            let turns = turns.clone();
            // The inner executor has dropped the strand.
            thread::spawn(move || {
                while let Next::Work(batch) = turns.next() {
                    drop(batch);
                }
            })
        };
        match turns.post(log.work(2)) {
            AfterPost::Queued => WITH_IT.here(),
            AfterPost::Schedule => {
                AFTER_IT.here();
                // The turn is ours from here on, and with it what is the strand's own, such as its header.
                log.touch(2);
                turn(&turns, 1);
            }
        }
        there.join().unwrap();
        assert_eq!(log.stopped.load(R) + log.order.lock().unwrap().len(), 2);
    });
    WITH_IT.assert("it was stopped with the rest");
    AFTER_IT.assert("it came afterwards");
}
