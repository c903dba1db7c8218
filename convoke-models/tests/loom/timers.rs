//! Models of timers: the call of a timer against its disarming, a sleep's time against a stop, and a loop
//! that is told of an earlier time while it falls asleep.

#![allow(unsafe_code)]
use std::ptr::NonNull;
use std::time::{Duration, Instant};

use crate::model::{Reached, Seen, empty_quarantine, explore, start};
use crate::still_clock::StillClock;
use convoke_core::env::Changes;
use convoke_core::raw::sync::atomic::{AtomicBool, Ordering};
use convoke_core::raw::sync::{Arc, UnsafeCell, thread};
use convoke_core::raw::{ArmedTimer, Call, IdleTimer, Timer};
use convoke_exec::raw::{Sleeper, TimerQueue};
use convoke_exec::time::sleep;
use convoke_exec::{RunLoop, RunLoopExecutor};
use convoke_sender::prelude::*;

const SECOND: Duration = Duration::from_secs(1);

/// A timer and the cell that its call writes; loom reports a simultaneous access.
#[repr(C)]
struct Watched {
    // The first field, so that a pointer to it is a pointer to the whole struct.
    timer: Timer,
    calls: UnsafeCell<u32>,
}

impl Watched {
    fn new() -> NonNull<Self> {
        let watched = Self { timer: Timer::new(Self::called), calls: UnsafeCell::new(0) };
        NonNull::from(Box::leak(Box::new(watched)))
    }

    /// # Safety
    /// Called by timers, with the timer of a `Watched`.
    unsafe fn called(timer: NonNull<Timer>, _: Call) {
        // SAFETY: the timer is the first field (`repr(C)`), and loom reports another access to the cell.
        unsafe { timer.cast::<Self>().as_ref().calls.with_mut(|calls| *calls += 1) };
    }

    /// # Safety
    /// It is not armed any more, and was created by `new`.
    unsafe fn end(watched: NonNull<Self>) -> u32 {
        // SAFETY: the caller promises that it was created by `new`, which leaked a box, and that no timer
        // uses it.
        unsafe { Box::from_raw(watched.as_ptr()) }.calls.into_inner()
    }
}

#[test]
fn a_timer_that_was_taken_back_is_not_called_and_not_being_called() {
    static IN_TIME: Reached = Reached::new();
    static TOO_LATE: Reached = Reached::new();
    explore(3, || {
        let (queue, at) = (Arc::new(TimerQueue::new()), Instant::now());
        let watched = Watched::new();
        // SAFETY: it stays allocated until it is disarmed below.
        let _ = unsafe { queue.arm(IdleTimer::new(watched.cast()), at) };
        let caller = {
            let queue = queue.clone();
            thread::spawn(move || queue.call_due(at))
        };
        // SAFETY: it was armed above, and is disarmed once. Then the queue does not know it, and it can be
        // freed.
        let (in_time, calls) =
            unsafe { (queue.disarm(ArmedTimer::new(watched.cast())), Watched::end(watched)) };
        assert_eq!(calls, u32::from(!in_time));
        assert_eq!(caller.join().unwrap(), usize::from(!in_time));
        IN_TIME.here_if(in_time);
        TOO_LATE.here_if(!in_time);
    });
    IN_TIME.assert("it was taken back before it was due");
    TOO_LATE.assert("it was called before it was taken back");
}

#[test]
fn a_timer_that_is_armed_while_the_timers_end_is_stopped_once() {
    static BEFORE: Reached = Reached::new();
    static AFTER: Reached = Reached::new();
    explore(3, || {
        let queue = Arc::new(TimerQueue::new());
        let watched = Watched::new();
        let closer = {
            let queue = queue.clone();
            thread::spawn(move || queue.close())
        };
        // SAFETY: it stays allocated until it is disarmed below.
        let _ = unsafe { queue.arm(IdleTimer::new(watched.cast()), Instant::now()) };
        // SAFETY: it was armed above, and is disarmed once. Then the queue does not know it, and it can be
        // freed.
        let (in_time, calls) =
            unsafe { (queue.disarm(ArmedTimer::new(watched.cast())), Watched::end(watched)) };
        assert_eq!(calls, u32::from(!in_time));
        closer.join().unwrap();
        BEFORE.here_if(in_time);
        AFTER.here_if(!in_time);
    });
    BEFORE.assert("it was taken back before the end");
    AFTER.assert("it was stopped");
}

