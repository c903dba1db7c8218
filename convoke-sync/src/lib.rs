//! Waiting for each other: locks, permits, events and channels for `async fn`, all of whose waits can be stopped.
//!
//! | room | what is in it |
//! | --- | --- |
//! | [`Mutex`], [`RwLock`], [`Semaphore`] | over one core, `permits.rs`: a number of permits that are handed out in order |
//! | [`Event`], [`Barrier`], [`OnceCell`] | something has happened; all have come; a value that is made once |
//! | [`mpsc`], [`mpmc`] | queues of messages, bounded unless one asks for no bound |
//! | [`oneshot`] | one message |
//! | [`watch`] | the latest value, for all who look |
//! | [`broadcast`] | every message, for all who listen |
//!
//! - **Every call that can be awaited hears of a stop**: while it waits, and when it begins, also if it would not have
//!   to wait. It ends by the stopped door then, and nothing is lost: a permit that was handed to it goes to the next, a
//!   message stays in its channel.
//! - **What waits is in its future**, linked into a list (`wait_queue.rs`): waiting does not allocate, and dropping the
//!   future ends it at once.
//! - No waker and no destructor is called under a lock of this folder.
//! - Outside a task all of this works too, on any executor; only the stop is not heard of there.

mod acquiring;
mod barrier;
pub mod broadcast;
pub mod channel;
mod event;
mod holders;
#[doc(hidden)]
pub mod ledger;
pub mod mpmc;
pub mod mpsc;
mod mutex;
mod once_cell;
pub mod oneshot;
mod permits;
mod rw_lock;
mod semaphore;
mod table;
mod until;
mod wait;
mod wait_queue;
pub mod watch;

pub use barrier::{Barrier, Met};
pub use event::Event;
pub use mutex::{Lock, Mutex, MutexGuard, OwnedMutexGuard};
pub use once_cell::OnceCell;
pub use rw_lock::{Read, ReadGuard, RwLock, Write, WriteGuard};
pub use semaphore::{AcquirePermits, OwnedPermit, Permit, Semaphore};
