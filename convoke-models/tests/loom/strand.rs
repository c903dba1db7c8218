//! The turns of a strand, in all interleavings: never two at once, no work lost, each outcome of each race
//! reached.

#![allow(unsafe_code)]
use std::sync::Arc as StdArc;
use std::sync::Mutex as StdMutex;
use std::sync::atomic::{AtomicUsize as StdUsize, Ordering::Relaxed as R};

use crate::model::{Reached, explore};
use convoke_core::raw::sync::atomic::AtomicBool;
use convoke_core::raw::sync::{Arc, UnsafeCell, thread};
use convoke_core::raw::{Call, Runnable};
use convoke_exec::raw::{AfterPost, NextBatch, Turns};
use convoke_testing::runnable;

/// A log of what has run, in order, and whether anything runs now.
#[derive(Clone)]
struct Log {
    order: StdArc<StdMutex<Vec<u32>>>,
    /// A loom atomic, so that loom can switch threads at every access.
    running: StdArc<AtomicBool>,
    /// Written by each piece without synchronisation: loom reports a race if the strand does not order them.
    plain: StdArc<Plain>,
    stopped: StdArc<StdUsize>,
}

struct Plain(UnsafeCell<u32>);

// SAFETY: the strand promises that no two threads access it at once, and loom checks that.
unsafe impl Sync for Plain {}

impl Log {
    fn new() -> Self {
        let running = StdArc::new(AtomicBool::new(false));
        let plain = StdArc::new(Plain(UnsafeCell::new(0)));
        Self { order: StdArc::default(), running, plain, stopped: StdArc::default() }
    }

    /// Returns work at which loom can switch threads while it runs.
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
        // SAFETY: only work of the strand calls this, and the strand runs one piece at a time; loom checks
        // that.
        self.plain.0.with_mut(|plain| unsafe { *plain = number });
    }

    fn assert_in_order(&self, before: u32, after: u32) {
        let order = self.order.lock().unwrap();
        let place = |number| order.iter().position(|other| *other == number).unwrap();
        assert!(place(before) < place(after), "{order:?}");
    }
}

/// Runs the turn of a strand on an executor that gives it `each` pieces at a time.
fn turn(turns: &Turns, each: usize) {
    while let NextBatch::Work(mut batch) = turns.next() {
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
                // The turn is ours from here on, and with it the strand's own fields, such as its header.
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
                while let NextBatch::Work(batch) = turns.next() {
                    drop(batch);
                }
            })
        };
        match turns.post(log.work(2)) {
            AfterPost::Queued => WITH_IT.here(),
            AfterPost::Schedule => {
                AFTER_IT.here();
                // The turn is ours from here on, and with it the strand's own fields, such as its header.
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
