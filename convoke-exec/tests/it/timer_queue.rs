//! Tests of the timer queue by itself: order, disarming, closing.

#![allow(unsafe_code)]
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use convoke::prelude::*;
use convoke::testing::{Clockwork, Latch};
use convoke::time::sleep;
use convoke_core::raw::{ArmedTimer, Call, IdleTimer, Random, Timer};
use convoke_exec::raw::{AfterArm, TimerQueue};

type Calls = Arc<Mutex<Vec<(usize, Call)>>>;

/// A timer that records its number.
#[repr(C)]
struct Noted {
    // The first field, so that a pointer to it is a pointer to the whole.
    timer: Timer,
    number: usize,
    calls: Calls,
}

/// A queue with timers that stay in place.
struct Timers {
    // Dropped before the timers, which it points to.
    queue: TimerQueue,
    noted: Vec<NonNull<Noted>>,
    calls: Calls,
    start: Instant,
}

/// Records the call of a timer.
///
/// # Safety
/// Called by the queue, with the timer of a `Noted`.
unsafe fn note(timer: NonNull<Timer>, call: Call) {
    // SAFETY: the timer is the first field (`repr(C)`) of a `Noted`, as the caller promises.
    let noted = unsafe { timer.cast::<Noted>().as_ref() };
    noted.calls.lock().unwrap().push((noted.number, call));
}

impl Timers {
    fn new(count: usize) -> Self {
        let calls = Calls::default();
        let noted = |number| Noted { timer: Timer::new(note), number, calls: calls.clone() };
        let noted = (0..count).map(|number| NonNull::from(Box::leak(Box::new(noted(number))))).collect();
        Self { queue: TimerQueue::new(), noted, calls, start: Instant::now() }
    }

    fn arm(&self, number: usize, milliseconds: u64) -> AfterArm {
        // SAFETY: the timer is freed when we are dropped, and no test arms one twice.
        unsafe { self.queue.arm(IdleTimer::new(self.noted[number].cast()), self.after(milliseconds)) }
    }

    fn disarm(&self, number: usize) -> bool {
        // SAFETY: tests disarm only timers that they have armed.
        unsafe { self.queue.disarm(ArmedTimer::new(self.noted[number].cast())) }
    }

    fn after(&self, milliseconds: u64) -> Instant {
        self.start + Duration::from_millis(milliseconds)
    }

    /// Returns the numbers of the timers that were called since the last time.
    fn called(&self, milliseconds: u64) -> Vec<usize> {
        self.queue.call_due(self.after(milliseconds));
        let calls = std::mem::take(&mut *self.calls.lock().unwrap());
        assert!(calls.iter().all(|(_, call)| *call == Call::Run));
        calls.into_iter().map(|(number, _)| number).collect()
    }
}

impl Drop for Timers {
    fn drop(&mut self) {
        self.queue.close();
        for noted in &self.noted {
            // SAFETY: it comes from a box, and no queue points to it any more.
            drop(unsafe { Box::from_raw(noted.as_ptr()) });
        }
    }
}

#[test]
fn a_duration_that_starts_at_the_next_check_counts_from_there() {
    let timers = Timers::new(3);
    let arm = |number: usize, milliseconds| {
        // SAFETY: the timer is freed when `timers` is dropped, and it is armed once.
        unsafe {
            timers.queue.arm_at_next_check(
                IdleTimer::new(timers.noted[number].cast()),
                Duration::from_millis(milliseconds),
            );
        }
    };
    arm(0, 10);
    arm(1, 5);
    assert_eq!(timers.arm(2, 17), AfterArm::Waits, "a check comes before");
    assert!(!timers.queue.is_empty());
    assert!(
        timers.queue.next_check().is_some_and(|check| check <= timers.after(0)),
        "a check is needed at once"
    );
    assert!(timers.called(7).is_empty());
    assert_eq!(timers.queue.earliest(), Some(timers.after(12)));
    assert_eq!(timers.called(16), [1]);
    // Of two timers with the same time, the one armed first comes first, although its time was known later.
    assert_eq!(timers.called(17), [0, 2]);
}

#[test]
fn the_earliest_comes_first_and_ties_come_in_the_order_of_arming() {
    let timers = Timers::new(6);
    for (number, at) in [(0, 5), (1, 3), (2, 5), (3, 1), (4, 3), (5, 5)] {
        let _ = timers.arm(number, at);
    }
    assert_eq!(timers.called(10), [3, 1, 4, 0, 2, 5]);
    assert!(timers.queue.is_empty());
}

