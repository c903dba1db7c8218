//! The queue of timers beside a model of it that is too simple to be wrong: random arms, takings back and looks, with times
//! from nanoseconds to centuries apart. A failure names its seed; `CONVOKE_SEED=n` begins with that one.

#![allow(unsafe_code)]
use std::collections::{BTreeMap, BTreeSet};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use convoke_core::raw::{Call, Random, Timer};
use convoke_exec::raw::{AfterArm, TimerQueue};

const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// A timer that notes down its number.
#[repr(C)]
struct Numbered {
    // First, so that a pointer to it is a pointer to all of it.
    timer: Timer,
    number: usize,
    calls: Arc<Mutex<Vec<usize>>>,
}

/// # Safety
/// By the queue, with the timer of a `Numbered`.
unsafe fn note(timer: NonNull<Timer>, _: Call) {
    // SAFETY: the timer is the first field (`repr(C)`).
    let numbered = unsafe { timer.cast::<Numbered>().as_ref() };
    numbered.calls.lock().unwrap().push(numbered.number);
}

/// Any number of nanoseconds of so many bits at most: all sizes are as likely.
fn span(random: &mut Random, bits: u32) -> Duration {
    let bits = random.draw() % u64::from(bits + 1);
    Duration::from_nanos(random.draw() & ((1 << bits) - 1))
}

/// A queue, and what it should be.
struct Pair {
    queue: TimerQueue,
    timers: Vec<NonNull<Numbered>>,
    calls: Arc<Mutex<Vec<usize>>>,
    /// Times, in their order, with the order of arming, and who waits for them.
    model: BTreeMap<(Instant, u64), usize>,
    waiting: BTreeMap<usize, (Instant, u64)>,
    /// Those for whom a while begins at the next look: their number, the order of arming, and the while.
    fresh: Vec<(usize, u64, Duration)>,
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
            fresh: Vec::new(),
            idle: (0..count).collect(),
            armed: 0,
            now: Instant::now(),
        }
    }

    fn earliest(&self) -> Option<Instant> {
        self.model.keys().next().map(|(at, _)| *at)
    }

    /// Arms one that is idle; some for a time that others wait for, some for one that has passed.
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
        // SAFETY: it stays until we are dropped, and was idle.
        let after = unsafe { self.queue.arm(self.timers[number].cast(), at) };
        // Nobody needs to be told of one who sleeps until an earlier time that was taken back since; otherwise he does.
        assert!(is_earlier || after == AfterArm::Waits);
        assert!(self.queue.next_look().is_some());
    }

    /// Arms one that is idle for a while that begins at the next look; some for one that others wait for.
    fn arm_at_next_look(&mut self, random: &mut Random) {
        let Some(number) = self.idle.pop_first() else { return };
        let duration = match self.fresh.last() {
            Some((.., duration)) if random.below(4) == 0 => *duration,
            _ => span(random, 58),
        };
        self.armed += 1;
        self.fresh.push((number, self.armed, duration));
        // SAFETY: it stays until we are dropped, and was idle.
        unsafe { self.queue.arm_at_next_look(self.timers[number].cast(), duration) };
        // SAFETY: it is armed.
        assert_eq!(unsafe { self.queue.known_time(self.timers[number].cast()) }, None);
    }

    /// For the fresh ones the while begins now.
    fn settle(&mut self) {
        for (number, armed, duration) in self.fresh.drain(..) {
            let key = (self.now + duration, armed);
            self.model.insert(key, number);
            self.waiting.insert(number, key);
        }
    }

    fn disarm_fresh(&mut self, random: &mut Random) {
        let Some(last) = self.fresh.len().checked_sub(1) else { return };
        let (number, ..) = self.fresh.remove(random.below(last + 1));
        self.idle.insert(number);
        // SAFETY: it is armed; we are the only ones to disarm it.
        assert!(unsafe { self.queue.disarm(self.timers[number].cast()) });
    }

    fn disarm(&mut self, random: &mut Random) {
        let Some(index) = self.waiting.len().checked_sub(1).map(|last| random.below(last + 1)) else {
            return;
        };
        // The earliest, often: the next is not known then.
        let number = match random.below(3) {
            0 => self.model.values().next().copied(),
            _ => self.waiting.keys().nth(index).copied(),
        };
        let number = number.expect("somebody waits");
        let key = self.waiting.remove(&number).expect("he waits");
        self.model.remove(&key);
        self.idle.insert(number);
        // SAFETY: it is armed; we are the only ones to disarm it.
        assert!(unsafe { self.queue.disarm(self.timers[number].cast()) });
    }

    /// The clock jumps: by some span, or to the earliest, or to where a sleeper would wake.
    fn look(&mut self, random: &mut Random) {
        let to = match random.below(4) {
            0 => self.queue.earliest(),
            1 => self.queue.next_look(),
            2 => Some(self.now + span(random, 30)),
            _ => Some(self.now + span(random, 58)),
        };
        self.now = to.unwrap_or(self.now).max(self.now);
        // A look does it too.
        if random.below(4) == 0 {
            self.queue.settle(|| self.now);
            self.settle();
            for (number, (at, _)) in self.waiting.iter().take(3) {
                // SAFETY: it is armed.
                assert_eq!(unsafe { self.queue.known_time(self.timers[*number].cast()) }, Some(*at));
            }
        }
        self.settle();
        // Some at a time, in some looks.
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
        assert_eq!(self.queue.is_empty(), self.model.is_empty() && self.fresh.is_empty());
        // A sleeper who looks when he is told to is never later than the pause that many share.
        let pause = Duration::from_micros(263);
        if let (Some(look), Some(earliest)) = (self.queue.next_look(), self.earliest()) {
            assert!(look <= earliest.max(self.now) + pause, "{look:?} is after {earliest:?}");
        }
        // Not always: to ask makes it known.
        if random.below(4) == 0 {
            assert_eq!(self.queue.earliest(), self.earliest());
        }
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        self.queue.close();
        for timer in &self.timers {
            // SAFETY: it came from a box, and no queue knows of it any more.
            drop(unsafe { Box::from_raw(timer.as_ptr()) });
        }
    }
}

fn run(seed: u64, count: usize, steps: usize) {
    let mut random = Random::new(seed);
    let mut pair = Pair::new(count);
    let begin = pair.now;
    for _ in 0..steps {
        // Times are told apart for two centuries; that is enough for one run.
        if pair.now - begin > CENTURY {
            break;
        }
        match random.below(12) {
            0..=3 => pair.arm(&mut random),
            4 | 5 => pair.arm_at_next_look(&mut random),
            6 | 7 => pair.disarm(&mut random),
            8 => pair.disarm_fresh(&mut random),
            _ => pair.look(&mut random),
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
        "the end comes to all, in their order"
    );
}

/// Says the seed if the run fails.
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
    for seed in seeds(if cfg!(miri) { 3 } else { 150 }) {
        let _seed = Seed(seed);
        run(seed, 6, 400);
    }
}

#[test]
fn hundreds_of_timers_are_called_as_the_model_says() {
    let (timers, steps) = if cfg!(miri) { (50, 200) } else { (500, 3000) };
    for seed in seeds(if cfg!(miri) { 1 } else { 8 }) {
        let _seed = Seed(seed);
        run(seed, timers, steps);
    }
}
