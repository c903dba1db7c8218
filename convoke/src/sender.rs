//! Senders: work composed as values, after C++26's `std::execution` (feature `sender`).
//!
//! A [`Sender`] describes work that has not started. Adaptors are methods, as `Iterator`'s are; [`sync_wait()`] starts a sender from
//! ordinary code, `.await` starts it in a task, and a [`CountingScope`] counts work that is started in it. A task is a sender, too:
//! [`task()`](crate::task::task).

#[doc(inline)]
pub use convoke_sender::{
    AnySender, AskToStop, AsyncScope, AwaitError, AwaitableSender, Awaited, AwaitedFuture, Completes,
    CountingScope, Deadline, Operation, OutcomeOf, Receiver, ReceiverOf, SameError, ScopeHandle, Sender,
    SleepOperation, StopAt, TryTask, algorithm, async_scope, counting_scope, deadline_after, deadline_at,
    sync_wait, sync_wait_with, try_task,
};

pub mod prelude {
    //! The names that a program that composes senders imports: `use convoke::sender::prelude::*;`.

    pub use convoke_core::{
        Env, Executor, ExecutorRef, Never, Outcome, Panic, StopReason, StopSource, StopToken,
    };
    pub use convoke_sender::prelude::*;
    pub use convoke_sender::{CountingScope, sync_wait, sync_wait_with, try_task};
    pub use convoke_task::task;
}
