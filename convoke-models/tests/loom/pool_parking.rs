//! The parking of the pool's workers and the outside queue, in all interleavings: no worker sleeps while
//! there is work, no work is lost in the queue, and each outcome of each race is reached.
use std::sync::Arc as StdArc;
use std::sync::atomic::{AtomicUsize as StdUsize, Ordering::Relaxed as R};

use crate::model::{Reached, explore};
use convoke_core::raw::sync::atomic::{AtomicUsize, Ordering};
use convoke_core::raw::sync::{Arc, thread};
use convoke_core::raw::{Call, Runnable};
use convoke_exec::Priority;
use convoke_exec::raw::{Injector, PoolGate, Priorities, Sleepers};
use convoke_testing::runnable;

/// Takes one piece of the published work, as a worker does from a queue.
fn take(work: &AtomicUsize) -> bool {
    work.fetch_update(Ordering::AcqRel, Ordering::Acquire, |work| work.checked_sub(1)).is_ok()
}

/// A worker of the pool, reduced to its parking: takes one piece of work.
fn worker(sleepers: &Sleepers, index: usize, work: &AtomicUsize, woken: &Reached, saw_it: &Reached) {
    let mut permit = None;
    loop {
        permit = permit.or_else(|| sleepers.search());
        if take(work) {
            if let Some(permit) = permit {
                sleepers.found(permit, || work.load(Ordering::Acquire) > 0);
            }
            return;
        }
        permit = sleepers.sleep(index, permit, || work.load(Ordering::Acquire) > 0);
        if permit.is_some() { woken.here() } else { saw_it.here() }
    }
}

#[test]
fn a_post_and_a_worker_on_its_way_to_sleep_do_not_miss_each_other() {
    static WOKEN: Reached = Reached::new();
    static SAW_IT: Reached = Reached::new();
    explore(5, || {
        let sleepers = Arc::new(Sleepers::new(1));
        let work = Arc::new(AtomicUsize::new(0));
        let there = {
            let (sleepers, work) = (sleepers.clone(), work.clone());
            thread::spawn(move || worker(&sleepers, 0, &work, &WOKEN, &SAW_IT))
        };
        work.fetch_add(1, Ordering::Release);
        sleepers.notify();
        there.join().unwrap();
    });
    WOKEN.assert("a sleeper was woken");
    SAW_IT.assert("it was seen before the sleep");
}

#[test]
fn two_posts_and_two_workers_all_come_to_an_end() {
    static WOKEN: Reached = Reached::new();
    static SAW_IT: Reached = Reached::new();
    explore(2, || {
        let sleepers = Arc::new(Sleepers::new(2));
        let work = Arc::new(AtomicUsize::new(0));
        let there = [0, 1].map(|index| {
            let (sleepers, work) = (sleepers.clone(), work.clone());
            thread::spawn(move || worker(&sleepers, index, &work, &WOKEN, &SAW_IT))
        });
        for _ in 0..2 {
            work.fetch_add(1, Ordering::Release);
            sleepers.notify();
        }
        there.into_iter().for_each(|there| there.join().unwrap());
    });
    WOKEN.assert("a sleeper was woken");
    SAW_IT.assert("it was seen before the sleep");
}

#[test]
fn the_end_reaches_a_worker_awake_or_asleep() {
    static WOKEN: Reached = Reached::new();
    static SAW_IT: Reached = Reached::new();
    explore(5, || {
        let sleepers = Arc::new(Sleepers::new(2));
        let stopping = Arc::new(AtomicUsize::new(0));
        let there = {
            let (sleepers, stopping) = (sleepers.clone(), stopping.clone());
            thread::spawn(move || {
                while stopping.load(Ordering::Relaxed) == 0 {
                    let permit = sleepers.search();
                    let any = || stopping.load(Ordering::Relaxed) > 0;
                    let woken = sleepers.sleep(0, permit, any).is_some();
                    if woken { WOKEN.here() } else { SAW_IT.here() }
                }
            })
        };
        stopping.store(1, Ordering::Relaxed);
        sleepers.wake_all();
        there.join().unwrap();
    });
    WOKEN.assert("a sleeper was woken");
    SAW_IT.assert("it was seen before the sleep");
}

/// Returns a runnable that records whether it was run or stopped.
fn work(run: &StdArc<StdUsize>, stopped: &StdArc<StdUsize>) -> Runnable {
    let (run, stopped) = (run.clone(), stopped.clone());
    runnable(move |call| {
        let count = if call == Call::Run { run } else { stopped };
        count.fetch_add(1, R);
    })
}

