//! Tasks: launching them, what an `async fn` says to its task, several futures at once, generators.
//!
//! | use | if |
//! | --- | --- |
//! | [`block_on()`] | ordinary code runs a future until it ends |
//! | [`launch()`] | ordinary code starts a chain of tasks and goes on |
//! | [`task()`] | a future is to be a task of its own, awaited or composed as a sender |
//! | [`join()`], [`try_join()`], [`race()`], [`select!`](crate::select) | a few futures run together in one task |
//! | [`map_concurrent()`], [`for_each_concurrent()`] | a function runs over many items, several at a time |
//! | [`run_until_stopped()`] | a part of a task ends with a token of the program's own |
//! | [`budget`] | a future of one's own can be ready at once, or must not yield |
//! | [`checkpoint()`], [`stoppable()`], [`catch_stopped()`] | a function yields, makes a foreign future stoppable, or goes on after a stop |

#[doc(inline)]
pub use convoke_core::AwaitError;
#[doc(inline)]
pub use convoke_core::outcome::Failure;
#[doc(inline)]
pub use convoke_task::concurrent::*;
#[doc(inline)]
pub use convoke_task::generator::*;
#[doc(inline)]
pub use convoke_task::launch::*;
#[doc(inline)]
pub use convoke_task::limits::{GracePeriod, Shield, shield};
#[doc(inline)]
pub use convoke_task::together::*;
#[doc(inline)]
pub use convoke_task::{
    CatchStopped, Checkpoint, EndStopped, Forever, NoReturn, NotSend, RunUntilStopped, Stoppable, Stopped,
    Task, TaskOperation, budget, catch_stopped, checkpoint, forever, run_on, run_until_stopped, stoppable,
    stopped, task,
};
