//! Registering a stop callback and deregistering it: what every stoppable wait pays, with or without a stop.

use std::hint::black_box;
use std::pin::pin;
use std::sync::{Arc, Barrier, Mutex};
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

use convoke::StopSource;
use tokio_util::sync::CancellationToken;

use super::{CONVOKE, Scenario};
use crate::measure::time;

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario::new(
            "stop_callback",
            "register one callback on a stop source and deregister it, uncontended",
        )
        .contestant(CONVOKE, || convoke(alone))
        .contestant("tokio_util", || tokio_util(alone))
        .contestant("mutex_list", || mutex_list(alone)),
        Scenario::new(
            "stop_callback_2",
            "the same by two threads at once on one source (wall time / ops of one thread)",
        )
        .lanes(2)
        .contestant(CONVOKE, || convoke(on_two_threads))
        .contestant("tokio_util", || tokio_util(on_two_threads))
        .contestant("mutex_list", || mutex_list(on_two_threads)),
    ]
}

/// Calls the body with the ops, on each of the scenario's threads. Returns the time.
type Conduct = fn(u64, &(dyn Fn(u64) + Sync)) -> Duration;

fn alone(ops: u64, body: &(dyn Fn(u64) + Sync)) -> Duration {
    time(|| body(ops))
}

/// Two threads that start together at a barrier; the slower one counts.
fn on_two_threads(ops: u64, body: &(dyn Fn(u64) + Sync)) -> Duration {
    let barrier = Barrier::new(2);
    let lane = || {
        barrier.wait();
        time(|| body(ops))
    };
    thread::scope(|scope| {
        let other = scope.spawn(lane);
        lane().max(other.join().expect("the contestant does not panic"))
    })
}

/// A callback on the stack, with a borrowed token.
fn convoke(conduct: Conduct) -> impl FnMut(u64) -> Duration {
    let token = StopSource::new().token();
    move |ops| {
        conduct(ops, &|ops| {
            for _ in 0..ops {
                let callback = pin!(black_box(&token).as_ref().on_stop(|_| {}));
                callback.as_ref().register();
                black_box(&*callback);
            }
        })
    }
}

/// A `cancelled()` future registers when it is first polled and deregisters when it is dropped.
fn tokio_util(conduct: Conduct) -> impl FnMut(u64) -> Duration {
    let token = CancellationToken::new();
    move |ops| {
        conduct(ops, &|ops| {
            let mut context = Context::from_waker(Waker::noop());
            for _ in 0..ops {
                let cancelled = pin!(token.cancelled());
                assert!(black_box(cancelled.poll(&mut context)).is_pending());
            }
        })
    }
}

/// A typical hand-written version: a list under a mutex, entries removed by key, no allocation once it has
/// grown.
fn mutex_list(conduct: Conduct) -> impl FnMut(u64) -> Duration {
    let source = Arc::new(Mutex::new(List::with_capacity(64)));
    let callback: Callback = &|| {};
    move |ops| {
        conduct(ops, &|ops| {
            for _ in 0..ops {
                let key = source.lock().unwrap().register(black_box(callback));
                let key = black_box(key).expect("nobody asked to stop");
                source.lock().unwrap().deregister(key);
            }
        })
    }
}

type Callback = &'static (dyn Fn() + Sync);

/// A slab of callbacks with a free list, so that registering and deregistering are a pop and a push.
struct List {
    stopped: bool,
    slots: Vec<Option<Callback>>,
    free: Vec<usize>,
}

impl List {
    fn with_capacity(capacity: usize) -> Self {
        let stopped = black_box(false);
        Self { stopped, slots: vec![None; capacity], free: (0..capacity).collect() }
    }

    /// Returns the key to deregister with, or `None` if the stop was already requested.
    fn register(&mut self, callback: Callback) -> Option<usize> {
        if self.stopped {
            return None;
        }
        let key = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[key] = Some(callback);
        Some(key)
    }

    fn deregister(&mut self, key: usize) {
        self.slots[key] = None;
        self.free.push(key);
    }
}