#[test]
fn a_push_against_the_closing_is_in_one_hand_exactly() {
    static GOT_IN: Reached = Reached::new();
    static HANDED_BACK: Reached = Reached::new();
    explore(5, || {
        let (run, stopped) = (StdArc::default(), StdArc::default());
        let injector = Arc::new(Injector::new(usize::MAX));
        let poster = {
            let (injector, work) = (injector.clone(), work(&run, &stopped));
            thread::spawn(move || match injector.push(work) {
                Ok(()) => GOT_IN.here(),
                Err(work) => {
                    HANDED_BACK.here();
                    drop(work);
                }
            })
        };
        let taker = {
            let injector = injector.clone();
            thread::spawn(move || injector.take(1, Runnable::run))
        };
        drop(injector.close());
        poster.join().unwrap();
        taker.join().unwrap();
        assert!(injector.is_empty());
        assert_eq!(run.load(R) + stopped.load(R), 1);
    });
    GOT_IN.assert("it got in before the end");
    HANDED_BACK.assert("it was handed back");
}

#[test]
fn what_two_threads_push_leaves_in_the_order_of_each() {
    static ALL_AT_ONCE: Reached = Reached::new();
    static APART: Reached = Reached::new();
    explore(3, || {
        let order = StdArc::new(std::sync::Mutex::new(Vec::new()));
        let injector = Arc::new(Injector::new(usize::MAX));
        let numbered = |number: u32| {
            let order = order.clone();
            runnable(move |_| order.lock().unwrap().push(number))
        };
        let poster = {
            let (injector, works) = (injector.clone(), [numbered(1), numbered(2)]);
            thread::spawn(move || works.map(|work| assert!(injector.push(work).is_ok())))
        };
        assert!(injector.push(numbered(10)).is_ok());
        let first = injector.take(2, Runnable::run);
        poster.join().unwrap();
        let rest = injector.take(3, Runnable::run);
        assert_eq!(first + rest + injector.take(3, Runnable::run), 3);
        APART.here_if(first == 1);
        ALL_AT_ONCE.here_if(first != 1);
        let order = order.lock().unwrap();
        let place = |number| order.iter().position(|other| *other == number).unwrap();
        assert!(place(1) < place(2), "{order:?}");
    });
    ALL_AT_ONCE.assert("more than one was taken at first");
    APART.assert("one was taken at first");
}

#[test]
fn a_full_queue_hands_back_and_has_room_again() {
    static REFUSED: Reached = Reached::new();
    static TAKEN: Reached = Reached::new();
    explore(5, || {
        let (run, stopped) = (StdArc::default(), StdArc::default());
        let injector = Arc::new(Injector::new(1));
        assert!(injector.push(work(&run, &stopped)).is_ok());
        let taker = {
            let injector = injector.clone();
            thread::spawn(move || injector.take(1, Runnable::run))
        };
        match injector.push(work(&run, &stopped)) {
            Ok(()) => TAKEN.here(),
            Err(work) => {
                REFUSED.here();
                assert_eq!(injector.refused(), 1);
                drop(work);
            }
        }
        taker.join().unwrap();
        drop(injector.close());
        assert_eq!(run.load(R) + stopped.load(R), 2);
    });
    REFUSED.assert("there was no room");
    TAKEN.assert("there was room again");
}

/// A worker of the pool, reduced to its parking and its priorities: runs one piece of work.
fn worker_of_priorities(
    sleepers: &Sleepers,
    index: usize,
    queues: &Priorities,
    woken: &Reached,
    saw_it: &Reached,
) {
    let mut permit = None;
    loop {
        permit = permit.or_else(|| sleepers.search());
        let found = [Priority::High, Priority::Normal, Priority::Low].into_iter().find_map(|priority| {
            let first = queues.take(priority)?;
            if !queues.has_none(priority) {
                sleepers.notify();
            }
            Some(first)
        });
        if let Some(runnable) = found {
            if let Some(permit) = permit {
                sleepers.found(permit, || !queues.is_empty());
            }
            return runnable.run();
        }
        permit = sleepers.sleep(index, permit, || !queues.is_empty());
        if permit.is_some() { woken.here() } else { saw_it.here() }
    }
}

