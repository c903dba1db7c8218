//! Mutex and semaphore, between tasks of one thread: the cost of an uncontended acquire, and of a handover.
//!
//! Each lock is measured on the runtime it was made for.

use std::cell::Cell;
use std::hint::black_box;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::{CONVOKE, Scenario};
use crate::own::Convoke;
use crate::peer::{Glommio, OneThread, Smol, Spawner, Tokio};

/// Number of tasks that want the lock, or a permit.
const TASKS: u64 = 8;
const PERMITS: usize = 4;
/// Acquires of each task in a batch: enough to make the cost of spawning it small.
const EACH: u64 = 100;

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario::new("mutex", "lock a mutex that is free, change its value, unlock it")
            .contestant(CONVOKE, alone::<Convoke, convoke::sync::Mutex<u64>>)
            .contestant("async_lock", alone::<Smol, async_lock::Mutex<u64>>)
            .contestant("tokio", alone::<Tokio, tokio::sync::Mutex<u64>>)
            .contestant("futures", alone::<Smol, futures::lock::Mutex<u64>>),
        Scenario::new(
            "mutex_contended",
            "lock a mutex, yield, unlock it, one of 8 tasks of a thread that do so",
        )
        .batch(TASKS * EACH)
        .contestant(CONVOKE, contended::<Convoke, convoke::sync::Mutex<u64>>)
        .contestant("async_lock", contended::<Smol, async_lock::Mutex<u64>>)
        .contestant("tokio", contended::<Tokio, tokio::sync::Mutex<u64>>)
        .contestant("futures", contended::<Smol, futures::lock::Mutex<u64>>),
        Scenario::new(
            "semaphore",
            "take one of 4 permits, yield, give it back, one of 8 tasks of a thread that do so",
        )
        .batch(TASKS * EACH)
        .contestant(CONVOKE, contended::<Convoke, convoke::sync::Semaphore>)
        .contestant("async_lock", contended::<Smol, async_lock::Semaphore>)
        .contestant("tokio", contended::<Tokio, tokio::sync::Semaphore>)
        .contestant_if(Glommio::starts(), "glommio", contended::<Glommio, glommio::sync::Semaphore>),
    ]
}

/// A lock with a limited number of holders.
trait Gate: 'static {
    type Held<'a>;

    fn make() -> Self;

    fn enter(&self) -> impl Future<Output = Self::Held<'_>>;

    /// The work while it is held.
    fn touch(_: &mut Self::Held<'_>) {}
}

macro_rules! mutex {
    ($Mutex:path, $Guard:path) => {
        impl Gate for $Mutex {
            type Held<'a> = $Guard;

            fn make() -> Self {
                Self::new(0)
            }

            #[inline]
            fn enter(&self) -> impl Future<Output = Self::Held<'_>> {
                self.lock()
            }

            #[inline]
            fn touch(held: &mut Self::Held<'_>) {
                **held += 1;
            }
        }
    };
}

mutex!(convoke::sync::Mutex<u64>, convoke::sync::MutexGuard<'a, u64>);
mutex!(async_lock::Mutex<u64>, async_lock::MutexGuard<'a, u64>);
mutex!(tokio::sync::Mutex<u64>, tokio::sync::MutexGuard<'a, u64>);
mutex!(futures::lock::Mutex<u64>, futures::lock::MutexGuard<'a, u64>);

impl Gate for convoke::sync::Semaphore {
    type Held<'a> = convoke::sync::Permit<'a>;

    fn make() -> Self {
        Self::new(PERMITS)
    }

    #[inline]
    fn enter(&self) -> impl Future<Output = Self::Held<'_>> {
        self.acquire()
    }
}

impl Gate for async_lock::Semaphore {
    type Held<'a> = async_lock::SemaphoreGuard<'a>;

    fn make() -> Self {
        Self::new(PERMITS)
    }

    #[inline]
    fn enter(&self) -> impl Future<Output = Self::Held<'_>> {
        self.acquire()
    }
}

impl Gate for tokio::sync::Semaphore {
    type Held<'a> = tokio::sync::SemaphorePermit<'a>;

    fn make() -> Self {
        Self::new(PERMITS)
    }

    #[inline]
    async fn enter(&self) -> Self::Held<'_> {
        self.acquire().await.expect("it is not closed")
    }
}

impl Gate for glommio::sync::Semaphore {
    type Held<'a> = glommio::sync::Permit<'a>;

    fn make() -> Self {
        Self::new(PERMITS as u64)
    }

    #[inline]
    async fn enter(&self) -> Self::Held<'_> {
        self.acquire_permit(1).await.expect("it is not closed")
    }
}

fn alone<R: OneThread, G: Gate>() -> impl FnMut(u64) -> Duration {
    let mut runtime = R::start();
    move |ops| {
        runtime.run(|_| async move {
            let gate = G::make();
            let start = Instant::now();
            for _ in 0..ops {
                G::touch(&mut black_box(&gate).enter().await);
            }
            start.elapsed()
        })
    }
}

fn contended<R: OneThread, G: Gate>() -> impl FnMut(u64) -> Duration {
    let mut runtime = R::start();
    move |ops| {
        runtime.run(|spawner| async move {
            let gate = Rc::new(G::make());
            let inside = Rc::new(Cell::new(0_u64));
            let start = Instant::now();
            let tasks: Vec<_> = (0..TASKS)
                .map(|_| {
                    let (gate, inside) = (Rc::clone(&gate), Rc::clone(&inside));
                    spawner.spawn(async move {
                        for _ in 0..ops / TASKS {
                            let mut held = gate.enter().await;
                            G::touch(&mut held);
                            spawner.yield_now().await;
                            inside.set(inside.get() + 1);
                        }
                    })
                })
                .collect();
            for task in tasks {
                task.await;
            }
            assert_eq!(inside.get(), ops / TASKS * TASKS);
            start.elapsed()
        })
    }
}
