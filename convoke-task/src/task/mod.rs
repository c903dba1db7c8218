//! Tasks: a future become a sender.

mod again;
mod ask_stop;
mod at_home;
mod cell;
mod header;
mod inside;
mod letters;
mod look;
mod many_wakers;
mod memory;
mod place;
mod side;
mod site;
#[doc(hidden)]
pub mod state;
mod waker;

pub(crate) use ask_stop::AskStop;
pub use at_home::wake_at_home;
pub(crate) use cell::{Cell, Ending, Known, no_memory};
pub(crate) use header::{TaskHeader, drop_handle, drop_reference};
pub(crate) use inside::Inside;
pub use look::Look;
pub(crate) use memory::Vacant;
pub(crate) use place::{List, Place};