#[test]
fn nobody_sleeps_over_work_of_any_priority() {
    static WOKEN: [Reached; 2] = [const { Reached::new() }; 2];
    static SAW_IT: [Reached; 2] = [const { Reached::new() }; 2];
    for (priority, woken, saw_it) in
        [(Priority::Low, &WOKEN[0], &SAW_IT[0]), (Priority::High, &WOKEN[1], &SAW_IT[1])]
    {
        explore(3, move || {
            let (run, stopped) = (StdArc::default(), StdArc::default());
            let (sleepers, queues) = (Arc::new(Sleepers::new(1)), Arc::new(Priorities::new(usize::MAX)));
            let there = {
                let (sleepers, queues) = (sleepers.clone(), queues.clone());
                thread::spawn(move || worker_of_priorities(&sleepers, 0, &queues, woken, saw_it))
            };
            assert!(queues.push(priority, work(&run, &stopped)).is_ok());
            sleepers.notify();
            there.join().unwrap();
            assert_eq!(run.load(R), 1);
        });
        woken.assert("a sleeper was woken");
        saw_it.assert("it was seen before the sleep");
    }
}

#[test]
fn two_workers_take_a_high_and_a_low_one_and_come_to_an_end() {
    static WOKEN: Reached = Reached::new();
    static SAW_IT: Reached = Reached::new();
    // More preemptions take minutes: there are three queues of several words each.
    explore(1, || {
        let (run, stopped) = (StdArc::default(), StdArc::default());
        let (sleepers, queues) = (Arc::new(Sleepers::new(2)), Arc::new(Priorities::new(usize::MAX)));
        let there = [0, 1].map(|index| {
            let (sleepers, queues) = (sleepers.clone(), queues.clone());
            thread::spawn(move || worker_of_priorities(&sleepers, index, &queues, &WOKEN, &SAW_IT))
        });
        for priority in [Priority::Low, Priority::High] {
            assert!(queues.push(priority, work(&run, &stopped)).is_ok());
            sleepers.notify();
        }
        there.into_iter().for_each(|there| there.join().unwrap());
        assert_eq!(run.load(R), 2);
    });
    WOKEN.assert("a sleeper was woken");
    SAW_IT.assert("it was seen before the sleep");
}

/// Rules 1 to 3 of the priorities: a busy worker, which checks only the signals, is told.
#[test]
fn while_high_work_waits_the_signal_is_set() {
    static ONE_LEFT: Reached = Reached::new();
    static MORE_LEFT: Reached = Reached::new();
    explore(2, || {
        let (run, stopped) = (StdArc::default(), StdArc::default());
        let queues = Arc::new(Priorities::new(usize::MAX));
        assert!(queues.push(Priority::High, work(&run, &stopped)).is_ok());
        let takers = [0, 1].map(|_| {
            let queues = queues.clone();
            thread::spawn(move || {
                if let Some(runnable) = queues.take(Priority::High) {
                    runnable.run();
                }
            })
        });
        for _ in 0..2 {
            assert!(queues.push_from_inside(Priority::High, work(&run, &stopped)).is_ok());
        }
        takers.into_iter().for_each(|taker| taker.join().unwrap());
        assert!(queues.signals().is_urgent(), "high work waits, and nobody is told");
        ONE_LEFT.here_if(run.load(R) == 2);
        MORE_LEFT.here_if(run.load(R) != 2);
        while let Some(runnable) = queues.take(Priority::High) {
            runnable.run();
        }
        assert!(queues.signals().is_none(), "nothing waits, and nobody is called");
        assert_eq!(run.load(R), 3);
    });
    ONE_LEFT.assert("two were taken meanwhile");
    MORE_LEFT.assert("fewer were taken meanwhile");
}

/// A value that counts its drop.
struct Goes(Arc<AtomicUsize>);

impl Drop for Goes {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn what_a_gate_leads_to_goes_once_and_not_while_somebody_is_inside() {
    static INSIDE: Reached = Reached::new();
    static TOO_LATE: Reached = Reached::new();
    static LEFT_TO_THE_LAST: Reached = Reached::new();
    explore(3, || {
        let gone = Arc::new(AtomicUsize::new(0));
        let gate = Arc::new(PoolGate::new(Arc::new(Goes(gone.clone()))));
        let posters = [(); 2].map(|()| {
            let gate = gate.clone();
            thread::spawn(move || match gate.enter() {
                Some(value) => {
                    INSIDE.here();
                    assert_eq!(value.0.load(Ordering::Relaxed), 0, "it is there while somebody is inside");
                }
                None => TOO_LATE.here(),
            })
        });
        gate.close();
        if gone.load(Ordering::Relaxed) == 0 {
            LEFT_TO_THE_LAST.here();
        }
        for poster in posters {
            poster.join().unwrap();
        }
        assert_eq!(gone.load(Ordering::Relaxed), 1, "it went once");
        assert!(gate.enter().is_none());
        drop(gate);
        assert_eq!(gone.load(Ordering::Relaxed), 1, "it went once");
    });
    INSIDE.assert("somebody was inside");
    TOO_LATE.assert("somebody came too late");
    LEFT_TO_THE_LAST.assert("the last one inside has let it go");
}
