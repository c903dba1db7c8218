//! [`Workers`]: an executor over tokio's threads. As many *runners* as the runtime has workers, each a tokio
//! task, run work from one queue.
//!
//! 1. Work is posted under one lock, and wakes an idle runner if there is one. A runner that takes work, and leaves
//!    more behind, wakes the next.
//! 2. A runner that has no work is in the list of idle ones, with its waker. It leaves the list when it is polled,
//!    for whatever reason.
//! 3. The timers are those of an embedded loop, which one more tokio task, the *clock*, runs. It runs nothing else.
//! 4. It is closed when its last handle is dropped, or the last runner: the runtime has ended then. What is queued
//!    is stopped, and so is all that is posted later.
//!
//! | module | contents |
//! | --- | --- |
//! | `shared` | the queue, the idle runners, waking them |
//! | `runner` | the tokio tasks: the runners and the clock |

mod runner;
mod shared;

use core::fmt;
use std::sync::Arc;

use convoke_core::Executor;
use convoke_core::raw::{Runnable, Timers};
use tokio::runtime::Handle;

use runner::start;
use shared::SharedWorkers;

/// An executor over the worker threads of a tokio runtime: children that run on it are parallel, and may use all of
/// tokio. Cheap to clone; create one for a runtime, and share it.
///
/// Work runs in tokio tasks, one for each worker thread, at most [`PIECES_PER_POLL`](crate::PIECES_PER_POLL)
/// pieces in one poll. Posting allocates nothing. Its time is tokio's, also if that is paused. When the runtime
/// ends, or the last handle is dropped, work that is queued is stopped.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::scope::scope_on;
/// use convoke_tokio::{Workers, run};
///
/// # #[tokio::main(flavor = "multi_thread", worker_threads = 2)]
/// # async fn main() -> Result<(), Stopped> {
/// let workers = Workers::new();
/// let sum = run(async move {
///     scope_on(&workers, async |s| {
///         let one = s.spawn_future(async { (1..=1000_u64).sum::<u64>() });
///         let other = s.spawn_future(async { (1001..=2000_u64).sum::<u64>() });
///         one.await + other.await
///     })
///     .await
/// })
/// .await?;
/// assert_eq!(sum, 2_001_000);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Workers {
    owner: Arc<Owner>,
}

/// All handles together. The runners have none, so that they end with the last handle.
struct Owner {
    shared: Arc<SharedWorkers>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.shared.close();
    }
}

impl Workers {
    /// Creates an executor over the current runtime: as many runners as that has worker threads.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    #[track_caller]
    #[expect(clippy::new_without_default, reason = "it starts tasks, and panics outside a runtime")]
    pub fn new() -> Self {
        Self::on(&Handle::current())
    }

    /// Creates an executor over this runtime.
    pub fn on(runtime: &Handle) -> Self {
        Self { owner: Arc::new(Owner { shared: start(runtime) }) }
    }
}

impl PartialEq for Workers {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.owner, &other.owner)
    }
}

impl Eq for Workers {}

#[diagnostic::do_not_recommend]
impl Executor for Workers {
    fn post(&self, runnable: Runnable) {
        self.owner.shared.post(runnable);
    }

    fn dispatch(&self, runnable: Runnable) -> Option<Runnable> {
        if self.owner.shared.runs_here() {
            return Some(runnable);
        }
        self.post(runnable);
        None
    }

    fn parallelism(&self) -> usize {
        self.owner.shared.runners()
    }

    fn timers(&self) -> Option<&dyn Timers> {
        self.owner.shared.timers()
    }
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workers").field("runners", &self.owner.shared.runners()).finish_non_exhaustive()
    }
}