#[test]
fn a_timer_is_taken_back_and_another_armed_beside_one_that_is_being_called() {
    static IN_TIME: Reached = Reached::new();
    static TOO_LATE: Reached = Reached::new();
    static NEXT_LOOK: Reached = Reached::new();
    explore(2, || {
        // All in one list: removing a timer writes to its neighbours.
        let (queue, at) = (Arc::new(TimerQueue::new()), Instant::now() + SECOND);
        let [first, second, third] = [(); 3].map(|()| Watched::new());
        for timer in [first, second] {
            // SAFETY: it stays allocated until it was called or disarmed below.
            let _ = unsafe { queue.arm(IdleTimer::new(timer.cast()), at) };
        }
        let caller = {
            let queue = queue.clone();
            thread::spawn(move || queue.call_due(at))
        };
        // SAFETY: `second` was armed above, and is disarmed once.
        let in_time = unsafe { queue.disarm(ArmedTimer::new(second.cast())) };
        // SAFETY: `third` is armed once, and stays allocated until it was called below.
        let _ = unsafe { queue.arm(IdleTimer::new(third.cast()), at) };
        let called = caller.join().unwrap();
        let later = queue.call_due(at);
        assert_eq!(called + later, 2 + usize::from(!in_time));
        assert_eq!(queue.earliest(), None);
        // SAFETY: all have been called or disarmed.
        let calls = [first, second, third].map(|timer| unsafe { Watched::end(timer) });
        assert_eq!(calls, [1, u32::from(!in_time), 1]);
        IN_TIME.here_if(in_time);
        TOO_LATE.here_if(!in_time);
        NEXT_LOOK.here_if(later == 1);
    });
    IN_TIME.assert("it was taken back before it was called");
    TOO_LATE.assert("it was called before it was taken back");
    NEXT_LOOK.assert("one that was armed meanwhile waited for the next look");
}

#[test]
fn a_timer_is_taken_back_while_two_threads_call_timers() {
    static IN_TIME: Reached = Reached::new();
    static TOO_LATE: Reached = Reached::new();
    static ONE_EACH: Reached = Reached::new();
    explore(2, || {
        let (queue, at) = (Arc::new(TimerQueue::new()), Instant::now());
        let [first, second] = [(); 2].map(|()| Watched::new());
        for timer in [first, second] {
            // SAFETY: it stays allocated until it was called or disarmed below.
            let _ = unsafe { queue.arm(IdleTimer::new(timer.cast()), at) };
        }
        let callers = [(); 2].map(|()| {
            let queue = queue.clone();
            thread::spawn(move || queue.call_due(at))
        });
        // SAFETY: it was armed above, and is disarmed once. Then the queue does not know it, and it can be
        // freed.
        let (in_time, calls) =
            unsafe { (queue.disarm(ArmedTimer::new(second.cast())), Watched::end(second)) };
        assert_eq!(calls, u32::from(!in_time));
        let called = callers.map(|caller| caller.join().unwrap());
        let later = queue.call_due(at);
        assert_eq!(called[0] + called[1] + later, 1 + usize::from(!in_time));
        // SAFETY: it has been called, and stays allocated. If the list of calls led to a stack frame that is
        // gone, this would follow it.
        assert!(!unsafe { queue.disarm(ArmedTimer::new(first.cast())) });
        // SAFETY: `first` has been called, so the queue does not know it any more.
        assert_eq!(unsafe { Watched::end(first) }, 1);
        IN_TIME.here_if(in_time);
        TOO_LATE.here_if(!in_time);
        ONE_EACH.here_if(called == [1, 1]);
    });
    IN_TIME.assert("it was taken back before it was called");
    TOO_LATE.assert("it was called before it was taken back");
    ONE_EACH.assert("both threads have called one");
}

/// Starts a sleep whose memory is freed when it completes.
fn start_sleep(clock: &StillClock, source: &StopSource) -> Seen {
    let seen = Seen::default();
    start(sleep(SECOND).write_env(Changes::new().executor(clock.clone())), source, &seen);
    seen
}

#[test]
fn a_sleep_whose_time_comes_while_it_is_stopped_ends_once() {
    static DUE: Reached = Reached::new();
    static STOPPED: Reached = Reached::new();
    static LEFT: Reached = Reached::new();
    explore(3, || {
        let (clock, source) = (StillClock::new(), StopSource::new());
        let seen = start_sleep(&clock, &source);
        let time = clock.time_comes(clock.now() + SECOND);
        source.request_stop(StopReason::Requested);
        let called = time.join().unwrap();
        assert_eq!(seen.completed.get(), 1);
        DUE.here_if(seen.values.get() == 1);
        STOPPED.here_if(seen.stopped.get() == 1);
        LEFT.here_if(seen.stopped.get() == 1 && called == 1);
        empty_quarantine();
    });
    DUE.assert("its time came first");
    STOPPED.assert("the stop came first");
    LEFT.assert("the call came while the stop was at work, and left");
}

