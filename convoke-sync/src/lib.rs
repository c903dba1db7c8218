//! Synchronisation for `async fn`: locks, permits, events and channels. Every wait can be stopped.
//!
//! Three layers. The two lower ones are private:
//! 1. `wait_queue` is a state under a short spin lock, with intrusive lists of waiters. `wait` is the node of
//!    one waiter, inside its future.
//! 2. `permits` (a count of permits, granted in order) and `until` (wait until a condition on the state is
//!    true) are the two ways to wait in such a queue. `seat` is the waiter of a receiver that is polled as a
//!    stream, and `blocking` waits with a thread instead of a task.
//! 3. The public types hold one of the two, or, in `channel`, a queue of their own.
//!
//! The protocol between them:
//! - Any thread may change a state. It does so under the lock, *grants* the waiters that this concerns,
//!   releases the lock, and then calls their wakers. No waker, no destructor and no other user code runs
//!   under a lock of this crate.
//! - The waiter's node lives in its future, so waiting does not allocate. Dropping the future unlinks the
//!   node. If it was already granted, it passes the grant on.
//! - Every future checks for a stop in each poll, also in the first one, even if it would not have to wait.
//!   It then completes as stopped and nothing is lost: a granted permit goes to the next waiter, and a
//!   message stays in its channel.
//! - Outside a task everything works on any executor, but nothing can be stopped there.
//!
//! | module or type | contents |
//! | --- | --- |
//! | [`Mutex`], [`RwLock`], [`Semaphore`] | locks over `permits` |
//! | [`Event`], [`Notify`] | a flag that stays set, and a notification that one waiter takes |
//! | [`Barrier`], [`OnceCell`] | a rendezvous of `n` tasks, a value that is initialised once |
//! | [`mpsc`], [`mpmc`] | message queues, bounded unless created with `unbounded` |
//! | [`oneshot`] | a channel for one message |
//! | [`watch`] | the latest value, for any number of receivers |
//! | [`broadcast`] | every message, for every receiver that is fast enough |
//! | [`lossless_broadcast`] | every message, for every receiver: the slowest one holds up the senders |
//! | `ledger` | a record of waiters and holders, for the deadlock diagnosis; `no_ledger` is its twin without that feature |

#![cfg_attr(docsrs, feature(doc_cfg))]

mod acquiring;
mod barrier;
mod blocking;
pub mod broadcast;
mod broadcast_halves;
mod broadcast_ring;
pub mod channel;
mod event;
#[cfg(feature = "diagnosis")]
#[doc(hidden)]
pub mod ledger;
pub mod lossless_broadcast;
pub mod mpmc;
pub mod mpsc;
mod mutex;
#[cfg(not(feature = "diagnosis"))]
mod no_ledger;
mod notify;
mod once_cell;
pub mod oneshot;
mod permits;
mod rw_lock;
mod seat;
mod semaphore;
mod until;
mod wait;
mod wait_queue;
pub mod watch;

#[cfg(not(feature = "diagnosis"))]
use no_ledger as ledger;

pub use barrier::{Barrier, Met};
pub use event::Event;
pub use mutex::{Lock, Mutex, MutexGuard, OwnedMutexGuard};
pub use notify::{Notified, Notify};
pub use once_cell::OnceCell;
pub use rw_lock::{Read, ReadGuard, RwLock, Write, WriteGuard};
pub use semaphore::{AcquirePermits, OwnedPermit, Permit, Semaphore};
