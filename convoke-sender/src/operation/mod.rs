//! The pieces that operations with children are built of.

mod children;
mod enclosing;
mod env_above;
mod leaf;

pub use children::Children;
pub use convoke_core::raw::Handshake;
pub use enclosing::Enclosing;
pub use env_above::EnvAbove;
pub use leaf::{Action, Leaf};
