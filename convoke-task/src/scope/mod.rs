//! Scopes: the only way to start concurrent work. A scope ends when everything that was started in it has
//! ended.
//!
//! [`scope()`] opens a scope in a task, [`scope_on`] one whose children run on another executor, and
//! [`blocking_scope()`] one in blocking code. For children that borrow, inside one task, use
//! [`local_scope`](mod@crate::local_scope); for another rule than "the first failure ends it", use
//! [`policy`](crate::policy).
//!
//! # Depth
//! Children in children of scopes cost heap, at any depth. A scope in the body of a scope is polled inside it, as a function that
//! calls itself: on two megabytes of stack that is the end after 500 levels without optimisation, and 2,000 with it, and the process
//! aborts. With the feature `deep`, a default of the crate `convoke`, the bodies continue on a new stack when a part of that is
//! used, and any depth costs heap. That holds for all that has a body: limits, joins, `using`, and for dropping them.
//!
//! Without that feature (`default-features = false`), and on other processors than x86-64 and AArch64, recursion of unknown
//! depth must make each level a child, or a [`task`](crate::task()).
//!
//! # Outcome
//! A stop *from outside* is one that was requested of the task or of a part of it around the scope. A child
//! *is cut short* if it stops for that; it has no handle, or its handle alone would hear of it. The rows are
//! checked from the top.
//!
//! | body | children | outcome of the scope |
//! | --- | --- | --- |
//! | any | one failed or panicked before the body did | that failure |
//! | panic | any | the panic |
//! | error | none was cut short | the error |
//! | error | one was cut short, after the body had returned | the error |
//! | error | one was cut short, and the body returned before it heard of the stop | the error |
//! | error | one was cut short, and the body heard of the stop before it returned | stopped |
//! | any | one fails or panics after the body has ended with a value or as stopped | that failure |
//! | stopped | any | stopped |
//! | value | one was cut short | stopped |
//! | value | all ended, or stopped by themselves or by [`Scope::request_stop`] | the value |
//!
//! - *Error, then stopped:* a request fails with "connection closed", because the child that drives the
//!   connection was stopped first. The error is a consequence of the stop, and the caller that asked for the stop
//!   sees a stop. An error of a child is never taken for one: to report an error in spite of a stop, return
//!   it from a child.
//! - *Value, then stopped:* the value may rely on what the child did not do.
//! - Without a stop from outside no row says "stopped", unless the body itself was.

// The parts:
//
// - **The block** (`block`) is the shared state of one scope: the parent link of the children with their
//   environment, the list of children, the first failure, the stop request, the waker of the scope's future. A
//   spin lock guards what changes.
// - **The scope's future** (`future`) runs the body in the task that opened the scope. When the body has
//   ended it waits for the children. In blocking code, the calling thread does both (`blocking`).
// - **A child** is a task. It leads to a *parent link*: the block's own (`child::SharedLink`), or one inside the
//   child if it runs on another executor (`child::OwnLink`). Its ending (`child::ToScope`, `ToHandle`) tells the
//   scope.
// - **The builder** (`builder`) is the one way in which children are started, in this module and in
//   `local_scope` and `policy`: the short verbs of every scope call it. Its options are types (`options`), and
//   the scopes are its parents (`parent`): each says which children it takes, and starts them (`start`).
// - **A handle** (`handle`) is a second reference to a child (`task::Join`). Outcome and waker change hands in
//   the child's memory.
//
// The protocol between them:
//
// 1. *Spawn*, on any thread that has a `Scope` (`start`, `Block::add`): the child is created without the lock.
//    Under the lock it is added to the list, unless the scope has ended: then its future is handed back. After
//    the lock the child is posted to its executor. A scope that is stopping still takes children;
//    they are asked to stop from the start.
// 2. *End of a child*, on the thread that polled it last: an outcome for a handle goes to the rendezvous
//    first. Then the child (`LeavingChild`) is removed from the list under the lock. The first failure is stored in the block,
//    and wakes the scope's future. The last child wakes it too, if the body has ended. **After that lock is
//    released the child does not touch the block.**
// 3. *Stop*, on any thread: `Block::stop_children` stores the reason, moves one child after the other to the
//    list of asked children, and asks each without the lock, with a reference that keeps the child's memory
//    alive.
// 4. *Failure*: the scope's future finds it at its next poll, and asks body and children to stop. The
//    children of a blocking scope have no future to do that, so the child that failed asks the others.
// 5. *End of the scope*: the body has ended, the list is empty, and `ended` is set under the lock. No child
//    starts later.
// 6. *Drop of the scope's future* with children in the list: `Block::abandon` asks them to stop, and gives
//    the block a reference to itself and an adopted operation of the task, so that the task waits. The last
//    child releases both.
//
// Who frees what:
//
// - *The block*: the last of the scope's future, the clones of `Scope`, and (step 6) the block's reference to
//   itself. A child has no reference: it is in the list, and the list keeps the future waiting or the
//   self-reference alive.
// - *A child's future*: the child, on the thread that polled it last, before step 2.
// - *A child's memory*: the last of the task itself, its wakers, a stop request under way, and its handle.
// - *An outcome*: the scope's future (a failure), or the handle; if the handle is gone, the child drops it.

mod block;
mod blocking;
mod blocking_spawn;
mod bound;
pub mod builder;
mod caught;
mod child;
mod failure;
mod future;
mod guarded;
mod handle;
mod named;
mod options;
mod output;
mod parent;
mod restart;
mod results;
mod spawn;
mod start;
mod until_ready;

pub use convoke_core::BodyOutput;

pub use crate::stop_handle::StopHandle;
pub use crate::task::{Anywhere, HandleKind, SameThread};
pub use blocking::{blocking_scope, blocking_scope_with};
pub use blocking_spawn::{BlockingHandle, BlockingScope};
pub use bound::Bound;
pub use builder::Child;
pub(crate) use caught::{AttemptEnd, Caught, PollCaught};
pub(crate) use child::name_panic;
pub(crate) use failure::ChildOrigin;
pub use failure::{ChildFailure, FailureKind};
pub(crate) use future::open;
pub use future::{ScopeFuture, scope, scope_on};
pub(crate) use guarded::Guarded;
pub use handle::{Handle, HandleOutcome};
pub use output::ChildOutput;
pub use results::{NextResult, Results};
pub use spawn::{Scope, SpawnError};
pub use until_ready::{EndedEarly, Ready, Started};
