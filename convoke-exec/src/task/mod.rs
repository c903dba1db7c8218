//! Tasks: a future become a sender.

mod cell;
mod header;
mod host;
mod place;
mod root;
mod side;
#[doc(hidden)]
pub mod state;

pub(crate) use cell::{Cell, Ending, Making, Vacant};
pub(crate) use header::{TaskHeader, drop_reference};
pub(crate) use host::Inside;
pub(crate) use place::Place;
pub use root::{Task, task};
