//! Scopes: the only way to start concurrent work. A scope ends when all that was started in it has ended.

mod block;
mod blocking;
mod blocking_spawn;
mod bound;
mod child;
mod children;
mod future;
mod handle;
mod handle_rendezvous;
mod named;
mod output;
mod results;
mod spawn;
mod spawn_on;
mod until_ready;

pub use convoke_core::BodyOutput;

pub use blocking::{blocking_scope, blocking_scope_with};
pub use blocking_spawn::{BlockingHandle, BlockingNamed, BlockingScope};
pub use bound::Bound;
pub(crate) use child::name_panic;
pub(crate) use future::open;
pub use future::{ScopeFuture, scope, scope_on};
pub use handle::{Anywhere, Handle, Kind, OnOwnerThread};
pub use output::ChildOutput;
pub use results::{NextResult, Results};
pub use spawn::{Named, Scope, SpawnError};
pub use until_ready::{EndedEarly, Ready, Started};
