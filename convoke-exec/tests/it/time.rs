//! Tests of sleeping and deadlines: with a manual clock where that suffices, else on loops and pools.
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use convoke_core::env::Changes;
use convoke_core::raw::Random;
use convoke_core::testing::ByHand;
use convoke_exec::time::{sleep, sleep_until, timers_of};
use convoke_exec::{RunLoop, Strand, ThreadPool};
use convoke_sender::Completes;
use convoke_sender::prelude::*;
use convoke_sender::testing::{Connected, Gate, all_outcomes, completes_of, stopped_env};
use convoke_sender::{deadline_after, deadline_at};
use convoke_sender::{sync_wait, sync_wait_with};
use convoke_testing::Clockwork;

const HOUR: Duration = Duration::from_secs(3600);
const SECOND: Duration = Duration::from_secs(1);

/// Creates an environment on this executor that stops with this source.
fn env_on(executor: &impl Executor, source: &StopSource) -> Env {
    Env::from(executor.clone()).with(Changes::new().stop_token(source.token()))
}

#[test]
fn a_sleep_ends_at_its_time_and_not_before() {
    let clock = Clockwork::new();
    let running = Connected::with_env(sleep(HOUR), Env::from(clock.clone())).start();
    clock.advance(HOUR - Duration::from_nanos(1));
    assert!(!running.is_complete());
    clock.advance(Duration::from_nanos(1));
    assert_eq!(running.outcome(), Outcome::Value(()));
}

#[test]
fn a_duration_counts_from_the_start_and_not_from_the_creation() {
    let clock = Clockwork::new();
    let late = Connected::with_env(sleep(SECOND), Env::from(clock.clone()));
    clock.advance(HOUR);
    let late = late.start();
    assert!(!late.is_complete());
    clock.advance(SECOND);
    assert_eq!(late.outcome(), Outcome::Value(()));
}

#[test]
fn a_time_in_the_past_completes_at_once() {
    let clock = Clockwork::new();
    for sender in [sleep_until(clock.now()), sleep(Duration::ZERO)] {
        let running = Connected::with_env(sender, Env::from(clock.clone())).start();
        assert_eq!(running.outcome(), Outcome::Value(()));
    }
    assert_eq!(clock.run_ready(), 0);
}

#[test]
fn a_stop_before_the_start_completes_at_once_and_a_later_one_on_the_executor() {
    let running = Connected::with_env(sleep(HOUR), stopped_env()).start();
    assert_eq!(running.outcome(), Outcome::Stopped);
    let (clock, source) = (Clockwork::new(), StopSource::new());
    let running = Connected::with_env(sleep(HOUR), env_on(&clock, &source)).start();
    source.request_stop(StopReason::Requested);
    assert!(!running.is_complete(), "it must complete through the queue");
    assert_eq!(clock.run_ready(), 1);
    assert_eq!(running.outcome(), Outcome::Stopped);
    assert_eq!(clock.advance(2 * HOUR), 0, "its timer was not disarmed");
}

#[test]
fn an_endless_sleep_is_ended_by_a_stop() {
    let (clock, source) = (Clockwork::new(), StopSource::new());
    let running = Connected::with_env(sleep(Duration::MAX), env_on(&clock, &source)).start();
    clock.advance(HOUR);
    assert!(!running.is_complete());
    source.request_stop(StopReason::Requested);
    clock.run_ready();
    assert_eq!(running.outcome(), Outcome::Stopped);
}

#[test]
fn timers_that_are_closed_stop_waiting_and_later_work() {
    let clock = Clockwork::new();
    let before = Connected::with_env(sleep(HOUR), Env::from(clock.clone())).start();
    clock.close();
    let after = Connected::with_env(sleep(HOUR), Env::from(clock.clone())).start();
    clock.run_ready();
    assert_eq!((before.outcome(), after.outcome()), (Outcome::Stopped, Outcome::Stopped));
}

#[test]
fn dropping_an_unstarted_sleep_does_nothing() {
    let clock = Clockwork::new();
    drop(Connected::with_env(sleep(SECOND), Env::from(clock.clone())));
    drop(Connected::with_env(deadline_after(SECOND, sleep(SECOND)), Env::from(clock.clone())));
    assert_eq!(clock.advance(HOUR), 0);
}

#[test]
fn its_completion_properties_are_known() {
    assert_eq!(completes_of(&sleep(SECOND)), Completes::Here);
}