#[test]
fn no_timer_is_called_before_its_time() {
    let timers = Timers::new(3);
    for number in 0..3 {
        let _ = timers.arm(number, 10 * (number as u64 + 1));
    }
    assert_eq!(timers.queue.earliest(), Some(timers.after(10)));
    assert_eq!(timers.called(9), []);
    assert_eq!(timers.called(10), [0]);
    assert_eq!(timers.queue.earliest(), Some(timers.after(20)));
    assert_eq!(timers.called(29), [1]);
    assert_eq!(timers.called(30), [2]);
    assert_eq!(timers.queue.earliest(), None);
}

#[test]
fn only_arming_the_earliest_asks_to_wake_the_thread() {
    let timers = Timers::new(4);
    assert_eq!(timers.arm(0, 10), AfterArm::IsEarliest);
    assert_eq!(timers.arm(1, 10), AfterArm::Waits);
    assert_eq!(timers.arm(2, 11), AfterArm::Waits);
    assert_eq!(timers.arm(3, 9), AfterArm::IsEarliest);
}

#[test]
fn a_disarmed_timer_is_not_called_and_a_called_one_cannot_be_disarmed() {
    let timers = Timers::new(3);
    for number in 0..3 {
        let _ = timers.arm(number, 1 + number as u64);
    }
    assert!(timers.disarm(0));
    assert_eq!(timers.queue.earliest(), Some(timers.after(2)));
    assert!(timers.disarm(1));
    assert_eq!(timers.called(10), [2]);
    assert!(!timers.disarm(2));
}

#[test]
fn a_closed_queue_stops_armed_timers_and_later_ones() {
    let timers = Timers::new(3);
    let _ = timers.arm(0, 2);
    let _ = timers.arm(1, 1);
    timers.queue.close();
    let _ = timers.arm(2, 0);
    assert!(!timers.disarm(0) && !timers.disarm(2));
    let stopped = [1, 0, 2].map(|number| (number, Call::Stop));
    assert_eq!(*timers.calls.lock().unwrap(), stopped);
    timers.calls.lock().unwrap().clear();
}

/// A timer that disarms itself inside its call, and then arms itself again for a time in the past.
#[repr(C)]
struct Again {
    timer: Timer,
    queue: Arc<TimerQueue>,
    at: Instant,
    calls: usize,
}

#[test]
fn a_timer_that_arms_itself_again_for_the_past_waits_for_the_next_check() {
    let at = Instant::now();
    let again = Timer::new(|timer, call| {
        // SAFETY: the timer is the first field of an `Again` (`repr(C)`), which the test frees at its end.
        unsafe {
            let again = timer.cast::<Again>().as_ptr();
            (*again).calls += 1;
            let queue = (*again).queue.clone();
            assert!(!queue.disarm(ArmedTimer::new(timer)), "a timer in its call is not armed");
            if call == Call::Run {
                let _ = queue.arm(IdleTimer::new(timer), (*again).at);
            }
        }
    });
    let queue = Arc::new(TimerQueue::new());
    let again =
        NonNull::from(Box::leak(Box::new(Again { timer: again, queue: queue.clone(), at, calls: 0 })));
    // SAFETY: it is freed at the end of the test, and is armed once at a time.
    let calls = || unsafe { (*again.as_ptr()).calls };
    // SAFETY: it is freed at the end of the test.
    let _ = unsafe { queue.arm(IdleTimer::new(again.cast()), at) };
    for round in 1..=3 {
        assert_eq!(queue.call_due(at), 1);
        assert_eq!(calls(), round);
    }
    queue.close();
    assert_eq!(calls(), 4);
    // SAFETY: it comes from a box, and the queue does not point to it any more.
    drop(unsafe { Box::from_raw(again.as_ptr()) });
}

