//! Senders: work composed as values, after C++26's `std::execution` (feature `sender`).
//!
//! A [`Sender`] describes work that has not started. Adaptors are methods, as `Iterator`'s are; [`sync_wait()`] starts a sender from
//! ordinary code, `.await` starts it in a task, and a [`CountingScope`] counts work that is started in it. A task is a sender, too:
//! [`task()`](crate::task::task).

#[doc(inline)]
pub use convoke_sender::*;

pub mod prelude {
    //! What a program that composes senders has in scope: `use convoke::sender::prelude::*;`.

    pub use convoke_core::{
        Env, Executor, ExecutorRef, Never, Outcome, Panic, StopReason, StopSource, StopToken,
    };
    pub use convoke_sender::prelude::*;
    pub use convoke_sender::{CountingScope, sync_wait, sync_wait_with};
    pub use convoke_task::task;
}
