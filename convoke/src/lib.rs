//! Structured async for Rust, in which nothing is ever detached.

pub use convoke_core::*;
pub use convoke_exec::*;

pub mod prelude {
    //! What a program wants to have in scope: `use convoke::prelude::*;`.

    pub use convoke_core::prelude::*;
    pub use convoke_exec::{RunLoop, sync_wait, sync_wait_with};
}
