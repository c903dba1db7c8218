//! `Barrier`: `n` tasks wait for each other.

use core::fmt;
use core::future::Future;

use convoke_core::raw::sync::const_outside_models;

use super::until::until;
use super::wait_queue::WaitQueue;
use convoke_core::raw::Pause;

/// A rendezvous of `n` tasks: none continues before all have arrived. It can be used for any number of
/// rounds.
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
    queue: WaitQueue<Round, (), 2>,
}

/// The round in progress.
struct Round {
    /// Number of tasks that have arrived in this round.
    arrived: usize,
    number: u64,
}

/// Result of [`Barrier::wait`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Met {
    leader: bool,
}

impl Met {
    /// Returns true for exactly one task of each round, the one that arrived last. Use it to choose a leader.
    pub fn is_leader(&self) -> bool {
        self.leader
    }
}

impl Barrier {
    const_outside_models! {
        /// Creates a barrier for `size` tasks. With a size of 0 or 1, `wait` never waits.
        pub fn new(size: usize) -> Self {
                Self { size, queue: WaitQueue::new(Round { arrived: 0, number: 0 }) }
        }
    }

    /// Waits until `size` tasks have called `wait` in this round.
    ///
    /// - *Completes with* [`Met`], or as stopped.
    /// - *If dropped* or stopped before the round is complete, this arrival no longer counts: the others wait
    ///   for another task.
    /// - *Runs on* the calling task. It also works outside a task, but cannot be stopped there.
    #[track_caller]
    pub fn wait(&self) -> impl Future<Output = Met> + Send + '_ {
        let pause = Pause::here();
        async move {
            let mut arrival = Arrival { barrier: self, round: None };
            let met = until(&self.queue, 0, pause, |locked| {
                let round = locked.state();
                match arrival.round {
                    Some(number) => (round.number != number).then_some(Met { leader: false }),
                    None if round.arrived + 1 >= self.size => {
                        *round = Round { arrived: 0, number: round.number.wrapping_add(1) };
                        Some(Met { leader: true })
                    }
                    None => {
                        round.arrived += 1;
                        arrival.round = Some(round.number);
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

/// An arrival that counts until its round is complete. Dropping it earlier takes it back.
struct Arrival<'a> {
    barrier: &'a Barrier,
    round: Option<u64>,
}

impl Drop for Arrival<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.round {
            let mut locked = self.barrier.queue.lock();
            let round = locked.state();
            if round.number == number {
                round.arrived -= 1;
            }
        }
    }
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Barrier").field("size", &self.size).finish_non_exhaustive()
    }
}
