//! Scopes: the only way to start concurrent work. A scope ends when all its children have ended.
//!
//! | use | if |
//! | --- | --- |
//! | [`scope()`] | children own what they use, and may run in parallel |
//! | [`local_scope()`] | children borrow from the parent, and run inside its task |
//! | [`blocking_scope()`] | children borrow and run in parallel, and the parent is blocking code |
//! | [`scope_with()`] | another rule than the first failure ends the scope: see [`policy`] |

#[doc(inline)]
pub use convoke_task::local_scope::*;
#[doc(inline)]
pub use convoke_task::policy::{self, PolicyScope, scope_with};
#[doc(inline)]
pub use convoke_task::scope::*;
