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

pub mod algorithm;
mod awaiting;
mod completes;
pub mod env;
mod executor;
mod frame;
pub mod frames;
mod never;
mod operation;
pub mod outcome;
mod panic;
pub mod prelude;
mod receiver;
mod sender;
pub mod stop;
mod sync;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

/// For the macro in `sync`.
#[cfg(feature = "loom")]
#[doc(hidden)]
pub use loom as __loom;

pub use awaiting::{AwaitError, Awaited, CleanupFailure, FailsAs};
pub use completes::Completes;
pub use env::Env;
pub use executor::{Executor, ExecutorRef, InlineExecutor};
pub use frames::FrameAllocator;
pub use never::Never;
pub use operation::Operation;
pub use outcome::Outcome;
pub use panic::Panic;
pub use receiver::Receiver;
pub use sender::{OutcomeOf, SameError, Sender};
pub use stop::{OwnedStopCallback, StopCallback, StopReason, StopRef, StopSource, StopToken};

pub mod raw {
    //! The low-level door: what executors, algorithms and task types are made of.

    pub use crate::awaiting::meeting;
    pub use crate::env::ScopedEnv;
    pub use crate::executor::{
        AtHome, Call, Header, Home, HomeId, Letter, RunQueue, Runnable, Timer, TimerLinks, Timers,
    };
    pub use crate::frame::{
        Frame, FrameOwner, Guest, HeldBefore, Host, HostKind, HostRef, Polled, StopWatch, Waits, WakerMark,
        outside_a_task,
    };
    pub use crate::operation::{Action, Children, EnvAbove, Handshake, Leaf, Slot};
    pub use crate::stop::{InPlaceStop, OnStop, RawCallback};
    pub mod sync {
        //! The atomics, locks and cells that Convoke is built on; loom's, with the feature `loom`.
        pub use crate::sync::*;
    }
}
