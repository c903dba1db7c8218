//! Scopes: the only way to start concurrent work. A scope ends when all that was started in it has ended.

mod output;

pub use output::ChildOutput;
pub(crate) use output::is_error;
