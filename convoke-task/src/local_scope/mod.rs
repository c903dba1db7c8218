//! Scopes whose children borrow from the parent and run inside its task: no executor, no memory of tasks, no `'static`.
//!
//! No unsafe is needed for that. The children belong to the scope's future; what they borrow outlives `'env`, and handles, in
//! which children wait until the future takes them in, name `'env` in their type, so that none is alive when `'env` is over.
//! A handle that is leaked leaks the children that wait in it, and nobody polls those. When the future ends, or is
//! dropped, it empties what handles still hold: so children that keep a handle, and are kept by it, are dropped.

mod child;
mod future;
mod handle;
mod inbox;
mod spawn;

pub use future::{LocalScopeFuture, local_scope, local_scope_not_send};
pub use handle::LocalHandle;
pub use spawn::{LocalNamed, LocalNamedNotSend, LocalScope, LocalScopeNotSend};
