//! Below sockets: I/O contexts, their services, and the contract of drivers (feature `net`).
//!
//! An [`IoContext`] is one thread with one driver and one queue. [`io_context()`] creates one over the driver that fits this machine
//! best. Programs normally let `#[convoke::main]` or a [`Runtime`](crate::Runtime) create them.

pub use crate::runtime::{driver, io_context};
#[doc(inline)]
pub use convoke_io::context::{
    CONTEXTS, Contexts, IO, IoContext, IoExecutor, IoFuture, IoShared, Work, current_driver, driver_of,
    services_of, use_service, with_services,
};
#[doc(inline)]
pub use convoke_io::driver::*;
#[doc(inline)]
pub use convoke_io::transfer;
