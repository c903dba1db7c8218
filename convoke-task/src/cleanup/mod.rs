//! Async RAII: clean-up that is awaited on every exit of a body: value, failure, stop or panic.
//!
//! Use [`using`] for a resource that is [`AsyncClose`], [`ensure`] for clean-up without a resource, and
//! [`cleanups()`] for a number of resources that is known only at run time.
//!
//! A clean-up that fails changes the output of the body: [`CleanupFailure`](convoke_core::CleanupFailure)
//! says how. A failure that cannot be returned, and a clean-up that was skipped, go to the
//! [hook](set_cleanup_hook).

// The protocol, all of it in the polls of one task:
//
// 1. `Using` (`future`) polls the body in the frame of its task. The body has the resource in a `Lent`
//    (`lent`), whose destructor puts it back.
// 2. When the body has ended, its frame is dropped. Then the resource is back, and the clean-up is created,
//    with the `Exit` of the body. If the resource is not back, that is reported, and nothing is closed.
// 3. `Closing` (`closing`) polls the clean-up in a region that is shielded from stop requests, and catches
//    its panics. When the grace period (`grace`) is over, the region is asked to stop. The task is held, so
//    that it does not end meanwhile.
// 4. `Using::end` combines the outcome of the body with that of the clean-up. What is lost goes to the hook
//    (`problem`).
//
// `cleanups` is the same with a stack of clean-ups as the resource (`stack`). `reported` runs a clean-up
// without a body, for the services of a `Context`.

mod async_close;
mod cleanup_output;
mod cleanups;
mod closing;
mod ensure;
mod exit;
mod future;
mod grace;
mod lent;
mod problem;
mod reported;
mod stack;
mod using;

pub use async_close::AsyncClose;
pub use cleanup_output::{CleanupError, CleanupOutput};
pub use cleanups::{Cleanups, cleanups};
pub use ensure::ensure;
pub use exit::Exit;
pub use future::Using;
pub use grace::{DEFAULT_GRACE, GRACE, GRACE_OVER};
pub use lent::Lent;
#[cfg(feature = "testing")]
pub use problem::skipping_clean_up;
pub use problem::{CleanupProblem, ProblemKind, set_cleanup_hook};
#[doc(hidden)]
pub use reported::report_problem;
pub(crate) use reported::reported;
pub use stack::FirstFailure;
pub use using::using;
