//! The seats of a view, in all interleavings: never more than there are, nothing forgotten, each side of each race reached.
#![cfg(feature = "loom")]

use std::sync::Arc as StdArc;
use std::sync::Mutex as StdMutex;
use std::sync::atomic::{AtomicUsize as StdUsize, Ordering::Relaxed as R};

use convoke_core::raw::sync::atomic::{AtomicUsize, Ordering};
use convoke_core::raw::sync::{Arc, thread};
use convoke_core::raw::{Call, Runnable};
use convoke_exec::raw::{AfterQueuing, Seat, Seats, Turn};
use convoke_exec::testing::runnable;

/// What has been run, in the order in which it began, and how many run just now.
#[derive(Clone)]
struct Log {
    began: StdArc<StdMutex<Vec<u32>>>,
    /// The model's own, so that others can intrude at every touch.
    running: StdArc<AtomicUsize>,
    most: StdArc<StdUsize>,
    stopped: StdArc<StdUsize>,
}

impl Log {
    fn new() -> Self {
        let running = StdArc::new(AtomicUsize::new(0));
        Self { began: StdArc::default(), running, most: StdArc::default(), stopped: StdArc::default() }
    }

    /// Work that gives other threads the chance to intrude while it runs.
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

/// Counts over all interleavings.
#[derive(Clone, Default)]
struct Tally(StdArc<StdUsize>);

impl Tally {
    fn count(&self) {
        self.0.fetch_add(1, R);
    }

    #[track_caller]
    fn assert_reached(&self) {
        assert!(self.0.load(R) > 0, "an outcome that was meant to be explored did not occur");
    }
}

/// All interleavings with at most `preemptions` involuntary switches.
fn model(preemptions: usize, f: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(f);
}

/// The turn of a seat on an executor with a thread for each.
fn turn(seats: &Seats, mut seat: Seat) {
    while let Turn::Run(runnable, kept) = seats.next(seat) {
        runnable.run();
        seat = kept;
    }
}

/// Posts, and runs the turn here if there is a seat for it.
fn post(seats: &Seats, work: Runnable, posted: &Tally, waits: &Tally) {
    match seats.queue(work) {
        AfterQueuing::Post(seat) => {
            posted.count();
            turn(seats, seat);
        }
        AfterQueuing::Wait => waits.count(),
    }
}

#[test]
fn posts_of_three_threads_run_one_at_a_time_with_one_seat_and_all_of_them() {
    let (posted, waits) = (Tally::default(), Tally::default());
    let tallies = (posted.clone(), waits.clone());
    model(2, move || {
        let (seats, log) = (Arc::new(Seats::new(1)), Log::new());
        let others = [1, 2].map(|number| {
            let (seats, work, tallies) = (seats.clone(), log.work(number), tallies.clone());
            thread::spawn(move || post(&seats, work, &tallies.0, &tallies.1))
        });
        post(&seats, log.work(0), &tallies.0, &tallies.1);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(log.began.lock().unwrap().len(), 3);
        assert_eq!(log.most.load(R), 1);
        assert!(seats.is_empty());
    });
    posted.assert_reached();
    waits.assert_reached();
}

#[test]
fn with_two_seats_two_run_at_the_same_time_and_a_third_waits() {
    let (posted, waits, two) = (Tally::default(), Tally::default(), Tally::default());
    let tallies = (posted.clone(), waits.clone(), two.clone());
    model(2, move || {
        let (seats, log) = (Arc::new(Seats::new(2)), Log::new());
        let others = [1, 2].map(|number| {
            let (seats, work, tallies) = (seats.clone(), log.work(number), tallies.clone());
            thread::spawn(move || post(&seats, work, &tallies.0, &tallies.1))
        });
        post(&seats, log.work(0), &tallies.0, &tallies.1);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(log.began.lock().unwrap().len(), 3);
        let most = log.most.load(R);
        assert!(most <= 2, "{most} at a time");
        if most == 2 {
            tallies.2.count();
        }
        // Both seats are back.
        for number in [3, 4] {
            assert!(matches!(seats.queue(log.work(number)), AfterQueuing::Post(_)));
        }
    });
    posted.assert_reached();
    waits.assert_reached();
    two.assert_reached();
}

#[test]
fn a_post_against_a_seat_that_is_given_up_takes_it_or_is_seen() {
    let (seen, again) = (Tally::default(), Tally::default());
    let tallies = (seen.clone(), again.clone());
    model(4, move || {
        let (seats, log) = (Arc::new(Seats::new(1)), Log::new());
        let AfterQueuing::Post(seat) = seats.queue(log.work(1)) else { panic!("it is free") };
        let there = {
            let seats = seats.clone();
            thread::spawn(move || turn(&seats, seat))
        };
        post(&seats, log.work(2), &tallies.1, &tallies.0);
        there.join().unwrap();
        assert!(log.place(1) < log.place(2));
    });
    seen.assert_reached();
    again.assert_reached();
}

#[test]
fn a_post_against_a_dropped_seat_is_stopped_with_it_or_free_to_post() {
    let (with_it, after_it) = (Tally::default(), Tally::default());
    let tallies = (with_it.clone(), after_it.clone());
    model(4, move || {
        let (seats, log) = (Arc::new(Seats::new(1)), Log::new());
        let AfterQueuing::Post(seat) = seats.queue(log.work(1)) else { panic!("it is free") };
        let there = {
            let seats = seats.clone();
            // The inner executor has dropped it.
            thread::spawn(move || {
                let mut seat = seat;
                while let Turn::Run(runnable, kept) = seats.next(seat) {
                    drop(runnable);
                    seat = kept;
                }
            })
        };
        post(&seats, log.work(2), &tallies.1, &tallies.0);
        there.join().unwrap();
        assert_eq!(log.stopped.load(R) + log.began.lock().unwrap().len(), 2);
        assert!(log.stopped.load(R) > 0, "the first one at least");
    });
    with_it.assert_reached();
    after_it.assert_reached();
}