#[test]
fn a_sleep_that_is_being_started_meets_its_time() {
    static DUE: Reached = Reached::new();
    static NOT_YET: Reached = Reached::new();
    explore(3, || {
        let (clock, source) = (StillClock::new(), StopSource::new());
        let time = clock.time_comes(clock.now() + SECOND);
        let seen = start_sleep(&clock, &source);
        let called = time.join().unwrap();
        assert_eq!(seen.values.get(), called);
        source.request_stop(StopReason::Requested);
        assert_eq!(seen.completed.get(), 1);
        DUE.here_if(called == 1);
        NOT_YET.here_if(called == 0);
        empty_quarantine();
    });
    DUE.assert("it was armed in time");
    NOT_YET.assert("the look came before it was armed");
}

#[test]
fn a_sleep_that_is_being_started_meets_a_stop_and_its_time() {
    static DUE: Reached = Reached::new();
    static STOPPED: Reached = Reached::new();
    static BOTH: Reached = Reached::new();
    explore(2, || {
        let (clock, source) = (StillClock::new(), StopSource::new());
        let time = clock.time_comes(clock.now() + SECOND);
        let stop = {
            let source = source.clone();
            thread::spawn(move || source.request_stop(StopReason::Requested))
        };
        let seen = start_sleep(&clock, &source);
        let called = time.join().unwrap();
        stop.join().unwrap();
        assert_eq!(seen.completed.get(), 1);
        DUE.here_if(seen.values.get() == 1);
        STOPPED.here_if(seen.stopped.get() == 1 && called == 0);
        BOTH.here_if(seen.stopped.get() == 1 && called == 1);
        empty_quarantine();
    });
    DUE.assert("its time came first");
    STOPPED.assert("the stop came first");
    BOTH.assert("both came");
}

/// A timer that tells its loop to finish.
#[repr(C)]
struct Finishes {
    // The first field, so that a pointer to it is a pointer to the whole struct.
    timer: Timer,
    executor: RunLoopExecutor,
}

#[test]
fn a_time_that_is_told_to_a_loop_falling_asleep_is_heard() {
    static THERE: Reached = Reached::new();
    static WAITED: Reached = Reached::new();
    explore(3, || {
        let run_loop = RunLoop::new();
        let executor = run_loop.executor();
        let other = thread::spawn(move || {
            // SAFETY: the timer is the first field of a leaked `Finishes` (`repr(C)`), and its only call
            // takes the box back.
            let timer = Timer::new(|timer, _| unsafe {
                Box::from_raw(timer.cast::<Finishes>().as_ptr()).executor.finish();
            });
            let finishes = Box::new(Finishes { timer, executor: executor.clone() });
            let timers = executor.timers().unwrap();
            // SAFETY: it stays allocated until it is called.
            unsafe { timers.arm(IdleTimer::new(NonNull::from(Box::leak(finishes)).cast()), Instant::now()) };
        });
        thread::yield_now();
        if run_loop.run_ready() > 0 {
            THERE.here()
        } else {
            WAITED.here()
        }
        run_loop.run();
        other.join().unwrap();
    });
    THERE.assert("it was there already");
    WAITED.assert("it was waited for");
}

/// A flag that wakes a foreign loop.
#[derive(Default)]
struct WakeFlag(AtomicBool);

impl Sleeper for WakeFlag {
    fn sleep(&self, _: Option<Instant>) {
        unreachable!("a loop inside another does not sleep");
    }

    fn check(&self) {}

    fn wake(&self) {
        self.0.store(true, Ordering::Release);
    }
}

#[test]
fn a_time_that_is_told_to_a_nested_loop_falling_asleep_is_seen_or_announced() {
    static SEEN: Reached = Reached::new();
    static ANNOUNCED: Reached = Reached::new();
    explore(3, || {
        let flag = std::sync::Arc::new(WakeFlag::default());
        let run_loop = RunLoop::over(flag.clone(), None);
        let (executor, watched) = (run_loop.executor(), Watched::new());
        let timer = Address(watched.cast());
        let other = thread::spawn(move || {
            let Address(timer) = { timer };
            // SAFETY: it stays allocated until the loop has ended, which calls it.
            unsafe { executor.timers().unwrap().arm(IdleTimer::new(timer), Instant::now() + SECOND) };
        });
        assert!(run_loop.doze(), "there is nothing to run");
        let seen = run_loop.next_timer().is_some();
        other.join().unwrap();
        let announced = flag.0.load(Ordering::Acquire);
        assert!(seen || announced, "nobody would ever look at the time");
        drop(run_loop);
        // SAFETY: the loop has called and closed its timers.
        assert_eq!(unsafe { Watched::end(watched) }, 1);
        SEEN.here_if(seen);
        ANNOUNCED.here_if(announced);
    });
    SEEN.assert("it was there before the nested loop checked");
    ANNOUNCED.assert("it was announced");
}

/// The address of a timer, to be sent to another thread.
struct Address(NonNull<Timer>);

// SAFETY: timers may be armed from any thread.
unsafe impl Send for Address {}
