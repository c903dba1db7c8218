//! The timer queue, compared with a simple model: random arms, disarms and checks, with times from
//! nanoseconds to centuries apart. A failure names its seed; `CONVOKE_SEED=n` starts with that one.

#![allow(unsafe_code)]
use std::collections::{BTreeMap, BTreeSet};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use convoke_core::raw::{ArmedTimer, Call, IdleTimer, Random, Timer};
use convoke_exec::raw::{AfterArm, TimerQueue};

const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// A timer that records its number.
#[repr(C)]
struct Numbered {
    // The first field, so that a pointer to it is a pointer to the whole.
    timer: Timer,
    number: usize,
    calls: Arc<Mutex<Vec<usize>>>,
}

/// Records the call of a timer.
///
/// # Safety
/// Called by the queue, with the timer of a `Numbered`.
unsafe fn note(timer: NonNull<Timer>, _: Call) {
    // SAFETY: the timer is the first field (`repr(C)`) of a `Numbered`, as the caller promises.
    let numbered = unsafe { timer.cast::<Numbered>().as_ref() };
    numbered.calls.lock().unwrap().push(numbered.number);
}

/// Returns a random number of nanoseconds with at most `bits` bits. All sizes are equally likely.
fn span(random: &mut Random, bits: u32) -> Duration {
    let bits = random.draw() % u64::from(bits + 1);
    Duration::from_nanos(random.draw() & ((1 << bits) - 1))
}

/// A queue and its model.
struct Pair {
    queue: TimerQueue,
    timers: Vec<NonNull<Numbered>>,
    calls: Arc<Mutex<Vec<usize>>>,
    /// Time and sequence number of each armed timer, in order, with its number.
    model: BTreeMap<(Instant, u64), usize>,
    waiting: BTreeMap<usize, (Instant, u64)>,
    /// Timers for durations that start at the next check: number, sequence number and duration.
    unstarted: Vec<(usize, u64, Duration)>,
    idle: BTreeSet<usize>,
    armed: u64,
    now: Instant,
}

impl Pair {
    fn new(count: usize) -> Self {
        let calls = Arc::default();
        let make = |number| Numbered { timer: Timer::new(note), number, calls: Arc::clone(&calls) };
        let timers = (0..count).map(|number| NonNull::from(Box::leak(Box::new(make(number))))).collect();
        Self {
            queue: TimerQueue::new(),
            timers,
            calls: calls.clone(),
            model: BTreeMap::new(),
            waiting: BTreeMap::new(),
            unstarted: Vec::new(),
            idle: (0..count).collect(),
            armed: 0,
            now: Instant::now(),
        }
    }

    fn earliest(&self) -> Option<Instant> {
        self.model.keys().next().map(|(at, _)| *at)
    }

    /// Arms an idle timer; some for the time of another one, some for a time in the past.
    fn arm(&mut self, random: &mut Random) {
        let Some(number) = self.idle.pop_first() else { return };
        let others = random.below(self.model.len().max(1));
        let at = match random.below(8) {
            0 => self.model.keys().nth(others).map_or(self.now, |(at, _)| *at),
            1 => self.now - span(random, 40),
            _ => self.now + span(random, 60),
        };
        let is_earlier = self.earliest().is_none_or(|earliest| at < earliest);
        self.armed += 1;
        self.model.insert((at, self.armed), number);
        self.waiting.insert(number, (at, self.armed));
        // SAFETY: the timer is freed when we are dropped, and it is idle.
        let after = unsafe { self.queue.arm(IdleTimer::new(self.timers[number].cast()), at) };
        // A thread that sleeps until an earlier time, whose timer was disarmed since, need not be woken;
        // otherwise it must be.
        assert!(is_earlier || after == AfterArm::Waits);
        assert!(self.queue.next_check().is_some());
    }

    /// Arms an idle timer for a duration that starts at the next check; some for the duration of another one.
    fn arm_at_next_check(&mut self, random: &mut Random) {
        let Some(number) = self.idle.pop_first() else { return };
        let duration = match self.unstarted.last() {
            Some((.., duration)) if random.below(4) == 0 => *duration,
            _ => span(random, 58),
        };
        self.armed += 1;
        self.unstarted.push((number, self.armed, duration));
        // SAFETY: the timer is freed when we are dropped, and it is idle.
        unsafe { self.queue.arm_at_next_check(IdleTimer::new(self.timers[number].cast()), duration) };
        // SAFETY: it is armed by this queue.
        assert_eq!(unsafe { self.queue.known_time(ArmedTimer::new(self.timers[number].cast())) }, None);
    }

    /// Starts the durations that wait for a check.
    fn settle(&mut self) {
        for (number, armed, duration) in self.unstarted.drain(..) {
            let key = (self.now + duration, armed);
            self.model.insert(key, number);
            self.waiting.insert(number, key);
        }
    }

