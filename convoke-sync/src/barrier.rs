//! `Barrier`: all wait for all.

use core::fmt;
use core::future::Future;

use convoke_core::raw::sync::const_outside_models;

use super::until::until;
use super::wait_queue::WaitQueue;
use convoke_core::raw::Pause;

/// A place where so many meet before any of them goes on; again and again.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::sync::Barrier;
/// use std::sync::Arc;
///
/// let barrier = Arc::new(Barrier::new(3));
/// let outcome = block_on(async move {
///     scope(async |s| {
///         let runners: Vec<_> = (0..3)
///             .map(|_| {
///                 let barrier = barrier.clone();
///                 s.spawn_future(async move { barrier.wait().await.is_leader() })
///             })
///             .collect();
///         let mut leaders = 0;
///         for runner in runners {
///             leaders += u32::from(runner.await);
///         }
///         leaders
///     })
///     .await
/// });
/// assert_eq!(outcome, Outcome::Value(1));
/// ```
pub struct Barrier {
    size: usize,
    queue: WaitQueue<Meeting, (), 2>,
}

/// The meeting that is on.
struct Meeting {
    /// How many have come.
    arrived: usize,
    number: u64,
}

/// What [`Barrier::wait`] returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Met {
    leader: bool,
}

impl Met {
    /// Whether this is the one of all who met that came last: for what one of them must do.
    pub fn is_leader(&self) -> bool {
        self.leader
    }
}

impl Barrier {
    const_outside_models! {
        /// For so many. For none or one nobody ever waits.
        pub fn new(size: usize) -> Self {
            Self { size, queue: WaitQueue::new(Meeting { arrived: 0, number: 0 }) }
        }
    }

    /// Waits until all have come.
    ///
    /// - *Completes with* [`Met`], or stopped.
    /// - *If dropped* or stopped before all have come, it is as if it had not come: the others wait for another one.
    /// - *Runs on* the task; outside a task it waits as well, and cannot be stopped.
    #[track_caller]
    pub fn wait(&self) -> impl Future<Output = Met> + Send + '_ {
        let pause = Pause::here();
        async move {
            let mut arrival = Arrival { barrier: self, meeting: None };
            let met = until(&self.queue, 0, pause, |locked| {
                let meeting = locked.state();
                match arrival.meeting {
                    Some(number) => (meeting.number != number).then_some(Met { leader: false }),
                    None if meeting.arrived + 1 >= self.size => {
                        *meeting = Meeting { arrived: 0, number: meeting.number.wrapping_add(1) };
                        Some(Met { leader: true })
                    }
                    None => {
                        meeting.arrived += 1;
                        arrival.meeting = Some(meeting.number);
                        None
                    }
                }
            })
            .await;
            if met.leader {
                self.queue.grant_all(0);
            }
            met
        }
    }
}

/// One who has come, and is counted while the meeting is on.
struct Arrival<'a> {
    barrier: &'a Barrier,
    meeting: Option<u64>,
}

impl Drop for Arrival<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.meeting {
            let mut locked = self.barrier.queue.lock();
            let meeting = locked.state();
            if meeting.number == number {
                meeting.arrived -= 1;
            }
        }
    }
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Barrier").field("size", &self.size).finish_non_exhaustive()
    }
}
