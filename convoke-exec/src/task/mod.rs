//! Tasks: a future become a sender.

mod again;
mod at_home;
mod cell;
mod header;
mod host;
mod letters;
mod look;
mod many_wakers;
mod memory;
mod place;
mod root;
mod side;
mod site;
#[doc(hidden)]
pub mod state;
mod waker;

pub use at_home::wake_at_home;
pub(crate) use cell::{Cell, Ending, Known, no_memory};
pub(crate) use header::{TaskHeader, drop_handle, drop_reference};
pub(crate) use host::Inside;
pub(crate) use look::Look;
pub(crate) use memory::Vacant;
pub(crate) use place::{List, Place};
pub(crate) use root::AskStop;
pub use root::{Task, task};