#[test]
fn waiting_for_a_sleep_does_not_return_before_its_time() {
    let at = Instant::now() + Duration::from_millis(3);
    assert_eq!(sync_wait(sleep_until(at)), Outcome::Value(()));
    assert!(Instant::now() >= at);
}

#[test]
fn sleeps_end_in_the_order_of_their_times_and_ties_in_the_order_of_their_start() {
    let (clock, order) = (Clockwork::new(), Arc::new(Mutex::new(Vec::new())));
    let start = clock.now();
    let wait = |name: &'static str, seconds| {
        let order = order.clone();
        let sender = sleep_until(start + seconds * SECOND).then(move |()| order.lock().unwrap().push(name));
        Connected::with_env(sender, Env::from(clock.clone())).start()
    };
    let running = [wait("third", 2), wait("first", 1), wait("fourth", 2), wait("second", 1)];
    clock.advance(HOUR);
    assert_eq!(*order.lock().unwrap(), ["first", "second", "third", "fourth"]);
    for running in running {
        assert_eq!(running.outcome(), Outcome::Value(()));
    }
}

#[test]
fn a_sleeping_loop_is_woken_for_an_earlier_time_from_another_thread() {
    let run_loop = RunLoop::new();
    let executor = run_loop.executor();
    let source = StopSource::new();
    let far = Connected::with_env(sleep(HOUR), env_on(&executor, &source)).start();
    thread::scope(|threads| {
        threads.spawn(|| {
            let (mut soon, mut waited) = (Duration::from_millis(2), 0);
            while waited < 20 {
                let at = Instant::now() + soon;
                // Armed by this thread, called by the loop's.
                let on_loop = sleep_until(at).then(|()| thread::current().id());
                let here = thread::current().id();
                let outcome = sync_wait_with(Changes::new().executor(executor.clone()), on_loop);
                assert!(Instant::now() >= at);
                if outcome == Outcome::Value(here) {
                    // On a slow machine its time had passed before it was armed, and the loop was not
                    // involved.
                    soon *= 2;
                } else {
                    waited += 1;
                }
            }
            executor.finish();
        });
        run_loop.run();
    });
    assert!(!far.is_complete());
    source.request_stop(StopReason::Requested);
    run_loop.run_ready();
    assert_eq!(far.outcome(), Outcome::Stopped);
}

#[test]
fn a_loop_that_is_dropped_stops_waiting_work() {
    let run_loop = RunLoop::new();
    let running = Connected::with_env(sleep(HOUR), Env::from(run_loop.executor())).start();
    drop(run_loop);
    assert_eq!(running.outcome(), Outcome::Stopped);
}

#[test]
fn work_on_a_pool_wakes_on_the_pool() {
    let pool = ThreadPool::new(2).unwrap();
    let name = || thread::current().name().map(str::to_owned);
    let on_pool = sync_wait(schedule(&pool.executor()).then(move |()| name())).unwrap();
    let prefix =
        |name: Option<String>| name.unwrap().trim_end_matches(|c: char| c.is_ascii_digit()).to_owned();
    for _ in 0..20 {
        let at = Instant::now() + Duration::from_millis(1);
        let woken = sleep_until(at).then(move |()| name()).starts_on(&pool.executor());
        let woken = sync_wait(woken).unwrap();
        assert!(Instant::now() >= at);
        assert_eq!(prefix(woken), prefix(on_pool.clone()));
    }
}

#[test]
fn work_on_a_strand_wakes_on_the_strand_whatever_is_below_it() {
    let pool = ThreadPool::new(2).unwrap();
    let over_pool = Strand::new(pool.executor());
    let there = {
        let strand = over_pool.clone();
        sleep(Duration::from_millis(1)).then(move |()| strand.is_running_here())
    };
    assert_eq!(sync_wait(there.starts_on(&over_pool)), Outcome::Value(true));

    let clock = Clockwork::new();
    let over_clock = Strand::new(clock.clone());
    let strand = over_clock.clone();
    let there = sleep(SECOND).then(move |()| strand.is_running_here());
    let running = Connected::with_env(there, Env::from(over_clock)).start();
    clock.advance(SECOND);
    assert_eq!(running.outcome(), Outcome::Value(true));
}

