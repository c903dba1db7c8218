//! Time: [`sleep()`], [`sleep_until()`], [`interval()`] and [`DelayQueue`], and the timers under them.
//!
//! A future that waits for a time holds an *alarm*: a timer and a waker. In its first poll it arms the timer
//! with the timers of its executor. Executors whose thread sleeps, such as the run loop, have their own; all
//! others share one thread of the process. `timers_of` chooses. The thread that serves the timers calls
//! each one at its time, which wakes the future; dropping the future disarms the timer.
//!
//! | module | contents |
//! | --- | --- |
//! | `sleep`, `sleeping`, `interval`, `now` | the public functions, futures and streams |
//! | `delay_queue`, `delay_heap` | a queue of items that come out at their times, and the heap that sorts them |
//! | `wait` | how these futures wait: an alarm, and a check for a stop |
//! | `alarm` | a timer that wakes a future |
//! | `fallback` | the timers of executors without timers |
//! | `queue` | armed timers under a lock; the model-checked part |
//! | `wheel`, `lists`, `sorting` | the hierarchical timer wheel that holds them |

pub(crate) mod alarm;
mod delay_heap;
mod delay_queue;
mod fallback;
mod interval;
mod lists;
mod now;
pub(crate) mod queue;
mod sleep;
mod sleeping;
mod sorting;
mod wait;
mod wheel;

pub(crate) use alarm::Alarm;
pub use delay_queue::{DelayKey, DelayQueue, Expired, NextExpired};
pub use interval::{Interval, MissedTicks, Tick, interval, interval_at};
pub use now::now;
pub use sleep::{Sleep, sleep, sleep_until};
pub use sleeping::Sleeping;

use convoke_core::raw::Timers;
use convoke_core::{Env, Executor, ExecutorRef};

/// Returns the timers of this environment: those of its executor or, if it has none, those of the thread
/// `convoke-timers`, which the first call starts and which is never ended.
///
/// # Panics
/// If that thread cannot be started; and if the executor is the [`InlineExecutor`](convoke_core::InlineExecutor),
/// which would run the work on that thread.
#[doc(hidden)]
pub fn timers_of(env: &Env) -> &dyn Timers {
    timers_for(env.executor())
}

/// Returns the timers of this executor, or those of the process.
fn timers_for(executor: &ExecutorRef) -> &dyn Timers {
    executor.timers().unwrap_or_else(|| fallback::timers_for(executor))
}

/// A time, or a duration from the start of the work.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub enum When {
    /// At this time.
    At(std::time::Instant),
    /// This long after the start.
    After(std::time::Duration),
}

impl When {
    /// Returns the time, with durations counted from `now`. Returns `None` if an `Instant` cannot represent
    /// it.
    pub fn from(self, now: std::time::Instant) -> Option<std::time::Instant> {
        match self {
            Self::At(at) => Some(at),
            Self::After(duration) => now.checked_add(duration),
        }
    }
}