    fn disarm_unstarted(&mut self, random: &mut Random) {
        let Some(last) = self.unstarted.len().checked_sub(1) else { return };
        let (number, ..) = self.unstarted.remove(random.below(last + 1));
        self.idle.insert(number);
        // SAFETY: it is armed by this queue, and only we disarm it.
        assert!(unsafe { self.queue.disarm(ArmedTimer::new(self.timers[number].cast())) });
    }

    fn disarm(&mut self, random: &mut Random) {
        let Some(index) = self.waiting.len().checked_sub(1).map(|last| random.below(last + 1)) else {
            return;
        };
        // Often the earliest one: the next one is not known then.
        let number = match random.below(3) {
            0 => self.model.values().next().copied(),
            _ => self.waiting.keys().nth(index).copied(),
        };
        let number = number.expect("a timer is armed");
        let key = self.waiting.remove(&number).expect("the timer is armed");
        self.model.remove(&key);
        self.idle.insert(number);
        // SAFETY: it is armed by this queue, and only we disarm it.
        assert!(unsafe { self.queue.disarm(ArmedTimer::new(self.timers[number].cast())) });
    }

    /// Moves the clock: by some span, to the earliest timer, or to where a sleeping thread would wake.
    fn advance(&mut self, random: &mut Random) {
        let to = match random.below(4) {
            0 => self.queue.earliest(),
            1 => self.queue.next_check(),
            2 => Some(self.now + span(random, 30)),
            _ => Some(self.now + span(random, 58)),
        };
        self.now = to.unwrap_or(self.now).max(self.now);
        // Calling due timers starts the durations too.
        if random.below(4) == 0 {
            self.queue.settle(|| self.now);
            self.settle();
            for (number, (at, _)) in self.waiting.iter().take(3) {
                // SAFETY: it is armed by this queue.
                let timer = unsafe { ArmedTimer::new(self.timers[*number].cast()) };
                assert_eq!(self.queue.known_time(timer), Some(*at));
            }
        }
        self.settle();
        // Sometimes only some of the due timers.
        let limit = if random.below(4) == 0 { 1 + random.below(3) } else { usize::MAX };
        let mut expected = Vec::new();
        while expected.len() < limit
            && let Some(first) = self.model.first_entry()
            && first.key().0 <= self.now
        {
            expected.push(first.remove());
        }
        for number in &expected {
            self.waiting.remove(number);
            self.idle.insert(*number);
        }
        assert_eq!(self.queue.call_some_due(self.now, limit), expected.len());
        assert_eq!(std::mem::take(&mut *self.calls.lock().unwrap()), expected);
    }

    fn check(&self, random: &mut Random) {
        assert_eq!(self.queue.is_empty(), self.model.is_empty() && self.unstarted.is_empty());
        // A thread that wakes when it is told to is never later than the time that close timers share.
        let pause = Duration::from_micros(263);
        if let (Some(look), Some(earliest)) = (self.queue.next_check(), self.earliest()) {
            assert!(look <= earliest.max(self.now) + pause, "{look:?} is after {earliest:?}");
        }
        // Not always: asking computes it.
        if random.below(4) == 0 {
            assert_eq!(self.queue.earliest(), self.earliest());
        }
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        self.queue.close();
        for timer in &self.timers {
            // SAFETY: it comes from a box, and no queue points to it any more.
            drop(unsafe { Box::from_raw(timer.as_ptr()) });
        }
    }
}

fn run(seed: u64, count: usize, steps: usize) {
    let mut random = Random::new(seed);
    let mut pair = Pair::new(count);
    let begin = pair.now;
    for _ in 0..steps {
        // The queue distinguishes times for two centuries, which is enough for one run.
        if pair.now - begin > CENTURY {
            break;
        }
        match random.below(12) {
            0..=3 => pair.arm(&mut random),
            4 | 5 => pair.arm_at_next_check(&mut random),
            6 | 7 => pair.disarm(&mut random),
            8 => pair.disarm_unstarted(&mut random),
            _ => pair.advance(&mut random),
        }
        pair.check(&mut random);
    }
    pair.queue.settle(|| pair.now);
    pair.settle();
    let rest: Vec<_> = pair.model.values().copied().collect();
    pair.queue.close();
    assert_eq!(
        std::mem::take(&mut *pair.calls.lock().unwrap()),
        rest,
        "closing must stop all timers, in order"
    );
}

/// Prints the seed if the run fails.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("replay with CONVOKE_SEED={}", self.0);
        }
    }
}

fn seeds(count: u64) -> impl Iterator<Item = u64> {
    let first = std::env::var("CONVOKE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    first..first + count
}

#[test]
fn a_few_timers_are_called_as_the_model_says() {
    for seed in seeds(if cfg!(miri) { 2 } else { 150 }) {
        let _seed = Seed(seed);
        run(seed, 6, 400);
    }
}

#[test]
fn hundreds_of_timers_are_called_as_the_model_says() {
    let (timers, steps) = if cfg!(miri) { (20, 80) } else { (500, 3000) };
    for seed in seeds(if cfg!(miri) { 1 } else { 8 }) {
        let _seed = Seed(seed);
        run(seed, timers, steps);
    }
}