#[test]
fn an_executor_without_timers_uses_the_timer_thread_of_the_process() {
    let by_hand = ByHand::new();
    let timers = |env: &Env| std::ptr::from_ref(timers_of(env)).cast::<()>();
    let pool = ThreadPool::new(1).unwrap();
    assert_eq!(timers(&Env::from(by_hand.clone())), timers(&Env::from(pool.executor())));
    let run_loop = RunLoop::new();
    assert_ne!(timers(&Env::from(run_loop.executor())), timers(&Env::from(by_hand)));
    let name = sleep(Duration::from_millis(1)).then(|()| thread::current().name().map(str::to_owned));
    let outcome = Connected::with_env(name, Env::from(pool.executor())).start().wait();
    let Outcome::Value(name) = outcome else { panic!("{outcome:?}") };
    assert_ne!(name.as_deref(), Some("convoke-timers"), "user code does not run on the thread of the timers");
    let inline = Connected::new(sleep(Duration::from_millis(1))).start().wait();
    assert!(matches!(inline, Outcome::Panicked(_)), "no thread could run it: {inline:?}");
}

/// Counts the sleeps that were as long as requested.
#[derive(Default)]
struct Slept {
    count: Mutex<usize>,
    grew: Condvar,
}

impl Slept {
    fn one_more(&self) {
        *self.count.lock().unwrap() += 1;
        self.grew.notify_all();
    }

    fn wait_for(&self, count: usize) {
        drop(self.grew.wait_while(self.count.lock().unwrap(), |slept| *slept < count).unwrap());
    }
}

/// Runs many sleeps with random times, half of them stopped by two other threads, which keep pace with the
/// rest.
fn many_sleeps_against_stops(executor: &impl Executor, seed: u64) -> (usize, usize) {
    const COUNT: usize = if cfg!(miri) { 30 } else { 2000 };
    let mut random = Random::new(seed);
    let start = Instant::now();
    let (values, stopped) = (Arc::new(Slept::default()), Arc::new(AtomicUsize::new(0)));
    let mut sources = [Vec::new(), Vec::new()];
    let mut running = Vec::new();
    for number in 0..COUNT {
        let at = start + Duration::from_micros(random.draw() % 20_000);
        let source = StopSource::new();
        let (values, stopped) = (values.clone(), stopped.clone());
        let sender = sleep_until(at)
            .then(move |()| {
                assert!(Instant::now() >= at, "it ended before its time");
                values.one_more();
            })
            .upon_stopped(move || {
                stopped.fetch_add(1, Ordering::Relaxed);
            });
        running.push(Connected::with_env(sender, env_on(executor, &source)).start());
        if random.one_in(2) {
            sources[number % 2].push(source);
        }
    }
    let unstopped = COUNT - sources.iter().map(Vec::len).sum::<usize>();
    thread::scope(|threads| {
        for sources in sources {
            let values = &values;
            threads.spawn(move || {
                let requests = sources.len();
                for (request, source) in sources.into_iter().enumerate() {
                    values.wait_for(unstopped * request / requests);
                    source.request_stop(StopReason::Requested);
                }
            });
        }
    });
    for running in running {
        assert_eq!(running.wait(), Outcome::Value(()));
    }
    let seen = (*values.count.lock().unwrap(), stopped.load(Ordering::Relaxed));
    assert_eq!(seen.0 + seen.1, COUNT);
    seen
}

