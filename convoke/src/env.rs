//! The environment of a task: executor, stop token, deadline, frame allocator and locals. It is set where work is launched and
//! inherited by everything below.
//!
//! [`current`] is what the running task sees of it, [`with()`] runs a future in a changed one, [`Changes`] names the changes for
//! a sender. [`ForeignFutures`] says what becomes of futures of other crates when a stop is requested.

#[doc(inline)]
pub use convoke_core::env::*;
#[doc(inline)]
pub use convoke_core::{
    Env, FOREIGN_FUTURES, ForeignFutures, OwnedStopCallback, StopCallback, StopRef, UntilStopped,
};
#[doc(inline)]
pub use convoke_task::chance;
#[doc(inline)]
pub use convoke_task::{InEnv, InOwnTask, InThisTask, RunInEnv, With, WithLocal, with, with_local};

pub mod current {
    //! The environment of the running task, for any function below it, async or plain. Nothing here suspends.

    #[cfg(feature = "net")]
    #[doc(inline)]
    pub use crate::runtime::current as runtime;
    #[doc(inline)]
    pub use convoke_task::current::*;
}
