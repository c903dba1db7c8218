//! Tasks: a future become a sender.

mod ask_stop;
mod cell;
mod cold;
mod header;
mod inside;
mod many_wakers;
mod memory;
mod parent_link;
mod remote_wake;
mod rerun;
mod spawn_site;
#[doc(hidden)]
pub mod state;
mod view;
mod wake_locally;
mod waker;

pub(crate) use ask_stop::AskStop;
pub(crate) use cell::{Cell, Ending, Known, no_memory};
pub(crate) use header::{TaskHeader, drop_handle, drop_reference};
pub(crate) use inside::Inside;
pub(crate) use memory::Vacant;
pub(crate) use parent_link::{List, ParentLink};
pub use view::TaskView;
pub use wake_locally::wake_locally;
