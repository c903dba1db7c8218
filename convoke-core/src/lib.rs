//! The lowest layer of Convoke: how work ends, how it is stopped, and where it runs. No threads, no clock, no
//! I/O.
//!
//! This crate holds contracts and the machinery behind them. Executors, tasks, senders and drivers are in the
//! crates above it. Programs use the facade crate `convoke`, which re-exports all of this.
//!
//! # Protocol
//! - Work ends with exactly one [`Outcome`]: a value, an error, a stop or a panic.
//! - A stop is a request. A [`StopSource`] makes it, on any thread; the work decides when to honour it. Two
//!   mechanisms carry it; [`stop`] explains both, and the bridge between them.
//! - An [`Executor`] takes [`Runnable`](raw::Runnable)s from any thread and uses up each of them once: it
//!   runs it, or drops it. Work that is dropped completes as stopped.
//! - A task is polled inside a [`Frame`](raw::Frame), which only the polling thread can reach. Futures find
//!   their environment, their stop request and the task that owns them through it.
//! - An operation that a future awaits lies in memory of the task. If the future is dropped, the operation
//!   goes on, and the task does not complete before it.
//!
//! # Map
//! | module | contents |
//! | --- | --- |
//! | [`outcome`], [`Panic`], [`Never`] | how work ends |
//! | [`stop`] | sources, tokens and callbacks of stop requests |
//! | [`Executor`], [`ExecutorRef`] | where work runs: contract, erased handle, queue, timers, owner threads |
//! | [`env`](mod@env) | what a parent passes down to its work: executor, stop token, allocator, locals |
//! | [`frames`] | allocators for the memory of tasks |
//! | `frame` (in [`raw`]) | the poll frame: what a future knows of the task that polls it |
//! | `adopted` (in [`raw`]) | operations that a task owns on behalf of a future |
//! | [`AwaitError`], [`CleanupFailure`], [`FailsAs`] | how the errors of several pieces of work combine |
//! | `intrusive_list` (in [`raw`]) | a list that is linked through its nodes |
//! | `out_of_line` (in [`raw`]) | a field whose destructor is a call |
//! | `scoped_ref` (in [`raw`]) | a thread's reference to a value on its stack |
//! | `watching` (in [`raw`]) | which task each thread polls, for diagnosis |
//! | `sync` (in [`raw`]) | atomics, locks, cells and threads: the standard ones or loom's |
//! | [`raw`] | the parts that executors, algorithms and task types are made of |

#![cfg_attr(docsrs, feature(doc_cfg))]

mod adopted;
pub mod env;
mod executor;
mod failure;
mod frame;
pub mod frames;
mod intrusive_list;
mod never;
mod out_of_line;
pub mod outcome;
mod panic;
mod random;
mod report_panic;
mod scoped_ref;
mod spin_lock;
mod stack;
mod steps;
pub mod stop;
mod sync;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg_attr(feature = "loom", expect(dead_code, reason = "models are not watched"))]
mod this_thread;
mod wake;
mod watching;

/// The crate `loom`, for the macros in `sync`.
#[cfg(feature = "loom")]
#[doc(hidden)]
pub use loom as __loom;

pub use env::Env;
pub use executor::{Executor, ExecutorRef, InlineExecutor};
pub use failure::{AwaitError, BodyOutput, CleanupFailure, FailsAs};
pub use frame::{FOREIGN_FUTURES, ForeignFutures, UntilStopped};
pub use frames::FrameAllocator;
pub use never::Never;
pub use outcome::Outcome;
pub use panic::Panic;
pub use stop::{OwnedStopCallback, StopCallback, StopReason, StopRef, StopSource, StopToken};

pub mod raw {
    //! The low-level door: the parts that executors, algorithms and task types are made of.