#[test]
fn thousands_of_random_timers_come_in_sorted_order() {
    const COUNT: usize = if cfg!(miri) { 60 } else { 4000 };
    let seed = std::env::var("CONVOKE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    println!("CONVOKE_SEED={seed}");
    for seed in seed..seed + 8 {
        let mut random = Random::new(seed);
        let timers = Timers::new(COUNT);
        // The armed timers: time, and number, which is the order of arming.
        let mut expected: Vec<(u64, usize)> = Vec::new();
        let (mut now, mut next) = (0, 0);
        while next < COUNT || !expected.is_empty() {
            match random.below(8) {
                0..=4 if next < COUNT => {
                    let at = now + random.draw() % 500;
                    let _ = timers.arm(next, at);
                    expected.push((at, next));
                    next += 1;
                }
                5 if !expected.is_empty() => {
                    let index = random.below(expected.len());
                    assert!(timers.disarm(expected.swap_remove(index).1), "seed {seed}");
                }
                6 => {
                    now += random.draw() % 20;
                    let mut due: Vec<_> = expected.extract_if(.., |(at, _)| *at <= now).collect();
                    due.sort();
                    let due: Vec<_> = due.into_iter().map(|(_, number)| number).collect();
                    assert_eq!(timers.called(now), due, "seed {seed}");
                    let earliest = expected.iter().min().map(|(at, _)| timers.after(*at));
                    assert_eq!(timers.queue.earliest(), earliest, "seed {seed}");
                }
                _ => {}
            }
        }
    }
}

/// A timer whose call reports that it has begun, and lasts until it is released.
#[repr(C)]
struct Long {
    // The first field, so that a pointer to it is a pointer to the whole.
    timer: Timer,
    begun: Latch,
    may_end: Latch,
    ended: AtomicBool,
}

impl Long {
    fn leaked() -> NonNull<Self> {
        let long = Self {
            timer: Timer::new(Self::called),
            begun: Latch::new(1),
            may_end: Latch::new(1),
            ended: AtomicBool::new(false),
        };
        NonNull::from(Box::leak(Box::new(long)))
    }

    /// Reports the call, and waits for its release.
    ///
    /// # Safety
    /// Called by the queue, with the timer of a `Long`.
    unsafe fn called(timer: NonNull<Timer>, _: Call) {
        // SAFETY: the timer is the first field (`repr(C)`) of a `Long`, as the caller promises.
        let long = unsafe { timer.cast::<Self>().as_ref() };
        long.begun.count_down();
        long.may_end.wait();
        long.ended.store(true, Ordering::Release);
    }
}

#[test]
fn disarm_waits_for_a_call_on_the_second_of_two_calling_threads() {
    let queue = TimerQueue::new();
    let (first, second) = (Long::leaked(), Long::leaked());
    // SAFETY: both are freed at the end of the test.
    let (one, two) = unsafe { (first.as_ref(), second.as_ref()) };
    let now = Instant::now();
    thread::scope(|threads| {
        // SAFETY: both are freed at the end of the test, and are armed once each.
        let _ = unsafe { queue.arm(IdleTimer::new(first.cast()), now) };
        let calls_first = threads.spawn(|| queue.call_due(now));
        one.begun.wait();
        // SAFETY: both are freed at the end of the test.
        let _ = unsafe { queue.arm(IdleTimer::new(second.cast()), now) };
        let calls_second = threads.spawn(|| queue.call_due(now));
        two.begun.wait();
        // The call that has begun first ends first.
        one.may_end.count_down();
        calls_first.join().unwrap();
        let disarms = Latch::new(1);
        let (queue, about_to) = (&queue, disarms.clone());
        let disarmed = threads.spawn(move || {
            about_to.count_down();
            // SAFETY: it was armed by this queue, and nothing else disarms it.
            let in_time = unsafe { queue.disarm(ArmedTimer::new(NonNull::from(two).cast())) };
            (in_time, two.ended.load(Ordering::Acquire))
        });
        disarms.wait();
        // `disarm` is about to wait for the call, which cannot be observed. If it did not wait, it would have
        // time to return.
        (0..if cfg!(miri) { 100 } else { 1000 }).for_each(|_| thread::yield_now());
        two.may_end.count_down();
        calls_second.join().unwrap();
        assert_eq!(disarmed.join().unwrap(), (false, true), "`disarm` returned during the call");
    });
    // The list of calls must not point to a stack frame that is gone: under Miri this walks it.
    // SAFETY: both are freed at the end of the test.
    assert!(!unsafe { queue.disarm(ArmedTimer::new(first.cast())) });
    for long in [first, second] {
        // SAFETY: it comes from a box, and no queue points to it any more.
        drop(unsafe { Box::from_raw(long.as_ptr()) });
    }
}

#[test]
fn a_clock_moved_by_two_threads_calls_each_timer_once_and_does_not_go_back() {
    let clockwork = Clockwork::new();
    let begin = clockwork.now();
    let slept = Arc::new(AtomicUsize::new(0));
    let count: u64 = if cfg!(miri) { 10 } else { 200 };
    let running: Vec<_> = (0..count)
        .map(|n| {
            let slept = slept.clone();
            launch(&clockwork).start(async move {
                sleep(Duration::from_secs(n)).await;
                slept.fetch_add(1, Ordering::Relaxed);
            })
        })
        .collect();
    thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| {
                let mut before = clockwork.now();
                for _ in 0..count {
                    clockwork.advance(Duration::from_secs(1));
                    let now = clockwork.now();
                    assert!(now >= before, "the clock went back");
                    before = now;
                }
            });
        }
    });
    assert!(clockwork.now() >= begin + Duration::from_secs(count));
    clockwork.advance(Duration::ZERO);
    assert_eq!(slept.load(Ordering::Relaxed), running.len());
    assert!(running.into_iter().all(|running| running.wait() == Outcome::Value(())));
}
