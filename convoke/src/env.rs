//! The environment of a task: executor, stop token, deadline, frame allocator and locals. It is set where work is launched and
//! inherited by everything below.
//!
//! [`current`] is what the running task sees of it, [`with_local()`] changes a local for a future, [`Changes`] names the changes for
//! a launch. [`ForeignFutures`] says what becomes of futures of other crates when a stop is requested.

#[doc(inline)]
pub use convoke_core::env::*;
#[doc(inline)]
pub use convoke_core::{
    Env, FOREIGN_FUTURES, ForeignFutures, OwnedStopCallback, StopCallback, StopRef, UntilStopped,
};
#[doc(inline)]
pub use convoke_task::chance;
#[doc(inline)]
pub use convoke_task::{WithLocal, with_local};

pub mod current {
    //! The environment of the running task, for any function below it, async or plain. Nothing here suspends.

    #[cfg(feature = "net")]
    #[doc(inline)]
    pub use crate::runtime::current as runtime;
    #[doc(inline)]
    pub use convoke_task::current::*;
}
