//! The lowest floor of Convoke: how work is described, started, stopped and ended. No threads, no clock, no I/O.
//!
//! | room | what is in it |
//! | --- | --- |
//! | [`outcome`] | the four doors through which work ends |
//! | [`Sender`], [`Receiver`], [`Operation`] | work described, its outcome's way home, work connected |
//! | [`algorithm`] | factories and adaptors of senders, one file each |
//! | [`stop`] | asking work to stop |
//! | [`env`](mod@env) | what travels down to the work |
//! | [`frames`] | where the frames of tasks live |
//! | [`Executor`], [`ExecutorRef`] | where work runs |
//! | [`raw`] | for people who write executors, algorithms and tasks |
//!
//! Programs use the facade crate `convoke`, which re-exports all of this.

mod adopted;
pub mod env;
mod executor;
mod failure;
mod frame;
pub mod frames;
mod never;
pub mod outcome;
mod panic;
mod random;
mod report_panic;
mod spin_lock;
mod steps;
pub mod stop;
mod sync;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg_attr(feature = "loom", expect(dead_code, reason = "nobody watches a model"))]
mod this_thread;
mod wake;
mod watching;

/// For the macro in `sync`.
#[cfg(feature = "loom")]
#[doc(hidden)]
pub use loom as __loom;

pub use env::Env;
pub use executor::{Executor, ExecutorRef, InlineExecutor};
pub use failure::{AwaitError, BodyOutput, CleanupFailure, FailsAs};
pub use frames::FrameAllocator;
pub use never::Never;
pub use outcome::Outcome;
pub use panic::Panic;
pub use stop::{OwnedStopCallback, StopCallback, StopReason, StopRef, StopSource, StopToken};

pub mod raw {
    //! The low-level door: what executors, algorithms and task types are made of.

    pub use crate::adopted::{
        Abandon, Adoptable, Adopted, AdoptedFuture, AdoptedReceiver, Complete, Handshake, OnComplete,
        Operation, Peek, Rendezvous, Slot, Wait, abort_on_unwind, polled_again, stop_frame,
    };
    pub use crate::env::ScopedEnv;
    pub use crate::executor::{
        Call, Header, OnOwnerThread, OwnerId, OwnerThread, RemoteWake, RunQueue, Runnable, Timer, TimerLinks,
        Timers, Waits, WorkKind, dispatch_contained, post_contained,
    };
    pub use crate::frame::{
        AdoptedMemory, Frame, FrameOwner, HeldBefore, KeepsFrame, KeptFrame, OperationOwner, OwnerKind,
        OwnerRef, Pause, Polled, StopWatch, WakerMark, outside_a_task,
    };
    pub use crate::random::Random;
    pub use crate::report_panic::{contain, report_panic};
    pub use crate::spin_lock::{SpinGuard, SpinLock};
    #[cfg(feature = "testing")]
    pub use crate::steps::count as count_steps;
    pub use crate::steps::visit as visit_step;
    pub use crate::stop::{InPlaceStop, OnStop, Onward, RawCallback};
    pub use crate::wake::{discard, wake, wake_if_any};
    pub mod watching {
        //! What a diagnosis knows of threads.
        pub use crate::watching::*;
    }
    pub mod sync {
        //! The atomics, locks, cells and threads that Convoke is built on: the machine's, or, with the feature `loom`, those of
        //! the model checker `loom`, which runs a test under every schedule of its threads.
        //!
        //! Code that is built on these, and on the rest of Convoke, can be put through models of its own. A crate that wants that
        //! has a feature `loom = ["convoke/loom"]`, takes its atomics and locks from here, and calls [`model`] in its tests:
        //!
        //! ```
        //! use convoke::prelude::*;
        //! use convoke::raw::sync::atomic::{AtomicU32, Ordering};
        //! use convoke::raw::sync::{Arc, model, thread};
        //! use convoke::sync::Event;
        //!
        //! /// Says a number, once, to all who wait for it.
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
        //!     let heard = sync_wait(task(async move { announcement.hear().await }));
        //!     assert_eq!(heard, Outcome::Value(7));
        //!     other.join().unwrap();
        //! });
        //! ```
        //!
        //! Without the feature a model runs once, as an ordinary test does; with it, a release build, and a bound
        //! (`LOOM_MAX_PREEMPTIONS=2`), it explores. In a model no time passes, there is no I/O, and
        //! `convoke::tree()` shows nothing. The feature replaces, it does not
        //! add: it is turned on for models alone. Values that live in a `static` are not of a model.
        pub use crate::sync::*;
    }
}
