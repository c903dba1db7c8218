//! The permits of a limited view, in all interleavings: never more than there are, no work lost, each outcome
//! of each race reached.
use std::sync::Arc as StdArc;
use std::sync::Mutex as StdMutex;
use std::sync::atomic::{AtomicUsize as StdUsize, Ordering::Relaxed as R};

use crate::model::{Reached, explore};
use convoke_core::raw::sync::atomic::{AtomicUsize, Ordering};
use convoke_core::raw::sync::{Arc, thread};
use convoke_core::raw::{Call, Runnable};
use convoke_exec::raw::{AfterQueuing, NextRun, Seat, Seats};
use convoke_testing::runnable;

/// A log of what has run, in the order in which it started, and the number of pieces that run now.
#[derive(Clone)]
struct Log {
    began: StdArc<StdMutex<Vec<u32>>>,
    /// A loom atomic, so that loom can switch threads at every access.
    running: StdArc<AtomicUsize>,
    most: StdArc<StdUsize>,
    stopped: StdArc<StdUsize>,
}

impl Log {
    fn new() -> Self {
        let running = StdArc::new(AtomicUsize::new(0));
        Self { began: StdArc::default(), running, most: StdArc::default(), stopped: StdArc::default() }
    }

    /// Returns work at which loom can switch threads while it runs.
    fn work(&self, number: u32) -> Runnable {
        let log = self.clone();
        runnable(move |call| {
            if call == Call::Stop {
                log.stopped.fetch_add(1, R);
                return;
            }
            log.began.lock().unwrap().push(number);
            let now = log.running.fetch_add(1, Ordering::Relaxed) + 1;
            log.most.fetch_max(now, R);
            log.running.fetch_sub(1, Ordering::Relaxed);
        })
    }

    fn place(&self, number: u32) -> usize {
        self.began.lock().unwrap().iter().position(|other| *other == number).unwrap()
    }
}

/// Runs the turn of a seat on an executor with a thread for each.
fn turn(seats: &Seats, mut seat: Seat) {
    while let NextRun::Run(runnable, kept) = seats.next(seat) {
        runnable.run();
        seat = kept;
    }
}

/// Posts work, and runs the turn here if there is a seat for it.
fn post(seats: &Seats, work: Runnable, posted: &Reached, waits: &Reached) {
    match seats.queue(work) {
        AfterQueuing::Post(seat) => {
            posted.here();
            turn(seats, seat);
        }
        AfterQueuing::Wait => waits.here(),
    }
}

#[test]
fn posts_of_three_threads_run_one_at_a_time_with_one_seat_and_all_of_them() {
    static POSTED: Reached = Reached::new();
    static WAITS: Reached = Reached::new();
    explore(2, || {
        let (seats, log) = (Arc::new(Seats::new(1)), Log::new());
        let others = [1, 2].map(|number| {
            let (seats, work) = (seats.clone(), log.work(number));
            thread::spawn(move || post(&seats, work, &POSTED, &WAITS))
        });
        post(&seats, log.work(0), &POSTED, &WAITS);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(log.began.lock().unwrap().len(), 3);
        assert_eq!(log.most.load(R), 1);
        assert!(seats.is_empty());
    });
    POSTED.assert("there was a seat");
    WAITS.assert("it waited for one");
}

#[test]
fn with_two_seats_two_run_at_the_same_time_and_a_third_waits() {
    static POSTED: Reached = Reached::new();
    static WAITS: Reached = Reached::new();
    static TWO: Reached = Reached::new();
    explore(2, || {
        let (seats, log) = (Arc::new(Seats::new(2)), Log::new());
        let others = [1, 2].map(|number| {
            let (seats, work) = (seats.clone(), log.work(number));
            thread::spawn(move || post(&seats, work, &POSTED, &WAITS))
        });
        post(&seats, log.work(0), &POSTED, &WAITS);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(log.began.lock().unwrap().len(), 3);
        let most = log.most.load(R);
        assert!(most <= 2, "{most} at a time");
        TWO.here_if(most == 2);
        // Both seats are free again.
        for number in [3, 4] {
            assert!(matches!(seats.queue(log.work(number)), AfterQueuing::Post(_)));
        }
    });
    POSTED.assert("there was a seat");
    WAITS.assert("it waited for one");
    TWO.assert("two ran at the same time");
}

#[test]
fn a_post_against_a_seat_that_is_given_up_takes_it_or_is_seen() {
    static SEEN: Reached = Reached::new();
    static AGAIN: Reached = Reached::new();
    explore(4, || {
        let (seats, log) = (Arc::new(Seats::new(1)), Log::new());
        let AfterQueuing::Post(seat) = seats.queue(log.work(1)) else { panic!("it is free") };
        let there = {
            let seats = seats.clone();
            thread::spawn(move || turn(&seats, seat))
        };
        post(&seats, log.work(2), &AGAIN, &SEEN);
        there.join().unwrap();
        assert!(log.place(1) < log.place(2));
    });
    SEEN.assert("the end of the turn saw it");
    AGAIN.assert("it came after the turn");
}

#[test]
fn a_post_against_a_dropped_seat_is_stopped_with_it_or_free_to_post() {
    static WITH_IT: Reached = Reached::new();
    static AFTER_IT: Reached = Reached::new();
    explore(4, || {
        let (seats, log) = (Arc::new(Seats::new(1)), Log::new());
        let AfterQueuing::Post(seat) = seats.queue(log.work(1)) else { panic!("it is free") };
        let there = {
            let seats = seats.clone();
            // The inner executor has dropped the turn.
            thread::spawn(move || {
                let mut seat = seat;
                while let NextRun::Run(runnable, kept) = seats.next(seat) {
                    drop(runnable);
                    seat = kept;
                }
            })
        };
        post(&seats, log.work(2), &AFTER_IT, &WITH_IT);
        there.join().unwrap();
        assert_eq!(log.stopped.load(R) + log.began.lock().unwrap().len(), 2);
        assert!(log.stopped.load(R) > 0, "the first one at least");
    });
    WITH_IT.assert("it was stopped with the rest");
    AFTER_IT.assert("it came afterwards");
}
