//! Scopes whose children borrow from the parent and run inside its task: no executor, no task memory, no
//! `'static`.
//!
//! Use [`local_scope()`] for children that are `Send`, [`local_scope_not_send`] for others, and
//! [`scope()`](crate::scope()) for children that run in parallel.

// No unsafe code is needed. The protocol:
//
// 1. `LocalScope::spawn` puts a boxed child into the inbox, on any thread, and wakes the scope's future.
// 2. The scope's future, in the poll of its task, moves the children from the inbox to a `BranchSet`, and
//    polls the ones that were woken. It owns them: they are dropped with it.
// 3. The scope ends when the body has ended, the set is empty, and the inbox is closed while empty. A later
//    spawn panics.
//
// Why borrows are sound: what children borrow outlives `'env`, and a `LocalScope<'env, O>`, in whose inbox
// children wait, has `'env` in its type. So no inbox is used after `'env`. A `LocalScope` that is leaked
// leaks the children in its inbox; they are never polled. A child that holds a clone of its `LocalScope` is a
// cycle through the inbox; the future breaks it when it ends or is dropped, for it empties the inbox.

mod child;
mod future;
mod handle;
mod inbox;
mod spawn;

pub use future::{LocalScopeFuture, local_scope, local_scope_not_send};
pub use handle::{LocalHandle, LocalOutcome};
pub use spawn::{LocalScope, LocalScopeNotSend};