    pub use crate::adopted::{
        Abandon, Adoptable, Adopted, AdoptedFuture, AdoptedReceiver, Complete, OnComplete, Operation, Peek,
        Rendezvous, Slot, StartRendezvous, Wait, WorkRef, abort_on_unwind, polled_again, stop_frame,
    };
    pub use crate::env::{Overlay, ScopedEnv};
    pub use crate::executor::{
        AnyExecutor, ArmedTimer, Call, Header, IdleTimer, LocalRunQueue, OnOwnerThread, OwnerId, OwnerThread,
        RemoteWake, RunQueue, Runnable, Timer, TimerLinks, Timers, WaitLocation, WorkKind, address_of_timers,
        dispatch_contained, post_contained,
    };
    pub use crate::frame::{
        AdoptedMemory, Frame, FrameOwner, HeldBefore, KeepsFrame, KeptFrame, OperationOwner, OwnerKind,
        OwnerRef, Pause, Polled, StopWatch, UnderWay, WakerMark, current_allocator, outside_a_task,
    };
    pub use crate::frames::frame_arc::FrameArc;
    pub use crate::frames::frame_box::FrameBox;
    pub use crate::frames::frame_vec::{FrameMemory, FrameVec};
    pub use crate::frames::frame_waker::FrameWake;
    pub use crate::intrusive_list::{IntrusiveList, Linked, Links};
    pub use crate::out_of_line::{DropOutOfLine, LastUse, OutOfLine};
    pub use crate::random::Random;
    pub use crate::report_panic::{abort_with, contain, report_panic};
    pub use crate::scoped_ref::ScopedRef;
    pub use crate::spin_lock::{SpinGuard, SpinLock};
    pub use crate::stack::with_room;
    #[cfg(feature = "testing")]
    pub use crate::steps::count as count_steps;
    pub use crate::steps::visit as visit_step;
    pub use crate::stop::{InPlaceStop, OnStop, Onward, RawCallback, ReasonCode};
    pub use crate::wake::{discard, wake, wake_if_any};
    pub mod budget {
        //! The budget of a poll, for futures and for executors of one's own.
        pub use crate::frame::budget::*;
    }
    pub mod watching {
        //! Which task each thread polls, for diagnosis.
        pub use crate::watching::*;
    }
    pub mod sync {
        //! The atomics, locks, cells and threads that Convoke is built on: the standard ones or, with the
        //! feature `loom`, those of the model checker `loom`, which runs a test under every schedule of its
        //! threads.
        //!
        //! Code that is built on these, and on the rest of Convoke, can have models of its own. Such a crate
        //! has a feature `loom = ["convoke/loom"]`, takes its atomics and locks from here, and calls
        //! [`model`] in its tests:
        //!
        //! ```
        //! use convoke::prelude::*;
        //! use convoke::raw::sync::atomic::{AtomicU32, Ordering};
        //! use convoke::raw::sync::{Arc, model, thread};
        //! use convoke::sync::Event;
        //!
        //! /// Announces a number, once, to everything that waits for it.
        //! #[derive(Default)]
        //! struct Announcement {
        //!     number: AtomicU32,
        //!     said: Event,
        //! }
        //!
        //! impl Announcement {
        //!     fn say(&self, number: u32) {
        //!         self.number.store(number, Ordering::Relaxed);
        //!         self.said.set();
        //!     }
        //!
        //!     async fn hear(&self) -> u32 {
        //!         self.said.wait().await;
        //!         self.number.load(Ordering::Relaxed)
        //!     }
        //! }
        //!
        //! model(|| {
        //!     let announcement = Arc::new(Announcement::default());
        //!     let says = announcement.clone();
        //!     let other = thread::spawn(move || says.say(7));
        //!     let heard = block_on(async move { announcement.hear().await });
        //!     assert_eq!(heard, Outcome::Value(7));
        //!     other.join().unwrap();
        //! });
        //! ```
        //!
        //! Without the feature a model runs once, like an ordinary test. With it, in a release build and with
        //! a bound (`LOOM_MAX_PREEMPTIONS=2`), it explores all schedules. In a model no time passes, there is
        //! no I/O, and `convoke::inspect::tree()` shows nothing. The feature replaces code, it does not add any: turn
        //! it on for models only. A model does not reset values in a `static`.
        pub use crate::sync::*;
    }
}
