//! The chains of each tokio runtime that have not ended: those that are awaited, and those whose future was
//! dropped. `finish` asks them to stop and waits for them.

use core::fmt;
use core::panic::Location;
use core::task::{Context, Poll, Waker};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use convoke_core::StopReason;
use convoke_core::raw::sync::atomic::{AtomicUsize, Ordering};
use convoke_core::raw::sync::{Mutex, MutexGuard};
use convoke_core::raw::{contain, discard, report_panic, wake};
use convoke_task::StopHandle;
use tokio::runtime::Id;

/// Number of shards. Each thread registers its chains in one of them, so threads that start and end chains at the same time
/// meet at one lock only if there are more of them than this. `finish`, which looks at all, takes all locks in order.
const SHARDS: usize = 16;

static CHAINS: [Shard; SHARDS] = [const { Shard(Mutex::new(Vec::new())) }; SHARDS];

/// The runtimes that have chains here, or are being finished. A process has few: they are searched one by one. Alone in
/// its cache lines.
#[repr(align(128))]
struct Shard(Mutex<Vec<Runtime>>);

thread_local! {
    /// The shard of this thread's chains.
    static OWN_SHARD: usize = {
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        THREADS.fetch_add(1, Ordering::Relaxed) % SHARDS
    };
}

/// The part of a runtime's chains that lies in one shard.
struct Runtime {
    id: Id,
    /// The key of the chain that is registered next.
    next: u64,
    chains: BTreeMap<u64, Known>,
    /// Number of calls of `finish` that wait. Chains that start meanwhile are asked to stop.
    finishing: usize,
    /// The waiters of `finish`.
    waiters: Vec<Waker>,
}

/// A chain, as `finish` knows it.
#[derive(Clone)]
pub(crate) struct Known {
    stop: StopHandle,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) location: &'static Location<'static>,
}

impl Shard {
    fn lock(&self) -> MutexGuard<'_, Vec<Runtime>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Calls `f` with the runtime in this shard, which is added if it is not there, and removed if it is not needed any more.
fn with_runtime<R>(shard: &Shard, id: Id, f: impl FnOnce(&mut Runtime) -> R) -> R {
    let mut runtimes = shard.lock();
    let index = runtimes.iter().position(|runtime| runtime.id == id).unwrap_or_else(|| {
        let (chains, waiters) = (BTreeMap::new(), Vec::new());
        runtimes.push(Runtime { id, next: 0, chains, finishing: 0, waiters });
        runtimes.len() - 1
    });
    let result = f(&mut runtimes[index]);
    if runtimes[index].chains.is_empty() && runtimes[index].finishing == 0 {
        let unused = runtimes.swap_remove(index);
        debug_assert!(unused.waiters.is_empty(), "a waiter is registered while `finish` waits");
    }
    result
}

/// A chain's place among those of its runtime. Dropping it removes the chain.
pub(crate) struct Registered {
    runtime: Id,
    shard: &'static Shard,
    key: u64,
}

impl Registered {
    /// Adds a chain. Asks it to stop if the runtime is being finished.
    pub(crate) fn new(
        runtime: Id,
        stop: StopHandle,
        name: Option<Arc<str>>,
        location: &'static Location<'static>,
    ) -> Self {
        let asks = stop.clone();
        let known = Known { stop, name, location };
        // A thread that is ending has no shard of its own any more.
        let shard = &CHAINS[OWN_SHARD.try_with(|shard| *shard).unwrap_or(0)];
        let (key, is_finishing) = with_runtime(shard, runtime, |runtime| {
            let key = runtime.next;
            runtime.next += 1;
            runtime.chains.insert(key, known);
            (key, runtime.finishing > 0)
        });
        if is_finishing {
            contain(report_panic, || asks.request_stop(StopReason::Shutdown));
        }
        Self { runtime, shard, key }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let (known, waiters) = with_runtime(self.shard, self.runtime, |runtime| {
            let known = runtime.chains.remove(&self.key);
            let waiters =
                if runtime.chains.is_empty() { core::mem::take(&mut runtime.waiters) } else { Vec::new() };
            (known, waiters)
        });
        drop(known);
        waiters.into_iter().for_each(wake);
    }
}

/// A call of `finish` that waits.
pub(crate) struct Finishing(Id);

impl Finishing {
    /// Asks all chains of the runtime to stop, and those that start from now on.
    pub(crate) fn begin(runtime: Id) -> Self {
        let stops = CHAINS.iter().flat_map(|shard| {
            with_runtime(shard, runtime, |runtime| {
                runtime.finishing += 1;
                runtime.chains.values().map(|known| known.stop.clone()).collect::<Vec<StopHandle>>()
            })
        });
        let stops: Vec<StopHandle> = stops.collect();
        let finishing = Self(runtime);
        for stop in stops {
            // Without the lock: a stop callback is code of the program, and may panic.
            contain(report_panic, || stop.request_stop(StopReason::Shutdown));
        }
        finishing
    }

    /// Completes when there is no chain.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        // Cloned and dropped without the lock.
        let waker = cx.waker().clone();
        let unused = {
            // All at once: a chain that ends may have started another one in a shard that was looked at before.
            let mut shards = CHAINS.each_ref().map(Shard::lock);
            let mut here = shards.iter_mut().flat_map(|shard| shard.iter_mut().filter(|it| it.id == self.0));
            // Woken when this shard has none left, it looks for the next.
            match here.find(|runtime| !runtime.chains.is_empty()) {
                None => Err(waker),
                Some(runtime) if runtime.waiters.iter().any(|waiter| waiter.will_wake(&waker)) => {
                    Ok(Some(waker))
                }
                Some(runtime) => {
                    runtime.waiters.push(waker);
                    Ok(None)
                }
            }
        };
        match unused {
            Err(waker) => {
                discard(waker);
                Poll::Ready(())
            }
            Ok(waker) => {
                waker.into_iter().for_each(discard);
                Poll::Pending
            }
        }
    }

    /// Returns the chains that have not ended.
    pub(crate) fn left(&self) -> Vec<Known> {
        let left = |shard| {
            with_runtime(shard, self.0, |runtime| runtime.chains.values().cloned().collect::<Vec<Known>>())
        };
        CHAINS.iter().flat_map(left).collect()
    }
}

impl Drop for Finishing {
    fn drop(&mut self) {
        let waiters = CHAINS.iter().flat_map(|shard| {
            with_runtime(shard, self.0, |runtime| {
                runtime.finishing -= 1;
                if runtime.finishing == 0 { core::mem::take(&mut runtime.waiters) } else { Vec::new() }
            })
        });
        waiters.for_each(discard);
    }
}

impl fmt::Display for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "`{name}` ({})", self.location),
            None => write!(f, "the chain at {}", self.location),
        }
    }
}