#[test]
fn thousands_of_sleeps_end_once_each_by_their_time_or_by_a_stop() {
    let seed = std::env::var("CONVOKE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    println!("CONVOKE_SEED={seed}");
    let pool = ThreadPool::new(2).unwrap();
    println!("pool, value and stopped: {:?}", many_sleeps_against_stops(&pool.executor(), seed));
    let run_loop = RunLoop::new();
    let executor = run_loop.executor();
    thread::scope(|threads| {
        threads.spawn(|| {
            println!("loop, value and stopped: {:?}", many_sleeps_against_stops(&executor, seed));
            executor.finish();
        });
        run_loop.run();
    });
}

#[test]
fn a_deadline_that_is_met_passes_every_outcome_on() {
    for (outcome, sender) in all_outcomes(1, "e") {
        let clock = Clockwork::new();
        let running = Connected::with_env(deadline_after(SECOND, sender), Env::from(clock.clone())).start();
        clock.run_ready();
        assert_eq!(running.outcome(), outcome);
        assert_eq!(clock.advance(HOUR), 0, "a timer was left behind");
    }
}

#[test]
fn a_deadline_that_passes_stops_the_work_with_its_reason_and_waits_for_it() {
    let (clock, gate) = (Clockwork::new(), Gate::<i32>::new());
    let running = Connected::with_env(deadline_after(SECOND, gate.deaf()), Env::from(clock.clone())).start();
    let honest = never().let_stopped(|| read_env(|env| (env.stop().reason(), env.stop().deadline())));
    let at = clock.now() + SECOND;
    let told = Connected::with_env(deadline_at(at, honest), Env::from(clock.clone())).start();
    clock.advance(SECOND);
    assert_eq!(told.outcome(), Outcome::Value((Some(StopReason::Deadline), Some(at))));
    assert!(!running.is_complete(), "work that ignores the stop runs to its own end");
    gate.complete(Outcome::Value(7));
    assert_eq!(running.outcome(), Outcome::Value(7));
}

#[test]
fn the_nearer_deadline_counts_even_if_the_outer_one_is_only_announced() {
    let clock = Clockwork::new();
    let near = clock.now() + SECOND;
    let look = || read_env(|env| (env.stop().reason(), env.stop().deadline()));
    let inner_is_near = deadline_after(HOUR, deadline_at(near, never().let_stopped(look)));
    let outer_is_near = deadline_at(near, deadline_after(HOUR, never().let_stopped(look)));
    let announced = StopSource::with_deadline(near);
    let only_announced = deadline_after(HOUR, never().let_stopped(look));
    let running = [
        Connected::with_env(inner_is_near.boxed(), Env::from(clock.clone())).start(),
        Connected::with_env(outer_is_near.boxed(), Env::from(clock.clone())).start(),
        Connected::with_env(only_announced.boxed(), env_on(&clock, &announced)).start(),
    ];
    clock.advance(SECOND - Duration::from_nanos(1));
    assert!(running.iter().all(|running| !running.is_complete()));
    clock.advance(Duration::from_nanos(1));
    for running in running {
        assert_eq!(running.outcome(), Outcome::Value((Some(StopReason::Deadline), Some(near))));
    }
    assert!(!announced.stop_requested(), "an inner deadline must not stop the outer work");
}

#[test]
fn an_outer_stop_reaches_the_work_with_its_reason() {
    let (clock, source) = (Clockwork::new(), StopSource::new());
    let work = never().let_stopped(|| read_env(|env| env.stop().reason()));
    let running = Connected::with_env(deadline_after(SECOND, work), env_on(&clock, &source)).start();
    source.request_stop(StopReason::Shutdown);
    clock.run_ready();
    assert_eq!(running.outcome(), Outcome::Value(Some(StopReason::Shutdown)));
}

#[test]
fn work_whose_deadline_has_passed_starts_with_a_stop_requested() {
    let clock = Clockwork::new();
    let work = read_env(|env| env.stop().reason());
    let running = Connected::with_env(deadline_at(clock.now(), work), Env::from(clock.clone())).start();
    clock.run_ready();
    assert_eq!(running.outcome(), Outcome::Value(Some(StopReason::Deadline)));
}

#[test]
fn an_endless_deadline_never_comes() {
    let clock = Clockwork::new();
    let gate = Gate::<i32>::new();
    let running =
        Connected::with_env(deadline_after(Duration::MAX, gate.sender()), Env::from(clock.clone())).start();
    clock.advance(HOUR);
    assert_eq!(gate.asked_to_stop(), None);
    gate.complete(Outcome::Value(1));
    clock.run_ready();
    assert_eq!(running.outcome(), Outcome::Value(1));
}

#[test]
fn an_executor_that_panics_when_a_sleep_is_posted_stops_only_that_sleep() {
    /// Has no timers, and takes no work.
    #[derive(Clone, PartialEq)]
    struct Refuses;

    impl Executor for Refuses {
        fn post(&self, _: convoke_core::raw::Runnable) {
            panic!("takes no work");
        }
    }

    // The thread that calls its timer serves all executors without timers: the panic must not end it, nor the
    // process.
    for _ in 0..2 {
        let refused = Connected::with_env(sleep(Duration::from_millis(1)), Env::from(Refuses)).start();
        while !refused.is_complete() {
            thread::yield_now();
        }
        assert_eq!(refused.outcome(), Outcome::Stopped);
    }
    let source = StopSource::new();
    let sleeps = Connected::with_env(sleep(HOUR), env_on(&Refuses, &source)).start();
    source.request_stop(StopReason::Requested);
    assert_eq!(sleeps.outcome(), Outcome::Stopped);
}
